// SPDX-License-Identifier: BSD-2-Clause
/* Reads the plugin's arguments, and decodes instructions. */
#include "truth.h"

#include "plugin_args.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STUB_BYTES 16
#define MAX_WORK   8

struct truth_args args;
int nr_functions, user_function, other_function, idle_function;

static uint64_t *functions; /* nr_functions addresses, and the end of the last function */
static uint64_t work[MAX_WORK];
static int nr_work;

void die(const char *what)
{
	fprintf(stderr, "truth: %s\n", what);
	exit(1);
}

void *must_alloc(size_t size)
{
	void *ptr = calloc(1, size);

	if (!ptr)
		die("no memory");
	return ptr;
}

int function_at(uint64_t addr)
{
	int low = 0, high = nr_functions;

	if (addr < USER_END)
		return user_function;
	if (addr < functions[0] || addr >= functions[nr_functions])
		return other_function;
	while (high - low > 1) {
		int middle = (low + high) / 2;

		*(functions[middle] <= addr ? &low : &high) = middle;
	}
	return low;
}

bool is_start(uint64_t addr)
{
	int function = function_at(addr);

	return function < nr_functions && functions[function] == addr;
}

bool is_work(uint64_t addr)
{
	for (int i = 0; i < nr_work; i++) {
		if (work[i] == addr)
			return true;
	}
	return false;
}

int entry_at(uint64_t addr)
{
	if (addr == args.syscall)
		return ENTRY_SYSCALL;
	if (addr == args.nmi)
		return VECTOR_NMI;
	if (addr >= args.stubs && addr < args.stubs + NR_VECTORS * STUB_BYTES &&
	    (addr - args.stubs) % STUB_BYTES == 0)
		return (addr - args.stubs) / STUB_BYTES;
	return ENTRY_NONE;
}

struct instruction get_instruction(const struct qemu_plugin_tb *tb, size_t i)
{
	struct instruction insn = { .insn = qemu_plugin_tb_get_insn(tb, i) };

	insn.addr = qemu_plugin_insn_vaddr(insn.insn);
	insn.bytes = qemu_plugin_insn_data(insn.insn);
	insn.size = qemu_plugin_insn_size(insn.insn);
	return insn;
}

static bool is_call(const uint8_t *b, size_t size)
{
	if (size > 1 && (*b & 0xf0) == 0x40)
		b++, size--;
	return *b == 0xe8 || (*b == 0xff && size > 1 && (b[1] >> 3 & 7) == 2);
}

enum last last_of(const struct instruction *insn)
{
	const uint8_t *b = insn->bytes;

	if (b[0] == 0xfa)
		return LAST_CLI;
	if (b[0] == 0xfb)
		return LAST_STI;
	if (b[0] == 0xc3 || b[0] == 0xc2 || (insn->size == 2 && b[0] == 0xf3 && b[1] == 0xc3))
		return LAST_RETURN;
	if (insn->size == 2 && b[0] == 0x48 && b[1] == 0xcf)
		return LAST_IRET;
	if (insn->size == 3 && b[0] == 0x48 && b[1] == 0x0f && b[2] == 0x07)
		return LAST_SYSRET;
	return is_call(b, insn->size) ? LAST_CALL : LAST_OTHER;
}

bool reads_clock(const struct instruction *insn)
{
	return insn->size == 2 && insn->bytes[0] == 0x0f && insn->bytes[1] == 0x31;
}

static void read_functions(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t size = 0;
	uint64_t addr;

	if (!file)
		die("cannot read the functions' addresses");
	while (fscanf(file, "%" SCNx64, &addr) == 1) {
		if ((size_t)nr_functions == size) {
			size = 2 * size + 1024;
			functions = realloc(functions, size * sizeof(*functions));
			if (!functions)
				die("no memory");
		}
		functions[nr_functions++] = addr;
	}
	fclose(file);
	if (nr_functions < 2)
		die("no functions");
	nr_functions--;
	user_function = nr_functions;
	other_function = nr_functions + 1;
}

static const struct plugin_number numbers[] = {
	{ "start", &args.start },   { "stop", &args.stop },	      { "stubs", &args.stubs },
	{ "nmi", &args.nmi },	    { "syscall", &args.syscall },     { "timer", &args.timer },
	{ "thread", &args.thread }, { "switch", &args.switch_stack }, { "idle", &args.idle },
	{ "sample", &args.sample }, { "schedule", &args.schedule },   { NULL, NULL },
};

static void read_argument(char *arg)
{
	const char *value = plugin_read_argument(arg, numbers);

	if (!strcmp(arg, "functions"))
		read_functions(value);
	else if (!strcmp(arg, "out"))
		args.out = strdup(value);
	else if (!strcmp(arg, "sampler"))
		args.samples_by_nmi = !strcmp(value, "nmi");
	else if (!strcmp(arg, "work") && nr_work < MAX_WORK)
		work[nr_work++] = strtoull(value, NULL, 0);
}

void truth_read_args(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		read_argument(argv[i]);
	if (!functions || !args.out || !args.start || !args.stop || !args.stubs || !args.syscall ||
	    !args.nmi || !args.thread || !args.switch_stack || !args.timer || !args.idle ||
	    !args.sample || !args.schedule || !nr_work)
		die("an argument is missing");
	idle_function = function_at(args.idle);
}
