// SPDX-License-Identifier: BSD-2-Clause
/*
 * Decodes arguments with special rules: their format, or the number of arguments, depends on
 * another argument. The names of flags and values are in xlat.h. process.c has the decoders of
 * clone, futex, prctl and membarrier.
 */

#include "live.h"

#define O_CREAT_BIT	  0100
#define O_TMPFILE_BIT	  020000000
#define MAP_TYPE_MASK	  0xf
#define MAP_HUGE_SHIFT	  26
#define MREMAP_HAS_NEW	  3 /* MREMAP_MAYMOVE | MREMAP_FIXED */
#define RESET_ON_FORK	  0x40000000
#define STATX_SYNC_MASK	  0x6000
#define REBOOT_RESTART2	  0xa1b2c3d4
#define PERSONALITY_QUERY 0xffffffff
#define PERSONALITY_MASK  0xff
#define PR_GET_DUMPABLE	  3

static void put_open(struct live_text *text, u32 flags)
{
	bool any = true;
	u32 rest;

	live_put_value(text, LIVE_XLAT_accmode, flags & 3);
	rest = live_put_names(text, LIVE_XLAT_open, flags & ~3u, &any);
	if (rest)
		live_printf(text, "|0x%x", rest);
}

/* Puts the mode if the flags before it may create a file; otherwise open() ignores it. */
static bool put_openmode(struct live_text *text, const struct live_call *call, unsigned int i)
{
	if (i && call->args[i - 1] & (O_CREAT_BIT | O_TMPFILE_BIT))
		live_printf(text, (u16)call->args[i] >= 0100 ? ", 0%o" : ", %03o",
			    (u16)call->args[i]);
	return false;
}

static void put_mmap(struct live_text *text, u32 flags)
{
	u32 huge = flags >> MAP_HUGE_SHIFT, rest = flags & ~MAP_TYPE_MASK;
	bool any = true;

	live_put_value(text, LIVE_XLAT_map_type, flags & MAP_TYPE_MASK);
	rest = live_put_names(text, LIVE_XLAT_map, rest & ((1u << MAP_HUGE_SHIFT) - 1), &any);
	if (rest)
		live_printf(text, "|0x%x", rest);
	if (huge)
		live_printf(text, "|%u<<MAP_HUGE_SHIFT", huge);
}

static bool put_mremap(struct live_text *text, const struct live_call *call, unsigned int i)
{
	live_put_flags(text, LIVE_XLAT_mremap, call->args[i]);
	if (i + 1 < LIVE_MAX_ARGS && (call->args[i] & MREMAP_HAS_NEW) == MREMAP_HAS_NEW) {
		live_put(text, ", ");
		live_put_ptr(text, call->args[i + 1]);
	}
	return false;
}

static void put_unknown_ioctl(struct live_text *text, u32 request)
{
	static const char *const directions[] = { "_IOC_NONE", "_IOC_WRITE", "_IOC_READ",
						  "_IOC_READ|_IOC_WRITE" };
	u32 parts[] = { request >> 8 & 0xff, request & 0xff, request >> 16 & 0x3fff };

	live_printf(text, "_IOC(%s", directions[request >> 30]);
	for (u32 i = 0; i < PF_ARRAY_SIZE(parts); i++) {
		live_put(text, ", ");
		live_put_hex(text, parts[i]);
	}
	live_put(text, ")");
}

static const char *ioctl_name(u32 request)
{
	switch (request) {
#define IOCTL(value, name) \
	case value:        \
		return name;
		LIVE_IOCTLS(IOCTL)
	}
	return NULL;
}

static bool put_ioctl(struct live_text *text, const struct live_call *call, unsigned int i)
{
	u64 arg = i + 1 < LIVE_MAX_ARGS ? call->args[i + 1] : 0;
	u32 request = call->args[i];
	const char *name = ioctl_name(request);

	if (name)
		live_put(text, name);
	else
		put_unknown_ioctl(text, request);
	switch (request) {
	case 0x540c: /* TIOCEXCL */
	case 0x540d: /* TIOCNXCL */
	case 0x541d: /* TIOCCONS */
	case 0x541f: /* TIOCSSERIAL */
	case 0x5422: /* TIOCNOTTY */
	case 0x5427: /* TIOCSBRK */
	case 0x5428: /* TIOCCBRK */
	case 0x5437: /* TIOCVHANGUP */
	case 0x5450: /* FIONCLEX */
	case 0x5451: /* FIOCLEX */
		return false;
	case 0x5409: /* TCSBRK */
	case 0x540e: /* TIOCSCTTY */
	case 0x5425: /* TCSBRKP */
		live_printf(text, ", %d", (s32)arg);
		return false;
	}
	live_put(text, ", ");
	if (request == 0x540a)
		live_put_value(text, LIVE_XLAT_tcxonc, arg);
	else if (request == 0x540b)
		live_put_value(text, LIVE_XLAT_tcflsh, arg);
	else if (name)
		live_put_ptr(text, arg);
	else
		live_put_hex(text, arg);
	return false;
}

enum fcntl_command {
	F_DUPFD = 0,
	F_GETFD = 1,
	F_SETFD = 2,
	F_GETFL = 3,
	F_SETFL = 4,
	F_GETLK = 5,
	F_SETLKW = 7,
	F_SETOWN = 8,
	F_GETOWN = 9,
	F_SETSIG = 10,
	F_GETSIG = 11,
	F_SETLEASE = 1024,
	F_GETLEASE = 1025,
	F_NOTIFY = 1026,
	F_DUPFD_CLOEXEC = 1030,
	F_SETPIPE_SZ = 1031,
	F_GETPIPE_SZ = 1032,
	F_ADD_SEALS = 1033,
	F_GET_SEALS = 1034,
};

static void put_fcntl_arg(struct live_text *text, u32 command, u64 arg)
{
	switch (command) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
	case F_SETPIPE_SZ:
		live_printf(text, "%llu", (unsigned long long)arg);
		break;
	case F_SETOWN:
		live_printf(text, "%d", (s32)arg);
		break;
	case F_SETSIG:
		live_put_signal(text, arg);
		break;
	case F_SETFD:
		live_put_flags(text, LIVE_XLAT_fdflags, arg);
		break;
	case F_SETFL:
		put_open(text, arg);
		break;
	case F_SETLEASE:
		live_put_value(text, LIVE_XLAT_lease, arg);
		break;
	case F_NOTIFY:
		live_put_flags(text, LIVE_XLAT_notify, arg);
		break;
	case F_ADD_SEALS:
		live_put_flags(text, LIVE_XLAT_seals, arg);
		break;
	default:
		if (live_value_name(LIVE_XLAT_fcntl, command))
			live_put_ptr(text, arg);
		else
			live_put_hex(text, arg);
		break;
	}
}

static bool put_fcntl(struct live_text *text, const struct live_call *call, unsigned int i)
{
	u32 command = call->args[i];

	live_put_value(text, LIVE_XLAT_fcntl, command);
	switch (command) {
	case F_GETFD:
	case F_GETFL:
	case F_GETOWN:
	case F_GETSIG:
	case F_GETLEASE:
	case F_GETPIPE_SZ:
	case F_GET_SEALS:
		return false;
	}
	live_put(text, ", ");
	if (i + 1 < LIVE_MAX_ARGS)
		put_fcntl_arg(text, command, call->args[i + 1]);
	return false;
}

/* Puts mode and device. As in strace, a mode with an unknown file type is one octal number. */
static bool put_mknod(struct live_text *text, const struct live_call *call, unsigned int i)
{
	u64 dev = i + 1 < LIVE_MAX_ARGS ? call->args[i + 1] : 0;
	u16 mode = call->args[i], type = mode & 0170000;
	const char *name = live_value_name(LIVE_XLAT_file_type, type);
	bool any = false;

	if (type && !name) {
		live_printf(text, "0%o", mode);
		return false;
	}
	if (name) {
		live_put(text, name);
		any = true;
	}
	live_put_names(text, LIVE_XLAT_mode_bits, mode & 07000, &any);
	live_put(text, any ? "|" : "");
	live_printf(text, (mode & 0777) >= 0100 ? "0%o" : "%03o", mode & 0777);
	if (type == 0020000 || type == 0060000) {
		live_put(text, ", makedev(");
		live_put_hex(text, (dev >> 8 & 0xfff) | (dev >> 32 & 0xfffff000));
		live_put(text, ", ");
		live_put_hex(text, (dev & 0xff) | (dev >> 12 & 0xffffff00));
		live_put(text, ")");
	}
	return false;
}

static bool put_statx(struct live_text *text, u32 flags)
{
	bool any = true;
	u32 rest;

	live_put_flags(text, LIVE_XLAT_statx_sync, flags & STATX_SYNC_MASK);
	rest = live_put_names(text, LIVE_XLAT_at, flags & ~STATX_SYNC_MASK, &any);
	if (rest)
		live_printf(text, "|0x%x", rest);
	return true;
}

static void put_sched(struct live_text *text, u32 policy)
{
	live_put_value(text, LIVE_XLAT_sched, policy & ~RESET_ON_FORK);
	if (policy & RESET_ON_FORK)
		live_put(text, "|SCHED_RESET_ON_FORK");
}

static void put_personality(struct live_text *text, u32 value)
{
	u32 rest = value & ~PERSONALITY_MASK;
	bool any = true;

	if (value == PERSONALITY_QUERY) {
		live_put(text, "0xffffffff");
		return;
	}
	live_put_value(text, LIVE_XLAT_personality, value & PERSONALITY_MASK);
	rest = live_put_names(text, LIVE_XLAT_personality_flags, rest, &any);
	if (rest)
		live_printf(text, "|0x%x", rest);
}

/*
 * args[0] is the number of the resumed call plus 1, or 0 if unknown: see
 * profile_strace_enter_live().
 */
static void put_restart(struct live_text *text, const struct live_call *call)
{
	const char *name = call->args[0] ? live_syscall(call->args[0] - 1)->name : NULL;

	live_printf(text, "<... resuming interrupted %s ...>", name ?: "system call");
}

static bool put_reboot(struct live_text *text, const struct live_call *call, unsigned int i)
{
	live_put_value(text, LIVE_XLAT_reboot, call->args[i]);
	if ((u32)call->args[i] == REBOOT_RESTART2 && i + 1 < LIVE_MAX_ARGS) {
		live_put(text, ", ");
		live_put_ptr(text, call->args[i + 1]);
	}
	return false;
}

bool live_put_special(struct live_text *text, const struct live_call *call, unsigned int i)
{
	u64 value = call->args[i];
	u8 type = live_syscall(call->nr)->args[i].type;

	if (type == LIVE_ARG_openmode)
		return put_openmode(text, call, i);
	live_put(text, i ? ", " : "");
	switch (type) {
	case LIVE_ARG_open:
		put_open(text, value);
		return true;
	case LIVE_ARG_openflags:
		live_put_flags(text, LIVE_XLAT_open, value);
		return true;
	case LIVE_ARG_mmap:
		put_mmap(text, value);
		return true;
	case LIVE_ARG_mremap:
		return put_mremap(text, call, i);
	case LIVE_ARG_ioctl:
		return put_ioctl(text, call, i);
	case LIVE_ARG_fcntl:
		return put_fcntl(text, call, i);
	case LIVE_ARG_clone:
		return live_put_clone(text, call);
	case LIVE_ARG_mknod:
		return put_mknod(text, call, i);
	case LIVE_ARG_statx:
		return put_statx(text, value);
	case LIVE_ARG_futex:
		return live_put_futex(text, call);
	case LIVE_ARG_prctl:
		return live_put_prctl(text, call);
	case LIVE_ARG_sched:
		put_sched(text, value);
		return true;
	case LIVE_ARG_clock:
		live_put_value(text, LIVE_XLAT_clock, value);
		return true;
	case LIVE_ARG_reboot:
		return put_reboot(text, call, i);
	case LIVE_ARG_membarrier:
		return live_put_membarrier(text, call);
	case LIVE_ARG_personality:
		put_personality(text, value);
		return true;
	case LIVE_ARG_restart:
		put_restart(text, call);
		return false;
	case LIVE_ARG_sigreturn:
		live_put(text, "{mask=");
		live_put_ptr(text, value);
		live_put(text, "}");
		return false;
	}
	return false;
}

static void put_fcntl_ret(struct live_text *text, const struct live_call *call)
{
	bool any = false;

	switch ((u32)call->args[1]) {
	case F_GETFD:
		live_put_hex(text, call->ret);
		if (call->ret) {
			live_put(text, " (flags ");
			live_put_names(text, LIVE_XLAT_fdflags, call->ret, &any);
			live_put(text, ")");
		}
		break;
	case F_GETFL:
		live_put_hex(text, call->ret);
		live_put(text, " (flags ");
		put_open(text, call->ret);
		live_put(text, ")");
		break;
	default:
		live_printf(text, "%lld", (long long)call->ret);
		break;
	}
}

void live_put_ret(struct live_text *text, const struct live_call *call)
{
	const struct live_syscall *sc = live_syscall(call->nr);

	if (sc->args[1].type == LIVE_ARG_fcntl) {
		put_fcntl_ret(text, call);
		return;
	}
	if (sc->ret == LIVE_RET_hex) {
		live_put_hex(text, call->ret);
		return;
	}
	if (sc->ret == LIVE_RET_oct) {
		live_printf(text, call->ret >= 0100 ? "0%llo" : "%03llo",
			    (unsigned long long)call->ret);
		return;
	}
	live_printf(text, "%lld", (long long)call->ret);
	if (sc->args[0].type == LIVE_ARG_prctl && call->args[0] == PR_GET_DUMPABLE) {
		live_put(text, " (");
		live_put_value(text, LIVE_XLAT_dumpable, call->ret);
		live_put(text, ")");
	}
	if (sc->ret == LIVE_RET_dec)
		return;
	live_put(text, " (");
	if (sc->ret == LIVE_RET_sig)
		live_put_signal(text, call->ret);
	else if (sc->ret == LIVE_RET_sched)
		put_sched(text, call->ret);
	else
		put_personality(text, call->ret);
	live_put(text, ")");
}
