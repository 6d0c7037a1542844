// SPDX-License-Identifier: BSD-2-Clause
/* Heap sort: swaps the largest element, at index 0 of the heap, with the last one, and repeats. */

#include <lego/sort.h>

/* Swaps two elements, by words as far as possible: the compiler makes one load of each copy. */
static void swap(char *a, char *b, size_t size)
{
	for (; size >= sizeof(u64); size -= sizeof(u64), a += sizeof(u64), b += sizeof(u64)) {
		u64 word_a, word_b;

		__builtin_memcpy(&word_a, a, sizeof(u64));
		__builtin_memcpy(&word_b, b, sizeof(u64));
		__builtin_memcpy(a, &word_b, sizeof(u64));
		__builtin_memcpy(b, &word_a, sizeof(u64));
	}
	while (size--) {
		char c = *a;

		*a++ = *b;
		*b++ = c;
	}
}

static void sift_down(char *base, size_t root, size_t nr, size_t size,
		      int (*compare)(const void *a, const void *b))
{
	for (;;) {
		size_t child = 2 * root + 1;

		if (child >= nr)
			return;
		if (child + 1 < nr && compare(base + child * size, base + (child + 1) * size) < 0)
			child++;
		if (compare(base + root * size, base + child * size) >= 0)
			return;
		swap(base + root * size, base + child * size, size);
		root = child;
	}
}

void sort(void *base, size_t nr, size_t size, int (*compare)(const void *a, const void *b))
{
	char *elements = base;

	for (size_t root = nr / 2; root-- > 0;)
		sift_down(elements, root, nr, size, compare);
	for (size_t last = nr; last-- > 1;) {
		swap(elements, elements + last * size, size);
		sift_down(elements, 0, last, size, compare);
	}
}
