// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz <seed> <calls> <threads>: every thread makes as many system calls, drawn from the seed: all
 * numbers, with arguments that are good, bad or in between. What is left out is what would end or
 * stop the program, or pull its own memory from under it; threads and processes that only end are
 * made and end all the time. Passes when all calls have come back with a result Linux's could have.
 *
 * Pointers lead into an arena of pages that threads map, protect, unmap and fill at the same
 * time; around it is a wide margin without access. The fuzzer itself never touches the arena.
 *
 * The calls are made in rounds, each by a process of its own, whose first thread signals the
 * others all the time, so that no wait is for ever. The first process watches: it knows what each
 * thread is at, and says so when nothing moves any more. What is left of a round is killed, which
 * must work.
 *
 * Not for Linux: there, calls like reboot() do what they say.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "fuzz.h"
#include "run.h"

#define NR_ROUNDS 4
#define STUCK_MS  40000

static unsigned long nr_calls;
static int nr_done;

/* Shared with the first process: what each thread is at. */
static struct progress {
	volatile unsigned long nr_made, call;
} * progress;

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
	{ SYS_sched_setaffinity, "nnp" },
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
};

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

/* The same where a child comes back, too: that ends, and touches no stack, which may be none. */
static long invoke(struct thread *t, unsigned long nr)
{
	register unsigned long r10 asm("r10") = t->args[3];
	register unsigned long r8 asm("r8") = t->args[4];
	register unsigned long r9 asm("r9") = t->args[5];
	long ret;

	progress[t->index].call = nr;
	asm volatile("mov	%%rax, %%rbx\n"
		     "syscall\n"
		     "test	%%rax, %%rax\n"
		     "jnz	1f\n"
		     "cmp	$56, %%rbx\n" /* clone, fork, vfork */
		     "jb	1f\n"
		     "cmp	$58, %%rbx\n"
		     "jbe	2f\n"
		     "cmp	$435, %%rbx\n" /* clone3 */
		     "jne	1f\n"
		     "2:\n"
		     "mov	$60, %%eax\n" /* exit */
		     "xor	%%edi, %%edi\n"
		     "syscall\n"
		     "1:\n"
		     : "=a"(ret)
		     : "a"(nr), "D"(t->args[0]), "S"(t->args[1]), "d"(t->args[2]), "r"(r10),
		       "r"(r8), "r"(r9)
		     : "rbx", "rcx", "r11", "memory");
	return ret;
}

static long call_by_list(struct thread *t, unsigned long *nr)
{
	const struct call *call = &PICK(t, calls);
	unsigned long before = 0;

	for (int i = 0; i < 6; i++) {
		char kind = i < (int)strlen(call->args) ? call->args[i] : 'n';

		before = t->args[i] = argument(t, kind, before);
	}
	*nr = (unsigned int)call->nr;
	return invoke(t, *nr);
}

/* Any other number, with anything. */
static long call_by_number(struct thread *t, unsigned long *nr)
{
	*nr = below(t, 8) ? below(t, 600) : number(t);
	if (has_own_line(*nr))
		return 0;
	for (int i = 0; i < 6; i++)
		t->args[i] = below(t, 3) ? pointer(t) : number(t);
	return invoke(t, *nr);
}

static long call_mmap(struct thread *t)
{
	int fixed = !below(t, 3);
	long ret;

	t->args[0] = fixed ? arena_address(t) : below(t, 2) * arena_address(t);
	t->args[1] = fixed ? arena_range(t, t->args[0]) : number(t);
	t->args[2] = below(t, 16) ? below(t, 8) : number(t);
	t->args[3] = below(t, 16) ? 1 + below(t, 2) : number(t);
	t->args[3] |= below(t, 2) * MAP_ANONYMOUS;
	t->args[3] = (t->args[3] & ~(unsigned long)MAP_FIXED) | (fixed ? MAP_FIXED : 0);
	t->args[4] = descriptor(t);
	t->args[5] = below(t, 2) ? below(t, 8) * PAGE : number(t);
	ret = invoke(t, SYS_mmap);
	if (ret >= 0 && !((uintptr_t)ret >= arena && (uintptr_t)ret < arena + ARENA_BYTES))
		munmap((void *)ret, t->args[1]);
	return ret;
}

static long call_mremap(struct thread *t)
{
	long ret;

	t->args[0] = arena_address(t);
	t->args[1] = arena_range(t, t->args[0]);
	t->args[2] = below(t, 4) ? 1 + below(t, ARENA_BYTES) : number(t);
	t->args[3] = below(t, 4);
	t->args[4] = arena + below(t, ARENA_PAGES) * PAGE;
	if (t->args[3] & MREMAP_FIXED)
		t->args[2] = arena_range(t, t->args[4]);
	ret = invoke(t, SYS_mremap);
	if (ret >= 0 && !((uintptr_t)ret >= arena && (uintptr_t)ret < arena + ARENA_BYTES))
		munmap((void *)ret, t->args[2]);
	return ret;
}

/* A child returns from a signal that never came, by a frame of whatever lies in the arena. */
static long call_sigreturn(struct thread *t)
{
	long ret;

	asm volatile("syscall\n"
		     "test	%%eax, %%eax\n"
		     "jnz	1f\n"
		     "mov	%[frame], %%rsp\n"
		     "mov	$15, %%eax\n" /* rt_sigreturn */
		     "syscall\n"
		     "ud2\n"
		     "1:\n"
		     : "=a"(ret)
		     : "a"(SYS_fork), [frame] "r"(pointer(t))
		     : "rcx", "r11", "memory");
	return ret;
}

/* Never below what malloc() has. */
static long call_brk(struct thread *t)
{
	t->args[0] = below(t, 2) ? break_start + below(t, 64 * PAGE) : kernel_address(t);
	return invoke(t, SYS_brk);
}

/* A thread whose stack, TLS and words are anything; it registers a list of locks and ends. */
static long call_thread(struct thread *t)
{
	static const unsigned long flags[] = {
		0, 0x80000, 0x100000, 0x200000, 0x1000000, 0x1380000
	};
	unsigned long list = pointer(t);
	register unsigned long r10 asm("r10") = pointer(t);
	register unsigned long r8 asm("r8") = pointer(t);
	long ret;

	asm volatile("syscall\n"
		     "test	%%eax, %%eax\n"
		     "jnz	1f\n"
		     "mov	$273, %%eax\n" /* set_robust_list */
		     "mov	%[list], %%rdi\n"
		     "mov	$24, %%esi\n"
		     "syscall\n"
		     "mov	$60, %%eax\n" /* exit */
		     "syscall\n"
		     "1:\n"
		     : "=a"(ret)
		     : "a"(SYS_clone), "D"(CLONE_ALL_SHARED | PICK(t, flags)), "S"(pointer(t)),
		       "d"(pointer(t)), "r"(r10), "r"(r8), [list] "r"(list)
		     : "rcx", "r11", "memory");
	return ret;
}

static void check_result(struct thread *t, unsigned long nr, long ret)
{
	if (ret >= 0 || ret < -4095 || -ret <= MAX_ERRNO)
		return;
	printf("FAIL: call %lu (%lx %lx %lx %lx %lx %lx) returned %ld\n", nr, t->args[0],
	       t->args[1], t->args[2], t->args[3], t->args[4], t->args[5], ret);
	CHECK(0);
}

static void one_call(struct thread *t)
{
	unsigned long nr;
	long ret;

	switch (below(t, 64)) {
	case 0:
		nr = SYS_clone;
		if (below(t, 8))
			ret = call_thread(t);
		else
			ret = call_sigreturn(t);
		break;
	case 1:
		nr = SYS_brk;
		ret = call_brk(t);
		break;
	case 25:
		nr = SYS_mremap;
		ret = call_mremap(t);
		break;
	case 2 ... 6:
		nr = SYS_mmap;
		ret = call_mmap(t);
		break;
	case 7 ... 24:
		ret = call_by_number(t, &nr);
		break;
	default:
		ret = call_by_list(t, &nr);
		break;
	}
	check_result(t, nr, ret);
}

/* Ends with the process: what pthread_join() waits for may be gone. */
static void *fuzz(void *arg)
{
	struct thread *t = arg;

	prctl(PR_SET_NAME, "caller"); /* of processes made here, too: they print no report */
	t->tid = syscall(SYS_gettid);
	for (unsigned long i = 0; i < nr_calls; i++) {
		one_call(t);
		progress[t->index].nr_made++;
	}
	__atomic_add_fetch(&nr_done, 1, __ATOMIC_RELEASE);
	for (;;)
		syscall(SYS_nanosleep, &(struct timespec){ 1000, 0 }, NULL);
	return NULL;
}

static void on_signal(int sig)
{
}

static void setup(void)
{
	static const int ignored[] = { SIGCHLD, SIGPIPE, SIGVTALRM, SIGPROF, SIGXFSZ, SIGXCPU };
	struct sigaction action = { .sa_handler = on_signal };
	char *all = mmap(NULL, ARENA_BYTES + 2 * MARGIN_BYTES, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(all != MAP_FAILED);
	arena = (uintptr_t)all + MARGIN_BYTES;
	CHECK(!mprotect((void *)arena, ARENA_BYTES, PROT_READ | PROT_WRITE));
	CHECK(!sigaction(KICK, &action, NULL) && !sigaction(SIGALRM, &action, NULL));
	action.sa_handler = SIG_IGN;
	for (unsigned int i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		CHECK(!sigaction(ignored[i], &action, NULL));
	mkdir("/tmp", 0777);
	if (chdir("/tmp")) /* a round before has put something else there */
		CHECK(!chdir("/"));
	break_start = (uintptr_t)sbrk(0) + 64 * PAGE;
}

/* The process of a round. Its first thread makes no calls, but ends those that wait. */
static void run_round(unsigned long seed, int nr_threads)
{
	static struct thread threads[MAX_THREADS];
	pthread_t thread;
	pid_t pid = getpid();
	int nr_refused = 0;

	setup();
	for (int i = 0; i < nr_threads; i++) {
		threads[i].state = (seed * 1000 + i + 1) * 0x9e3779b97f4a7c15ul;
		threads[i].index = i;
		CHECK(!pthread_create(&thread, NULL, fuzz, &threads[i]));
	}
	while (__atomic_load_n(&nr_done, __ATOMIC_ACQUIRE) < nr_threads) {
		syscall(SYS_nanosleep, &times[2], NULL);
		for (int i = 0; i < nr_threads; i++) {
			if (threads[i].tid && syscall(SYS_tgkill, pid, threads[i].tid, KICK))
				nr_refused++;
		}
	}
	CHECK(nr_refused == 0);
	child_exit(0);
}

/* Until @pid has ended, or nothing moves any more. Whoever comes here as an orphan is reaped. */
static int watch(pid_t pid, int nr_threads)
{
	unsigned long before = -1ul, now;
	long since_ms = now_ms();
	int status, ours = -1;
	pid_t got;

	while (ours == -1 && now_ms() < since_ms + STUCK_MS) {
		sleep_ms(10);
		while ((got = waitpid(-1, &status, WNOHANG)) > 0) {
			if (got == pid)
				ours = status;
		}
		now = 0;
		for (int i = 0; i < nr_threads; i++)
			now += progress[i].nr_made;
		if (now != before)
			since_ms = now_ms();
		before = now;
	}
	for (int i = 0; ours == -1 && i < nr_threads; i++)
		printf("FAIL: thread %d is at its call %lu, number %lu\n", i, progress[i].nr_made,
		       progress[i].call);
	return ours;
}

/* Everyone but this process dies, whatever it was doing. */
static void kill_the_rest(void)
{
	long end_ms = now_ms() + STUCK_MS;
	pid_t got;

	while (kill(-1, SIGKILL) == 0 && now_ms() < end_ms) {
		while ((got = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		sleep_ms(1);
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	CHECK(kill(-1, 0) == -1 && errno == ESRCH);
}

/* What everyone shares still works. */
static void check_afterwards(void)
{
	char text[8] = "";
	int fd = open("/after", O_CREAT | O_RDWR | O_TRUNC, 0600);

	CHECK(fd == 3);
	CHECK(write(fd, "abcdefg", 7) == 7);
	CHECK(pread(fd, text, sizeof(text), 0) == 7 && !strcmp(text, "abcdefg"));
	CHECK(!close(fd) && !unlink("/after"));
}

int main(int argc, char **argv)
{
	unsigned long seed = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
	int nr_threads = argc > 3 ? atoi(argv[3]) : 4, status;
	struct utsname name;
	pid_t pid;

	if (uname(&name) || strcmp(name.nodename, "lego") || getpid() != 1 ||
	    nr_threads > MAX_THREADS) {
		printf("fuzz: not here\n");
		return 2;
	}
	nr_calls = (argc > 2 ? strtoul(argv[2], NULL, 0) : 1000) / NR_ROUNDS;
	progress = mmap(NULL, MAX_THREADS * sizeof(*progress), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(progress != MAP_FAILED);
	for (int round = 0; round < NR_ROUNDS; round++) {
		memset(progress, 0, MAX_THREADS * sizeof(*progress));
		pid = fork_child();
		if (!pid)
			run_round(seed * NR_ROUNDS + round, nr_threads);
		status = watch(pid, nr_threads);
		if (!CHECK(status == 0))
			printf("the process of round %d ended with status %#x\n", round, status);
		kill_the_rest();
		check_afterwards();
	}
	return check_finish("fuzz");
}
