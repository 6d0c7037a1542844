// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts the kernel's allocations by call chain. A chain has counters of its own, laid out like
 * those of a site. The allocator keeps the address of the counter with the memory, whichever it is,
 * so a free costs no more, and needs to know nothing of chains. A site's sum is that of its own
 * counters and of those of its chains (sites.c), so it stays exact.
 *
 * All CPUs share the chains: a hash table without locks leads to them. An entry is set once, and
 * never changes, because memory may belong to it. Each CPU has a cache of recent chains, and
 * compares the stack with the one that it finds, which is less work than a walk.
 *
 * If there are few chains left, new ones are those of all programs together, "[others]". Without
 * any left, an allocation is counted at its site alone.
 */

#include "kernel_chains.h"

#include "chain_table.h"
#include "kernel_frees.h"

#include "../os_stacks.h"
#include "../stack_store.h"
#include "../stack_switch.h"

#define KEY_WORDS	(__builtin_offsetof(struct kernel_chain, count) / sizeof(u64))
#define OBJECT_BLOCKS	(MEMORY_OBJECT_CHAINS / PROFILE_MEMORY_SIZES)
#define PAGE_BLOCKS	(MEMORY_PAGE_CHAINS / PROFILE_MEMORY_ORDERS)
#define LOG2_SLOTS	13
#define LOG2_RECENT	8
#define INTERRUPT_DEPTH 6 /* the interrupted code does not allocate */

/* As of a site: for each of some sizes how often it was allocated; then, how often freed. */
static OS_DEFINE_PER_CPU(u64[OBJECT_BLOCKS][2 * PROFILE_MEMORY_SIZES], object_counts);
static OS_DEFINE_PER_CPU(u64[PAGE_BLOCKS][2 * PROFILE_MEMORY_ORDERS], page_counts);

struct recent {
	u64 task_key; /* 0: in an interrupt */
	const struct kernel_chain *chain;
};

struct kernel_chains_cpu {
	u64 nr_lost;
	struct recent recent[PF_BIT(LOG2_RECENT)];
};
static OS_DEFINE_PER_CPU(struct kernel_chains_cpu, kernel_chains_cpus);

/* The chains of objects, and behind them those of pages. Their numbers are those of counters. */
static struct kernel_chain *chains;
static u32 max_object_chains, max_page_chains;
static u32 nr_object_chains, nr_page_chains; /* may exceed what there is */
static u32 first_of_site[MEMORY_MAX_SITES];  /* likewise */

char kernel_chains_by_process[64];
bool kernel_chains_lost_process;
os_key_t profile_kernel_chains_key;
struct profile_off_time kernel_chains_off_time;

static const struct profile_memory_site *site_of(const OS_PER_CPU(u64) * count)
{
	const struct profile_memory_site *site = __start_memory_sites;

	for (; site < __stop_memory_sites; site++) {
		if (count - site->counts >= 0 && count - site->counts < site->nr_sizes)
			return site;
	}
	return NULL;
}

static void init_chain(struct kernel_chain *chain, u32 i, bool of_pages)
{
	u32 nr_sizes = of_pages ? PROFILE_MEMORY_ORDERS : PROFILE_MEMORY_SIZES;
	u32 block = i / nr_sizes, at = i % nr_sizes;

	chain->count = of_pages ? (void *)&os_local(page_counts)[block][at] :
				  (void *)&os_local(object_counts)[block][at];
	chain->size = chain->site->first_size + (chain->site_count - chain->site->counts);
}

/* Returns the number of a new chain, a copy of the key, or 0 if none is left. */
static u32 make_chain(const void *key_)
{
	const struct kernel_chain *key = key_;
	const struct profile_memory_site *site = site_of(key->site_count);
	bool of_pages = site && memory_is_of_pages(site);
	struct kernel_chain *chain;
	u32 nr;

	if (!site || site - __start_memory_sites >= MEMORY_MAX_SITES)
		return 0;
	nr = of_pages ? chain_table_take(&nr_page_chains, max_page_chains) :
			chain_table_take(&nr_object_chains, max_object_chains);
	if (!nr)
		return 0;
	chain = &chains[(of_pages ? max_object_chains : 0) + nr - 1];
	memcpy(chain, key, KEY_WORDS * sizeof(u64));
	chain->site = site;
	init_chain(chain, nr - 1, of_pages);
	return chain - chains + 1;
}

/* Adds a chain to those of its site. Readers see it complete. */
static void add_to_site(u32 nr)
{
	struct kernel_chain *chain = &chains[nr - 1];
	u32 *first = &first_of_site[chain->site - __start_memory_sites];

	do
		chain->next_of_site = pf_read_once(*first);
	while (pf_cmpxchg(first, chain->next_of_site, nr) != chain->next_of_site);
}

static bool has_key(u32 nr, const void *key)
{
	return os_same_words((const u64 *)&chains[nr - 1], key, KEY_WORDS);
}

static struct chain_table chain_table = {
	.log2_slots = LOG2_SLOTS,
	.has_key = has_key,
	.make = make_chain,
	.added = add_to_site,
};

/* Returns the chain with this key; if there is none, adds it. NULL: no room. */
static const struct kernel_chain *look_up(const struct kernel_chain *key)
{
	u64 hash = 0;
	u32 nr;

	for (u32 i = 0; i < KEY_WORDS; i++)
		hash = profile_stack_hash(hash ^ hash >> 32, ((const u64 *)key)[i]);
	nr = chain_table_find(&chain_table, hash >> 32, key);
	return nr ? &chains[nr - 1] : NULL;
}

static bool chains_are_scarce(void)
{
	return pf_read_once(nr_object_chains) > max_object_chains * 3 / 4 ||
	       pf_read_once(nr_page_chains) > max_page_chains * 3 / 4;
}

void kernel_chains_set_comm(u64 comm[2], u64 task_key, bool are_scarce)
{
	if (are_scarce)
		memcpy(comm, "[others]\0\0\0\0\0\0\0", 2 * sizeof(*comm));
	else if (task_key)
		os_task_comm(os_current_task(), comm);
	else
		memcpy(comm, "[interrupt]\0\0\0\0", 2 * sizeof(*comm));
}

bool kernel_chains_are_by_process(os_process_t *proc)
{
	return kernel_chains_by_process[0] &&
	       os_glob_match_list(kernel_chains_by_process, os_process_name(proc));
}

/* Returns the number of the current process, if it has chains of its own, or 0. */
static u64 process_of(u64 task_key)
{
	os_process_t *proc;

	if (!task_key || !kernel_chains_by_process[0])
		return 0;
	proc = os_task_process(os_current_task());
	return proc && kernel_chains_are_by_process(proc) ? stack_process_number(proc) : 0;
}

/* Slow path: the recent chain does not match. Walks the stack and looks the chain up. */
static pf_noinline const struct kernel_chain *walk_allocation(const OS_PER_CPU(u64) * count,
							      u64 task_key, const os_regs_t *regs,
							      struct recent *recent)
{
	u32 depth = task_key ? KERNEL_CHAIN_DEPTH : INTERRUPT_DEPTH;
	struct kernel_chain key = { .site_count = count, .process = process_of(task_key) };
	const struct kernel_chain *chain;
	bool is_of_process = key.process;

	/* The user's part, if there was room for it, is left out. */
	key.nr_pcs = (u8)os_stack_walk(regs, key.pcs, depth).counts;
	memset(&key.pcs[key.nr_pcs], 0, (KERNEL_CHAIN_DEPTH - key.nr_pcs) * sizeof(key.pcs[0]));
	kernel_chains_set_comm(key.comm, task_key, chains_are_scarce());
	if (chains_are_scarce())
		key.process = 0;
	chain = look_up(&key);
	if (is_of_process && !(chain && chain->process))
		pf_write_once(kernel_chains_lost_process, true);
	if (chain)
		*recent = (struct recent){ task_key, chain };
	return chain;
}

pf_noinline u64 *profile_memory_find_chain(u64 *site_count)
{
	const OS_PER_CPU(u64) *count = (const void *)site_count;
	struct kernel_chains_cpu *c = os_this_cpu_ptr(&os_local(kernel_chains_cpus));
	u64 task_key = os_irq_depth() ? 0 : os_task_key(os_current_task()), hash;
	const struct kernel_chain *chain;
	struct recent *recent;
	os_regs_t regs;

	os_assert_irqs_off();
	os_regs_here(&regs);
	hash = profile_stack_hash(task_key + (u64)count, os_regs_sp(&regs) % 4096);
	recent = &c->recent[hash >> (64 - LOG2_RECENT)];
	chain = recent->chain;
	if (pf_likely(chain && recent->task_key == task_key && chain->site_count == count &&
		      chain->pcs[0] == os_regs_pc(&regs) &&
		      os_stack_matches_kernel(&regs, chain->pcs, chain->nr_pcs)))
		return (u64 *)chain->count;
	chain = walk_allocation(count, task_key, &regs, recent);
	if (chain)
		return (u64 *)chain->count;
	c->nr_lost++;
	return site_count;
}

/* The chains, without their peaks and rows, take at most a 64th of the machine's memory. */
void kernel_chains_init(void)
{
	u64 affordable = os_memory_bytes() / 64 / sizeof(*chains);
	u32 max = pf_min(affordable, (u64)MEMORY_CHAINS);
	u64 *peak_bytes = os_zalloc(max * sizeof(*peak_bytes));

	max_object_chains = max * MEMORY_OBJECT_CHAINS / MEMORY_CHAINS;
	max_page_chains = max - max_object_chains;
	chains = os_zalloc(max * sizeof(*chains));
	chain_table.slots = os_zalloc(PF_BIT(LOG2_SLOTS) * sizeof(u32));
	kernel_chain_view_init(max);
	kernel_frees_init(max);
	if (chains && chain_table.slots && peak_bytes) {
		memory_peak_keep_chains(peak_bytes, max);
		return;
	}
	os_printk("profile: no memory for the call chains of the kernel's memory\n");
	/* Without slots, all is counted at its site, and as lost. */
	os_free(peak_bytes);
	os_free(chains);
	os_free(chain_table.slots);
	chains = NULL;
	chain_table.slots = NULL;
}

/* Returns the chain to which one of these counters belongs, or NULL. first: that of chains[]. */
static const struct kernel_chain *chain_among(const OS_PER_CPU(u64) * count,
					      const OS_PER_CPU(u64) * counts, u32 nr_sizes,
					      u32 first, u32 max)
{
	s64 at = count - counts, i = at / (2 * nr_sizes) * nr_sizes + at % (2 * nr_sizes);

	return at >= 0 && i < max ? &chains[first + i] : NULL;
}

struct kernel_count kernel_chains_find_count(const OS_PER_CPU(u64) * count)
{
	const struct kernel_chain *chain = chain_among(count, (const void *)os_local(object_counts),
						       PROFILE_MEMORY_SIZES, 0, max_object_chains);
	const struct profile_memory_site *site;

	if (!chain)
		chain = chain_among(count, (const void *)os_local(page_counts),
				    PROFILE_MEMORY_ORDERS, max_object_chains, max_page_chains);
	if (chain)
		return (struct kernel_count){ chain->site, chain, chain->size };
	site = site_of(count);
	return (struct kernel_count){ site, NULL, site->first_size + (count - site->counts) };
}

u64 kernel_chains_read_lost(void)
{
	unsigned int cpu;
	u64 nr = 0;

	os_for_each_cpu(cpu)
		nr += pf_read_once(os_per_cpu(kernel_chains_cpus, cpu).nr_lost);
	return nr;
}

u32 kernel_chain_number(const struct kernel_chain *chain)
{
	return chain - chains;
}

struct memory_sums kernel_chain_sums(const struct kernel_chain *chain)
{
	return memory_sum_count(chain->count, chain->site->nr_sizes, chain->size);
}

struct kernel_chain *memory_next_chain(const struct profile_memory_site *site,
				       const struct kernel_chain *chain)
{
	u64 i = site - __start_memory_sites;
	u32 nr = chain		      ? chain->next_of_site :
		 i < MEMORY_MAX_SITES ? pf_load_acquire(&first_of_site[i]) :
					0;

	return nr ? &chains[nr - 1] : NULL;
}

u32 kernel_chain_size(const struct kernel_chain *chain)
{
	return chain->size;
}

void kernel_chains_mark(const struct profile_memory_site *site)
{
	struct kernel_chain *chain = NULL;

	while ((chain = memory_next_chain(site, chain)))
		chain->marked = kernel_chain_sums(chain);
}
