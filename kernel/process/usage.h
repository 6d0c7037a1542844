/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROCESS_USAGE_H
#define PROCESS_USAGE_H

/* Resource usage of processes. */

#include <lego/process.h>

struct timeval64 {
	s64 sec;
	s64 usec;
};

/*
 * Linux's struct. Members that are not counted are zero; Linux does not count most of them, either.
 */
struct rusage {
	struct timeval64 user, system;
	s64 maxrss; /* KiB */
	s64 ixrss, idrss, isrss;
	s64 minflt, majflt; /* all faults are minor, because nothing is read from a disk */
	s64 nswap, inblock, oublock, msgsnd, msgrcv, nsignals;
	s64 nvcsw, nivcsw;
};

struct usage {
	struct cpu_times times;
	u64 nr_faults;
	u64 nr_voluntary, nr_involuntary; /* context switches */
	u64 max_pages;
	struct io_counts io; /* of threads that are gone, and of children */
};

/*
 * Computes the usage of a process and of the children that it has waited for. Any context but NMI.
 */
void usage_of_process(struct process *proc, struct usage *usage);

/* Adds the usage of a child that was waited for. Any context but NMI. */
void usage_add_child(struct process *parent, const struct usage *child);

/* Copies the usage to user memory. Returns 0 or -EFAULT. */
int usage_copy_to_user(struct rusage __user *user, const struct usage *usage);

#endif
