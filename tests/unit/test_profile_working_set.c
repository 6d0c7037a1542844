// SPDX-License-Identifier: BSD-2-Clause
/* Used memory: regions that split and merge, working sets, the cost, and what is printed. */

#include "unit.h"

#include "../../kernel/profile/table.h"
#include "../../kernel/profile/working_set/working_set.h"

#define PAGE	 OS_PAGE_BYTES
#define NR_PAGES 16384 /* 64 MiB */
#define PLACE	 0x200000000000ull
#define AT(page) (PLACE + (page)*PAGE)
#define MS	 1000000ull

/* An address space: pages with their bits. */
struct host_mm {
	struct profile_user_range ranges[80];
	u32 nr_ranges;
	u8 present[NR_PAGES], use[NR_PAGES];
	bool marked[NR_PAGES];
	u64 physical; /* of the first page; the others follow */
};

static struct host_mm mm, other_mm;
static struct process proc = { .pid = 7, .comm = "hot;\n" };
static struct process other = { .pid = 8, .comm = "other" };
static struct task worker;
static u64 sample_takes_ns; /* how long each clearing of a bit takes */
static u32 nr_flushes, nr_other_cpus, nr_left;
static void (*program)(void);

os_mm_t *os_mm_get(struct process *of)
{
	return of == &proc ? &mm : of == &other && other_mm.nr_ranges ? &other_mm : NULL;
}

u32 os_mm_ranges(os_mm_t *of, struct profile_user_range *ranges, u32 max)
{
	u32 nr = of->nr_ranges < max ? of->nr_ranges : max;

	memcpy(ranges, of->ranges, nr * sizeof(*ranges));
	if (nr)
		ranges[nr - 1].end = of->ranges[of->nr_ranges - 1].end;
	return nr;
}

static u32 index_of(u64 addr)
{
	assert_in_range(addr, PLACE, AT(NR_PAGES));
	return (addr - PLACE) / PAGE;
}

u64 os_mm_count_pages(os_mm_t *of, u64 start, u64 end)
{
	u64 nr = 0;

	for (u32 i = index_of(start); i < index_of(end); i++)
		nr += of->present[i];
	return nr;
}

bool os_mm_clear_used(os_mm_t *of, u64 *addr, u64 end, bool *flush)
{
	host_now += sample_takes_ns;
	for (u32 i = index_of(*addr); i < index_of(end); i++) {
		if (!of->present[i])
			continue;
		*flush |= of->use[i] != PROFILE_PAGE_UNUSED;
		of->use[i] = PROFILE_PAGE_UNUSED;
		of->marked[i] = true;
		*addr = AT(i);
		return true;
	}
	return false;
}

u32 os_mm_use(os_mm_t *of, u64 addr)
{
	u32 i = index_of(addr);

	return of->marked[i] ? of->use[i] : PROFILE_PAGE_CHANGED;
}

u32 os_mm_physical(os_mm_t *of, u64 *addr, u64 end, u64 *pages, u32 max)
{
	u32 nr = 0;

	for (; nr < max && *addr < end; *addr += PAGE) {
		if (of->present[index_of(*addr)])
			pages[nr++] = of->physical + *addr - PLACE;
	}
	return nr;
}

#define MIB (1ull << 20)

/* 128 MiB with a hole, and two nodes. */
bool os_ram_next(u64 *start, u64 *end, u32 *node)
{
	static const struct {
		u64 start, end;
		u32 node;
	} ram[] = { { 0, 10 * MIB, 0 }, { 12 * MIB, 36 * MIB, 0 }, { 36 * MIB, 128 * MIB, 1 } };

	for (u32 i = 0; i < PF_ARRAY_SIZE(ram); i++) {
		if (ram[i].end <= *start)
			continue;
		*start = pf_max(*start, ram[i].start);
		*end = ram[i].end;
		*node = ram[i].node;
		return true;
	}
	return false;
}

u32 os_mm_flush(os_mm_t *of)
{
	nr_flushes++;
	host_now += nr_other_cpus * 1000;
	return nr_other_cpus;
}

/* The worker sleeps: the program runs. */
void os_sleep_ms(u32 ms)
{
	host_now += ms * MS;
	if (program)
		program();
	if (!--nr_left)
		assert_int_equal(host_file_write("profile/working_set", "off"), 0);
}

static void use(u32 from, u32 to, enum profile_page_use how)
{
	for (u32 i = from; i < to; i++)
		mm.use[i] = pf_max((u32)mm.use[i], (u32)how);
}

/* Switches it on, and off after so many samples. */
static void sample(u32 nr)
{
	nr_left = nr;
	assert_int_equal(host_file_write("profile/working_set", "on"), 0);
	host_run_workers();
}

static const struct working_set_view *view(void)
{
	static struct working_set_view copy;

	assert_true(working_set_copy(working_set_slot_at(0), &copy));
	for (u32 i = 0; i < copy.nr_rows; i++) {
		assert_true(copy.rows[i].start < copy.rows[i].end);
		if (i)
			assert_true(copy.rows[i - 1].end <= copy.rows[i].start);
	}
	return &copy;
}

static int setup(void **state)
{
	static bool ready;

	if (!ready) {
		profile_init();
		profile_process_init(&proc);
	}
	ready = true;
	host_current = &worker;
	memset(&mm, 0, sizeof(mm));
	memset(&other_mm, 0, sizeof(other_mm));
	memset(mm.present, 1, sizeof(mm.present));
	mm.physical = 64 * MIB;
	mm.ranges[0] = (struct profile_user_range){ AT(0), AT(NR_PAGES), 0 };
	mm.nr_ranges = 1;
	nr_flushes = 0;
	nr_other_cpus = 0;
	sample_takes_ns = 0;
	program = NULL;
	profile_reset();
	return 0;
}

static void use_eighth(void)
{
	use(4096, 6144, PROFILE_PAGE_WRITTEN);
	use(10240, 11264, PROFILE_PAGE_READ);
}

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

/* 8 MiB of 64 are written, and 4 are read. The first rows are those. */
TEST(hot_parts_are_found)
{
	const struct working_set_view *found;
	u64 hot = 0;

	program = use_eighth;
	sample(20 * 40 + 1);
	found = view();
	assert_int_equal(found->resident_pages, NR_PAGES);
	assert_in_range(found->short_pages, 3072, 3072 + 150);
	assert_in_range(found->long_pages, found->short_pages, 3072 + 900);
	for (u32 i = 0; i < found->nr_rows; i++) {
		const struct working_set_row *row = &found->rows[i];

		if (row->start >= AT(4096) && row->end <= AT(6144)) {
			assert_int_equal(row->accessed, REGIONS_WHOLE);
			assert_int_equal(row->written, REGIONS_WHOLE);
			hot += row->nr_pages;
		} else if (row->start >= AT(10240) && row->end <= AT(11264)) {
			assert_int_equal(row->accessed, REGIONS_WHOLE);
			assert_int_equal(row->written, 0);
			hot += row->nr_pages;
		} else if (row->end <= AT(4096) || row->start >= AT(11264)) {
			assert_int_equal(row->accessed, 0);
		}
	}
	assert_in_range(hot, 2900, 3072);
	assert_true(found->nr_rows <= REGIONS_MAX_SPLIT);
}

static void use_other(void)
{
	use(8192, 10240, PROFILE_PAGE_WRITTEN);
}

static u32 nr_runs; /* of the program; the end of a phase is in the middle of a period */

static void change_after_3_s(void)
{
	if (nr_runs++ < 608)
		use_eighth();
	else
		use_other();
}

/* What was used some seconds ago is in the working set of 10 s, not in that of one second. */
TEST(a_phase_ends)
{
	nr_runs = 0;
	program = change_after_3_s;
	sample(20 * 60 + 1); /* 6 s */
	assert_in_range(view()->short_pages, 2048, 2048 + 150);
	assert_in_range(view()->long_pages, 5120 - 600, 5120 + 900);
	nr_runs = 600;
	profile_reset();
	sample(20 * 60 + 1);
	assert_in_range(view()->long_pages, 2048, 2048 + 900);
}

TEST(nothing_is_used)
{
	sample(20 * 10 + 1);
	assert_int_equal(view()->short_pages, 0);
	assert_int_equal(view()->long_pages, 0);
	/* No bit is set, so no TLB has the pages. */
	assert_int_equal(nr_flushes, 0);
	assert_in_range(view()->nr_rows, REGIONS_MIN, REGIONS_MAX);
}

static u32 nr_touched;

static void touch_more(void)
{
	memset(mm.present + nr_touched, 1, 10);
	nr_touched += 10;
}

/* A program that only touches new pages uses those, though none is used twice. */
TEST(growth_is_use)
{
	memset(mm.present, 0, sizeof(mm.present));
	nr_touched = 100;
	memset(mm.present, 1, nr_touched);
	program = touch_more;
	sample(20 * 40 + 1);
	assert_true(view()->resident_pages > 7500);
	/* 2,000 pages a second; a region grows at one of its ends. */
	assert_in_range(view()->short_pages, 1800, 4000);
	assert_in_range(view()->long_pages, 6000, view()->resident_pages);
}

static void forget_marks(void)
{
	memset(mm.marked, 0, sizeof(mm.marked));
	use(0, NR_PAGES, PROFILE_PAGE_WRITTEN);
}

static u32 rounds_until_exec;

static void exec_later(void)
{
	if (!rounds_until_exec--)
		host_program++;
}

/* A program that has begun since the reset has touched all its pages; a child of fork() has not. */
TEST(first_touches_are_uses)
{
	static const struct {
		u32 program, rounds_until_exec;
		u64 age_ns, used;
	} cases[] = {
		{ 1, -1u, 0, NR_PAGES },
		{ 0, -1u, 0, 0 },		  /* no execve yet */
		{ 1, -1u, 1, 0 },		  /* began before the reset */
		{ 1, -1u, OS_NO_AGE, 0 },	  /* unknown */
		{ 1, 30, OS_NO_AGE, NR_PAGES },	  /* an execve between two samples */
		{ 1, 30, 100000 * MS, NR_PAGES }, /* of an old process */
	};

	for (u32 i = 0; i < PF_ARRAY_SIZE(cases); i++) {
		setup(NULL);
		host_program = cases[i].program;
		host_age_ns = cases[i].age_ns;
		rounds_until_exec = cases[i].rounds_until_exec;
		program = exec_later;
		sample(20 * 5 + 1);
		assert_int_equal(view()->long_pages, cases[i].used);
		assert_int_equal(view()->short_pages, cases[i].used);
	}
	host_program = 0;
	host_age_ns = 0;
}

/* A page whose entry was written anew, as by fork, is not used. It is told. */
TEST(changed_pages_do_not_count)
{
	struct working_set_cost cost;

	program = forget_marks;
	sample(20 * 3 + 1);
	assert_int_equal(view()->long_pages, 0);
	working_set_read_cost(&cost);
	assert_true(cost.nr_changed > 20 * 3);
	assert_non_null(strstr(host_file_read("profile/working_set"), "samples do not tell"));
}

/* The time on the CPU, and that of other CPUs that flush their TLBs, is at most 1 %. */
TEST(cost_is_bounded)
{
	struct working_set_cost cost;

	for (u32 cpus = 0; cpus < 8; cpus += 7) {
		setup(NULL);
		program = use_eighth;
		sample_takes_ns = 20000;
		nr_other_cpus = cpus;
		sample(20 * 20 + 1);
		working_set_read_cost(&cost);
		assert_true(cost.cycles > 0);
		assert_true(cost.cycles * 100 <= cost.elapsed_cycles * 101 / 100);
		assert_true(cost.elapsed_cycles > cost.nr_rounds * 10 * MS);
		assert_true(cost.nr_samples > cost.nr_rounds);
	}
}

/* Areas come and go; more of them than there are regions are still covered. */
TEST(areas_change)
{
	static struct regions r;
	struct profile_user_range ranges[REGIONS_MAX + 30];
	u64 bytes;

	r.nr = 0;
	for (u32 round = 0; round < 1000; round++) {
		u32 nr = regions_random(REGIONS_MAX + 30), at = 0;

		for (u32 i = 0; i < nr; i++) {
			at += regions_random(20);
			ranges[i].start = AT(at);
			at += 1 + regions_random(60);
			ranges[i].end = AT(at);
			ranges[i].kind = regions_random(3);
		}
		regions_set_ranges(&r, ranges, nr);
		for (u32 i = 0; i < r.nr; i++) {
			struct region *region = &r.all[i];

			region->sample = region->start;
			region_add_sample(region, regions_random(3), 1 + round * MS);
			region_set_pages(region, (region->end - region->start) / PAGE, round * MS,
					 !round);
		}
		regions_end_period(&r);
		regions_merge(&r, round * MS);
		bytes = 0;
		for (u32 i = 0; i < r.nr; i++) {
			assert_true(r.all[i].start < r.all[i].end);
			assert_true(!i || r.all[i - 1].end <= r.all[i].start);
			bytes += r.all[i].end - r.all[i].start;
		}
		assert_true(bytes >= r.bytes);
		if (nr) {
			assert_int_equal(r.all[0].start, ranges[0].start);
			assert_int_equal(r.all[r.nr - 1].end, ranges[nr - 1].end);
		}
		regions_split(&r, round * MS, NULL, NULL);
		assert_true(r.nr <= REGIONS_MAX);
	}
}

/* Blocks of RAM: at most 16 of one size, and one more at a hole and where a node ends. */
static const struct working_set_memory *known_memory(void)
{
	static struct working_set_memory copy;
	u64 nr_pages = 0;

	assert_true(working_set_copy_memory(&copy));
	assert_int_equal(copy.nr_blocks, 18);
	for (u32 i = 0; i < copy.nr_blocks; i++) {
		const struct working_set_block *block = &copy.blocks[i];

		nr_pages += block->nr_pages;
		assert_int_equal(block->node, block->start >= 36 * MIB);
		assert_true(!i || copy.blocks[i - 1].end <= block->start);
	}
	assert_int_equal(nr_pages, 126 * MIB / PAGE);
	assert_true(copy.has_nodes);
	return &copy;
}

static u64 pages_in(const struct working_set_memory *memory, u64 start, u64 end,
		    enum working_set_level from)
{
	u64 nr = 0;

	for (u32 i = 0; i < memory->nr_blocks; i++) {
		const struct working_set_block *block = &memory->blocks[i];

		if (block->start < start || block->end > end)
			continue;
		for (u32 level = from; level < WORKING_SET_LEVELS; level++)
			nr += block->nr[level];
	}
	return nr;
}

static u64 rest_from;

static void use_and_rest(void)
{
	if (host_now < rest_from)
		use_eighth();
}

/* Used pages are counted in the block of RAM that they are in. */
TEST(physical_memory)
{
	const struct working_set_memory *memory;

	program = use_eighth;
	sample(20 * 40 + 1);
	memory = known_memory();
	assert_true(host_now - memory->ns <= 1100 * MS);
	assert_int_equal(memory->nr_outside, 0);
	assert_int_equal(pages_in(memory, 0, 64 * MIB, WORKING_SET_RESIDENT), 0);
	assert_int_equal(pages_in(memory, 64 * MIB, 128 * MIB, WORKING_SET_RESIDENT), NR_PAGES);
	/* Pages 4096 to 6143 are the third block of eight. */
	assert_in_range(pages_in(memory, 80 * MIB, 88 * MIB, WORKING_SET_USED_SHORT), 2020, 2048);
	assert_in_range(pages_in(memory, 64 * MIB, 128 * MIB, WORKING_SET_USED_SHORT), 3040, 3200);
	/* Not in the last second: it rests. */
	rest_from = host_now + 4000 * MS;
	program = use_and_rest;
	sample(20 * 80 + 1);
	memory = known_memory();
	assert_int_equal(pages_in(memory, 64 * MIB, 128 * MIB, WORKING_SET_USED_SHORT), 0);
	assert_in_range(pages_in(memory, 80 * MIB, 88 * MIB, WORKING_SET_USED_LONG), 2020, 2048);
	profile_reset();
	assert_false(working_set_copy_memory(&(struct working_set_memory){ 0 }));
}

/* A page of two processes counts once, as the one that uses it has it. Others are not in RAM. */
TEST(shared_pages_count_once)
{
	const struct working_set_memory *memory;

	profile_process_init(&other);
	other_mm = mm;
	other_mm.physical = mm.physical - 60 * MIB; /* 4 to 68 MiB: 4 MiB are shared */
	program = use_eighth;
	sample(20 * 40 + 1);
	memory = known_memory();
	assert_int_equal(memory->nr_outside, 2 * MIB / PAGE);
	assert_int_equal(pages_in(memory, 0, 128 * MIB, WORKING_SET_RESIDENT),
			 2 * NR_PAGES - 6 * MIB / PAGE);
	assert_in_range(pages_in(memory, 80 * MIB, 88 * MIB, WORKING_SET_USED_SHORT), 2020, 2048);
	assert_true(
		strstr(host_file_read("profile/working_set"), "node 0, with 34.0 MiB: programs"));
	profile_process_release(&other);
}

/* History: at most so many moments, in order, from the first period to the last. */
TEST(history_covers_all_times)
{
	static struct working_set_moment moment;
	u64 last = 0, first = 0;
	u32 n;

	program = use_eighth;
	sample(20 * 300 + 1);
	for (n = 0; working_set_copy_moment(working_set_slot_at(0), n, &moment); n++) {
		assert_true(moment.ns > last);
		first = first ?: moment.ns;
		last = moment.ns;
	}
	assert_in_range(n, WORKING_SET_MOMENTS / 2, WORKING_SET_MOMENTS);
	assert_true(view()->ns - last < 300 * 100 * MS / (WORKING_SET_MOMENTS / 2) + 200 * MS);
	assert_true(last - first > 27000 * MS);
}

TEST(text_and_json)
{
	const char *text;

	program = use_eighth;
	sample(20 * 40 + 1);
	host_now += 1000 * MS;
	text = host_file_read("profile/working_set");
	assert_non_null(strstr(text, "hot;? (pid 7) has used "));
	assert_non_null(strstr(text, " of its 64.0 MiB in the last 10 s, "));
	assert_non_null(strstr(text, "region is sampled every 5.0 ms, which takes "));
	assert_non_null(strstr(text, " of a CPU; "));
	fprintf(stderr, "%s", text);
	assert_non_null(strstr(text, "sampling of used memory is off since "));
	text = host_file_read("profile/working_set.json");
	assert_non_null(strstr(text, "{\"pid\":7,\"program\":\"hot;?\",\"used_1s_bytes\":"));
	assert_non_null(strstr(text, ",\"resident_bytes\":67108864,"));
	text = host_file_read("profile/working_set_regions.json");
	assert_non_null(strstr(text, "\"accessed_hundredths\":"));
	text = host_file_read("profile/working_set_history.json");
	assert_non_null(strstr(text, "\"accessed_percent\":100,\"written_percent\":100}"));
	profile_reset();
	assert_non_null(strstr(host_file_read("profile/working_set"), "no process was sampled"));
	assert_int_equal(host_file_write("profile/working_set", "maybe"), -EINVAL);
}

/* A process that has ended keeps its slot. */
TEST(ended_process)
{
	program = use_eighth;
	sample(20 * 3 + 1);
	profile_process_exit(&proc);
	profile_process_release(&proc);
	assert_non_null(strstr(host_file_read("profile/working_set"), "(pid 7) has used"));
	sample(5);
	assert_null(strstr(host_file_read("profile/working_set"), "(pid 7) has used"));
}
