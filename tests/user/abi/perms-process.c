// SPDX-License-Identifier: BSD-2-Clause
/*
 * Permissions of users other than root on processes, and the effect of a program's owner and mode.
 * The test also executes copies of itself with other owners and modes: argv[1] selects the check.
 */
#include <limits.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "perms.h"

/* Executes a copy with a role and the expected result. Returns only if that fails. */
static void run(const char *program, const char *role, const char *expected)
{
	execl(program, program, role, expected, NULL);
}

/*
 * --ids: checks the real and effective IDs, whether the program has gained rights, and whether
 * other processes may inspect it.
 */
static void role_ids(const char *expected)
{
	char text[100];
	uid_t real, effective, saved;
	gid_t real_group, effective_group, saved_group;

	CHECK(!getresuid(&real, &effective, &saved) && saved == effective);
	CHECK(!getresgid(&real_group, &effective_group, &saved_group));
	CHECK(saved_group == effective_group && setfsuid(-1) == effective);
	CHECK(getauxval(AT_UID) == real && getauxval(AT_EUID) == effective);
	CHECK(getauxval(AT_GID) == real_group && getauxval(AT_EGID) == effective_group);
	snprintf(text, sizeof(text), "%d %d %d %d secure %lu dumpable %d", real, effective,
		 real_group, effective_group, getauxval(AT_SECURE),
		 prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1);
	if (!CHECK(!strcmp(text, expected)))
		printf("%s instead of %s\n", text, expected);
}

static void check_ids(const char *program, int no_new_privs, const char *expected)
{
	pid_t pid = fork_user(USER, GROUP, 0);

	if (!pid) {
		CHECK(!no_new_privs || !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
		run(program, "--ids", expected);
		child_exit(77);
	}
	CHECK(child_status(pid) == 0);
}

#define PLAIN "1000 1000 1001 1001 secure 0 dumpable 1"

TEST(set_ids)
{
	make_program("p", 06755, OTHER, OTHER + 1);
	check_ids("./p", 0, "1000 2000 1001 2001 secure 1 dumpable 0");
	check_ids("./p", 1, PLAIN);
	CHECK(!chmod("p", 04755));
	check_ids("./p", 0, "1000 2000 1001 1001 secure 1 dumpable 0");
	CHECK(!chmod("p", 02755));
	check_ids("./p", 0, "1000 1000 1001 2001 secure 1 dumpable 0");
	CHECK(!chmod("p", 02745)); /* without x for the group, set-group-ID has another meaning */
	check_ids("./p", 0, PLAIN);
	CHECK(!chmod("p", 06755) && !chown("p", 0, 0)); /* chown() clears the bits */
	check_ids("./p", 0, PLAIN);
	CHECK(!chmod("p", 04755));
	check_ids("./p", 0, "1000 0 1001 1001 secure 1 dumpable 0");
	CHECK(!unlink("p"));
}

/* A change of the effective user closes a process to others, and disarms the death signal. */
TEST(changed_ids)
{
	pid_t pid = fork_child();
	int sig = -1;

	if (!pid) {
		CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1);
		CHECK(!prctl(PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0));
		CHECK(!setresuid(USER, -1, -1) && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1);
		CHECK(!setresuid(-1, USER, -1) && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 1);
		CHECK(!prctl(PR_GET_PDEATHSIG, &sig, 0, 0, 0) && sig == 0);
		CHECK(!prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
		CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1);
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
}

static int count_lines(const char *path, const char *start)
{
	char line[PATH_MAX] = "";
	FILE *file = fopen(path, "r");
	int nr = 0;

	CHECK(file);
	while (file && fgets(line, sizeof(line), file))
		nr += !strncmp(line, start, strlen(start));
	if (file)
		fclose(file);
	return nr;
}

/*
 * Returns the device of the file system mounted on this directory, as mountinfo lists it; 0: none.
 */
static dev_t find_mount_device(const char *name)
{
	char line[PATH_MAX], where[PATH_MAX], wanted[PATH_MAX + 8];
	FILE *file = fopen("/proc/self/mountinfo", "r");
	unsigned int id, parent, major, minor;
	dev_t found = 0;

	snprintf(wanted, sizeof(wanted), "%s/%s", base, name);
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%u %u %u:%u / %4000s rw", &id, &parent, &major, &minor, where) ==
			    5 &&
		    id != parent && !strcmp(where, wanted))
			found = makedev(major, minor);
	}
	if (file)
		fclose(file);
	return found;
}

/* Checks all that the C library, df and findmnt read about the mount on m. */
static void check_mount_lists(void)
{
	char text[PATH_MAX + 64];
	struct stat st;

	snprintf(text, sizeof(text), "perms %s/m tmpfs rw,nodev,noexec", base);
	CHECK(count_lines("/proc/mounts", text) == 1);
	CHECK(!stat("m", &st));
	CHECK(find_mount_device("m") == st.st_dev);
}

TEST(mount_flags)
{
	void *p;
	int fd;

	CHECK(!mkdir("m", 0755));
	if (mount("perms", "m", "tmpfs", MS_NOSUID, NULL)) {
		CHECK(errno == EPERM && !rmdir("m")); /* in a container, say */
		return;
	}
	make_program("m/p", 04755, OTHER, OTHER);
	CHECK(!chmod("m", 0755));
	check_ids("m/p", 0, PLAIN);
	CHECK(!umount("m") && !mount("perms", "m", "tmpfs", MS_NOEXEC | MS_NODEV, NULL));
	make_program("m/p", 0755, 0, 0);
	FAILS(execl("m/p", "m/p", "--ids", PLAIN, NULL), EACCES);
	fd = open("m/p", O_RDONLY);
	CHECK(mmap(NULL, 4096, PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == EPERM);
	p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED);
	FAILS(mprotect(p, 4096, PROT_READ | PROT_EXEC), EACCES);
	CHECK(!munmap(p, 4096) && !close(fd));
	CHECK(!mknod("m/null", S_IFCHR | 0666, 1 << 8 | 3));
	FAILS(open("m/null", O_RDWR), EACCES);

	check_mount_lists();
	CHECK(!umount("m") && !rmdir("m"));
}

/* Starts a program that runs until a byte is written to *@end. */
static pid_t run_waiting(const char *program, int *end)
{
	int in[2], ready[2];
	char byte, text[16];
	pid_t pid;

	CHECK(!pipe(in) && !pipe(ready));
	pid = fork_child();
	if (!pid) {
		dup2(in[0], 0);
		close(in[1]);
		snprintf(text, sizeof(text), "%d", ready[1]);
		run(program, "--wait", text);
		child_exit(77);
	}
	close(in[0]);
	close(ready[1]);
	CHECK(read(ready[0], &byte, 1) == 1 && !close(ready[0]));
	*end = in[1];
	return pid;
}

/*
 * A running program cannot be opened for writing, and a file open for writing cannot be executed.
 * Its name can be removed or given to another file.
 */
TEST(busy_program)
{
	int end, fd;
	pid_t pid;

	make_program("p", 0755, 0, 0);
	pid = run_waiting("./p", &end);
	FAILS(open("p", O_WRONLY), ETXTBSY);
	FAILS(open("p", O_RDWR), ETXTBSY);
	FAILS(open("p", O_RDONLY | O_TRUNC), ETXTBSY);
	FAILS(open("p", O_WRONLY | O_CREAT | O_TRUNC, 0777), ETXTBSY);
	FAILS(truncate("p", 0), ETXTBSY);
	CHECK(!close(open("p", O_RDONLY)) && !chmod("p", 0700) && !rename("p", "q"));
	make_file("p", 0644, 0, 0); /* another file of that name */
	CHECK(!rename("p", "q") && !unlink("q"));
	CHECK(write(end, "x", 1) == 1 && !close(end));
	CHECK(child_status(pid) == EXITED('x'));

	make_program("p", 0755, 0, 0);
	fd = open("p", O_WRONLY);
	CHECK(fd >= 0);
	FAILS(execl("./p", "./p", NULL), ETXTBSY);
	CHECK(!close(fd));
	pid = fork_child();
	if (!pid) {
		run("./p", "--ids", "0 0 0 0 secure 0 dumpable 1");
		child_exit(77);
	}
	CHECK(child_status(pid) == 0);
	fd = open("p", O_WRONLY); /* the program has ended */
	CHECK(fd >= 0 && !close(fd) && !unlink("p"));
}

/* Every way to signal @pid, and to change how it runs, is refused. */
static void check_refused(pid_t pid)
{
	struct rlimit limit = { 64, 64 };
	siginfo_t info = { .si_code = SI_QUEUE };
	unsigned long cpus = ~0UL;
	int priority = 0;
	size_t len;
	void *head;

	FAILS(kill(pid, 0), EPERM);
	FAILS(kill(pid, SIGKILL), EPERM);
	CHECK(!kill(-1, 0)); /* one process that may be signalled is enough */
	CHECK_ERROR(EPERM, SYS_tkill, pid, SIGTERM);
	CHECK_ERROR(EPERM, SYS_tgkill, pid, pid, SIGTERM);
	CHECK_ERROR(EPERM, SYS_rt_sigqueueinfo, pid, SIGTERM, &info);
	CHECK_ERROR(EPERM, SYS_rt_tgsigqueueinfo, pid, pid, SIGTERM, &info);
	CHECK_ERROR(EPERM, SYS_setpriority, PRIO_PROCESS, pid, 5);
	CHECK_ERROR(EPERM, SYS_sched_setaffinity, pid, sizeof(cpus), &cpus);
	CHECK_ERROR(EPERM, SYS_sched_setscheduler, pid, SCHED_OTHER, &priority);
	CHECK_ERROR(EPERM, SYS_sched_setparam, pid, &priority);
	CHECK_ERROR(EPERM, SYS_prlimit64, pid, RLIMIT_NOFILE, &limit, NULL);
	CHECK_ERROR(EPERM, SYS_prlimit64, pid, RLIMIT_NOFILE, NULL, &limit);
	CHECK_ERROR(EPERM, SYS_get_robust_list, pid, &head, &len);
}

static void user_signals(pid_t roots, pid_t mine, pid_t program, pid_t former)
{
	unsigned long cpus = ~0UL;
	int priority = 0;

	check_refused(roots);
	CHECK(!kill(roots, SIGCONT)); /* of the same session */
	check_refused(former);	      /* of this process only the effective user is ours */
	CHECK(!kill(mine, 0) && !syscall(SYS_tkill, mine, SIGCONT));
	CHECK(!setpriority(PRIO_PROCESS, mine, 5));
	FAILS(setpriority(PRIO_PROCESS, mine, 0), EACCES);
	CHECK(!syscall(SYS_sched_setaffinity, mine, sizeof(cpus), &cpus));
	CHECK(!syscall(SYS_sched_setscheduler, mine, SCHED_OTHER, &priority));
	CHECK(!kill(mine, SIGTERM));
	/* The user that started a set-user-ID program may end it. */
	CHECK(!kill(program, 0) && !kill(program, SIGTERM));
	/* One process that may be signalled is enough. */
	CHECK(!kill(0, 0));
	CHECK(setsid() > 0);
	FAILS(kill(roots, SIGCONT), EPERM);
}

static pid_t sleeper_of(uid_t real, uid_t effective, uid_t saved)
{
	int ready[2];
	pid_t pid;
	char byte;

	CHECK(!pipe(ready));
	pid = fork_child();
	if (!pid) {
		CHECK(!setresgid(GROUP, GROUP, GROUP) && !setresuid(real, effective, saved));
		close(ready[0]);
		close(ready[1]);
		pause();
		pause();
		child_exit(77);
	}
	close(ready[1]);
	CHECK(read(ready[0], &byte, 1) == 0 && !close(ready[0]));
	return pid;
}

TEST(signals)
{
	pid_t roots = sleeper_of(0, 0, 0), mine = sleeper_of(USER, USER, USER);
	pid_t program = sleeper_of(USER, 0, 0), former = sleeper_of(0, USER, 0), pid;

	pid = fork_user(USER, GROUP, 0);
	if (!pid) {
		user_signals(roots, mine, program, former);
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	CHECK(child_status(mine) == SIGTERM && child_status(program) == SIGTERM);
	CHECK(!kill(roots, SIGKILL) && child_status(roots) == SIGKILL);
	CHECK(!kill(former, SIGKILL) && child_status(former) == SIGKILL);
}

static const char *proc_name(pid_t pid, const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "/proc/%d%s", pid, name);
	return path;
}

static int is_owned_by(const char *path, uid_t user, gid_t group)
{
	struct stat st = stat_of(path);

	return st.st_uid == user && st.st_gid == group;
}

static void user_looks_at_own(pid_t pid)
{
	char buf[64];
	int fd;

	CHECK((fd = open(proc_name(pid, "/maps"), O_RDONLY)) >= 0);
	CHECK(read(fd, buf, sizeof(buf)) == sizeof(buf) && !close(fd));
	CHECK(readlink(proc_name(pid, "/exe"), buf, sizeof(buf)) > 0);
	CHECK(readlink(proc_name(pid, "/fd/0"), buf, sizeof(buf)) > 0);
	CHECK(!close(open(proc_name(pid, "/fd"), O_RDONLY | O_DIRECTORY)));
}

static void user_looks(pid_t roots, pid_t mine, pid_t closed)
{
	pid_t others[] = { roots, closed };
	char buf[64];
	int fd;

	CHECK(!setresgid(GROUP, GROUP, GROUP) && !setgroups(0, NULL));
	CHECK(!setresuid(USER, USER, USER));
	/*
	 * A process can use its own /proc files, although they are root's until it executes a
	 * program.
	 */
	CHECK(is_owned_by("/proc/self/", USER, GROUP) && is_owned_by("/proc/self/fd", 0, 0));
	CHECK(!close(open("/proc/self/fd", O_RDONLY | O_DIRECTORY)));
	CHECK(readlink("/proc/self/fd/0", buf, sizeof(buf)) > 0);
	CHECK(!close(open("/proc/self/maps", O_RDONLY)));
	user_looks_at_own(mine);
	for (int i = 0; i < 2; i++) {
		CHECK((fd = open(proc_name(others[i], "/stat"), O_RDONLY)) >= 0);
		CHECK(read(fd, buf, sizeof(buf)) == sizeof(buf) && !close(fd));
		CHECK(!close(open(proc_name(others[i], "/cmdline"), O_RDONLY)));
		CHECK(!close(open(proc_name(others[i], "/status"), O_RDONLY)));
		fd = open(proc_name(others[i], "/maps"), O_RDONLY);
		CHECK(fd < 0 && errno == EACCES);
		FAILS(readlink(proc_name(others[i], "/exe"), buf, sizeof(buf)), EACCES);
		FAILS(readlink(proc_name(others[i], "/cwd"), buf, sizeof(buf)), EACCES);
		FAILS(readlink(proc_name(others[i], "/root"), buf, sizeof(buf)), EACCES);
		FAILS(readlink(proc_name(others[i], "/fd/0"), buf, sizeof(buf)), EACCES);
		FAILS(open(proc_name(others[i], "/fd"), O_RDONLY), EACCES);
		FAILS(access(proc_name(others[i], "/cwd/."), F_OK), EACCES);
	}
}

/* A directory in /proc belongs to the user of its process, whichever user looks it up first. */
TEST(proc)
{
	pid_t roots = sleeper_of(0, 0, 0), mine, closed, pid;

	mine = fork_child();
	if (!mine) { /* a program of its own: dumpable again */
		CHECK(!setgroups(0, NULL) && !setresgid(GROUP, GROUP, GROUP));
		CHECK(!setresuid(USER, USER, USER) && !prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
		pause();
		child_exit(77);
	}
	closed = sleeper_of(USER, USER, USER); /* not dumpable: it was root */
	CHECK(WAIT_UNTIL(is_owned_by(proc_name(mine, ""), USER, GROUP)));
	CHECK(WAIT_UNTIL(is_owned_by(proc_name(mine, "/maps"), USER, GROUP)));
	CHECK(is_owned_by(proc_name(mine, "/fd"), USER, GROUP));
	CHECK(is_owned_by(proc_name(mine, "/fd/0"), USER, GROUP));
	CHECK(is_owned_by(proc_name(roots, ""), 0, GROUP));
	CHECK(is_owned_by(proc_name(closed, ""), USER, GROUP));
	CHECK(is_owned_by(proc_name(closed, "/stat"), 0, 0));
	pid = fork_child();
	if (!pid) {
		user_looks(roots, mine, closed);
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	CHECK(!kill(roots, SIGKILL) && child_status(roots) == SIGKILL);
	CHECK(!kill(mine, SIGKILL) && child_status(mine) == SIGKILL);
	CHECK(!kill(closed, SIGKILL) && child_status(closed) == SIGKILL);
}

/* A file of /proc that was opened before its process changed its user can no longer be read. */
static void user_opens_before_exec(void)
{
	int in[2], maps, fd_dir;
	char buf[64];
	pid_t pid;

	CHECK(!prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) && !pipe(in));
	pid = fork_child();
	if (!pid) {
		CHECK(dup2(in[0], 0) == 0 && !close(in[1]) && read(0, buf, 1) == 1);
		run("./p", "--wait", "");
		child_exit(77);
	}
	CHECK((maps = open(proc_name(pid, "/maps"), O_RDONLY)) >= 0);
	CHECK((fd_dir = open(proc_name(pid, "/fd"), O_RDONLY)) >= 0);
	CHECK(readlinkat(fd_dir, "0", buf, sizeof(buf)) > 0);
	CHECK(write(in[1], "x", 1) == 1);
	CHECK(WAIT_UNTIL(readlinkat(fd_dir, "0", buf, sizeof(buf)) < 0) && errno == EACCES);
	CHECK(read(maps, buf, sizeof(buf)) <= 0);
	FAILS(readlinkat(fd_dir, "0", buf, sizeof(buf)), EACCES);
	CHECK(write(in[1], "y", 1) == 1 && child_status(pid) == EXITED('y'));
}

TEST(proc_before_exec)
{
	pid_t pid;

	make_program("p", 04755, 0, 0);
	pid = fork_user(USER, GROUP, 0);
	if (!pid) {
		user_opens_before_exec();
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && !unlink("p"));
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "--ids")) {
		role_ids(argv[2]);
		child_exit(0);
	}
	if (argc > 2 && !strcmp(argv[1], "--wait")) {
		char byte = 0;

		if (*argv[2])
			CHECK(write(atoi(argv[2]), "", 1) == 1); /* says that the program runs */
		return read(0, &byte, 1) == 1 ? byte : 0;
	}
	return run_tests_as_root("perms-process", argc, argv);
}
