/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_INCLUDE_USER_UNWIND_H
#define PROFILE_INCLUDE_USER_UNWIND_H

/* Rules by which a stack walk finds the caller's frame in user code. See images/unwind.c. */

#include <profile/profile.h>

/*
 * The canonical frame address (CFA) is the stack pointer before the call. The return address lies
 * in the word below it.
 */
enum profile_user_unwind_kind {
	PROFILE_UNWIND_UNKNOWN, /* nothing is known: follow the frame pointer */
	PROFILE_UNWIND_SP,	/* the CFA is `cfa` words above the stack pointer */
	PROFILE_UNWIND_FP,	/* ... above the frame pointer */
	PROFILE_UNWIND_PLT, /* above the stack pointer: 2 words from byte `cfa` of 16 on, else 1 */
	PROFILE_UNWIND_SIGNAL,	  /* the stack pointer points to the struct ucontext of a signal */
	PROFILE_UNWIND_OUTERMOST, /* there is no caller */
	/*
	 * The function goes on with another stack, where what it calls has no other caller. What
	 * called the function itself is on the stack that it left.
	 */
	PROFILE_UNWIND_OTHER_STACK,
};

struct profile_user_unwind {
	u32 kind : 3;
	u32 fp : 9; /* words from the caller's frame pointer up to the CFA; 0: in its register */
	u32 cfa : 20;
};

#define PROFILE_UNWIND_MAX_FP  ((1 << 9) - 1)
#define PROFILE_UNWIND_MAX_CFA ((1 << 20) - 1)

/* The state of a walk: the area that the last address was in, and what may still be read. */
struct profile_user_unwind_place {
	u32 code_map, image;
	u64 start, bytes;
	const struct unwind_table *table;
	u64 to_file; /* to be added to an address: its distance from the file's lowest one */
	u32 steps;   /* of programs that describe frames */
};

#define PROFILE_UNWIND_STEPS 1024 /* of a walk; a function takes 15 on average, and 210 at most */

/* Returns the place to begin with in an address space. Any context. */
static inline struct profile_user_unwind_place
profile_user_unwind_begin(const struct profile_mm *pm)
{
	return (struct profile_user_unwind_place){ .code_map = profile_code_map(pm),
						   .steps = PROFILE_UNWIND_STEPS };
}

#ifdef CONFIG_PROFILE_IMAGES
/* Returns whether there may be rules (profile.unwind=on). Any context. */
bool profile_user_unwind_is_on(void);
/*
 * Returns the rule at an address of code of the address space. For a caller, pass the return
 * address minus 1. Any context, NMIs included.
 */
struct profile_user_unwind profile_user_unwind(struct profile_user_unwind_place *place, u64 addr);
#else
#define profile_user_unwind_is_on() false
static inline struct profile_user_unwind
profile_user_unwind(struct profile_user_unwind_place *place, u64 addr)
{
	return (struct profile_user_unwind){ .kind = PROFILE_UNWIND_UNKNOWN };
}
#endif

#endif
