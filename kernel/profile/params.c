// SPDX-License-Identifier: BSD-2-Clause
/* profile_set(): parameters for kernels without boot parameters of their own (OS_BOOT_PARAM). */

#include "profiler.h"

#ifdef OS_HAS_PROFILE_SET

#define MAX_BYTES 256 /* of a word */

extern const struct profile_param __start_profile_params[] __attribute__((weak));
extern const struct profile_param __stop_profile_params[] __attribute__((weak));

/* Sets the parameter that a word is of, if there is one. */
static int set_param(const char *word)
{
	const struct profile_param *param;

	for (param = __start_profile_params; param < __stop_profile_params; param++) {
		size_t len = strlen(param->name);

		if (strncmp(word, param->name, len) || word[len] != '=')
			continue;
		if (!param->set(word + len + 1))
			return 0;
		os_printk("profile: %s: not valid; accepted: %s\n", word, param->form);
		return -OS_EINVAL;
	}
	return 0;
}

int profile_set(const char *words)
{
	char word[MAX_BYTES];
	int err = 0;

	for (;;) {
		size_t len = 0;

		while (*words == ' ')
			words++;
		if (!*words)
			return err;
		while (words[len] && words[len] != ' ')
			len++;
		os_strscpy(word, words, pf_min(len + 1, sizeof(word)));
		if (set_param(word))
			err = -OS_EINVAL;
		words += len;
	}
}

#endif
