// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds the names of user addresses. At the first address of a file, a table of its functions and
 * objects is made in one pass: the symbols of .symtab, or else of .dynsym. .eh_frame_hdr tells
 * where functions without a symbol begin (Linux Standard Base, Core, 10.6.2), and so do sections,
 * such as .plt with its stubs. The tables are freed at the end of the reader's turn, unless the
 * reader keeps them for its next one.
 *
 * The file is opened by its path. It must still have the size and the build id that it had when it
 * was mapped, and the process that prints must be allowed to read it; otherwise there are no names.
 * A user may have made the file, so no field is trusted, and work and memory are bounded.
 */

#include "../user_symbols.h"
#include "elf.h"
#include "images.h"

#define MAX_TABLES   64 /* files of a reader */
#define MAX_SEGMENTS 16
#define MAX_SECTIONS 1024
#define MAX_SYMBOLS  (1u << 18)
#define MAX_NAMES    (16u << 20) /* bytes */
#define MEMORY_SHARE 32		 /* of the machine's memory, for all tables of a reader */
#define NR_OVERLAPS  8		 /* symbols before an address that are looked at */

struct symbol {
	u64 start;
	u32 bytes; /* 0: up to the next symbol */
	u32 name;  /* in names; 0: a function without a name */
};

struct symbol_table {
	struct symbol_table *next;
	u32 image;
	u32 nr_segments, nr_symbols;
	struct program_header segments[MAX_SEGMENTS];
	struct symbol *symbols; /* sorted; of those with one start, the best is last */
	char *names;
	u64 library; /* where the code of the C library begins; ~0: nowhere */
};

static struct user_symbols in_use; /* of the reader that prints now */

static void *alloc_symbols(u64 bytes)
{
	if (in_use.nr_bytes + bytes > os_memory_bytes() / MEMORY_SHARE)
		return NULL;
	in_use.nr_bytes += bytes;
	return os_alloc(bytes);
}

/* Returns the segment of a file offset, or of an address in the ELF file, or NULL. */
static const struct program_header *segment_of(const struct symbol_table *table, u64 at,
					       bool is_offset)
{
	for (u32 i = 0; i < table->nr_segments; i++) {
		const struct program_header *segment = &table->segments[i];

		if (is_offset ? at - segment->offset < segment->filesz :
				at - segment->vaddr < segment->memsz)
			return segment;
	}
	return NULL;
}

static void add(struct symbol_table *table, u64 start, u64 bytes, u32 name)
{
	table->symbols[table->nr_symbols++] = (struct symbol){
		.start = start,
		.bytes = pf_min(bytes, ~0u + 0ull),
		.name = name,
	};
}

static bool is_wanted(const struct symbol_table *table, const struct elf_symbol *symbol,
		      u32 names_bytes)
{
	u32 type = symbol->info & 0xf;
	char first;

	if (symbol->section == SHN_UNDEF || symbol->section >= SHN_LORESERVE ||
	    symbol->name >= names_bytes || !symbol->name)
		return false;
	first = table->names[symbol->name];
	/* Labels of compilers and assemblers have no type, and begin with one of these. */
	return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_OBJECT ||
	       (type == STT_NOTYPE && first != '$' && first != '.' && first);
}

/* Adds the symbols of a section. */
static void add_symbols(struct symbol_table *table, os_file_t *file,
			const struct section_header *section, u32 nr, u32 names_bytes)
{
	static struct elf_symbol chunk[128]; /* of the one reader */

	for (u32 i = 0; i < nr; i += PF_ARRAY_SIZE(chunk)) {
		u32 n = pf_min(nr - i, (u32)PF_ARRAY_SIZE(chunk));

		if (!elf_read(file, chunk, n * sizeof(chunk[0]),
			      section->offset + i * sizeof(chunk[0])))
			return;
		for (u32 k = 0; k < n; k++) {
			if (is_wanted(table, &chunk[k], names_bytes))
				add(table, chunk[k].value, chunk[k].size, chunk[k].name);
		}
	}
}

/* Returns the number of functions in .eh_frame_hdr; 0: there is none, or in another encoding. */
static u32 count_frames(os_file_t *file, const struct program_header *frames)
{
	struct eh_frame_hdr header;

	if (!frames->filesz || !elf_read(file, &header, sizeof(header), frames->offset) ||
	    memcmp(&header, EH_FRAME_ENCODINGS, 4))
		return 0;
	return pf_min(header.nr, MAX_SYMBOLS);
}

/* Adds the functions of .eh_frame_hdr, which have neither size nor name there. */
static void add_frames(struct symbol_table *table, os_file_t *file,
		       const struct program_header *frames, u32 nr)
{
	static struct {
		s32 start, frame;
	} chunk[128];

	for (u32 i = 0; i < nr; i += PF_ARRAY_SIZE(chunk)) {
		u32 n = pf_min(nr - i, (u32)PF_ARRAY_SIZE(chunk));

		if (!elf_read(file, chunk, n * sizeof(chunk[0]),
			      frames->offset + sizeof(struct eh_frame_hdr) + i * sizeof(chunk[0])))
			return;
		for (u32 k = 0; k < n; k++)
			add(table, frames->vaddr + chunk[k].start, 0, 0);
	}
}

/* Adds the starts of sections with code. */
static void add_sections(struct symbol_table *table, os_file_t *file,
			 const struct elf_header *header, u32 nr)
{
	struct section_header section;

	for (u32 i = 0; i < nr; i++) {
		if (!elf_read(file, &section, sizeof(section), header->shoff + i * sizeof(section)))
			return;
		if (section.flags & SHF_EXECINSTR)
			add(table, section.addr, 0, 0);
	}
}

static u32 nr_underscores(const char *name)
{
	u32 nr = 0;

	while (name[nr] == '_')
		nr++;
	return nr;
}

static const char *sort_names;

/* Sorts by start. Of several names for one function, the one with least underscores is last. */
static int compare_symbols(const void *a_, const void *b_)
{
	const struct symbol *a = a_, *b = b_;
	u32 underscores_a, underscores_b;

	if (a->start != b->start)
		return compare_u64(a->start, b->start);
	if (!a->name || !b->name)
		return !!a->name - !!b->name;
	if (!a->bytes != !b->bytes)
		return a->bytes ? 1 : -1;
	underscores_a = nr_underscores(sort_names + a->name);
	underscores_b = nr_underscores(sort_names + b->name);
	return underscores_a != underscores_b ? compare_u64(underscores_b, underscores_a) :
						compare_u64(b->name, a->name);
}

/* Finds the table of symbols, and that of their names. Returns false if the file has none. */
static bool find_sections(os_file_t *file, const struct elf_header *header,
			  struct section_header *symbols, struct section_header *names)
{
	struct section_header section;
	u32 nr = pf_min((u32)header->shnum, (u32)MAX_SECTIONS);

	symbols->type = 0;
	for (u32 i = 0; i < nr && symbols->type != SHT_SYMTAB; i++) {
		if (!elf_read(file, &section, sizeof(section), header->shoff + i * sizeof(section)))
			break;
		if (section.type == SHT_SYMTAB || section.type == SHT_DYNSYM)
			*symbols = section;
	}
	return symbols->type && symbols->link < nr &&
	       elf_read(file, names, sizeof(*names),
			header->shoff + symbols->link * sizeof(*names)) &&
	       names->size && names->size <= MAX_NAMES;
}

/* Returns whether a text begins with what compilers append to the names of copies and parts. */
static bool is_suffix(const char *text)
{
	static const char *const words[] = { ".constprop.", ".isra.", ".part.", ".lto_priv.",
					     ".llvm." };

	for (u32 i = 0; i < PF_ARRAY_SIZE(words); i++) {
		size_t len = strlen(words[i]);

		if (!strncmp(text, words[i], len))
			return text[len] >= '0' && text[len] <= '9';
	}
	return false;
}

/*
 * Reads the names, and makes them printable. Blanks would look like columns. What compilers append
 * is cut off: send.constprop.0 is a name that no source has.
 */
static bool read_names(struct symbol_table *table, os_file_t *file,
		       const struct section_header *names)
{
	table->names = alloc_symbols(names->size + 1);
	if (!table->names || !elf_read(file, table->names, names->size, names->offset))
		return false;
	table->names[names->size] = '\0';
	for (char *c = table->names; c < table->names + names->size; c++) {
		if (*c && (*c <= ' ' || *c > '~'))
			*c = '?';
		else if (*c == '.' && c > table->names && c[-1] && is_suffix(c))
			memset(c, 0, strlen(c));
	}
	return true;
}

/* Reads the segments. Sets *frames to that of .eh_frame_hdr. */
static bool read_segments(struct symbol_table *table, os_file_t *file,
			  const struct elf_header *header, struct program_header *frames)
{
	struct program_header segment;

	for (u32 i = 0; i < header->phnum && table->nr_segments < MAX_SEGMENTS; i++) {
		if (!elf_read(file, &segment, sizeof(segment), header->phoff + i * sizeof(segment)))
			return false;
		if (segment.type == PT_LOAD)
			table->segments[table->nr_segments++] = segment;
		else if (segment.type == PT_GNU_EH_FRAME)
			*frames = segment;
	}
	return table->nr_segments;
}

/*
 * Returns where the C library's code begins in a file that is linked with it statically. Linkers
 * put the program's own functions behind frame_dummy() of the start files, and libraries behind
 * those. A name that C reserves, with two underscores, is the library's.
 */
static u64 find_library(const struct symbol_table *table)
{
	bool is_static = false, is_behind = false;
	u64 first = ~0ull;

	for (u32 i = 0; i < table->nr_symbols; i++) {
		const struct symbol *symbol = &table->symbols[i];
		const char *name = symbol->name ? table->names + symbol->name : "";

		if (is_behind && first == ~0ull && nr_underscores(name) == 2)
			first = symbol->start;
		is_behind |= !strcmp(name, "frame_dummy");
		is_static |= !strcmp(name, "__libc_start_main");
	}
	return is_static ? first : ~0ull;
}

static bool is_library_path(const char *path)
{
	return !strncmp(path, "/lib", 4) || !strncmp(path, "/usr/lib", 8);
}

static void read_table(struct symbol_table *table, os_file_t *file)
{
	struct section_header symbols, names;
	struct program_header frames = { 0 };
	struct elf_header header;
	u32 nr_symbols = 0, nr_frames, nr_sections;

	if (!elf_read_header(file, &header) || !read_segments(table, file, &header, &frames))
		return;
	if (find_sections(file, &header, &symbols, &names) && read_names(table, file, &names))
		nr_symbols = pf_min(symbols.size / sizeof(struct elf_symbol), MAX_SYMBOLS + 0ull);
	nr_frames = count_frames(file, &frames);
	nr_sections = pf_min((u32)header.shnum, (u32)MAX_SECTIONS);
	table->symbols =
		alloc_symbols((nr_symbols + nr_frames + nr_sections) * sizeof(struct symbol));
	if (!table->symbols)
		return;
	add_symbols(table, file, &symbols, nr_symbols, names.size);
	add_frames(table, file, &frames, nr_frames);
	add_sections(table, file, &header, nr_sections);
	sort_names = table->names;
	os_sort(table->symbols, table->nr_symbols, sizeof(struct symbol), compare_symbols);
	table->library = find_library(table);
}

/* Returns whether the file is still the one that was mapped. */
static bool is_same(os_file_t *file, const struct image *image)
{
	u8 build_id[IMAGE_BUILD_ID_BYTES];

	return os_file_bytes(file) == image->bytes &&
	       image_read_build_id(file, build_id) == image->build_id_bytes &&
	       !memcmp(build_id, image->build_id, sizeof(build_id)) &&
	       (image->build_id_bytes || os_file_changed_ns(file) == image->changed_ns);
}

/* Returns the table of a file, which may be empty, or NULL. */
static const struct symbol_table *table_of(u32 image)
{
	struct symbol_table *table;
	os_file_t *file;

	if (os_panicking())
		return NULL; /* a table may be half read */
	for (table = in_use.tables; table; table = table->next) {
		if (table->image == image)
			return table;
	}
	if (in_use.nr == MAX_TABLES)
		return NULL;
	table = alloc_symbols(sizeof(*table));
	if (!table)
		return NULL;
	memset(table, 0, sizeof(*table));
	table->library = ~0ull;
	table->image = image;
	table->next = in_use.tables;
	in_use.tables = table;
	in_use.nr++;
	file = os_file_open(image_get(image)->path);
	if (file) {
		if (is_same(file, image_get(image)))
			read_table(table, file);
		os_file_close(file);
	}
	return table;
}

static void free_tables(struct user_symbols *symbols)
{
	struct symbol_table *table;

	while ((table = symbols->tables)) {
		symbols->tables = table->next;
		os_free(table->symbols);
		os_free(table->names);
		os_free(table);
	}
	*symbols = (struct user_symbols){ 0 };
}

static void swap_tables(struct user_symbols *symbols)
{
	struct user_symbols own = *symbols;

	*symbols = in_use;
	in_use = own;
}

void image_symbols_free(void)
{
	free_tables(&in_use);
}

/*
 * Returns the symbol that contains an address in the ELF file, or NULL. With `exact`, its size must
 * say so. Otherwise a symbol without a size reaches to the next one.
 */
static const struct symbol *find_symbol(const struct symbol_table *table, u64 at, bool exact)
{
	u32 low = 0, high = table->nr_symbols;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (table->symbols[middle].start <= at)
			low = middle + 1;
		else
			high = middle;
	}
	for (u32 i = low; i > 0 && i + NR_OVERLAPS > low; i--) {
		const struct symbol *symbol = &table->symbols[i - 1];

		if (symbol->name && at - symbol->start < symbol->bytes)
			return symbol;
	}
	return !exact && low && !table->symbols[low - 1].bytes ? &table->symbols[low - 1] : NULL;
}

static void set(struct user_symbol *to, const struct symbol_table *table,
		const struct symbol *symbol, u64 at)
{
	to->is_known = symbol;
	to->start = symbol ? symbol->start : at;
	to->distance = at - to->start;
	to->bytes = symbol ? symbol->bytes : 0;
	if (symbol && symbol->name)
		to->name = table->names + symbol->name;
}

static const char *image_path(u32 image)
{
	return image_get(image)->path;
}

static void find_code(u32 code_map, u64 addr, struct user_symbol *symbol)
{
	const struct program_header *segment;
	const struct symbol_table *table;
	const struct code_map *map = NULL;

	for (u32 number = code_map; number; number = map->parent) {
		map = code_map_get(number);
		if (addr - map->start < map->end - map->start)
			break;
		if (!map->parent)
			return;
	}
	if (!map || !map->image)
		return;
	symbol->image = map->image;
	symbol->offset = addr - map->start + map->file_offset;
	symbol->in_library = is_library_path(image_path(map->image));
	table = table_of(map->image);
	segment = table ? segment_of(table, symbol->offset, true) : NULL;
	if (segment) {
		u64 at = symbol->offset - segment->offset + segment->vaddr;

		set(symbol, table, find_symbol(table, at, false), at);
		symbol->in_library |= at >= table->library;
	}
}

static void find_data(u32 code_map, u64 addr, struct user_symbol *symbol)
{
	for (u32 number = code_map; number; number = code_map_get(number)->parent) {
		const struct code_map *map = code_map_get(number);
		const struct symbol_table *table = map->image ? table_of(map->image) : NULL;
		const struct program_header *code, *data;
		u64 at;

		code = table ? segment_of(table, map->file_offset, true) : NULL;
		if (!code)
			continue;
		/* All segments of a file are moved by the same distance. */
		at = addr - map->start + map->file_offset - code->offset + code->vaddr;
		data = segment_of(table, at, false);
		if (!data || data->flags & PF_X)
			continue;
		symbol->image = map->image;
		set(symbol, table, find_symbol(table, at, true), at);
		return;
	}
}

static const struct user_symbol_source source = {
	.find_code = find_code,
	.find_data = find_data,
	.path = image_path,
	.swap = swap_tables,
	.free = free_tables,
};

void image_symbols_init(void)
{
	user_symbol_source = &source;
}
