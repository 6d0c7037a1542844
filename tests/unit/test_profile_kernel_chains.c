// SPDX-License-Identifier: BSD-2-Clause
/* The kernel's memory by call chain: counters, sites, programs, and a table that is full. */

#include "unit.h"

#include "../../kernel/profile/memory/kernel_frees.h"
#include "../../kernel/profile/stack_store.h"

#include <profile/memory.h>

u64 host_page_bytes, host_kmalloc_bytes; /* the allocators' own counts */

static OS_DEFINE_PER_CPU(u64[2 * PROFILE_MEMORY_SIZES], objects);
static OS_DEFINE_PER_CPU(u64[2 * PROFILE_MEMORY_ORDERS], pages);
#define OWN PROFILE_MEMORY_OF_KERNEL
#define SITE(name, counts, first, nr)                                                   \
	static const struct profile_memory_site name pf_used pf_section("memory_sites") \
		pf_aligned(8) = { counts, "file.c", #name, 7, first, nr, OWN }
SITE(object_site, objects, 0, PROFILE_MEMORY_SIZES);
SITE(page_site, pages, PROFILE_MEMORY_CLASSES, PROFILE_MEMORY_ORDERS);

#define MEMORY_BYTES (16ul << 20)
static u32 nr_walks;

static void count_walk(void)
{
	nr_walks++;
}

/* The current task allocates in a chain of three functions. Returns the counter. */
static u64 *allocate(u64 *count, u64 caller)
{
	u64 callers[] = { caller, 0xffffffff81005000 };
	u64 *found = count;

	host_here =
		(struct pt_regs){ .pc = 0xffffffff81001000, .callers = callers, .nr_callers = 2 };
	profile_memory_find_counter(found);
	os_this_cpu_inc(*found);
	return found;
}

static void free_object(u64 *count, u32 nr_sizes)
{
	os_this_cpu_inc(count[nr_sizes]);
}

/* The current task frees in a function that has one to three callers. */
static void free_below(u64 *count, u32 nr_sizes, u64 caller, u32 nr_callers)
{
	u64 callers[] = { caller, 0xffffffff81005000, 0xffffffff81006000 };

	host_here = (struct pt_regs){ .pc = 0xffffffff81002000,
				      .callers = callers,
				      .nr_callers = nr_callers };
	free_object(count, nr_sizes);
	profile_memory_freed(count);
}

static void free_in(u64 *count, u32 nr_sizes, u64 caller)
{
	free_below(count, nr_sizes, caller, 3);
}

/* Returns how often a program has freed in a function what belongs to a counter. */
static u64 nr_freed(enum memory_kind kind, const u64 *count, const char *comm, u64 caller)
{
	const struct kernel_frees_view *view = &kernel_frees_view;
	u64 nr = 0;

	kernel_frees_make_view(kind);
	for (u32 i = 0; i < view->nr_rows; i++) {
		const struct kernel_free *by = view->rows[i].by;

		if ((const void *)by->count == count && by->pcs[1] == caller &&
		    !strcmp((const char *)by->comm, comm))
			nr += view->rows[i].nr;
	}
	return nr;
}

static const struct kernel_chain_row *row_of(enum memory_kind kind, const char *comm, u64 caller)
{
	kernel_chains_make_view(kind, false);
	for (u32 i = 0; i < kernel_chain_view.nr_rows; i++) {
		const struct kernel_chain_row *row = &kernel_chain_view.rows[i];

		if (row->chain && !strcmp((const char *)row->chain->comm, comm) &&
		    row->chain->pcs[1] == caller)
			return row;
	}
	return NULL;
}

static int begin(void **state)
{
	kernel_chains_switch(true);
	strcpy(host_comm, "program");
	host_irq_depth = 0;
	host_on_walk = count_walk;
	nr_walks = 0;
	return 0;
}

#define TEST(name) HOST_TEST_WITH(name, begin, NULL)

TEST(a_chain_has_a_counter)
{
	u64 *one = allocate(&objects[3], 0x1001), *again = allocate(&objects[3], 0x1001);
	u64 *other_caller = allocate(&objects[3], 0x1002),
	    *other_size = allocate(&objects[4], 0x1001);
	const struct kernel_chain_row *row;

	assert_ptr_equal(one, again);
	assert_int_equal(nr_walks, 3); /* the second one is compared only */
	assert_ptr_not_equal(one, other_caller);
	assert_ptr_not_equal(one, other_size);
	host_cpu = 1;
	free_object(one, PROFILE_MEMORY_SIZES);
	host_cpu = 0;
	row = row_of(MEMORY_KMALLOC, "program", 0x1002);
	assert_non_null(row);
	assert_int_equal(row->sums.nr_live, 1);
	assert_int_equal(row->chain->size, 3);
	assert_ptr_equal(row->chain->site, &object_site);
	assert_int_equal(memory_site_live_bytes(&object_site),
			 2 * memory_size_bytes(3) + memory_size_bytes(4));
	assert_int_equal(kernel_chain_view.all.live_bytes, memory_site_live_bytes(&object_site));
}

TEST(programs_and_interrupts_are_apart)
{
	u64 *one = allocate(&pages[2], 0x2001), *other, *in_interrupt;

	strcpy(host_comm, "other");
	other = allocate(&pages[2], 0x2001);
	host_irq_depth = 1;
	in_interrupt = allocate(&pages[2], 0x2001);
	assert_ptr_not_equal(one, other);
	assert_ptr_not_equal(other, in_interrupt);
	assert_int_equal(row_of(MEMORY_PAGES, "[interrupt]", 0x2001)->sums.live_bytes,
			 4 * OS_PAGE_BYTES);
	free_object(in_interrupt, PROFILE_MEMORY_ORDERS);
	assert_int_equal(row_of(MEMORY_PAGES, "[interrupt]", 0x2001)->sums.live_bytes, 0);
	assert_int_equal(row_of(MEMORY_PAGES, "other", 0x2001)->sums.nr_live, 1);
}

/* Memory that is allocated while it is off is counted in one row, and so are its frees. */
TEST(off_is_a_row)
{
	const struct kernel_chain_row *row = NULL;
	u64 *before;

	kernel_chains_switch(false);
	before = allocate(&objects[5], 0x3001);
	assert_ptr_equal(before, &objects[5]);
	kernel_chains_switch(true);
	kernel_chains_make_view(MEMORY_KMALLOC, false);
	for (u32 i = 0; i < kernel_chain_view.nr_rows; i++) {
		if (!kernel_chain_view.rows[i].chain)
			row = &kernel_chain_view.rows[i];
	}
	assert_non_null(row);
	assert_int_equal(row->sums.live_bytes, memory_size_bytes(5));
	free_object(before, PROFILE_MEMORY_SIZES);
	assert_int_equal(kernel_chains_read_lost(), 0);
}

TEST(growth_since_the_mark)
{
	u64 *count = allocate(&objects[6], 0x4001);

	memory_mark();
	kernel_chains_make_view(MEMORY_KERNEL, true);
	assert_int_equal(kernel_chain_view.nr_rows, 0);
	assert_ptr_equal(allocate(&objects[6], 0x4001), count);
	kernel_chains_make_view(MEMORY_KERNEL, true);
	assert_int_equal(kernel_chain_view.nr_rows, 1);
	assert_int_equal(kernel_chain_view.rows[0].sums.nr_live, 1);
	free_object(count, PROFILE_MEMORY_SIZES);
	kernel_chains_make_view(MEMORY_KERNEL, true);
	assert_int_equal(kernel_chain_view.nr_rows, 0);
}

/* A free counts for the function and program that frees, and for the chain that has allocated. */
TEST(who_frees)
{
	u64 *one = allocate(&objects[7], 0x6001), *other = allocate(&objects[7], 0x6002);
	struct kernel_count of;

	allocate(&objects[7], 0x6001);
	nr_walks = 0;
	free_in(one, PROFILE_MEMORY_SIZES, 0x6101);
	host_cpu = 1;
	strcpy(host_comm, "janitor");
	free_in(other, PROFILE_MEMORY_SIZES, 0x6101);
	host_cpu = 0;
	strcpy(host_comm, "program");
	assert_int_equal(nr_walks, 2);
	free_in(one, PROFILE_MEMORY_SIZES, 0x6101);
	assert_int_equal(nr_walks, 2); /* is compared only */
	assert_int_equal(nr_freed(MEMORY_KMALLOC, one, "program", 0x6101), 2);
	assert_int_equal(nr_freed(MEMORY_KMALLOC, other, "program", 0x6101), 0);
	assert_int_equal(nr_freed(MEMORY_KMALLOC, other, "janitor", 0x6101), 1);
	assert_int_equal(nr_freed(MEMORY_PAGES, other, "janitor", 0x6101), 0);
	of = kernel_chains_find_count((const void *)other);
	assert_ptr_equal(of.site, &object_site);
	assert_int_equal(of.chain->pcs[1], 0x6002);
	assert_int_equal(of.size, 7);
}

static u64 live_bytes_of(const struct process *proc)
{
	kernel_chains_make_view_of(stack_process_number((struct process *)proc));
	return kernel_chain_view.all.live_bytes;
}

/* Two processes of a program that is named have chains of their own, also under another name. */
TEST(leaks_of_a_process)
{
	static struct process procs[3] = { { .pid = 7, .comm = "server" },
					   { .pid = 8, .comm = "server" },
					   { .pid = 9, .comm = "client" } };
	static struct task tasks[3];
	struct task *before = host_current;
	u64 *counts[3];

	strcpy(kernel_chains_by_process, "x,serv*");
	for (u32 i = 0; i < 3; i++) {
		procs[i].profile.samples.key_floor = (i + 5) << 8;
		tasks[i].proc = &procs[i];
		host_tid = 20 + i; /* another task */
		host_current = &tasks[i];
		allocate(&pages[0], 0x6401);
		counts[i] = allocate(&pages[0], 0x6401);
	}
	host_current = before;
	host_tid = 1;
	kernel_chains_by_process[0] = '\0';
	assert_ptr_not_equal(counts[0], counts[1]);
	free_object(counts[1], PROFILE_MEMORY_ORDERS);
	assert_int_equal(live_bytes_of(&procs[0]), 2 * OS_PAGE_BYTES);
	assert_int_equal(live_bytes_of(&procs[1]), OS_PAGE_BYTES);
	assert_int_equal(live_bytes_of(&procs[2]), 0);
	assert_false(kernel_chains_lost_process);
}

/* The rows and what was freed while it was off are all that was freed. */
TEST(frees_add_up)
{
	const struct kernel_frees_view *view = &kernel_frees_view;
	u64 off, *count = allocate(&pages[3], 0x6201), *before;

	allocate(&pages[3], 0x6201);
	kernel_frees_make_view(MEMORY_PAGES);
	off = view->off.nr;
	kernel_chains_switch(false);
	before = allocate(&pages[1], 0x6201);
	free_in(count, PROFILE_MEMORY_ORDERS, 0x6301);
	kernel_frees_make_view(MEMORY_PAGES);
	assert_int_equal(view->off.nr, off + 1);
	kernel_chains_switch(true);
	host_irq_depth = 1;
	free_in(count, PROFILE_MEMORY_ORDERS, 0x6301);
	free_in(before, PROFILE_MEMORY_ORDERS, 0x6301);
	assert_int_equal(nr_freed(MEMORY_PAGES, count, "[interrupt]", 0x6301), 1);
	assert_int_equal(nr_freed(MEMORY_PAGES, before, "[interrupt]", 0x6301), 1);
	assert_int_equal(view->off.nr, off + 1);
	assert_ptr_equal(kernel_chains_find_count((const void *)before).site, &page_site);
	assert_null(kernel_chains_find_count((const void *)before).chain);
	assert_int_equal(kernel_chains_find_count((const void *)before).size,
			 PROFILE_MEMORY_CLASSES + 1);
}

/* Returns how often something was freed below this caller, with so many functions in all. */
static u64 nr_freed_among(const u64 *count, u64 caller, u32 nr_functions)
{
	const struct kernel_free *by;
	u64 nr, sum = 0;

	for (u32 i = 0; (by = kernel_frees_read(i, &nr)); i++) {
		if ((const void *)by->count == count && by->pcs[1] == caller &&
		    by->nr_pcs == nr_functions)
			sum += nr;
	}
	return sum;
}

/* Also with few functions below the entry code, which are not those of a longer chain. */
TEST(a_free_is_walked_once)
{
	u64 *count = allocate(&objects[6], 0x7101);

	for (u32 nr_callers = 1; nr_callers <= 3; nr_callers++) {
		nr_walks = 0;
		for (u32 i = 0; i < 10; i++)
			free_below(count, PROFILE_MEMORY_SIZES, 0x7201, nr_callers);
		assert_int_equal(nr_walks, 1);
		assert_int_equal(nr_freed_among(count, 0x7201, 1 + nr_callers), 10);
	}
}

/* A peak that is gone is known by chain, too. */
TEST(peak_of_a_chain)
{
	u64 *count;

	host_page_bytes = 1 << 20;
	memory_mark();
	count = allocate(&pages[8], 0x5001);
	profile_memory_note_peak(100000);
	free_object(count, PROFILE_MEMORY_ORDERS);
	assert_int_equal(row_of(MEMORY_PAGES, "program", 0x5001)->peak_bytes, OS_PAGE_BYTES << 8);
	assert_int_equal(row_of(MEMORY_PAGES, "program", 0x5001)->sums.live_bytes, 0);
}

/*
 * A small machine has room for few chains. What is left is for all programs together. Then
 * allocations are counted at their site.
 */
TEST(a_full_table_loses_no_byte)
{
	u64 live = memory_site_live_bytes(&object_site), nr = 0;
	u64 affordable = MEMORY_BYTES / 64 / sizeof(struct kernel_chain), room;
	static struct process late = { .comm = "late" };
	static struct task late_task = { .proc = &late };
	struct task *before = host_current;

	for (; nr < 2 * affordable; nr++)
		allocate(&objects[0], 0x100000 + nr);
	assert_int_equal(memory_site_live_bytes(&object_site) - live, nr * memory_size_bytes(0));
	kernel_chains_make_view(MEMORY_KMALLOC, false);
	assert_int_equal(kernel_chain_view.all.live_bytes, memory_site_live_bytes(&object_site));
	room = kernel_chain_view.nr_rows - 1;
	assert_in_range(room, affordable / 2, affordable);
	assert_in_range(kernel_chains_read_lost(), nr - room, nr - room + 100);
	assert_non_null(row_of(MEMORY_KMALLOC, "program", 0x100000));
	assert_non_null(row_of(MEMORY_KMALLOC, "[others]", 0x100000 + room * 9 / 10));
	assert_false(kernel_chains_lost_process);
	late.pid = 10;
	host_current = &late_task;
	strcpy(kernel_chains_by_process, "late");
	allocate(&objects[0], 0x90001);
	kernel_chains_by_process[0] = '\0';
	host_current = before;
	assert_true(kernel_chains_lost_process);
}

/* Frees without room are counted with their bytes, of chains and of sites. */
TEST(frees_without_room)
{
	const struct kernel_frees_view *view = &kernel_frees_view;
	u64 affordable = MEMORY_BYTES / 64 / sizeof(struct kernel_chain), rows, lost = 0, off;
	u64 *count = row_of(MEMORY_KMALLOC, "program", 0x100000)->chain->count;

	kernel_frees_make_view(MEMORY_KMALLOC);
	off = view->off.bytes;
	for (u64 i = 0; i < affordable; i++) {
		os_this_cpu_inc(objects[5]);
		os_this_cpu_inc(*count);
		free_in(i % 2 ? count : &objects[5], PROFILE_MEMORY_SIZES, 0x200000 + i);
	}
	kernel_frees_make_view(MEMORY_KMALLOC);
	rows = view->nr_rows;
	assert_in_range(rows, affordable * 9 / 10, affordable);
	assert_in_range(view->lost.nr, 1, affordable - 1);
	assert_int_equal(view->off.bytes, off);
	assert_int_equal(nr_freed(MEMORY_KMALLOC, &objects[5], "[others]",
				  0x200000 + affordable * 17 / 20 / 2 * 2),
			 1);
	lost = view->lost.bytes;
	os_this_cpu_inc(objects[5]);
	free_in(&objects[5], PROFILE_MEMORY_SIZES, 0x300000);
	kernel_frees_make_view(MEMORY_KMALLOC);
	assert_int_equal(view->lost.bytes - lost, memory_size_bytes(5));
	os_this_cpu_inc(*count);
	free_in(count, PROFILE_MEMORY_SIZES, 0x300000);
	kernel_frees_make_view(MEMORY_KMALLOC);
	assert_int_equal(view->lost.bytes - lost, memory_size_bytes(5) + memory_size_bytes(0));
	assert_int_equal(view->off.bytes, off);
}

int unit_tests_begin(void **state)
{
	host_memory_bytes = MEMORY_BYTES;
	return 0;
}
