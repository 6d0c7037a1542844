/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_SORT_H
#define LEGO_SORT_H

#include <lego/types.h>

/* Heap sort, in place, O(n log n) worst case, no allocation, not stable. Any context. */
void sort(void *base, size_t nr, size_t size, int (*compare)(const void *a, const void *b));

#endif
