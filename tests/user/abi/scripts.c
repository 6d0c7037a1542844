// SPDX-License-Identifier: BSD-2-Clause
/*
 * Scripts: a file that begins with #! names its interpreter, which here is this program. It exits
 * with 21 to 24 depending on its arguments. If execve returns, the child exits with 100 + errno.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "run.h"

#define MAX_NESTED 5

extern char **environ;

static const char *self;

static int write_script(const char *name, const char *text, size_t len, mode_t mode)
{
	int fd;

	unlink(name);
	fd = open(name, O_CREAT | O_WRONLY | O_EXCL, mode);
	return CHECK(fd >= 0 && write(fd, text, len) == len && !close(fd));
}

static int run(const char *path)
{
	pid_t pid = fork_child();

	if (!pid) {
		execve(path, (char *[]){ "zero", "one", "two words", NULL },
		       (char *[]){ "SCRIPT=1", NULL });
		child_exit(100 + errno);
	}
	return WEXITSTATUS(child_status(pid));
}

/* Runs a script of @format with this program's path in place of %s. */
static int run_text(const char *format)
{
	char text[PATH_MAX];

	snprintf(text, sizeof(text), format, self);
	write_script(check_file_name(), text, strlen(text), 0755);
	return run(check_file_name());
}

/*
 * Runs as the interpreter. Returns 21 without an argument, 22 with one; other values mean mistakes.
 */
static int interpret(int argc, char **argv)
{
	int nr_options = argc > 1 && argv[1][0] == '-';
	char name[17] = "", expected[17] = "";

	if (strcmp(argv[0], self) || argc != 4 + nr_options || argv[argc])
		return 91;
	if (strcmp(argv[argc - 2], "one") || strcmp(argv[argc - 1], "two words"))
		return 92;
	if (access(argv[argc - 3], X_OK)) /* the script's path, as given */
		return 93;
	if (!getenv("SCRIPT") || environ[1])
		return 94;
	if (nr_options && strcmp(argv[1], "-a  b\tc"))
		return 95;
	strncpy(expected, strrchr(argv[argc - 3], '/') + 1, 15);
	if (prctl(PR_GET_NAME, name) || strcmp(name, expected))
		return 96;
	return 21 + nr_options;
}

TEST(argument)
{
	CHECK(run_text("#!%s\n") == 21);
	CHECK(run_text("#!%s\nand more\n") == 21);
	CHECK(run_text("#! \t%s \t \n") == 21);
	CHECK(run_text("#!%s") == 21); /* the end of the file also ends the line */
	CHECK(run_text("#!%s -a  b\tc\n") == 22);
	CHECK(run_text("#! %s \t -a  b\tc \t\n") == 22);
	CHECK(run_text("#!%s -a  b\tc") == 22);
}

TEST(errors)
{
	char text[600];

	CHECK(run_text("#!/no/such/interpreter\n") == 100 + ENOENT);
	CHECK(run_text("#!/tmp\n") == 100 + EACCES);
	CHECK(run_text("#!\n") == 100 + ENOEXEC);
	CHECK(run_text("#!  \t \n%s\n") == 100 + ENOEXEC);
	CHECK(run_text("#") == 100 + ENOEXEC);
	CHECK(run_text(" #!%s\n") == 100 + ENOEXEC);
	memset(text, 'x', sizeof(text));
	memcpy(text, "#!/", 3); /* the path does not end within the 256 bytes that are read */
	write_script(check_file_name(), text, sizeof(text), 0755);
	CHECK(run(check_file_name()) == 100 + ENOEXEC);
	text[100] = ' '; /* now only the argument is truncated */
	write_script(check_file_name(), text, sizeof(text), 0755);
	CHECK(run(check_file_name()) == 100 + ENOENT);
	snprintf(text, sizeof(text), "#!%s\n", self);
	write_script(check_file_name(), text, strlen(text), 0644);
	CHECK(run(check_file_name()) == 100 + EACCES);
	unlink(check_file_name());
}

/* Scripts whose interpreter is a script: each puts itself before the arguments. */
TEST(nested)
{
	char names[MAX_NESTED + 1][100], text[200];

	for (int i = 0; i <= MAX_NESTED; i++) {
		snprintf(names[i], sizeof(names[i]), "%s.%d", check_file_name(), i);
		snprintf(text, sizeof(text), "#!%s\n", i ? names[i - 1] : self);
		write_script(names[i], text, strlen(text), 0755);
	}
	CHECK(run(names[0]) == 21);
	CHECK(run(names[1]) == 91); /* one argument more: the inner script's name */
	CHECK(run(names[MAX_NESTED - 1]) == 91);
	CHECK(run(names[MAX_NESTED]) == 100 + ELOOP);
	snprintf(text, sizeof(text), "#!%s\n", names[0]);
	write_script(names[0], text, strlen(text), 0755); /* the script is its own interpreter */
	CHECK(run(names[0]) == 100 + ELOOP);
	for (int i = 0; i <= MAX_NESTED; i++)
		unlink(names[i]);
}

/* A script that is reached by a symbolic link: the interpreter gets the name of the link. */
TEST(link)
{
	char name[100], text[PATH_MAX];

	snprintf(text, sizeof(text), "#!%s\n", self);
	snprintf(name, sizeof(name), "%s.link", check_file_name());
	write_script(check_file_name(), text, strlen(text), 0755);
	unlink(name);
	CHECK(!symlink(check_file_name(), name) && run(name) == 21);
	unlink(name);
	unlink(check_file_name());
}

int main(int argc, char **argv)
{
	self = argv[0][0] == '/' ? argv[0] : "/bin/scripts";
	if (getenv("SCRIPT"))
		return interpret(argc, argv);
	return run_tests("scripts", argc, argv);
}
