// SPDX-License-Identifier: BSD-2-Clause
/*
 * The truth for the heatmap: a TCG plugin that counts every instruction a guest with one CPU
 * executes, by function and call chain, and in the kernel by address too. User code is one bucket.
 *
 *   -plugin libtruth.so,functions=FILE,out=FILE,sampler=nmi|timer,start=ADDR,stop=ADDR,
 *           stubs=ADDR,syscall=ADDR,nmi=ADDR,thread=ADDR,switch=ADDR,timer=VECTOR
 *
 * functions: the addresses of the kernel's functions, ascending, in hex, one a line; the last is
 * the end of the last one. Counting starts anew when the instruction at `start` is executed, and
 * ends, with everything written to `out`, at the next one at `stop`.
 *
 * The unit is a run: instructions of a translation block that belong to one function, up to a cli.
 * Each run calls begin_run() at its first instruction; each instruction adds 1 to `executed`. So
 * the difference at the next run's begin is how many of the last one were begun: all of them,
 * unless one has faulted, which is executed again later and has not taken any time yet. (The list
 * of a block whose last instruction crosses a page has one too many; what is counted is right.)
 *
 * A kernel stack's chain is what a perfect unwinder would find: for each return address on it the
 * function that called, innermost last, and for each interrupt or exception in the kernel the
 * function it hit. Where on the stack a call puts its return address, and a return takes it from,
 * is seen as a memory access: that tells stacks apart when the kernel switches, too.
 *
 * What runs in the sampling interrupt is kept apart, as it cannot sample itself. For the timer,
 * which has to wait for interrupts to be on, a second truth is kept, "seen": time with interrupts
 * off is charged to where they came on again, as an interrupt that was due meanwhile would find it.
 */
#include "truth.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_SLOTS  (1u << 16)
#define FRAME_SLOTS (1u << 20)

/* A call chain; the root's own function is -1. */
struct node {
	struct node *parent, *next;
	int function;
	uint32_t id;
	uint64_t nr, nr_seen;
};

struct run {
	struct run *next;
	uint64_t *addrs;
	uint64_t *nr_by_length; /* [i]: executions of just the first i instructions */
	uint64_t nr_seen_first; /* what is charged to the first one beyond its own time */
	uint64_t *nr_seen_by_length;
	uint32_t nr;
	int function;
	int entry;
	enum last last;
	bool starts_window, stops_window, starts_thread, is_switch;
	/* The chain it had last time, below which context. */
	struct node *context, *node;
};

enum interrupts {
	INTERRUPTS_OFF,
	INTERRUPTS_SHADOW,
	INTERRUPTS_ON
};

/* What the CPU is doing. */
struct state {
	struct node *context; /* the chain below the function that runs */
	enum interrupts interrupts;
	bool in_user, is_sampler;
};

/* A word on a kernel stack: a return address, or the rip of an interrupt frame. */
struct frame {
	uint64_t addr; /* 0: free */
	bool is_interrupt;
	struct state state; /* before the call or the interrupt */
};

static uint64_t *nr_sampler; /* instructions in the sampling interrupt, by function */

static struct run *runs[HASH_SLOTS];
static struct node *nodes[HASH_SLOTS];
static struct node root = { .function = -1 };
static uint32_t nr_nodes = 1;

static struct frame frames[FRAME_SLOTS];
static uint32_t nr_frames;

static uint64_t executed, executed_before;
static struct run *running;
static struct node *running_node;
static bool awaits_access; /* of its last instruction, or an entry's first */
static struct state state = { .context = &root };
static struct state returned_to; /* of an iretq that is being executed */
static const struct state user_state = {
	.context = &root,
	.interrupts = INTERRUPTS_ON,
	.in_user = true,
};
static bool in_window;
static uint64_t nr_unseen; /* instructions with interrupts off that are not charged yet */
static uint64_t nr_off;	   /* all of them */
/* What should not happen, or is not modelled. */
static uint64_t nr_odd_lengths, nr_odd_returns;

static uint32_t hash(uint64_t a, uint64_t b)
{
	return (a * 0x9e3779b97f4a7c15ull ^ b * 0xc2b2ae3d27d4eb4full) >> 48;
}

static struct node *chain(struct node *parent, int function)
{
	struct node **slot = &nodes[hash(parent->id, function) % HASH_SLOTS], *node;

	for (node = *slot; node; node = node->next) {
		if (node->parent == parent && node->function == function)
			return node;
	}
	node = must_alloc(sizeof(*node));
	*node = (struct node){ .parent = parent, .next = *slot, .function = function };
	node->id = nr_nodes++;
	return *slot = node;
}

static struct frame *frame_at(uint64_t addr)
{
	uint32_t slot = (addr * 0x9e3779b97f4a7c15ull >> 32) % FRAME_SLOTS;

	while (frames[slot].addr && frames[slot].addr != addr)
		slot = (slot + 1) % FRAME_SLOTS;
	return &frames[slot];
}

static void save_state(uint64_t addr, bool is_interrupt, const struct state *before)
{
	struct frame *frame = frame_at(addr);

	if (!frame->addr && ++nr_frames > FRAME_SLOTS / 2)
		die("too many stack frames");
	*frame = (struct frame){ .addr = addr, .is_interrupt = is_interrupt, .state = *before };
}

/*
 * QEMU leaves an instruction's callback in place behind it, where some accesses of the CPU's own,
 * to the interrupt table say, and of other instructions call it again.
 */
static bool is_first_access(bool is_right_kind, uint32_t position)
{
	if (!is_right_kind || !awaits_access || executed - executed_before != position)
		return false;
	awaits_access = false;
	return true;
}

static bool is_last_access(bool is_right_kind, enum last last)
{
	return running->last == last && is_first_access(is_right_kind, running->nr);
}

static void on_call(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t addr, void *data)
{
	if (!is_last_access(qemu_plugin_mem_is_store(info), LAST_CALL))
		return;
	save_state(addr, false, &state);
	state.context = running_node;
}

static void on_return(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t addr, void *data)
{
	const struct frame *frame = frame_at(addr);

	if (!is_last_access(!qemu_plugin_mem_is_store(info), LAST_RETURN))
		return;
	if (running->is_switch)
		state.is_sampler = false;
	if (frame->addr && !frame->is_interrupt) {
		state.context = frame->state.context;
	} else {
		state.context = &root;
		if (!running->is_switch) /* to a new thread */
			nr_odd_returns++;
	}
}

static bool samples_at(int vector)
{
	return args.samples_by_nmi ? vector == VECTOR_NMI : vector == (int)args.timer;
}

static bool has_error_code(int vector)
{
	return vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21 ||
	       vector == 29 || vector == 30;
}

static struct state before_interrupt;

/* The first push of an interrupt's entry, below the frame, or the error code, made by the CPU. */
static void on_entry(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t addr, void *data)
{
	if (running->entry == ENTRY_NONE || !is_first_access(qemu_plugin_mem_is_store(info), 1))
		return;
	save_state(addr + (has_error_code(running->entry) ? 16 : 8), true, &before_interrupt);
}

static void enter(int vector)
{
	before_interrupt = state;
	if (vector == ENTRY_SYSCALL || state.in_user)
		state.context = &root;
	else
		state.context = chain(state.context, running->function);
	state.in_user = false;
	state.interrupts = INTERRUPTS_OFF;
	state.is_sampler |= samples_at(vector);
}

/* The first read is that of rip. What no entry has left a frame for goes to user mode. */
static void on_interrupt_return(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t addr,
				void *data)
{
	const struct frame *frame = frame_at(addr);

	if (!is_last_access(!qemu_plugin_mem_is_store(info), LAST_IRET))
		return;
	if (frame->addr && frame->is_interrupt)
		returned_to = frame->state;
}

static void leave_by(enum last last)
{
	if (last == LAST_CLI) {
		state.interrupts = INTERRUPTS_OFF;
	} else if (last == LAST_STI) {
		state.interrupts = INTERRUPTS_SHADOW;
		if (!args.samples_by_nmi)
			state.is_sampler = false;
	} else if (last == LAST_IRET) {
		state = returned_to;
		if (state.interrupts == INTERRUPTS_SHADOW)
			state.interrupts = INTERRUPTS_ON;
		returned_to = user_state;
	} else if (last == LAST_SYSRET) {
		state = user_state;
	} else if (state.interrupts == INTERRUPTS_SHADOW) {
		state.interrupts = INTERRUPTS_ON;
	}
}

static bool is_fault(int entry)
{
	return entry >= 0 && entry < NR_EXCEPTIONS && entry != VECTOR_DEBUG &&
	       entry != VECTOR_NMI && entry != VECTOR_BREAKPOINT && entry != VECTOR_OVERFLOW;
}

static void charge(uint64_t nr)
{
	bool is_off = !state.in_user && state.interrupts != INTERRUPTS_ON;

	if (!in_window)
		return;
	if (state.is_sampler) {
		nr_sampler[running->function] += nr;
		return;
	}
	running_node->nr += nr;
	if (is_off) {
		nr_unseen += nr;
		nr_off += nr;
	} else {
		running_node->nr_seen += nr;
	}
	running->nr_by_length[nr]++;
	if (!is_off)
		running->nr_seen_by_length[nr]++;
}

static void end_run(const struct run *next)
{
	uint64_t nr = executed - executed_before;
	bool faulted = is_fault(next->entry);

	executed_before = executed;
	if (!running)
		return;
	if (nr > running->nr) {
		nr_odd_lengths++;
		nr = running->nr;
	}
	charge(nr && faulted ? nr - 1 : nr);
	if (!faulted)
		leave_by(nr == running->nr ? running->last : LAST_OTHER);
}

static void clear_counts(void)
{
	for (uint32_t i = 0; i < HASH_SLOTS; i++) {
		for (struct node *node = nodes[i]; node; node = node->next)
			node->nr = node->nr_seen = 0;
		for (struct run *run = runs[i]; run; run = run->next) {
			run->nr_seen_first = 0;
			memset(run->nr_by_length, 0, (run->nr + 1) * sizeof(uint64_t));
			memset(run->nr_seen_by_length, 0, (run->nr + 1) * sizeof(uint64_t));
		}
	}
	memset(nr_sampler, 0, (nr_functions + 2) * sizeof(*nr_sampler));
	nr_unseen = nr_off = 0;
	nr_odd_lengths = nr_odd_returns = 0;
}

static void write_addresses(FILE *file, const struct run *run)
{
	uint64_t nr = 0, nr_seen = 0;

	for (uint32_t i = run->nr; i > 0; i--) {
		nr += run->nr_by_length[i];
		nr_seen += run->nr_seen_by_length[i];
		if (i == 1)
			nr_seen += run->nr_seen_first;
		if (nr || nr_seen)
			fprintf(file, "address %" PRIx64 " %" PRIu64 " %" PRIu64 "\n",
				run->addrs[i - 1], nr, nr_seen);
	}
}

static void write_counts(void)
{
	FILE *file = fopen(args.out, "w");

	if (!file)
		die("cannot write the counts");
	for (uint32_t i = 0; i < HASH_SLOTS; i++) {
		for (const struct node *node = nodes[i]; node; node = node->next)
			fprintf(file, "node %u %u %d %" PRIu64 " %" PRIu64 "\n", node->id,
				node->parent->id, node->function, node->nr, node->nr_seen);
		for (const struct run *run = runs[i]; run; run = run->next) {
			if (run->function != user_function)
				write_addresses(file, run);
		}
	}
	for (int i = 0; i < nr_functions + 2; i++) {
		if (nr_sampler[i])
			fprintf(file, "sampler %d %" PRIu64 "\n", i, nr_sampler[i]);
	}
	fprintf(file, "interrupts_off %" PRIu64 "\n", nr_off);
	fprintf(file, "odd_lengths %" PRIu64 "\nodd_returns %" PRIu64 "\n", nr_odd_lengths,
		nr_odd_returns);
	fprintf(file, "end\n");
	if (fclose(file))
		die("cannot write the counts");
}

static void begin_run(unsigned int cpu, void *data)
{
	struct run *run = data;
	struct node *below;

	if (cpu)
		die("one CPU only");
	end_run(run);
	if (run->entry != ENTRY_NONE)
		enter(run->entry);
	if (run->function == user_function)
		state = user_state;
	if (run->starts_thread)
		state.context = &root;

	below = state.context;
	if (run->context != below) {
		run->context = below;
		run->node = chain(below, run->function);
	}
	running = run;
	running_node = run->node;
	awaits_access = true;
	if (nr_unseen && state.interrupts == INTERRUPTS_ON && !state.is_sampler) {
		running_node->nr_seen += nr_unseen;
		run->nr_seen_first += nr_unseen;
		nr_unseen = 0;
	}
	if (run->starts_window) {
		clear_counts();
		in_window = true;
	} else if (run->stops_window && in_window) {
		in_window = false;
		write_counts();
	}
}

/* The same instructions may be translated many times: one run has the counts of all. */
static struct run *find_run(const struct qemu_plugin_tb *tb, size_t start, size_t nr)
{
	struct instruction first = get_instruction(tb, start),
			   last = get_instruction(tb, start + nr - 1);
	struct run **slot = &runs[hash(first.addr, last.addr ^ nr << 32) % HASH_SLOTS], *run;
	bool is_user = first.addr < USER_END;

	for (run = *slot; run; run = run->next) {
		if (run->nr == nr && run->addrs[0] == first.addr && run->addrs[nr - 1] == last.addr)
			return run;
	}
	run = must_alloc(sizeof(*run));
	run->addrs = must_alloc(nr * sizeof(uint64_t));
	run->nr_by_length = must_alloc((nr + 1) * sizeof(uint64_t));
	run->nr_seen_by_length = must_alloc((nr + 1) * sizeof(uint64_t));
	for (size_t i = 0; i < nr; i++)
		run->addrs[i] = get_instruction(tb, start + i).addr;
	run->nr = nr;
	run->function = function_at(first.addr);
	run->entry = is_user ? ENTRY_NONE : entry_at(first.addr);
	run->last = is_user ? LAST_OTHER : last_of(&last);
	run->starts_window = first.addr == args.start;
	run->stops_window = first.addr == args.stop;
	run->starts_thread = first.addr == args.thread;
	run->is_switch = run->function == function_at(args.switch_stack);
	run->next = *slot;
	return *slot = run;
}

static void watch_memory(const struct instruction *insn)
{
	void (*fn)(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data) = NULL;
	enum last last = last_of(insn);
	int entry = entry_at(insn->addr);

	if (last == LAST_CALL)
		fn = on_call;
	else if (last == LAST_RETURN)
		fn = on_return;
	else if (last == LAST_IRET)
		fn = on_interrupt_return;
	else if (entry >= 0 && entry < NR_VECTORS)
		fn = on_entry;
	if (fn)
		qemu_plugin_register_vcpu_mem_cb(insn->insn, fn, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, NULL);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb), start = 0;

	for (size_t i = 0; i < nr; i++) {
		struct instruction insn = get_instruction(tb, i);
		bool is_user = insn.addr < USER_END;

		qemu_plugin_register_vcpu_insn_exec_inline(insn.insn, QEMU_PLUGIN_INLINE_ADD_U64,
							   &executed, 1);
		if (!is_user)
			watch_memory(&insn);
		if (i + 1 == nr ||
		    function_at(insn.addr) != function_at(get_instruction(tb, i + 1).addr) ||
		    (!is_user && last_of(&insn) != LAST_OTHER)) {
			qemu_plugin_register_vcpu_insn_exec_cb(get_instruction(tb, start).insn,
							       begin_run, QEMU_PLUGIN_CB_NO_REGS,
							       find_run(tb, start, i + 1 - start));
			start = i + 1;
		}
	}
}

int qemu_plugin_version = 1;

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv)
{
	truth_read_args(argc, argv);
	nr_sampler = must_alloc((nr_functions + 2) * sizeof(*nr_sampler));
	returned_to = user_state;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
