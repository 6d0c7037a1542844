// SPDX-License-Identifier: BSD-2-Clause
/*
 * attacker UID NAME...: as that user, tries the named attacks one after the other, and prints
 * `attack NAME: ` with the result: `succeeded`, or the name of the error. Then it checks root's
 * processes and prints `PASS` if they are unharmed. Only for the guest. As root most attacks
 * succeed, which shows that the test can fail.
 */
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "run.h"

static const char *self; /* the program of process 1 */
static pid_t victim;	 /* a process of root's */

/* Opens a file and, if text is not NULL, writes the text. Returns 0 or the errno. */
static int open_error(const char *path, int flags, const char *text)
{
	int fd = open(path, flags), error = fd < 0 ? errno : 0;

	if (!error && text && write(fd, text, strlen(text)) < 0)
		error = errno;
	if (fd >= 0)
		close(fd);
	return error;
}

static int error_of(long ret)
{
	return ret < 0 ? errno : 0;
}

/*
 * Returns the error if all calls failed with the same one, else 0: one success is enough for an
 * attacker.
 */
static int common_error(int nr, const int *errors)
{
	for (int i = 1; i < nr; i++) {
		if (errors[i] != errors[0])
			return 0;
	}
	return errors[0];
}

#define COMMON_ERROR(...) \
	common_error(sizeof((int[]){ __VA_ARGS__ }) / sizeof(int), (int[]){ __VA_ARGS__ })

static int attack_sysrq(void)
{
	return open_error("/proc/sysrq-trigger", O_WRONLY, "c");
}

/* Tries to open each file in /proc/profile, in every way. */
static int attack_profile(void)
{
	DIR *dir = opendir("/proc/profile");
	int nr_files = 0, result = EACCES;
	struct dirent *entry;
	char path[512];

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		nr_files++;
		snprintf(path, sizeof(path), "/proc/profile/%s", entry->d_name);
		if (open_error(path, O_RDONLY, NULL) != EACCES ||
		    open_error(path, O_WRONLY, NULL) != EACCES)
			result = 0;
	}
	closedir(dir);
	CHECK(nr_files > 5);
	return result;
}

static int attack_init(void)
{
	return COMMON_ERROR(open_error(self, O_WRONLY, "x"), open_error(self, O_RDWR, "x"));
}

static int attack_truncate(void)
{
	return COMMON_ERROR(error_of(truncate(self, 0)),
			    open_error(self, O_RDONLY | O_TRUNC, NULL));
}

/* Tries to replace root's program by another file. */
static int attack_replace(void)
{
	return COMMON_ERROR(error_of(rename(self, "/tmp/stolen")), error_of(unlink(self)),
			    error_of(mkdir("/bin/new", 0777)),
			    error_of(chmod("/bin", 0777)) ? EACCES : 0);
}

static int attack_kill(void)
{
	return COMMON_ERROR(error_of(kill(1, SIGKILL)), error_of(kill(victim, SIGKILL)),
			    error_of(syscall(SYS_tkill, victim, SIGKILL)));
}

/* Tries to read the log, to read and clear it, to clear it, and to switch the console off. */
static int attack_log(void)
{
	char buf[512];

	return COMMON_ERROR(error_of(klogctl(3, buf, sizeof(buf))),
			    error_of(klogctl(4, buf, sizeof(buf))), error_of(klogctl(5, NULL, 0)),
			    error_of(klogctl(8, NULL, 7)));
}

static const char *of_victim(const char *name)
{
	static char paths[4][64];
	static unsigned int nr;
	char *path = paths[nr++ % 4];

	snprintf(path, sizeof(paths[0]), "/proc/%d/%s", victim, name);
	return path;
}

static int attack_proc(void)
{
	char buf[512];

	return COMMON_ERROR(open_error(of_victim("maps"), O_RDONLY, NULL),
			    open_error(of_victim("strace"), O_RDONLY, NULL),
			    open_error(of_victim("fd"), O_RDONLY, NULL),
			    error_of(readlink(of_victim("exe"), buf, sizeof(buf))),
			    error_of(readlink(of_victim("cwd"), buf, sizeof(buf))));
}

static int attack_strace(void)
{
	return open_error(of_victim("strace"), O_WRONLY, "reset");
}

/* Tries to write lines that look like the kernel's. */
static int attack_console(void)
{
	return COMMON_ERROR(open_error("/dev/console", O_WRONLY, NULL),
			    open_error("/dev/ttyS0", O_WRONLY, NULL));
}

static int attack_system(void)
{
	return COMMON_ERROR(error_of(mount("none", "/tmp", "tmpfs", 0, NULL)),
			    error_of(umount("/dev")), error_of(sethostname("stolen", 6)),
			    error_of(mknod("/tmp/console", S_IFCHR | 0666, makedev(5, 1))));
}

static int attack_reboot(void)
{
	return error_of(reboot(RB_POWER_OFF));
}

static int attack_setuid(void)
{
	gid_t group = 0;

	return COMMON_ERROR(error_of(syscall(SYS_setuid, 0)), error_of(syscall(SYS_setgid, 0)),
			    error_of(syscall(SYS_setresuid, -1, 0, -1)),
			    error_of(syscall(SYS_setgroups, 1, &group)));
}

#define ATTACK(name)                 \
	{                            \
#name, attack_##name \
	}

static const struct attack {
	const char *name;
	int (*run)(void);
} attacks[] = {
	ATTACK(sysrq),	ATTACK(profile), ATTACK(init),	 ATTACK(truncate), ATTACK(replace),
	ATTACK(kill),	ATTACK(log),	 ATTACK(proc),	 ATTACK(strace),   ATTACK(console),
	ATTACK(system), ATTACK(reboot),	 ATTACK(setuid),
};

static void attack(const char *name)
{
	int error;

	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		if (strcmp(attacks[i].name, name))
			continue;
		error = attacks[i].run();
		printf("attack %s: %s\n", name, error ? strerrorname_np(error) : "succeeded");
		return;
	}
	CHECK(!"there is such an attack");
}

/* Checks that the attacks have changed nothing. */
static void check_damage(off_t program_bytes)
{
	struct stat st;

	CHECK(waitpid(victim, NULL, WNOHANG) == 0);
	CHECK(!stat(self, &st) && st.st_size == program_bytes && !(st.st_mode & 022));
	CHECK(klogctl(3, malloc(1 << 20), 1 << 20) > 100);
	CHECK(!kill(victim, SIGKILL) && child_status(victim) == SIGKILL);
}

int main(int argc, char **argv)
{
	uid_t user = argc > 2 ? atoi(argv[1]) : 0;
	struct stat program;
	pid_t pid;

	self = argv[0];
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(!stat(self, &program));
	victim = fork_child();
	if (!victim) {
		pause();
		child_exit(77);
	}
	pid = fork_child();
	if (!pid) {
		CHECK(!setgroups(0, NULL) && !setgid(user) && !setuid(user));
		for (int i = 2; i < argc; i++)
			attack(argv[i]);
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
	if (user)
		check_damage(program.st_size);
	return check_finish("attacker");
}
