/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_PARAMS_H
#define LEGO_PARAMS_H

/*
 * Boot parameters: "name=value" words on the command line, up to " -- ". A handler gets the text
 * behind the '=' ("" when there is none) and returns 0 or -EINVAL; then the log names the
 * parameter, the value and the accepted form, and boot goes on with the default. Handlers run once,
 * early: no allocation.
 */

#include <lego/kernel.h>

struct boot_param {
	const char *name;
	const char *form; /* for people: "all|none|<glob>[,<glob>...]" */
	int (*set)(const char *value);
};

#define BOOT_PARAM(ident, name_, form_, set_)                                             \
	static const struct boot_param boot_param_##ident __used __section("boot_params") \
		__aligned(8) = { .name = name_, .form = form_, .set = set_ }

/* Parse the command line (not modified). Unknown words give one warning each. */
void params_parse(const char *cmdline);

/* Strict decimal or 0x-hex; the whole text must be the number. 0 or -EINVAL/-ERANGE. */
int parse_u64(const char *text, u64 *value);

/* What follows " -- ", split at spaces; argv[0] is init's path. Terminated by NULL. */
#define MAX_INIT_ARGS 32
extern const char *init_argv[MAX_INIT_ARGS + 2];

#endif
