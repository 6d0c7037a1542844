// SPDX-License-Identifier: BSD-2-Clause
/*
 * Parses the command line. It is copied once and split into words in place, so values and init's
 * arguments are pointers into the copy and stay valid for ever.
 */

#include <lego/params.h>

#include <lego/boot.h>
#include <lego/errno.h>
#include <lego/printk.h>
#include <lego/string.h>

#define SEPARATOR    "--"
#define DEFAULT_INIT "/init"

extern const struct boot_param __start_boot_params[], __stop_boot_params[];

const char *init_argv[MAX_INIT_ARGS + 2] = { DEFAULT_INIT };

static char text[MAX_CMDLINE];

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Splits the next word off *at and returns it, or NULL at the end. */
static char *next_word(char **at)
{
	char *p = *at, *word;

	while (is_space(*p))
		p++;
	word = p;
	while (*p && !is_space(*p))
		p++;
	if (*p)
		*p++ = '\0';
	*at = p;
	return *word ? word : NULL;
}

static const struct boot_param *find_param(const char *name)
{
	const struct boot_param *param;

	for (param = __start_boot_params; param < __stop_boot_params; param++) {
		if (!strcmp(param->name, name))
			return param;
	}
	return NULL;
}

static void parse_word(char *word)
{
	const struct boot_param *param;
	char *value = strchr(word, '=');

	if (value)
		*value++ = '\0';
	param = find_param(word);
	if (!param) {
		printk("params: %s%s%s: no such parameter, ignored\n", word, value ? "=" : "",
		       value ? value : "");
		return;
	}
	if (param->set(value ? value : ""))
		printk("params: %s=%s: not valid, want %s=%s; the default holds\n", word,
		       value ? value : "", word, param->form);
}

static void parse_init_args(char *at)
{
	unsigned int nr = 0;
	char *word;

	while ((word = next_word(&at))) {
		if (nr == MAX_INIT_ARGS) {
			printk("params: more than %d arguments for init: cut before '%s'\n",
			       MAX_INIT_ARGS, word);
			break;
		}
		init_argv[++nr] = word;
	}
	init_argv[nr + 1] = NULL;
}

void params_parse(const char *cmdline)
{
	char *at = text, *word;

	if (strscpy(text, cmdline, sizeof(text)) < 0)
		printk("params: the command line is cut at %zu characters\n", sizeof(text) - 1);
	while ((word = next_word(&at))) {
		if (!strcmp(word, SEPARATOR)) {
			parse_init_args(at);
			break;
		}
		parse_word(word);
	}
}

static int set_init(const char *value)
{
	if (*value != '/')
		return -EINVAL;
	init_argv[0] = value;
	return 0;
}

/* The program to run, with the words behind ` -- ` as arguments: /init by default. */
BOOT_PARAM(init, "init", "/path", set_init);
