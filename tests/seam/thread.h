/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SEAM_THREAD_H
#define SEAM_THREAD_H

/* The other kernel's threads and programs, with the structures of the profiler in them. */

#include <profile/profile.h>

struct program {
	int id;
	char title[16];
	struct profile_process profile;
#ifdef CONFIG_PROFILE_IMAGES
	struct profile_mm mm;
#endif
};

struct thread {
	int id;
	struct program *program;
	bool is_idle;
	u64 registers[6];
	struct profile_task profile;
};

#endif
