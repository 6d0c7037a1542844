// SPDX-License-Identifier: BSD-2-Clause
/* A device tree is a sequence of words, big endian: tokens, and names and values behind them. */

#include "fdt.h"

#include "../kernel.h"

enum token {
	BEGIN_NODE = 1,
	END_NODE,
	PROPERTY,
	NOP,
};

#define WORDS_OFFSET 2 /* words of the header */
#define NAMES_OFFSET 3

u32 fdt_word(const void *at)
{
	const u8 *byte = at;

	return (u32)byte[0] << 24 | byte[1] << 16 | byte[2] << 8 | byte[3];
}

const void *fdt_property(const void *tree, const char *name)
{
	const char *bytes = tree;
	const u32 *words = tree;
	const char *names = bytes + fdt_word(words + NAMES_OFFSET);
	const u32 *word = (const u32 *)(bytes + fdt_word(words + WORDS_OFFSET));

	for (;;) {
		switch (fdt_word(word++)) {
		case BEGIN_NODE:
			word += strlen((const char *)word) / 4 + 1;
			break;
		case PROPERTY:
			if (!strcmp(names + fdt_word(word + 1), name))
				return word + 2;
			word += 2 + (fdt_word(word) + 3) / 4;
			break;
		case END_NODE:
		case NOP:
			break;
		default:
			return NULL;
		}
	}
}
