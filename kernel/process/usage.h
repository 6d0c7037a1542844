/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROCESS_USAGE_H
#define PROCESS_USAGE_H

/* What processes have used. */

#include <lego/process.h>

struct timeval64 {
	s64 sec;
	s64 usec;
};

/* Linux's. What is not counted here is zero: mostly what Linux does not count either. */
struct rusage {
	struct timeval64 user, system;
	s64 maxrss; /* KiB */
	s64 ixrss, idrss, isrss;
	s64 minflt, majflt; /* nothing is read from a disk: all are minor */
	s64 nswap, inblock, oublock, msgsnd, msgrcv, nsignals;
	s64 nvcsw, nivcsw;
};

struct usage {
	struct cpu_times times;
	u64 nr_faults;
	u64 nr_voluntary, nr_involuntary; /* context switches, if the profiler counts them */
	u64 max_pages;
};

/* A process and its children that it has waited for. Any context but NMI. */
void usage_of_process(struct process *proc, struct usage *usage);

/* The child that has used this has been waited for. Any context but NMI. */
void usage_add_child(struct process *parent, const struct usage *child);

/* 0 or -EFAULT. */
int usage_copy_to_user(struct rusage __user *user, const struct usage *usage);

#endif
