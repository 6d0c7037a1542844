// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tells stack walks where the caller's frame is, for user code that keeps no frame pointer. Such
 * code, like Debian's libc, comes with call frame information in .eh_frame, a program for each
 * function that describes its frame at each instruction (DWARF 5, 6.4; Linux Standard Base, Core,
 * 10.6). When the first process maps a file's code, the programs are run once, and each change of
 * a frame becomes a row of a sorted table. A walk finds the row of an address by bisection, in
 * memory that cannot fault.
 *
 * A row has 8 bytes; Debian's libc has 24,000 of them. Tables are never freed, because an image is
 * not either: see images.c. All tables together take a part of memory at most. A file without a
 * table, or with information that no row can hold, is walked by frame pointer.
 *
 * A user may have made the file, so no field is trusted, and work and memory are bounded. A wrong
 * table makes wrong chains of programs that map the file, and no other harm. The table of an image
 * is that of its build id: a file without one could be changed unnoticed, and gets no table.
 */

#include "elf.h"
#include "images.h"

#include "../words.h"

#include <lego/user_unwind.h>

#define MAX_FRAME_BYTES (8u << 20) /* of .eh_frame, with what follows in its segment */
#define MAX_FUNCTIONS	(1u << 17)
#define MIN_ENTRY_BYTES 16 /* of a function: length, CIE, and two pointers */
#define MAX_ROWS	(1u << 19)
#define MAX_CODE	4 /* executable segments */
#define MAX_HEADERS	64
#define MAX_STATES	8  /* remembered by a program */
#define MEMORY_SHARE	64 /* of the machine's memory, for all tables */

/* From `start` on, an offset from the table's first address, the rule applies: see pack(). */
struct row {
	u32 start, rule;
};

struct unwind_table {
	u64 base; /* the lowest address of the file */
	u32 nr_code, nr_rows;
	struct program_header code[MAX_CODE];
	struct row rows[];
};

static struct unwind_table *tables[MAX_IMAGES];
static u64 nr_bytes; /* of all tables */
static bool is_on;

static int set_unwind(const char *value)
{
	return words_on_off(value, &is_on);
}
/*
 * Follow call chains through user code without frame pointers, such as the C library. The first
 * execve of a static program takes 3 million instructions more.
 */
OS_BOOT_PARAM(profile_unwind, "profile.unwind", "on|off", set_unwind);

/* A rule in 32 bits. The two distances are in words. */
#define KIND_BITS 3
#define FP_BITS	  9
#define CFA_BITS  20

static u32 pack(enum user_unwind_kind kind, u64 cfa_words, u64 fp_words)
{
	if (cfa_words >> CFA_BITS || fp_words >> FP_BITS)
		return UNWIND_UNKNOWN;
	return kind | fp_words << KIND_BITS | cfa_words << (KIND_BITS + FP_BITS);
}

/* Reads bytes up to the end; after it, zeros. */
struct cursor {
	const u8 *at, *end;
	u64 vaddr; /* of `at` at the beginning */
	const u8 *begin;
};

static u8 take_byte(struct cursor *c)
{
	return c->at < c->end ? *c->at++ : 0;
}

/* Takes a number of n bytes, the lowest first. */
static u64 take_bytes(struct cursor *c, u32 n)
{
	u64 value = 0;

	for (u32 i = 0; i < n; i++)
		value |= (u64)take_byte(c) << 8 * i;
	return value;
}

static s64 take_leb(struct cursor *c, bool is_signed)
{
	u64 value = 0;
	u32 shift = 0;
	u8 byte;

	do {
		byte = take_byte(c);
		if (shift < 64)
			value |= (byte & 0x7full) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && byte & 0x40 && shift < 64)
		value |= ~0ull << shift;
	return value;
}

#define take_uleb(c) ((u64)take_leb(c, false))
#define take_sleb(c) take_leb(c, true)

static void skip(struct cursor *c, u64 n)
{
	c->at += pf_min(n, (u64)(c->end - c->at));
}

/* Takes the next n bytes as a cursor of their own. */
static struct cursor take_block(struct cursor *c, u64 n)
{
	struct cursor block = *c;

	skip(c, n);
	block.end = c->at;
	return block;
}

/* Encodings of pointers (LSB 10.5.1): the low half is the format, the high half the base. */
#define PE_OMIT	 0xff
#define PE_PCREL 0x10

static u32 pointer_bytes(u8 encoding)
{
	static const u8 bytes[16] = { 8, 0, 2, 4, 8, 0, 0, 0, 0, 0, 2, 4, 8 };

	return encoding == PE_OMIT ? 0 : bytes[encoding & 0xf];
}

/* Takes a pointer. Returns false if its encoding is not supported. */
static bool take_pointer(struct cursor *c, u8 encoding, u64 *value)
{
	u64 place = c->vaddr + (c->at - c->begin);
	u32 bytes = pointer_bytes(encoding);

	*value = take_bytes(c, bytes);
	if ((encoding & 0xf) == 0xb)
		*value = (u64)(s64)(s32)*value;
	if ((encoding & 0x70) == PE_PCREL)
		*value += place;
	return bytes && !(encoding & 0x80) && (encoding & 0x70) <= PE_PCREL;
}

/* A common information entry: what several functions share. */
struct cie {
	u64 code_align;
	s64 data_align;
	u8 pointer_encoding;
	bool has_augmentation, is_signal;
	struct cursor program;
	const u8 *at; /* NULL: none has been read */
};

/* Enters an entry of .eh_frame. Returns false at the end, or for one in the format of 64 bits. */
static bool take_entry(struct cursor *c, struct cursor *entry)
{
	u32 bytes = take_bytes(c, 4);

	if (!bytes || bytes == ~0u)
		return false;
	*entry = take_block(c, bytes);
	return true;
}

/* Reads the CIE that c has reached, unless it is the last one that was read. */
static bool read_cie(struct cursor c, struct cie *cie)
{
	const u8 *augmentation, *at = c.at;
	struct cursor entry, data;
	u64 personality;
	u8 version;

	if (cie->at == at)
		return true;
	cie->at = NULL;
	if (!take_entry(&c, &entry) || take_bytes(&entry, 4))
		return false;
	version = take_byte(&entry);
	augmentation = entry.at;
	while (take_byte(&entry))
		;
	*cie = (struct cie){ .code_align = take_uleb(&entry), .data_align = take_sleb(&entry) };
	if (version == 1)
		skip(&entry, 1);
	else
		take_uleb(&entry); /* the register of the return address */
	if (*augmentation == 'z') {
		cie->has_augmentation = true;
		data = take_block(&entry, take_uleb(&entry));
		while (*++augmentation) {
			if (*augmentation == 'R')
				cie->pointer_encoding = take_byte(&data);
			else if (*augmentation == 'P')
				take_pointer(&data, take_byte(&data), &personality);
			else if (*augmentation == 'L')
				skip(&data, 1);
			else if (*augmentation == 'S')
				cie->is_signal = true;
			else
				return false;
		}
	} else if (*augmentation) {
		return false;
	}
	cie->program = entry;
	cie->at = version == 1 || version == 3 ? at : NULL;
	return cie->at;
}

/* Numbers of registers (System V ABI, AMD64 supplement, figure 3.36). */
#define REG_RBP 6
#define REG_RSP 7
#define REG_RA	16

/* The frame at an instruction. Distances are in bytes. */
struct frame {
	u64 cfa_reg;
	s64 cfa;
	s64 fp; /* where the caller's rbp is, from the CFA; 0: in rbp */
	bool cfa_is_lost, fp_is_lost, ret_is_lost, is_outermost;
	u32 plt; /* the first byte of a PLT entry, of 16, at which one word more is on the stack */
};

static u32 rule_of(const struct frame *frame)
{
	if (frame->is_outermost)
		return UNWIND_OUTERMOST;
	if (frame->plt)
		return pack(UNWIND_PLT, frame->plt, 0); /* a number of bytes, in a field of words */
	if (frame->cfa_is_lost || frame->fp_is_lost || frame->ret_is_lost || frame->cfa < 0 ||
	    frame->cfa % 8 || frame->fp > 0 || frame->fp % 8 ||
	    (frame->cfa_reg != REG_RSP && frame->cfa_reg != REG_RBP))
		return UNWIND_UNKNOWN;
	return pack(frame->cfa_reg == REG_RSP ? UNWIND_SP : UNWIND_FP, frame->cfa / 8,
		    -frame->fp / 8);
}

/* The expression that linkers write for .plt: rsp + 8, and 8 more from byte N of an entry on. */
static u32 plt_of(struct cursor expression)
{
	static const u8 head[] = { 0x77, 8, 0x80, 0, 0x3f, 0x1a },
			tail[] = { 0x2a, 0x33, 0x24, 0x22 };
	const u8 *at = expression.at;

	if (expression.end - at != sizeof(head) + 1 + sizeof(tail) ||
	    memcmp(at, head, sizeof(head)) || memcmp(at + sizeof(head) + 1, tail, sizeof(tail)))
		return 0;
	return (at[sizeof(head)] - 0x30) & 0xf; /* DW_OP_lit<N> */
}

struct builder {
	struct unwind_table *table;
	u32 max_rows;
	bool is_full;
	u64 at, end; /* of the present function */
};

static void add_row(struct builder *b, u64 at, u32 rule)
{
	struct unwind_table *table = b->table;
	u64 start = at - table->base;
	struct row *last = table->rows + table->nr_rows - 1;

	/* Keeps rows sorted, whatever the file says. */
	if (start >> 32 || (table->nr_rows && start < last->start))
		return;
	if (table->nr_rows && start == last->start) {
		last->rule = rule;
		return;
	}
	if (table->nr_rows && rule == last->rule)
		return;
	if (table->nr_rows == b->max_rows) {
		b->is_full = true;
		return;
	}
	*++last = (struct row){ start, rule };
	table->nr_rows++;
}

static void advance(struct builder *b, const struct frame *frame, u64 distance)
{
	add_row(b, b->at, rule_of(frame));
	b->at += pf_min(distance, b->end - b->at);
}

static void set_offset(struct frame *frame, u64 reg, s64 offset)
{
	if (reg == REG_RBP) {
		frame->fp = offset;
		frame->fp_is_lost = !offset;
	} else if (reg == REG_RA) {
		frame->is_outermost = false;
		frame->ret_is_lost = offset != -8;
	}
}

/* Marks a register that is not where a row could say. */
static void lose(struct frame *frame, u64 reg)
{
	frame->fp_is_lost |= reg == REG_RBP;
	frame->ret_is_lost |= reg == REG_RA;
}

static void restore(struct frame *frame, const struct frame *initial, u64 reg)
{
	if (reg == REG_RBP) {
		frame->fp = initial->fp;
		frame->fp_is_lost = initial->fp_is_lost;
	}
}

static void set_cfa(struct frame *frame, u64 reg, s64 offset)
{
	frame->cfa_reg = reg;
	frame->cfa = offset;
	frame->plt = 0;
	frame->cfa_is_lost = false;
}

/*
 * Runs a program. With a builder, it is that of a function, and adds rows. Returns false at an
 * instruction that is not known.
 */
static bool run(struct cursor c, const struct cie *cie, struct frame *frame, struct builder *b)
{
	struct frame initial = *frame, states[MAX_STATES];
	u32 nr_states = 0;

	while (c.at < c.end) {
		u8 op = take_byte(&c), low = op & 0x3f;
		u64 reg, distance = 0;

		switch (op & 0xc0 ?: op) {
		case 0x40: /* DW_CFA_advance_loc */
			distance = low;
			break;
		case 0x80: /* DW_CFA_offset */
			set_offset(frame, low, take_uleb(&c) * cie->data_align);
			continue;
		case 0xc0: /* DW_CFA_restore */
			restore(frame, &initial, low);
			continue;
		case 0x00: /* DW_CFA_nop */
			continue;
		case 0x02: /* DW_CFA_advance_loc1, 2, 4 */
		case 0x03:
		case 0x04:
			distance = take_bytes(&c, 1 << (op - 2));
			break;
		case 0x05: /* DW_CFA_offset_extended */
			reg = take_uleb(&c);
			set_offset(frame, reg, take_uleb(&c) * cie->data_align);
			continue;
		case 0x11: /* DW_CFA_offset_extended_sf */
			reg = take_uleb(&c);
			set_offset(frame, reg, take_sleb(&c) * cie->data_align);
			continue;
		case 0x06: /* DW_CFA_restore_extended */
			restore(frame, &initial, take_uleb(&c));
			continue;
		case 0x07: /* DW_CFA_undefined */
			reg = take_uleb(&c);
			frame->is_outermost |= reg == REG_RA;
			frame->fp_is_lost |= reg == REG_RBP;
			continue;
		case 0x08: /* DW_CFA_same_value */
			reg = take_uleb(&c);
			if (reg == REG_RBP) {
				frame->fp = 0;
				frame->fp_is_lost = false;
			}
			continue;
		case 0x09: /* DW_CFA_register */
			lose(frame, take_uleb(&c));
			take_uleb(&c);
			continue;
		case 0x0a: /* DW_CFA_remember_state */
			if (nr_states == MAX_STATES)
				return false;
			states[nr_states++] = *frame;
			continue;
		case 0x0b: /* DW_CFA_restore_state */
			if (!nr_states)
				return false;
			*frame = states[--nr_states];
			continue;
		case 0x0c: /* DW_CFA_def_cfa */
			reg = take_uleb(&c);
			set_cfa(frame, reg, take_uleb(&c));
			continue;
		case 0x12: /* DW_CFA_def_cfa_sf */
			reg = take_uleb(&c);
			set_cfa(frame, reg, take_sleb(&c) * cie->data_align);
			continue;
		case 0x0d: /* DW_CFA_def_cfa_register */
			frame->cfa_reg = take_uleb(&c);
			continue;
		case 0x0e: /* DW_CFA_def_cfa_offset */
			frame->cfa = take_uleb(&c);
			continue;
		case 0x13: /* DW_CFA_def_cfa_offset_sf */
			frame->cfa = take_sleb(&c) * cie->data_align;
			continue;
		case 0x0f: /* DW_CFA_def_cfa_expression */
			distance = take_uleb(&c);
			frame->cfa_is_lost = true;
			frame->plt = plt_of(take_block(&c, distance));
			continue;
		case 0x10: /* DW_CFA_expression */
		case 0x16: /* DW_CFA_val_expression */
			lose(frame, take_uleb(&c));
			skip(&c, take_uleb(&c));
			continue;
		case 0x14: /* DW_CFA_val_offset */
			lose(frame, take_uleb(&c));
			take_uleb(&c);
			continue;
		case 0x2e: /* DW_CFA_GNU_args_size */
			take_uleb(&c);
			continue;
		default:
			return false;
		}
		if (b)
			advance(b, frame, distance * cie->code_align);
	}
	return true;
}

/* A frame description entry: that of a function. */
struct function {
	u64 begin, bytes; /* its code */
	struct cursor program;
};

/* Reads the entry that c has reached. Returns false for a CIE, and for what is not supported. */
static bool read_function(const struct cursor *c, struct cursor entry, struct function *function,
			  struct cie *cie)
{
	u64 place = entry.at - c->begin;
	u32 to_cie = take_bytes(&entry, 4);
	struct cursor at = *c;

	if (!to_cie || to_cie > place)
		return false;
	at.at = c->begin + place - to_cie;
	if (!read_cie(at, cie) || !take_pointer(&entry, cie->pointer_encoding, &function->begin) ||
	    !take_pointer(&entry, cie->pointer_encoding & 0xf, &function->bytes))
		return false;
	if (cie->has_augmentation)
		skip(&entry, take_uleb(&entry));
	function->program = entry;
	return true;
}

/* A function by its entry, to be sorted. */
struct place {
	u64 begin;
	const u8 *entry;
};

static int compare_places(const void *a, const void *b)
{
	return compare_u64(((const struct place *)a)->begin, ((const struct place *)b)->begin);
}

/* Finds the functions of .eh_frame, sorted by address. Returns their number. */
static u32 find_functions(struct cursor c, struct place *places, u32 max)
{
	struct function function;
	bool is_sorted = true;
	struct cursor entry;
	const u8 *at = c.at;
	struct cie cie = { 0 };
	u32 nr = 0;

	for (; nr < max && take_entry(&c, &entry); at = c.at) {
		if (!read_function(&c, entry, &function, &cie) || !function.bytes)
			continue;
		is_sorted &= !nr || places[nr - 1].begin <= function.begin;
		places[nr++] = (struct place){ function.begin, at };
	}
	if (!is_sorted)
		os_sort(places, nr, sizeof(*places), compare_places);
	return nr;
}

static void add_function(struct builder *b, struct cursor c, const u8 *at, struct cie *cie)
{
	struct frame frame = { 0 };
	struct function function;
	struct cursor entry;

	c.at = at;
	take_entry(&c, &entry);
	read_function(&c, entry, &function, cie);
	b->at = function.begin;
	b->end = function.begin + pf_min(function.bytes, ~function.begin);
	if (cie->is_signal)
		add_row(b, b->at, UNWIND_SIGNAL);
	else if (run(cie->program, cie, &frame, NULL) && run(function.program, cie, &frame, b))
		add_row(b, b->at, rule_of(&frame));
	else
		add_row(b, b->at, UNWIND_UNKNOWN);
	add_row(b, b->end, UNWIND_UNKNOWN);
}

/* Adds the rows of all functions, by address. */
static void add_functions(struct builder *b, struct cursor section)
{
	u32 max = pf_min((section.end - section.at) / MIN_ENTRY_BYTES, MAX_FUNCTIONS + 0l), nr;
	struct place *places = os_alloc(max * sizeof(*places));
	struct cie cie = { 0 };

	if (!places)
		return;
	nr = find_functions(section, places, max);
	for (u32 i = 0; i < nr && !b->is_full; i++)
		add_function(b, section, places[i].entry, &cie);
	os_free(places);
}

/* The code segments of a file, and the place of its .eh_frame. */
struct sections {
	u32 nr_code;
	u64 base; /* the lowest address */
	struct program_header code[MAX_CODE];
	u64 frames, frames_offset,
		frames_bytes; /* .eh_frame, or more: its address, and in the file */
};

/* Finds .eh_frame by its section's name. Static programs have no other way to it. */
static bool find_by_name(os_file_t *file, const struct elf_header *header,
			 struct sections *sections)
{
	static const char wanted[] = ".eh_frame";
	struct section_header section, names;
	char name[sizeof(wanted)];

	if (!elf_read(file, &names, sizeof(names),
		      header->shoff + header->shstrndx * sizeof(section)))
		return false;
	for (u32 i = 0; i < pf_min((u32)header->shnum, (u32)MAX_HEADERS); i++) {
		if (!elf_read(file, &section, sizeof(section),
			      header->shoff + i * sizeof(section)) ||
		    !elf_read(file, name, sizeof(name), names.offset + section.name) ||
		    memcmp(name, wanted, sizeof(name)))
			continue;
		sections->frames = section.addr;
		sections->frames_offset = section.offset;
		sections->frames_bytes = section.size;
		return true;
	}
	return false;
}

static bool read_sections(os_file_t *file, struct sections *sections)
{
	struct program_header segment;
	struct elf_header header;

	*sections = (struct sections){ .base = ~0ull };
	if (!elf_read_header(file, &header))
		return false;
	for (u32 i = 0; i < pf_min((u32)header.phnum, (u32)MAX_HEADERS); i++) {
		if (!elf_read(file, &segment, sizeof(segment), header.phoff + i * sizeof(segment)))
			return false;
		if (segment.type != PT_LOAD)
			continue;
		sections->base = pf_min(sections->base, segment.vaddr);
		if (segment.flags & PF_X && sections->nr_code < MAX_CODE)
			sections->code[sections->nr_code++] = segment;
	}
	return sections->nr_code && find_by_name(file, &header, sections);
}

/* Returns a new table with room for max_rows rows, or NULL. */
static struct unwind_table *table_alloc(const struct sections *sections, u32 max_rows)
{
	struct unwind_table *table = os_alloc(sizeof(*table) + max_rows * sizeof(struct row));

	if (!table)
		return NULL;
	table->base = sections->base;
	table->nr_rows = 0;
	table->nr_code = sections->nr_code;
	memcpy(table->code, sections->code, sizeof(table->code));
	return table;
}

/* Returns the same table in as much memory as it needs, or NULL. Frees the old one. */
static struct unwind_table *shrink(struct unwind_table *old, const struct sections *sections)
{
	struct unwind_table *table = old->nr_rows ? table_alloc(sections, old->nr_rows) : NULL;

	if (table) {
		table->nr_rows = old->nr_rows;
		memcpy(table->rows, old->rows, old->nr_rows * sizeof(struct row));
	}
	os_free(old);
	return table;
}

/* Makes the table of a file. Returns NULL if the file has no information, or without memory. */
static struct unwind_table *make_table(os_file_t *file)
{
	u64 room = os_memory_bytes() / MEMORY_SHARE, used = pf_read_once(nr_bytes), bytes;
	struct builder b = { 0 };
	struct sections sections;
	u8 *section;

	if (used > room || !read_sections(file, &sections))
		return NULL;
	bytes = sections.frames_bytes;
	if (!bytes || bytes > MAX_FRAME_BYTES)
		return NULL;
	/* A row takes at least two bytes in a program. */
	b.max_rows = pf_min(pf_min(bytes / 2, (room - used) / sizeof(struct row)), MAX_ROWS + 0ull);
	section = os_alloc(bytes);
	b.table = section ? table_alloc(&sections, b.max_rows) : NULL;
	if (b.table && elf_read(file, section, bytes, sections.frames_offset))
		add_functions(&b, (struct cursor){ section, section + bytes, sections.frames,
						   section });
	os_free(section);
	if (b.is_full)
		b.table->nr_rows = 0; /* half a table would be a wrong one */
	return b.table ? shrink(b.table, &sections) : NULL;
}

bool user_unwind_is_on(void)
{
	return is_on;
}

void image_unwind_add(u32 image, os_file_t *file)
{
	struct unwind_table *table, *none = NULL;
	u64 bytes;

	if (!is_on || !image || !image_get(image)->build_id_bytes ||
	    pf_read_once(tables[image - 1]))
		return;
	table = make_table(file);
	if (!table)
		return;
	bytes = sizeof(*table) + table->nr_rows * sizeof(struct row);
	/* Pairs with the acquire in find_place(): who sees the table sees its rows. */
	if (__atomic_compare_exchange_n(&tables[image - 1], &none, table, false, __ATOMIC_RELEASE,
					__ATOMIC_RELAXED))
		__atomic_fetch_add(&nr_bytes, bytes, __ATOMIC_RELAXED);
	else
		os_free(table); /* another CPU was faster */
}

/* Finds the area of an address, and the table of its file. */
static void find_place(struct user_unwind_place *place, u64 addr)
{
	const struct code_map *map;

	*place = (struct user_unwind_place){ .code_map = place->code_map, .start = addr };
	for (u32 number = place->code_map; number; number = map->parent) {
		const struct unwind_table *table;

		map = code_map_get(number);
		if (addr - map->start >= map->end - map->start)
			continue;
		place->start = map->start;
		place->bytes = map->end - map->start;
		table = map->image ? pf_load_acquire(&tables[map->image - 1]) : NULL;
		for (u32 i = 0; table && i < table->nr_code; i++) {
			const struct program_header *code = &table->code[i];

			if (code->offset < map->file_offset + place->bytes &&
			    map->file_offset < code->offset + code->filesz) {
				place->table = table;
				place->to_row = map->file_offset - map->start - code->offset +
						code->vaddr - table->base;
			}
		}
		return;
	}
}

struct user_unwind user_unwind(struct user_unwind_place *place, u64 addr)
{
	const struct unwind_table *table;
	u32 low = 0, high, rule;
	u64 at;

	if (addr - place->start >= place->bytes)
		find_place(place, addr);
	table = place->table;
	at = addr + place->to_row;
	if (!table || at >> 32 || at < table->rows[0].start)
		return (struct user_unwind){ UNWIND_UNKNOWN };
	for (high = table->nr_rows; high - low > 1;) {
		u32 middle = low + (high - low) / 2;

		if (table->rows[middle].start <= at)
			low = middle;
		else
			high = middle;
	}
	rule = table->rows[low].rule;
	return (struct user_unwind){
		.kind = rule & (PF_BIT(KIND_BITS) - 1),
		.fp = (rule >> KIND_BITS & (PF_BIT(FP_BITS) - 1)) * 8,
		.cfa = (rule >> (KIND_BITS + FP_BITS)) * 8,
	};
}
