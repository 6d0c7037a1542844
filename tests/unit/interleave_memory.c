// SPDX-License-Identifier: BSD-2-Clause
/*
 * The stores that CPUs do not see yet: see interleave.h. While a thread runs, memory has the stores
 * in its CPU's buffer. They are taken back when a thread of another CPU goes on. So loads need no
 * help to find them, except for one that the compiler has moved ahead: history[] has the values
 * that it may have found.
 */
#include "interleave_run.h"

#define MAX_STORES  64
#define MAX_PENDING 512
#define MAX_HISTORY 65536

/* The stores of a CPU that others do not see yet. bytes 0: a barrier. */
struct store {
	char *addr;
	unsigned int bytes;
	enum il_kind kind;
	u64 before, after;
};

static struct buffer {
	struct store stores[MAX_STORES];
	unsigned int nr;
} buffers[HOST_NR_CPUS];
static unsigned int active_cpu;

/* The stores that all CPUs see, in order. before: the value that others saw until then. */
static struct {
	char *addr;
	unsigned int bytes, cpu;
	u64 before;
} history[MAX_HISTORY];
static unsigned int nr_history;

/* A plain store, between its report and the next one. */
static struct {
	char *addr;
	unsigned int bytes;
	char before[MAX_PENDING];
} pending;

/* Takes a store out of the buffer, and makes it visible. */
static unseen void drain(struct buffer *b, unsigned int i)
{
	struct store *s = &b->stores[i];

	if (!self) { /* else it is of this CPU, so memory has it */
		memcpy(&s->before, s->addr, s->bytes);
		memcpy(s->addr, &s->after, s->bytes);
	}
	assert_true(nr_history < MAX_HISTORY);
	history[nr_history].addr = s->addr;
	history[nr_history].bytes = s->bytes;
	history[nr_history].cpu = b - buffers;
	history[nr_history++].before = s->before;
	memmove(&b->stores[i], &b->stores[i + 1], (--b->nr - i) * sizeof(b->stores[0]));
}

/* Adds a store of this CPU, which is in memory already, to its buffer. */
static unseen void push(struct store s)
{
	struct buffer *b = &buffers[self->cpu];

	if (b->nr == MAX_STORES)
		drain(b, 0);
	if (s.bytes)
		memcpy(&s.after, s.addr, s.bytes);
	b->stores[b->nr++] = s;
}

unseen void settle(void)
{
	for (unsigned int i = 0; i < pending.bytes; i += 8) {
		struct store s = { .addr = pending.addr + i, .bytes = min(pending.bytes - i, 8u) };

		memcpy(&s.before, pending.before + i, s.bytes);
		push(s);
	}
	pending.bytes = 0;
}

static unseen bool overlap(const char *a, unsigned int a_bytes, const char *b, unsigned int b_bytes)
{
	return a < b + b_bytes && b < a + a_bytes;
}

/* Returns the end of the stores behind i that store i may be delayed past. */
static unseen unsigned int end_of_delay(const struct buffer *b, unsigned int i)
{
	const struct store *s = &b->stores[i], *next;
	unsigned int end = i + 1;

	for (; s->bytes && s->kind != IL_CHANGE && end < b->nr; end++) {
		next = &b->stores[end];
		if (!next->bytes || (s->kind != IL_PLAIN && next->kind != IL_PLAIN) ||
		    overlap(s->addr, s->bytes, next->addr, next->bytes))
			break;
	}
	return end;
}

/*
 * Decides what other CPUs see of a buffer from now on: all of it; all but the newest stores; or all
 * up to a store that is delayed past the ones behind it.
 */
static unseen void drain_some(struct buffer *b)
{
	unsigned int nr = b->nr, kept = 0, nr_delayed = 0, delayed[MAX_STORES], choice, end;

	for (unsigned int i = 0; i < nr; i++) {
		if (end_of_delay(b, i) > i + 1)
			delayed[nr_delayed++] = i;
	}
	choice = nr && delays_left ? choose(1 + nr + nr_delayed) : 0;
	delays_left -= choice > 0;
	if (choice > nr) {
		kept = delayed[choice - nr - 1];
		end = end_of_delay(b, kept);
		for (unsigned int i = 0; i < kept; i++)
			drain(b, 0);
		for (unsigned int i = kept + 1; i < end; i++)
			drain(b, 1);
		return;
	}
	kept = choice;
	while (b->nr > kept)
		drain(b, 0);
}

unseen void switch_cpu(unsigned int cpu)
{
	struct buffer *b = &buffers[active_cpu];

	for (unsigned int i = b->nr; i--;)
		memcpy(b->stores[i].addr, &b->stores[i].before, b->stores[i].bytes);
	for (unsigned int i = 0; i < HOST_NR_CPUS; i++)
		drain_some(&buffers[i]);
	active_cpu = host_cpu = cpu;
	b = &buffers[cpu];
	for (unsigned int i = 0; i < b->nr; i++) {
		memcpy(&b->stores[i].before, b->stores[i].addr, b->stores[i].bytes);
		memcpy(b->stores[i].addr, &b->stores[i].after, b->stores[i].bytes);
	}
}

unseen void forget_stores(void)
{
	nr_history = pending.bytes = 0;
	for (unsigned int cpu = 0; cpu < HOST_NR_CPUS; cpu++)
		buffers[cpu].nr = 0;
	active_cpu = host_cpu = 0;
}

static unseen void drain_all(void)
{
	settle();
	while (buffers[self->cpu].nr)
		drain(&buffers[self->cpu], 0);
}

/* No later load of this thread is made before this moment. */
static unseen void keep_order(void)
{
	self->has_loaded = false;
	self->in_order_since = nr_history;
}

unseen void il_full_barrier(const struct il_site *site)
{
	if (self && orders(site)) {
		step();
		drain_all();
		keep_order();
	}
}

unseen void il_barrier(const struct il_site *site)
{
	if (self && orders(site)) {
		settle();
		push((struct store){ 0 });
		keep_order();
	}
}

unseen void il_locked(const struct il_site *site)
{
	if (self)
		self->is_torn = !orders(site);
}

unseen void il_before_store(void *addr, unsigned long bytes)
{
	if (!self || !is_shared(addr))
		return;
	step();
	assert_true(bytes <= MAX_PENDING);
	pending.addr = addr;
	pending.bytes = bytes;
	memcpy(pending.before, addr, bytes);
}

unseen void il_before_load(const volatile void *addr)
{
	if (!self || !is_shared(addr))
		return;
	step();
	self->has_loaded = true;
}

/* Lists what a load finds now, and what it would have found before the plain loads before it. */
static unseen unsigned int list_values(const char *addr, unsigned int bytes, u64 *values)
{
	const struct buffer *b = &buffers[self->cpu];
	unsigned int nr = 1;

	for (unsigned int i = 0; i < b->nr; i++) {
		if (overlap(addr, bytes, b->stores[i].addr, b->stores[i].bytes))
			return nr;
	}
	for (unsigned int i = nr_history; i-- > self->in_order_since && nr < MAX_STORES;) {
		if (!overlap(addr, bytes, history[i].addr, history[i].bytes))
			continue;
		if (history[i].addr != addr || history[i].bytes != bytes ||
		    history[i].cpu == self->cpu)
			break;
		values[nr++] = history[i].before;
	}
	return nr;
}

unseen u64 il_atomic_load(const volatile void *addr, unsigned int bytes)
{
	u64 values[MAX_STORES] = { 0 };
	unsigned int choice = 0;
	bool is_seen = self && is_shared(addr);

	if (is_seen)
		step();
	memcpy(values, (const char *)addr, bytes);
	if (is_seen && self->has_loaded && delays_left)
		choice = choose(list_values((const char *)addr, bytes, values));
	if (is_seen)
		keep_order();
	delays_left -= choice > 0;
	return values[choice];
}

/* Copies or fills in a few steps, or in words if they are few. */
static unseen void *move(char *dst, const char *src, int byte, size_t bytes)
{
	size_t part = bytes <= 64 ? 8 : min((bytes / 4 + 7) & ~7ul, (size_t)MAX_PENDING), n;

	for (size_t at = 0; at < bytes; at += n) {
		n = min(part, bytes - at);
		if (src)
			il_before_load(src + at);
		il_before_store(dst + at, n);
		if (src)
			memcpy(dst + at, src + at, n);
		else
			memset(dst + at, byte, n);
	}
	return dst;
}

unseen void *il_copy(void *dst, const void *src, size_t bytes)
{
	return move(dst, src, 0, bytes);
}

unseen void *il_fill(void *dst, int byte, size_t bytes)
{
	return move(dst, NULL, byte, bytes);
}

unseen void il_atomic_store(volatile void *addr, u64 value, unsigned int bytes, enum il_kind kind)
{
	struct store s = { .addr = (char *)addr, .bytes = bytes, .kind = kind };
	bool is_seen = self && is_shared(addr);

	if (is_seen && kind != IL_CHANGE)
		step();
	memcpy(&s.before, s.addr, bytes);
	memcpy(s.addr, &value, bytes);
	if (!is_seen)
		return;
	push(s);
	keep_order();
}

/* Begins a read-modify-write. One with a lock empties the buffer, and so does il_end_change(). */
unseen void il_begin_change(volatile void *addr, int order)
{
	if (!self || !is_shared(addr))
		return;
	step();
	if (order == __ATOMIC_SEQ_CST && !self->is_torn)
		drain_all();
}

unseen void il_middle_of_change(volatile void *addr)
{
	if (self && is_shared(addr) && self->is_torn)
		step();
}

unseen void il_end_change(volatile void *addr, int order)
{
	if (!self || !is_shared(addr))
		return;
	if (order == __ATOMIC_SEQ_CST && !self->is_torn)
		drain_all();
	keep_order();
	self->is_torn = false;
}
