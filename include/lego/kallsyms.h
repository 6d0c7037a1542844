/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_KALLSYMS_H
#define LEGO_KALLSYMS_H

/* The kernel's own text symbols, made and verified by scripts/kallsyms.py at link time. Any
 * context. */

#include <lego/types.h>

/*
 * The function that holds addr, or NULL outside kernel text. *start (if not NULL) gets the
 * function's address, *size the distance to the next symbol. O(log n), no locks; the name lives for
 * ever.
 */
const char *kallsyms_lookup(u64 addr, u64 *start, u64 *size);

/* Address of a function by name, 0 if there is none. Linear; for tests and rare commands. */
u64 kallsyms_address(const char *name);

/* Copies the build id that the linker has given the kernel, in hexadecimal digits. */
void kernel_build_id(char *text, size_t size);

#endif
