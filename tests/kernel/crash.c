// SPDX-License-Identifier: BSD-2-Clause
/*
 * The crash cases. crash=<mode> makes a kernel thread cause one, half a second after the start of
 * init. In every case the panic's report must be printed. In hang() the sysrq keys must work.
 */

#include <lego/selftest.h>

#include "../../kernel/fs/inode.h"
#include "../../kernel/profile/report.h"
#include "../../kernel/profile/strace/strace.h"
#include "../../kernel/profile/table.h"
#include <asm/apic.h>
#include <asm/irqflags.h>
#include <asm/page.h>
#include <lego/atomic.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/mm.h>
#include <lego/page.h>
#include <lego/params.h>
#include <lego/printk.h>
#include <lego/process.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/smp.h>
#include <lego/string.h>
#include <lego/time.h>
#include <lego/timer.h>

#define DELAY_NS   (500 * NSEC_PER_MSEC)
#define NOT_MAPPED 0xffff800000001000UL /* below the direct map */

static bool nmi_armed;
static cpumask_t others; /* all CPUs but the one that crashes */
static u32 nr_arrived;

void (*selftest_nmi_hook)(void);

void selftest_nmi(void)
{
	void (*hook)(void) = READ_ONCE(selftest_nmi_hook);

	if (hook)
		hook();
	if (READ_ONCE(nmi_armed))
		panic("crash in an NMI");
}

static void crash_in_nmi(void)
{
	WRITE_ONCE(nmi_armed, true);
	apic_send_nmi(smp_processor_id());
	for (;;)
		cpu_relax();
}

static void crash_in_nmi_in_printk(void)
{
	printk_hold_console();
	crash_in_nmi();
}

static void crash_with_console(void)
{
	printk_hold_console();
	panic("crash with the console lock");
}

static void spin_with_console(void *unused)
{
	printk_hold_console();
	for (;;)
		cpu_relax();
}

static void timer_panic(struct timer *timer)
{
	panic("crash in a timer interrupt");
}

static void timer_bug(struct timer *timer)
{
	BUG_ON(in_irq());
}

static void start_timer(void (*fn)(struct timer *timer))
{
	static struct timer timer;

	timer_setup(&timer, fn);
	timer_start(&timer, clock_monotonic_ns() + DELAY_NS / 10);
}

static void crash_with_console_elsewhere(void)
{
	start_timer(timer_panic);
	/* Does not return, because the other CPUs spin forever. */
	smp_call_mask(others, spin_with_console, NULL);
	panic("crash: this takes two CPUs");
}

static void wait_for_timer(void)
{
	for (;;)
		sleep_until_ns(clock_monotonic_ns() + NSEC_PER_SEC);
}

static void crash_in_timer(void)
{
	start_timer(timer_panic);
	wait_for_timer();
}

static void bug_in_interrupt(void)
{
	start_timer(timer_bug);
	wait_for_timer();
}

static void panic_together(void *unused)
{
	u32 nr = 0;
	unsigned int cpu;

	for_each_cpu_in(cpu, others)
		nr++;
	__atomic_fetch_add(&nr_arrived, 1, __ATOMIC_RELAXED);
	while (READ_ONCE(nr_arrived) < nr)
		cpu_relax();
	panic("crash of %u CPUs at once", nr);
}

static void crash_together(void)
{
	smp_call_mask(others, panic_together, NULL);
	panic("crash: this takes two CPUs");
}

static void crash_in_printk(void)
{
	printk("half a line, ");
	printk("%s\n", (const char *)NOT_MAPPED);
}

static noinline u64 recurse(u64 depth)
{
	volatile u64 frame[64];

	frame[depth % 64] = depth;
	return depth ? recurse(depth - 1) + frame[depth % 64] : 0;
}

static void overflow_stack(void)
{
	recurse(KERNEL_STACK_SIZE);
}

/*
 * A use after free corrupts the links of a free block. The allocator faults on them while it holds
 * its lock.
 */
static void crash_with_page_lock(void)
{
	struct page *page = page_alloc(MAX_PAGE_ORDER, 0);

	if (!page)
		panic("crash: no block of pages to break");
	page_put(page);
	page->node.next = page->node.prev = (struct list_head *)NOT_MAPPED;
	page_alloc(MAX_PAGE_ORDER, 0);
}

/* Holds the address space's lock of process 2 for three seconds. */
static void delay_kill(void)
{
	struct process *proc = process_find(2);

	if (!proc || !proc->mm)
		panic("crash: there is no process 2");
	rw_mutex_lock_write(&proc->mm->lock);
	sleep_until_ns(clock_monotonic_ns() + 3 * NSEC_PER_SEC);
	rw_mutex_unlock_write(&proc->mm->lock);
	process_put(proc);
	wait_for_timer();
}

/* Keeps its CPU busy forever, with interrupts on. */
static void hang(void)
{
	printk("crash: CPU %u hangs\n", smp_processor_id());
	for (;;)
		cpu_relax();
}

#ifdef CONFIG_DEBUG_LOCKS
static DEFINE_SPINLOCK(lock_a);
static DEFINE_SPINLOCK(lock_b);

static void lock_both(spinlock_t *first, spinlock_t *second)
{
	unsigned long flags = spin_lock_irqsave(first);

	spin_lock(second);
	spin_unlock(second);
	spin_unlock_irqrestore(first, flags);
}

static void lock_in_both_orders(void)
{
	lock_both(&lock_a, &lock_b);
	lock_both(&lock_b, &lock_a);
}

static void lock_twice(void)
{
	spin_lock(&lock_a);
	spin_lock(&lock_a);
}

static void sleep_with_spinlock(void)
{
	spin_lock(&lock_a);
	sleep_until_ns(clock_monotonic_ns() + NSEC_PER_MSEC);
}
#endif

#ifdef CONFIG_DEBUG_ASSERTS
static void find_without_lock(void)
{
	tree_find(root_inode, "dev", 3);
}
#endif

#ifdef CONFIG_DEBUG_SLAB
/* Hides from the compiler where ptr comes from, so that it does not warn or optimise. */
static void *hide(void *ptr)
{
	asm volatile("" : "+r"(ptr));
	return ptr;
}

static void write_to_freed_object(void)
{
	char *object = kmalloc(100);

	kfree(object);
	((char *)hide(object))[7] = 1;
	for (int i = 0; i < 10000; i++)
		kfree(hide(kmalloc(100)));
}

static void write_to_free_page(void)
{
	struct page *page = page_alloc(0, 0);

	page_put(page);
	((char *)page_address(page))[4095] = 1;
	for (int i = 0; i < 10000; i++)
		page_alloc(0, 0);
}

static void write_behind_end(void)
{
	char *object = kmalloc(64);

	((char *)hide(object))[64] = 1;
	kfree(object);
}

static void free_twice(void)
{
	void *object = kmalloc(32);

	kfree(object);
	kfree(hide(object));
}

static void free_middle(void)
{
	kfree((char *)hide(kmalloc(100)) + 16);
}

static void free_page(void)
{
	kfree(page_address(page_alloc(0, 0)));
}

static void free_nowhere(void)
{
	kfree((void *)NOT_MAPPED);
}
#endif

#ifdef CONFIG_PROFILE_EXPORT
static void drop(const char *fmt, va_list args)
{
}

/* Prints as an export does. Reading the second cell faults, after the first one was printed. */
static void print_bad_row(const struct report *unused)
{
	static const struct column columns[] = {
		{ "good", "good", COLUMN_COUNT, 8 },
		{ "bad", "bad", COLUMN_TEXT, 8 },
	};
	static const struct table table = TABLE(columns);

	report_to_output(drop);
	table_set_sink(&table_json);
	table_begin(&table, "Bad");
	table_head();
	table_row((struct cell[]){ cell_nr(1), cell_text((const char *)NOT_MAPPED) });
}

static void crash_in_row(void)
{
	while (!report_try_print(print_bad_row))
		sleep_until_ns(clock_monotonic_ns() + NSEC_PER_MSEC);
}
#endif

#ifdef CONFIG_DEBUG_STACK
/* Overwrites the guard, and not the frame above it. */
static noinline void write_behind_array(void)
{
	char array[16];
	char *behind = array + sizeof(array);

	asm volatile("" : "+r"(behind));
	memset(behind, 1, sizeof(u64));
}
#endif

#ifdef CONFIG_PROFILE_STRACE
static void crash_with_lists_lock(void)
{
	os_lock(&lists_lock);
	panic("crash with the lock of the process lists");
}

/* The thread's table is not mapped, so the report in the panic faults. */
static void crash_in_report(void)
{
	static struct process proc;
	static struct task task = { .proc = &proc };

	profile_process_init(&proc);
	profile_task_init(&task);
	task.profile.strace.calls.table = (struct profile_syscall_table *)NOT_MAPPED;
	panic("crash with a report that crashes");
}
#endif

static const struct mode {
	const char *name;
	void (*crash)(void);
} modes[] = {
	{ "console", crash_with_console },
	{ "console-elsewhere", crash_with_console_elsewhere },
	{ "page-lock", crash_with_page_lock },
	{ "nmi", crash_in_nmi },
	{ "nmi-printk", crash_in_nmi_in_printk },
	{ "timer", crash_in_timer },
	{ "bug-interrupt", bug_in_interrupt },
	{ "together", crash_together },
	{ "printk", crash_in_printk },
	{ "stack", overflow_stack },
	{ "hang", hang },
	{ "late-kill", delay_kill },
#ifdef CONFIG_DEBUG_LOCKS
	{ "lock-order", lock_in_both_orders },
	{ "lock-twice", lock_twice },
	{ "lock-sleep", sleep_with_spinlock },
#endif
#ifdef CONFIG_DEBUG_ASSERTS
	{ "assert", find_without_lock },
#endif
#ifdef CONFIG_DEBUG_SLAB
	{ "use-after-free", write_to_freed_object },
	{ "page-after-free", write_to_free_page },
	{ "behind-end", write_behind_end },
	{ "double-free", free_twice },
	{ "middle-free", free_middle },
	{ "page-free", free_page },
	{ "wild-free", free_nowhere },
#endif
#ifdef CONFIG_DEBUG_STACK
	{ "behind-array", write_behind_array },
#endif
#ifdef CONFIG_PROFILE_STRACE
	{ "lists-lock", crash_with_lists_lock },
	{ "report", crash_in_report },
#endif
#ifdef CONFIG_PROFILE_EXPORT
	{ "json-row", crash_in_row },
#endif
};

static const struct mode *wanted;

static int crash_thread(void *unused)
{
	sleep_until_ns(clock_monotonic_ns() + DELAY_NS);
	local_irq_disable();
	others = READ_ONCE(cpu_online_mask) & ~BIT(smp_processor_id());
	local_irq_enable();
	wanted->crash();
	panic("crash: still alive");
}

void crash_start(void)
{
	struct task *task;

	if (!wanted)
		return;
	task = kthread_create(crash_thread, NULL, "crash");
	BUG_ON(IS_ERR(task));
	task_wake(task);
}

static int set_crash(const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (!strcmp(modes[i].name, value))
			wanted = &modes[i];
	}
	return wanted ? 0 : -EINVAL;
}

/* A way to crash on purpose, at the end of the boot. */
BOOT_PARAM(crash, "crash", "<mode of tests/kernel/crash.c>", set_crash);
