/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ACCURACY_TRUTH_H
#define ACCURACY_TRUTH_H

/* The input of the plugin: its arguments, the kernel's functions, instructions. */

#include "plugin_api.h"

#define NR_VECTORS    256
#define NR_EXCEPTIONS 32

#define USER_END (1ull << 47)

struct truth_args {
	uint64_t start, stop;		      /* addresses that begin and end the window */
	uint64_t stubs, syscall, nmi, thread; /* entries of the kernel, and of new threads */
	uint64_t switch_stack;
	uint64_t schedule;     /* schedule() reads the clock in it before switch_stack() */
	uint64_t idle, sample; /* cpu_idle(), sample_take() */
	uint64_t timer;	       /* vector */
	bool samples_by_nmi;
	const char *out;
};

extern struct truth_args args;

/* Functions are numbered in the order of their addresses. These two numbers follow. */
extern int nr_functions, user_function, other_function;
extern int idle_function; /* the one at args.idle */

/* An entry of the kernel: the vector of an interrupt or exception, or one of these. */
enum {
	ENTRY_NONE = -1,
	ENTRY_SYSCALL = NR_VECTORS
};

enum vector {
	VECTOR_DEBUG = 1,
	VECTOR_NMI = 2,
	VECTOR_BREAKPOINT = 3,
	VECTOR_OVERFLOW = 4
};

/* The kind of a run's last instruction. */
enum last {
	LAST_OTHER,
	LAST_CALL,
	LAST_RETURN,
	LAST_CLI,
	LAST_STI,
	LAST_IRET,
	LAST_SYSRET
};

struct instruction {
	struct qemu_plugin_insn *insn;
	uint64_t addr;
	const uint8_t *bytes;
	size_t size;
};

__attribute__((noreturn)) void die(const char *what);
/* Returns zeroed memory. Dies if there is none. */
void *must_alloc(size_t size);

/* Reads all arguments. Dies if one is missing. */
void truth_read_args(int argc, char **argv);

int function_at(uint64_t addr);
/* Returns whether a function of the kernel begins here. */
bool is_start(uint64_t addr);
/* Returns whether a `work=` argument names this address. */
bool is_work(uint64_t addr);
/* Returns the vector of the interrupt or exception that enters the kernel here, or ENTRY_*. */
int entry_at(uint64_t addr);

struct instruction get_instruction(const struct qemu_plugin_tb *tb, size_t i);
enum last last_of(const struct instruction *insn);
bool reads_clock(const struct instruction *insn);

#endif
