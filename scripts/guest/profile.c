// SPDX-License-Identifier: BSD-2-Clause
/*
 * profile: samples stacks for a time, like the program of this name in bcc (its manual page,
 * profile(8), describes the options). It borrows the kernel's source of samples while it has
 * /proc/profile/session open; the kernel restores the settings when the file is closed, however
 * this program ends. The kernel gives a line for each record of its store, with the samples of the
 * session. What is left to do here is to choose lines, and to add up those that look the same.
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_IDS	     64
#define MAX_HZ	     100000
#define NS_PER_SEC   1000000000ll
#define FRAME_FORMAT "    %s\n"

struct ids {
	long list[MAX_IDS];
	int nr; /* 0: all */
};

static struct {
	struct ids pids, tids;
	bool user_only, kernel_only, delimited, annotated, with_idle, folded;
	long hz, cpu;
	long max_stacks;
	long seconds;	/* 0: until Ctrl-C */
	char **command; /* NULL: none */
} opt = { .hz = 49, .cpu = -1, .max_stacks = 16384 };

/* Records that look the same. The strings lie in the text of the session. */
struct stack {
	const char *comm, *user, *kernel;
	long pid;
	unsigned long nr;
};

static struct stack *stacks;
static size_t nr_stacks, nr_missing;

static void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "profile: ");
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

static void usage(FILE *to, int status) __attribute__((noreturn));
static void usage(FILE *to, int status)
{
	fprintf(to,
		"usage: profile [options] [seconds] [-- command args]\n"
		"Samples stacks until Ctrl-C, for some seconds, or while a command runs.\n"
		"  -p PID,..  only these processes       -L TID,..  only these threads\n"
		"  -U         only user stacks           -K         only kernel stacks\n"
		"  -F HZ      samples a second (49)      -c COUNT   one every COUNT ns\n"
		"  -d         delimiter between user and kernel frames\n"
		"  -a         mark kernel frames by _[k]\n"
		"  -I         idle CPUs, too             -C CPU     only this CPU\n"
		"  -f         folded, for flame graphs\n"
		"  --stack-storage-size N                different stacks that are kept (16384)\n");
	exit(status);
}

static long number(const char *text, char option, long min, long max)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < min || value > max)
		fail("-%c %s: a number from %ld to %ld is needed", option, text, min, max);
	return value;
}

static void parse_ids(char *text, char option, struct ids *ids)
{
	for (char *id = strtok(text, ","); id; id = strtok(NULL, ",")) {
		if (ids->nr == MAX_IDS)
			fail("-%c: more than %d numbers", option, MAX_IDS);
		ids->list[ids->nr++] = number(id, option, 0, 0x7fffffff);
	}
	if (!ids->nr)
		fail("-%c: a number is needed", option);
}

/* Fails if one of them is not there. 0 stands for the threads of the kernel. */
static void check_ids(const struct ids *ids, char option, long kill_call)
{
	for (int i = 0; i < ids->nr; i++) {
		if (ids->list[i] && syscall(kill_call, ids->list[i], 0) && errno == ESRCH)
			fail("-%c %ld: %s", option, ids->list[i], strerror(errno));
	}
}

/* The kernel's source has a whole number of samples a second. */
static long hz_of_count(long count)
{
	long hz = (NS_PER_SEC + count / 2) / count;

	if (hz * count != NS_PER_SEC)
		fprintf(stderr, "profile: -c %ld: sampling every %lld ns\n", count,
			(NS_PER_SEC + hz / 2) / hz);
	return hz;
}

/* Behind `--` is the command; getopt would take its arguments for others. */
static int split_command(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--"))
			continue;
		if (!argv[i + 1])
			fail("-- needs a command");
		opt.command = argv + i + 1;
		argv[i] = NULL;
		return i;
	}
	return argc;
}

static const struct option long_options[] = {
	{ "pid", required_argument, NULL, 'p' },
	{ "tid", required_argument, NULL, 'L' },
	{ "user-stacks-only", no_argument, NULL, 'U' },
	{ "kernel-stacks-only", no_argument, NULL, 'K' },
	{ "frequency", required_argument, NULL, 'F' },
	{ "count", required_argument, NULL, 'c' },
	{ "delimited", no_argument, NULL, 'd' },
	{ "annotations", no_argument, NULL, 'a' },
	{ "include-idle", no_argument, NULL, 'I' },
	{ "folded", no_argument, NULL, 'f' },
	{ "cpu", required_argument, NULL, 'C' },
	{ "stack-storage-size", required_argument, NULL, 's' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void parse_option(int option)
{
	switch (option) {
	case 'p':
		return parse_ids(optarg, 'p', &opt.pids);
	case 'L':
		return parse_ids(optarg, 'L', &opt.tids);
	case 'U':
		opt.user_only = true;
		return;
	case 'K':
		opt.kernel_only = true;
		return;
	case 'd':
		opt.delimited = true;
		return;
	case 'a':
		opt.annotated = true;
		return;
	case 'I':
		opt.with_idle = true;
		return;
	case 'f':
		opt.folded = true;
		return;
	case 'F':
		opt.hz = number(optarg, 'F', 1, MAX_HZ);
		return;
	case 'c':
		opt.hz = hz_of_count(number(optarg, 'c', NS_PER_SEC / MAX_HZ, NS_PER_SEC));
		return;
	case 'C':
		opt.cpu = number(optarg, 'C', 0, 4095);
		return;
	case 's':
		opt.max_stacks = number(optarg, 's', 1, 1l << 24);
		return;
	case 'h':
		usage(stdout, 0);
	default:
		usage(stderr, 1);
	}
}

static void parse(int argc, char **argv)
{
	char seen[128] = { 0 };
	int option;

	argc = split_command(argc, argv);
	while ((option = getopt_long(argc, argv, "p:L:UKF:c:daIfC:h", long_options, NULL)) >= 0) {
		if (option > 0 && option < (int)sizeof(seen))
			seen[option] = 1;
		parse_option(option);
	}
	if (seen['U'] && seen['K'])
		fail("-U and -K exclude each other");
	if (seen['F'] && seen['c'])
		fail("-F and -c exclude each other");
	if (seen['p'] && seen['L'])
		fail("-p and -L exclude each other");
	if (optind < argc)
		opt.seconds = number(argv[optind++], '-', 1, 99999999);
	if (optind < argc)
		usage(stderr, 1);
	check_ids(&opt.pids, 'p', SYS_kill);
	check_ids(&opt.tids, 'L', SYS_tkill);
}

static void flush_output(void)
{
	if (fflush(stdout) || ferror(stdout))
		fail("standard output: %s", strerror(errno));
}

/* Sampling. */

static void print_ids(const char *what, const struct ids *ids)
{
	printf(" of %s", what);
	for (int i = 0; i < ids->nr; i++)
		printf("%s%ld", i ? "," : " ", ids->list[i]);
}

static void print_heading(void)
{
	printf("Sampling at %ld Hertz", opt.hz);
	if (opt.pids.nr)
		print_ids("PID", &opt.pids);
	else if (opt.tids.nr)
		print_ids("TID", &opt.tids);
	else
		printf(" of all threads");
	printf(" by %s stack", opt.user_only   ? "user" :
			       opt.kernel_only ? "kernel" :
						 "user + kernel");
	if (opt.cpu >= 0)
		printf(" on CPU#%ld", opt.cpu);
	if (opt.seconds)
		printf(" for %ld secs.\n", opt.seconds);
	else if (opt.command)
		printf(" while %s runs.\n", opt.command[0]);
	else
		printf("... Hit Ctrl-C to end.\n");
	flush_output();
}

static int begin_session(void)
{
	char words[32];
	int fd = open("/proc/profile/session", O_RDWR | O_CLOEXEC);

	if (fd < 0 && errno == EBUSY)
		fail("another profile is running");
	if (fd < 0)
		fail("/proc/profile/session: %s", strerror(errno));
	if (write(fd, words, snprintf(words, sizeof(words), "hz %ld\n", opt.hz)) < 0)
		fail("the kernel refuses %ld samples a second: %s", opt.hz, strerror(errno));
	return fd;
}

static pid_t start_command(const sigset_t *old_mask)
{
	pid_t pid = opt.command ? fork() : 0;

	if (pid < 0)
		fail("fork: %s", strerror(errno));
	if (pid || !opt.command)
		return pid;
	sigprocmask(SIG_SETMASK, old_mask, NULL);
	execvp(opt.command[0], opt.command);
	fprintf(stderr, "profile: %s: %s\n", opt.command[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static struct timespec time_left(const struct timespec *end)
{
	struct timespec now, left;

	clock_gettime(CLOCK_MONOTONIC, &now);
	left.tv_sec = end->tv_sec - now.tv_sec;
	left.tv_nsec = end->tv_nsec - now.tv_nsec;
	if (left.tv_nsec < 0) {
		left.tv_sec--;
		left.tv_nsec += NS_PER_SEC;
	}
	if (left.tv_sec < 0)
		left = (struct timespec){ 0 };
	return left;
}

/*
 * Waits for Ctrl-C, the end of the time, or that of the command. Returns true if the command has
 * ended; *status is its wait status then.
 */
static bool wait_for_end(const sigset_t *signals, pid_t command, int *status)
{
	struct timespec end, left;
	int signal;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += opt.seconds;
	for (;;) {
		left = time_left(&end);
		signal = opt.seconds ? sigtimedwait(signals, NULL, &left) :
				       sigwaitinfo(signals, NULL);
		if (signal == SIGINT || (signal < 0 && errno == EAGAIN))
			return false;
		if (signal == SIGCHLD && command && waitpid(command, status, WNOHANG) == command)
			return true;
	}
}

static char *read_session(int fd)
{
	size_t size = 1 << 16, len = 0;
	char *text = malloc(size);
	ssize_t n = -1;

	while (text && (n = pread(fd, text + len, size - len - 1, len)) > 0) {
		len += n;
		if (size - len < 4096)
			text = realloc(text, size *= 2);
	}
	if (!text || n < 0)
		fail("cannot read the samples: %s", strerror(text ? errno : ENOMEM));
	text[len] = '\0';
	close(fd);
	return text;
}

/* Adding up. */

static bool is_in(const struct ids *ids, long id)
{
	for (int i = 0; i < ids->nr; i++) {
		if (ids->list[i] == id)
			return true;
	}
	return !ids->nr;
}

static int compare_keys(const void *a_, const void *b_)
{
	const struct stack *a = a_, *b = b_;
	int order = strcmp(a->comm, b->comm);

	if (!order)
		order = (a->pid > b->pid) - (a->pid < b->pid);
	if (!order)
		order = strcmp(a->user, b->user);
	return order ? order : strcmp(a->kernel, b->kernel);
}

static int compare_counts(const void *a_, const void *b_)
{
	const struct stack *a = a_, *b = b_;

	return a->nr != b->nr ? (a->nr > b->nr) - (a->nr < b->nr) : compare_keys(a, b);
}

static void merge(void)
{
	size_t n = 0;

	qsort(stacks, nr_stacks, sizeof(*stacks), compare_keys);
	for (size_t i = 0; i < nr_stacks; i++) {
		if (n && !compare_keys(&stacks[n - 1], &stacks[i]))
			stacks[n - 1].nr += stacks[i].nr;
		else
			stacks[n++] = stacks[i];
	}
	nr_stacks = n;
}

static void add_stack(const struct stack *stack)
{
	static size_t room;

	if (nr_stacks == room) {
		room = room ? 2 * room : 256;
		stacks = realloc(stacks, room * sizeof(*stacks));
		if (!stacks)
			fail("no memory for %zu stacks", room);
	}
	stacks[nr_stacks++] = *stack;
}

/* A record: "samples cpu pid tid comm", the user's frames, the kernel's, with tabs in between. */
static void add_record(char *line)
{
	char *user = strchr(line, '\t'), *kernel = user ? strchr(user + 1, '\t') : NULL;
	struct stack stack;
	long cpu, tid;
	int at = 0;

	if (!kernel ||
	    sscanf(line, "%lu %ld %ld %ld %n", &stack.nr, &cpu, &stack.pid, &tid, &at) < 4)
		fail("a line of the session is not understood: %s", line);
	*user++ = *kernel++ = '\0';
	if (!is_in(&opt.pids, stack.pid) || !is_in(&opt.tids, tid) ||
	    (opt.cpu >= 0 && cpu != opt.cpu) || (!tid && !opt.with_idle))
		return;
	stack.comm = line + at;
	stack.user = opt.kernel_only ? "" : user;
	stack.kernel = opt.user_only ? "" : kernel;
	add_stack(&stack);
}

static void warn_of_loss(unsigned long nr, const char *reason)
{
	bool is_full = !strcmp(reason, "log full") || !strcmp(reason, "no slot within reach");

	fprintf(stderr, "WARNING: %lu samples lost: %s.%s\n", nr, reason,
		is_full ? " Consider increasing profile.samples= at boot." : "");
}

static void add_line(char *line)
{
	unsigned long nr;
	int at = 0;

	if (sscanf(line, "lost %lu %n", &nr, &at) == 1)
		warn_of_loss(nr, line + at);
	else if (sscanf(line, "resets %lu", &nr) != 1)
		add_record(line);
	else if (nr)
		fprintf(stderr, "WARNING: somebody reset the counters: earlier samples are "
				"missing.\n");
}

static void add_lines(char *text)
{
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		add_line(line);
	merge();
}

/* Beyond the limit, bcc keeps the task and the count, and not the stack: the rarest ones here. */
static void limit_stacks(void)
{
	static const char user[] = "[Missed User Stack]", kernel[] = "[Missed Kernel Stack]";

	qsort(stacks, nr_stacks, sizeof(*stacks), compare_counts);
	if (nr_stacks <= (size_t)opt.max_stacks)
		return;
	nr_missing = nr_stacks - opt.max_stacks;
	for (size_t i = 0; i < nr_missing; i++) {
		stacks[i].user = opt.kernel_only ? "" : user;
		stacks[i].kernel = opt.user_only ? "" : kernel;
	}
	merge();
	qsort(stacks, nr_stacks, sizeof(*stacks), compare_counts);
}

/* Printing. */

static bool has_both(const struct stack *stack)
{
	return *stack->user && *stack->kernel;
}

/* Frames are outermost first. */
static void print_frames(const char *frames, const char *mark)
{
	const char *end = frames + strlen(frames), *from = end;

	while (end > frames) {
		while (from > frames && from[-1] != ';')
			from--;
		printf("    %.*s%s\n", (int)(end - from), from, *from == '[' ? "" : mark);
		end = from = from > frames ? from - 1 : from;
	}
}

static void print_stack(const struct stack *stack)
{
	print_frames(stack->kernel, opt.annotated ? "_[k]" : "");
	if (opt.delimited && has_both(stack))
		printf(FRAME_FORMAT, "--");
	print_frames(stack->user, "");
	printf("    %-16s %s (%ld)\n        %lu\n\n", "-", stack->comm, stack->pid, stack->nr);
}

static void print_folded(const struct stack *stack)
{
	printf("%s%s%s", stack->comm, *stack->user ? ";" : "", stack->user);
	if (opt.delimited && has_both(stack))
		printf(";-");
	for (const char *at = stack->kernel; *at;) {
		int n = strcspn(at, ";");

		printf(";%.*s%s", n, at, opt.annotated && *at != '[' ? "_[k]" : "");
		at += n + (at[n] == ';');
	}
	printf(" %lu\n", stack->nr);
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	sigset_t signals, old_mask;
	bool has_ended;
	int fd, status = 0;
	pid_t command;
	char *text;

	parse(argc, argv);
	signal(SIGINT, SIG_DFL); /* a shell's background jobs ignore it */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &old_mask);
	fd = begin_session();
	if (!opt.folded)
		print_heading();
	command = start_command(&old_mask);
	has_ended = wait_for_end(&signals, command, &status);
	text = read_session(fd);
	if (!opt.folded)
		printf("\n");
	add_lines(text);
	limit_stacks();
	for (size_t i = 0; i < nr_stacks; i++)
		(opt.folded ? print_folded : print_stack)(&stacks[i]);
	if (nr_missing)
		fprintf(stderr,
			"WARNING: %zu stack traces could not be displayed. Consider increasing "
			"--stack-storage-size.\n",
			nr_missing);
	flush_output();
	if (command && !has_ended)
		waitpid(command, &status, 0);
	return exit_status(status);
}
