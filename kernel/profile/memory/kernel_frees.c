// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts who frees the kernel's memory, while its call chains are recorded: for each counter that
 * memory leads to, which code of which program has freed it. All CPUs share the rows, in a hash
 * table without locks, and each CPU has its own counts. A cache of recent rows leads there, and
 * three callers are compared with a row's, which is less work than a walk.
 *
 * If there are few rows left, new ones are those of all programs together, "[others]". Without any
 * left, a free is counted as lost, with its bytes.
 */

#include "kernel_frees.h"

#include "chain_table.h"

#include "../os_stacks.h"

#define KEY_WORDS   (sizeof(struct kernel_free) / sizeof(u64))
#define LOG2_SLOTS  13
#define LOG2_RECENT 8

struct recent_free {
	const OS_PER_CPU(u64) * count; /* NULL: no row */
	u64 task_key;		       /* 0: in an interrupt */
	u64 nr;			       /* of the row */
};

struct kernel_frees_cpu {
	struct {
		u64 nr, bytes;
	} lost[MEMORY_NR_KINDS];
	struct recent_free recent[PF_BIT(LOG2_RECENT)];
	u64 counts[]; /* of each row */
};
static OS_DEFINE_PER_CPU(struct kernel_frees_cpu *, frees_cpus);

static struct kernel_free *frees;
static u32 max_frees, nr_frees; /* the latter may exceed what there is */

/* Returns the number of a new row, from 1 on, a copy of the key; 0: none is left. */
static u32 make_free(const void *key)
{
	u32 nr = chain_table_take(&nr_frees, max_frees);

	if (nr)
		memcpy(&frees[nr - 1], key, sizeof(*frees));
	return nr;
}

static bool has_key(u32 nr, const void *key)
{
	return os_same_words((const u64 *)&frees[nr - 1], key, KEY_WORDS);
}

static struct chain_table free_table = {
	.log2_slots = LOG2_SLOTS,
	.has_key = has_key,
	.make = make_free,
};

static bool are_scarce(void)
{
	return pf_read_once(nr_frees) > max_frees * 3 / 4;
}

static pf_always_inline u64 key_of_task(void)
{
	return os_irq_depth() ? 0 : os_task_key(os_current_task());
}

static pf_always_inline struct recent_free *recent_of(struct kernel_frees_cpu *c,
						      const OS_PER_CPU(u64) * count, u64 task_key,
						      const os_regs_t *regs)
{
	u64 hash = profile_stack_hash(task_key + (u64)count, os_regs_sp(regs) % 4096);

	return &c->recent[hash >> (64 - LOG2_RECENT)];
}

/* Walks to the callers and looks the row up. */
static void walk_free(struct kernel_frees_cpu *c, const OS_PER_CPU(u64) * count,
		      const os_regs_t *regs)
{
	struct kernel_free key = { .count = count };
	u64 task_key = key_of_task(), hash = 0, nr;
	enum memory_kind kind;
	struct kernel_count of;

	key.nr_pcs = (u8)os_stack_walk(regs, key.pcs, KERNEL_FREE_DEPTH).counts;
	memset(&key.pcs[key.nr_pcs], 0, (KERNEL_FREE_DEPTH - key.nr_pcs) * sizeof(key.pcs[0]));
	kernel_chains_set_comm(key.comm, task_key, are_scarce());
	for (u32 i = 0; i < KEY_WORDS; i++)
		hash = profile_stack_hash(hash ^ hash >> 32, ((const u64 *)&key)[i]);
	nr = chain_table_find(&free_table, hash >> 32, &key);
	if (nr) {
		*recent_of(c, count, task_key, regs) =
			(struct recent_free){ count, task_key, nr - 1 };
		c->counts[nr - 1]++;
		return;
	}
	of = kernel_chains_find_count(count);
	kind = memory_is_of_pages(of.site) ? MEMORY_PAGES : MEMORY_KMALLOC;
	c->lost[kind].nr++;
	c->lost[kind].bytes += memory_size_bytes(of.size);
}

/*
 * Slow path: not all callers are those of the recent row. It may have fewer: then the stack has to
 * end where the row's does.
 */
static pf_noinline void count_slow(struct kernel_frees_cpu *c, const OS_PER_CPU(u64) * count,
				   const os_regs_t *regs)
{
	u64 task_key = key_of_task();
	const struct recent_free *recent = recent_of(c, count, task_key, regs);
	const struct kernel_free *row = &frees[recent->nr];

	if (recent->count == count && recent->task_key == task_key &&
	    row->nr_pcs < KERNEL_FREE_DEPTH && row->pcs[0] == os_regs_pc(regs) &&
	    os_stack_matches_kernel(regs, row->pcs, row->nr_pcs))
		c->counts[recent->nr]++;
	else
		walk_free(c, count, regs);
}

pf_noinline void profile_memory_note_free(u64 *count_)
{
	const OS_PER_CPU(u64) *count = (const void *)count_;
	struct kernel_frees_cpu *c = os_this_cpu_read(os_local(frees_cpus));
	u64 task_key = key_of_task();
	const struct recent_free *recent;
	os_regs_t regs, again;

	os_assert_irqs_off();
	if (pf_unlikely(!c))
		return;
	os_regs_here(&regs);
	recent = recent_of(c, count, task_key, &regs);
	if (pf_likely(recent->count == count && recent->task_key == task_key &&
		      os_stack_matches_callers(&regs, frees[recent->nr].pcs, KERNEL_FREE_DEPTH))) {
		c->counts[recent->nr]++;
		return;
	}
	os_regs_here(&again); /* in memory, so that the other ones need not be */
	count_slow(c, count, &again);
}

/* Returns false if there is no memory. */
static bool allocate(u32 max)
{
	struct kernel_frees_cpu *c;
	bool ok = true;
	u32 cpu;

	frees = os_zalloc(max * sizeof(*frees));
	free_table.slots = os_zalloc(PF_BIT(LOG2_SLOTS) * sizeof(u32));
	os_for_each_cpu(cpu) {
		c = os_zalloc(sizeof(*c) + max * sizeof(c->counts[0]));
		os_per_cpu(frees_cpus, cpu) = c;
		ok = ok && c;
	}
	return ok && frees && free_table.slots;
}

void kernel_frees_init(u32 max)
{
	u32 cpu;

	if (allocate(max) && kernel_frees_view_init(max)) {
		max_frees = max;
		return;
	}
	os_printk("profile: no memory for who frees the kernel's memory\n");
	os_free(frees);
	os_free(free_table.slots);
	os_for_each_cpu(cpu) {
		os_free(os_per_cpu(frees_cpus, cpu));
		os_per_cpu(frees_cpus, cpu) = NULL;
	}
}

const struct kernel_free *kernel_frees_read(u32 i, u64 *nr)
{
	u32 cpu;

	if (i >= pf_min(pf_load_acquire(&nr_frees), max_frees))
		return NULL;
	*nr = 0;
	os_for_each_cpu(cpu)
		*nr += pf_load_acquire(&os_per_cpu(frees_cpus, cpu)->counts[i]);
	return &frees[i];
}

void kernel_frees_read_lost(enum memory_kind kind, u64 *nr, u64 *bytes)
{
	u32 cpu;

	os_for_each_cpu(cpu) {
		const struct kernel_frees_cpu *c = os_per_cpu(frees_cpus, cpu);

		*nr += pf_load_acquire(&c->lost[kind].nr);
		*bytes += pf_read_once(c->lost[kind].bytes);
	}
}
