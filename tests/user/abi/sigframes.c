// SPDX-License-Identifier: BSD-2-Clause
/*
 * What user code may do to a signal frame: rt_sigreturn from frames that are wrong in every place
 * ends the program at worst, never the kernel. Also what the frames of exceptions contain,
 * including those of floating point and single steps, and timers of CPU time.
 */
#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include "run.h"

#define NR_FUZZED 400

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void handle(int sig, void (*fn)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_sigaction = fn, .sa_flags = SA_SIGINFO | flags };

	CHECK(!sigaction(sig, &action, NULL));
}

/*
 * Returns a word that a CPU or kernel may interpret: pointers of all kinds, flags, and random bits.
 */
static uint64_t odd_value(void)
{
	static const uint64_t values[] = {
		0,
		1,
		~0ull,
		1ull << 63,
		1ull << 47,
		(1ull << 47) - 1,
		0xffff800000000000ull,
		0xffffffff81000000ull,
		0x7ffffffff000ull,
		0x100,
		0x40000,
	};

	return random_u64() % 4 ? values[random_u64() % (sizeof(values) / 8)] : random_u64();
}

static int fuzz_seed;

/*
 * Changes registers, flags, segments, the pointer to the extended state, or that state with its
 * header.
 */
static void on_fuzz(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	uint64_t *words = context, *state = (uint64_t *)uc->uc_mcontext.fpregs;
	int where = fuzz_seed % 4;

	random_state += 0x9e3779b97f4a7c15ull * (fuzz_seed + 1);
	random_u64();
	if (where == 0)
		words[random_u64() % (sizeof(mcontext_t) / 8 + 5)] = odd_value();
	else if (where == 1)
		uc->uc_mcontext.gregs[REG_RIP + random_u64() % 3] = odd_value();
	else if (where == 2)
		uc->uc_mcontext.fpregs = (void *)((char *)state + random_u64() % 4096 - 2048);
	else if (random_u64() % 2)
		state[64 + random_u64() % 8] = odd_value(); /* the XSAVE header */
	else
		state[(random_u64() % 2 ? 58 : 3) + random_u64() % 6] = odd_value();
}

TEST(fuzz)
{
	int nr_lived = 0, nr_died = 0;

	for (fuzz_seed = 0; fuzz_seed < NR_FUZZED; fuzz_seed++) {
		pid_t pid = fork_child();
		int status;

		if (!pid) {
			alarm(2); /* the program may continue anywhere, and then hang */
			handle(SIGUSR1, on_fuzz, 0);
			raise(SIGUSR1);
			_exit(0);
		}
		status = child_status(pid);
		if (WIFSIGNALED(status))
			nr_died++;
		else
			nr_lived += WIFEXITED(status);
	}
	CHECK(nr_lived + nr_died == NR_FUZZED);
	CHECK(nr_lived && nr_died);
}

/* sigreturn without a signal: rsp points to random bytes, to the end of memory, or to no memory. */
TEST(no_frame)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t stacks[] = { 0,
			      8,
			      (uint64_t)page + 8,
			      (uint64_t)page + 4096 - 64,
			      0x7ffffffff000ull,
			      0xffff888000000000ull,
			      ~0ull };

	CHECK(page != MAP_FAILED);
	for (int i = 0; i < 4096; i++)
		page[i] = random_u64();
	CHECK(!munmap(page + 4096, 4096));
	for (int i = 0; i < 7; i++) {
		pid_t pid = fork_child();

		if (!pid) {
			asm volatile("mov %0, %%rsp\n"
				     "syscall" ::"r"(stacks[i]),
				     "a"(SYS_rt_sigreturn)
				     : "rcx", "r11", "memory");
			child_exit(1);
		}
		CHECK(child_status(pid) == SIGSEGV);
	}
}

static sigjmp_buf back;
static siginfo_t last;
static greg_t last_regs[NGREG];

static void on_fault(int sig, siginfo_t *info, void *context)
{
	last = *info;
	memcpy(last_regs, ((ucontext_t *)context)->uc_mcontext.gregs, sizeof(last_regs));
	siglongjmp(back, sig);
}

static volatile uintptr_t near_null = 16;

TEST(numbers)
{
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	handle(SIGSEGV, on_fault, 0);
	handle(SIGFPE, on_fault, 0);
	handle(SIGILL, on_fault, 0);
	/* Error codes: user, write, present. */
	if (!sigsetjmp(back, 1)) {
		*(volatile char *)near_null;
		CHECK(0);
	}
	CHECK(last_regs[REG_TRAPNO] == 14 && last_regs[REG_ERR] == 4 && last_regs[REG_CR2] == 16);
	if (!sigsetjmp(back, 1)) {
		*(volatile char *)near_null = 1;
		CHECK(0);
	}
	CHECK(last_regs[REG_TRAPNO] == 14 && last_regs[REG_ERR] == 6);
	CHECK(*(volatile char *)page == 0);
	if (!sigsetjmp(back, 1)) {
		*(volatile char *)page = 1;
		CHECK(0);
	}
	CHECK(last.si_code == SEGV_ACCERR && last.si_addr == page);
	CHECK(last_regs[REG_ERR] == 7 && last_regs[REG_CR2] == (greg_t)page);
	if (!sigsetjmp(back, 1)) {
		asm volatile("movq $0x800000000000, %%rax\n movb $0, (%%rax)" ::: "rax");
		CHECK(0);
	}
	CHECK(last.si_signo == SIGSEGV && last.si_code == SI_KERNEL && !last.si_addr);
	CHECK(last_regs[REG_TRAPNO] == 13 && last_regs[REG_ERR] == 0);
	if (!sigsetjmp(back, 1)) {
		asm volatile("ud2");
		CHECK(0);
	}
	CHECK(last_regs[REG_TRAPNO] == 6 && last.si_addr == (void *)last_regs[REG_RIP]);
	if (!sigsetjmp(back, 1)) {
		asm volatile("jmp *%0" ::"r"(0x800000000000));
		CHECK(0);
	}
	CHECK(last.si_signo == SIGSEGV);
	munmap(page, 4096);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGILL, SIG_DFL);
}

/* Unmasks exceptions (FE_* bits) of SSE and the x87 unit. */
static void unmask(int exceptions)
{
	unsigned int mxcsr = 0x1f80 & ~(exceptions << 7);
	unsigned short control = 0x37f & ~exceptions;

	asm volatile("fnclex\n fldcw %0\n ldmxcsr %1" ::"m"(control), "m"(mxcsr));
}

/* The signal of an SSE or x87 exception says which one it is. */
TEST(floating_point)
{
	static const struct {
		int exception;
		int code;
		double a, b;
	} cases[] = {
		{ FE_DIVBYZERO, FPE_FLTDIV, 1.0, 0.0 },
		{ FE_INVALID, FPE_FLTINV, 0.0, 0.0 },
		{ FE_OVERFLOW, FPE_FLTOVF, 1e308, 1e-308 },
		{ FE_INEXACT, FPE_FLTRES, 1.0, 3.0 },
	};
	volatile long double x87_result;
	volatile double a, b, result;

	handle(SIGFPE, on_fault, 0);
	for (int i = 0; i < 4; i++) {
		a = cases[i].a;
		b = cases[i].b;
		memset(&last, 0, sizeof(last));
		if (!sigsetjmp(back, 1)) {
			unmask(cases[i].exception);
			result = a / b;
			unmask(0);
			printf("sigframes: SIMD exception %d is not delivered here\n", i);
			continue; /* TCG raises no exception */
		}
		unmask(0);
		CHECK(last.si_code == cases[i].code && last_regs[REG_TRAPNO] == 19);
		CHECK(last.si_addr == (void *)last_regs[REG_RIP]);
	}
	if (!sigsetjmp(back, 1)) {
		unmask(FE_DIVBYZERO);
		a = 1;
		b = 0;
		x87_result = (long double)a / (long double)b;
		asm volatile("fwait");
		unmask(0);
		printf("sigframes: x87 exceptions are not delivered here\n");
	} else {
		unmask(0);
		CHECK(last.si_code == FPE_FLTDIV && last_regs[REG_TRAPNO] == 16);
	}
	signal(SIGFPE, SIG_DFL);
	(void)result;
	(void)x87_result;
}

static volatile int nr_steps;

static void on_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	nr_steps++;
	CHECK(info->si_code == TRAP_TRACE && uc->uc_mcontext.gregs[REG_TRAPNO] == 1);
	CHECK(info->si_addr == (void *)uc->uc_mcontext.gregs[REG_RIP]);
	CHECK(uc->uc_mcontext.gregs[REG_EFL] & 0x100);
	if (nr_steps == 4)
		uc->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}

TEST(single_step)
{
	handle(SIGTRAP, on_step, 0);
	asm volatile("pushfq\n"
		     "orl $0x100, (%%rsp)\n"
		     "popfq\n" /* the instructions after the next one trap */
		     "nop\n nop\n nop\n nop\n nop\n nop\n nop\n nop" ::
			     : "memory", "cc");
	CHECK(nr_steps == 4);
}

static volatile int nr_ticks;

static void on_tick(int sig, siginfo_t *info, void *context)
{
	nr_ticks++;
	CHECK(info->si_code == SI_KERNEL);
}

/*
 * Sets the timer and sleeps, which takes no CPU time: no signal comes. If the host stops the
 * machine while the process runs, that is CPU time, too; then it tries again. Returns a time at
 * which no signal had come yet.
 */
static long set_and_sleep(int which)
{
	struct itimerval timer;
	int again = 1;
	long now = 0;

	for (int i = 0; i < 20 && again; i++) {
		timer.it_interval = (struct timeval){ 0, 10000 };
		timer.it_value = (struct timeval){ 0, 20000 };
		nr_ticks = 0;
		CHECK(!setitimer(which, &timer, NULL));
		CHECK(!getitimer(which, &timer));
		CHECK(timer.it_interval.tv_usec == 10000);
		CHECK(timer.it_value.tv_usec > 0 && timer.it_value.tv_usec <= 24000);
		sleep_ms(100);
		now = now_ms();
		again = nr_ticks != 0;
	}
	CHECK(!again);
	return now;
}

TEST(cpu_timers)
{
	static const int sigs[] = { SIGVTALRM, SIGPROF };
	struct itimerval timer, off = { 0 };
	long start;

	for (int i = 0; i < 2; i++) {
		int which = i ? ITIMER_PROF : ITIMER_VIRTUAL;

		handle(sigs[i], on_tick, SA_RESTART);
		start = set_and_sleep(which);
		while (nr_ticks < 5 && now_ms() - start < 20000)
			;
		CHECK(nr_ticks >= 5 && now_ms() - start >= 40);
		CHECK(!setitimer(which, &off, &timer));
		CHECK(timer.it_interval.tv_usec == 10000);
		CHECK(!getitimer(which, &timer) && !timer.it_value.tv_usec);
		signal(sigs[i], SIG_DFL);
	}
	CHECK_ERROR(EINVAL, SYS_setitimer, 3, &off, NULL);
	CHECK_ERROR(EINVAL, SYS_getitimer, -1, &timer);
}

int main(int argc, char **argv)
{
	return run_tests("sigframes", argc, argv);
}
