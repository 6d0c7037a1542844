// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz <seed> <calls> <threads> <uid> [functions]: as that user, every thread makes as many system
 * calls, drawn from the seed: all that the kernel's table has, and other numbers, with arguments
 * that are good, bad or in between. Left out are calls that would end or stop the program, or unmap
 * its own memory. Threads and processes that end at once are made all the time. Passes if all calls
 * have returned, with results that Linux could return.
 *
 * Paths are also those of all files in /proc, /sys and /dev. Root uses these only in the last
 * round, because it may switch what is compared in the others.
 *
 * Pointers lead into an arena of pages that threads map, protect, unmap and fill at the same time;
 * around it is a wide margin without access. The fuzzer itself never touches the arena.
 *
 * The calls are made in rounds, each by a process of its own, whose first thread signals the others
 * all the time, so that no wait lasts for ever. The first process watches: each thread records its
 * current call in shared memory, and the watcher prints these if no thread makes progress any more.
 * Then it kills what is left of the round, which must work.
 *
 * A round counts its calls by number and prints the counts, to be compared with strace's. Meanwhile
 * another process changes the settings of the profilers. In the last round it also switches strace,
 * so that round is not compared. With `functions`, one more process counts and traces all functions
 * from time to time, and checks the trace.
 *
 * Not for Linux: there, calls like reboot() do what they say.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "flip.h"
#include "flip_functions.h"
#include "fuzz.h"
#include "fuzz_calls.h"
#include "run.h"

#define NR_ROUNDS  4
#define STUCK_MS   40000
#define NR_COUNTED 512 /* numbers counted one by one; higher ones are counted together */

static unsigned long nr_calls;
static int nr_ready, nr_done;
/* Set when all threads exist, because calls of one could prevent creating the next. */
static int may_begin;

/* Shared with the first process: each thread's current call, and how often it made each call. */
static struct progress {
	volatile unsigned long nr_made, call;
	unsigned int nr_by_call[NR_COUNTED + 1];
} * progress;

/* The same for the first thread of a round. It sets is_quiet when it makes no more calls. */
static struct {
	struct progress own;
	int is_quiet, may_end;
	struct flip_counts flips; /* of all rounds so far */
} * first;

static void count(struct progress *by, unsigned long nr)
{
	nr = (unsigned int)nr; /* as Linux does */
	by->nr_by_call[nr < NR_COUNTED ? nr : NR_COUNTED]++;
}

#define COUNTED(by, nr, ...) (count(by, nr), syscall(nr, ##__VA_ARGS__))

/*
 * The same for calls that may return in a child, too. The child exits, and does not touch its
 * stack, which may be invalid.
 */
static long invoke(struct thread *t, unsigned long nr)
{
	register unsigned long r10 asm("r10") = t->args[3];
	register unsigned long r8 asm("r8") = t->args[4];
	register unsigned long r9 asm("r9") = t->args[5];
	long ret;

	progress[t->index].call = nr;
	count(&progress[t->index], nr);
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
	if (nr == SYS_clone && ret > 0 && t->args[0] & CLONE_THREAD_BIT)
		count(&progress[t->index], SYS_exit);
	return ret;
}

static long call_by_line(struct thread *t, const struct call *call, unsigned long *nr)
{
	unsigned long before = 0;

	for (int i = 0; i < 6; i++) {
		char kind = i < (int)strlen(call->args) ? call->args[i] : 'n';

		before = t->args[i] = argument(t, kind, before);
	}
	*nr = (unsigned int)call->nr;
	return invoke(t, *nr);
}

/* Makes a call of the kernel's table that has no own line. */
static long call_by_table(struct thread *t, unsigned long *nr)
{
	const struct call *call;

	do
		call = &PICK(t, all_calls);
	while (has_own_line(call->nr));
	return call_by_line(t, call, nr);
}

/* Makes a call with any other number and random arguments. */
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
		COUNTED(&progress[t->index], SYS_munmap, ret, t->args[1]);
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
		COUNTED(&progress[t->index], SYS_munmap, ret, t->args[2]);
	return ret;
}

/*
 * In a child, returns from a signal that never came, with a frame of random bytes from the arena.
 */
static long call_sigreturn(struct thread *t)
{
	long ret;

	count(&progress[t->index], SYS_fork);
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

/* Sets the break, never below the memory of malloc(). */
static long call_brk(struct thread *t)
{
	t->args[0] = below(t, 2) ? break_start + below(t, 64 * PAGE) : kernel_address(t);
	return invoke(t, SYS_brk);
}

/*
 * Makes a thread with random stack, TLS and words for its number. It registers a robust list and
 * ends.
 */
static long call_thread(struct thread *t)
{
	static const unsigned long flags[] = {
		0, 0x80000, 0x100000, 0x200000, 0x1000000, 0x1380000
	};
	unsigned long list = pointer(t);
	register unsigned long r10 asm("r10") = pointer(t);
	register unsigned long r8 asm("r8") = pointer(t);
	long ret;

	count(&progress[t->index], SYS_clone);
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
	if (ret > 0) {
		count(&progress[t->index], SYS_set_robust_list);
		count(&progress[t->index], SYS_exit);
	}
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
	case 7 ... 15:
		ret = call_by_number(t, &nr);
		break;
	case 16 ... 24:
		ret = call_by_table(t, &nr);
		break;
	default:
		ret = call_by_line(t, &PICK(t, calls), &nr);
		break;
	}
	check_result(t, nr, ret);
}

/*
 * Makes one thread's calls. Counts in nr_done, because the calls may have unmapped the word that
 * pthread_join() waits for.
 */
static void *fuzz(void *arg)
{
	struct thread *t = arg;

	/* Processes made here inherit the name, for which no report is printed. */
	prctl(PR_SET_NAME, "caller");
	t->tid = syscall(SYS_gettid);
	__atomic_add_fetch(&nr_ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&may_begin, __ATOMIC_ACQUIRE))
		asm volatile("pause");
	for (unsigned long i = 0; i < nr_calls; i++) {
		one_call(t);
		progress[t->index].nr_made++;
	}
	t->tid = 0;
	__atomic_add_fetch(&nr_done, 1, __ATOMIC_RELEASE);
	COUNTED(&progress[t->index], SYS_exit, 0);
	return NULL;
}

/* Runs in any thread. Counts its return, which is a system call. */
static void on_signal(int sig)
{
	__atomic_add_fetch(&first->own.nr_by_call[SYS_rt_sigreturn], 1, __ATOMIC_RELAXED);
}

static void setup(void)
{
	static const int ignored[] = { SIGCHLD, SIGPIPE, SIGVTALRM, SIGPROF, SIGXFSZ, SIGXCPU };
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM };
	struct sigaction action = { .sa_handler = on_signal };
	int pair[2];
	char *all = mmap(NULL, ARENA_BYTES + 2 * MARGIN_BYTES, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(all != MAP_FAILED);
	arena = (uintptr_t)all + MARGIN_BYTES;
	CHECK(!mprotect((void *)arena, ARENA_BYTES, PROT_READ | PROT_WRITE));
	CHECK(!sigaction(KICK, &action, NULL) && !sigaction(SIGALRM, &action, NULL));
	action.sa_handler = SIG_IGN;
	for (unsigned int i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		CHECK(!sigaction(ignored[i], &action, NULL));
	for (int i = 0; i < 4; i++) /* random calls hardly ever make usable sockets */
		socketpair(AF_UNIX, types[i], 0, pair);
	epoll_create1(0);
	if (chdir("/tmp")) /* an earlier round has replaced it */
		CHECK(!chdir("/"));
	break_start = (uintptr_t)sbrk(0) + 64 * PAGE;
}

/*
 * Begins counting. All threads are ready and make no calls yet. strace's counts begin with this
 * write, and so do ours.
 */
static void begin(int fd)
{
	count(&first->own, SYS_write);
	CHECK(write(fd, "reset", 5) == 5);
	COUNTED(&first->own, SYS_close, fd);
	__atomic_store_n(&may_begin, 1, __ATOMIC_RELEASE);
}

/*
 * Ends the round. The other threads have ended or soon will; makes no call until they, and all that
 * they created, have.
 */
static void end(void)
{
	static const uint64_t all = -1ull;

	fflush(stdout);
	COUNTED(&first->own, SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, sizeof(all));
	__atomic_store_n(&first->is_quiet, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&first->may_end, __ATOMIC_ACQUIRE))
		asm volatile("pause");
	COUNTED(&first->own, SYS_exit_group, check_nr_failed ? 99 : 0);
}

/*
 * Runs in the process of a round. The first thread makes no random calls, but interrupts those that
 * wait.
 */
static void run_round(unsigned long seed, int nr_threads, uid_t uid)
{
	static struct thread threads[MAX_THREADS];
	pthread_t thread;
	pid_t tid;
	int fd;

	pid = getpid();
	setup();
	fd = open("/proc/self/strace", O_WRONLY); /* only root may open it */
	CHECK(!setgid(uid) && !setuid(uid));
	for (int i = 0; i < nr_threads; i++) {
		threads[i].state = (seed * 1000 + i + 1) * 0x9e3779b97f4a7c15ul;
		threads[i].index = i;
		CHECK(!pthread_create(&thread, NULL, fuzz, &threads[i]));
	}
	while (__atomic_load_n(&nr_ready, __ATOMIC_ACQUIRE) < nr_threads)
		sleep_ms(1);
	begin(fd);
	while (__atomic_load_n(&nr_done, __ATOMIC_ACQUIRE) < nr_threads) {
		COUNTED(&first->own, SYS_nanosleep, &times[2], NULL);
		for (int i = 0; i < nr_threads; i++) {
			tid = threads[i].tid;
			if (tid && COUNTED(&first->own, SYS_tgkill, pid, tid, KICK))
				CHECK(!threads[i].tid);
		}
	}
	end();
}

/* Prints what the round has counted, for the test that runs this. */
static void print_counts(pid_t round, int nr_threads)
{
	unsigned long nr;

	printf("fuzz: process %d made", round);
	for (int call = 0; call <= NR_COUNTED; call++) {
		nr = first->own.nr_by_call[call];
		for (int i = 0; i < nr_threads; i++)
			nr += progress[i].nr_by_call[call];
		if (nr)
			printf(" %d:%lu", call, nr);
	}
	printf("\n");
}

/* Changes the profilers, until it is killed. */
static void flip(unsigned long seed, int strace_too)
{
	uint64_t state = (seed + 1) * 0x9e3779b97f4a7c15ul;

	for (;;) {
		flip_one(flips_of_samples, NR_FLIPS(flips_of_samples), &state);
		flip_one(flips_of_others, NR_FLIPS(flips_of_others), &state);
		if (strace_too)
			flip_one(flips_of_strace, NR_FLIPS(flips_of_strace), &state);
		sleep_ms(3);
	}
}

/* Waits until the trace has been read twice in this round. Failed checks are in the log. */
static void wait_for_flips(unsigned long nr_reads)
{
	while (((volatile struct flip_counts *)&first->flips)->nr_reads < nr_reads + 2)
		sleep_ms(10);
}

/* Lets the round's first thread end when it is the last one. */
static void let_end(pid_t round)
{
	char path[32], text[2048] = "";
	FILE *file;

	if (!__atomic_load_n(&first->is_quiet, __ATOMIC_ACQUIRE))
		return;
	snprintf(path, sizeof(path), "/proc/%d/status", round);
	file = fopen(path, "r");
	if (file && fread(text, 1, sizeof(text) - 1, file) && strstr(text, "\nThreads:\t1\n"))
		__atomic_store_n(&first->may_end, 1, __ATOMIC_RELEASE);
	if (file)
		fclose(file);
}

/*
 * Waits until @pid has ended, or no thread makes progress any more. Reaps orphans. Returns the wait
 * status of @pid, or -1.
 */
static int watch(pid_t pid, int nr_threads)
{
	unsigned long before = -1ul, now;
	long since_ms = now_ms();
	int status, ours = -1;
	pid_t got;

	while (ours == -1 && now_ms() < since_ms + STUCK_MS) {
		sleep_ms(10);
		let_end(pid);
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

/* Kills all other processes, whatever they are doing. */
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

/*
 * Checks that objects shared by all processes still work. Removes the files first, because they
 * may have filled a small memory.
 */
static void check_afterwards(void)
{
	char text[8] = "";
	int fd;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		unlink(paths[i]);
	unlink("/tmp/fuzz2");
	fd = open("/after", O_CREAT | O_RDWR | O_TRUNC, 0600);
	CHECK(fd == 3);
	CHECK(write(fd, "abcdefg", 7) == 7);
	CHECK(pread(fd, text, sizeof(text), 0) == 7 && !strcmp(text, "abcdefg"));
	CHECK(!close(fd) && !unlink("/after"));
}

int main(int argc, char **argv)
{
	unsigned long seed = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
	int nr_threads = argc > 3 ? atoi(argv[3]) : 4, status, is_last, functions = argc > 5;
	struct flip_counts flips = { 0 };
	uid_t uid = argc > 4 ? atoi(argv[4]) : 0;
	struct utsname name;
	pid_t round_pid;

	if (uname(&name) || strcmp(name.nodename, "lego") || getpid() != 1 ||
	    nr_threads > MAX_THREADS) {
		printf("fuzz: not here\n");
		return 2;
	}
	nr_calls = (argc > 2 ? strtoul(argv[2], NULL, 0) : 1000) / NR_ROUNDS;
	progress = mmap(NULL, MAX_THREADS * sizeof(*progress) + sizeof(*first),
			PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(progress != MAP_FAILED);
	first = (void *)&progress[MAX_THREADS];
	list_files("/proc");
	list_files("/sys");
	list_files("/dev");
	printf("fuzz: begins, with %d files and %d calls\n", nr_files,
	       (int)(sizeof(all_calls) / sizeof(all_calls[0])));
	mkdir("/tmp", 0777);
	CHECK(!chmod("/tmp", 01777));
	for (int round = 0; round < NR_ROUNDS; round++) {
		is_last = round == NR_ROUNDS - 1;
		memset(progress, 0, MAX_THREADS * sizeof(*progress) + sizeof(*first));
		first->flips = flips;
		if (!fork_child())
			flip(seed * NR_ROUNDS + round, is_last);
		if (functions && !fork_child())
			flip_functions((seed * NR_ROUNDS + round + 1) * 0x9e3779b97f4a7c15ul,
				       &first->flips);
		nr_files_used = uid || is_last ? nr_files : 0;
		round_pid = fork_child();
		if (!round_pid)
			run_round(seed * NR_ROUNDS + round, nr_threads, uid);
		status = watch(round_pid, nr_threads);
		if (!CHECK(status == 0))
			printf("the process of round %d ended with status %#x\n", round, status);
		if (functions)
			wait_for_flips(flips.nr_reads);
		flips = first->flips;
		kill_the_rest();
		check_afterwards();
		if (!is_last)
			print_counts(round_pid, nr_threads);
	}
	if (functions)
		printf("fuzz: %lu flips, %lu traces read, %lu switches, %lu events lost\n",
		       flips.nr_flips, flips.nr_reads, flips.nr_switches, flips.nr_lost);
	return check_finish("fuzz");
}
