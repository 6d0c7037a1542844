// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads call frame information. For an address, it takes the entry of the function (FDE), what the
 * entry shares with others (CIE), and runs both programs up to the address. The result is a rule
 * for stack walks: where the return address and the caller's frame pointer are. A program takes
 * about 15 steps. What no rule can say is unknown.
 */

#include "call_frames.h"

/* Reads bytes up to the end; after it, zeros. */
struct cursor {
	const u8 *at, *end;
};

static u32 load_u32(const u8 *at)
{
	u32 value;

	__builtin_memcpy(&value, at, sizeof(value));
	return value;
}

static u8 take_byte(struct cursor *c)
{
	return c->at < c->end ? *c->at++ : 0;
}

/* Takes a number of n bytes, the lowest first. */
static u64 take_bytes(struct cursor *c, u32 n)
{
	u64 value = 0;

	if (n == 4 && c->end - c->at >= 4) { /* nearly always */
		c->at += 4;
		return load_u32(c->at - 4);
	}
	for (u32 i = 0; i < n; i++)
		value |= (u64)take_byte(c) << 8 * i;
	return value;
}

#define MAX_LEB_SHIFT 63 /* a longer number is not one of ours: the rest is read as the next one */

static s64 take_leb(struct cursor *c, bool is_signed)
{
	u64 value = 0;
	u32 shift = 0;
	u8 byte;

	do {
		byte = take_byte(c);
		value |= (byte & 0x7full) << shift;
		shift += 7;
	} while (byte & 0x80 && shift <= MAX_LEB_SHIFT);
	if (is_signed && byte & 0x40 && shift <= MAX_LEB_SHIFT)
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
#define PE_OMIT		0xff
#define PE_PCREL	0x10
#define PE_PCREL_SDATA4 0x1b /* the one that assemblers write */

static u32 pointer_bytes(u8 encoding)
{
	static const u8 bytes[16] = { 8, 0, 2, 4, 8, 0, 0, 0, 0, 0, 2, 4, 8 };

	return encoding == PE_OMIT ? 0 : bytes[encoding & 0xf];
}

/* Takes a pointer. Returns false if its encoding is not supported. */
static bool take_pointer(const struct call_frames *frames, struct cursor *c, u8 encoding,
			 u64 *value)
{
	u64 place = frames->vaddr + (c->at - frames->bytes);
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
};

#define MAX_AUGMENTATION 8 /* letters, each of which announces a field */

/*
 * Enters the entry at an offset. Returns false at the end mark, or for an entry in the format of 64
 * bits.
 */
static bool enter(const struct call_frames *frames, u32 at, struct cursor *entry)
{
	u32 room, bytes;

	if (at > frames->nr_bytes || frames->nr_bytes - at < sizeof(bytes))
		return false;
	room = frames->nr_bytes - at - sizeof(bytes);
	bytes = load_u32(frames->bytes + at);
	if (!bytes || bytes > room)
		return false;
	entry->at = frames->bytes + at + sizeof(bytes);
	entry->end = entry->at + bytes;
	return true;
}

/* Reads the data that the letters of an augmentation announce. */
static bool read_augmentation(const struct call_frames *frames, const u8 *letters,
			      struct cursor data, struct cie *cie)
{
	u64 personality;

	for (; *letters; letters++) {
		if (*letters == 'R')
			cie->pointer_encoding = take_byte(&data);
		else if (*letters == 'P')
			take_pointer(frames, &data, take_byte(&data), &personality);
		else if (*letters == 'L')
			skip(&data, 1);
		else if (*letters == 'S')
			cie->is_signal = true;
		else
			return false;
	}
	return true;
}

static bool read_cie(const struct call_frames *frames, u32 at, struct cie *cie)
{
	u8 letters[MAX_AUGMENTATION + 1] = "", version;
	struct cursor entry;

	if (!enter(frames, at, &entry) || take_bytes(&entry, 4))
		return false;
	version = take_byte(&entry);
	for (u32 i = 0; i <= MAX_AUGMENTATION; i++) {
		letters[i] = take_byte(&entry);
		if (!letters[i])
			break;
	}
	if (letters[MAX_AUGMENTATION] || (version != 1 && version != 3))
		return false;
	*cie = (struct cie){ .code_align = take_uleb(&entry), .data_align = take_sleb(&entry) };
	if (version == 1)
		skip(&entry, 1);
	else
		take_uleb(&entry); /* the register of the return address */
	cie->has_augmentation = letters[0] == 'z';
	if (cie->has_augmentation) {
		struct cursor data = take_block(&entry, take_uleb(&entry));

		if (!read_augmentation(frames, letters + 1, data, cie))
			return false;
	}
	cie->program = entry;
	return cie->has_augmentation || !letters[0];
}

/* A frame description entry: that of a function. */
struct function {
	u64 begin, bytes; /* its code */
	struct cursor program;
};

/* Returns the offset of the CIE of the entry at `at`, whose second word is to_cie. */
static u32 cie_of(u32 at, u32 to_cie)
{
	return at + sizeof(to_cie) - to_cie;
}

/* Reads the entry of a function. Returns false for a CIE, and for what is not supported. */
static bool read_function(const struct call_frames *frames, u32 at, struct function *function,
			  struct cie *cie)
{
	struct cursor entry;
	u32 to_cie;

	if (!enter(frames, at, &entry))
		return false;
	to_cie = take_bytes(&entry, 4);
	if (!to_cie || !read_cie(frames, cie_of(at, to_cie), cie) ||
	    !take_pointer(frames, &entry, cie->pointer_encoding, &function->begin) ||
	    !take_pointer(frames, &entry, cie->pointer_encoding & 0xf, &function->bytes))
		return false;
	if (cie->has_augmentation)
		skip(&entry, take_uleb(&entry));
	function->program = entry;
	return true;
}

#define AT_BEGIN   8	/* of the function's address in an entry with PE_PCREL_SDATA4 */
#define MAX_VISITS 1024 /* of lists and their entries, by a search */

static u64 begin_of(const struct call_frames *frames, u32 at)
{
	u32 offset = at + AT_BEGIN;

	return frames->vaddr + offset + (s32)load_u32(frames->bytes + offset);
}

/* Returns whether the functions of a CIE have their addresses in PE_PCREL_SDATA4. */
static bool is_usual(const struct call_frames *frames, u32 at)
{
	struct cie cie;

	return read_cie(frames, at, &cie) && cie.pointer_encoding == PE_PCREL_SDATA4;
}

void call_frames_list(const struct call_frames *from, struct frame_lists *to)
{
	const struct call_frames frames = *from; /* in registers */
	const struct frame_lists lists = *to;
	u32 at = 0, next, nr = 0, usual_cie = ~0u;
	struct cursor entry;

	for (; enter(&frames, at, &entry); at = next) {
		u32 to_cie = load_u32(entry.at);
		u64 list;

		next = entry.end - frames.bytes;
		if (!to_cie || next - at < MIN_FUNCTION_BYTES)
			continue;
		if (cie_of(at, to_cie) != usual_cie) {
			if (!is_usual(&frames, cie_of(at, to_cie)))
				continue;
			usual_cie = cie_of(at, to_cie);
		}
		list = (begin_of(&frames, at) - lists.base) >> LOG2_LIST_BYTES;
		if (list >= lists.nr)
			continue;
		lists.entries[nr] = (struct listed_frame){ at, lists.first[list] };
		lists.first[list] = ++nr;
	}
}

u32 call_frames_find(const struct call_frames *frames, const struct frame_lists *lists, u64 addr)
{
	u64 list = (addr - lists->base) >> LOG2_LIST_BYTES, nearest = ~0ull;
	u32 found = NO_CALL_FRAME, nr_visits = 0;

	if (list >= lists->nr)
		return NO_CALL_FRAME;
	do {
		for (u32 nr = lists->first[list]; nr && nr_visits < MAX_VISITS; nr_visits++) {
			const struct listed_frame *entry = &lists->entries[nr - 1];
			u64 begin = begin_of(frames, entry->at);

			if (begin <= addr && addr - begin < nearest) {
				nearest = addr - begin;
				found = entry->at;
			}
			nr = entry->next;
		}
	} while (found == NO_CALL_FRAME && list-- && ++nr_visits < MAX_VISITS);
	return found;
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

static struct profile_user_unwind rule_of(const struct frame *frame)
{
	if (frame->is_outermost)
		return (struct profile_user_unwind){ .kind = PROFILE_UNWIND_OUTERMOST };
	if (frame->plt)
		return (struct profile_user_unwind){ .kind = PROFILE_UNWIND_PLT,
						     .cfa = frame->plt };
	if (frame->cfa_is_lost || frame->fp_is_lost || frame->ret_is_lost || frame->cfa < 0 ||
	    frame->cfa % 8 || frame->cfa / 8 > PROFILE_UNWIND_MAX_CFA || frame->fp > 0 ||
	    frame->fp % 8 || frame->fp / 8 < -PROFILE_UNWIND_MAX_FP ||
	    (frame->cfa_reg != REG_RSP && frame->cfa_reg != REG_RBP))
		return (struct profile_user_unwind){ .kind = PROFILE_UNWIND_UNKNOWN };
	return (struct profile_user_unwind){
		.kind = frame->cfa_reg == REG_RSP ? PROFILE_UNWIND_SP : PROFILE_UNWIND_FP,
		.cfa = frame->cfa / 8,
		.fp = -frame->fp / 8,
	};
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

#define MAX_STATES 8 /* remembered by a program */

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
 * Runs a program up to the instruction at an address. *begin is where its function begins; it and
 * *end become the range of addresses with the same frame, in the function. Returns false at a step
 * that is not known, or if there are not enough steps.
 */
static bool run_rules(struct cursor c, const struct cie *cie, struct frame *frame, u64 addr,
		      u64 *begin, u64 *end, u32 *steps)
{
	struct frame initial = *frame, states[MAX_STATES];
	u32 nr_states = 0;

	while (c.at < c.end) {
		u8 op = take_byte(&c), low = op & 0x3f;
		u64 reg, distance;

		if (!*steps)
			return false;
		--*steps;
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
			frame->cfa_is_lost = true;
			frame->plt = plt_of(take_block(&c, take_uleb(&c)));
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
		distance *= cie->code_align;
		if (distance > addr - *begin) {
			*end = pf_min(*end, add_saturating(*begin, distance));
			break;
		}
		*begin += distance;
	}
	return true;
}

bool call_frames_rule(const struct call_frames *frames, u32 at, u64 addr, u32 *steps,
		      struct call_frames_rule *rule)
{
	struct frame frame = { 0 };
	struct function function;
	u64 begin = 0, end = ~0ull;
	struct cie cie;

	*rule = (struct call_frames_rule){ .begin = addr, .end = addr + 1 };
	if (!read_function(frames, at, &function, &cie) || addr - function.begin >= function.bytes)
		return true;
	if (cie.is_signal) {
		rule->rule.kind = PROFILE_UNWIND_SIGNAL;
		return true;
	}
	rule->begin = function.begin;
	rule->end = add_saturating(function.begin, function.bytes);
	if (!run_rules(cie.program, &cie, &frame, ~0ull, &begin, &end, steps) ||
	    !run_rules(function.program, &cie, &frame, addr, &rule->begin, &rule->end, steps))
		return *steps;
	rule->rule = rule_of(&frame);
	return true;
}
