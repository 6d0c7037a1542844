// SPDX-License-Identifier: BSD-2-Clause
/*
 * A TCG plugin that notes which pages user code loads from and stores to, to check the profiler of
 * used memory (kernel/profile/working_set/). One CPU, and one process.
 *
 *   -plugin pages.so,out=FILE,start=ADDR,end=ADDR,period=ADDR,sample=ADDR
 *
 * The pages are those of [start, end). Functions of the kernel divide the time: `period` is called
 * at the beginning of a period, and `sample` at each sample. At each call of `sample` the plugin
 * writes a line: `period` if a period begins with this sample, else `sample`, and each range of
 * pages that were used since the sample before, as `<first> <number> <use>`. The use is 1 if the
 * pages were loaded from only, else 2.
 */
#include "plugin_api.h"
#include "plugin_args.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USER_END   (1ull << 47)
#define PAGE_BYTES 4096
#define MAX_PAGES  (1u << 16)

static uint64_t start, end, period, sample;
static FILE *out;
static uint8_t uses[MAX_PAGES];
static bool begins_period;

static void die(const char *what)
{
	fprintf(stderr, "pages: %s\n", what);
	exit(1);
}

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t addr, void *unused)
{
	uint8_t use = qemu_plugin_mem_is_store(info) ? 2 : 1, *page;

	if (addr < start || addr >= end)
		return;
	page = &uses[(addr - start) / PAGE_BYTES];
	if (*page < use)
		*page = use;
}

static void on_period(unsigned int cpu, void *unused)
{
	begins_period = true;
}

static void on_sample(unsigned int cpu, void *unused)
{
	uint32_t nr_pages = (end - start) / PAGE_BYTES, next;

	fputs(begins_period ? "period" : "sample", out);
	for (uint32_t i = 0; i < nr_pages; i = next) {
		for (next = i + 1; next < nr_pages && uses[next] == uses[i];)
			next++;
		if (uses[i])
			fprintf(out, " %" PRIu32 " %" PRIu32 " %u", i, next - i, uses[i]);
	}
	fputc('\n', out);
	memset(uses, 0, sizeof(uses));
	begins_period = false;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t pc = qemu_plugin_insn_vaddr(insn);

		if (pc < USER_END)
			qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_RW, NULL);
		if (pc == period || pc == sample)
			qemu_plugin_register_vcpu_insn_exec_cb(insn,
							       pc == period ? on_period : on_sample,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
}

static void close_out(qemu_plugin_id_t id, void *unused)
{
	if (fclose(out))
		die("cannot write the pages");
}

static void read_argument(char *arg)
{
	static const struct plugin_number numbers[] = {
		{ "start", &start },   { "end", &end }, { "period", &period },
		{ "sample", &sample }, { NULL, NULL },
	};
	const char *value = plugin_read_argument(arg, numbers);

	if (!strcmp(arg, "out"))
		out = fopen(value, "w");
}

int qemu_plugin_version = 1;

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		read_argument(argv[i]);
	if (!out || !period || !sample || start >= end || (end - start) / PAGE_BYTES > MAX_PAGES)
		die("an argument is missing or wrong");
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_atexit_cb(id, close_out, NULL);
	return 0;
}
