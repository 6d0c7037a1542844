// SPDX-License-Identifier: BSD-2-Clause
/*
 * The sums of the memory profiler are those of the allocators, to the byte, at any moment at which
 * no CPU is in an allocator: the tests stop all CPUs where their interrupts are on.
 */

#include "../../kernel/profile/memory/kernel_frees.h"
#include "../../kernel/profile/memory/memory.h"

#include <asm/processor.h>
#include <lego/page.h>
#include <lego/random.h>
#include <lego/selftest.h>
#include <lego/slab.h>
#include <lego/smp.h>

#include "busy.h"

#define NR_STOPS  100 /* fewer on a busy host, but at least MIN_STOPS */
#define MIN_STOPS 8
#define NR_SHARED 256 /* places from which any CPU frees what another one has allocated */
#define MAX_BUSY  8
#define TOO_LARGE ((PAGE_SIZE << MAX_PAGE_ORDER) + 1)

static struct memory_snapshot memory[MEMORY_NR_KINDS];
#ifdef CONFIG_PROFILE_MEMORY_CHAINS
/* The sums of the rows of call chains; all 0 if they were never on. */
static struct {
	u64 live_bytes, nr, allocator_bytes;
	u64 bytes_freed_while_off;
} chain_sums[MEMORY_NR_KINDS];
static bool is_negative; /* a row has freed more than it has allocated */

static void look_at_chains(enum memory_kind kind)
{
	const struct kernel_chain_view *view = &kernel_chain_view;

	kernel_chains_make_view(kind, false);
	memset(&chain_sums[kind], 0, sizeof(chain_sums[kind]));
	for (u32 i = 0; i < view->nr_rows; i++) {
		const struct memory_sums *sums = &view->rows[i].sums;

		chain_sums[kind].live_bytes += sums->live_bytes;
		chain_sums[kind].nr += sums->nr;
		is_negative |= (s64)sums->live_bytes < 0 || sums->nr_live > sums->nr;
	}
	chain_sums[kind].allocator_bytes = view->allocator_bytes;
	kernel_frees_make_view(kind);
	chain_sums[kind].bytes_freed_while_off = kernel_frees_view.off.bytes;
}

/* The rows of call chains have what those of sites have. */
static bool chains_agree(enum memory_kind kind)
{
	const struct memory_snapshot *snap = &memory[kind];

	if (!kernel_chain_view.rows)
		return true;
	return !is_negative && chain_sums[kind].nr == snap->all.nr &&
	       chain_sums[kind].live_bytes == snap->all.live_bytes &&
	       chain_sums[kind].allocator_bytes == snap->allocator_bytes;
}
#else
#define look_at_chains(kind) ((void)0)
#define chains_agree(kind)   true
#endif

/*
 * All CPUs but the caller's meet here, with interrupts off. The first one looks; the others wait
 * for it. The caller waits in smp_call_mask(): it does not allocate.
 */
struct stop {
	atomic_t nr_arrived;
	unsigned int nr_others;
	bool is_done;
};

static void look(void)
{
	for (enum memory_kind kind = 0; kind < MEMORY_NR_KINDS; kind++) {
		memory_snapshot(&memory[kind], kind);
		look_at_chains(kind);
	}
}

static void stop_and_look(void *arg)
{
	struct stop *stop = arg;

	if (atomic_add_return(&stop->nr_arrived, 1) > 1) {
		while (!smp_load_acquire(&stop->is_done)) /* pairs with the release below */
			cpu_relax();
		return;
	}
	while ((unsigned int)atomic_read(&stop->nr_arrived) < stop->nr_others)
		cpu_relax();
	look();
	smp_store_release(&stop->is_done, true); /* pairs with the acquire above */
}

/* Makes the snapshots at a moment at which no CPU allocates. Returns true if all sums agree. */
static bool sums_agree(void)
{
	struct stop stop = { .nr_others = nr_cpus - 1 };
	bool agree = true;

	if (nr_cpus == 1)
		look();
	else
		smp_call_mask(cpu_online_mask & ~BIT(smp_processor_id()), stop_and_look, &stop);
	for (enum memory_kind kind = 0; kind < MEMORY_NR_KINDS; kind++) {
		const struct memory_snapshot *snap = &memory[kind];
		u64 sites = 0, sizes = 0;

		for (u32 i = 0; i < snap->nr_rows; i++)
			sites += snap->rows[i].sums.live_bytes;
		for (u32 i = 0; i < PROFILE_MEMORY_SIZES; i++)
			sizes += snap->sizes[i].live_bytes;
		agree &= !snap->nr_not_shown && sites == sizes && sites == snap->all.live_bytes;
		agree &= sites == snap->allocator_bytes && chains_agree(kind);
	}
	return agree;
}

/* Returns the sums of the sites in a function. */
static struct memory_sums sums_of(enum memory_kind kind, const char *function)
{
	struct memory_sums sums = { 0 };

	sums_agree();
	for (u32 i = 0; i < memory[kind].nr_rows; i++) {
		const struct memory_row *row = &memory[kind].rows[i];

		if (strcmp(row->site->function, function))
			continue;
		sums.nr_live += row->sums.nr_live;
		sums.live_bytes += row->sums.live_bytes;
		sums.nr += row->sums.nr;
		sums.bytes += row->sums.bytes;
	}
	return sums;
}

static noinline void *allocate_here(size_t size)
{
	return kmalloc(size);
}

static noinline struct page *allocate_pages_here(unsigned int order)
{
	return page_alloc(order, 0);
}

/* Every class of sizes, at its first and its last byte, and blocks of pages. */
SELFTEST(memory, each_object_belongs_to_its_site)
{
	static const size_t sizes[] = { 0,    1,    16,	  17,	32,   48,   64,	  96,	128,
					192,  256,  384,  512,	513,  768,  1024, 1025, 1536,
					2048, 2049, 3072, 4000, 4096, 6144, 6145, 8192, 50000 };
	struct memory_sums before = sums_of(MEMORY_KMALLOC, "allocate_here"), held, after;
	u64 bytes = memory[MEMORY_KMALLOC].all.live_bytes;
	void *objects[4 * ARRAY_SIZE(sizes)];

	for (u32 i = 0; i < ARRAY_SIZE(objects); i++) {
		objects[i] = allocate_here(sizes[i % ARRAY_SIZE(sizes)]);
		ASSERT(objects[i]);
		memset(objects[i], 0xee, sizes[i % ARRAY_SIZE(sizes)]);
	}
	held = sums_of(MEMORY_KMALLOC, "allocate_here");
	EXPECT_EQ(held.nr_live - before.nr_live, ARRAY_SIZE(objects));
	EXPECT(held.live_bytes - before.live_bytes > 4 * 100000);
	for (u32 i = 0; i < ARRAY_SIZE(objects); i++)
		kfree(objects[i]);
	after = sums_of(MEMORY_KMALLOC, "allocate_here");
	EXPECT_EQ(after.live_bytes, before.live_bytes);
	EXPECT_EQ(after.nr_live, before.nr_live);
	EXPECT_EQ(after.nr - before.nr, ARRAY_SIZE(objects));
	EXPECT_EQ(after.bytes, held.bytes);
	EXPECT(bytes);
}

/* What a function has left behind since the mark is in a row; what it has freed is not. */
SELFTEST(memory, growth_since_the_mark)
{
	static struct memory_snapshot growth;
	void *before = allocate_here(100), *left;
	u64 nr_bytes = 0;

	ASSERT(before);
	memory_mark();
	kfree(before);
	left = allocate_here(7000);
	ASSERT(left);
	memory_growth(&growth, MEMORY_KMALLOC);
	for (u32 i = 0; i < growth.nr_rows; i++) {
		if (!strcmp(growth.rows[i].site->function, "allocate_here"))
			nr_bytes += growth.rows[i].sums.live_bytes;
	}
	EXPECT_EQ(nr_bytes, 8192 - 128);
	kfree(left);
}

/* A peak that is gone is known to within a 32nd of all memory in use, or 256 KiB. */
SELFTEST(memory, peak_that_is_gone)
{
	static struct memory_snapshot growth;
	u64 nr_bytes = 0, most = 4 * (PAGE_SIZE << MAX_PAGE_ORDER), step;
	struct page *pages[4];

	memory_mark();
	for (u32 i = 0; i < ARRAY_SIZE(pages); i++) {
		pages[i] = allocate_pages_here(MAX_PAGE_ORDER);
		ASSERT(pages[i]);
	}
	step = max((page_nr_total() - page_nr_free()) * PAGE_SIZE / 32, 256ULL << 10);
	for (u32 i = 0; i < ARRAY_SIZE(pages); i++)
		page_put(pages[i]);
	memory_growth(&growth, MEMORY_KERNEL);
	for (u32 i = 0; i < growth.nr_rows; i++) {
		if (!strcmp(growth.rows[i].site->function, "allocate_pages_here"))
			nr_bytes += growth.rows[i].peak_bytes;
	}
	EXPECT(nr_bytes <= most && nr_bytes + step >= most);
	memory_mark();
	memory_growth(&growth, MEMORY_KERNEL);
	EXPECT(growth.peak_bytes < 1 << 20);
}

SELFTEST(memory, pages_belong_to_their_site)
{
	struct memory_sums before = sums_of(MEMORY_PAGES, "allocate_pages_here"), held, after;
	struct page *pages[4];

	for (unsigned int order = 0; order < ARRAY_SIZE(pages); order++) {
		pages[order] = allocate_pages_here(order);
		ASSERT(pages[order]);
	}
	page_get(pages[0]);
	page_put(pages[0]); /* not the last reference */
	held = sums_of(MEMORY_PAGES, "allocate_pages_here");
	EXPECT_EQ(held.live_bytes - before.live_bytes, 15 * PAGE_SIZE);
	for (unsigned int order = 0; order < ARRAY_SIZE(pages); order++)
		page_put(pages[order]);
	after = sums_of(MEMORY_PAGES, "allocate_pages_here");
	EXPECT_EQ(after.live_bytes, before.live_bytes);
	EXPECT_EQ(after.nr - before.nr, ARRAY_SIZE(pages));
	EXPECT_EQ(after.bytes - before.bytes, 15 * PAGE_SIZE);
}

SELFTEST(memory, failures_are_not_counted)
{
	struct memory_sums objects = sums_of(MEMORY_KMALLOC, "allocate_here");
	struct memory_sums pages = sums_of(MEMORY_PAGES, "allocate_pages_here");

	EXPECT(!allocate_here(TOO_LARGE));
	EXPECT(!allocate_pages_here(MAX_PAGE_ORDER + 1));
	EXPECT_EQ(sums_of(MEMORY_KMALLOC, "allocate_here").nr, objects.nr);
	EXPECT_EQ(sums_of(MEMORY_PAGES, "allocate_pages_here").nr, pages.nr);
	EXPECT(sums_agree());
}

static void *shared_objects[NR_SHARED];
static struct page *shared_pages[NR_SHARED];

/* Replaces an object and a block of pages, of any size, that any CPU may have allocated. */
static void churn(void)
{
	size_t size;
	u64 random;

	random_bytes(&random, sizeof(random));
	size = random % 8 ? random >> 8 & 1023 : random >> 8 & 16383;
	kfree(xchg(&shared_objects[random >> 32 & (NR_SHARED - 1)], allocate_here(size)));
	if (random >> 40 & 7)
		return;
	struct page *page = xchg(&shared_pages[random >> 48 & (NR_SHARED - 1)],
				 allocate_pages_here(random >> 56 & 3));

	if (page)
		page_put(page);
	EXPECT(!allocate_here(TOO_LARGE));
}

static void free_shared(void)
{
	for (u32 i = 0; i < NR_SHARED; i++) {
		struct page *page = xchg(&shared_pages[i], NULL);

		kfree(xchg(&shared_objects[i], NULL));
		if (page)
			page_put(page);
	}
}

/*
 * The CPUs allocate and free each other's memory, and are stopped at random moments. between() is
 * called between two stops.
 */
static void stop_busy_cpus(void (*between)(u32 nr_stops))
{
	struct memory_sums before = sums_of(MEMORY_KMALLOC, "allocate_here"), after;
	u64 enough_ns = clock_monotonic_ns() + ENOUGH_NS;
	u32 nr_wrong = 0, nr_stops = 0;

	busy_start(cpu_online_mask & (BIT(MAX_BUSY) - 1), churn);
	while (nr_stops < MIN_STOPS || (nr_stops < NR_STOPS && clock_monotonic_ns() < enough_ns)) {
		nr_stops++;
		nr_wrong += !sums_agree();
		between(nr_stops);
		cond_resched();
	}
	busy_stop();
	EXPECT_EQ(nr_wrong, 0);
	free_shared();
	after = sums_of(MEMORY_KMALLOC, "allocate_here");
	EXPECT_EQ(after.live_bytes, before.live_bytes);
	EXPECT(after.nr > before.nr);
}

static void do_nothing(u32 nr_stops)
{
}

SELFTEST(memory, sums_equal_the_allocators)
{
	stop_busy_cpus(do_nothing);
}

/* Takes all pages but the last few, in blocks of falling orders. Then kmalloc fails, too. */
static void use_up_memory(void)
{
	LIST_HEAD(taken);
	struct page *page;

	for (unsigned int order = MAX_PAGE_ORDER + 1; order-- > 0;) {
		while ((page = allocate_pages_here(order)))
			list_add(&page->node, &taken);
	}
	EXPECT(sums_agree());
	EXPECT(!allocate_here(16 * PAGE_SIZE));
	EXPECT(sums_agree());
	while (!list_empty(&taken)) {
		page = list_first_entry(&taken, struct page, node);
		list_del(&page->node);
		page_put(page);
	}
	EXPECT(sums_agree());
}

SELFTEST(memory, sums_are_right_without_memory)
{
	use_up_memory();
}

#ifdef CONFIG_PROFILE_MEMORY_CHAINS
/* Switches chains off and on while CPUs allocate, and resets them. */
static void flip_chains(u32 nr_stops)
{
	if (nr_stops % 8 == 3)
		kernel_chains_switch(false);
	else if (nr_stops % 8 == 5)
		kernel_chains_switch(true);
	else if (nr_stops % 8 == 7)
		memory_mark();
}

SELFTEST(memory, chains_have_what_sites_have)
{
	void *before = allocate_here(7000);

	ASSERT(before);
	kernel_chains_switch(true);
	kfree(before);
	EXPECT(sums_agree());
	stop_busy_cpus(flip_chains);
	kernel_chains_switch(false);
	EXPECT(sums_agree());
}

/*
 * While it is on, no free is missing in the rows of who frees, whichever CPU has allocated, and the
 * rows of chains have what those of sites have.
 */
SELFTEST(memory, each_free_is_in_a_row)
{
	void *before = allocate_here(7000);
	u64 nr_bytes[MEMORY_NR_KINDS], nr_lost = kernel_chains_read_lost();

	ASSERT(before);
	kernel_chains_switch(true);
	EXPECT(sums_agree());
	for (enum memory_kind kind = 0; kind < MEMORY_NR_KINDS; kind++)
		nr_bytes[kind] = chain_sums[kind].bytes_freed_while_off;
	kfree(before);
	stop_busy_cpus(do_nothing);
	use_up_memory();
	EXPECT_EQ(kernel_chains_read_lost(), nr_lost);
	EXPECT(sums_agree());
	for (enum memory_kind kind = 0; kind < MEMORY_NR_KINDS; kind++)
		EXPECT_EQ(chain_sums[kind].bytes_freed_while_off, nr_bytes[kind]);
	kernel_chains_switch(false);
	before = allocate_here(7000);
	ASSERT(before);
	EXPECT(sums_agree());
	nr_bytes[MEMORY_KMALLOC] = chain_sums[MEMORY_KMALLOC].bytes_freed_while_off;
	kfree(before);
	EXPECT(sums_agree());
	EXPECT(chain_sums[MEMORY_KMALLOC].bytes_freed_while_off >= nr_bytes[MEMORY_KMALLOC] + 8192);
}

/* Returns the sums of the chains of a site's function that contain a caller. */
static struct memory_sums sums_of_caller(enum memory_kind kind, const char *function, void *caller)
{
	struct memory_sums sums = { 0 };

	kernel_chains_make_view(kind, false);
	for (u32 i = 0; i < kernel_chain_view.nr_rows; i++) {
		const struct kernel_chain_row *row = &kernel_chain_view.rows[i];

		for (u32 at = 0; row->chain && at < row->chain->nr_pcs; at++) {
			u64 start = 0;

			os_symbol_lookup(row->chain->pcs[at] - 1, &start, NULL, 0);
			if (start == (u64)caller && !strcmp(row->chain->site->function, function))
				memory_add_sums(&sums, &row->sums);
		}
	}
	return sums;
}

static noinline void *one_caller(size_t size)
{
	void *object = allocate_here(size);

	barrier(); /* prevents a tail call */
	return object;
}

static noinline void *other_caller(size_t size)
{
	void *object = allocate_here(size);

	barrier();
	return object;
}

/* Objects of one site are apart by the caller of its function. */
SELFTEST(memory, chains_tell_callers_apart)
{
	struct memory_sums one, other;
	void *objects[3];

	kernel_chains_switch(true);
	objects[0] = one_caller(100);
	objects[1] = one_caller(7000);
	objects[2] = other_caller(100);
	kfree(objects[0]);
	kernel_chains_switch(false);
	one = sums_of_caller(MEMORY_KMALLOC, "allocate_here", one_caller);
	other = sums_of_caller(MEMORY_KMALLOC, "allocate_here", other_caller);
	EXPECT_EQ(one.live_bytes, 8192);
	EXPECT_EQ(one.nr, 2);
	EXPECT_EQ(other.nr_live, 1);
	EXPECT_EQ(other.live_bytes, 128);
	kfree(objects[1]); /* is counted while they are off, too */
	kfree(objects[2]);
	EXPECT_EQ(sums_of_caller(MEMORY_KMALLOC, "allocate_here", one_caller).live_bytes, 0);
	EXPECT_EQ(sums_of_caller(MEMORY_KMALLOC, "allocate_here", other_caller).live_bytes, 0);
}

/* Returns how many objects that a function has allocated another one has freed. */
static u64 nr_freed_by(const char *allocator, void *freer)
{
	u64 nr = 0;

	kernel_frees_make_view(MEMORY_KMALLOC);
	for (u32 i = 0; i < kernel_frees_view.nr_rows; i++) {
		const struct kernel_free *by = kernel_frees_view.rows[i].by;
		struct kernel_count of = kernel_chains_find_count(by->count);
		u64 start = 0;

		os_symbol_lookup(by->pcs[2] - 1, &start, NULL, 0);
		if (start == (u64)freer && !strcmp(of.site->function, allocator))
			nr += kernel_frees_view.rows[i].nr;
	}
	return nr;
}

static noinline void free_here(void *object)
{
	kfree(object);
	barrier();
}

static noinline void free_there(void *object)
{
	kfree(object);
	barrier();
}

SELFTEST(memory, frees_tell_freers_apart)
{
	void *objects[4];

	objects[0] = allocate_here(100);
	kernel_chains_switch(true);
	for (u32 i = 1; i < ARRAY_SIZE(objects); i++)
		objects[i] = allocate_here(100 << i);
	for (u32 i = 0; i < ARRAY_SIZE(objects) - 1; i++)
		free_here(objects[i]);
	free_there(objects[3]);
	kernel_chains_switch(false);
	EXPECT_EQ(nr_freed_by("allocate_here", free_here), 3);
	EXPECT_EQ(nr_freed_by("allocate_here", free_there), 1);
	free_there(allocate_here(100)); /* is not counted */
	EXPECT_EQ(nr_freed_by("allocate_here", free_there), 1);
}
#endif
