/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_INCLUDE_STACK_WALK_H
#define PROFILE_INCLUDE_STACK_WALK_H

/* The result of a stack walk. <asm/stacktrace.h> has the walk itself. */

#include "../../os_hooks.h"

/* Why a chain ends before its outermost caller. */
enum profile_stack_truncation {
	PROFILE_STACK_WHOLE,
	PROFILE_STACK_TRUNCATED_DEPTH, /* the chain has more functions than may be stored */
	PROFILE_STACK_TRUNCATED_ENTRY, /* in entry code, whose frames cannot be trusted */
	PROFILE_STACK_TRUNCATED_STACK, /* a frame pointer points off the stack, or not upwards */
	PROFILE_STACK_TRUNCATED_TEXT,  /* a return address is not in the kernel's text */
	PROFILE_STACK_TRUNCATED_USER_FRAME,  /* a user's frame pointer is not valid */
	PROFILE_STACK_TRUNCATED_USER_MEMORY, /* it is not in memory, or may not be read now */
	PROFILE_STACK_TRUNCATED_REPORT,	     /* the profiler's own report: not walked */
	PROFILE_STACK_TRUNCATED_ROOM,	     /* the chain had to make room: stack_collect.c */
	PROFILE_NR_STACK_TRUNCATIONS,
};

static inline u64 profile_stack_hash(u64 hash, u64 pc)
{
	return (hash + pc) * PF_HASH_FACTOR;
}

/* Adds an address to walk->hash. Cheap; good enough if a step of profile_stack_hash() follows. */
static inline u64 profile_stack_mix(u64 hash, u64 pc)
{
	return (hash << 21 | hash >> 43) + pc;
}

/*
 * The result of a walk, small enough for two registers. The program counters are stored innermost
 * first, those of the kernel before those of the user. The first one is the interrupted
 * instruction. The others are return addresses or, for instructions that were interrupted, one byte
 * more than their address. So subtract one from them to find the function.
 */
struct profile_stack_walk {
	u64 hash;   /* of all program counters, by profile_stack_mix() */
	u64 counts; /* PROFILE_STACK_COUNTS() */
};

#define PROFILE_STACK_COUNTS(nr_kernel, nr_user, truncated, replayable) \
	((u64)(nr_kernel) | (u64)(nr_user) << 8 | (u64)(truncated) << 16 | (u64)(replayable) << 24)
#define PROFILE_STACK_MAX_DEPTH 127

/*
 * Whether <asm/stack_match.h> can compare a stack with this chain. It can if the whole chain was
 * found by following frame pointers. If the interrupted function has no frame yet, its return
 * address is the first or the second word at the stack pointer.
 */
enum profile_stack_replay {
	PROFILE_STACK_NOT_REPLAYABLE,
	PROFILE_STACK_REPLAYABLE,
	PROFILE_STACK_FRAMELESS_0, /* the return address is the first word */
	PROFILE_STACK_FRAMELESS_1, /* the second one */
	PROFILE_STACK_PATH,	   /* the user part was found by call frame information, too */
};

#endif
