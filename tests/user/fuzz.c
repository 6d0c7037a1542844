// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz <seed> <calls> <threads>: every thread makes as many system calls, drawn from the seed: all
 * numbers, with arguments that are good, bad or in between. What is left out is what would end or
 * block the program, or pull its own memory from under it; threads that only end are made and
 * end all the time. Passes when all calls have come back with a result Linux's could have.
 *
 * Pointers lead into an arena of pages that threads map, protect, unmap and fill at the same
 * time; around it is a wide margin without access. The fuzzer itself never touches the arena.
 *
 * Not for Linux: there, calls like reboot() do what they say.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "check.h"

#define PAGE	     4096ul
#define ARENA_PAGES  16
#define ARENA_BYTES  (ARENA_PAGES * PAGE)
#define MARGIN_BYTES (16ul << 20)
#define MAX_THREADS  64
#define MAX_ERRNO    133 /* the last one that Linux shows to programs */

#define KERNEL	     0xffffffff81000000ul
#define DIRECT_MAP   0xffff888000100000ul
#define NONCANONICAL 0x0000800000000000ul
#define LIMIT	     0x00007ffffffff000ul /* the first address no user has */

#define CLONE_ALL_SHARED 0x00010f00ul
#define CLONE_FILES_BIT	 0x00000400ul

static const char *const paths[] = {
	"/tmp/fuzz0",
	"/tmp/fuzz1",
	"fuzz2",
	"/tmp/dir0",
	"/tmp/dir0/dir1",
	"dir1",
	"..",
	".",
	"/",
	"",
	"/tmp/",
	"/dev/null",
	"/dev/zero",
	"/data/small/",
	"/data/small",
	"/no/such",
	"/tmp/fuzz0/x",
	"//tmp//../tmp/fuzz1",
};

/* Times nobody sleeps long for, and some that are no times. */
static const struct timespec times[] = {
	{ 0, 0 }, { 0, 1000 }, { 0, 200000 }, { -1, 0 }, { 0, -1 }
};

static const char *const strings[] = { "a", "", "LANG=C", NULL };

static uintptr_t arena, break_start;
static unsigned long nr_calls;
static int nr_done;

struct thread {
	uint64_t state;
	unsigned long args[6];
};

static uint64_t random64(struct thread *t)
{
	t->state ^= t->state << 13;
	t->state ^= t->state >> 7;
	t->state ^= t->state << 17;
	return t->state * 0x2545f4914f6cdd1dul;
}

static unsigned long below(struct thread *t, unsigned long n)
{
	return (random64(t) >> 33) % n;
}

#define PICK(t, array) ((array)[below(t, sizeof(array) / sizeof((array)[0]))])

static unsigned long bad_pointer(struct thread *t)
{
	unsigned long bad[] = {
		0,
		8,
		KERNEL,
		DIRECT_MAP,
		NONCANONICAL,
		LIMIT,
		LIMIT - 4,
		arena - PAGE,
		arena + ARENA_BYTES,
		-1ul,
		-4096ul,
		NONCANONICAL - 1,
		~NONCANONICAL + 1,
		1ul << 63,
	};

	return PICK(t, bad);
}

/* Mostly in the arena; often just before the end of a page, or of all pages. */
static unsigned long pointer(struct thread *t)
{
	unsigned long page = arena + below(t, ARENA_PAGES) * PAGE;

	switch (below(t, 8)) {
	case 0:
		return bad_pointer(t);
	case 1:
		return page + PAGE - 1 - below(t, 64);
	case 2:
		return arena + ARENA_BYTES - 1 - below(t, 64);
	case 3:
		return page + below(t, PAGE);
	default:
		return page + below(t, 16) * 8;
	}
}

static unsigned long path(struct thread *t)
{
	return below(t, 10) ? (unsigned long)PICK(t, paths) : pointer(t);
}

static unsigned long time_pointer(struct thread *t)
{
	return below(t, 4) ? (unsigned long)&PICK(t, times) : KERNEL;
}

static unsigned long number(struct thread *t)
{
	static const unsigned long numbers[] = {
		0,	    1,		2,	   3,	      4,	 8,	     16,
		24,	    64,		100,	   128,	      255,	 256,	     1000,
		4095,	    4096,	4097,	   8192,      65536,	 0x7ffff000, 0x7fffffff,
		0x80000000, 0xffffffff, 1ul << 32, 1ul << 47, 1ul << 62, -1ul,	     -2ul,
		-100ul,	    -4096ul,	1ul << 63, -4095ul,
	};

	switch (below(t, 6)) {
	case 0:
		return random64(t);
	case 1:
		return below(t, 4096);
	case 2:
		return 1ul << below(t, 64);
	default:
		return PICK(t, numbers);
	}
}

/* Never the console's: reading from it waits, and closing it would silence the test. */
static unsigned long descriptor(struct thread *t)
{
	static const unsigned long odd[] = { -1ul, 1022, 1023, 1024, 1ul << 31, -100ul };

	return below(t, 8) ? 3 + below(t, 16) : PICK(t, odd);
}

/* A length that cannot leave the arena: what lies there belongs to the fuzzer. */
static unsigned long arena_range(struct thread *t, unsigned long addr)
{
	static const unsigned long odd[] = { 0, -1ul, -4096ul, 1ul << 47, 1ul << 63 };

	if (addr < arena || addr >= arena + ARENA_BYTES || !below(t, 8))
		return PICK(t, odd);
	return 1 + below(t, arena + ARENA_BYTES - addr);
}

static unsigned long arena_address(struct thread *t)
{
	static const unsigned long odd[] = { KERNEL, NONCANONICAL, LIMIT, -4096ul };

	switch (below(t, 8)) {
	case 0:
		return PICK(t, odd);
	case 1:
		return arena + below(t, ARENA_BYTES);
	default:
		return arena + below(t, ARENA_PAGES) * PAGE;
	}
}

static unsigned long kernel_address(struct thread *t)
{
	return LIMIT + below(t, 2) * (KERNEL - LIMIT);
}

/* Ignored, stopping or invalid ones; others would end the process. */
static unsigned long harmless_signal(struct thread *t)
{
	static const unsigned long signals[] = { 0, 17, 18, 19, 23, 28, 65, -1ul, 1ul << 31 };

	return PICK(t, signals);
}

/*
 * The kinds of arguments, by letter: p pointer, P path, T time, n number, f descriptor, r range
 * for the address before it, a address in the arena, k kernel address, s signal nobody minds, x
 * signal whose action may change, F flags of clone.
 */
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
	{ SYS_rt_sigprocmask, "nppn" },
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
	{ SYS_getrandom, "pnn" },
	{ SYS_getrandom, "pnz" },
};

static int has_own_line(unsigned int nr)
{
	switch (nr) {
	case SYS_exit:
	case SYS_exit_group:
	case SYS_mmap:
	case SYS_brk:
		return 1;
	}
	for (unsigned int i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if ((unsigned int)calls[i].nr == nr)
			return 1;
	}
	return 0;
}

static unsigned long argument(struct thread *t, char kind, unsigned long before)
{
	static const unsigned long signals[] = { 0, 9, 10, 11, 19, 30, 64, 65, -1ul };
	static const unsigned long wakes[] = { 1, 3, 4, 5, 10, 2, 6, 7, 8, 11, 12, 13 };

	switch (kind) {
	case 'p':
		return pointer(t);
	case 'P':
		return path(t);
	case 'T':
		return time_pointer(t);
	case 'f':
		return descriptor(t);
	case 'a':
		return arena_address(t);
	case 'r':
		return arena_range(t, before);
	case 'k':
		return kernel_address(t);
	case 's':
		return harmless_signal(t);
	case 'x':
		return PICK(t, signals);
	case 'F': /* never a thread: it would go on here, on a stack that is none */
		return number(t) & ~CLONE_FILES_BIT;
	case 'g':
		return 0x1003 + below(t, 2);
	case 'h':
		return arena + ARENA_BYTES - below(t, 64);
	case 'v':
		return (unsigned long)strings;
	case 'w': /* waits, which have a time */
		return below(t, 2) * 9 | below(t, 4) << 7;
	case 'W':
		return PICK(t, wakes) | below(t, 4) << 7;
	case 'z':
		return 0;
	default:
		return number(t);
	}
}

static long invoke(struct thread *t, unsigned long nr)
{
	register unsigned long r10 asm("r10") = t->args[3];
	register unsigned long r8 asm("r8") = t->args[4];
	register unsigned long r9 asm("r9") = t->args[5];
	long ret;

	asm volatile("syscall"
		     : "=a"(ret)
		     : "a"(nr), "D"(t->args[0]), "S"(t->args[1]), "d"(t->args[2]), "r"(r10),
		       "r"(r8), "r"(r9)
		     : "rcx", "r11", "memory");
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
		ret = call_thread(t);
		break;
	case 1:
		nr = SYS_brk;
		ret = call_brk(t);
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

	for (unsigned long i = 0; i < nr_calls; i++)
		one_call(t);
	__atomic_add_fetch(&nr_done, 1, __ATOMIC_RELEASE);
	while (syscall(SYS_nanosleep, &(struct timespec){ 1000, 0 }, NULL) == 0)
		;
	return NULL;
}

static void setup(void)
{
	static char output[PAGE];
	char *all = mmap(NULL, ARENA_BYTES + 2 * MARGIN_BYTES, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(all != MAP_FAILED);
	arena = (uintptr_t)all + MARGIN_BYTES;
	CHECK(!mprotect((void *)arena, ARENA_BYTES, PROT_READ | PROT_WRITE));
	setvbuf(stdout, output, _IOLBF, sizeof(output));
	mkdir("/tmp", 0777);
	CHECK(!chdir("/tmp"));
}

/* What everyone shares still works. */
static void check_afterwards(void)
{
	char text[8] = "";
	int fd;

	for (fd = 3; fd < 1024; fd++)
		close(fd);
	fd = open("/after", O_CREAT | O_RDWR | O_TRUNC, 0600);
	CHECK(fd == 3);
	CHECK(write(fd, "abcdefg", 7) == 7);
	CHECK(pread(fd, text, sizeof(text), 0) == 7 && !strcmp(text, "abcdefg"));
	CHECK(!unlink("/after"));
}

int main(int argc, char **argv)
{
	static struct thread threads[MAX_THREADS];
	unsigned long seed = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
	int nr_threads = argc > 3 ? atoi(argv[3]) : 4;
	struct utsname name;
	pthread_t thread;

	if (uname(&name) || strcmp(name.nodename, "lego") || nr_threads > MAX_THREADS) {
		printf("fuzz: not here\n");
		return 2;
	}
	nr_calls = argc > 2 ? strtoul(argv[2], NULL, 0) : 1000;
	setup();
	for (int i = 0; i < nr_threads; i++)
		threads[i].state = (seed * 1000 + i + 1) * 0x9e3779b97f4a7c15ul;
	break_start = (uintptr_t)sbrk(0) + 64 * PAGE;
	for (int i = 0; i < nr_threads; i++)
		CHECK(!pthread_create(&thread, NULL, fuzz, &threads[i]));
	while (__atomic_load_n(&nr_done, __ATOMIC_ACQUIRE) < nr_threads)
		usleep(10000);
	check_afterwards();
	return check_finish("fuzz");
}
