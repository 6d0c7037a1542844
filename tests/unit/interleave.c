// SPDX-License-Identifier: BSD-2-Clause
/*
 * Explores interleavings: see interleave.h. Threads are coroutines. Each decision is an entry of
 * choices[]: which thread goes on, and which stores become visible. A run repeats the decisions of
 * the run before, and changes the last one that has another alternative (depth-first search).
 */
#include "interleave_run.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_CHOICES 4096
#define MAX_SITES   32
#define MAX_RANGES  16
#define MAX_STEPS   20000
#define MAX_RUNS    3000000
#define MAX_TESTS   16
/* How often, in a run, stores stay in a buffer at a switch, or a load is made early. */
#define NR_DELAYS 1

static struct choice {
	unsigned int taken, nr;
} choices[MAX_CHOICES];
static unsigned int nr_choices, choices_used;

static struct thread threads[IL_MAX_THREADS];
struct thread *self;
static struct thread *wanted;
static ucontext_t main_context;

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
static unsigned int preemptions_left, nr_steps, nr_runs;
unsigned int delays_left;
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

unseen unsigned int choose(unsigned int nr)
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

unseen bool is_shared(const volatile void *addr)
{
	for (unsigned int i = 0; i < nr_ranges; i++) {
		if ((size_t)((const volatile char *)addr - ranges[i].addr) < ranges[i].bytes)
			return ranges[i].is_shared;
	}
	return false;
}

unseen void step(void)
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

unseen bool orders(const struct il_site *site)
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
	choices_used = nr_steps = 0;
	preemptions_left = test->nr_preemptions;
	delays_left = NR_DELAYS;
	forget_stores();
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
