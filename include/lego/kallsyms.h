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
 * Returns the name of symbol number i in the order of addresses: _stext, the functions, _etext.
 * Sets *addr. NULL: there are no more.
 */
const char *kallsyms_at(u32 i, u64 *addr);

/*
 * Finds a function by its name, and sets *start and *size as kallsyms_lookup() does. Returns false
 * if there is none. Searches linearly: for tests and rare commands.
 */
bool kallsyms_find(const char *name, u64 *start, u64 *size);

/* Copies the build id that the linker has given the kernel, in hexadecimal digits. */
void kernel_build_id(char *text, size_t size);

#endif
