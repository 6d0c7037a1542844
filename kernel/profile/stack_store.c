// SPDX-License-Identifier: BSD-2-Clause
/*
 * Allocates a store of call chains, and pins it for a reader. Its CPU writes to it with the inline
 * functions of stack_store.h, which describes the store.
 */

#include "stack_store.h"

#define WAIT_TRIES 1000000 /* how often to look whether another CPU has ended its change */
#define ALL_BYTES  0xffffffffu

/* Sets log last, because a store with a log must be complete. */
static bool alloc_store(struct stack_store *s, u64 bytes)
{
	u64 nr_slots = 1;
	char *log;

	while (nr_slots * 2 * STACK_STORE_BYTES_A_SLOT <= bytes)
		nr_slots *= 2;
	s->hash = os_zalloc(nr_slots * sizeof(*s->hash));
	log = s->hash ? os_alloc(bytes) : NULL;
	if (!log) {
		os_free(s->hash);
		return false;
	}
	s->hash_mask = nr_slots - 1;
	s->log = log;
	return true;
}

void stack_store_init(struct stack_store *s, u64 *bytes, u64 min_bytes, u64 max_record_bytes)
{
	while (!alloc_store(s, *bytes)) {
		if (*bytes / 2 < min_bytes)
			return;
		*bytes /= 2;
	}
	s->log_bytes = *bytes - max_record_bytes; /* so there is always room to build one more */
}

u64 stack_store_affordable(u64 bytes, u64 min_bytes, u32 share)
{
	unsigned int cpu, nr = 0;

	os_for_each_cpu(cpu)
		nr++;
	while (bytes / 2 >= min_bytes && bytes * nr > os_memory_bytes() / share)
		bytes /= 2;
	return bytes;
}

void stack_store_wait(const struct stack_store *s)
{
	/* Pairs with the release in stack_store_end(). */
	for (u32 i = 0; (pf_load_acquire(&s->seq) & 1) && i < WAIT_TRIES && !os_panicking(); i++)
		os_cpu_relax();
}

void stack_store_pin(struct stack_store *s)
{
	pf_write_once(s->pinned_bytes, ALL_BYTES);
	/*
	 * Pairs with the barrier in stack_store_clear(): either that one sees the pin and does not
	 * empty the log, or the wait below sees that it has begun.
	 */
	pf_mb();
	stack_store_wait(s);
}

u32 stack_store_pin_records(struct stack_store *s)
{
	/* Pairs with the release in stack_store_add(). */
	u32 bytes = pf_load_acquire(&s->log_used);

	pf_write_once(s->pinned_bytes, bytes);
	return bytes;
}

void stack_store_unpin(struct stack_store *s)
{
	/* Release: all reads of records must come before the CPU may empty the log. */
	pf_store_release(&s->pinned_bytes, 0);
}
