// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the functions in the call chains of samples and waits, for exports: where each begins, and
 * its name. So a host without the files that ran, or without the kernel's, has names, too. It
 * visits all chains, looks up each address (some 300 instructions), and keeps a row for each
 * function.
 */

#include "profiler.h"

#if (defined(CONFIG_PROFILE_EXPORT) && defined(CONFIG_PROFILE_HEATMAP)) || defined(UNIT_TEST)

#include "rows.h"
#include "table.h"
#include "user_symbols.h"

#ifdef CONFIG_PROFILE_IMAGES
#define MAX_FUNCTIONS 16384 /* 0.7 MiB, while they are printed */
#else
#define MAX_FUNCTIONS 4096 /* of the kernel */
#endif

struct function_key {
	u64 image; /* 0: the kernel */
	u64 start; /* as an address in the ELF file */
};

struct function {
	struct function_key key;
	u64 offset;	  /* of the start, in the file */
	u64 bytes;	  /* at least */
	const char *name; /* of user code; NULL: it has none */
};

/* There is one reader at a time: these are what it has found. */
static struct function *functions;
static u16 *slots;
static u32 nr_functions;
static u64 nr_lost; /* addresses in functions without room */

static struct function *row_of_function(u64 image, u64 start, u64 bytes)
{
	const struct rows rows = {
		.rows = functions,
		.slots = slots,
		.nr = &nr_functions,
		.row_bytes = sizeof(struct function),
		.key_words = sizeof(struct function_key) / sizeof(u64),
		.max = MAX_FUNCTIONS,
	};
	struct function *function = rows_find(&rows, &(struct function_key){ image, start });

	nr_lost += !function;
	if (function)
		function->bytes = pf_max(function->bytes, bytes);
	return function;
}

static void add_user(u32 code_map, u64 addr)
{
	struct user_symbol symbol;
	struct function *function;

	user_symbol_of_code(code_map, addr, &symbol);
	if (!symbol.image || !symbol.is_known)
		return;
	function = row_of_function(symbol.image, symbol.start,
				   pf_max(symbol.bytes, symbol.distance + 1));
	if (!function)
		return;
	function->offset = symbol.offset - symbol.distance;
	function->name = symbol.name;
}

static void add_kernel(u64 addr)
{
	char name[OS_SYMBOL_BYTES];
	u64 start;

	if (os_symbol_lookup(addr, &start, name, sizeof(name)))
		row_of_function(0, start, addr - start + 1);
}

/* Looks up the same addresses as readers: a return address belongs to the call before it. */
static void add_chain(const struct report_chain *chain)
{
	for (u32 i = 0; i < chain->nr_kernel; i++)
		add_kernel(chain->kernel[i] - (i || !chain->is_sample));
	for (u32 i = 0; i < chain->nr_user; i++)
		add_user(chain->code_map, chain->user[i] - (i != 0));
}

enum {
	IMAGE,
	ADDRESS,
	OFFSET,
	BYTES,
	FUNCTION,
	NR_COLUMNS,
};

static const struct column columns[NR_COLUMNS] = {
	[IMAGE] = { NULL, "image", COLUMN_COUNT },
	[ADDRESS] = { NULL, "address", COLUMN_ADDRESS },
	[OFFSET] = { NULL, "offset", COLUMN_ADDRESS },
	[BYTES] = { NULL, "bytes", COLUMN_COUNT },
	[FUNCTION] = { NULL, "function", COLUMN_TEXT },
};

static void print_function(const struct function *function)
{
	const char *name = function->name;
	char kernel_name[OS_SYMBOL_BYTES];
	u64 start;

	if (!function->key.image &&
	    os_symbol_lookup(function->key.start, &start, kernel_name, sizeof(kernel_name)))
		name = kernel_name;
	table_row((struct cell[NR_COLUMNS]){
		[IMAGE] = cell_nr(function->key.image),
		[ADDRESS] = cell_nr(function->key.start),
		[OFFSET] = cell_nr(function->offset),
		[BYTES] = cell_nr(function->bytes),
		[FUNCTION] = name ? cell_text(name) : cell_dash(),
	});
}

static void print_functions(const void *unused)
{
	static const struct table table = TABLE(columns);

	nr_functions = 0;
	nr_lost = 0;
	/* In a panic there are no names, and no memory. */
	functions = os_panicking() ? NULL : os_alloc(MAX_FUNCTIONS * sizeof(*functions));
	slots = os_panicking() ? NULL : os_zalloc(ROWS_SLOTS(MAX_FUNCTIONS) * sizeof(*slots));
	table_begin(&table, "Symbols of stacks");
	if (functions && slots)
		report_visit_chains(add_chain);
	for (u32 i = 0; i < nr_functions; i++)
		print_function(&functions[i]);
	table_end_without_total();
	if (!os_panicking() && !(functions && slots))
		table_note("no memory for the symbols of stacks");
	if (nr_lost)
		table_note("%lu addresses in functions without room", nr_lost);
	os_free(functions);
	os_free(slots);
}

static const struct profiler_file files[] = {
	{ "profile/symbols.json", .print = print_functions, .is_json = true },
	{ 0 },
};

/* Printed after the images, which its rows refer to. */
PROFILER(stack_symbols) = {
	.name = "stack_symbols",
	.place = 39,
	.files = files,
};

#endif
