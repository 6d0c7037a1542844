/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_POINTS_H
#define PROFILE_POINTS_H

/*
 * Profile points: the time of sections of kernel code. The macros of <profile/profile.h> add to
 * sums of each CPU (point.c) and of each thread (task.c). control.c switches points on and off, and
 * report.c prints a snapshot of the sums.
 */

#include "../off_time.h"
#include "../report.h"

#define POINTS_MAX_ENTRIES OS_MAX_POINTS

struct point_entry {
	const char *name;
	u32 serial; /* in link order */
	bool enabled;
	bool sleeps; /* oncpu_ns is measured */
	u64 nr;
	u64 nr_backwards;
	u64 nr_migrated;
	u64 nr_unmatched;
	u64 ns;
	u64 net_ns; /* ns without the overhead inside the measured time */
	u64 oncpu_ns;
	u64 min_ns;
	u64 max_ns;
	u64 p50_ns; /* upper bounds */
	u64 p99_ns;
	u64 nr_log2[PROFILE_POINT_BUCKETS];
};

/* The event since which the sums count. */
enum point_since {
	POINTS_SINCE_BOOT,
	POINTS_SINCE_RESET,
	POINTS_SINCE_START, /* of the process */
	POINTS_SINCE_EXEC,
};

struct point_snapshot {
	bool of_process; /* nr and ns are of one process; anomalies are still of all CPUs */
	enum point_since since;
	u64 since_ns;		 /* the time since that event */
	struct off_snapshot off; /* when a point was off that had been on */
	u32 nr_threads_lost;	 /* threads of the process without memory for their sums */
	u64 empty_pair_ns;	 /* overhead: the cost of an empty pair */
	u64 empty_reading_ns;	 /* the part of it that is inside the measured time */
	u32 nr_incomplete;	 /* points that are on and have no complete pair on any CPU */
	const char *incomplete[POINTS_MAX_ENTRIES];
	u32 nr_not_shown;
	u32 nr_entries;
	struct point_entry entries[POINTS_MAX_ENTRIES];
};

extern struct profile_off_time points_off_time; /* while any point is off that was on */

/*
 * These patch code, so call them in process context. Points are off after points_init(). From
 * points_started() on, a point that is switched off is noted in reports.
 */
void points_started(void);
void points_init(bool ordered);
bool points_match(const char *pattern); /* returns true if any point matches; any context */
void points_switch(const char *pattern, bool on);

/* The same for several patterns, in the time of one. Other threads that switch points wait. */
void points_begin(void);
void points_want(const char *pattern, bool on);
void points_apply(void);

bool points_toggle(void); /* all off if any is on, else all on; returns true for on */

void points_reset(void);
/*
 * Copy the sums of all CPUs, or of one process. Any context but NMI. The first also works in a
 * panic; it takes no lock then.
 */
void points_snapshot(struct point_snapshot *snap);
void points_snapshot_process(struct point_snapshot *snap, const struct profile_process *pp);

#ifdef CONFIG_PROFILE_POINTS
/* The bounds of section profile_points, from the linker. Weak: there may be no point at all. */
extern struct profile_point __start_profile_points[] __attribute__((weak));
extern struct profile_point __stop_profile_points[] __attribute__((weak));

#define for_each_point(point)                                                              \
	for ((point) = __start_profile_points; (point) < __stop_profile_points; (point)++) \
		if (!(point)->name)                                                        \
			;                                                                  \
		else
#endif

/* task.c: the sums of each thread and process. Returns 0 or -ENOMEM. */
int points_tasks_init(void);
void points_tasks_switch(bool on); /* process context, one caller at a time */
/* It is on, and all CPUs know what points need of their threads. For the self-test. */
extern bool points_tasks_are_known;
void points_tasks_reset(void);
void points_task_init(os_task_t *task);
void points_task_exit(struct profile_task *pt);
void points_process_init(struct profile_process *pp);
void points_process_exec(struct profile_process *pp);
void points_process_release(struct profile_process *pp);

struct profile_point;
struct profile_point_task;
/* Adds up the sums of a process, for points_read_sums(). One report is made at a time. */
void points_read_process(const struct profile_process *pp);
struct profile_point_task points_read_sums(const struct profile_point *point);

/* Prints a line "on <name>" or "off <name>" for each point. */
void points_list(os_text_t *text);

/* report.c: prints the table. With histogram, a line for each bucket in use follows. */
void report_print_points(struct point_snapshot *snap, bool wide, bool histogram);

/*
 * control.c: profile.points=, sysrq o, and writes to /proc/profile/points. Process context.
 * points_control() returns 0 or -OS_EINVAL.
 */
#define POINTS_WORDS "reset|[-]<glob that matches a point>[,...]"
void points_control_init(void);
int points_control(const char *words);

#endif
