// SPDX-License-Identifier: BSD-2-Clause
/*
 * Merges the stacks of all CPUs: records that differ only in their task's numbers or their CPU
 * become one. The result is a hash table of pointers into the logs, at most half full. So its
 * memory depends on the number of records, not on their length.
 */

#include "samples.h"

/* Equal user addresses are in the same files if the code maps are equal. */
static u64 code_map_of(const struct sample_record *rec)
{
	return rec->nr_user ? rec->code_map : 0;
}

static bool same_stack(const struct sample_record *a, const struct sample_record *b)
{
	if (a->syscall != b->syscall || a->class != b->class || a->truncated != b->truncated ||
	    a->nr_kernel != b->nr_kernel || a->nr_user != b->nr_user || a->comm[0] != b->comm[0] ||
	    a->comm[1] != b->comm[1] || code_map_of(a) != code_map_of(b))
		return false;
	for (u32 i = 0; i < nr_pcs(a); i++) {
		if (a->pcs[i] != b->pcs[i])
			return false;
	}
	return true;
}

static u64 hash_stack(const struct sample_record *rec)
{
	u64 hash = code_map_of(rec) << 16 | rec->syscall;

	for (u32 i = 0; i < nr_pcs(rec); i++)
		hash = profile_stack_hash(hash ^ hash >> 32, rec->pcs[i]);
	return hash >> 32;
}

static void add_record(struct merged_stacks *merged, const struct sample_record *rec)
{
	for (u64 i = hash_stack(rec);; i++) {
		struct merged_stack *stack = &merged->stacks[i & (merged->nr_slots - 1)];

		if (!stack->rec) {
			os_assert(2 * merged->nr_stacks < merged->nr_slots);
			stack->rec = rec;
			stack->nr = rec->nr_pinned;
			merged->nr_stacks++;
			return;
		}
		if (same_stack(stack->rec, rec)) {
			stack->nr += rec->nr_pinned;
			return;
		}
	}
}

/* Sorts by samples, most first; equal numbers by content, so that two runs print the same. */
static int compare_stacks(const void *a_, const void *b_)
{
	const struct merged_stack *a = a_, *b = b_;
	u32 nr = pf_min(nr_pcs(a->rec), nr_pcs(b->rec));

	if (a->nr != b->nr)
		return compare_u64(b->nr, a->nr);
	for (u32 i = 0; i < nr; i++) {
		if (a->rec->pcs[i] != b->rec->pcs[i])
			return compare_u64(a->rec->pcs[i], b->rec->pcs[i]);
	}
	if (nr_pcs(a->rec) != nr_pcs(b->rec))
		return compare_u64(nr_pcs(a->rec), nr_pcs(b->rec));
	if (a->rec->syscall != b->rec->syscall)
		return compare_u64(a->rec->syscall, b->rec->syscall);
	if (a->rec->comm[0] != b->rec->comm[0])
		return compare_u64(a->rec->comm[0], b->rec->comm[0]);
	if (a->rec->comm[1] != b->rec->comm[1])
		return compare_u64(a->rec->comm[1], b->rec->comm[1]);
	return compare_u64(code_map_of(a->rec), code_map_of(b->rec));
}

static u32 count_records(void)
{
	unsigned int cpu;
	u32 nr = 0;

	os_for_each_cpu(cpu)
		nr += samples_stats(cpu)->nr_records;
	return nr;
}

int stacks_merge(struct merged_stacks *merged)
{
	u64 start = os_cycles();
	unsigned int cpu;
	u32 nr = 0;

	memset(merged, 0, sizeof(*merged));
	merged->nr_records = count_records();
	for (merged->nr_slots = 1; merged->nr_slots < 2 * merged->nr_records;)
		merged->nr_slots *= 2;
	merged->stacks = os_zalloc(merged->nr_slots * sizeof(*merged->stacks));
	if (!merged->stacks)
		return -OS_ENOMEM;
	os_for_each_cpu(cpu) {
		const struct sample_record *rec = NULL;

		while ((rec = samples_next(cpu, rec))) {
			if (rec->nr_pinned)
				add_record(merged, rec);
		}
	}
	for (u32 i = 0; i < merged->nr_slots; i++) {
		if (merged->stacks[i].rec)
			merged->stacks[nr++] = merged->stacks[i];
	}
	os_assert(nr == merged->nr_stacks);
	os_sort(merged->stacks, nr, sizeof(merged->stacks[0]), compare_stacks);
	merged->ns = os_cycles_to_ns(os_cycles() - start);
	return 0;
}

void stacks_free(struct merged_stacks *merged)
{
	os_free(merged->stacks);
	merged->stacks = NULL;
}

#define CHUNK_BYTES (64u << 10)

/* A chunk of records, one after the other, of at most CHUNK_BYTES together. */
struct stacks_chunk {
	struct stacks_chunk *next;
	u32 nr_bytes;
	u64 records[];
};

/* Returns memory for a record at the end of the copy, or NULL if there is none. */
static void *reserve(struct stacks_copy *copy, u32 nr_bytes)
{
	struct stacks_chunk *last = copy->last;

	if (!last || sizeof(*last) + last->nr_bytes + nr_bytes > CHUNK_BYTES) {
		last = os_alloc(CHUNK_BYTES);
		if (!last)
			return NULL;
		last->next = NULL;
		last->nr_bytes = 0;
		if (copy->last)
			copy->last->next = last;
		else
			copy->first = last;
		copy->last = last;
	}
	last->nr_bytes += nr_bytes;
	return (char *)last->records + last->nr_bytes - nr_bytes;
}

struct stacks_copy *stacks_copy(const struct merged_stacks *merged)
{
	struct stacks_copy *copy = os_zalloc(sizeof(*copy));

	for (u32 i = 0; copy && i < merged->nr_stacks; i++) {
		const struct merged_stack *stack = &merged->stacks[i];
		u32 nr_bytes = record_bytes(stack->rec);
		struct sample_record *rec = reserve(copy, nr_bytes);

		if (!rec) {
			stacks_copy_free(copy);
			return NULL;
		}
		memcpy(rec, stack->rec, nr_bytes);
		rec->nr_pinned = stack->nr;
	}
	return copy;
}

static void free_first(struct stacks_copy *copy)
{
	struct stacks_chunk *first = copy->first;

	copy->first = first->next;
	copy->at = 0;
	os_free(first);
}

const struct sample_record *stacks_copy_next(struct stacks_copy *copy)
{
	const struct sample_record *rec;

	if (copy->first && copy->at == copy->first->nr_bytes)
		free_first(copy);
	if (!copy->first)
		return NULL;
	rec = (const struct sample_record *)((char *)copy->first->records + copy->at);
	copy->at += record_bytes(rec);
	return rec;
}

void stacks_copy_free(void *copy_)
{
	struct stacks_copy *copy = copy_;

	while (copy->first)
		free_first(copy);
	user_symbols_free(&copy->symbols);
	os_free(copy);
}
