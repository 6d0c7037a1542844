// SPDX-License-Identifier: BSD-2-Clause
/*
 * Checks the order of locks. Held spinlocks are on a stack of their CPU, because a run queue's lock
 * is taken by one task and dropped by the next. Held sleeping locks are on a stack of their task. A
 * lock is pushed before the wait for it, so that a lock taken by an interrupt meanwhile counts as
 * nested in it.
 *
 * The checks run with interrupts off for a few instructions, and take only the graph's raw lock.
 * While a CPU reports, it checks nothing, so the locks of printk() cause no recursion. An NMI,
 * which may only try locks, and a panic are not checked at all.
 */

#include <lego/lock_check.h>

#include "lock_graph.h"
#include <asm/irqflags.h>
#include <lego/bug.h>
#include <lego/irq.h>
#include <lego/kallsyms.h>
#include <lego/percpu.h>
#include <lego/printk.h>
#include <lego/sched.h>

#define MAX_REPORTS 40

struct cpu_locks {
	unsigned int nr;
	unsigned int nr_untracked;
	bool busy;
	struct held_lock held[MAX_HELD_SPINLOCKS];
};

static DEFINE_PER_CPU(struct cpu_locks, cpu_locks);

static u32 nr_reports;
static bool trap_set;
static const char *trapped;

/*
 * Turns interrupts off until leave(). Returns false, and does nothing, where checks are not
 * possible.
 */
static bool enter(unsigned long *flags)
{
	*flags = local_irq_save();
	if (likely(!in_nmi() && !panic_in_progress() && !this_cpu_ptr(&cpu_locks)->busy))
		return true;
	local_irq_restore(*flags);
	return false;
}

static void leave(unsigned long flags)
{
	local_irq_restore(flags);
}

bool lock_check_reporting(void)
{
	return this_cpu_ptr(&cpu_locks)->busy && !in_nmi();
}

static void print_ip(const char *before, unsigned long ip)
{
	u64 start = 0;
	const char *name = kallsyms_lookup(ip, &start, NULL);

	printk("%s%s+%#llx", before, name ? name : "?", (unsigned long long)(ip - start));
}

static void print_held(const struct held_lock *held, unsigned int nr)
{
	while (nr-- > 0) {
		printk("locks:   held: %s", held[nr].map->place);
		print_ip(", since ", held[nr].ip);
		printk("\n");
	}
}

/*
 * Prints the first lines of a report; report_end() ends it. Returns false if nothing must be
 * printed.
 */
static bool report_begin(const char *what)
{
	struct cpu_locks *cpu = this_cpu_ptr(&cpu_locks);

	if (READ_ONCE(trap_set)) {
		if (!trapped)
			trapped = what;
		return false;
	}
	if (__atomic_fetch_add(&nr_reports, 1, __ATOMIC_RELAXED) >= MAX_REPORTS)
		return false;
	cpu->busy = true;
	warn_print(__FILE__, __LINE__, what);
	printk("locks: CPU %u, task %d %pE%s\n", smp_processor_id(), current->pid, current->comm,
	       in_irq() ? ", in an interrupt" : "");
	return true;
}

static void report_end(void)
{
	struct cpu_locks *cpu = this_cpu_ptr(&cpu_locks);

	print_held(cpu->held, cpu->nr);
	print_held(current->locks.held, current->locks.nr);
	cpu->busy = false;
}

static void report_lock(const char *what, const struct lock_map *map, unsigned long ip)
{
	if (!report_begin(what))
		return;
	printk("locks:   %s", map->place);
	print_ip(", at ", ip);
	printk("\n");
	report_end();
}

static void print_pair(const struct lock_pair *pair)
{
	printk("locks:   %s", lock_class_place(pair->from));
	print_ip(" held, since ", pair->from_ip);
	printk(", when %s", lock_class_place(pair->to));
	print_ip(" was wanted, at ", pair->to_ip);
	printk("\n");
}

static void report_circle(const struct lock_pair *pair, const struct lock_chain *chain)
{
	bool irq = pair->from == LOCK_CLASS_IRQ || pair->to == LOCK_CLASS_IRQ;

	for (unsigned int i = 0; i < chain->nr; i++)
		irq |= chain->pairs[i].from == LOCK_CLASS_IRQ;
	if (!report_begin(irq ? "lock order: an interrupt can come in between" : "lock order"))
		return;
	print_pair(pair);
	printk("locks: but the other way round:\n");
	for (unsigned int i = 0; i < chain->nr; i++)
		print_pair(&chain->pairs[i]);
	report_end();
}

static void add_pair(unsigned int from, unsigned long from_ip, unsigned int to, unsigned long to_ip)
{
	struct lock_pair pair = { .from = from, .to = to, .from_ip = from_ip, .to_ip = to_ip };
	struct lock_chain chain;

	if (lock_graph_add(&pair, &chain))
		report_circle(&pair, &chain);
}

/* Adds the pairs of each held lock and the new one. */
static void add_pairs(const struct held_lock *held, unsigned int nr, struct lock_map *map,
		      unsigned int how, unsigned long ip)
{
	unsigned int class = lock_class_of(map);

	for (unsigned int i = 0; i < nr; i++) {
		unsigned int other = lock_class_of(held[i].map);

		if (held[i].map == map) {
			report_lock("lock taken twice", map, ip);
			panic("BUG: lock taken twice: %s", map->place);
		}
		if (!other || !class)
			continue;
		if (other != class)
			add_pair(other, held[i].ip, class, ip);
		else if (!(how & LOCK_ORDERED) && (!(how & LOCK_NESTED) || held[i].map > map))
			report_lock("two locks of one class, not in order", map, ip);
	}
}

/*
 * Records that a spinlock is held with interrupts on, so its holder may have to wait for a handler.
 */
static void check_irqs(struct lock_map *map, unsigned long flags, unsigned long ip)
{
	unsigned int class = lock_class_of(map);

	if (class && !irqs_disabled_flags(flags))
		add_pair(class, ip, LOCK_CLASS_IRQ, ip);
}

static void check_wait(struct lock_map *map, unsigned int how, unsigned long ip)
{
	const struct cpu_locks *cpu = this_cpu_ptr(&cpu_locks);
	unsigned int class = lock_class_of(map);

	add_pairs(cpu->held, cpu->nr, map, how, ip);
	/* A handler does not wait for the sleeping locks of the interrupted task. */
	if (!in_irq())
		add_pairs(current->locks.held, current->locks.nr, map, how, ip);
	else if (class)
		add_pair(LOCK_CLASS_IRQ, ip, class, ip);
}

static void check_overflow(void)
{
	const char *what = lock_graph_overflow();

	if (unlikely(what) && report_begin("the tables are full")) {
		printk("locks: too many %s: enlarge kernel/debug/lock_graph.c\n", what);
		report_end();
	}
}

static void push(struct lock_map *map, unsigned int how, unsigned long ip)
{
	struct held_lock lock = { .map = map, .ip = ip };
	struct cpu_locks *cpu = this_cpu_ptr(&cpu_locks);
	struct lock_stack *task = &current->locks;

	if (how & LOCK_SLEEP) {
		if (task->nr < MAX_HELD_MUTEXES)
			task->held[task->nr++] = lock;
		else
			task->nr_untracked++;
	} else {
		if (cpu->nr < MAX_HELD_SPINLOCKS)
			cpu->held[cpu->nr++] = lock;
		else
			cpu->nr_untracked++;
	}
}

void lock_check_acquire(struct lock_map *map, unsigned int how, unsigned long ip)
{
	unsigned long flags;

	if (!ip)
		ip = RETURN_ADDRESS();
	if (!enter(&flags))
		return;
	if (!map->place) {
		map->place = "[not initialised]";
		report_lock("lock was never initialised", map, ip);
	}
	map->forgotten = false;
	if (!(how & LOCK_TRY))
		check_wait(map, how, ip);
	if (!(how & LOCK_SLEEP))
		check_irqs(map, flags, ip);
	push(map, how, ip);
	check_overflow();
	leave(flags);
}

static bool pop(struct held_lock *held, unsigned int *nr, unsigned int *nr_untracked,
		const struct lock_map *map)
{
	for (unsigned int i = *nr; i-- > 0;) {
		if (held[i].map != map)
			continue;
		for (--*nr; i < *nr; i++)
			held[i] = held[i + 1];
		return true;
	}
	if (!*nr_untracked)
		return false;
	--*nr_untracked;
	return true;
}

void lock_check_release(struct lock_map *map, unsigned int how)
{
	unsigned long flags, ip = RETURN_ADDRESS();
	struct cpu_locks *cpu;
	struct lock_stack *task;
	bool found;

	if (!enter(&flags))
		return;
	cpu = this_cpu_ptr(&cpu_locks);
	task = &current->locks;
	if (how & LOCK_SLEEP) {
		found = pop(task->held, &task->nr, &task->nr_untracked, map);
	} else {
		found = pop(cpu->held, &cpu->nr, &cpu->nr_untracked, map);
		/* Interrupts may have been turned on since it was taken. */
		if (found && !in_irq())
			check_irqs(map, flags, ip);
	}
	if (!found && !map->forgotten)
		report_lock("unlock of a lock that is not held here", map, ip);
	map->forgotten = false;
	leave(flags);
}

static bool is_among(const struct held_lock *held, unsigned int nr, const struct lock_map *map)
{
	for (unsigned int i = 0; i < nr; i++) {
		if (held[i].map == map)
			return true;
	}
	return false;
}

/* Returns whether the lock is held. unknown: the result if locks are not tracked. */
static bool holds(const struct lock_map *map, bool unknown)
{
	const struct lock_stack *task;
	const struct cpu_locks *cpu;
	unsigned long flags;
	bool held;

	if (!enter(&flags))
		return unknown;
	cpu = this_cpu_ptr(&cpu_locks);
	task = &current->locks;
	held = is_among(cpu->held, cpu->nr, map) || is_among(task->held, task->nr, map);
	if (!held && (cpu->nr_untracked || task->nr_untracked || map->forgotten))
		held = unknown;
	leave(flags);
	return held;
}

bool lock_check_held(const struct lock_map *map)
{
	return holds(map, true);
}

bool lock_check_owned(const struct lock_map *map)
{
	return holds(map, false);
}

/* Drops locks that have been reported, so that they are reported only once. */
static void forget(struct held_lock *held, unsigned int *nr)
{
	while (*nr)
		held[--*nr].map->forgotten = true;
}

void lock_check_schedule(unsigned long flags)
{
	struct cpu_locks *cpu;
	int state = READ_ONCE(current->state);
	unsigned long own_flags;

	if (!enter(&own_flags))
		return;
	cpu = this_cpu_ptr(&cpu_locks);
	if (unlikely(cpu->nr)) {
		if (report_begin("schedule() with a spinlock held"))
			report_end();
		forget(cpu->held, &cpu->nr);
	}
	if (unlikely(irqs_disabled_flags(flags) &&
		     (state == TASK_INTERRUPTIBLE || state == TASK_UNINTERRUPTIBLE)) &&
	    report_begin("sleeping with interrupts off"))
		report_end();
	leave(own_flags);
}

void lock_check_leave(const char *whence)
{
	struct cpu_locks *cpu;
	unsigned long flags;

	if (!enter(&flags))
		return;
	cpu = this_cpu_ptr(&cpu_locks);
	if (unlikely(cpu->nr || current->locks.nr)) {
		if (report_begin("a lock is still held")) {
			printk("locks: on the way to %s\n", whence);
			report_end();
		}
		forget(cpu->held, &cpu->nr);
		forget(current->locks.held, &current->locks.nr);
	}
	leave(flags);
}

void lock_check_sleep(const char *file, int line)
{
	unsigned long flags;
	bool irqs_off;

	if (!enter(&flags))
		return;
	irqs_off = irqs_disabled_flags(flags);
	if (unlikely(irqs_off || in_irq() || this_cpu_ptr(&cpu_locks)->nr) &&
	    report_begin("sleeping where that is forbidden")) {
		printk("locks: at %s:%d, interrupts %s\n", file, line, irqs_off ? "off" : "on");
		report_end();
	}
	leave(flags);
}

#ifdef CONFIG_SELFTEST
void lock_check_set_trap(bool on)
{
	WRITE_ONCE(trapped, NULL);
	WRITE_ONCE(trap_set, on);
}

const char *lock_check_trapped(void)
{
	const char *what = READ_ONCE(trapped);

	WRITE_ONCE(trapped, NULL);
	return what;
}
#endif
