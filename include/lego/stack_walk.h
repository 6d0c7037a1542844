/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_STACK_WALK_H
#define LEGO_STACK_WALK_H

/* What a walk along a stack gives: <asm/stacktrace.h> does it. */

#include <lego/types.h>

/* Why a chain ends before its outermost caller. */
enum stack_cut {
	STACK_WHOLE,
	STACK_CUT_DEPTH,       /* there are more frames than places */
	STACK_CUT_ENTRY,       /* in entry code, whose frames cannot be trusted */
	STACK_CUT_STACK,       /* a frame pointer leads off the stack, or not upwards */
	STACK_CUT_TEXT,	       /* a return address is not in the kernel's text */
	STACK_CUT_USER_FRAME,  /* a user's frame pointer is none */
	STACK_CUT_USER_MEMORY, /* a user's frame is not in memory, or may not be read now */
	NR_STACK_CUTS,
};

static inline u64 stack_hash(u64 hash, u64 pc)
{
	return (hash + pc) * 0x9e3779b97f4a7c15ull;
}

/* One step of walk->hash: cheap, and good enough behind another step of stack_hash(). */
static inline u64 stack_mix(u64 hash, u64 pc)
{
	return (hash << 21 | hash >> 43) + pc;
}

/*
 * A walk's result, small enough for two registers. Of the program counters, innermost first,
 * kernel's then the user's, the first is where it was; the others are return addresses (or one
 * behind what an interrupt hit): subtract one to find the function.
 */
struct stack_walk {
	u64 hash;   /* of all program counters */
	u64 counts; /* STACK_COUNTS() */
};

#define STACK_COUNTS(nr_kernel, nr_user, cut, plain) \
	((u64)(nr_kernel) | (u64)(nr_user) << 8 | (u64)(cut) << 16 | (u64)(plain) << 24)
#define STACK_MAX_DEPTH 127

/*
 * How all of it was found: by following frame pointers, to where they end; but for the first caller
 * of a function without a frame, whose return address is one of the two words at the stack pointer.
 */
enum stack_plain {
	STACK_NOT_PLAIN,
	STACK_PLAIN,
	STACK_PLAIN_BESIDE_0,
	STACK_PLAIN_BESIDE_1,
};

#endif
