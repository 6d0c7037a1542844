// SPDX-License-Identifier: BSD-2-Clause
/*
 * names [reboot|oom|crash]: programs with names that would forge lines of the log and of /proc
 * files, if the kernel printed them unchanged. Without an argument, a user other than root makes
 * the kernel print the name. With one, root does so, in a way that ends the machine or the program.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/syscall.h>

#include "run.h"

#define NAME	"x\nKernel panic:"
#define ESCAPED "x\\x0aKernel panic:"
#define LINE	"\nUid:\t0\t0\t0\t0"

static const char *read_whole(const char *path)
{
	static char text[8192];
	int fd = open(path, O_RDONLY), n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	close(fd);
	return text;
}

static void check_proc(void)
{
	char path[96];
	void *page;
	int fd;

	CHECK(!prctl(PR_SET_NAME, "x" LINE));
	CHECK(strstr(read_whole("/proc/self/status"),
		     "Name:\tx\\x0aUid:\\x090\\x090\\x090\\x090\nSt"));
	CHECK(!strstr(read_whole("/proc/self/status"), LINE));
	CHECK(strstr(read_whole("/proc/self/stat"), " (x\\x0aUid:\\x090\\x090\\x090\\x090) R "));
	CHECK(!strcmp(read_whole("/proc/self/comm"), "x\\x0aUid:\\x090\\x090\\x090\\x090\n"));
	CHECK(!prctl(PR_SET_NAME, "a \"b\" \\ \x1b[2J\xc3"));
	CHECK(!strcmp(read_whole("/proc/self/comm"), "a \\\"b\\\" \\\\ \\x1b[2J\\xc3\n"));

	/* The name of a file in /proc/self/maps. */
	snprintf(path, sizeof(path), "%s" LINE, check_file_name());
	fd = open(path, O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && !ftruncate(fd, 4096));
	page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(page != MAP_FAILED && !strstr(read_whole("/proc/self/maps"), LINE));
	CHECK(strstr(read_whole("/proc/self/maps"), "\\x0aUid:\\x090"));
	CHECK(!close(fd) && !unlink(path));
}

/* Makes the kernel print two lines with the name: for an unsupported call, and for a fault. */
static void make_kernel_print(void)
{
	CHECK(!prctl(PR_SET_NAME, NAME));
	CHECK_ERROR(EINVAL, SYS_clone, CLONE_NEWUSER, 0, 0, 0, 0);
	__builtin_trap();
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pid_t pid;
	int fd;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(how, "reboot")) {
		prctl(PR_SET_NAME, NAME);
		reboot(RB_POWER_OFF);
	} else if (!strcmp(how, "crash")) {
		prctl(PR_SET_NAME, NAME);
		fd = open("/proc/sysrq-trigger", O_WRONLY);
		CHECK(write(fd, "t", 1) == 1 && write(fd, "c", 1) == 1);
	}
	pid = fork_child();
	if (!pid && !strcmp(how, "oom")) {
		CHECK(!prctl(PR_SET_NAME, NAME));
		for (;;)
			memset(mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			       1, 1 << 20);
	}
	if (!pid) {
		CHECK(!setuid(1000));
		check_proc();
		make_kernel_print();
	}
	CHECK(child_status(pid) == (how[0] ? SIGKILL : SIGILL));
	return check_finish("names");
}
