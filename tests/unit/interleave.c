// SPDX-License-Identifier: BSD-2-Clause
/*
 * Explores interleavings: see interleave.h. Threads are coroutines. Each decision is an entry of
 * choices[]: which thread goes on, and which stores become visible. A run repeats the decisions of
 * the run before, and changes the last one that has another alternative (depth-first search).
 *
 * While a thread runs, memory has the stores in its CPU's buffer. They are taken back when a thread
 * of another CPU goes on. So loads need no help to find them, except for one that the compiler has
 * moved ahead: history[] has the values that it may have found.
 */
#include "unit.h"

#include <stdio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#undef memcpy
#undef memset

#define unseen	    IL_UNSEEN
#define STACK_BYTES (256u << 10)
#define MAX_CHOICES 4096
#define MAX_STORES  64
#define MAX_SITES   32
#define MAX_RANGES  16
#define MAX_STEPS   20000
#define MAX_RUNS    3000000
#define MAX_PENDING 512
#define MAX_HISTORY 65536
#define MAX_TESTS   16
/* How often, in a run, stores stay in a buffer at a switch, or a load is made early. */
#define NR_DELAYS 1

static struct choice {
	unsigned int taken, nr;
} choices[MAX_CHOICES];
static unsigned int nr_choices, choices_used;

static struct thread {
	ucontext_t context;
	unsigned int cpu;
	bool exists, has_begun, has_ended, waits;
	bool is_torn;		     /* its next cmpxchg or xchg */
	bool has_loaded;	     /* plain loads since the last access that keeps its place */
	unsigned int in_order_since; /* nr_history at that access */
	char stack[STACK_BYTES] __aligned(16);
} threads[IL_MAX_THREADS];
static struct thread *self; /* NULL: no thread runs */
static struct thread *wanted;
static ucontext_t main_context;

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

static struct range {
	char *addr, *content;
	size_t bytes;
	bool is_shared;
} ranges[MAX_RANGES];
static unsigned int nr_ranges;

static const struct il_site *sites[MAX_SITES];
static unsigned int nr_sites;
static struct il_site broken;

static const struct il_test *test;
static unsigned int preemptions_left, delays_left, nr_steps, nr_runs;
static char failure[256]; /* empty: none */

static unseen void fail_run(const char *why)
{
	if (!failure[0])
		snprintf(failure, sizeof(failure), "%s", why);
}

/* Returns to run_once(). */
static unseen void leave(void)
{
	struct thread *me = self;

	self = NULL;
	swapcontext(&me->context, &main_context);
	self = me;
}

/* Takes a decision: a number below nr. */
static unseen unsigned int choose(unsigned int nr)
{
	if (nr < 2)
		return 0;
	if (choices_used == nr_choices) {
		assert_true(nr_choices < MAX_CHOICES);
		choices[nr_choices++] = (struct choice){ 0, nr };
	}
	assert_int_equal(choices[choices_used].nr, nr); /* the test is deterministic */
	return choices[choices_used++].taken;
}

/* Prepares the next run. Returns false if there is none. */
static unseen bool change_choices(void)
{
	while (nr_choices && ++choices[nr_choices - 1].taken == choices[nr_choices - 1].nr)
		nr_choices--;
	return nr_choices;
}

/* A thread waits until its interrupt has ended. */
static unseen bool can_run(const struct thread *t)
{
	if (!t->exists || t->has_ended)
		return false;
	for (const struct thread *u = t + 1; u < threads + IL_MAX_THREADS; u++) {
		if (u->exists && u->cpu == t->cpu && u->has_begun && !u->has_ended)
			return false;
	}
	return true;
}

/* Lists the threads that can run, without one. */
static unseen unsigned int list_others(const struct thread *without, struct thread **list)
{
	unsigned int nr = 0;

	for (struct thread *t = threads; t < threads + IL_MAX_THREADS; t++) {
		if (t != without && can_run(t) && !t->waits)
			list[nr++] = t;
	}
	return nr;
}

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

/* Puts the plain store that was reported last into the buffer. */
static unseen void settle(void)
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

/* Makes a CPU's stores visible to itself. */
static unseen void switch_cpu(unsigned int cpu)
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

static unseen bool is_shared(const volatile void *addr)
{
	for (unsigned int i = 0; i < nr_ranges; i++) {
		if ((size_t)((const volatile char *)addr - ranges[i].addr) < ranges[i].bytes)
			return ranges[i].is_shared;
	}
	return false;
}

/* Before each access to shared memory: another thread may go on. */
static unseen void step(void)
{
	struct thread *others[IL_MAX_THREADS];
	unsigned int choice;

	settle();
	if (++nr_steps > MAX_STEPS)
		fail_run("the threads do not end");
	if (failure[0])
		leave(); /* for good */
	if (!preemptions_left)
		return;
	choice = choose(1 + list_others(self, others));
	if (!choice)
		return;
	preemptions_left--;
	wanted = others[choice - 1];
	leave();
}

unseen void il_relax(void)
{
	if (!self)
		return;
	step();
	self->waits = true;
	leave();
}

/* Inlined functions have several copies of a site. */
static unseen bool same_site(const struct il_site *a, const struct il_site *b)
{
	return a->line == b->line && !strcmp(a->function, b->function) && !strcmp(a->kind, b->kind);
}

/* Returns whether a site is not broken. */
static unseen bool orders(const struct il_site *site)
{
	unsigned int i = 0;

	while (i < nr_sites && !same_site(sites[i], site))
		i++;
	if (i == nr_sites) {
		assert_true(nr_sites < MAX_SITES);
		sites[nr_sites++] = site;
	}
	return !broken.kind || !same_site(site, &broken);
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

static unseen void add_range(void *addr, size_t bytes, bool is_shared)
{
	struct range *r = &ranges[nr_ranges++];

	assert_true(nr_ranges <= MAX_RANGES);
	*r = (struct range){ addr, malloc(bytes), bytes, is_shared };
	memcpy(r->content, addr, bytes);
}

unseen void il_share(void *addr, size_t bytes)
{
	add_range(addr, bytes, true);
}

unseen void il_keep(void *addr, size_t bytes)
{
	add_range(addr, bytes, false);
}

unseen void il_check_(bool ok, const char *file, int line, const char *what)
{
	char why[sizeof(failure)];

	if (ok)
		return;
	snprintf(why, sizeof(why), "%s:%d: %s", file, line, what);
	fail_run(why);
	if (self)
		leave(); /* for good */
}

static unseen void on_assert(const char *what)
{
	il_check_(false, "os_assert", 0, what);
}

/* Locks let other threads run. */
static unseen void on_lock(os_lock_t *lock)
{
	while (host_is_held(lock))
		il_relax();
}

static unseen void run_thread(void)
{
	test->threads[self - threads].run();
	settle();
	self->has_ended = true;
	leave();
}

/* Returns the thread that goes on, or NULL if all have ended. */
static unseen struct thread *next_thread(struct thread *last)
{
	struct thread *list[IL_MAX_THREADS], *next = wanted;
	unsigned int nr;

	wanted = NULL;
	if (next)
		return next;
	nr = list_others(last, list);
	if (nr)
		return list[choose(nr)];
	for (struct thread *t = threads; t < threads + IL_MAX_THREADS; t++)
		t->waits = false;
	return list_others(NULL, list) ? list[0] : NULL;
}

static unseen void begin_run(void)
{
	self = NULL;
	choices_used = nr_steps = nr_history = pending.bytes = 0;
	preemptions_left = test->nr_preemptions;
	delays_left = NR_DELAYS;
	for (unsigned int cpu = 0; cpu < HOST_NR_CPUS; cpu++)
		buffers[cpu].nr = 0;
	active_cpu = host_cpu = 0;
	for (unsigned int i = 0; i < nr_ranges; i++)
		memcpy(ranges[i].addr, ranges[i].content, ranges[i].bytes);
	for (unsigned int i = 0; i < IL_MAX_THREADS; i++) {
		struct thread *t = &threads[i];

		t->has_begun = t->has_ended = t->waits = t->is_torn = t->has_loaded = false;
		t->in_order_since = 0;
		t->exists = i ? threads[i - 1].exists && test->threads[i].run : true;
		t->cpu = test->threads[i].cpu;
		getcontext(&t->context);
		t->context.uc_stack.ss_sp = t->stack;
		t->context.uc_stack.ss_size = STACK_BYTES;
		makecontext(&t->context, run_thread, 0);
	}
}

static unseen void run_once(void)
{
	struct thread *t = NULL;

	begin_run();
	while (!failure[0] && (t = next_thread(t))) {
		switch_cpu(t->cpu);
		t->has_begun = true;
		t->waits = false;
		self = t;
		swapcontext(&main_context, &t->context);
		self = NULL;
		for (struct thread *u = threads; u < threads + IL_MAX_THREADS; u++)
			u->waits &= u == t;
	}
	delays_left = 0;
	switch_cpu(0);
	if (!failure[0] && test->check)
		test->check();
}

/* Returns whether all runs pass. */
static unseen bool explore(const struct il_test *of)
{
	test = of;
	nr_choices = nr_runs = 0;
	while (nr_ranges)
		free(ranges[--nr_ranges].content);
	self = NULL;
	host_cpu = 0;
	of->set_up();
	failure[0] = '\0';
	host_on_lock = on_lock;
	host_on_wait = il_relax;
	host_on_assert = on_assert;
	do {
		run_once();
		assert_true(++nr_runs < MAX_RUNS);
	} while (!failure[0] && change_choices());
	host_on_lock = NULL;
	host_on_wait = NULL;
	host_on_assert = NULL;
	return !failure[0];
}

static void passes(const struct il_test *of)
{
	if (!explore(of))
		fail_msg("run %u fails: %s", nr_runs, failure);
	if (getenv("IL_VERBOSE"))
		print_message("%u runs, the last one has %u steps\n", nr_runs, nr_steps);
}

/* Returns whether a run fails. In a child, because a run that fails leaves a mess behind. */
static bool finds(const struct il_test *of, const struct il_site *site)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		broken = *site;
		status = explore(of);
		if (getenv("IL_VERBOSE"))
			print_message("%s in %s, line %d: run %u: %s\n", site->kind, site->function,
				      site->line, nr_runs, failure);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return !WEXITSTATUS(status);
}

/* Breaks each site that the test needs. */
static void needs_its_sites(const struct il_test *of)
{
	char name[96];

	assert_true(nr_sites);
	for (unsigned int i = 0; i < nr_sites; i++) {
		snprintf(name, sizeof(name), " %s:%s ", sites[i]->function, sites[i]->kind);
		if (!strstr(of->unneeded, name) && !finds(of, sites[i]))
			fail_msg("%sin line %d is not missed", name, sites[i]->line);
	}
}

static void explore_test(void **state)
{
	const struct il_test *of = *state;

	nr_sites = 0;
	passes(of);
	if (of->unneeded)
		needs_its_sites(of);
}

int main(void)
{
	static struct CMUnitTest tests[MAX_TESTS]; /* without a name: skipped */

	for (int i = 0; il_tests[i].name; i++) {
		assert_true(i < MAX_TESTS);
		tests[i] = (struct CMUnitTest){ .name = il_tests[i].name,
						.test_func = explore_test,
						.initial_state = (void *)&il_tests[i] };
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
