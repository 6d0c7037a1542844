// SPDX-License-Identifier: BSD-2-Clause
/*
 * fork, vfork, posix_spawn and clone: IDs, and what a child inherits. cow.c tests that memory is
 * not shared.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "run.h"

#define PAGE	   4096ul
#define NR_THREADS 64

extern char **environ;

static const char *self;

TEST(ids)
{
	pid_t parent = getpid(), pids[20], pid;

	pid = fork_child();
	if (!pid) {
		CHECK(getppid() == parent && getpid() != parent);
		CHECK(syscall(SYS_gettid) == getpid());
		CHECK(getpgrp() == getpgid(parent) && getsid(0) == getsid(parent));
		child_exit(7);
	}
	CHECK(child_status(pid) == EXITED(7));
	for (int i = 0; i < 20; i++) {
		pids[i] = fork_child();
		if (!pids[i])
			child_exit(i);
		for (int j = 0; j < i; j++)
			CHECK(pids[j] != pids[i]);
	}
	for (int i = 19; i >= 0; i--)
		CHECK(child_status(pids[i]) == EXITED(i));
}

/* Makes hundreds of processes in turn. The kernel must reuse all resources of each. */
TEST(many)
{
	int nr_wrong = 0;

	for (int i = 0; i < 300; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(i & 255);
		nr_wrong += child_status(pid) != EXITED(i & 255);
	}
	CHECK(nr_wrong == 0);
}

/* A zombie still counts as a process of its user. */
TEST(zombies)
{
	struct rlimit limit = { 20, 20 };
	int nr = 0, nr_reaped = 0;
	pid_t pid = fork_child();

	if (pid) {
		CHECK(child_status(pid) == EXITED(1));
		return;
	}
	CHECK(!setrlimit(RLIMIT_NPROC, &limit) && (getuid() || !setuid(4711)));
	while (nr < 100 && (pid = fork()) > 0)
		nr++;
	if (!pid)
		_exit(0);
	CHECK(pid == -1 && errno == EAGAIN && nr <= 20);
	while (wait(NULL) > 0)
		nr_reaped++;
	CHECK(nr_reaped == nr);
	child_exit(1);
}

#define USER_LIMIT  40
#define NR_FORKERS  4
#define NR_SLEEPERS 3

static struct {
	int go, nr_made, nr_done;
} * crowd;
static int crowd_ends[2]; /* the crowd reads until no writer is left */
/* This user and the next one have no processes but those of this test. */
static uid_t crowd_user;

static void wait_for_end(void)
{
	char byte;

	close(crowd_ends[1]);
	while (read(crowd_ends[0], &byte, 1) < 0)
		;
	child_exit(0);
}

static void *sleep_in_thread(void *unused)
{
	while (__atomic_load_n(&crowd->nr_done, __ATOMIC_ACQUIRE) < NR_FORKERS)
		sleep_ms(1);
	return unused;
}

/* Forks until that is refused. Returns the number of children. */
static int fork_until_refused(void)
{
	pid_t pid;
	int nr = 0;

	while ((pid = fork()) > 0)
		nr++;
	if (!pid)
		wait_for_end();
	CHECK(errno == EAGAIN);
	return nr;
}

static void fork_with_others(void)
{
	while (!__atomic_load_n(&crowd->go, __ATOMIC_ACQUIRE))
		sched_yield();
	__atomic_add_fetch(&crowd->nr_made, fork_until_refused(), __ATOMIC_RELAXED);
	__atomic_add_fetch(&crowd->nr_done, 1, __ATOMIC_RELEASE);
	wait_for_end();
}

/* A process that gets another real user does not count as one of its former user any more. */
static void make_other_user(void)
{
	int ready[2];
	char byte;

	CHECK(!pipe(ready));
	if (!fork_child()) {
		uid_t other = crowd_user + 1;

		CHECK(!setresuid(other, other, other) && write(ready[1], "x", 1) == 1);
		wait_for_end();
	}
	CHECK(read(ready[0], &byte, 1) == 1 && !close(ready[0]) && !close(ready[1]));
}

/*
 * Several processes fork at once, until all have been refused. Linux may refuse one of them too
 * early, so there may be room after them; but there is never one too many, threads included.
 */
static void fill_user(void)
{
	pthread_t threads[NR_SLEEPERS];
	int nr = 1 + NR_FORKERS + NR_SLEEPERS, nr_more = 0;

	crowd->go = crowd->nr_made = crowd->nr_done = 0;
	CHECK(!pipe(crowd_ends));
	make_other_user();
	for (int i = 0; i < NR_FORKERS; i++) {
		if (!fork_child())
			fork_with_others();
	}
	for (int i = 0; i < NR_SLEEPERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, sleep_in_thread, NULL));
	__atomic_store_n(&crowd->go, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < NR_SLEEPERS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(nr + crowd->nr_made <= USER_LIMIT);
	/*
	 * The end of the threads makes room. A thread that was joined may not have ended completely
	 * yet.
	 */
	CHECK(WAIT_UNTIL((nr_more += fork_until_refused()) ==
			 USER_LIMIT - 1 - NR_FORKERS - crowd->nr_made));
	close(crowd_ends[0]);
	close(crowd_ends[1]);
	while (wait(NULL) > 0)
		;
}

/*
 * Runs the test several times, to check that every process and thread that ends makes room for
 * another.
 */
TEST(user_limit)
{
	struct rlimit limit = { USER_LIMIT, USER_LIMIT };
	pid_t pid;

	if (getuid())
		return;
	crowd_user = 1000000 + 2 * getpid();
	crowd = mmap(NULL, sizeof(*crowd), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	pid = fork_child();
	if (pid) {
		CHECK(child_status(pid) == EXITED(0));
		return;
	}
	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 1) && !setrlimit(RLIMIT_NPROC, &limit));
	CHECK(!setresuid(crowd_user, crowd_user, crowd_user + 1));
	for (int round = 0; round < 5; round++)
		fill_user();
	child_exit(0);
}

static int static_data[8];

/* Open files are shared, the table of descriptors is not. */
TEST(descriptors)
{
	int fd = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600), other;
	pid_t pid;

	CHECK(write(fd, "0123456789", 10) == 10 && lseek(fd, 2, SEEK_SET) == 2);
	pid = fork_child();
	if (!pid) {
		char c;

		CHECK(read(fd, &c, 1) == 1 && c == '2');
		CHECK(lseek(fd, 7, SEEK_SET) == 7);
		CHECK(fcntl(fd, F_SETFL, O_APPEND) == 0);
		other = dup(fd);
		CHECK(other > fd && !close(fd) && !close(other));
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	CHECK(lseek(fd, 0, SEEK_CUR) == 7);
	CHECK(fcntl(fd, F_GETFL) & O_APPEND);
	CHECK(fcntl(fd + 1, F_GETFD) == -1 && errno == EBADF);
	close(fd);
}

static void on_signal(int sig)
{
}

/* Kept: directory, umask, signal mask and actions. Not kept: pending signals and the alarm. */
TEST(inherited)
{
	struct sigaction action = { .sa_handler = on_signal }, old;
	sigset_t set, saved;
	char cwd[200], now[200];
	mode_t mask = umask(031);
	long start = now_ms();
	pid_t pid;

	CHECK(getcwd(cwd, sizeof(cwd)) && !chdir("/tmp"));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGALRM);
	CHECK(!sigprocmask(SIG_BLOCK, &set, &saved) && !sigaction(SIGUSR2, &action, NULL));
	CHECK(!kill(getpid(), SIGUSR1));
	alarm(50);
	pid = fork_child();
	if (!pid) {
		CHECK(getcwd(now, sizeof(now)) && !strcmp(now, "/tmp") && umask(0) == 031);
		CHECK(!chdir("/"));
		CHECK(!sigpending(&set) && !sigismember(&set, SIGUSR1));
		CHECK(!sigprocmask(SIG_BLOCK, NULL, &set) && sigismember(&set, SIGUSR1));
		CHECK(!sigaction(SIGUSR2, NULL, &old) && old.sa_handler == on_signal);
		CHECK(alarm(0) == 0);
		action.sa_handler = SIG_IGN;
		CHECK(!sigaction(SIGUSR2, &action, NULL));
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	CHECK(is_alarm_left(alarm(0), 50, start));
	CHECK(getcwd(now, sizeof(now)) && !strcmp(now, "/tmp") && umask(mask) == 031);
	CHECK(!sigaction(SIGUSR2, NULL, &old) && old.sa_handler == on_signal);
	CHECK(!sigpending(&set) && sigismember(&set, SIGUSR1));
	action.sa_handler = SIG_IGN;
	CHECK(!sigaction(SIGUSR1, &action, NULL)); /* reset by exec */
	action.sa_handler = SIG_DFL;
	CHECK(!sigaction(SIGUSR1, &action, NULL) && !sigaction(SIGUSR2, &action, NULL));
	CHECK(!sigprocmask(SIG_SETMASK, &saved, NULL) && !chdir(cwd));
}

/* The parent waits until the child no longer uses the memory, which both share. */
TEST(vfork)
{
	volatile int seen = 0;
	int status = 0, ends[2];
	pid_t pid;

	CHECK(!pipe2(ends, O_CLOEXEC));
	fflush(stdout);
	pid = vfork();
	if (!pid) {
		seen = getpid();
		syscall(SYS_nanosleep, &(struct timespec){ 0, 50000000 }, NULL);
		static_data[7] = 7;
		_exit(3);
	}
	CHECK(pid > 0 && seen == pid && static_data[7] == 7);
	CHECK(waitpid(pid, &status, 0) == pid && status == EXITED(3));
	static_data[7] = 0;

	pid = vfork();
	if (!pid) {
		syscall(SYS_nanosleep, &(struct timespec){ 0, 50000000 }, NULL);
		seen = 1;
		dup2(ends[0], 0);
		execve(self, (char *[]){ (char *)self, "--until-end", NULL }, environ);
		_exit(127);
	}
	CHECK(seen == 1);
	/* vfork() returned when the child called execve. */
	CHECK(waitpid(pid, &status, WNOHANG) == 0);
	CHECK(!close(ends[0]) && !close(ends[1]) && child_status(pid) == EXITED(4));

	pid = vfork();
	if (!pid) {
		execve("/no/such/program", (char *[]){ "x", NULL }, environ);
		seen = errno;
		_exit(5);
	}
	CHECK(seen == ENOENT && child_status(pid) == EXITED(5));

	pid = vfork();
	if (!pid) {
		syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
		_exit(6);
	}
	CHECK((child_status(pid) & 0x7f) == SIGKILL);
}

TEST(spawn)
{
	char *argv[] = { (char *)self, "--cat", NULL }, text[16] = "";
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int fd = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600);
	sigset_t set;
	pid_t pid;

	CHECK(write(fd, "spawned", 7) == 7 && !lseek(fd, 0, SEEK_SET));
	CHECK(!posix_spawn_file_actions_init(&actions) && !posix_spawnattr_init(&attr));
	CHECK(!posix_spawn_file_actions_adddup2(&actions, fd, 0));
	CHECK(!posix_spawn_file_actions_addopen(&actions, 9, self, O_RDONLY, 0));
	CHECK(!posix_spawn_file_actions_addclose(&actions, fd));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK(!posix_spawnattr_setsigmask(&attr, &set));
	CHECK(!posix_spawnattr_setpgroup(&attr, 0));
	CHECK(!posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP));
	CHECK(!posix_spawn(&pid, self, &actions, &attr, argv, environ));
	CHECK(child_status(pid) == EXITED(8));
	CHECK(pread(fd, text, sizeof(text), 0) == 8 && !strcmp(text, "spawned!"));
	CHECK(posix_spawn(&pid, "/no/such/program", NULL, NULL, argv, environ) == ENOENT);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	close(fd);
}

/* The program that test_spawn() starts: adds a byte to its standard input. */
static int spawned(void)
{
	char text[16];
	sigset_t set;

	if (read(0, text, sizeof(text)) != 7 || write(0, "!", 1) != 1 || getpgrp() != getpid())
		return 1;
	if (sigprocmask(SIG_BLOCK, NULL, &set) || !sigismember(&set, SIGUSR2))
		return 2;
	return fcntl(9, F_GETFD) == 0 ? 8 : 3;
}

static volatile int nr_turns, threads_end;

static void *turn(void *arg)
{
	while (!threads_end) {
		__atomic_add_fetch(&nr_turns, 1, __ATOMIC_RELAXED);
		if (arg)
			usleep(1000);
		else
			sched_yield();
	}
	return NULL;
}

static void *fork_in_thread(void *arg)
{
	long me = (long)arg, status;
	pid_t pid = fork();

	if (!pid) {
		int before = nr_turns;

		if (syscall(SYS_gettid) != getpid())
			_exit(200);
		sleep_ms(20);
		_exit(nr_turns != before ? 201 : me);
	}
	status = child_status(pid);
	return (void *)(status == EXITED(me) ? 0 : status | 1l << 32);
}

/* A forked child of a process with several threads has one thread: the one that called fork(). */
TEST(threads)
{
	pthread_t threads[NR_THREADS], busy[2];
	void *result;

	threads_end = 0;
	CHECK(!pthread_create(&busy[0], NULL, turn, NULL));
	CHECK(!pthread_create(&busy[1], NULL, turn, &busy));
	for (long i = 0; i < 4; i++)
		CHECK(fork_in_thread((void *)i) == NULL);
	for (long i = 0; i < NR_THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, fork_in_thread, (void *)i));
	for (int i = 0; i < NR_THREADS; i++)
		CHECK(!pthread_join(threads[i], &result) && !result);
	threads_end = 1;
	CHECK(!pthread_join(busy[0], NULL) && !pthread_join(busy[1], NULL));
}

static int cloned(void *arg)
{
	*(volatile int *)arg = getpid();
	return 9;
}

/* The words that clone() writes, a process that shares memory, and flags that are refused. */
TEST(clone)
{
	static char stack[16 * PAGE] __attribute__((aligned(16)));
	volatile int seen = 0, parent_tid = 0, child_tid = 0;
	int status;
	pid_t pid;

	pid = syscall(SYS_clone, CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | SIGCHLD, 0, &parent_tid,
		      &child_tid, 0);
	if (!pid)
		_exit(child_tid == getpid() ? 2 : 3);
	CHECK(pid > 0 && parent_tid == pid && child_tid == 0 && child_status(pid) == EXITED(2));

	pid = clone(cloned, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)&seen);
	CHECK(pid > 0 && seen == pid && child_status(pid) == EXITED(9));

	/* Without an exit signal only a wait with __WALL or __WCLONE sees it. */
	pid = syscall(SYS_clone, 0, 0, 0, 0, 0);
	if (!pid)
		_exit(11);
	CHECK(waitpid(pid, &status, 0) == -1 && errno == ECHILD);
	CHECK(waitpid(pid, &status, __WCLONE) == pid && status == EXITED(11));

	/* There is no I/O context to share. */
	pid = syscall(SYS_clone, CLONE_IO | SIGCHLD, 0, 0, 0, 0);
	if (!pid)
		_exit(13);
	CHECK(pid > 0 && child_status(pid) == EXITED(13));

	/* An exit signal with an invalid number is accepted, and not sent. */
	pid = syscall(SYS_clone, 65, 0, 0, 0, 0);
	if (!pid)
		_exit(12);
	CHECK(waitpid(pid, &status, __WALL) == pid && status == EXITED(12));

	CHECK_ERROR(EINVAL, SYS_clone, CLONE_THREAD | SIGCHLD, 0, 0, 0, 0);
	CHECK_ERROR(EINVAL, SYS_clone, CLONE_SIGHAND | SIGCHLD, 0, 0, 0, 0);
	CHECK_ERROR(EINVAL, SYS_clone, CLONE_VM | CLONE_THREAD, 0, 0, 0, 0);
}

int main(int argc, char **argv)
{
	self = argv[0][0] == '/' ? argv[0] : "/proc/self/exe";
	if (argc > 1 && !strcmp(argv[1], "--until-end")) {
		char byte;

		return read(0, &byte, 1) == 0 ? 4 : 1;
	}
	if (argc > 1 && !strcmp(argv[1], "--cat"))
		return spawned();
	return run_tests("forks", argc, argv);
}
