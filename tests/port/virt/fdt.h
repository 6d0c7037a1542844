/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PORT_FDT_H
#define PORT_FDT_H

/* Reads the device tree of QEMU (the Devicetree Specification, chapter 5). */

/* Returns a word of the tree as a number. */
unsigned int fdt_word(const void *at);

/* Returns the value of the first property of this name, or NULL. */
const void *fdt_property(const void *tree, const char *name);

#endif
