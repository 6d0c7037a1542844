/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_KALLSYMS_H
#define LEGO_KALLSYMS_H

/* The kernel's own text symbols, made and verified by scripts/kallsyms.py at link time. Any
 * context. */

#include <lego/types.h>

/*
 * Returns the name of the function that contains addr, or NULL outside kernel text. Sets *start (if
 * not NULL) to the function's address, *size to the distance to the next symbol. O(log n), no
 * locks; the name stays valid for ever.
 */
const char *kallsyms_lookup(u64 addr, u64 *start, u64 *size);

/*
 * Returns the address of a function by its name, or 0. Searches linearly: for tests and rare
 * commands.
 */
u64 kallsyms_address(const char *name);

/* Copies the build id that the linker has given the kernel, in hexadecimal digits. */
void kernel_build_id(char *text, size_t size);

#endif
