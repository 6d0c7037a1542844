/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_BATTERIES_HEAP_H
#define PROFILE_BATTERIES_HEAP_H

/* A heap in memory that you give it, for a kernel whose allocator cannot do what os.h asks for. */

#include <stddef.h>

/* Called once, before the others. The size must be below 64 GiB. */
void battery_heap_init(void *memory, size_t size);

/* Allocates zeroed memory, aligned to 16 bytes. NULL: there is none. Any context, NMI included. */
void *battery_zalloc(size_t size);

/* Frees such memory for later blocks of about the same size. NULL: does nothing. Any context. */
void battery_free(void *ptr);

#endif
