/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of fuzz.c, with the kinds of their arguments, which fuzz.h describes. calls[] has those
 * whose arguments need care; all_calls[] has every call of the kernel's own table, with kinds that
 * follow from its types.
 */
#ifndef TESTS_USER_FUZZ_CALLS_H
#define TESTS_USER_FUZZ_CALLS_H

#include <generated/syscalls.h>
#include <string.h>
#include <sys/syscall.h>

struct call {
	int nr;
	const char *args;
};

static const struct call calls[] = {
	{ SYS_read, "fpn" },
	{ SYS_write, "fpn" },
	{ SYS_open, "Pnn" },
	{ SYS_close, "f" },
	{ SYS_stat, "Pp" },
	{ SYS_fstat, "fp" },
	{ SYS_lstat, "Pp" },
	{ SYS_lseek, "fnn" },
	{ SYS_mprotect, "arn" },
	{ SYS_munmap, "ar" },
	{ SYS_madvise, "arn" },
	{ SYS_rt_sigaction, "xppn" },
	{ SYS_rt_sigprocmask, "nMpn" },
	{ SYS_ioctl, "fnp" },
	{ SYS_pread64, "fpnn" },
	{ SYS_pwrite64, "fpnn" },
	{ SYS_readv, "fpn" },
	{ SYS_writev, "fpn" },
	{ SYS_access, "Pn" },
	{ SYS_dup, "f" },
	{ SYS_dup2, "ff" },
	{ SYS_dup3, "ffn" },
	{ SYS_nanosleep, "Tp" },
	{ SYS_clock_nanosleep, "nnTp" },
	{ SYS_execve, "Ppp" },
	{ SYS_execve, "Pvv" },
	{ SYS_kill, "ns" },
	{ SYS_tkill, "ns" },
	{ SYS_tgkill, "nns" },
	{ SYS_fcntl, "fnn" },
	{ SYS_truncate, "Pn" },
	{ SYS_ftruncate, "fn" },
	{ SYS_getdents64, "fpn" },
	{ SYS_getcwd, "pn" },
	{ SYS_chdir, "P" },
	{ SYS_mkdir, "Pn" },
	{ SYS_rmdir, "P" },
	{ SYS_unlink, "P" },
	{ SYS_readlink, "Ppn" },
	{ SYS_readlinkat, "fPpn" },
	{ SYS_arch_prctl, "nk" },
	{ SYS_arch_prctl, "gp" },
	{ SYS_prctl, "nP" },
	{ SYS_futex, "pwnTpn" },
	{ SYS_futex, "pWnnpn" },
	{ SYS_futex, "pLnTpn" },
	{ SYS_sched_setaffinity, "nnp" },
	{ SYS_sched_setscheduler, "oqQ" },
	{ SYS_sched_setparam, "oQ" },
	{ SYS_openat, "fPnn" },
	{ SYS_newfstatat, "fPpn" },
	{ SYS_faccessat, "fPn" },
	{ SYS_faccessat2, "fPnn" },
	{ SYS_clone, "Fpppp" },
	{ SYS_clone3, "kn" },
	{ SYS_clone3, "hn" },
	{ SYS_fork, "" },
	{ SYS_vfork, "" },
	{ SYS_wait4, "npnp" },
	{ SYS_waitid, "nnpnp" },
	{ SYS_setpgid, "nn" },
	{ SYS_poll, "pnm" },
	{ SYS_ppoll, "pnTMn" },
	{ SYS_select, "npppT" },
	{ SYS_pselect6, "npppTp" },
	{ SYS_epoll_create, "n" },
	{ SYS_epoll_create1, "n" },
	{ SYS_epoll_ctl, "fnfp" },
	{ SYS_epoll_wait, "fpnm" },
	{ SYS_epoll_pwait, "fpnmMn" },
	{ SYS_epoll_pwait2, "fpnTMn" },
	{ SYS_timerfd_create, "nn" },
	{ SYS_timerfd_settime, "fnpp" },
	{ SYS_timerfd_gettime, "fp" },
	{ SYS_signalfd, "fMn" },
	{ SYS_signalfd4, "fMnn" },
	{ SYS_timer_create, "nkp" },
	{ SYS_timer_settime, "nnpp" },
	{ SYS_timer_gettime, "np" },
	{ SYS_timer_getoverrun, "n" },
	{ SYS_timer_delete, "n" },
	{ SYS_socket, "nnn" },
	{ SYS_socketpair, "nnnp" },
	{ SYS_bind, "fpn" },
	{ SYS_listen, "fn" },
	{ SYS_accept, "fpp" },
	{ SYS_accept4, "fppn" },
	{ SYS_connect, "fpn" },
	{ SYS_shutdown, "fn" },
	{ SYS_sendto, "fpnnpn" },
	{ SYS_recvfrom, "fpnnpp" },
	{ SYS_sendmsg, "fpn" },
	{ SYS_recvmsg, "fpn" },
	{ SYS_sendmmsg, "fpnn" },
	{ SYS_recvmmsg, "fpnnT" },
	{ SYS_getsockname, "fpp" },
	{ SYS_getpeername, "fpp" },
	{ SYS_getsockopt, "fnnpp" },
	{ SYS_setsockopt, "fnnpn" },
	{ SYS_memfd_create, "Pn" },
	{ SYS_eventfd, "n" },
	{ SYS_eventfd2, "nn" },
	{ SYS_pause, "" },
	{ SYS_rt_sigsuspend, "Mn" },
	{ SYS_rt_sigtimedwait, "MpTn" },
	{ SYS_rt_sigqueueinfo, "nsp" },
	{ SYS_rt_tgsigqueueinfo, "nnsp" },
	{ SYS_sigaltstack, "pp" },
	{ SYS_alarm, "n" },
	{ SYS_setitimer, "npp" },
	{ SYS_pipe, "p" },
	{ SYS_pipe2, "pn" },
	{ SYS_sendfile, "ffpc" },
	{ SYS_rename, "PP" },
	{ SYS_renameat2, "fPfPn" },
	{ SYS_link, "PP" },
	{ SYS_linkat, "fPfPn" },
	{ SYS_symlink, "PP" },
	{ SYS_symlinkat, "PfP" },
	{ SYS_mkdirat, "fPn" },
	{ SYS_unlinkat, "fPn" },
	{ SYS_fchdir, "f" },
	{ SYS_chmod, "Pn" },
	{ SYS_fchmod, "fn" },
	{ SYS_chown, "Pnn" },
	{ SYS_utimensat, "fPpn" },
	{ SYS_statfs, "Pp" },
	{ SYS_fstatfs, "fp" },
	{ SYS_close_range, "ffn" },
	{ SYS_syslog, "ypn" },
	{ SYS_prlimit64, "olpp" },
	{ SYS_setrlimit, "lp" },
	{ SYS_getrandom, "pnn" },
	{ SYS_getrandom, "pnz" },
	{ SYS_mount, "pPpnp" }, /* with paths, it would hide what the next round needs */
	{ SYS_umount2, "pn" },
};

/* The kind of an argument, by its type in arch/x86/entry/syscalls.tbl. */
enum {
	KIND_skip = 'n',
	KIND_raw = 'n',
	KIND_int = 'n',
	KIND_uint = 'n',
	KIND_long = 'n',
	KIND_size = 'n',
	KIND_hex = 'n',
	KIND_ptr = 'p',
	KIND_fd = 'f',
	KIND_dirfd = 'f',
	KIND_uid = 'n',
	KIND_sig = 's',
	KIND_mode = 'n',
	KIND_value = 'n',
	KIND_flags = 'n',
	KIND_path = 'P',
	KIND_str = 'P',
	KIND_in = 'p',
	KIND_out = 'p',
	KIND_outhex = 'p',
	KIND_cwd = 'p',
	KIND_array = 'p',
	KIND_open = 'n',
	KIND_openmode = 'n',
	KIND_openflags = 'n',
	KIND_mmap = 'n',
	KIND_mremap = 'n',
	KIND_ioctl = 'n',
	KIND_fcntl = 'n',
	KIND_clone = 'n',
	KIND_mknod = 'n',
	KIND_statx = 'n',
	KIND_futex = 'n',
	KIND_prctl = 'n',
	KIND_sched = 'n',
	KIND_clock = 'n',
	KIND_reboot = 'n',
	KIND_restart = 'n',
	KIND_sigreturn = 'n',
	KIND_membarrier = 'n',
	KIND_personality = 'n',
};

#define LIVE_ARG(type, with) KIND_##type
/* The first byte is there for calls without arguments. */
#define TABLE_CALL(nr, name, classes, ret, ...) { nr, (const char[8]){ 0, ##__VA_ARGS__ } + 1 },

static const struct call all_calls[] = { SYSCALL_DECODE_LIST(TABLE_CALL) };

static int has_own_line(unsigned int nr)
{
	switch (nr) {
	case SYS_exit:
	case SYS_exit_group:
	case SYS_mmap:
	case SYS_mremap:
	case SYS_brk:
	case SYS_rt_sigreturn:
	case SYS_reboot:
		return 1;
	}
	for (unsigned int i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if ((unsigned int)calls[i].nr == nr)
			return 1;
	}
	return 0;
}

#endif
