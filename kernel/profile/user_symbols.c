// SPDX-License-Identifier: BSD-2-Clause
/* Names of user addresses, for those who print them. images/symbols.c finds them. */

#include "user_symbols.h"

#include "report.h"

const struct user_symbol_source *user_symbol_source;

void user_symbol_of_code(u32 code_map, u64 addr, struct user_symbol *symbol)
{
	*symbol = (struct user_symbol){ .start = addr };
	if (user_symbol_source)
		user_symbol_source->find_code(code_map, addr, symbol);
}

bool user_symbol_of_data(u32 code_map, u64 addr, struct user_symbol *symbol)
{
	*symbol = (struct user_symbol){ .start = addr };
	if (user_symbol_source)
		user_symbol_source->find_data(code_map, addr, symbol);
	return symbol->name;
}

const char *user_symbol_path(u32 image)
{
	return image ? user_symbol_source->path(image) : "";
}

size_t user_symbol_print(char *text, size_t size, u32 code_map, u64 addr)
{
	struct user_symbol symbol;

	user_symbol_of_code(code_map, addr, &symbol);
	if (symbol.name)
		os_strscpy(text, symbol.name, size);
	else if (symbol.image)
		os_snprintf(text, size, "%s+%#lx", report_basename(user_symbol_path(symbol.image)),
			    symbol.offset);
	else
		os_snprintf(text, size, "%#lx", addr);
	report_make_printable(text);
	return strlen(text);
}

const char *user_symbol_frame(char text[USER_FRAME_BYTES], u32 code_map, u64 addr)
{
	user_symbol_print(text, USER_FRAME_BYTES, code_map, addr);
	report_make_foldable(text);
	return text;
}

void user_symbols_swap(struct user_symbols *symbols)
{
	if (user_symbol_source)
		user_symbol_source->swap(symbols);
}

void user_symbols_free(struct user_symbols *symbols)
{
	if (user_symbol_source)
		user_symbol_source->free(symbols);
}
