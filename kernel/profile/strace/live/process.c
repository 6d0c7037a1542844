// SPDX-License-Identifier: BSD-2-Clause
/*
 * Decodes clone, futex, prctl and membarrier, whose first arguments decide which others exist and
 * what they mean. calls.c decodes the simpler calls.
 */

#include "live.h"

#define FUTEX_PRIVATE	 128
#define FUTEX_CLOCK	 256
#define FUTEX_BITSET_ALL 0xffffffff
#define MEMBARRIER_RSEQ	 0x80
#define PR_GET_DUMPABLE	 3

/* Flags of clone() by which an argument is used. */
#define CLONE_HAS_PARENT_TID (0x1000 | 0x100000)    /* CLONE_PIDFD, CLONE_PARENT_SETTID */
#define CLONE_HAS_TLS	     0x80000		    /* CLONE_SETTLS */
#define CLONE_HAS_CHILD_TID  (0x1000000 | 0x200000) /* CLONE_CHILD_SETTID, _CLEARTID */

enum futex_command {
	FUTEX_WAIT,
	FUTEX_WAKE,
	FUTEX_FD,
	FUTEX_REQUEUE,
	FUTEX_CMP_REQUEUE,
	FUTEX_WAKE_OP,
	FUTEX_LOCK_PI,
	FUTEX_UNLOCK_PI,
	FUTEX_TRYLOCK_PI,
	FUTEX_WAIT_BITSET,
	FUTEX_WAKE_BITSET,
	FUTEX_WAIT_REQUEUE_PI,
	FUTEX_CMP_REQUEUE_PI,
	FUTEX_LOCK_PI2,
};

/* Puts clone(flags, stack, parent_tid, child_tid, tls) in the order in which strace does. */
bool live_put_clone(struct live_text *text, const struct live_call *call)
{
	u32 flags = call->args[0], signal = flags & 0xff;
	bool any = false;
	u32 rest;

	live_put(text, "child_stack=");
	live_put_ptr(text, call->args[1]);
	live_put(text, ", flags=");
	rest = live_put_names(text, LIVE_XLAT_clone, flags & ~0xffu, &any);
	if (rest)
		live_printf(text, any ? "|0x%x" : "0x%x /* CLONE_??? */", rest);
	if (signal) {
		live_put(text, any || rest ? "|" : "");
		live_put_signal(text, signal);
	} else if (!any && !rest) {
		live_put(text, "0");
	}
	if (flags & CLONE_HAS_PARENT_TID) {
		live_put(text, ", parent_tid=");
		live_put_ptr(text, call->args[2]);
	}
	if (flags & CLONE_HAS_TLS) {
		live_put(text, ", tls=");
		live_put_hex(text, call->args[4]);
	}
	if (flags & CLONE_HAS_CHILD_TID) {
		live_put(text, ", child_tidptr=");
		live_put_ptr(text, call->args[3]);
	}
	return false;
}

static void put_futex_op(struct live_text *text, u32 op)
{
	const char *name = live_value_name(LIVE_XLAT_futex, op & ~(FUTEX_PRIVATE | FUTEX_CLOCK));

	if (!name) {
		live_put_value(text, LIVE_XLAT_futex, op);
		return;
	}
	live_put(text, name);
	if (op & FUTEX_PRIVATE)
		live_put(text, strcmp(name, "FUTEX_FD") ? "_PRIVATE" : "|FUTEX_PRIVATE_FLAG");
	if (op & FUTEX_CLOCK)
		live_put(text, "|FUTEX_CLOCK_REALTIME");
}

static void put_bitset(struct live_text *text, u32 bits)
{
	live_put(text, ", ");
	if (bits == FUTEX_BITSET_ALL)
		live_put(text, "FUTEX_BITSET_MATCH_ANY");
	else
		live_put_hex(text, bits);
}

static void put_wake_op(struct live_text *text, u32 value)
{
	live_put(text, ", ");
	if (value >> 31)
		live_put(text, "FUTEX_OP_OPARG_SHIFT<<28|");
	live_put_value(text, LIVE_XLAT_futex_op, value >> 28 & 7);
	live_put(text, "<<28|");
	live_printf(text, value >> 12 & 0xfff ? "0x%x<<12|" : "%u<<12|", value >> 12 & 0xfff);
	live_put_value(text, LIVE_XLAT_futex_cmp, value >> 24 & 0xf);
	live_put(text, "<<24|");
	live_put_hex(text, value & 0xfff);
}

static void put_comma_ptr(struct live_text *text, u64 value)
{
	live_put(text, ", ");
	live_put_ptr(text, value);
}

/* Puts futex(uaddr, op, val, timeout or val2, uaddr2, val3): the arguments that op uses. */
bool live_put_futex(struct live_text *text, const struct live_call *call)
{
	const u64 *args = call->args;
	u32 command = args[1] & ~(FUTEX_PRIVATE | FUTEX_CLOCK);

	live_put_ptr(text, args[0]);
	live_put(text, ", ");
	put_futex_op(text, args[1]);
	if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2) {
		put_comma_ptr(text, args[3]);
		return false;
	}
	if (command == FUTEX_UNLOCK_PI || command == FUTEX_TRYLOCK_PI)
		return false;
	live_printf(text, ", %u", (u32)args[2]);
	switch (command) {
	case FUTEX_WAKE:
	case FUTEX_FD:
		break;
	case FUTEX_WAIT:
		put_comma_ptr(text, args[3]);
		break;
	case FUTEX_WAIT_BITSET:
		put_comma_ptr(text, args[3]);
		put_bitset(text, args[5]);
		break;
	case FUTEX_WAKE_BITSET:
		put_bitset(text, args[5]);
		break;
	case FUTEX_WAIT_REQUEUE_PI:
		put_comma_ptr(text, args[3]);
		put_comma_ptr(text, args[4]);
		break;
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
	case FUTEX_CMP_REQUEUE_PI:
	case FUTEX_WAKE_OP:
		live_printf(text, ", %u", (u32)args[3]);
		put_comma_ptr(text, args[4]);
		if (command == FUTEX_WAKE_OP)
			put_wake_op(text, args[5]);
		else if (command != FUTEX_REQUEUE)
			live_printf(text, ", %u", (u32)args[5]);
		break;
	default:
		put_comma_ptr(text, args[3]);
		put_comma_ptr(text, args[4]);
		live_put(text, ", ");
		live_put_hex(text, (u32)args[5]);
		break;
	}
	return false;
}

enum prctl_form {
	PRCTL_ALL, /* four hexadecimal numbers */
	PRCTL_NONE,
	PRCTL_PTR,
	PRCTL_NUMBER,
	PRCTL_NUMBER_ALL, /* one decimal and three hexadecimal numbers */
	PRCTL_SIGNAL,
	PRCTL_STRING,
	PRCTL_DUMPABLE,
	PRCTL_TSC,
};

/* The commands that shells and C libraries use. The others print all arguments. */
static const u8 prctl_forms[] = {
	[1] = PRCTL_SIGNAL, /* PR_SET_PDEATHSIG */
	[2] = PRCTL_PTR,    /* PR_GET_PDEATHSIG */
	[PR_GET_DUMPABLE] = PRCTL_NONE,
	[4] = PRCTL_DUMPABLE, /* PR_SET_DUMPABLE */
	[5] = PRCTL_PTR,      /* PR_GET_UNALIGN */
	[7] = PRCTL_NONE,     /* PR_GET_KEEPCAPS */
	[8] = PRCTL_NUMBER,   /* PR_SET_KEEPCAPS */
	[13] = PRCTL_NONE,    /* PR_GET_TIMING */
	[14] = PRCTL_NUMBER,  /* PR_SET_TIMING */
	[LIVE_PR_SET_NAME] = PRCTL_STRING,
	[LIVE_PR_GET_NAME] = PRCTL_STRING,
	[21] = PRCTL_NONE,	 /* PR_GET_SECCOMP */
	[25] = PRCTL_PTR,	 /* PR_GET_TSC */
	[26] = PRCTL_TSC,	 /* PR_SET_TSC */
	[27] = PRCTL_NONE,	 /* PR_GET_SECUREBITS */
	[29] = PRCTL_NUMBER,	 /* PR_SET_TIMERSLACK */
	[30] = PRCTL_NONE,	 /* PR_GET_TIMERSLACK */
	[36] = PRCTL_NUMBER,	 /* PR_SET_CHILD_SUBREAPER */
	[37] = PRCTL_PTR,	 /* PR_GET_CHILD_SUBREAPER */
	[38] = PRCTL_NUMBER_ALL, /* PR_SET_NO_NEW_PRIVS */
	[41] = PRCTL_NUMBER_ALL, /* PR_SET_THP_DISABLE */
};

bool live_put_prctl(struct live_text *text, const struct live_call *call)
{
	const u64 *args = call->args;
	u32 command = args[0];
	u8 form = command < PF_ARRAY_SIZE(prctl_forms) ? prctl_forms[command] : PRCTL_ALL;

	live_put_value(text, LIVE_XLAT_prctl, command);
	if (form == PRCTL_NONE)
		return false;
	live_put(text, ", ");
	if (form == PRCTL_PTR)
		live_put_ptr(text, args[1]);
	else if (form == PRCTL_NUMBER || form == PRCTL_NUMBER_ALL)
		live_printf(text, "%llu", (unsigned long long)args[1]);
	else if (form == PRCTL_SIGNAL)
		live_put_signal(text, args[1]);
	else if (form == PRCTL_STRING)
		live_put_string(text, call, 1);
	else if (form == PRCTL_DUMPABLE)
		live_put_value(text, LIVE_XLAT_dumpable, args[1]);
	else if (form == PRCTL_TSC)
		live_put_value(text, LIVE_XLAT_tsc, args[1]);
	else
		live_put_hex(text, args[1]);
	if (form == PRCTL_ALL || form == PRCTL_NUMBER_ALL) {
		for (unsigned int i = 2; i < 5; i++) {
			live_put(text, ", ");
			live_put_hex(text, args[i]);
		}
	}
	return false;
}

bool live_put_membarrier(struct live_text *text, const struct live_call *call)
{
	live_put_flags(text, LIVE_XLAT_membarrier, call->args[0]);
	live_put(text, ", ");
	live_put_flags(text, LIVE_XLAT_membarrier_flags, call->args[1]);
	if ((u32)call->args[0] == MEMBARRIER_RSEQ)
		live_printf(text, ", %d", (s32)call->args[2]);
	return false;
}
