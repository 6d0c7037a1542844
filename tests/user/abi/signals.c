// SPDX-License-Identifier: BSD-2-Clause
/*
 * Signals and their handlers: siginfo, signals blocked during a handler, the flags of sigaction,
 * faults, ignored signals, and signals that end a process. Contexts, queues and interrupted calls
 * have their own programs: sigcontext.c, sigqueues.c, restarts.c.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "run.h"

#define NR_MOST 65

static volatile int nr_handled, depth, deepest;
static volatile siginfo_t last;
static sigset_t mask_seen;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	nr_handled++;
	*(siginfo_t *)&last = *info;
	CHECK(info->si_signo == sig);
	sigprocmask(SIG_BLOCK, NULL, &mask_seen);
}

static void handle(int sig, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO };

	CHECK(!sigaction(sig, &action, NULL));
	nr_handled = 0;
}

static void set_plain(int sig, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	CHECK(!sigaction(sig, &action, NULL));
}

TEST(info)
{
	siginfo_t info = { .si_signo = SIGUSR2, .si_code = SI_QUEUE, .si_pid = 4321, .si_uid = 17 };
	union sigval value = { .sival_ptr = (void *)0x123456789abcdef0 };
	pid_t pid;

	handle(SIGUSR1, on_signal, 0);
	handle(SIGUSR2, on_signal, 0);
	CHECK(!kill(getpid(), SIGUSR1) && nr_handled == 1);
	CHECK(last.si_code == SI_USER && last.si_pid == getpid() && last.si_uid == getuid());
	CHECK(!raise(SIGUSR1) && nr_handled == 2);
	CHECK(last.si_code == SI_TKILL && last.si_pid == getpid() && last.si_uid == getuid());
	CHECK(!syscall(SYS_tkill, syscall(SYS_gettid), SIGUSR1) && last.si_code == SI_TKILL);
	CHECK(!sigqueue(getpid(), SIGUSR2, value) && nr_handled == 4);
	CHECK(last.si_code == SI_QUEUE && last.si_value.sival_ptr == value.sival_ptr);
	CHECK(last.si_pid == getpid() && last.si_uid == getuid());

	/* A process may send any siginfo to itself. */
	info.si_value = value;
	CHECK(!syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR2, &info) && nr_handled == 5);
	CHECK(last.si_pid == 4321 && last.si_uid == 17 && last.si_ptr == value.sival_ptr);
	info.si_code = SI_USER;
	CHECK(!syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGUSR2, &info));
	CHECK(last.si_code == SI_USER && last.si_pid == 4321);
	CHECK_ERROR(EPERM, SYS_rt_sigqueueinfo, getppid(), 0, &info);
	info.si_code = SI_QUEUE;
	CHECK(!syscall(SYS_rt_sigqueueinfo, getppid(), 0, &info));
	CHECK_ERROR(ESRCH, SYS_rt_sigqueueinfo, 1 << 30, 0, &info);

	pid = fork_child();
	if (!pid)
		child_exit(kill(getppid(), SIGUSR1));
	CHECK(child_status(pid) == 0 && last.si_pid == pid && last.si_code == SI_USER);
	set_plain(SIGUSR1, SIG_DFL);
	set_plain(SIGUSR2, SIG_DFL);
}

static void on_nested(int sig)
{
	depth++;
	if (deepest < depth)
		deepest = depth;
	if (nr_handled++ < 3)
		raise(SIGUSR1);
	depth--;
}

/*
 * A signal and those in sa_mask are blocked during its handler; with SA_NODEFER, the signal is not.
 */
TEST(masks)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO }, old;
	sigset_t before, after;

	CHECK(!sigprocmask(SIG_BLOCK, NULL, &before));
	sigaddset(&action.sa_mask, SIGUSR2);
	sigaddset(&action.sa_mask, 40);
	sigaddset(&action.sa_mask, SIGKILL); /* which cannot be blocked */
	CHECK(!sigaction(SIGUSR1, &action, NULL) && !raise(SIGUSR1));
	CHECK(sigismember(&mask_seen, SIGUSR1) && sigismember(&mask_seen, SIGUSR2));
	CHECK(sigismember(&mask_seen, 40) && !sigismember(&mask_seen, SIGHUP));
	CHECK(!sigismember(&mask_seen, SIGKILL));
	CHECK(!sigprocmask(SIG_BLOCK, NULL, &after) && !memcmp(&before, &after, 8));
	CHECK(!sigaction(SIGUSR1, NULL, &old) && old.sa_sigaction == on_signal);
	CHECK(sigismember(&old.sa_mask, SIGUSR2) && !sigismember(&old.sa_mask, SIGKILL));
	CHECK(old.sa_flags & SA_SIGINFO && !(old.sa_flags & (SA_NODEFER | SA_RESTART)));

	action = (struct sigaction){ .sa_handler = on_nested };
	nr_handled = depth = deepest = 0;
	CHECK(!sigaction(SIGUSR1, &action, NULL) && !raise(SIGUSR1));
	CHECK(nr_handled == 4 && deepest == 1 && depth == 0);
	action.sa_flags = SA_NODEFER;
	nr_handled = deepest = 0;
	CHECK(!sigaction(SIGUSR1, &action, NULL) && !raise(SIGUSR1));
	CHECK(nr_handled == 4 && deepest == 4 && depth == 0);
	set_plain(SIGUSR1, SIG_DFL);
}

TEST(resethand)
{
	struct sigaction now;
	pid_t pid;

	handle(SIGUSR1, on_signal, SA_RESETHAND);
	CHECK(!raise(SIGUSR1) && nr_handled == 1);
	CHECK(!sigaction(SIGUSR1, NULL, &now) && now.sa_handler == SIG_DFL);
	pid = fork_child();
	if (!pid) {
		raise(SIGUSR1);
		child_exit(1);
	}
	CHECK(child_status(pid) == SIGUSR1);
}

TEST(errors)
{
	struct sigaction action = { .sa_handler = SIG_IGN };
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		unsigned long mask;
	} raw = { SIG_IGN, 0, NULL, 0 };
	unsigned long set = 0;

	CHECK(sigaction(SIGKILL, &action, NULL) == -1 && errno == EINVAL);
	CHECK(sigaction(SIGSTOP, &action, NULL) == -1 && errno == EINVAL);
	CHECK(!sigaction(SIGKILL, NULL, &action) && action.sa_handler == SIG_DFL);
	CHECK_ERROR(EINVAL, SYS_rt_sigaction, 0, &raw, NULL, 8);
	CHECK_ERROR(EINVAL, SYS_rt_sigaction, NR_MOST, &raw, NULL, 8);
	CHECK_ERROR(EINVAL, SYS_rt_sigaction, SIGUSR1, &raw, NULL, 4);
	CHECK_ERROR(EFAULT, SYS_rt_sigaction, SIGUSR1, 8, NULL, 8);
	CHECK_ERROR(EFAULT, SYS_rt_sigaction, SIGUSR1, NULL, 8, 8);
	CHECK_ERROR(EINVAL, SYS_rt_sigprocmask, 3, &set, NULL, 8);
	CHECK_ERROR(EINVAL, SYS_rt_sigprocmask, SIG_SETMASK, &set, NULL, 4);
	CHECK_ERROR(EFAULT, SYS_rt_sigprocmask, SIG_SETMASK, 8, NULL, 8);
	CHECK_ERROR(EINVAL, SYS_rt_sigpending, &set, 9);
	CHECK(kill(getpid(), NR_MOST) == -1 && errno == EINVAL);
	CHECK(kill(getpid(), -1) == -1 && errno == EINVAL);
	CHECK(kill(1 << 30, SIGTERM) == -1 && errno == ESRCH);
	CHECK(kill(-(1 << 30), SIGTERM) == -1 && errno == ESRCH);
	CHECK(!kill(getpid(), 0) && !kill(0, 0) && !kill(-getpgrp(), 0));
	CHECK_ERROR(EINVAL, SYS_tgkill, 0, getpid(), SIGUSR1);
	CHECK_ERROR(EINVAL, SYS_tgkill, getpid(), -1, SIGUSR1);
	CHECK_ERROR(ESRCH, SYS_tgkill, getppid(), getpid(), 0);
	CHECK_ERROR(EINVAL, SYS_tgkill, getpid(), getpid(), NR_MOST);
	CHECK_ERROR(EINVAL, SYS_tkill, 0, SIGUSR1);
	CHECK_ERROR(ESRCH, SYS_tkill, 1 << 30, SIGUSR1);
	CHECK(!syscall(SYS_tgkill, getpid(), getpid(), 0));
}

static sigjmp_buf after_fault;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	*(siginfo_t *)&last = *info;
	siglongjmp(after_fault, sig);
}

#define FAULT_OF(statement)                           \
	({                                            \
		int sig_ = sigsetjmp(after_fault, 1); \
		if (!sig_) {                          \
			statement;                    \
			sig_ = -1;                    \
		}                                     \
		sig_;                                 \
	})

static char *pages;

static __attribute__((noinline)) void divide(void)
{
	asm volatile("xor %%edx, %%edx; xor %%ecx, %%ecx; mov $1, %%eax; div %%ecx" ::
			     : "eax", "ecx", "edx");
}

static void touch_past_end(void)
{
	int fd = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600);
	char *mapped;

	CHECK(write(fd, "x", 1) == 1);
	mapped = mmap((void *)0x123450000000, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		      fd, 0);
	CHECK(mapped != MAP_FAILED && mapped[0] == 'x' && mapped[100] == 0);
	close(fd);
	*(volatile char *)(mapped + 4096) = 1;
}

TEST(faults)
{
	static const int sigs[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP };

	for (int i = 0; i < 5; i++)
		handle(sigs[i], on_fault, 0);
	pages = mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(pages + 4096, 4096);
	CHECK(FAULT_OF(*(volatile char *)(pages + 4096 + 5) = 1) == SIGSEGV);
	CHECK(last.si_code == SEGV_MAPERR && last.si_addr == pages + 4096 + 5);
	CHECK(FAULT_OF(*(volatile char *)(pages + 7) = 1) == SIGSEGV);
	CHECK(last.si_code == SEGV_ACCERR && last.si_addr == pages + 7);
	CHECK(FAULT_OF(((void (*)(void))pages)()) == SIGSEGV);
	CHECK(last.si_code == SEGV_ACCERR && last.si_addr == pages);
	CHECK(FAULT_OF(*(volatile char *)0xffffffff81000000) == SIGSEGV);
	CHECK(last.si_code == SEGV_MAPERR && last.si_addr == (void *)0xffffffff81000000);
	CHECK(FAULT_OF(*(volatile char *)0x8000123412341234 = 1) == SIGSEGV);
	CHECK(last.si_code == SI_KERNEL && last.si_addr == NULL);
	CHECK(FAULT_OF(asm volatile("hlt")) == SIGSEGV && last.si_code == SI_KERNEL);
	CHECK(FAULT_OF(divide()) == SIGFPE && last.si_code == FPE_INTDIV);
	CHECK((uintptr_t)last.si_addr >= (uintptr_t)divide &&
	      (uintptr_t)last.si_addr < (uintptr_t)divide + 64);
	CHECK(FAULT_OF(asm volatile("ud2")) == SIGILL && last.si_code == ILL_ILLOPN);
	CHECK(FAULT_OF(asm volatile("int3")) == SIGTRAP && last.si_code == SI_KERNEL);
	CHECK(FAULT_OF(touch_past_end()) == SIGBUS && last.si_code == BUS_ADRERR);
	CHECK(last.si_addr == (void *)0x123450001000);
	munmap((void *)0x123450000000, 8192);
	munmap(pages, 3 * 4096);
	for (int i = 0; i < 5; i++)
		set_plain(sigs[i], SIG_DFL);
}

/* A fault whose signal is blocked or ignored ends the process all the same. */
TEST(forced)
{
	for (int how = 0; how < 3; how++) {
		pid_t pid = fork_child();
		sigset_t set;

		if (!pid) {
			sigemptyset(&set);
			sigaddset(&set, SIGSEGV);
			if (how == 0)
				set_plain(SIGSEGV, SIG_IGN);
			else
				CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
			if (how == 2)
				handle(SIGSEGV, on_fault, 0);
			asm volatile("movb $1, 8");
			child_exit(1);
		}
		CHECK((child_status(pid) & 0x7f) == SIGSEGV);
	}
}

static int ends_by(int sig)
{
	pid_t pid = fork_child();
	sigset_t set;
	int status;

	if (!pid) {
		raise(sig);
		/* If the signal has not ended the process, wait until another one does. */
		sigemptyset(&set);
		sigsuspend(&set);
		child_exit(1);
	}
	if (sig == SIGCHLD || sig == SIGURG || sig == SIGWINCH || sig == SIGCONT) {
		sleep_ms(10);
		CHECK(waitpid(pid, &status, WNOHANG) == 0);
		kill(pid, SIGKILL);
		return child_status(pid) == SIGKILL ? 0 : -1;
	}
	return child_status(pid) & 0x7f;
}

TEST(defaults)
{
	for (int sig = 1; sig < NR_MOST; sig++) {
		if (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU)
			continue; /* in waits.c */
		if (sig >= 32 && sig < 36)
			continue; /* the C library's */
		if (sig == SIGCHLD || sig == SIGURG || sig == SIGWINCH || sig == SIGCONT)
			CHECK(ends_by(sig) == 0);
		else
			CHECK(ends_by(sig) == sig);
	}
}

/* Ignored signals do nothing, and do not become pending. Setting SIG_IGN drops pending ones. */
TEST(ignored)
{
	sigset_t set, old, pending;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	set_plain(SIGUSR1, SIG_IGN);
	CHECK(!raise(SIGUSR1) && !kill(getpid(), SIGUSR1));
	handle(SIGUSR1, on_signal, 0);
	CHECK(!sigprocmask(SIG_BLOCK, &set, &old) && !raise(SIGUSR1) && nr_handled == 0);
	CHECK(!sigpending(&pending) && sigismember(&pending, SIGUSR1));
	set_plain(SIGUSR1, SIG_IGN);
	CHECK(!sigpending(&pending) && !sigismember(&pending, SIGUSR1));
	handle(SIGUSR1, on_signal, 0);
	CHECK(!sigprocmask(SIG_SETMASK, &old, NULL) && nr_handled == 0);
	set_plain(SIGUSR1, SIG_DFL);
}

int main(int argc, char **argv)
{
	return run_tests("signals", argc, argv);
}
