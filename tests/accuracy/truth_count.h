/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ACCURACY_TRUTH_COUNT_H
#define ACCURACY_TRUTH_COUNT_H

/* What truth.c counts, and truth_output.c writes. */

#include "truth.h"

#define HASH_SLOTS (1u << 16)
#define MAX_CPUS   64

/* cycles: by the clock that the kernel has read; switch_cycles: from switch to switch. */
struct waits {
	uint64_t nr, cycles, switch_cycles;
};

/* A function, and the chain of functions that are active below it. The root's function is -1. */
struct node {
	struct node *parent, *next;
	int function;
	uint32_t id;
	bool is_jumped_to, is_idle;
	uint64_t nr, nr_seen;
	uint64_t nr_calls;    /* times that its first instruction was executed */
	uint64_t longest_off; /* stretch with interrupts off that ended here */
	struct waits waits;   /* of threads that were switched out here */
};

struct run {
	struct run *next;
	uint64_t *addrs;
	uint64_t *nr_by_length; /* [i]: how often just the first i instructions were executed */
	uint64_t nr_seen_first; /* time charged to the first instruction beyond its own */
	uint64_t *nr_seen_by_length;
	uint32_t nr;
	int function;
	int entry;
	enum last last;
	bool starts_window, stops_window, starts_thread, starts_sample, starts_work;
	bool starts_function, starts_switch, is_switch;
};

enum interrupts {
	INTERRUPTS_OFF,
	INTERRUPTS_SHADOW,
	INTERRUPTS_ON
};

/*
 * What a CPU is doing. The nodes between below and node are the function that was called or entered
 * last, if it has begun, and the functions that have jumped on to node.
 */
struct state {
	struct node *below, *node;
	enum interrupts interrupts;
	bool in_user, is_sampler;
};

/* What a sampling interrupt has done. */
enum sampling {
	SAMPLE_ONLY,
	SAMPLE_AND_WORK,
	WITHOUT_SAMPLE,
	NR_SAMPLINGS
};

/* The sampling interrupt that runs. */
struct interrupt {
	uint64_t nr; /* instructions */
	bool has_sampled, has_worked;
};

struct cpu {
	struct run *running;  /* NULL: nothing yet */
	struct node *node;    /* of that */
	uint64_t nr_executed; /* instructions of it */
	bool awaits_access;   /* the last instruction's access, or an entry's first, is to come */
	struct state state, before_interrupt;
	struct state returned_to; /* of an iretq that is being executed */
	struct interrupt interrupt;
	uint64_t last_call;	 /* where on the stack the last call has put its return address */
	uint64_t schedule_clock; /* when schedule() read the clock last */

	/* Instructions in the window, except those of the sampler. */
	uint64_t nr_unseen;	   /* with interrupts off, not charged yet */
	uint64_t nr_stretch;	   /* busy with interrupts off, up to now */
	struct node *stretch_node; /* where it has got to */
	uint64_t nr[2], nr_off[2]; /* busy, idle */
	uint64_t nr_interrupts[NR_SAMPLINGS], nr_instructions[NR_SAMPLINGS];
};

/* A thread that is off its CPU: when schedule() read the clock, and when it switched. */
struct out {
	bool is_out;
	uint64_t clock, time;
};

extern struct node *nodes[HASH_SLOTS];
extern struct run *runs[HASH_SLOTS];
extern struct cpu cpus[MAX_CPUS];
extern uint64_t *nr_sampler; /* instructions in the sampling interrupt, by function */
/* What should not happen, or is not modelled. */
extern uint64_t nr_odd_lengths, nr_odd_returns, nr_odd_jumps;

void clear_counts(void);

/* truth_waits.c. The kernel reads the clock in a function; the window begins. */
void waits_clock(struct cpu *cpu, int function, uint64_t time);
void waits_begin_window(void);
/* A thread is switched out, and back in; node: where it was when it was switched out, or NULL. */
void waits_begin(const struct cpu *cpu, struct out *out, uint64_t time);
void waits_end(const struct cpu *cpu, struct out *out, struct node *node, uint64_t time);
/* Writes the counts to the file that was asked for, or exits. */
void write_counts(void);

#endif
