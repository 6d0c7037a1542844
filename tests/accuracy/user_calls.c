// SPDX-License-Identifier: BSD-2-Clause
/*
 * A TCG plugin that follows the calls of user code, to check the user's part of call chains: at
 * each sample it records the return addresses of all functions that are active in the current
 * thread. One CPU, and one process, because two could have stacks at the same addresses.
 *
 *   -plugin user_calls.so,out=FILE,sample=ADDR,switch=ADDR,thread=ADDR,handler=ADDR,sigreturn=ADDR,
 *           exit=ADDR[,lost=ADDR]
 *
 * A call stores its return address on the stack. The plugin keeps it as a frame, by the address of
 * this word; a return that reads the word ends the frame. Frames that no return ends, because of an
 * exception or longjmp(), end when code with a higher stack pointer calls or returns. Threads are
 * told apart by their kernel stacks, to which switch_stack() returns.
 *
 * The kernel calls a signal handler, so its frame has no known addresses: that of the trampoline
 * and that of the interrupted instruction. They are `*` in the output. Code at `lost` goes on with
 * another stack (Go's runtime.gogo). What is active there is known again after a return to a known
 * frame; the last word of such a chain is `?`.
 *
 * At the end of QEMU, the plugin writes a line for each chain: how many samples it had, and its
 * return addresses, innermost first.
 */
#include "plugin_api.h"
#include "plugin_args.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USER_END     (1ull << 47)
#define STACK_BYTES  (16u << 10) /* of a kernel stack; they are aligned */
#define FRAME_SLOTS  (1u << 20)
#define CHAIN_SLOTS  (1u << 18)
#define MAX_THREADS  1024
#define MAX_FUNCTION (1u << 20) /* bytes of stack from one frame to the next one */
#define MAX_DEPTH    1024

enum kind {
	FRAME_CALL,
	FRAME_HANDLER,
	FRAME_LOST
};

struct frame {
	uint64_t addr; /* of the return address; of handlers 0 */
	uint64_t to;   /* the return address; 0 when the frame has ended */
	struct frame *caller;
	enum kind kind;
	unsigned int nr_unknown; /* of a handler */
};

struct thread {
	uint64_t stack; /* the kernel's, as a number */
	struct frame *frame;
	bool has_user;
};

struct chain {
	struct chain *next;
	uint64_t nr;
	size_t depth;
	uint64_t to[];
};

static uint64_t sample, switch_stack, thread_entry, handler, sigreturn, exit_process, lost;
static const char *out;

static struct frame frames[FRAME_SLOTS];
static uint32_t nr_frames;
static struct frame lost_frame = { .kind = FRAME_LOST };
static struct chain *chains[CHAIN_SLOTS];
static struct thread threads[MAX_THREADS];
static struct thread *current = threads;
static unsigned int nr_threads = 1;
static const void *pending; /* the call or return that is executed now */

static void die(const char *what)
{
	fprintf(stderr, "user_calls: %s\n", what);
	exit(1);
}

static struct frame *frame_at(uint64_t addr)
{
	uint32_t slot = (addr * 0x9e3779b97f4a7c15ull >> 32) % FRAME_SLOTS;

	while (frames[slot].addr && frames[slot].addr != addr)
		slot = (slot + 1) % FRAME_SLOTS;
	return &frames[slot];
}

static bool is_near(const struct frame *frame, uint64_t sp)
{
	return sp - frame->addr + MAX_FUNCTION < 2 * MAX_FUNCTION;
}

/* Ends the frames at and below an address of the same stack. */
static void end_frames_to(uint64_t addr)
{
	struct frame *frame, *caller;

	for (frame = current->frame; frame; frame = caller) {
		caller = frame->caller;

		/* A handler is left by siglongjmp() if what it has interrupted is left. */
		if (frame->kind == FRAME_HANDLER &&
		    !(caller && caller->kind == FRAME_CALL && is_near(caller, addr) &&
		      caller->addr <= addr))
			return;
		if (frame->kind == FRAME_LOST ||
		    (frame->kind == FRAME_CALL && (!is_near(frame, addr) || frame->addr > addr)))
			return;
		frame->to = 0;
		current->frame = caller;
	}
}

static void on_call(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t addr, void *to)
{
	struct frame *frame = frame_at(addr);

	if (pending != to || !qemu_plugin_mem_is_store(info))
		return;
	pending = NULL;
	end_frames_to(addr);
	if (!frame->addr && ++nr_frames > FRAME_SLOTS / 2)
		die("too many frames");
	*frame = (struct frame){ .addr = addr, .to = (uintptr_t)to, .caller = current->frame };
	current->frame = frame;
}

static void on_return(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t addr, void *from)
{
	struct frame *frame = frame_at(addr);

	if (pending != from || qemu_plugin_mem_is_store(info))
		return;
	pending = NULL;
	if (frame->to) {
		current->frame = frame->caller;
		frame->to = 0;
		return;
	}
	end_frames_to(addr);
	if (current->frame && current->frame->kind == FRAME_HANDLER)
		current->frame->nr_unknown = 1; /* the trampoline is executed now */
	else if (current->frame && !is_near(current->frame, addr))
		current->frame = &lost_frame;
}

static void before_call_or_return(unsigned int cpu, void *insn)
{
	pending = insn;
}

static void begin_block(unsigned int cpu, void *is_user)
{
	pending = NULL;
	if (is_user)
		current->has_user = true;
}

static void on_lost(unsigned int cpu, void *unused)
{
	current->frame = &lost_frame;
}

static void on_switch(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t addr, void *insn)
{
	uint64_t stack = addr / STACK_BYTES;

	if (pending != insn)
		return;
	pending = NULL;
	for (current = threads; current < threads + nr_threads; current++) {
		if (current->stack == stack)
			return;
	}
	if (nr_threads++ == MAX_THREADS)
		die("too many threads");
	current->stack = stack;
}

static void on_thread(unsigned int cpu, void *unused)
{
	current->frame = NULL;
	current->has_user = false;
}

/* From here on, the thread has no user code to return to. */
static void on_exit_process(unsigned int cpu, void *unused)
{
	current->has_user = false;
}

static void on_handler(unsigned int cpu, void *unused)
{
	struct frame *frame = calloc(1, sizeof(*frame));

	if (!frame)
		die("no memory");
	*frame = (struct frame){ .caller = current->frame, .kind = FRAME_HANDLER, .nr_unknown = 2 };
	current->frame = frame;
}

static void on_sigreturn(unsigned int cpu, void *unused)
{
	struct frame *frame = current->frame;

	while (frame && frame->kind == FRAME_CALL)
		frame = frame->caller;
	if (frame && frame->kind == FRAME_HANDLER)
		current->frame = frame->caller;
}

static void on_sample(unsigned int cpu, void *unused)
{
	uint64_t to[MAX_DEPTH], hash = 0;
	struct chain **slot, *chain;
	size_t depth = 0;

	if (!current->has_user)
		return;
	for (const struct frame *f = current->frame; f && depth < MAX_DEPTH - 1; f = f->caller) {
		if (f->kind == FRAME_CALL)
			to[depth++] = f->to;
		else if (f->kind == FRAME_LOST)
			to[depth++] = 1;
		for (unsigned int i = 0; i < f->nr_unknown; i++)
			to[depth++] = 0;
	}
	for (size_t i = 0; i < depth; i++)
		hash = (hash ^ to[i]) * 0x9e3779b97f4a7c15ull;
	slot = &chains[hash >> 32 & (CHAIN_SLOTS - 1)];
	for (chain = *slot; chain; chain = chain->next) {
		if (chain->depth == depth && !memcmp(chain->to, to, depth * sizeof(*to)))
			break;
	}
	if (!chain) {
		chain = calloc(1, sizeof(*chain) + depth * sizeof(*to));
		if (!chain)
			die("no memory");
		chain->depth = depth;
		memcpy(chain->to, to, depth * sizeof(*to));
		chain->next = *slot;
		*slot = chain;
	}
	chain->nr++;
}

static void write_chains(qemu_plugin_id_t id, void *unused)
{
	FILE *file = fopen(out, "w");

	if (!file)
		die("cannot write the chains");
	for (size_t i = 0; i < CHAIN_SLOTS; i++) {
		for (const struct chain *chain = chains[i]; chain; chain = chain->next) {
			fprintf(file, "%" PRIu64, chain->nr);
			for (size_t n = 0; n < chain->depth; n++) {
				if (chain->to[n] > 1)
					fprintf(file, " %" PRIx64, chain->to[n]);
				else
					fputs(chain->to[n] ? " ?" : " *", file);
			}
			fputc('\n', file);
		}
	}
	fclose(file);
}

/* Skips the prefixes that compilers put before calls and returns. */
static const uint8_t *skip_prefixes(const uint8_t *code)
{
	while (*code == 0x3e || *code == 0x64 || *code == 0x67 || *code == 0xf2 || *code == 0xf3 ||
	       (*code & 0xf0) == 0x40)
		code++;
	return code;
}

static void watch_user(struct qemu_plugin_insn *insn)
{
	uint64_t pc = qemu_plugin_insn_vaddr(insn);
	const uint8_t *code = skip_prefixes(qemu_plugin_insn_data(insn));
	bool calls = code[0] == 0xe8 || (code[0] == 0xff && (code[1] >> 3 & 7) == 2);
	void *to = (void *)(uintptr_t)(pc + qemu_plugin_insn_size(insn));

	if (pc == lost)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_lost, QEMU_PLUGIN_CB_NO_REGS, NULL);
	if (!calls && code[0] != 0xc3 && code[0] != 0xc2)
		return;
	qemu_plugin_register_vcpu_insn_exec_cb(insn, before_call_or_return, QEMU_PLUGIN_CB_NO_REGS,
					       to);
	qemu_plugin_register_vcpu_mem_cb(insn, calls ? on_call : on_return, QEMU_PLUGIN_CB_NO_REGS,
					 QEMU_PLUGIN_MEM_RW, to);
}

static void watch_kernel(struct qemu_plugin_insn *insn)
{
	static bool is_in_switch;
	const uint8_t *code = qemu_plugin_insn_data(insn);
	uint64_t pc = qemu_plugin_insn_vaddr(insn);
	void (*fn)(unsigned int cpu, void *unused) = pc == sample	? on_sample :
						     pc == thread_entry ? on_thread :
						     pc == handler	? on_handler :
						     pc == sigreturn	? on_sigreturn :
						     pc == exit_process ? on_exit_process :
									  NULL;

	if (fn)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, fn, QEMU_PLUGIN_CB_NO_REGS, NULL);
	if (pc == switch_stack)
		is_in_switch = true;
	if (!is_in_switch || code[0] != 0xc3)
		return;
	is_in_switch = false;
	qemu_plugin_register_vcpu_insn_exec_cb(insn, before_call_or_return, QEMU_PLUGIN_CB_NO_REGS,
					       (void *)(uintptr_t)pc);
	qemu_plugin_register_vcpu_mem_cb(insn, on_switch, QEMU_PLUGIN_CB_NO_REGS,
					 QEMU_PLUGIN_MEM_RW, (void *)(uintptr_t)pc);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	bool is_user = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0)) < USER_END;

	qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, 0), begin_block,
					       QEMU_PLUGIN_CB_NO_REGS, is_user ? tb : NULL);
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++)
		(is_user ? watch_user : watch_kernel)(qemu_plugin_tb_get_insn(tb, i));
}

static void read_argument(char *arg)
{
	static const struct plugin_number numbers[] = {
		{ "sample", &sample },	     { "switch", &switch_stack },
		{ "thread", &thread_entry }, { "handler", &handler },
		{ "sigreturn", &sigreturn }, { "exit", &exit_process },
		{ "lost", &lost },	     { NULL, NULL },
	};
	const char *value = plugin_read_argument(arg, numbers);

	if (!strcmp(arg, "out"))
		out = strdup(value);
}

int qemu_plugin_version = 1;

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		read_argument(argv[i]);
	if (!out || !sample || !switch_stack || !thread_entry || !handler || !sigreturn ||
	    !exit_process)
		die("an argument is missing");
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_atexit_cb(id, write_chains, NULL);
	return 0;
}
