// SPDX-License-Identifier: BSD-2-Clause
/*
 * Numbers of the user's call chains. Those of mapped memory are small enough that each mapping of a
 * page can keep one. So what is mapped is found by looking at the mappings, and unmapping a page
 * costs nothing. A chain here is a record without its process: a fork copies the mappings with
 * their numbers, and records of a CPU come and go, but a number is forever.
 */

#include "chains.h"

#include "../process_lists.h"
#include "chain_table.h"
#include "os.h"

#define CHAIN_BYTES   (1ul << 20)
#define LOG2_SLOTS    13
#define KEY_OFFSET    __builtin_offsetof(struct memory_record, comm)
#define PAGES_AT_ONCE 128

#define MAX_CHAINS (2 * OS_MAX_PAGE_CHAINS) /* behind those of mapped memory, all others */
_Static_assert(MAX_CHAINS <= 1 << LOG2_SLOTS, "there is a slot for each chain");

static char *records;
static u64 nr_bytes, used_bytes;	      /* used_bytes may exceed what there is */
static u32 offsets[MAX_CHAINS + 1];	      /* of the records, by number */
static u32 nr_mapped_chains, nr_other_chains; /* may exceed what there is */
static u64 nr_lost;

/* The rows of the latest read. The last one sums up pages that found no row of their own. */
#define MAX_MAPPED 2048
static struct memory_mapped mapped[MAX_MAPPED + 1];
static u16 slots[ROWS_SLOTS(MAX_MAPPED)];
static u32 nr_mapped;

static const struct memory_record no_chain = { .syscall = OS_NO_SYSCALL,
					       .kind = MEMORY_KIND_UNKNOWN };

static bool has_key(u32 nr, const void *key_)
{
	const struct memory_record *key = key_;
	u32 nr_words = (sizeof(*key) - KEY_OFFSET) / sizeof(u64) + key->nr_user;

	return os_same_words((const u64 *)((const char *)memory_page_chain(nr) + KEY_OFFSET),
			     (const u64 *)((const char *)key + KEY_OFFSET), nr_words);
}

static u32 make_chain(const void *key_)
{
	const struct memory_record *key = key_;
	u64 bytes = sizeof(*key) + key->nr_user * sizeof(u64), offset;
	bool is_mapped = os_memory_kind_is_mapped(key->kind);
	u32 *nr_chains = is_mapped ? &nr_mapped_chains : &nr_other_chains, nr;
	struct memory_record *new;

	if (pf_read_once(*nr_chains) + 1 >= OS_MAX_PAGE_CHAINS ||
	    pf_read_once(used_bytes) + bytes > nr_bytes)
		return 0;
	offset = __atomic_fetch_add(&used_bytes, bytes, __ATOMIC_RELAXED);
	nr = __atomic_add_fetch(nr_chains, 1, __ATOMIC_RELAXED);
	if (offset + bytes > nr_bytes || nr >= OS_MAX_PAGE_CHAINS)
		return 0;
	nr += is_mapped ? 0 : OS_MAX_PAGE_CHAINS;
	new = (void *)(records + offset);
	memcpy(new, key, bytes);
	new->nr = new->nr_at_end = new->process = 0;
	new->number = nr;
	offsets[nr] = offset;
	return nr;
}

static struct chain_table table = {
	.log2_slots = LOG2_SLOTS,
	.has_key = has_key,
	.make = make_chain,
};

void memory_page_chains_init(void)
{
	if (OS_MAX_PAGE_CHAINS == 1)
		return; /* no kernel that keeps them */
	nr_bytes = CHAIN_BYTES;
	while (nr_bytes > MEMORY_RECORD_BYTES && nr_bytes > os_memory_bytes() / 64)
		nr_bytes /= 2;
	records = os_zalloc(nr_bytes);
	table.slots = records ? os_zalloc(PF_BIT(LOG2_SLOTS) * sizeof(u32)) : NULL;
	if (!table.slots)
		os_printk("profile: no memory for the numbers of call chains of memory\n");
}

u32 memory_page_chain_number(const struct memory_record *rec)
{
	return chain_table_find(&table, rec->tag, rec);
}

void memory_page_chain_lost(void)
{
	__atomic_fetch_add(&nr_lost, 1, __ATOMIC_RELAXED);
}

const struct memory_record *memory_page_chain(u32 number)
{
	return number ? (const void *)(records + offsets[number]) : &no_chain;
}

u64 memory_page_chains_read_lost(void)
{
	return pf_read_once(nr_lost);
}

/* Reads the next pages. Returns false at the end. */
static bool visit_some(os_process_t *proc, u64 pass, u64 *addr, memory_pages_fn *visit)
{
	u16 numbers[PAGES_AT_ONCE];
	u32 nr = PAGES_AT_ONCE, end;

	if (!os_process_pages(proc, pass, addr, numbers, &nr))
		return false;
	for (u32 i = 0; i < nr; i = end) {
		for (end = i + 1; end < nr && numbers[end] == numbers[i]; end++)
			;
		visit(stack_process_number(proc), numbers[i], end - i);
	}
	return true;
}

void memory_page_chains_visit(os_process_t *proc, u64 pass, memory_pages_fn *visit)
{
	u64 addr = 0;

	while (visit_some(proc, pass, &addr, visit))
		;
}

/* Chains without room are those of no process, without a number. */
static void add_mapped(u64 process, u32 number, u64 nr_pages)
{
	const struct rows rows = {
		.rows = mapped,
		.slots = slots,
		.nr = &nr_mapped,
		.row_bytes = sizeof(mapped[0]),
		.key_words = 2,
		.max = MAX_MAPPED,
	};
	struct memory_mapped key = { process, number, 0 }, *row = rows_find(&rows, &key);

	row = row ? row : &mapped[MAX_MAPPED];
	row->nr += nr_pages;
}

/*
 * Releases the lock after each step. The walk stays at the process that is read: if it is removed
 * meanwhile, the walk is at the next one.
 */
static void add_all_mapped(u64 pass)
{
	bool locked;
	unsigned long flags = snapshot_lock(&lists_lock, &locked);
	const struct profile_process *reading = NULL;
	struct profile_walk walk = { 0 };
	u64 addr = 0;

	walk_begin(&walk, NULL);
	while (walk.process && walk.process->serial < walk.end_serial) {
		if (walk.process != reading)
			addr = 0;
		reading = walk.process;
		if (!visit_some(os_process_of(walk.process), pass, &addr, add_mapped))
			walk.process = reading->next;
		snapshot_unlock(&lists_lock, locked, flags);
		flags = snapshot_lock(&lists_lock, &locked);
	}
	walk_end(&walk);
	snapshot_unlock(&lists_lock, locked, flags);
}

const struct memory_mapped *memory_page_chains_read(os_process_t *proc, u32 *nr_rows)
{
	static u64 pass;

	pass++;
	nr_mapped = 0;
	memset(slots, 0, sizeof(slots));
	mapped[MAX_MAPPED] = (struct memory_mapped){ 0 };
	if (proc)
		memory_page_chains_visit(proc, pass, add_mapped);
	else
		add_all_mapped(pass);
	*nr_rows = nr_mapped;
	if (mapped[MAX_MAPPED].nr)
		mapped[(*nr_rows)++] = mapped[MAX_MAPPED];
	return mapped;
}
