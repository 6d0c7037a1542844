// SPDX-License-Identifier: BSD-2-Clause
/*
 * A TCG plugin that counts every instruction of a guest, to check the heatmap: by function, by call
 * chain, and in the kernel by address, too. User code is one function. Several CPUs must take turns
 * in one thread, as they do with -icount.
 *
 *   -plugin libtruth.so,functions=FILE,out=FILE,sampler=nmi|timer,start=ADDR,stop=ADDR,
 *           stubs=ADDR,syscall=ADDR,nmi=ADDR,thread=ADDR,switch=ADDR,timer=VECTOR,idle=ADDR,
 *           sample=ADDR,schedule=ADDR,work=ADDR...
 *
 * functions: a file with the addresses of the kernel's functions, ascending, in hex, one a line,
 * and the end of the last function. Counting restarts when the instruction at `start` is executed.
 * At the next execution of `stop`, the plugin writes all counts to `out`.
 *
 * The unit is a run: consecutive instructions of a translation block in one function. A run ends
 * with an instruction that changes the flow or the interrupt flag (enum last). Each run calls
 * begin_run() at its first instruction, and each instruction adds 1 to `executed`. The difference
 * at the begin of the next run is the number of instructions begun in the last run. That is the
 * length of the run, unless an instruction has faulted. A faulting instruction is executed again
 * later, so it does not count. (If the last instruction of a block crosses a page, the block's list
 * has one instruction too many, but the count is right.)
 *
 * A function is active from its first instruction until it returns to its return address on the
 * stack. The plugin sees when calls write this address and returns read it. Because the address of
 * the access differs between stacks, this works across switches of tasks, too. A function that
 * jumps to another one stays active; the return ends both. Interrupts, exceptions and switches to
 * other tasks are on top of the function that they interrupt. A node is a function in a chain of
 * active functions. It records whether the function was jumped to, so that truth.py can also find
 * the chain of return addresses, which lacks functions that have jumped.
 *
 * The sampling interrupt is counted separately, because it cannot sample itself. These interrupts,
 * and their instructions up to the iretq, are counted by their work: whether they took a sample
 * (called `sample`), and whether they did other work (called one of the functions `work`).
 *
 * The timer cannot interrupt code with interrupts off. So the plugin counts a second truth, "seen":
 * time with interrupts off is charged to the instruction at which they come on again, where a
 * pending interrupt would come. For each CPU, instructions are also counted as idle (in `idle`, or
 * in code that has interrupted it) or busy, and of both those with interrupts off.
 */
#include "truth_count.h"

#include <stdlib.h>
#include <string.h>

#define FRAME_SLOTS (1u << 23)

/* A word on a kernel stack: a return address, or the rip of an interrupt frame. */
struct frame {
	uint64_t addr; /* 0: free */
	bool is_interrupt;
	struct state state; /* before the call or the interrupt */
	struct out out;	    /* for calls of switch_stack() */
};

struct node *nodes[HASH_SLOTS];
struct run *runs[HASH_SLOTS];
struct cpu cpus[MAX_CPUS];
uint64_t *nr_sampler;
uint64_t nr_odd_lengths, nr_odd_returns, nr_odd_jumps;

static struct node root = { .function = -1 };
static uint32_t nr_nodes = 1;

static struct frame frames[FRAME_SLOTS];
static uint32_t nr_frames;

static uint64_t executed, executed_before;
static struct cpu *current; /* the CPU of the last run that began */
static const struct state user_state = {
	.below = &root,
	.node = &root,
	.interrupts = INTERRUPTS_ON,
	.in_user = true,
};
static bool in_window;
static uint64_t nr_faulted; /* instructions that were begun but not executed */

static uint64_t time_now(void)
{
	return executed - nr_faulted;
}

static uint32_t hash(uint64_t a, uint64_t b)
{
	return (a * 0x9e3779b97f4a7c15ull ^ b * 0xc2b2ae3d27d4eb4full) >> 48;
}

static struct node *push(struct node *parent, int function, bool is_jumped_to)
{
	uint64_t key = 2ul * function + is_jumped_to;
	struct node **slot = &nodes[hash(parent->id, key) % HASH_SLOTS], *node;

	for (node = *slot; node; node = node->next) {
		if (node->parent == parent && node->function == function &&
		    node->is_jumped_to == is_jumped_to)
			return node;
	}
	node = must_alloc(sizeof(*node));
	*node = (struct node){ .parent = parent, .next = *slot, .function = function };
	node->is_jumped_to = is_jumped_to;
	node->is_idle = parent->is_idle || function == idle_function;
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
 * QEMU leaves an instruction's callback in place after the instruction. Later accesses by other
 * instructions can call it again, and so can accesses by the CPU itself, for example to the
 * interrupt table.
 */
static bool is_first_access(struct cpu *cpu, bool is_right_kind, uint32_t position)
{
	if (!is_right_kind || cpu != current || !cpu->awaits_access ||
	    executed - executed_before != position)
		return false;
	cpu->awaits_access = false;
	return true;
}

static bool is_last_access(struct cpu *cpu, bool is_right_kind, enum last last)
{
	return cpu->running && cpu->running->last == last &&
	       is_first_access(cpu, is_right_kind, cpu->running->nr);
}

/* Called when the sampling interrupt ends, or goes on to other work. */
static void leave_sampler(struct cpu *cpu, bool is_other_work)
{
	struct interrupt *now = &cpu->interrupt;
	enum sampling kind = !now->has_sampled		      ? WITHOUT_SAMPLE :
			     now->has_worked || is_other_work ? SAMPLE_AND_WORK :
								SAMPLE_ONLY;

	if (!cpu->state.is_sampler)
		return;
	cpu->state.is_sampler = false;
	if (!in_window)
		return;
	cpu->nr_interrupts[kind]++;
	cpu->nr_instructions[kind] += now->nr;
}

static void on_call(unsigned int index, qemu_plugin_meminfo_t info, uint64_t addr, void *data)
{
	struct cpu *cpu = &cpus[index];

	if (!is_last_access(cpu, qemu_plugin_mem_is_store(info), LAST_CALL))
		return;
	save_state(addr, false, &cpu->state);
	cpu->last_call = addr;
	cpu->state.below = cpu->state.node;
}

static void on_clock_read(unsigned int index, void *function)
{
	waits_clock(&cpus[index], (intptr_t)function, time_now());
}

static void on_return(unsigned int index, qemu_plugin_meminfo_t info, uint64_t addr, void *data)
{
	struct frame *frame = frame_at(addr);
	struct cpu *cpu = &cpus[index];
	struct state *state = &cpu->state;

	if (!is_last_access(cpu, !qemu_plugin_mem_is_store(info), LAST_RETURN))
		return;
	if (cpu->running->is_switch) {
		leave_sampler(cpu, true);
		waits_end(cpu, &frame->out, in_window ? frame->state.node : NULL, time_now());
	}
	if (frame->addr && !frame->is_interrupt) {
		state->below = frame->state.below;
		state->node = frame->state.node;
	} else {
		state->below = state->node = &root;
		if (!cpu->running->is_switch) /* to a new thread */
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

/* Called for the first push of an interrupt's entry, just below the CPU's frame or error code. */
static void on_entry(unsigned int index, qemu_plugin_meminfo_t info, uint64_t addr, void *data)
{
	struct cpu *cpu = &cpus[index];

	if (!cpu->running || cpu->running->entry == ENTRY_NONE ||
	    !is_first_access(cpu, qemu_plugin_mem_is_store(info), 1))
		return;
	addr += has_error_code(cpu->running->entry) ? 16 : 8;
	save_state(addr, true, &cpu->before_interrupt);
}

static void enter(struct cpu *cpu, int vector)
{
	struct state *state = &cpu->state;

	cpu->before_interrupt = *state;
	if (vector == ENTRY_SYSCALL || state->in_user)
		state->node = &root;
	state->below = state->node;
	state->in_user = false;
	state->interrupts = INTERRUPTS_OFF;
	if (samples_at(vector) && !state->is_sampler) {
		state->is_sampler = true;
		memset(&cpu->interrupt, 0, sizeof(cpu->interrupt));
	}
}

/* An iretq reads rip first. If no entry has saved a frame there, it returns to user mode. */
static void on_interrupt_return(unsigned int index, qemu_plugin_meminfo_t info, uint64_t addr,
				void *data)
{
	const struct frame *frame = frame_at(addr);
	struct cpu *cpu = &cpus[index];

	if (!is_last_access(cpu, !qemu_plugin_mem_is_store(info), LAST_IRET))
		return;
	if (frame->addr && frame->is_interrupt)
		cpu->returned_to = frame->state;
}

static void leave_by(struct cpu *cpu, enum last last)
{
	struct state *state = &cpu->state;

	if (last == LAST_CLI) {
		state->interrupts = INTERRUPTS_OFF;
	} else if (last == LAST_STI) {
		state->interrupts = INTERRUPTS_SHADOW;
		if (!args.samples_by_nmi)
			leave_sampler(cpu, true);
	} else if (last == LAST_IRET) {
		if (!cpu->returned_to.is_sampler)
			leave_sampler(cpu, false);
		*state = cpu->returned_to;
		if (state->interrupts == INTERRUPTS_SHADOW)
			state->interrupts = INTERRUPTS_ON;
		cpu->returned_to = user_state;
	} else if (last == LAST_SYSRET) {
		*state = user_state;
	} else if (state->interrupts == INTERRUPTS_SHADOW) {
		state->interrupts = INTERRUPTS_ON;
	}
}

static bool is_fault(int entry)
{
	return entry >= 0 && entry < NR_EXCEPTIONS && entry != VECTOR_DEBUG &&
	       entry != VECTOR_NMI && entry != VECTOR_BREAKPOINT && entry != VECTOR_OVERFLOW;
}

/* Adds to the stretch with interrupts off, or ends it. The idle loop does not count: it halts. */
static void stretch(struct cpu *cpu, bool is_off, uint64_t nr)
{
	struct node *last = cpu->stretch_node;

	if (is_off && cpu->node->function != idle_function) {
		cpu->nr_stretch += nr;
		cpu->stretch_node = cpu->node;
	} else if (cpu->nr_stretch) {
		if (cpu->nr_stretch > last->longest_off)
			last->longest_off = cpu->nr_stretch;
		cpu->nr_stretch = 0;
	}
}

static void charge(struct cpu *cpu, uint64_t nr)
{
	bool is_off = !cpu->state.in_user && cpu->state.interrupts != INTERRUPTS_ON;
	struct run *run = cpu->running;

	if (!in_window)
		return;
	if (cpu->state.is_sampler) {
		nr_sampler[run->function] += nr;
		cpu->interrupt.nr += nr;
		return;
	}
	cpu->node->nr += nr;
	cpu->nr[cpu->node->is_idle] += nr;
	stretch(cpu, is_off, nr);
	if (is_off) {
		cpu->nr_unseen += nr;
		cpu->nr_off[cpu->node->is_idle] += nr;
	} else {
		cpu->node->nr_seen += nr;
	}
	run->nr_by_length[nr]++;
	if (!is_off)
		run->nr_seen_by_length[nr]++;
}

/* Computes how much of the last run was executed. The next run may be of another CPU. */
static void measure_run(void)
{
	current->nr_executed = executed - executed_before;
	if (current->nr_executed > current->running->nr) {
		nr_odd_lengths++;
		current->nr_executed = current->running->nr;
	}
}

static void end_run(struct cpu *cpu, const struct run *next)
{
	bool faulted = is_fault(next->entry);
	uint64_t nr = cpu->nr_executed;

	if (nr && faulted) {
		nr_faulted++;
		nr--;
	}
	charge(cpu, nr);
	if (!faulted)
		leave_by(cpu,
			 cpu->nr_executed == cpu->running->nr ? cpu->running->last : LAST_OTHER);
}

/* Makes the run's function the innermost active one. */
static void activate(struct state *state, const struct run *run)
{
	struct node *node = state->node;

	if (node == state->below) { /* called, or entered */
		state->node = push(node, run->function, false);
	} else if (node->function != run->function && run->starts_function) {
		state->node = push(node, run->function, true);
	} else if (node->function != run->function) {
		/* A jump back to an outer function, for example from its cold part. */
		while (node != state->below && node->function != run->function)
			node = node->parent;
		if (node == state->below) {
			node = push(node, run->function, false);
			nr_odd_jumps++;
		}
		state->node = node;
	}
}

static void begin_window(void)
{
	clear_counts();
	waits_begin_window();
	in_window = true;
}

static void end_window(void)
{
	in_window = false;
	write_counts();
}

static void begin_run(unsigned int index, void *data)
{
	struct run *run = data;
	struct cpu *cpu;

	if (index >= MAX_CPUS)
		die("too many CPUs");
	cpu = &cpus[index];
	if (current)
		measure_run();
	executed_before = executed;
	if (cpu->running)
		end_run(cpu, run);
	else
		cpu->state = cpu->returned_to = user_state;
	current = cpu;

	if (run->entry != ENTRY_NONE)
		enter(cpu, run->entry);
	else if (run->function == user_function)
		cpu->state = user_state;
	else if (cpu->state.in_user) /* the CPU boots */
		cpu->state = (struct state){ .below = &root, .node = &root };
	if (run->starts_switch)
		waits_begin(cpu, &frame_at(cpu->last_call)->out, time_now());
	if (run->starts_thread)
		cpu->state.below = cpu->state.node = &root;
	activate(&cpu->state, run);

	cpu->running = run;
	cpu->node = cpu->state.node;
	cpu->awaits_access = true;
	cpu->interrupt.has_sampled |= run->starts_sample;
	cpu->interrupt.has_worked |= run->starts_work;
	if (cpu->nr_unseen && cpu->state.interrupts == INTERRUPTS_ON && !cpu->state.is_sampler) {
		cpu->node->nr_seen += cpu->nr_unseen;
		run->nr_seen_first += cpu->nr_unseen;
		cpu->nr_unseen = 0;
	}
	if (run->starts_function)
		cpu->node->nr_calls++;
	if (run->starts_window)
		begin_window();
	else if (run->stops_window && in_window)
		end_window();
}

/* Finds or makes the run of some instructions. Translating them again finds the same run. */
static struct run *find_run(const struct qemu_plugin_tb *tb, size_t start, size_t nr)
{
	struct instruction first = get_instruction(tb, start),
			   last = get_instruction(tb, start + nr - 1);
	struct run **slot = &runs[hash(first.addr, last.addr ^ nr << 32) % HASH_SLOTS], *run;
	bool is_user = first.addr < USER_END;
	enum last how = is_user ? LAST_OTHER : last_of(&last);

	/* Code may have been patched since then, so `last` is compared, too. */
	for (run = *slot; run; run = run->next) {
		if (run->nr == nr && run->addrs[0] == first.addr &&
		    run->addrs[nr - 1] == last.addr && run->last == how)
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
	run->last = how;
	run->starts_window = first.addr == args.start;
	run->stops_window = first.addr == args.stop;
	run->starts_thread = first.addr == args.thread;
	run->starts_sample = first.addr == args.sample;
	run->starts_work = is_work(first.addr);
	run->starts_function = is_start(first.addr);
	run->starts_switch = first.addr == args.switch_stack;
	run->is_switch = run->function == function_at(args.switch_stack);
	run->next = *slot;
	return *slot = run;
}

static void watch_memory(const struct instruction *insn)
{
	void (*fn)(unsigned int index, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data) =
		NULL;
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

/* Called last, so that begin_run() runs first if the same instruction begins a run. */
static void watch_clock(const struct qemu_plugin_tb *tb)
{
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct instruction insn = get_instruction(tb, i);
		intptr_t function = function_at(insn.addr);

		if (function != user_function && reads_clock(&insn))
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn.insn, on_clock_read, QEMU_PLUGIN_CB_NO_REGS, (void *)function);
	}
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
	watch_clock(tb);
}

int qemu_plugin_version = 1;

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv)
{
	truth_read_args(argc, argv);
	nr_sampler = must_alloc((nr_functions + 2) * sizeof(*nr_sampler));
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
