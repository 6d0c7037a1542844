/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_USER_CLOCK_H
#define TESTS_USER_CLOCK_H

#include <time.h>

static inline long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
