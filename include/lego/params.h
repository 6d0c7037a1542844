/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_PARAMS_H
#define LEGO_PARAMS_H

/*
 * Boot parameters: "name=value" words on the command line, up to " -- ". A handler gets the text
 * after the '=' ("" if there is none) and returns 0 or -EINVAL. After -EINVAL the log names the
 * parameter, the value and the accepted form, and boot goes on with the default. Handlers run once,
 * early, and must not allocate.
 */

#include <lego/kernel.h>

struct boot_param {
	const char *name;
	const char *form; /* for messages: "all|none|<glob>[,<glob>...]" */
	int (*set)(const char *value);
};

#define BOOT_PARAM(ident, name_, form_, set_)                                             \
	static const struct boot_param boot_param_##ident __used __section("boot_params") \
		__aligned(8) = { .name = name_, .form = form_, .set = set_ }

/* Parses the command line, without changing it. Warns about each unknown word. */
void params_parse(const char *cmdline);

/*
 * Parses a number, decimal or hexadecimal with 0x; the whole text must be the number. Returns 0,
 * -EINVAL or -ERANGE.
 */
int parse_u64(const char *text, u64 *value);

/* The words after " -- ", split at spaces, ended by NULL; argv[0] is init's path. */
#define MAX_INIT_ARGS 64
extern const char *init_argv[MAX_INIT_ARGS + 2];

#endif
