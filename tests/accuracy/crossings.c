// SPDX-License-Identifier: BSD-2-Clause
/*
 * crossings.so: a QEMU plugin that counts instructions by what let the CPU cross into the kernel.
 * It follows the first instructions of entries, the returns, and the switches between threads, and
 * shares no definition with the kernel's accounts. For one CPU, under -icount.
 *
 * Arguments: addresses syscall=, stubs= (one of 16 bytes for each vector), nmi=, switch= (the
 * function that switches stacks) and mark= (a function); and out=, a file. At each call of the
 * function `mark`, the file gets a line: the number of switches between threads of different
 * owners; then for each owner its instructions so far, and how often it began.
 */
#include "plugin_api.h"
#include "plugin_args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NR_VECTORS    256
#define STUB_SIZE     16
#define PAGE_FAULT    14
#define NR_EXCEPTIONS 32
#define MAX_NESTED    16
#define MAX_THREADS   4096
#define SWITCH_BYTES  64 /* push %r15 and pop %r15 are within */

enum owner {
	USER,
	CALL,
	FAULT,
	EXCEPTION,
	IRQ,
	NMI,
	NR_OWNERS
};

PLUGIN_EXPORT int qemu_plugin_version = 1;

static uint64_t syscall_entry, entry_stubs, nmi_entry, switch_stack, mark;
static FILE *out;
static uint64_t nr_instructions[NR_OWNERS], nr_begun[NR_OWNERS], nr_switches;

/*
 * The owners that are interrupted, and the present one. An instruction that faults has not been
 * executed: it does not count if the code goes on with the same instruction.
 */
struct owners {
	struct level {
		enum owner owner;
		uint64_t fault_pc; /* of the instruction below that may have caused this fault */
		uint64_t again_pc; /* the same, when the fault has ended */
	} levels[MAX_NESTED];
	int depth;
};
static struct owners now;
static uint64_t last_pc;

/* Those of threads that do not run. */
static struct thread {
	uint64_t sp;
	struct owners owners;
} threads[MAX_THREADS];
static int nr_threads;
static bool switches_out, switches_in;

static void begin(enum owner owner)
{
	bool faults = owner == FAULT || owner == EXCEPTION;

	if (now.depth + 1 == MAX_NESTED)
		abort();
	now.levels[++now.depth] = (struct level){ owner, faults ? last_pc : 0, 0 };
	nr_begun[owner]++;
}

/* A new thread has entered the kernel by no entry. */
static enum owner owner_in_kernel(void)
{
	enum owner owner = now.levels[now.depth].owner;

	return owner == USER ? CALL : owner;
}

static void count(enum owner owner, uint64_t pc)
{
	struct level *level = &now.levels[now.depth];

	nr_instructions[owner] += pc != level->again_pc;
	level->again_pc = 0;
	last_pc = pc;
}

static enum owner owner_of_vector(uint64_t vector)
{
	if (vector >= NR_EXCEPTIONS)
		return IRQ;
	return vector == PAGE_FAULT ? FAULT : EXCEPTION;
}

static void write_counts(void)
{
	fprintf(out, "%llu", (unsigned long long)nr_switches);
	for (int i = 0; i < NR_OWNERS; i++)
		fprintf(out, " %llu %llu", (unsigned long long)nr_instructions[i],
			(unsigned long long)nr_begun[i]);
	fprintf(out, "\n");
	fflush(out);
}

static void user_instruction(unsigned int cpu, void *data)
{
	now.depth = 0;
	now.levels[0].owner = USER;
	count(USER, (uint64_t)data);
}

static void kernel_instruction(unsigned int cpu, void *data)
{
	uint64_t pc = (uint64_t)data;

	if (pc == syscall_entry)
		begin(CALL);
	else if (pc == nmi_entry)
		begin(NMI);
	else if (pc - entry_stubs < NR_VECTORS * STUB_SIZE && (pc - entry_stubs) % STUB_SIZE == 0)
		begin(owner_of_vector((pc - entry_stubs) / STUB_SIZE));
	else if (pc == mark)
		write_counts();
	count(owner_in_kernel(), pc);
}

/* The instruction itself belongs to what it ends. */
static void kernel_return(unsigned int cpu, void *data)
{
	kernel_instruction(cpu, data);
	if (!now.depth)
		return;
	if (now.levels[now.depth].fault_pc)
		now.levels[now.depth - 1].again_pc = now.levels[now.depth].fault_pc;
	now.depth--;
}

static struct thread *find_thread(uint64_t sp)
{
	int i = 0;

	while (i < nr_threads && threads[i].sp != sp)
		i++;
	return &threads[i];
}

/* The last push of a switch: remembers the owners of the thread that leaves the CPU. */
static void leave(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t sp, void *unused)
{
	struct thread *thread;

	if (!switches_out)
		return;
	switches_out = false;
	thread = find_thread(sp);
	if (thread == threads + nr_threads && ++nr_threads == MAX_THREADS)
		abort();
	*thread = (struct thread){ sp, now };
}

/* The first pop, from the stack of the next thread. */
static void arrive(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t sp, void *unused)
{
	enum owner before = owner_in_kernel();
	struct thread *thread;

	if (!switches_in)
		return;
	switches_in = false;
	thread = find_thread(sp);
	now = (struct owners){ 0 };
	if (thread < threads + nr_threads) {
		now = thread->owners;
		*thread = threads[--nr_threads];
	}
	nr_switches += before != owner_in_kernel();
}

/*
 * QEMU also calls the function of a memory access for accesses of later instructions, so these two
 * say that the right one comes.
 */
static void before_push(unsigned int cpu, void *unused)
{
	switches_out = true;
}

static void before_pop(unsigned int cpu, void *unused)
{
	switches_in = true;
}

/* code: two bytes, `push %r15` or `pop %r15` of switch_stack(). */
static void follow_switch(struct qemu_plugin_insn *insn, const uint8_t *code)
{
	bool pushes = code[0] == 0x41 && code[1] == 0x57, pops = code[0] == 0x41 && code[1] == 0x5f;

	if (!pushes && !pops)
		return;
	qemu_plugin_register_vcpu_insn_exec_cb(insn, pushes ? before_push : before_pop,
					       QEMU_PLUGIN_CB_NO_REGS, NULL);
	qemu_plugin_register_vcpu_mem_cb(insn, pushes ? leave : arrive, QEMU_PLUGIN_CB_NO_REGS,
					 QEMU_PLUGIN_MEM_RW, NULL);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const uint8_t *code = qemu_plugin_insn_data(insn);
		uint64_t pc = qemu_plugin_insn_vaddr(insn);
		bool iretq = qemu_plugin_insn_size(insn) == 2 && code[0] == 0x48 && code[1] == 0xcf;

		qemu_plugin_register_vcpu_insn_exec_cb(insn,
						       !(pc >> 63) ? user_instruction :
						       iretq	   ? kernel_return :
								     kernel_instruction,
						       QEMU_PLUGIN_CB_NO_REGS, (void *)pc);
		if (pc - switch_stack < SWITCH_BYTES && qemu_plugin_insn_size(insn) == 2)
			follow_switch(insn, code);
	}
}

static void read_argument(char *arg)
{
	static const struct plugin_number numbers[] = {
		{ "syscall", &syscall_entry }, { "stubs", &entry_stubs }, { "nmi", &nmi_entry },
		{ "switch", &switch_stack },   { "mark", &mark },	  { NULL, NULL },
	};
	const char *value = plugin_read_argument(arg, numbers);

	if (!strcmp(arg, "out"))
		out = fopen(value, "w");
}

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc,
				      char **argv)
{
	for (int i = 0; i < argc; i++)
		read_argument(argv[i]);
	if (!syscall_entry || !entry_stubs || !nmi_entry || !switch_stack || !mark || !out)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}
