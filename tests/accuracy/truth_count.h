/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ACCURACY_TRUTH_COUNT_H
#define ACCURACY_TRUTH_COUNT_H

/* The counts that truth.c makes and truth_output.c writes. */

#include "truth.h"

#define HASH_SLOTS (1u << 16)
#define MAX_CPUS   64

/* cycles: by the clock that the kernel has read; switch_cycles: from switch to switch. */
struct waits {
	uint64_t nr, cycles, switch_cycles;
};

/* A function in a chain of active functions; parent is the next outer one. The root has -1. */
struct node {
	struct node *parent, *next;
	int function;
	uint32_t id;
	bool is_jumped_to, is_idle;
	uint64_t nr, nr_seen;
	uint64_t nr_calls;    /* how often its first instruction was executed */
	uint64_t longest_off; /* the longest stretch with interrupts off that ended here */
	struct waits waits;   /* of threads that were switched out here */
};

struct run {
	struct run *next;
	uint64_t *addrs;
	uint64_t *nr_by_length; /* [i]: how often exactly the first i instructions were executed */
	uint64_t nr_seen_first; /* time of code with interrupts off, charged to the first one */
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
 * The state of a CPU. node is the active function. The nodes above `below`, up to node, are the
 * function that was called or entered last, if it has begun, and those that it has jumped to.
 */
struct state {
	struct node *below, *node;
	enum interrupts interrupts;
	bool in_user, is_sampler;
};

/* The work of a sampling interrupt. */
enum sampling {
	SAMPLE_ONLY,
	SAMPLE_AND_WORK,
	WITHOUT_SAMPLE,
	NR_SAMPLINGS
};

/* The sampling interrupt that is running. */
struct interrupt {
	uint64_t nr; /* instructions */
	bool has_sampled, has_worked;
};

struct cpu {
	struct run *running;  /* NULL: none yet */
	struct node *node;    /* of this run */
	uint64_t nr_executed; /* instructions of this run */
	/* The memory access of its last instruction, or of an entry's first one. */
	bool awaits_access;
	struct state state, before_interrupt;
	struct state returned_to; /* by an iretq that is being executed */
	struct interrupt interrupt;
	uint64_t last_call;	 /* the stack address of the last call's return address */
	uint64_t schedule_clock; /* the last time that schedule() has read */

	/* Instructions in the window, except those of the sampler. */
	uint64_t nr_unseen;	   /* with interrupts off, not charged yet */
	uint64_t nr_stretch;	   /* in the current stretch with interrupts off, not idle */
	struct node *stretch_node; /* the last node in that stretch */
	uint64_t nr[2], nr_off[2]; /* busy, idle */
	uint64_t nr_interrupts[NR_SAMPLINGS], nr_instructions[NR_SAMPLINGS];
};

/* A thread that is switched out: when schedule() read the clock, and when it switched. */
struct out {
	bool is_out;
	uint64_t clock, time;
};

extern struct node *nodes[HASH_SLOTS];
extern struct run *runs[HASH_SLOTS];
extern struct cpu cpus[MAX_CPUS];
extern uint64_t *nr_sampler; /* instructions in the sampling interrupt, by function */
/* Events that should not happen, or that are not modelled. */
extern uint64_t nr_odd_lengths, nr_odd_returns, nr_odd_jumps;

void clear_counts(void);

/* truth_waits.c. Called when a function of the kernel reads the clock. */
void waits_clock(struct cpu *cpu, int function, uint64_t time);
void waits_begin_window(void);
/*
 * Called when a thread is switched out and back in. `node` is the node in which it was switched
 * out, or NULL.
 */
void waits_begin(const struct cpu *cpu, struct out *out, uint64_t time);
void waits_end(const struct cpu *cpu, struct out *out, struct node *node, uint64_t time);
/* Writes the counts to the file in the arguments. Exits on errors. */
void write_counts(void);

#endif
