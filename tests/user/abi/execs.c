// SPDX-License-Identifier: BSD-2-Clause
/*
 * execve in a child: arguments and environment, state that is kept or reset, and files that are not
 * programs. The program runs itself: argv[1] selects the check, and the exit status is 0 or 99.
 * Scripts are tested by scripts.c.
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "run.h"

#define MAX_STRING (32 * 4096) /* of one argument, its zero included */

extern char **environ;

static const char *self;

/* Runs @path in a child and returns its wait status. The child exits with 77 if execve returns. */
static int run(const char *path, char **argv, char **envp)
{
	pid_t pid = fork_child();

	if (!pid) {
		execve(path, argv, envp);
		child_exit(77);
	}
	return child_status(pid);
}

static int run_role(const char *role, const char *more)
{
	return run(self, (char *[]){ (char *)self, (char *)role, (char *)more, NULL }, environ);
}

/* --args: checks the arguments from test_arguments(). */
static void role_args(int argc, char **argv)
{
	CHECK(argc == 5 && !argv[5]);
	CHECK(!strcmp(argv[2], "") && !strcmp(argv[3], "two words") && !strcmp(argv[4], "\1\377"));
	CHECK(!strcmp(environ[0], "A=1") && !strcmp(environ[1], "=") && !strcmp(environ[2], ""));
	CHECK(!environ[3]);
	CHECK(!strcmp((char *)getauxval(AT_EXECFN), argv[0]));
	CHECK(getauxval(AT_PAGESZ) == 4096 && getauxval(AT_SECURE) == 0);
	CHECK(getauxval(AT_UID) == getuid() && getauxval(AT_EGID) == getegid());
	CHECK(getauxval(AT_RANDOM) && getauxval(AT_PHDR) && getauxval(AT_ENTRY));
	CHECK(((uintptr_t)environ & 7) == 0);
}

TEST(arguments)
{
	char *argv[] = { (char *)self, "--args", "", "two words", "\1\377", NULL };
	char *envp[] = { "A=1", "=", "", NULL };

	CHECK(run(self, argv, envp) == 0);
	/* No arguments at all: the program gets an empty one. */
	CHECK(run(self, NULL, (char *[]){ "EXECS_EMPTY=1", NULL }) == EXITED(11));
	CHECK(run(self, (char *[]){ NULL }, (char *[]){ "EXECS_EMPTY=1", NULL }) == EXITED(11));
	argv[1] = "--no-env";
	CHECK(run(self, argv, NULL) == EXITED(12));
}

/* --long: adds up the lengths of its arguments. */
static void role_long(int argc, char **argv)
{
	size_t total = 0;

	for (int i = 2; i < argc; i++) {
		CHECK(argv[i][0] == 'a' + i % 26 && argv[i][strlen(argv[i]) - 1] == 'a' + i % 26);
		total += strlen(argv[i]);
	}
	CHECK(total == atoi(getenv("TOTAL")));
}

static int run_long(int nr, size_t len)
{
	char **argv = calloc(nr + 3, sizeof(*argv)), total[32];
	int status;

	argv[0] = (char *)self;
	argv[1] = "--long";
	for (int i = 2; i < nr + 2; i++) {
		argv[i] = malloc(len + 1);
		memset(argv[i], 'a' + i % 26, len);
		argv[i][len] = 0;
	}
	snprintf(total, sizeof(total), "TOTAL=%zu", nr * len);
	status = run(self, argv, (char *[]){ total, NULL });
	for (int i = 2; i < nr + 2; i++)
		free(argv[i]);
	free(argv);
	return status;
}

TEST(long_arguments)
{
	CHECK(run_long(1, 4096) == 0);
	CHECK(run_long(1, 100000) == 0);
	CHECK(run_long(3000, 10) == 0);
	CHECK(run_long(1, MAX_STRING - 1) == 0);
	CHECK(run_long(1, MAX_STRING) == EXITED(77)); /* E2BIG */
}

/* --kept: the environment says what the caller was. */
static void role_kept(void)
{
	sigset_t set, pending;
	char cwd[PATH_MAX], text[100];
	struct sigaction action;

	snprintf(text, sizeof(text), "%d %d %d %d", getpid(), getppid(), getpgrp(), getsid(0));
	CHECK(!strcmp(text, getenv("IDS")));
	CHECK(getcwd(cwd, sizeof(cwd)) && !strcmp(cwd, "/tmp") && umask(0) == 027);
	CHECK(!sigprocmask(SIG_BLOCK, NULL, &set) && sigismember(&set, SIGUSR1));
	CHECK(!sigpending(&pending) && sigismember(&pending, SIGUSR1));
	CHECK(!sigismember(&pending, SIGUSR2) && !sigismember(&set, SIGUSR2));
	CHECK(!sigaction(SIGUSR2, NULL, &action) && action.sa_handler == SIG_DFL);
	CHECK(action.sa_flags == 0 && !sigismember(&action.sa_mask, SIGHUP));
	CHECK(!sigaction(SIGHUP, NULL, &action) && action.sa_handler == SIG_IGN);
	CHECK(alarm(0) > 40);
	CHECK(fcntl(20, F_GETFD) == 0 && fcntl(22, F_GETFD) == 0);
	CHECK(fcntl(21, F_GETFD) == -1 && fcntl(23, F_GETFD) == -1);
	CHECK(lseek(20, 0, SEEK_CUR) == 5);
}

static void on_signal(int sig)
{
}

TEST(kept)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	char ids[100], *argv[] = { (char *)self, "--kept", NULL };
	pid_t pid = fork_child();
	stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
	sigset_t set;
	int fd;

	if (pid) {
		CHECK(child_status(pid) == 0);
		return;
	}
	CHECK(!chdir("/tmp") && umask(027) != 027);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&action.sa_mask, SIGHUP);
	CHECK(!sigaction(SIGUSR2, &action, NULL) && !sigaltstack(&stack, NULL));
	action.sa_handler = SIG_IGN;
	CHECK(!sigaction(SIGHUP, &action, NULL));
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL) && !kill(getpid(), SIGUSR1));
	alarm(50);
	fd = open(check_file_name(), O_CREAT | O_RDWR | O_TRUNC, 0600);
	CHECK(write(fd, "12345", 5) == 5);
	CHECK(dup2(fd, 20) == 20 && dup3(fd, 21, O_CLOEXEC) == 21 && dup2(fd, 22) == 22);
	CHECK(fcntl(fd, F_DUPFD_CLOEXEC, 23) == 23);
	CHECK(!setpgid(0, 0));
	snprintf(ids, sizeof(ids), "IDS=%d %d %d %d", getpid(), getppid(), getpgrp(), getsid(0));
	unlink(check_file_name());
	execve(self, argv, (char *[]){ ids, NULL });
	child_exit(77);
}

/* --fresh: no alternate stack, a fresh address space, the name of the program. */
static void role_fresh(int argc, char **argv)
{
	char name[17] = "", expected[17] = "";
	stack_t stack;

	CHECK(!sigaltstack(NULL, &stack) && stack.ss_flags == SS_DISABLE);
	CHECK_ERROR(EFAULT, SYS_access, strtoul(argv[2], NULL, 0), 0);
	CHECK(!prctl(PR_GET_NAME, name));
	strncpy(expected, strrchr(self, '/') + 1, 15);
	CHECK(!strcmp(name, expected));
}

TEST(fresh)
{
	stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
	char address[32];
	pid_t pid = fork_child();

	if (!pid) {
		void *page = mmap((void *)0x123450000000, 4096, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

		CHECK(page != MAP_FAILED && !sigaltstack(&stack, NULL));
		strcpy(page, "/");
		CHECK(!access(page, F_OK) && !prctl(PR_SET_NAME, "another"));
		snprintf(address, sizeof(address), "%p", page);
		execve(self, (char *[]){ (char *)self, "--fresh", address, NULL }, environ);
		child_exit(77);
	}
	CHECK(child_status(pid) == 0);
	free(stack.ss_sp);
}

static pid_t leader;

static void *exec_from_thread(void *arg)
{
	char id[32];

	snprintf(id, sizeof(id), "%d", leader);
	execve(self, (char *[]){ (char *)self, "--thread", id, NULL }, environ);
	child_exit(77);
	return arg;
}

static void *spin_or_sleep(void *arg)
{
	for (;;) {
		if (arg)
			sleep_ms(10000);
	}
	return NULL;
}

/* The thread that calls becomes the process; its parent sees one child with one end. */
TEST(thread)
{
	for (int i = 0; i < 4; i++) {
		pid_t pid = fork_child();
		pthread_t thread;

		if (!pid) {
			leader = getpid();
			for (int j = 0; j < 4; j++)
				CHECK(!pthread_create(&thread, NULL, spin_or_sleep,
						      j % 2 ? &leader : NULL));
			CHECK(!pthread_create(&thread, NULL, exec_from_thread, NULL));
			if (i == 0)
				syscall(SYS_exit, 5); /* the first thread has exited already */
			spin_or_sleep(i == 1 ? NULL : &leader);
		}
		CHECK(child_status(pid) == EXITED(13));
	}
}

static int exec_errno(const char *path)
{
	pid_t pid = fork_child();

	if (!pid) {
		execve(path, (char *[]){ "x", NULL }, environ);
		child_exit(errno);
	}
	return WEXITSTATUS(child_status(pid));
}

static int exec_content(const char *text, size_t len, mode_t mode)
{
	const char *name = check_file_name();
	int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0755);

	CHECK(fd >= 0 && write(fd, text, len) == len && !fchmod(fd, mode) && !close(fd));
	return exec_errno(name);
}

TEST(errors)
{
	char path[PATH_MAX + 10], *big = malloc(MAX_STRING + 1);

	CHECK(exec_content("", 0, 0755) == ENOEXEC);
	CHECK(exec_content("garbage\n", 8, 0755) == ENOEXEC);
	CHECK(exec_content("\177ELF\2\1\1", 7, 0755) == ENOEXEC);
	CHECK(exec_content("garbage\n", 8, 0644) == EACCES); /* not even for root */
	CHECK(exec_errno("/tmp") == EACCES && exec_errno("/") == EACCES);
	CHECK(exec_errno("/dev/null") == EACCES);
	/* A FIFO is not even opened, because that would wait for a writer. */
	CHECK(!unlink(check_file_name()) && !mkfifo(check_file_name(), 0755));
	CHECK(exec_errno(check_file_name()) == EACCES);
	CHECK(exec_errno("/no/such") == ENOENT && exec_errno("") == ENOENT);
	snprintf(path, sizeof(path), "%s/x", check_file_name());
	CHECK(exec_errno(path) == ENOTDIR);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	CHECK(exec_errno(path) == ENAMETOOLONG);
	path[300] = 0;
	path[0] = '/';
	CHECK(exec_errno(path) == ENAMETOOLONG);
	unlink(check_file_name());
	CHECK(!symlink(check_file_name(), check_file_name()) &&
	      exec_errno(check_file_name()) == ELOOP);
	unlink(check_file_name());
	CHECK(!symlink(self, check_file_name()));
	CHECK(run(check_file_name(), (char *[]){ (char *)self, "--quiet", NULL }, environ) ==
	      EXITED(14));
	unlink(check_file_name());
	memset(big, 'a', MAX_STRING);
	big[MAX_STRING] = 0;
	CHECK_ERROR(E2BIG, SYS_execve, self, (char *[]){ big, NULL }, environ);
	CHECK_ERROR(E2BIG, SYS_execve, self, (char *[]){ "x", NULL }, (char *[]){ big, NULL });
	CHECK_ERROR(EFAULT, SYS_execve, self, (char *[]){ (char *)8, NULL }, environ);
	CHECK_ERROR(EFAULT, SYS_execve, 8, (char *[]){ "x", NULL }, environ);
	CHECK_ERROR(EFAULT, SYS_execve, self, 8, environ);
	free(big);
}

/* A chain of programs, each the same process. */
TEST(chain)
{
	CHECK(run_role("--chain", "30") == EXITED(15));
}

static int role_chain(int left)
{
	char text[32];

	if (!left)
		return 15;
	snprintf(text, sizeof(text), "%d", left - 1);
	execve(self, (char *[]){ (char *)self, "--chain", text, NULL }, environ);
	return 77;
}

static int run_this_role(int argc, char **argv)
{
	if (!strcmp(argv[1], "--args"))
		role_args(argc, argv);
	else if (!strcmp(argv[1], "--long"))
		role_long(argc, argv);
	else if (!strcmp(argv[1], "--kept"))
		role_kept();
	else if (!strcmp(argv[1], "--fresh"))
		role_fresh(argc, argv);
	else if (!strcmp(argv[1], "--no-env"))
		return environ[0] ? 99 : 12;
	else if (!strcmp(argv[1], "--thread"))
		return getpid() == atoi(argv[2]) && syscall(SYS_gettid) == getpid() ? 13 : 99;
	else if (!strcmp(argv[1], "--chain"))
		return role_chain(atoi(argv[2]));
	else
		return 14;
	return check_nr_failed ? 99 : 0;
}

int main(int argc, char **argv)
{
	if (getenv("EXECS_EMPTY"))
		return argc == 1 && !argv[0][0] && !argv[1] ? 11 : 99;
	self = argv[0][0] == '/' ? argv[0] : "/bin/execs";
	if (argc > 1 && argv[1][0] == '-')
		return run_this_role(argc, argv);
	return run_tests("execs", argc, argv);
}
