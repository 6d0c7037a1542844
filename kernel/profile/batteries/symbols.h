/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_BATTERIES_SYMBOLS_H
#define PROFILE_BATTERIES_SYMBOLS_H

/* Names of the kernel's functions, from a table that symbols.awk has made. Any context. */

#include "../os_hooks.h"

/* Returns the name of the function that contains addr, and stores its address. NULL: none does. */
const char *battery_symbol(u64 addr, u64 *start);

/* The same, as os_symbol_lookup(): copies the name, unless that is NULL, truncated to size. */
bool battery_symbol_lookup(u64 addr, u64 *start, char *name, size_t size);

#endif
