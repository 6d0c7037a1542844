// SPDX-License-Identifier: BSD-2-Clause
/* Finds the function of an address by binary search, and prints names for addresses. */

#include <lego/kallsyms.h>

#include <asm/page.h>
#include <lego/compiler.h>
#include <lego/printk.h>
#include <lego/string.h>

/* The table that scripts/kallsyms.py adds at link time; its format is described there. */
extern const u32 kallsyms_nr;
extern const u32 kallsyms_offsets[];
extern const u32 kallsyms_name_offsets[];
extern const char kallsyms_names[];

extern const char _stext[], _etext[];
extern const u32 __build_id_start[], __build_id_end[];

static u64 symbol_address(u32 i)
{
	return KERNEL_VIRT + kallsyms_offsets[i];
}

const char *kallsyms_lookup(u64 addr, u64 *start, u64 *size)
{
	u32 low = 0, high = READ_ONCE(kallsyms_nr);
	u64 end;

	if (addr < (u64)_stext || addr >= (u64)_etext || !high || addr < symbol_address(0))
		return NULL;

	/* Invariant: the last symbol at or below addr is in [low, high). */
	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (symbol_address(middle) <= addr)
			low = middle;
		else
			high = middle;
	}
	end = low + 1 < kallsyms_nr ? symbol_address(low + 1) : (u64)_etext;
	if (start)
		*start = symbol_address(low);
	if (size)
		*size = end - symbol_address(low);
	return kallsyms_names + kallsyms_name_offsets[low];
}

const char *kallsyms_at(u32 i, u64 *addr)
{
	if (i > kallsyms_nr)
		return NULL;
	if (i == kallsyms_nr) {
		*addr = (u64)_etext;
		return "_etext";
	}
	*addr = symbol_address(i);
	return kallsyms_names + kallsyms_name_offsets[i];
}

bool kallsyms_find(const char *name, u64 *start, u64 *size)
{
	for (u32 i = 0; i < kallsyms_nr; i++) {
		if (!strcmp(kallsyms_names + kallsyms_name_offsets[i], name))
			return kallsyms_lookup(symbol_address(i), start, size);
	}
	return false;
}

/* A note has three words (sizes of name and id, type), "GNU" and the id (gABI, chapter 5). */
void kernel_build_id(char *text, size_t size)
{
	const u8 *id = (const u8 *)(__build_id_start + 4);
	size_t len = 0;

	text[0] = '\0';
	while (id < (const u8 *)__build_id_end && len + 2 < size)
		len += snprintf(text + len, size - len, "%02x", *id++);
}
