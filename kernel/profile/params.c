// SPDX-License-Identifier: BSD-2-Clause
/*
 * profile_set(): parameters for kernels without boot parameters of their own (OS_BOOT_PARAM). After
 * profile_init(), it does what a write to the control file of a parameter does (PROFILE_CONTROL).
 */

#include "profiler.h"

#ifdef OS_HAS_PROFILE_SET

#define MAX_BYTES 256 /* of a value */

extern const struct profile_param __start_profile_params[] __attribute__((weak));
extern const struct profile_param __stop_profile_params[] __attribute__((weak));

bool profile_has_begun;

/* Returns the parameter that a word sets, at boot or after it, or NULL. */
static const struct profile_param *find_param(const char *word, bool at_boot)
{
	const struct profile_param *param;

	for (param = __start_profile_params; param < __stop_profile_params; param++) {
		size_t len = strlen(param->name);

		if (!strncmp(word, param->name, len) && word[len] == '=' &&
		    at_boot == !param->control)
			return param;
	}
	return NULL;
}

/* Sets the parameter that a word of so many bytes is of, if there is one. */
static int set_param(const char *word, size_t bytes)
{
	const struct profile_param *at_boot = find_param(word, true);
	const struct profile_param *param = profile_has_begun ? find_param(word, false) : at_boot;
	size_t name_bytes;
	char value[MAX_BYTES];

	if (!at_boot)
		return 0;
	if (report_is_off())
		return -OS_EINVAL;
	if (!param) {
		os_printk("profile: %s= has to be set before profile_init()\n", at_boot->name);
		return -OS_EINVAL;
	}
	name_bytes = strlen(param->name) + 1;
	if ((size_t)os_snprintf(value, sizeof(value), "%s%.*s", param->control ?: "",
				(int)(bytes - name_bytes), word + name_bytes) >= sizeof(value)) {
		os_printk("profile: %s= has more than %u bytes\n", param->name, MAX_BYTES - 1);
		return -OS_EINVAL;
	}
	if (!param->set(value))
		return 0;
	os_printk("profile: %.*s: not valid; accepted: %s\n", (int)bytes, word, param->form);
	return -OS_EINVAL;
}

int profile_set(const char *words)
{
	int err = 0;

	for (;;) {
		size_t bytes = 0;

		while (*words == ' ')
			words++;
		if (!*words)
			return err;
		while (words[bytes] && words[bytes] != ' ')
			bytes++;
		if (set_param(words, bytes))
			err = -OS_EINVAL;
		words += bytes;
	}
}

#endif
