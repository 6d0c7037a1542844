/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_LIVE_H
#define PROFILE_LIVE_H

/*
 * Live lines: what the files live*.c share. Data flows hooks (live.c) -> capture (live_args.c) ->
 * ring (live_ring.c) -> text (live_decode.c, live_calls.c) -> log.
 */

#include "internal.h"
#include "live_sets.h"

#define LIVE_MAX_ARGS 6

/* Classes of calls: those strace has, as far as there is a need. */
#define LIVE_CLASSES(C) \
	C(file) C(desc) C(memory) C(process) C(signal) C(network) C(ipc) C(creds) C(clock)

enum {
#define LIVE_CLASS_BIT(name) LIVE_CLASS_BIT_##name,
	LIVE_CLASSES(LIVE_CLASS_BIT)
#undef LIVE_CLASS_BIT
};

enum {
#define LIVE_CLASS(name) LIVE_CLASS_##name = 1 << LIVE_CLASS_BIT_##name,
	LIVE_CLASSES(LIVE_CLASS)
#undef LIVE_CLASS
};

/* How arguments are shown; the words of arch/x86/entry/syscalls.tbl. */
enum live_arg_type {
	LIVE_ARG_end,  /* there are no more */
	LIVE_ARG_skip, /* is not shown */
	LIVE_ARG_raw,  /* all six registers, and nothing is known of them */

	LIVE_ARG_int,  /* 32 bits with a sign */
	LIVE_ARG_uint, /* 32 bits without */
	LIVE_ARG_long, /* 64 bits with a sign */
	LIVE_ARG_size, /* 64 bits without */
	LIVE_ARG_hex,  /* 64 bits, hexadecimal */
	LIVE_ARG_ptr,  /* an address: NULL for 0; also that of a structure */
	LIVE_ARG_fd,
	LIVE_ARG_dirfd, /* also AT_FDCWD */
	LIVE_ARG_uid,	/* user or group, or -1 */
	LIVE_ARG_sig,
	LIVE_ARG_mode, /* octal */
	LIVE_ARG_val,  /* one of a set */
	LIVE_ARG_set,  /* flags of a set */

	LIVE_ARG_path,	 /* a string, up to LIVE_PATH_BYTES of it */
	LIVE_ARG_str,	 /* up to LIVE_STRING_BYTES of it */
	LIVE_ARG_in,	 /* bytes; their number is the argument that goes with it */
	LIVE_ARG_out,	 /* as many bytes as the call returns */
	LIVE_ARG_outhex, /* the same, as \x01\x02 */
	LIVE_ARG_cwd,	 /* a path, if the call is no error */
	LIVE_ARG_array,	 /* an address, but [] if the call returns 0 */

	/* Those with rules of their own, in live_calls.c. Some take all arguments that follow. */
	LIVE_ARG_open,
	LIVE_ARG_openmode,
	LIVE_ARG_openflags, /* without access mode */
	LIVE_ARG_mmap,
	LIVE_ARG_mremap,
	LIVE_ARG_ioctl,
	LIVE_ARG_fcntl,
	LIVE_ARG_clone,
	LIVE_ARG_mknod,
	LIVE_ARG_statx,
	LIVE_ARG_futex,
	LIVE_ARG_prctl,
	LIVE_ARG_sched,
	LIVE_ARG_clock,
	LIVE_ARG_reboot,
	LIVE_ARG_restart,
	LIVE_ARG_sigreturn,
	LIVE_ARG_membarrier,
	LIVE_ARG_personality,
};

enum live_ret_type {
	LIVE_RET_dec,
	LIVE_RET_hex,
	LIVE_RET_oct,
	LIVE_RET_sig,
	LIVE_RET_sched,
	LIVE_RET_personality,
};

struct live_arg {
	u8 type;
	u8 with; /* a set, or another argument */
};

#define LIVE_ARG(type, with)          \
	{                             \
		LIVE_ARG_##type, with \
	}

struct live_syscall {
	const char *name; /* NULL: the number has none */
	u16 classes;
	u8 ret;
	struct live_arg args[LIVE_MAX_ARGS];
};

/* live_decode.c. By number, from the system call table; never NULL. */
const struct live_syscall *live_syscall(u64 nr);
#define LIVE_NR_SYSCALLS 512 /* numbers beyond have no name */

/*
 * A call as it is caught: registers, and what they point to. Bounded whatever they say. The ring
 * carries it up to the last byte in use.
 */
#define LIVE_PATH_BYTES	  256
#define LIVE_STRING_BYTES 32
#define LIVE_COMM_BYTES	  16 /* of prctl */
#define LIVE_PR_SET_NAME  15
#define LIVE_PR_GET_NAME  16
#define LIVE_MAX_PIECES	  4
#define LIVE_DATA_BYTES	  (2 * LIVE_PATH_BYTES + 2 * LIVE_STRING_BYTES)

struct live_piece {
	u8 arg;
	bool cut; /* there was more */
	u16 at, len;
};

struct live_call {
	u64 args[LIVE_MAX_ARGS];
	s64 ret;
	u64 end_cycles;
	u64 ns;
	u32 nr;
	int tid;
	bool returned; /* false: the thread ended in it */
	u8 nr_pieces;
	u16 nr_bytes;
	struct live_piece pieces[LIVE_MAX_PIECES];
	char bytes[LIVE_DATA_BYTES];
};

static inline size_t live_call_bytes(const struct live_call *call)
{
	return offsetof(struct live_call, bytes) + call->nr_bytes;
}

/*
 * live_args.c: what the arguments of call->nr point to, before and after the call. Process context,
 * may sleep: reads user memory.
 */
void live_capture_entry(struct live_call *call);
void live_capture_exit(struct live_call *call);

/* What was caught of an argument, or NULL. */
const struct live_piece *live_piece_of(const struct live_call *call, unsigned int arg);

/* A line as it is written. What does not fit is left out, and cut says so. */
struct live_text {
	char *buf;
	size_t size, len;
	bool cut;
};

void live_put(struct live_text *text, const char *s);
void live_printf(struct live_text *text, const char *fmt, ...) __printf(2, 3);

/* live_decode.c: the whole line, without newline. size: at least LIVE_LINE_BYTES. */
#define LIVE_LINE_BYTES 960
void live_decode(const struct live_call *call, char *line, size_t size);

void live_put_hex(struct live_text *text, u64 value); /* 0 for 0 */
void live_put_ptr(struct live_text *text, u64 value);
void live_put_signal(struct live_text *text, s32 value);
void live_put_flags(struct live_text *text, enum live_set_id set, u32 value);
void live_put_value(struct live_text *text, enum live_set_id set, u32 value);
/* The flags alone, with a | before each that is not the first; the rest comes back. */
u32 live_put_names(struct live_text *text, enum live_set_id set, u32 value, bool *any);
/* NULL: the set has no such value. */
const char *live_value_name(enum live_set_id set, u32 value);
/* What was caught of the argument, or its address. */
void live_put_string(struct live_text *text, const struct live_call *call, unsigned int arg);

/*
 * live_calls.c: an argument with rules of its own, and whatever it takes of those that follow.
 * Puts the comma before each argument but the first itself. False: no argument follows.
 */
bool live_put_special(struct live_text *text, const struct live_call *call, unsigned int arg);
/* A return value that means more than its number. */
void live_put_ret(struct live_text *text, const struct live_call *call);

/* live_process.c: all arguments of these. */
bool live_put_clone(struct live_text *text, const struct live_call *call);
bool live_put_futex(struct live_text *text, const struct live_call *call);
bool live_put_prctl(struct live_text *text, const struct live_call *call);
bool live_put_membarrier(struct live_text *text, const struct live_call *call);

/*
 * live_filter.c: which calls are shown. Words with commas or spaces between them; see README.md.
 */
#define LIVE_MAX_PIDS 8

struct live_filter {
	u64 calls[LIVE_NR_SYSCALLS / 64];
	bool unnamed; /* numbers without a name, too */
	bool failed;  /* errors only */
	bool wait;    /* a thread waits rather than lose a line */
	u32 nr_pids;  /* 0: all */
	int pids[LIVE_MAX_PIDS];
	u64 slower_ns; /* only those that took longer; 0: all */
};

/* 0 or -EINVAL. Off: no call at all. */
int live_filter_parse(const char *words, struct live_filter *filter);

static inline bool live_filter_is_off(const struct live_filter *filter)
{
	for (u32 i = 0; i < LIVE_NR_SYSCALLS / 64; i++)
		if (filter->calls[i])
			return false;
	return !filter->unnamed;
}

/*
 * live_ring.c: finished calls on their way to the log. One ring for each CPU; only threads in
 * process context write, and no writer sleeps, so that a CPU has one at a time.
 */
#define LIVE_RING_BYTES (64u * 1024)

int live_ring_init(void); /* 0, or -ENOMEM; once is enough. Process context. */
/* False: no room. Not counted here. */
bool live_ring_put(const struct live_call *call);
/*
 * The call that ended first, of all rings, into *call; false when they are empty. One reader at a
 * time.
 */
bool live_ring_get(struct live_call *call);

/* live.c, for strace.c's hooks. */
extern struct static_key live_key;

/* strace_control.c: process context; no effect when it is so already. */
void strace_switch_live(bool on);

static __always_inline bool live_is_on(void)
{
	return IS_ENABLED(CONFIG_PROFILE_STRACE_LIVE) && unlikely(static_key_on(&live_key));
}

void live_enter(u64 nr);
void live_exit(long ret);
void live_task_exit(struct profile_task *pt);
/* All lines of calls that have ended are in the log: process context, or a panic. */
void live_flush(void);
void live_init(void);

#endif
