// SPDX-License-Identifier: BSD-2-Clause
/* Touched memory by call chain: records, rows, notes, losses, and ended processes. */

#include "unit.h"

#include "../../kernel/profile/memory/chains.h"
#include "../../kernel/profile/table.h"
#include "../../kernel/profile/user_symbols.h"

#include <profile/memory.h>

enum {
	HEAP,
	STACKS,
	FILES,
};

/* What two processes have mapped: the numbers of chains. */
static struct pages {
	u16 chains[256];
	u32 nr;
} parent_pages, child_pages;

/* Functions have 256 bytes. The program's begin at 0x400000, the library's at 0x700000. */
#define OWN(i)	   (0x400000ull + (i)*256)
#define LIBRARY(i) (0x700000ull + (i)*256)

static struct process parent_proc = { .pid = 20, .comm = "parent" };
static struct process child_proc = { .pid = 21, .comm = "child" };
static struct task parent = { .proc = &parent_proc }, child = { .proc = &child_proc };
static struct pt_regs user = { .user = true };

static void find_name(u32 code_map, u64 addr, struct user_symbol *symbol)
{
	static char name[32];

	symbol->image = 1;
	symbol->in_library = addr >= LIBRARY(0);
	symbol->start = addr / 256 * 256;
	snprintf(name, sizeof(name), "%s_%d", symbol->in_library ? "lib" : "own",
		 (int)(addr / 256 % 16));
	symbol->name = name;
}

static const struct user_symbol_source names = { .find_code = find_name };

static void go_to(struct task *task)
{
	host_current = task;
	strcpy(host_comm, task->proc->comm);
	host_pid = host_tid = task->proc->pid;
}

static struct pages *pages_of(const struct process *proc)
{
	return proc == &child_proc ? &child_pages : &parent_pages;
}

/* One page at a time, to show that steps make a whole. */
bool host_process_pages(os_process_t *proc, u64 pass, u64 *addr, u16 *chains, u32 *nr)
{
	const struct pages *pages = pages_of(proc);

	if (*addr == pages->nr)
		return false;
	chains[0] = pages->chains[(*addr)++];
	*nr = 1;
	return true;
}

/* The current task touches pages in a chain of functions, innermost first. */
static void touch(u32 kind, bool is_copy, u32 nr, const u64 *chain, u32 depth)
{
	user.pc = chain[0];
	user.callers = chain + 1;
	user.nr_user_callers = depth - 1;
	host_user_regs = &user;
	for (u32 i = 0; i < nr; i++) {
		struct pages *pages = pages_of(host_current->proc);
		u16 chain = 0;

		profile_memory_mapped(kind, is_copy, &chain);
		if (os_memory_kind_is_mapped(kind) && pages->nr < PF_ARRAY_SIZE(pages->chains))
			pages->chains[pages->nr++] = chain;
	}
}

#define TOUCH(kind, is_copy, nr, ...)                          \
	touch(kind, is_copy, nr, (const u64[]){ __VA_ARGS__ }, \
	      sizeof((const u64[]){ __VA_ARGS__ }) / sizeof(u64))

static const struct memory_chain_row *view(struct process *proc)
{
	memory_chains_pin();
	memory_chains_make_view(&(struct report){ .proc = proc });
	memory_chains_unpin();
	return memory_chain_view.rows;
}

static u64 nr_lost(void)
{
	u64 nr_at_end;

	return memory_chains_read_lost(&nr_at_end);
}

static int setup(void **state)
{
	static bool ready;

	if (!ready) {
		profile_process_init(&parent_proc);
		profile_process_init(&child_proc);
		profile_init();
		/* The boot parameter and the first report: it was never on. */
		assert_null(strstr(host_file_read("profile/memory_chains"), "pages"));
		assert_int_equal(host_file_write("profile/memory_chains", "on\n"), 0);
	}
	ready = true;
	host_cpu = 0;
	host_syscall = OS_NO_SYSCALL;
	host_first_live_pid = 0;
	host_fail_alloc = 0;
	user_symbol_source = &names;
	go_to(&parent);
	parent_pages.nr = child_pages.nr = 0;
	profile_reset();
	host_log_clear();
	table_text_restart();
	return 0;
}

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

TEST(rows_are_by_kind_and_own_functions)
{
	const struct memory_chain_row *rows;

	TOUCH(HEAP, false, 5, LIBRARY(1) + 3, OWN(1) + 9, OWN(2) + 9, OWN(3) + 9);
	/* Other places of the same functions, and another function of the library. */
	TOUCH(HEAP, false, 3, LIBRARY(2) + 3, LIBRARY(1), OWN(1) + 80, OWN(2) + 10, OWN(4) + 1);
	TOUCH(STACKS, false, 4, OWN(1) + 9, OWN(2) + 9);
	TOUCH(HEAP, true, 2, LIBRARY(1) + 3, OWN(1) + 9, OWN(2) + 9);
	TOUCH(HEAP, false, 1, OWN(5));
	host_cpu = 1;
	TOUCH(HEAP, false, 10, OWN(1) + 30, OWN(2) + 20);
	rows = view(NULL);
	assert_int_equal(memory_chain_view.nr, 25);
	assert_int_equal(memory_chain_view.nr_rows, 4);
	assert_int_equal(rows[0].nr, 18);
	assert_int_equal(rows[0].nr_of_most, 10);
	assert_int_equal(rows[0].functions[0].start, OWN(1));
	assert_int_equal(rows[0].functions[1].start, OWN(2));
	assert_int_equal(rows[1].nr, 4);
	assert_int_equal(rows[1].kind, STACKS);
	assert_int_equal(rows[2].kind, HEAP | 1 << 8);
	assert_int_equal(rows[3].functions[0].start, OWN(5));
	assert_int_equal(rows[3].functions[1].image, 0);
}

/* A record is found again without a walk, but not taken for another chain at the same place. */
TEST(a_recent_record_is_compared)
{
	TOUCH(HEAP, false, 3, OWN(1) + 9, OWN(2) + 9);
	TOUCH(HEAP, false, 1, OWN(1) + 9, OWN(3) + 9);
	TOUCH(FILES, false, 1, OWN(1) + 9, OWN(2) + 9);
	host_syscall = 7;
	TOUCH(HEAP, false, 1, OWN(1) + 9, OWN(2) + 9);
	view(NULL);
	assert_int_equal(memory_chain_view.nr_rows, 3);
	assert_int_equal(memory_chain_view.rows[0].nr, 4); /* a system call's pages, too */
	assert_int_equal(memory_chain_view.nr, 6);
}

static u32 nr_walks;

static void count_walk(void)
{
	nr_walks++;
}

/* Processes of one program share its chains, not those of another program of the same code. */
TEST(processes_of_a_program_share_chains)
{
	TOUCH(HEAP, false, 3, OWN(1), OWN(2));
	go_to(&child);
	strcpy(host_comm, parent_proc.comm);
	host_on_walk = count_walk;
	nr_walks = 0;
	TOUCH(HEAP, false, 2, OWN(1), OWN(2));
	assert_int_equal(nr_walks, 0);
	assert_int_equal(view(&child_proc)->nr, 2);
	assert_int_equal(view(&parent_proc)->nr, 3);
	assert_int_equal(view(NULL)->nr, 5);
	strcpy(host_comm, child_proc.comm);
	TOUCH(HEAP, false, 1, OWN(1), OWN(2));
	assert_int_equal(nr_walks, 1);
	host_code_map++;
	host_program++;
	TOUCH(HEAP, false, 1, OWN(1), OWN(2));
	assert_int_equal(nr_walks, 2);
	host_code_map--;
	host_program--;
	host_on_walk = NULL;
	view(NULL);
	assert_int_equal(memory_chain_view.nr_rows, 2); /* two names */
	assert_int_equal(memory_chain_view.nr, 7);
}

TEST(rows_of_a_process)
{
	TOUCH(HEAP, false, 3, OWN(1));
	go_to(&child);
	TOUCH(HEAP, true, 2, OWN(1));
	assert_int_equal(view(&child_proc)->nr, 2);
	assert_int_equal(memory_chain_view.nr, 2);
	assert_int_equal(view(&parent_proc)->nr, 3);
	view(NULL);
	assert_int_equal(memory_chain_view.nr, 5);
	assert_int_equal(memory_chain_view.nr_rows, 2); /* names of threads are apart */
}

/* What is mapped is known by chain, also in a copy of the process, and when that has ended. */
TEST(live_pages)
{
	const struct memory_chain_row *row;

	TOUCH(HEAP, false, 5, OWN(1) + 9, OWN(2) + 9);
	TOUCH(STACKS, false, 1, OWN(3) + 9);
	parent_pages.chains[0] = parent_pages.chains[5]; /* instead of a heap page, a stack page */
	parent_pages.nr = 4;
	row = view(&parent_proc);
	assert_int_equal(memory_chain_view.nr, 6);
	assert_int_equal(memory_chain_view.nr_live, 4);
	assert_int_equal(row[0].nr_live, 3);
	assert_int_equal(row[1].nr_live, 1);
	child_pages = parent_pages; /* fork */
	row = view(&child_proc);
	assert_int_equal(row[0].nr, 0);
	assert_int_equal(row[0].nr_live, 3);
	assert_int_equal(row[0].functions[0].start, OWN(1));
	view(NULL);
	assert_int_equal(memory_chain_view.nr_live, 8);
	host_cpu = 1;
	go_to(&child);
	profile_memory_ends(&child_proc);
	child_pages.nr = 0;
	row = view(&child_proc);
	assert_int_equal(row[0].nr_live, 3);
	assert_int_equal(memory_chain_view.nr_live, 4);
	/* A reset forgets the ended process, and what was touched, but not what is mapped. */
	profile_reset();
	view(NULL);
	assert_int_equal(memory_chain_view.nr, 0);
	assert_int_equal(memory_chain_view.nr_live, 4);
	assert_non_null(strstr(host_file_read("profile/memory_stacks.json"),
			       "{\"cpu\":null,\"pages\":0,\"bytes\":0,\"live_pages\":3,"
			       "\"live_bytes\":12288,\"pid\":20,\"comm\":\"parent\","));
}

/* If no report is wanted, what ended processes had mapped is one sum. */
TEST(ended_without_a_report)
{
	TOUCH(HEAP, false, 2, OWN(1));
	assert_int_equal(on_exit_set(&on_exit_reports, "none"), 0);
	profile_memory_ends(&parent_proc);
	child_pages = parent_pages;
	profile_memory_ends(&child_proc);
	parent_pages.nr = child_pages.nr = 0;
	view(NULL);
	assert_int_equal(memory_chain_view.nr_live, 4);
	view(&parent_proc);
	assert_int_equal(memory_chain_view.nr, 2);
	assert_int_equal(memory_chain_view.nr_live, 0);
	assert_non_null(strstr(host_file_read("profile/memory_stacks.json"),
			       "\"live_pages\":4,\"live_bytes\":16384,\"pid\":0,"));
	/* An export of the process has its pages. */
	assert_int_equal(on_exit_set(&on_exit_exports, "parent"), 0);
	TOUCH(HEAP, false, 1, OWN(1));
	profile_memory_ends(&parent_proc);
	parent_pages.nr = 0;
	view(&parent_proc);
	assert_int_equal(memory_chain_view.nr_live, 1);
	assert_int_equal(on_exit_set(&on_exit_exports, "none"), 0);
	assert_int_equal(on_exit_set(&on_exit_reports, "all"), 0);
}

TEST(printed)
{
	const char *text;

	TOUCH(HEAP, false, 3, LIBRARY(1), OWN(1) + 9, OWN(2) + 9);
	host_syscall = 59;
	host_user_regs = &(const struct pt_regs){ 0 }; /* no user code yet */
	profile_memory_touched(STACKS, true);
	text = host_file_read("profile/memory_chains");
	assert_non_null(strstr(text, "Memory (all)\ntouched first by all processes: 4 pages\n"
				     "live, now or when their process ended: 3 pages\n"));
	assert_non_null(strstr(
		text, "         12288    75.00          3           12288  heap                 "
		      "parent           own_1 < own_2\n"));
	assert_non_null(strstr(text, "stacks, copied       parent           ["));
	text = host_file_read("profile/memory_stacks");
	assert_non_null(strstr(text, "parent;own_2;own_1;lib_1;[heap] 12288\n"));
	assert_non_null(strstr(text, "parent;[stacks,?copied] 4096\n"));
	text = host_file_read("profile/memory_stacks.json");
	assert_non_null(strstr(text, "{\"table\":\"Memory touched first\"}\n{\"cpu\":0,\"pages\":3,"
				     "\"bytes\":12288,\"live_pages\":0,\"live_bytes\":0,"
				     "\"pid\":20,\"comm\":\"parent\","
				     "\"kind\":\"heap\",\"copied\":0,\"syscall\":null,"));
	text = host_file_read("profile/memory_chains.json");
	assert_non_null(strstr(text, "{\"touched_bytes\":12288,\"pages\":3,\"live_bytes\":12288,"
				     "\"kind\":\"heap\","
				     "\"comm\":\"parent\",\"place\":\"own_1 < own_2\"}\n"));
}

/* Records have no room one day. Their pages are counted. */
TEST(losses_are_counted)
{
	u64 nr = 20000;

	for (u64 i = 0; i < nr; i++)
		TOUCH(HEAP, false, 1, OWN(1), OWN(2) + i * 256, OWN(3) + i * 256);
	view(NULL);
	assert_true(nr_lost() > 0);
	assert_int_equal(memory_chain_view.nr + nr_lost(), nr);
	assert_true(memory_chain_view.nr_dropped > 0);
	assert_non_null(strstr(host_file_read("profile/memory_chains"), "not in the store: "));
	profile_reset();
	TOUCH(HEAP, false, 1, OWN(1));
	view(NULL);
	assert_int_equal(memory_chain_view.nr, 1);
	assert_int_equal(nr_lost(), 0);
}

/* A long run: processes end, and what they touched stays, by program. */
TEST(ended_processes_are_summed_up)
{
	u64 nr = 0;

	for (u32 i = 0; i < 200; i++) {
		for (u64 j = 0; j < 100; j++, nr++)
			TOUCH(HEAP, false, 1, OWN(1), OWN(2) + j * 256);
		child_proc.pid = 100 + i;
		host_first_live_pid = 100 + i;
		go_to(i % 2 ? &child : &parent);
		stack_collect();
	}
	view(NULL);
	assert_int_equal(memory_chain_view.nr + nr_lost(), nr);
	assert_true(nr_lost() == 0);
	child_proc.pid = 21;
}

TEST(switched_off)
{
	TOUCH(HEAP, false, 2, OWN(1));
	assert_int_equal(host_file_write("profile/memory_chains", "maybe\n"), -EINVAL);
	assert_int_equal(host_file_write("profile/memory_chains", "off\n"), 0);
	TOUCH(HEAP, false, 2, OWN(1));
	host_now += 1000000000;
	assert_non_null(strstr(host_file_read("profile/memory_chains"),
			       "recording of touched memory is off since "));
	assert_int_equal(host_file_write("profile/memory_chains", "on\n"), 0);
	view(NULL);
	assert_int_equal(memory_chain_view.nr, 2);
	assert_int_equal(host_file_write("profile/memory_chains", "reset\n"), 0);
	TOUCH(HEAP, false, 1, OWN(1));
	view(NULL);
	assert_int_equal(memory_chain_view.nr, 1);
}

/* Pages without a number, as from before it was on, have a row of their own: sums are exact. */
TEST(live_pages_without_a_number)
{
	TOUCH(HEAP, false, 2, OWN(1));
	parent_pages.chains[parent_pages.nr++] = 0;
	for (u64 i = 0; i < 150; i++)
		TOUCH(HEAP, false, 1, OWN(1), OWN(2) + i * 256);
	view(&parent_proc);
	assert_int_equal(memory_chain_view.nr_live, 153);
	assert_true(memory_page_chains_read_lost() > 0);
	assert_non_null(strstr(host_file_read("profile/memory_chains"), "[unknown]\n"));
	assert_non_null(strstr(host_file_read("profile/memory_chains"), "no room for the numbers"));
}
