/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_WORKING_SET_WORKING_SET_H
#define PROFILE_WORKING_SET_WORKING_SET_H

/*
 * How much memory programs really use: sampler.c samples the accessed and dirty bits of pages in
 * the regions of each process (regions.h), slots.c keeps what it found, and report.c prints that.
 */

#include "regions.h"

#include "../off_time.h"
#include "../report.h"

#define WORKING_SET_SLOTS      32  /* processes, with those that have ended */
#define WORKING_SET_MOMENTS    32  /* of a process's history */
#define WORKING_SET_SAMPLES    20  /* of each region in a period */
#define WORKING_SET_SLEEP_MS   5   /* at least, between two samples */
#define WORKING_SET_COST_LIMIT 100 /* in hundredths of a percent of one CPU */

/* What is shown of a region. */
struct working_set_row {
	u64 start, end;
	u64 nr_pages;
	u64 accessed_ns; /* 0: never */
	u32 age;
	u16 accessed, written;
	u8 kind;
};

/* The regions of a process at the end of a period. */
struct working_set_view {
	u64 ns; /* when it was made; 0: never */
	u32 pid;
	char name[16];
	u64 short_pages, long_pages; /* the working sets */
	u64 resident_pages;
	u32 nr_rows;
	struct working_set_row rows[REGIONS_MAX];
};

/* A moment of the history: the shares of each region. */
struct working_set_cell {
	u64 start;
	u32 nr_pages;
	u8 accessed, written; /* percent */
};

struct working_set_moment {
	u64 ns;
	u32 nr_cells;
	struct working_set_cell cells[REGIONS_MAX];
};

/* What is known of a process. */
struct working_set_slot {
	struct profile_process *pp; /* NULL: it has ended. Guarded by lists_lock */
	/* Only the worker uses these. */
	u32 pid;
	char name[16];
	u64 program;
	u64 generation;	     /* 0: no sample yet */
	bool has_just_begun; /* before the first sample: it has touched all that it has */
	u64 period_begin_ns;
	u32 nr_samples; /* in this period */
	struct regions regions;
	/* Guarded by working_set_lock. */
	u64 view_generation; /* of the view and the history */
	struct working_set_view view;
	u32 nr_moments;
	u32 moment_every, until_moment; /* in periods */
	struct working_set_moment moments[WORKING_SET_MOMENTS];
};

/* How recently programs have used a page of RAM. 0: no program has it. */
enum working_set_level {
	WORKING_SET_RESIDENT = 1, /* a process has it */
	WORKING_SET_USED_LONG,	  /* and has used it in the last 10 s */
	WORKING_SET_USED_SHORT,	  /* in the last second */
	WORKING_SET_LEVELS,
};

/* A block of RAM: what programs have of it, and use. */
struct working_set_block {
	u64 start, end;
	u64 nr_pages;		    /* of RAM */
	u64 nr[WORKING_SET_LEVELS]; /* pages by their level */
	u32 node;		    /* OS_NO_NODE: unknown, or several */
};

#define WORKING_SET_BLOCKS 64

struct working_set_memory {
	u64 ns; /* when the pages were visited; 0: never */
	u64 generation;
	u64 nr_outside; /* pages that are in no block */
	u32 nr_blocks;
	bool has_nodes; /* several */
	bool no_room;	/* to note what is known of pages */
	struct working_set_block blocks[WORKING_SET_BLOCKS];
};

/* memory.c. Visits some pages of the sampled processes; called by the worker in each round. */
void working_set_visit_memory(u64 generation, u64 now_ns);
/* Copies what is shown. Returns false if it is not known since the reset. Any context but NMI. */
bool working_set_copy_memory(struct working_set_memory *memory);

/* sampler.c: the switch. Process context. */
void working_set_switch(bool on, bool at_boot);
void working_set_reset(void);
extern struct profile_off_time working_set_off_time;
extern u64 working_set_generation; /* grows with each reset */
extern u64 working_set_begin_ns;   /* when it has grown */

/* What sampling has cost since it was switched on, or since the reset. */
struct working_set_cost {
	u64 cycles;	    /* of all CPUs */
	u64 elapsed_cycles; /* of one CPU, while it was on */
	u64 nr_rounds;	    /* in which a page of each region is sampled */
	u64 nr_samples;	    /* of pages */
	u64 nr_changed;	    /* of these, do not tell */
};
void working_set_read_cost(struct working_set_cost *cost);

/*
 * slots.c. Called by the worker: returns the process of a slot with its address space, which the
 * caller puts, or NULL; finds processes without a slot.
 */
os_mm_t *working_set_slot_mm(struct working_set_slot *slot);
void working_set_find_processes(void);
/* Shows a slot's regions as they are now. */
void working_set_publish(struct working_set_slot *slot, u64 now_ns);
/* Returns a slot, or NULL. Any context. */
struct working_set_slot *working_set_slot_at(u32 i);
/* Forgets a process that goes away. lists_lock is held. */
void working_set_forget(struct profile_process *pp);
/* Returns how many processes have no slot. Any context. */
u32 working_set_nr_without_slot(void);
/*
 * Copy what is known of a slot: the view, or a moment of the history, oldest first. Return false
 * if there is no such thing since the reset. Any context but NMI, also a panic.
 */
bool working_set_copy(const struct working_set_slot *slot, struct working_set_view *view);
bool working_set_copy_moment(const struct working_set_slot *slot, u32 i,
			     struct working_set_moment *moment);

/* report.c */
void report_print_working_set(const struct report *report);
void report_print_working_sets(void); /* of all processes */
/* For JSON. */
void report_print_working_set_processes(void);
void report_print_working_set_regions(void);
void report_print_working_set_history(void);
void report_print_working_set_memory(void);

#endif
