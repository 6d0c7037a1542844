// SPDX-License-Identifier: BSD-2-Clause
/*
 * Scripts: "#!", the path of an interpreter, and perhaps one argument, which is all the rest of the
 * line. The interpreter's arguments are its path, that argument, the script's path, and the
 * script's own arguments without the first.
 */

#include "exec.h"

#include <lego/errno.h>
#include <lego/slab.h>
#include <lego/string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static char *skip_blanks(char *at)
{
	while (is_blank(*at))
		at++;
	return at;
}

static void trim(char *start)
{
	char *end = start + strlen(start);

	while (end > start && is_blank(end[-1]))
		end--;
	*end = '\0';
}

/*
 * Parses a line that ends with NUL. cut means that the line is longer in the file. Sets *arg to
 * NULL if there is no argument.
 */
static int parse_line(char *line, bool cut, char **interpreter, char **arg)
{
	char *end;

	*interpreter = skip_blanks(line);
	for (end = *interpreter; *end && !is_blank(*end); end++)
		;
	/* A truncated path may be the start of another path. An argument may be truncated. */
	if (end == *interpreter || (cut && !*end))
		return -ENOEXEC;
	*arg = NULL;
	if (!*end)
		return 0;
	*end++ = '\0';
	end = skip_blanks(end);
	trim(end);
	if (*end)
		*arg = end;
	return 0;
}

static size_t count(const char *const *strings)
{
	size_t nr = 0;

	while (strings[nr])
		nr++;
	return nr;
}

static int build_argv(struct exec_script *script, char *arg, const char *path,
		      const char *const *argv)
{
	size_t nr = count(argv), at = 0;

	script->argv = kmalloc((nr + 4) * sizeof(*script->argv));
	if (!script->argv)
		return -ENOMEM;
	script->argv[at++] = script->interpreter;
	if (arg)
		script->argv[at++] = arg;
	script->argv[at++] = path;
	for (size_t i = 1; i < nr; i++)
		script->argv[at++] = argv[i];
	script->argv[at] = NULL;
	return 0;
}

int exec_read_script(struct file *file, const char *path, const char *const *argv,
		     struct exec_script **ret)
{
	struct exec_script *script = kzalloc(sizeof(*script));
	char *newline, *arg;
	ssize_t n;
	int error = 0;

	if (!script)
		return -ENOMEM;
	n = file_read_at(file, script->line, EXEC_LINE_BYTES, 0);
	if (n < 2 || script->line[0] != '#' || script->line[1] != '!') {
		error = n < 0 ? (int)n : 0;
		goto out_free;
	}
	newline = strchr(script->line, '\n');
	if (newline)
		*newline = '\0';
	error = parse_line(script->line + 2, !newline && n == EXEC_LINE_BYTES, &script->interpreter,
			   &arg);
	if (!error)
		error = build_argv(script, arg, path, argv);
	if (error)
		goto out_free;
	script->outer = *ret;
	*ret = script;
	return 1;
out_free:
	kfree(script);
	return error;
}

void exec_free_scripts(struct exec_script *script)
{
	while (script) {
		struct exec_script *outer = script->outer;

		kfree(script->argv);
		kfree(script);
		script = outer;
	}
}
