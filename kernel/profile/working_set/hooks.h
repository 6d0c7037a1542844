/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_WORKING_SET_HOOKS_H
#define PROFILE_WORKING_SET_HOOKS_H

/* What the profiler of used memory keeps of a process. It has no hooks: it reads page tables. */

struct profile_working_set_task {
	pf_may_be_empty;
};

struct profile_working_set_process {
#ifdef CONFIG_PROFILE_WORKING_SET
	u32 slot; /* its number, plus 1; 0: none. Guarded by lists_lock */
#endif
	pf_may_be_empty;
};

/* A part of an address space that has one kind of memory, in whole pages. */
struct profile_user_range {
	u64 start, end;
	u32 kind; /* of OS_MEMORY_KINDS */
};

/* What has happened to a page since its bits were cleared. */
enum profile_page_use {
	PROFILE_PAGE_UNUSED,
	PROFILE_PAGE_READ, /* or executed */
	PROFILE_PAGE_WRITTEN,
	PROFILE_PAGE_CHANGED, /* unmapped, moved, copied or protected: its bits do not tell */
};

#endif
