// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tells stack walks where the caller's frame is, for user code that keeps no frame pointer. Such
 * code, like Debian's libc, comes with call frame information in .eh_frame: see call_frames.h. When
 * code of a file is mapped for the first time, its .eh_frame is copied. So a walk can find and read
 * the entry of an address in memory that cannot fault.
 *
 * The linker's index of the entries, .eh_frame_hdr, is copied with them. Static programs at fixed
 * addresses have none: their entries are put into lists, by address. Programs in Go have a table of
 * another format: see go_frames.h.
 *
 * Reading an entry takes about a thousand instructions, so each CPU keeps the rules of addresses
 * that it has met in a cache. The steps of a walk are bounded. Entries beyond that are unknown to
 * this walk, so its chain may end early; the next walk finds more in the cache.
 *
 * The copies are never freed, because an image is not either: see images.c. All copies together
 * take a part of memory at most. A file without a copy, or with information that no rule can hold,
 * is walked by frame pointer.
 *
 * A user may have made the file, so no field is trusted, and work and memory are bounded. A wrong
 * file makes wrong chains of programs that map it, and no other harm.
 */

#include "call_frames.h"
#include "elf.h"
#include "go_frames.h"
#include "images.h"

#include "../words.h"

#define MAX_FRAME_BYTES (8u << 20)  /* of .eh_frame, with what follows in its segment */
#define MAX_CODE_BYTES	(64u << 20) /* of a file without .eh_frame_hdr */
#define MAX_CODE	4	    /* executable segments */
#define MAX_HEADERS	64
#define MEMORY_SHARE	64 /* of the machine's memory, for all copies */

/* A function in .eh_frame_hdr: where its code and its entry are, from .eh_frame_hdr on. */
struct indexed {
	s32 begin, entry;
};

/* The copy of a file's information. It has an index, or lists, or Go's table. */
struct unwind_table {
	u64 bytes; /* of the table and what it points to */
	u64 base;  /* the lowest address of the file */
	u32 nr_code;
	struct program_header code[MAX_CODE];
	struct call_frames frames;
	u64 index_base;	       /* the address of .eh_frame_hdr */
	struct indexed *index; /* sorted by the linker */
	u32 nr_indexed;
	struct frame_lists lists;
	struct go_frames go;
};

static struct unwind_table *tables[MAX_IMAGES];
static struct unwind_table no_table; /* of a file without information */
static u64 nr_bytes;		     /* of all copies */
static bool is_on = true;

static int set_unwind(const char *value)
{
	return words_on_off(value, &is_on);
}
/* Whether call chains go on through user code without frame pointers: on by default. */
OS_BOOT_PARAM(profile_unwind, "profile.unwind", "on|off", set_unwind);

/* The places of a file's parts. */
struct sections {
	u32 nr_code;
	u64 base, code_end; /* the lowest address, and the end of code */
	struct program_header code[MAX_CODE];
	u64 frames, frames_offset, frames_bytes; /* .eh_frame, or more, or Go's; 0 bytes: none */
	u64 index, index_offset;		 /* .eh_frame_hdr; in the file, what it lists */
	u32 nr_indexed, nr_lists, nr_listed;
	struct go_frames go;
};

/* Finds a section of read-only data by its name. `bytes` includes the name's end. */
static bool find_section(os_file_t *file, const struct elf_header *header, const char *wanted,
			 size_t bytes, struct section_header *section)
{
	struct section_header names;
	char name[16];

	if (!elf_read(file, &names, sizeof(names),
		      header->shoff + header->shstrndx * sizeof(*section)))
		return false;
	for (u32 i = 0; i < pf_min((u32)header->shnum, (u32)MAX_HEADERS); i++) {
		if (elf_read(file, section, sizeof(*section),
			     header->shoff + i * sizeof(*section)) &&
		    section->flags == SHF_ALLOC &&
		    elf_read(file, name, bytes, names.offset + section->name) &&
		    !memcmp(name, wanted, bytes))
			return true;
	}
	return false;
}

/* Finds .eh_frame, for lists, or what Go has instead. */
static void find_by_name(os_file_t *file, const struct elf_header *header,
			 struct sections *sections)
{
	static const char frames[] = ".eh_frame", go[] = ".gopclntab";
	struct section_header section;

	if (find_section(file, header, frames, sizeof(frames), &section)) {
		sections->frames = section.addr;
		sections->frames_offset = section.offset;
		sections->frames_bytes = section.size;
		sections->nr_listed = section.size / MIN_FUNCTION_BYTES;
		sections->nr_lists =
			pf_min(sections->code_end - sections->base, MAX_CODE_BYTES + 0ull) /
				PF_BIT(LOG2_LIST_BYTES) +
			1;
	} else if (find_section(file, header, go, sizeof(go), &section)) {
		sections->frames_offset = go_frames_begin(&sections->go, file, &section);
		sections->frames_bytes = sections->go.nr_bytes;
	}
}

/* Finds the loaded segment of an address. */
static bool find_segment(os_file_t *file, const struct elf_header *header, u64 addr,
			 struct program_header *segment)
{
	for (u32 i = 0; i < pf_min((u32)header->phnum, (u32)MAX_HEADERS); i++) {
		if (elf_read(file, segment, sizeof(*segment),
			     header->phoff + i * sizeof(*segment)) &&
		    segment->type == PT_LOAD && addr - segment->vaddr < segment->filesz)
			return true;
	}
	return false;
}

/* Finds .eh_frame by .eh_frame_hdr, whose segment is `index`. It ends with its segment at last. */
static void find_by_index(os_file_t *file, const struct elf_header *header,
			  const struct program_header *index, struct sections *sections)
{
	struct eh_frame_hdr head;
	struct program_header segment;
	u64 frames, distance;

	if (index->filesz < sizeof(head) || !elf_read(file, &head, sizeof(head), index->offset) ||
	    memcmp(&head, EH_FRAME_ENCODINGS, 4))
		return;
	frames = index->vaddr + __builtin_offsetof(struct eh_frame_hdr, frame) + head.frame;
	if (!find_segment(file, header, frames, &segment))
		return;
	distance = frames - segment.vaddr;
	sections->frames = frames;
	sections->frames_offset = segment.offset + distance;
	sections->frames_bytes = pf_min(segment.filesz - distance, MAX_FRAME_BYTES + 0ull);
	sections->index = index->vaddr;
	sections->index_offset = index->offset + sizeof(head);
	sections->nr_indexed =
		pf_min(pf_min(index->filesz, MAX_FRAME_BYTES + 0ull) / sizeof(struct indexed),
		       head.nr + 0ull);
}

static bool read_sections(os_file_t *file, struct sections *sections)
{
	struct program_header segment, index = { 0 };
	struct elf_header header;

	*sections = (struct sections){ .base = ~0ull };
	if (!elf_read_header(file, &header))
		return false;
	for (u32 i = 0; i < pf_min((u32)header.phnum, (u32)MAX_HEADERS); i++) {
		if (!elf_read(file, &segment, sizeof(segment), header.phoff + i * sizeof(segment)))
			return false;
		if (segment.type == PT_GNU_EH_FRAME)
			index = segment;
		if (segment.type != PT_LOAD)
			continue;
		sections->base = pf_min(sections->base, segment.vaddr);
		if (segment.flags & PF_X && sections->nr_code < MAX_CODE) {
			sections->code[sections->nr_code++] = segment;
			sections->code_end = segment.vaddr + segment.filesz;
		}
	}
	find_by_index(file, &header, &index, sections);
	if (!sections->frames_bytes)
		find_by_name(file, &header, sections);
	return sections->nr_code && sections->frames_bytes &&
	       sections->frames_bytes <= MAX_FRAME_BYTES;
}

/* Returns the room that a file's index or lists need. */
static u64 index_bytes(const struct sections *sections)
{
	return sections->nr_indexed * sizeof(struct indexed) + sections->nr_lists * sizeof(u32) +
	       sections->nr_listed * sizeof(struct listed_frame);
}

/* Copies the information of a file into a new table, whose memory is as large as needed. */
static bool read_table(struct unwind_table *table, const struct sections *from, os_file_t *file)
{
	u8 *frames = (u8 *)(table + 1) + index_bytes(from);

	*table = (struct unwind_table){
		.bytes = table->bytes,
		.base = from->base,
		.nr_code = from->nr_code,
		.frames = { frames, from->frames_bytes, from->frames },
		.index_base = from->index,
		.nr_indexed = from->nr_indexed,
		.lists = { from->base, from->nr_lists },
		.go = from->go,
	};
	memcpy(table->code, from->code, sizeof(table->code));
	if (!elf_read(file, frames, from->frames_bytes, from->frames_offset))
		return false;
	table->go.bytes = frames;
	if (table->go.nr)
		return true;
	table->index = (struct indexed *)(table + 1);
	if (table->nr_indexed)
		return elf_read(file, table->index, index_bytes(from), from->index_offset);
	table->lists.entries = (struct listed_frame *)(table + 1);
	table->lists.first = (u32 *)(table->lists.entries + from->nr_listed);
	memset(table->lists.first, 0, from->nr_lists * sizeof(u32));
	call_frames_list(&table->frames, &table->lists);
	return true;
}

static void free_table(struct unwind_table *table)
{
	if (table == &no_table)
		return;
	__atomic_sub_fetch(&nr_bytes, table->bytes, __ATOMIC_RELAXED);
	os_free(table);
}

/* Makes the table of a file. Returns NULL without memory. */
static struct unwind_table *make_table(os_file_t *file)
{
	struct unwind_table *table;
	struct sections sections;
	u64 bytes;

	if (!read_sections(file, &sections))
		return &no_table;
	bytes = sizeof(*table) + index_bytes(&sections) + sections.frames_bytes;
	if (pf_read_once(nr_bytes) + bytes > os_memory_bytes() / MEMORY_SHARE)
		return NULL;
	table = os_alloc(bytes);
	if (!table)
		return NULL;
	__atomic_fetch_add(&nr_bytes, bytes, __ATOMIC_RELAXED);
	table->bytes = bytes;
	if (read_table(table, &sections, file))
		return table;
	free_table(table);
	return NULL;
}

bool profile_user_unwind_is_on(void)
{
	return is_on;
}

void image_unwind_add(u32 image, os_file_t *file)
{
	struct unwind_table *table, *none = NULL;

	if (!is_on || !image || pf_read_once(tables[image - 1]))
		return;
	table = make_table(file);
	if (!table)
		return;
	/* Pairs with the acquire in find_place(): who sees the table sees what it points to. */
	if (!__atomic_compare_exchange_n(&tables[image - 1], &none, table, false, __ATOMIC_RELEASE,
					 __ATOMIC_RELAXED))
		free_table(table); /* another CPU was faster */
}

/* Finds the area of an address, and the table of its file. */
static void find_place(struct profile_user_unwind_place *place, u64 addr)
{
	const struct code_map *map;

	place->table = NULL;
	place->start = addr;
	place->bytes = 0;
	for (u32 number = place->code_map; number; number = map->parent) {
		const struct unwind_table *table;

		map = code_map_get(number);
		if (addr - map->start >= map->end - map->start)
			continue;
		place->start = map->start;
		place->bytes = map->end - map->start;
		place->image = map->image;
		table = map->image ? pf_load_acquire(&tables[map->image - 1]) : NULL;
		for (u32 i = 0; table && i < table->nr_code; i++) {
			const struct program_header *code = &table->code[i];

			if (code->offset < map->file_offset + place->bytes &&
			    map->file_offset < code->offset + code->filesz) {
				place->table = table;
				place->to_file = map->file_offset - map->start - code->offset +
						 code->vaddr - table->base;
			}
		}
		return;
	}
}

/* Finds an entry in the index: that of the last function that begins at or before the address. */
static u32 find_indexed(const struct unwind_table *table, u64 addr)
{
	s64 at = addr - table->index_base;
	u32 low = 0, high = table->nr_indexed;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (table->index[middle].begin <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? table->index_base + table->index[low - 1].entry - table->frames.vaddr :
		     NO_CALL_FRAME;
}

/*
 * A cache of rules. A slot is one word, so that an NMI cannot tear it: above the rule in 32 bits is
 * a tag of the image and the address. Most rules are for a whole block of code. The others are for
 * an instruction.
 */
#define LOG2_NR_SLOTS 10
#define LOG2_BLOCK    6
#define AT_BITS	      30 /* of an address, from the lowest one of its file on */

static OS_DEFINE_PER_CPU(u64[1 << LOG2_NR_SLOTS], rules);

/* Returns the number of an instruction, or of a block. */
static u64 number_of_pc(u64 at)
{
	return at << 1;
}

static u64 number_of_block(u64 at)
{
	return at >> LOG2_BLOCK << 1 | 1;
}

static u64 *slot_of(u64 number)
{
	return os_this_cpu_ptr(&os_local(rules)[number % PF_BIT(LOG2_NR_SLOTS)]);
}

static u64 tag_of(u32 image, u64 number)
{
	return (u64)image << (AT_BITS + 1 - LOG2_NR_SLOTS) | number >> LOG2_NR_SLOTS;
}

PF_BUILD_BUG_ON((u64)MAX_IMAGES << (AT_BITS + 1 - LOG2_NR_SLOTS) >> 32);

PF_BUILD_BUG_ON(sizeof(struct profile_user_unwind) != sizeof(u32));

static void put_rule(u32 image, u64 number, struct profile_user_unwind rule)
{
	u32 word;

	memcpy(&word, &rule, sizeof(word));
	pf_write_once(*slot_of(number), tag_of(image, number) << 32 | word);
}

static pf_always_inline bool get_rule(u32 image, u64 number, struct profile_user_unwind *rule)
{
	u64 slot = pf_read_once(*slot_of(number));
	u32 word = slot;

	__builtin_memcpy(rule, &word, sizeof(word));
	return slot >> 32 == tag_of(image, number);
}

/* Reads the rule of an address, and puts it into the cache. */
static pf_noinline struct profile_user_unwind read_rule(struct profile_user_unwind_place *place,
							u64 at)
{
	const struct unwind_table *table = place->table;
	u64 addr = table->base + at, block = addr - at % PF_BIT(LOG2_BLOCK);
	struct call_frames_rule found;
	bool is_found;

	if (table->go.nr)
		is_found = go_frames_rule(&table->go, addr, &place->steps, &found);
	else
		is_found = call_frames_rule(
			&table->frames,
			table->nr_indexed ? find_indexed(table, addr) :
					    call_frames_find(&table->frames, &table->lists, addr),
			addr, &place->steps, &found);
	if (!is_found)
		return found.rule;
	if (found.begin <= block && block + PF_BIT(LOG2_BLOCK) <= found.end)
		put_rule(place->image, number_of_block(at), found.rule);
	else
		put_rule(place->image, number_of_pc(at), found.rule);
	return found.rule;
}

struct profile_user_unwind profile_user_unwind(struct profile_user_unwind_place *place, u64 addr)
{
	struct profile_user_unwind rule;
	u64 at;

	if (addr - place->start >= place->bytes)
		find_place(place, addr);
	at = addr + place->to_file;
	if (!place->table || at >> AT_BITS)
		return (struct profile_user_unwind){ .kind = PROFILE_UNWIND_UNKNOWN };
	if (get_rule(place->image, number_of_block(at), &rule) ||
	    get_rule(place->image, number_of_pc(at), &rule))
		return rule;
	return read_rule(place, at);
}
