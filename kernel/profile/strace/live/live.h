/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_LIVE_H
#define PROFILE_LIVE_H

/*
 * strace trace output: a line in the log for each system call, like those of `strace -f`. The files
 * of this folder share this header. A call flows through them like this:
 *
 *	hooks (live.c) -> capture (args.c) -> ring (ring.c) -> text (decode.c, calls.c) -> log
 */

#include "../../report.h"
#include "os.h"
#include "xlat.h"

#define LIVE_MAX_ARGS 6

/* The classes of calls that a filter can name, a subset of strace's. */
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

/* The types of arguments, by the words of arch/x86/entry/syscalls.tbl. */
enum live_arg_type {
	LIVE_ARG_end,  /* no more arguments */
	LIVE_ARG_skip, /* not printed */
	LIVE_ARG_raw,  /* a call without a description: all six registers */

	LIVE_ARG_int,  /* 32 bits, signed */
	LIVE_ARG_uint, /* 32 bits, unsigned */
	LIVE_ARG_long, /* 64 bits, signed */
	LIVE_ARG_size, /* 64 bits, unsigned */
	LIVE_ARG_hex,  /* 64 bits, hexadecimal */
	LIVE_ARG_ptr,  /* an address, also of a structure; 0 is NULL */
	LIVE_ARG_fd,
	LIVE_ARG_dirfd, /* also AT_FDCWD */
	LIVE_ARG_uid,	/* a user or group, or -1 */
	LIVE_ARG_sig,
	LIVE_ARG_mode,	/* octal */
	LIVE_ARG_value, /* a value of an xlat table */
	LIVE_ARG_flags, /* flags of an xlat table */

	LIVE_ARG_path,	 /* a string, up to LIVE_PATH_BYTES */
	LIVE_ARG_str,	 /* a string, up to LIVE_STRING_BYTES */
	LIVE_ARG_in,	 /* a buffer that the call reads; `with` is the argument with its size */
	LIVE_ARG_out,	 /* a buffer that the call has written; it returns the size */
	LIVE_ARG_outhex, /* the same, printed as \x01\x02 */
	LIVE_ARG_cwd,	 /* a path that the call has written, unless it failed */
	LIVE_ARG_array,	 /* an address; [] if the call returns 0 */

	/* Types with rules of their own, in calls.c. Some print all arguments that follow. */
	LIVE_ARG_open,
	LIVE_ARG_openmode,
	LIVE_ARG_openflags, /* flags of open() without the access mode */
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
	u8 with; /* an xlat table, or the number of another argument */
};

#define LIVE_ARG(type, with)          \
	{                             \
		LIVE_ARG_##type, with \
	}

struct live_syscall {
	const char *name; /* NULL: a number without a name */
	u16 classes;
	u8 ret;
	struct live_arg args[LIVE_MAX_ARGS];
};

/* decode.c: returns the description of a call by its number, never NULL. */
const struct live_syscall *live_syscall(u64 nr);
#define LIVE_NR_SYSCALLS 512 /* larger numbers have no name */

/*
 * A captured call: the registers, and the memory that they point to, up to fixed limits. A ring
 * stores it up to the last byte in use.
 */
#define LIVE_PATH_BYTES	  256
#define LIVE_STRING_BYTES 32
#define LIVE_COMM_BYTES	  16 /* a thread's name, in prctl() */
#define LIVE_PR_SET_NAME  15
#define LIVE_PR_GET_NAME  16
#define LIVE_MAX_CHUNKS	  4
#define LIVE_DATA_BYTES	  (2 * LIVE_PATH_BYTES + 2 * LIVE_STRING_BYTES)

/* The captured memory of one argument, in bytes[] of the call. */
struct live_chunk {
	u8 arg;
	bool truncated;
	u16 at, len;
};

struct live_call {
	u64 args[LIVE_MAX_ARGS];
	s64 ret;
	u64 end_cycles;
	u64 ns;
	u64 start_ns; /* since 1970; 0: not printed */
	u32 nr;
	int tid;
	int cpu;       /* on which the call ended; -1: not printed */
	bool returned; /* false: the thread ended during the call */
	u8 nr_chunks;
	u16 nr_bytes;
	struct live_chunk chunks[LIVE_MAX_CHUNKS];
	char bytes[LIVE_DATA_BYTES];
};

static inline size_t live_call_bytes(const struct live_call *call)
{
	return offsetof(struct live_call, bytes) + call->nr_bytes;
}

/*
 * args.c: capture the user memory that the arguments of call->nr point to, before and after the
 * call. Process context; may sleep.
 */
void live_capture_entry(struct live_call *call);
void live_capture_exit(struct live_call *call);

/* Returns what was captured of an argument, or NULL. */
const struct live_chunk *live_chunk_of(const struct live_call *call, unsigned int arg);

/* A line that is being written. Text beyond its size is dropped and sets `truncated`. */
struct live_text {
	char *buf;
	size_t size, len;
	bool truncated;
};

void live_put(struct live_text *text, const char *s);
void live_printf(struct live_text *text, const char *fmt, ...) pf_printf(2, 3);

/* decode.c: writes the line of a call, without a newline. size is LIVE_LINE_BYTES or more. */
#define LIVE_LINE_BYTES 960
void live_decode(const struct live_call *call, char *line, size_t size);

void live_put_hex(struct live_text *text, u64 value);
void live_put_ptr(struct live_text *text, u64 value);
void live_put_signal(struct live_text *text, s32 value);
void live_put_flags(struct live_text *text, enum live_xlat_id xlat, u32 value);
void live_put_value(struct live_text *text, enum live_xlat_id xlat, u32 value);
/*
 * Puts the names of flags, separated by `|`, and returns the bits that have no name. *any says
 * whether text precedes the first name; set to true if any name was put.
 */
u32 live_put_names(struct live_text *text, enum live_xlat_id xlat, u32 value, bool *any);
/* Returns the name of a value, or NULL if the table does not have it. */
const char *live_value_name(enum live_xlat_id xlat, u32 value);
/* Puts the captured string of an argument or, if there is none, its address. */
void live_put_string(struct live_text *text, const struct live_call *call, unsigned int arg);

/*
 * calls.c: puts an argument that has rules of its own, the comma before it, and the arguments after
 * it that depend on it. Returns false if no other argument follows.
 */
bool live_put_special(struct live_text *text, const struct live_call *call, unsigned int arg);
/* Puts the return value of a call that has not failed. */
void live_put_ret(struct live_text *text, const struct live_call *call);

/* process.c: put all arguments of a call. Return false: no other argument follows. */
bool live_put_clone(struct live_text *text, const struct live_call *call);
bool live_put_futex(struct live_text *text, const struct live_call *call);
bool live_put_prctl(struct live_text *text, const struct live_call *call);
bool live_put_membarrier(struct live_text *text, const struct live_call *call);

/* filter.c: which calls are printed. */
#define LIVE_MAX_PIDS 8

struct live_filter {
	u64 calls[LIVE_NR_SYSCALLS / 64];
	bool unnamed; /* also calls whose number has no name */
	bool failed;  /* only calls that failed */
	bool wait;    /* if its ring is full, a thread waits instead of losing the line */
	bool time;    /* lines show when the call began */
	bool cpu;     /* lines show the CPU on which the call ended */
	u32 nr_pids;  /* 0: all processes */
	int pids[LIVE_MAX_PIDS];
	u64 slower_ns; /* only calls that took at least this long; 0: all */
};

/* Parses the words of a filter. Returns 0 or -OS_EINVAL. "off" is a filter without any call. */
int live_filter_parse(const char *words, struct live_filter *filter);

static inline bool live_filter_is_off(const struct live_filter *filter)
{
	for (u32 i = 0; i < LIVE_NR_SYSCALLS / 64; i++)
		if (filter->calls[i])
			return false;
	return !filter->unnamed;
}

/*
 * ring.c: calls that have ended, on their way to the log. Each CPU has one ring. Only threads in
 * process context write to it, and live_ring_put() does not sleep, so a ring has one writer at a
 * time.
 */
#define LIVE_RING_BYTES (64u * 1024)

/* Allocates rings that do not exist yet. Returns 0 or -OS_ENOMEM. Process context. */
int live_ring_init(void);
/* Returns false if the ring has no room; the caller counts the loss. Process context. */
bool live_ring_put(const struct live_call *call);
/*
 * Copies the call that ended first from the rings. Returns false if all rings are empty. It stays
 * there until live_ring_drop(), so that a reader that a panic stops in between loses no call.
 * Callers ensure that there is one reader at a time.
 */
bool live_ring_get(struct live_call *call);
/* Removes the call that live_ring_get() returned last. */
void live_ring_drop(const struct live_call *call);

#endif
