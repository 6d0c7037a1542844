/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_USER_UNWIND_H
#define LEGO_USER_UNWIND_H

/* Rules by which a stack walk finds the caller's frame in user code. See images/unwind.c. */

#include <lego/profile.h>

/*
 * The canonical frame address (CFA) is the stack pointer before the call. The return address lies
 * in the word below it.
 */
enum user_unwind_kind {
	UNWIND_UNKNOWN,	  /* nothing is known: follow the frame pointer */
	UNWIND_SP,	  /* the CFA is `cfa` bytes above the stack pointer */
	UNWIND_FP,	  /* ... above the frame pointer */
	UNWIND_PLT,	  /* above the stack pointer: 16 bytes from byte cfa / 8 of 16 on, else 8 */
	UNWIND_SIGNAL,	  /* the stack pointer points to the struct ucontext of a signal */
	UNWIND_OUTERMOST, /* there is no caller */
};

struct user_unwind {
	enum user_unwind_kind kind;
	u32 fp; /* bytes from the caller's frame pointer up to the CFA; 0: it is in its register */
	u32 cfa;
};

/* The area that the last address was in. */
struct user_unwind_place {
	u32 code_map;
	u64 start, bytes;
	const struct unwind_table *table;
	u64 to_row; /* to be added to an address */
};

/* Returns the place to begin with in an address space. Any context. */
static inline struct user_unwind_place user_unwind_begin(const struct profile_mm *pm)
{
	return (struct user_unwind_place){ .code_map = profile_code_map(pm) };
}

#ifdef CONFIG_PROFILE_IMAGES
/* Returns whether there may be rules (profile.unwind=on). Any context. */
bool user_unwind_is_on(void);
/*
 * Returns the rule at an address of code of the address space. For a caller, pass the return
 * address minus 1. Any context, NMIs included.
 */
struct user_unwind user_unwind(struct user_unwind_place *place, u64 addr);
#else
#define user_unwind_is_on() false
static inline struct user_unwind user_unwind(struct user_unwind_place *place, u64 addr)
{
	return (struct user_unwind){ UNWIND_UNKNOWN };
}
#endif

#endif
