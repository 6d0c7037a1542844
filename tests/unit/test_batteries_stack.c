// SPDX-License-Identifier: BSD-2-Clause
/* Call chains by frame pointers, and names from a table, as kernels without either use them. */

#include <string.h>

#include "unit_test.h"

#include "../../kernel/profile/batteries/stack.h"
#include "../../kernel/profile/batteries/symbols.h"

/* The table of symbols.awk for three functions; nothing is between 0x3000 and 0x4000. */
asm(".pushsection .data\n"
    ".balign 8\n"
    ".globl battery_symbols, battery_symbols_end\n"
    "battery_symbols:\n"
    ".quad 0x1000, 1f\n"
    ".quad 0x2000, 2f\n"
    ".quad 0x3000, 0\n"
    ".quad 0x4000, 3f\n"
    "battery_symbols_end:\n"
    "1: .asciz \"first\"\n"
    "2: .asciz \"second\"\n"
    "3: .asciz \"last\"\n"
    ".popsection");

static void assert_symbol(u64 addr, const char *name, u64 begin)
{
	u64 start = 0;
	char copy[16] = "";

	assert_true(battery_symbol_lookup(addr, &start, copy, sizeof(copy)));
	assert_string_equal(copy, name);
	assert_int_equal(start, begin);
}

HOST_TEST(symbols)
{
	u64 start;
	char copy[8] = "xxxxxxx";

	assert_symbol(0x1000, "first", 0x1000);
	assert_symbol(0x1fff, "first", 0x1000);
	assert_symbol(0x2000, "second", 0x2000);
	assert_symbol(0x2fff, "second", 0x2000);
	assert_symbol(0x4001, "last", 0x4000);
	assert_false(battery_symbol_lookup(0xfff, &start, copy, sizeof(copy)));
	assert_false(battery_symbol_lookup(0, &start, copy, sizeof(copy)));
	assert_false(battery_symbol_lookup(0x3000, &start, copy, sizeof(copy)));
	assert_false(battery_symbol_lookup(0x3fff, &start, copy, sizeof(copy)));
	assert_string_equal(copy, "xxxxxxx");
	assert_true(battery_symbol_lookup(0x2004, &start, NULL, 0));
	assert_true(battery_symbol_lookup(0x2004, &start, copy, 4));
	assert_memory_equal(copy, "sec\0xxx", 8);
}

/* A stack of three frames, at words 2, 6 and 10. */
static u64 words[16];

static u64 at(unsigned int word)
{
	return (u64)&words[word];
}

static struct battery_stack make_stack(void)
{
	memset(words, 0xee, sizeof(words));
	words[2] = at(6);
	words[3] = 0x200;
	words[6] = at(10);
	words[7] = 0x300;
	words[10] = 0;
	words[11] = 0x400;
	return (struct battery_stack){ .pc = 0x100, .fp = at(2), .low = at(0), .high = at(16) };
}

static void assert_chain(const struct battery_stack *stack, u32 max, u32 nr,
			 enum profile_stack_truncation truncated)
{
	static const u64 wanted[] = { 0x100, 0x200, 0x300, 0x400 };
	u64 pcs[8] = { 0 }, hash = 0;
	struct profile_stack_walk walk = battery_stack_walk(stack, pcs, max);

	assert_int_equal(walk.counts, PROFILE_STACK_COUNTS(nr, 0, truncated, 0));
	assert_memory_equal(pcs, wanted, nr * sizeof(u64));
	assert_int_equal(pcs[nr], 0);
	for (u32 i = 0; i < nr; i++)
		hash = profile_stack_mix(hash, pcs[i]);
	assert_int_equal(walk.hash, hash);
}

HOST_TEST(walk)
{
	struct battery_stack stack = make_stack();

	assert_chain(&stack, 8, 4, PROFILE_STACK_WHOLE);
	assert_chain(&stack, 4, 4, PROFILE_STACK_WHOLE);
	assert_chain(&stack, 2, 2, PROFILE_STACK_TRUNCATED_DEPTH);
	words[7] = 0; /* a return address of 0 ends the chain */
	assert_chain(&stack, 8, 2, PROFILE_STACK_WHOLE);
	stack.fp = 0;
	assert_chain(&stack, 8, 1, PROFILE_STACK_WHOLE);
}

/* A frame pointer that is not a frame above the last one ends the walk, and is not followed. */
HOST_TEST(walk_is_bounded)
{
	struct battery_stack stack = make_stack();
	const u64 wrong[] = { at(6), at(2), at(0),	at(15),	   at(16),
			      1,     ~0ull, at(10) + 4, at(0) - 8, 1ull << 63 };

	for (unsigned int i = 0; i < PF_ARRAY_SIZE(wrong); i++) {
		words[6] = wrong[i];
		assert_chain(&stack, 8, 3, PROFILE_STACK_TRUNCATED_STACK);
	}
	for (unsigned int i = 3; i < PF_ARRAY_SIZE(wrong); i++) {
		stack.fp = wrong[i];
		assert_chain(&stack, 8, 1, PROFILE_STACK_TRUNCATED_STACK);
	}
}

static noinline u32 walk_here(u64 *pcs, u64 *own)
{
	struct battery_stack stack = { .low = (u64)__builtin_frame_address(0) };

	stack.high = stack.low + (64ul << 10);
	*own = (u64)__builtin_return_address(0);
	battery_caller(&stack.pc, &stack.fp);
	return (u8)battery_stack_walk(&stack, pcs, 2).counts;
}

HOST_TEST(this_stack)
{
	u64 pcs[2], own;

	assert_int_equal(walk_here(pcs, &own), 2);
	assert_int_equal(pcs[0], own);
	assert_int_equal(pcs[1], (u64)__builtin_return_address(0));
}

HOST_TEST(user)
{
	u64 pc = 0;
	struct profile_stack_walk walk = battery_stack_user(0x1234, &pc);

	assert_int_equal(pc, 0x1234);
	assert_int_equal(walk.counts, PROFILE_STACK_COUNTS(0, 1, PROFILE_STACK_WHOLE, 0));
}
