// SPDX-License-Identifier: BSD-2-Clause
/*
 * Signal contexts: registers, flags, x87, SSE and AVX state across handlers at any instruction;
 * changes of the context by a handler; alternate stacks; nested handlers; invalid frames.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "run.h"

static volatile int nr_handled;

static void set_handler(int sig, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO };

	CHECK(!sigaction(sig, &action, NULL));
	nr_handled = 0;
}

/* Overwrites the vector registers, the x87 stack and the flags. */
static void on_clobber(int sig, siginfo_t *info, void *context)
{
	double x = 1.5;

	nr_handled++;
	for (int i = 0; i < 8; i++)
		asm volatile("fldl %0" ::"m"(x));
	asm volatile("fninit\n"
		     "pcmpeqd %%xmm0, %%xmm0\n"
		     "pcmpeqd %%xmm1, %%xmm1\n"
		     "pcmpeqd %%xmm7, %%xmm7\n"
		     "pcmpeqd %%xmm8, %%xmm8\n"
		     "pcmpeqd %%xmm15, %%xmm15\n" ::
			     : "xmm0", "xmm1", "xmm7", "xmm8", "xmm15");
	if (__builtin_cpu_supports("avx"))
		asm volatile("vzeroall" ::
				     : "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
				       "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
				       "xmm13", "xmm14", "xmm15");
	asm volatile("xor %%eax, %%eax; stc; cmp $1, %%eax" ::: "eax", "cc");
}

struct registers {
	uint64_t general[16];
	uint64_t xmm[32]; /* 16 registers */
	uint64_t x87;	  /* as a double */
	uint32_t mxcsr;
	uint16_t control;
};

/*
 * Loads every register from @in, sends this thread SIGUSR1 by the system call, and stores them all
 * in @out. The call itself changes rax, rcx and r11, and has arguments in rdi, rsi and rdx. rsp and
 * rbp do not change.
 */
void signal_with_registers(const struct registers *in, struct registers *out, long pid);
asm("signal_with_registers:\n"
    "	push	%rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
    "	push	%rsi\n"
    "	push	%rdi\n"
    "	mov	%rdi, %rax\n"
    "	mov	%rdx, %rdi\n"
    "	mov	$10, %esi\n" /* SIGUSR1 */
    "	ldmxcsr	392(%rax)\n"
    "	fninit\n"
    "	fldcw	396(%rax)\n"
    "	fldl	384(%rax)\n"
    "	movups	128(%rax), %xmm0\n"
    "	movups	144(%rax), %xmm1\n"
    "	movups	240(%rax), %xmm7\n"
    "	movups	256(%rax), %xmm8\n"
    "	movups	368(%rax), %xmm15\n"
    "	mov	8(%rax), %rbx\n"
    "	mov	48(%rax), %rbp\n"
    "	mov	64(%rax), %r8\n"
    "	mov	72(%rax), %r9\n"
    "	mov	80(%rax), %r10\n"
    "	mov	96(%rax), %r12\n"
    "	mov	104(%rax), %r13\n"
    "	mov	112(%rax), %r14\n"
    "	mov	120(%rax), %r15\n"
    "	mov	$0x123456789, %rdx\n"
    "	mov	$62, %eax\n" /* kill */
    "	syscall\n"
    "	mov	8(%rsp), %rcx\n" /* out */
    "	mov	%rax, 0(%rcx)\n"
    "	mov	%rbx, 8(%rcx)\n"
    "	mov	%rdx, 24(%rcx)\n"
    "	mov	%rsi, 32(%rcx)\n"
    "	mov	%rdi, 40(%rcx)\n"
    "	mov	%rbp, 48(%rcx)\n"
    "	mov	%r8, 64(%rcx)\n"
    "	mov	%r9, 72(%rcx)\n"
    "	mov	%r10, 80(%rcx)\n"
    "	mov	%r12, 96(%rcx)\n"
    "	mov	%r13, 104(%rcx)\n"
    "	mov	%r14, 112(%rcx)\n"
    "	mov	%r15, 120(%rcx)\n"
    "	movups	%xmm0, 128(%rcx)\n"
    "	movups	%xmm1, 144(%rcx)\n"
    "	movups	%xmm7, 240(%rcx)\n"
    "	movups	%xmm8, 256(%rcx)\n"
    "	movups	%xmm15, 368(%rcx)\n"
    "	fstpl	384(%rcx)\n"
    "	stmxcsr	392(%rcx)\n"
    "	fnstcw	396(%rcx)\n"
    "	fninit\n"
    "	pop	%rdi\n"
    "	pop	%rsi\n"
    "	pop	%r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
    "	ret\n");

static void check_registers(void)
{
	static const int preserved[] = { 1, 6, 8, 9, 10, 12, 13, 14, 15 };
	static const int vectors[] = { 0, 1, 7, 8, 15 };
	struct registers in = { .mxcsr = 0x7f80, .control = 0x0e7f }, out = { 0 };
	uint32_t normal = 0x1f80;
	double x = 3.25;

	for (int i = 0; i < 16; i++)
		in.general[i] = 0x0101010101010101 * (i + 1);
	for (int i = 0; i < 32; i++)
		in.xmm[i] = 0x0123456789abcdef * (i + 3);
	memcpy(&in.x87, &x, 8);
	nr_handled = 0;
	signal_with_registers(&in, &out, getpid());
	asm volatile("ldmxcsr %0" ::"m"(normal));
	CHECK(nr_handled == 1 && out.general[0] == 0);
	CHECK(out.general[3] == 0x123456789 && out.general[4] == SIGUSR1);
	CHECK(out.general[5] == getpid());
	for (int i = 0; i < 9; i++)
		CHECK(out.general[preserved[i]] == in.general[preserved[i]]);
	for (int i = 0; i < 5; i++)
		CHECK(!memcmp(&out.xmm[vectors[i] * 2], &in.xmm[vectors[i] * 2], 16));
	CHECK(out.x87 == in.x87 && out.mxcsr == in.mxcsr && out.control == in.control);
}

TEST(registers)
{
	set_handler(SIGUSR1, on_clobber, 0);
	check_registers();
}

/*
 * The first words of the bytes for software in the FXSAVE area. They say that XSAVE state follows.
 */
struct software_words {
	uint32_t magic, bytes;
	uint64_t features;
};

static struct software_words *software_words(ucontext_t *uc)
{
	return (struct software_words *)((char *)uc->uc_mcontext.fpregs + 464);
}

#define XSAVE_MAGIC 0x46505853

static size_t before_page_end;

/*
 * Moves the state to two pages of a file that are not present, from which sigreturn must restore
 * it.
 */
static void on_move(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	struct software_words *words = software_words(uc);
	size_t bytes = words->magic == XSAVE_MAGIC ? words->bytes : 512;
	int fd = memfd_create("state", 0);
	char *pages;

	CHECK(pwrite(fd, uc->uc_mcontext.fpregs, bytes, 4096 - before_page_end) == bytes);
	pages = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(pages != MAP_FAILED && !close(fd));
	uc->uc_mcontext.fpregs = (void *)(pages + 4096 - before_page_end);
	on_clobber(sig, info, context);
}

/* The kernel can also save the state to pages that are not present. */
TEST(absent_pages)
{
	stack_t stack = { .ss_size = 65536 }, off = { .ss_flags = SS_DISABLE };

	set_handler(SIGUSR1, on_move, SA_ONSTACK);
	for (before_page_end = 64; before_page_end < 1024; before_page_end += 64) {
		char *pages = mmap(NULL, stack.ss_size + 4096, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(pages != MAP_FAILED);
		stack.ss_sp = pages + before_page_end;
		CHECK(!sigaltstack(&stack, NULL));
		check_registers();
		CHECK(!sigaltstack(&off, NULL) && !munmap(pages, stack.ss_size + 4096));
	}
	signal(SIGUSR1, SIG_DFL);
}

static int change;

enum {
	KEEP_ALL,
	FORGET_MAGIC,	/* as a program does that only knows FXSAVE */
	FORGET_FEATURE, /* the frame claims to have no AVX state */
	CLEAR_FEATURE,	/* the AVX state is marked as reset */
	UNKNOWN_FEATURE,
	COMPACT_FORM,
	RESERVED_MXCSR,
	NOT_ALIGNED,
	NR_CHANGES
};

#define AVX 4

static void on_change(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	struct software_words *words = software_words(uc);
	uint64_t *header = (uint64_t *)((char *)uc->uc_mcontext.fpregs + 512);

	nr_handled++;
	if (change == FORGET_MAGIC)
		words->magic = 0;
	else if (change == FORGET_FEATURE)
		words->features &= ~AVX;
	else if (change == CLEAR_FEATURE)
		header[0] &= ~AVX;
	else if (change == UNKNOWN_FEATURE)
		header[0] |= 1ull << 62;
	else if (change == COMPACT_FORM)
		header[1] |= 1ull << 63;
	else if (change == RESERVED_MXCSR)
		uc->uc_mcontext.fpregs->mxcsr |= 1u << 31;
	else if (change == NOT_ALIGNED)
		uc->uc_mcontext.fpregs = (void *)((char *)uc->uc_mcontext.fpregs + 8);
}

/* Returns both halves of a register, after a handler that changes the frame. */
__attribute__((target("avx"))) static void signal_with_avx(uint64_t out[4])
{
	static const uint64_t in[4] = { 1, 2, 3, 4 };

	asm volatile("vmovdqu %1, %%ymm9\n"
		     "syscall\n"
		     "vmovdqu %%ymm9, %0"
		     : "=m"(*(uint64_t(*)[4])out)
		     : "m"(in), "a"(SYS_kill), "D"(getpid()), "S"(SIGUSR1)
		     : "rcx", "r11", "xmm9", "memory");
}

/*
 * State that a frame omits is reset. A frame that no CPU would load ends the program. Since about
 * version 6.18, Linux loads a part of a frame that is not aligned; this kernel does not.
 */
TEST(changed_state)
{
	if (!__builtin_cpu_supports("avx"))
		return;
	set_handler(SIGUSR1, on_change, 0);
	for (change = KEEP_ALL; change < NR_CHANGES; change++) {
		pid_t pid = fork_child();
		uint64_t high = change == KEEP_ALL ? 3 : 0;
		int status;

		if (!pid) {
			uint64_t out[4];

			signal_with_avx(out);
			if (change == NOT_ALIGNED)
				child_exit(0);
			CHECK(nr_handled == 1 && out[0] == 1 && out[1] == 2);
			CHECK(out[2] == high && out[3] == (high ? 4 : 0));
			child_exit(0);
		}
		status = child_status(pid) & 0x7f;
		if (change != NOT_ALIGNED || !access("/proc/profile", F_OK))
			CHECK(status == (change < UNKNOWN_FEATURE ? 0 : SIGSEGV));
	}
	signal(SIGUSR1, SIG_DFL);
}

/* A loop that uses every register is interrupted at any instruction. */
__attribute__((target("avx"))) static void sum_avx(double *sums, volatile int *turns,
						   int nr_signals)
{
	typedef double vector __attribute__((vector_size(32)));
	vector sum = { 0 }, one = { 1, 2, 3, 4 };
	long left = 0;

	while (nr_handled < nr_signals) {
		for (int i = 0; i < 1000; i++) {
			asm volatile("vaddpd %1, %0, %0" : "+x"(sum) : "x"(one));
			left++;
		}
	}
	*turns = left;
	memcpy(sums, &sum, sizeof(sum));
}

static void sum_sse(double *sums, volatile int *turns, int nr_signals)
{
	double sum = 0, one = 1;
	long left = 0;

	while (nr_handled < nr_signals) {
		for (int i = 0; i < 1000; i++) {
			asm volatile("addsd %1, %0" : "+x"(sum) : "x"(one));
			left++;
		}
	}
	*turns = left;
	for (int i = 0; i < 4; i++)
		sums[i] = sum * (i + 1);
}

TEST(interrupted_loop)
{
	pid_t parent = getpid(), pid;
	volatile int turns = 0;
	double sums[4];

	set_handler(SIGUSR1, on_clobber, 0);
	pid = fork_child();
	if (!pid) {
		while (!kill(parent, SIGUSR1))
			sleep_ms(1);
		child_exit(0);
	}
	if (__builtin_cpu_supports("avx"))
		sum_avx(sums, &turns, 100);
	else
		sum_sse(sums, &turns, 100);
	kill(pid, SIGKILL);
	CHECK(child_status(pid) == SIGKILL);
	for (int i = 0; i < 4; i++)
		CHECK(sums[i] == (double)turns * (i + 1));
	signal(SIGUSR1, SIG_DFL);
}

static void on_skip(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	nr_handled++;
	regs[REG_RIP] += 2;
	regs[REG_RAX] = 0x1122334455667788;
	regs[REG_R12] += 5;
	regs[REG_EFL] |= 1; /* carry */
}

/* The handler steps over an instruction and changes registers and flags. */
TEST(changes)
{
	uint64_t rax = 1, r12 = 0;
	uint8_t carry;

	set_handler(SIGILL, on_skip, 0);
	asm volatile("mov $10, %%r12d\n"
		     "clc\n"
		     "ud2\n"
		     "setc %2\n"
		     "mov %%r12, %1\n"
		     : "+a"(rax), "=r"(r12), "=q"(carry)
		     :
		     : "r12", "cc");
	CHECK(nr_handled == 1 && rax == 0x1122334455667788 && r12 == 15 && carry == 1);
	signal(SIGILL, SIG_DFL);
}

static void on_context(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	nr_handled++;
	CHECK(uc->uc_link == NULL && uc->uc_mcontext.fpregs);
	CHECK(((uintptr_t)uc->uc_mcontext.fpregs & 63) == 0 || !__builtin_cpu_supports("avx"));
	CHECK(uc->uc_mcontext.gregs[REG_CSGSFS] & 3);
	CHECK(!sigismember(&uc->uc_sigmask, SIGUSR1) && sigismember(&uc->uc_sigmask, SIGUSR2));
	sigaddset(&uc->uc_sigmask, SIGHUP);
	sigaddset(&uc->uc_sigmask, SIGKILL);
}

/* The mask in the frame is restored. The stack of a handler is aligned as for a call. */
TEST(frame)
{
	sigset_t set, now, old;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK(!sigprocmask(SIG_BLOCK, &set, &old));
	set_handler(SIGUSR1, on_context, 0);
	CHECK(!raise(SIGUSR1) && nr_handled == 1 && !sigprocmask(SIG_BLOCK, NULL, &now));
	CHECK(sigismember(&now, SIGUSR2) && sigismember(&now, SIGHUP));
	CHECK(!sigismember(&now, SIGUSR1) && !sigismember(&now, SIGKILL));
	CHECK(!sigprocmask(SIG_SETMASK, &old, NULL));
	signal(SIGUSR1, SIG_DFL);
}

static char *altstack;
static size_t altstack_bytes;
static sigjmp_buf recovered;

static int is_on_altstack(void *address)
{
	return (char *)address >= altstack && (char *)address < altstack + altstack_bytes;
}

static void on_altstack(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	stack_t now, other = { .ss_sp = altstack, .ss_size = altstack_bytes };
	int on;

	nr_handled++;
	on = is_on_altstack(&now);
	CHECK(!sigaltstack(NULL, &now));
	if (sig == SIGUSR2) {
		CHECK(!on && now.ss_flags == 0);
		return;
	}
	CHECK(on && now.ss_flags == SS_ONSTACK && now.ss_sp == altstack);
	CHECK(sigaltstack(&other, NULL) == -1 && errno == EPERM);
	CHECK(uc->uc_stack.ss_sp == altstack && uc->uc_stack.ss_size == altstack_bytes);
	/* Arrives on the alternate stack: its frame goes below, on the same stack. */
	if (sig == SIGHUP) {
		CHECK((char *)&now > altstack);
	} else if (sig == SIGUSR1) {
		CHECK(!raise(SIGHUP) && nr_handled == 2);
	} else if (sig == SIGSEGV) {
		siglongjmp(recovered, 1);
	}
}

static int overflow(int depth)
{
	volatile char frame[4096];

	frame[0] = depth;
	return depth == 1 << 30 ? -1 : overflow(depth + 1) + frame[0];
}

TEST(altstack)
{
	stack_t stack = { 0 }, old;

	altstack_bytes = 65536;
	altstack = mmap(NULL, altstack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	stack.ss_sp = altstack;
	stack.ss_size = 100;
	CHECK(sigaltstack(&stack, NULL) == -1 && errno == ENOMEM);
	stack.ss_size = altstack_bytes;
	stack.ss_flags = 77;
	CHECK(sigaltstack(&stack, NULL) == -1 && errno == EINVAL);
	stack.ss_flags = 0;
	CHECK(!sigaltstack(&stack, &old) && old.ss_flags == SS_DISABLE);
	set_handler(SIGHUP, on_altstack, SA_ONSTACK);
	set_handler(SIGSEGV, on_altstack, SA_ONSTACK);
	set_handler(SIGUSR2, on_altstack, 0);
	set_handler(SIGUSR1, on_altstack, SA_ONSTACK);
	CHECK(!raise(SIGUSR2) && nr_handled == 1);
	nr_handled = 0;
	CHECK(!raise(SIGUSR1) && nr_handled == 2);
	nr_handled = 0;
	for (int i = 0; i < 3; i++) {
		if (!sigsetjmp(recovered, 1))
			CHECK(overflow(0) == -1); /* never returns */
	}
	CHECK(nr_handled == 3);
	stack.ss_flags = SS_DISABLE;
	CHECK(!sigaltstack(&stack, &old) && old.ss_sp == altstack && old.ss_flags == 0);
	CHECK(!sigaltstack(NULL, &old) && old.ss_flags == SS_DISABLE);
	munmap(altstack, altstack_bytes);
	for (int sig = 1; sig <= SIGUSR2; sig++)
		if (sig == SIGHUP || sig == SIGSEGV || sig == SIGUSR1 || sig == SIGUSR2)
			signal(sig, SIG_DFL);
}

/* If no frame can be pushed, or sigreturn finds an invalid frame, SIGSEGV ends the process. */
TEST(no_frame)
{
	for (int how = 0; how < 3; how++) {
		pid_t pid = fork_child();

		if (!pid) {
			set_handler(SIGUSR1, on_clobber, 0);
			set_handler(SIGSEGV, on_clobber, 0);
			if (how == 0)
				overflow(0);
			else if (how == 1)
				asm volatile("xor %%esp, %%esp; mov $39, %%eax; syscall\n"
					     "mov %%eax, %%edi; mov $10, %%esi\n"
					     "mov $62, %%eax; syscall; ud2" ::
						     : "memory");
			else
				asm volatile("mov $15, %%eax; mov $8, %%esp; syscall; ud2" ::
						     : "memory");
			child_exit(1);
		}
		CHECK((child_status(pid) & 0x7f) == SIGSEGV);
	}
}

static void on_depth(int sig, siginfo_t *info, void *context)
{
	int mine = ++nr_handled;

	if (sig < 60)
		raise(sig + 1);
	CHECK(nr_handled >= mine);
}

/* A handler within a handler within a handler. */
TEST(nested)
{
	for (int sig = 40; sig <= 60; sig++)
		set_handler(sig, on_depth, 0);
	CHECK(!raise(40) && nr_handled == 21);
}

int main(int argc, char **argv)
{
	return run_tests("sigcontext", argc, argv);
}
