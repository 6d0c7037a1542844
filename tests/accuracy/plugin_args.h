/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ACCURACY_PLUGIN_ARGS_H
#define ACCURACY_PLUGIN_ARGS_H

/* Reads the arguments of a plugin, each of which is `<name>=<value>`. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plugin_number {
	const char *name;
	uint64_t *value;
};

/*
 * Ends an argument behind its name, and sets the number of this name, if the table has one. A row
 * without a name ends the table. Returns the value. An argument without one ends QEMU.
 */
static inline char *plugin_read_argument(char *arg, const struct plugin_number *numbers)
{
	char *value = strchr(arg, '=');

	if (!value) {
		fprintf(stderr, "plugin: argument %s has no value\n", arg);
		exit(1);
	}
	*value++ = '\0';
	for (; numbers->name; numbers++) {
		if (!strcmp(arg, numbers->name))
			*numbers->value = strtoull(value, NULL, 0);
	}
	return value;
}

#endif
