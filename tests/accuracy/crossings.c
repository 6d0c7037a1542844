// SPDX-License-Identifier: BSD-2-Clause
/*
 * crossings.so: a QEMU plugin that counts instructions by what let the CPU cross into the kernel.
 * It follows the first instructions of entries and the returns, and shares no definition with the
 * kernel's accounts. For one CPU, under -icount.
 *
 * Arguments: addresses syscall=, stubs= (one of 16 bytes for each vector), nmi=, and of two
 * functions start= and stop=; and out=, a file. Counts from a call of the first function to a call
 * of the second. The file has a line for each owner: its name, its instructions, and how often it
 * began.
 */
#include "plugin_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NR_VECTORS    256
#define STUB_SIZE     16
#define PAGE_FAULT    14
#define NR_EXCEPTIONS 32
#define MAX_NESTED    16

enum owner {
	USER,
	CALL,
	FAULT,
	EXCEPTION,
	IRQ,
	NMI,
	NR_OWNERS
};
static const char *const names[] = { "user", "call", "fault", "exception", "irq", "nmi" };

PLUGIN_EXPORT int qemu_plugin_version = 1;

static uint64_t syscall_entry, entry_stubs, nmi_entry, start, stop;
static char out_name[4096];
static uint64_t nr_instructions[NR_OWNERS], nr_begun[NR_OWNERS];
/* The owners that are interrupted, and the present one. */
static enum owner owners[MAX_NESTED];
static int depth;
static bool counts;

static void begin(enum owner owner)
{
	if (depth + 1 == MAX_NESTED)
		abort();
	owners[++depth] = owner;
	nr_begun[owner] += counts;
}

static enum owner owner_of_vector(uint64_t vector)
{
	if (vector >= NR_EXCEPTIONS)
		return IRQ;
	return vector == PAGE_FAULT ? FAULT : EXCEPTION;
}

static void write_counts(void)
{
	FILE *out = fopen(out_name, "w");

	if (!out)
		abort();
	for (int i = 0; i < NR_OWNERS; i++)
		fprintf(out, "%s %llu %llu\n", names[i], (unsigned long long)nr_instructions[i],
			(unsigned long long)nr_begun[i]);
	fclose(out);
}

static void user_instruction(unsigned int cpu, void *unused)
{
	depth = 0;
	owners[0] = USER;
	nr_instructions[USER] += counts;
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
	else if (pc == start)
		counts = true;
	else if (pc == stop && counts) {
		counts = false;
		write_counts();
	}
	/* A new thread has entered the kernel by no entry. */
	nr_instructions[owners[depth] == USER ? CALL : owners[depth]] += counts;
}

/* The instruction itself belongs to what it ends. */
static void kernel_return(unsigned int cpu, void *data)
{
	kernel_instruction(cpu, data);
	if (depth)
		depth--;
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
	}
}

static uint64_t number(const char *arg, const char *name)
{
	size_t len = strlen(name);

	return strncmp(arg, name, len) || arg[len] != '=' ? 0 : strtoull(arg + len + 1, NULL, 16);
}

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc,
				      char **argv)
{
	for (int i = 0; i < argc; i++) {
		syscall_entry = syscall_entry ?: number(argv[i], "syscall");
		entry_stubs = entry_stubs ?: number(argv[i], "stubs");
		nmi_entry = nmi_entry ?: number(argv[i], "nmi");
		start = start ?: number(argv[i], "start");
		stop = stop ?: number(argv[i], "stop");
		if (!strncmp(argv[i], "out=", 4))
			snprintf(out_name, sizeof(out_name), "%s", argv[i] + 4);
	}
	if (!syscall_entry || !entry_stubs || !nmi_entry || !start || !stop || !out_name[0])
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}
