// SPDX-License-Identifier: BSD-2-Clause
/*
 * Re-creates LegoOS's design of strace and heatmap, and measures the instructions of a system call
 * and a sample in the same run as ours. Prints "bench: legoos_<name> <cycles for all> <number>".
 *
 * LegoOS's strace calls a function before and after each system call. Each thread has a table,
 * indexed by the number of the call, with rows of 64 bytes: calls and errors in 32 bits, and wall
 * time by a clock that scales the TSC. Flags in the arguments are converted to text before it is
 * known whether the text will be printed. The heatmap is one array for all CPUs, with a counter for
 * each 4 bytes of text, which is incremented atomically. User code is not sampled.
 */
#include <lego/selftest.h>

#include "pairs.h"
#include <asm/desc.h>
#include <asm/irqflags.h>
#include <asm/setup.h>
#include <lego/percpu.h>
#include <lego/printk.h>
#include <lego/sched.h>
#include <lego/string.h>

#define NR_EVENTS    10000
#define NR_ROWS	     512
#define NR_BUCKETS   262144 /* of a MiB of text */
#define BUCKET_SHIFT 2
#define TEXT_BYTES   128
#define NR_GETPPID   110
#define NR_MMAP	     9

struct legoos_row {
	u32 nr_calls;
	u32 nr_errors;
	u64 ns;
} __aligned(64);

struct legoos_thread {
	u64 start_ns;
	struct legoos_row rows[NR_ROWS];
};

struct flag {
	u64 bit;
	const char *name;
};

static const struct flag prot_flags[] = { { 1, "PROT_READ" },
					  { 2, "PROT_WRITE" },
					  { 4, "PROT_EXEC" } };
static const struct flag map_flags[] = {
	{ 0x01, "MAP_SHARED" },	   { 0x02, "MAP_PRIVATE" },    { 0x10, "MAP_FIXED" },
	{ 0x20, "MAP_ANONYMOUS" }, { 0x100, "MAP_GROWSDOWN" }, { 0x4000, "MAP_NORESERVE" },
};

static struct legoos_thread thread;
static bool prints_calls;
static bool samples_on = true;
static u64 sampled_cpus = ~0ull;
static u32 buckets[NR_BUCKETS];

static size_t add_flags(char *text, size_t len, u64 value, const struct flag *flags, u32 nr)
{
	for (u32 i = 0; i < nr; i++) {
		size_t n = strlen(flags[i].name);

		if (!(value & flags[i].bit) || len + n + 2 > TEXT_BYTES)
			continue;
		if (len)
			text[len++] = '|';
		memcpy(text + len, flags[i].name, n);
		len += n;
	}
	return len;
}

static noinline void decode_mmap(const struct pt_regs *regs)
{
	char text[TEXT_BYTES];
	size_t len = add_flags(text, 0, regs->rdx, prot_flags, ARRAY_SIZE(prot_flags));

	len = add_flags(text, len, regs->r10, map_flags, ARRAY_SIZE(map_flags));
	text[len] = '\0';
	asm volatile("" : : "r"(text) : "memory"); /* keeps the compiler from dropping the text */
	if (READ_ONCE(prints_calls))
		printk("mmap %s\n", text);
}

static void (*const decoders[NR_ROWS])(const struct pt_regs *regs) = { [NR_MMAP] = decode_mmap };

static noinline void legoos_call_enter(struct legoos_thread *of, const struct pt_regs *regs)
{
	u64 nr = regs->orig_rax;

	if (unlikely(nr >= NR_ROWS))
		return;
	if (decoders[nr])
		decoders[nr](regs);
	of->rows[nr].nr_calls++;
	of->start_ns = legoos_clock();
}

static noinline void legoos_call_exit(struct legoos_thread *of, const struct pt_regs *regs)
{
	u64 nr = regs->orig_rax;

	if (unlikely(nr >= NR_ROWS))
		return;
	of->rows[nr].ns += legoos_clock() - of->start_ns;
	if ((long)regs->rax < 0)
		of->rows[nr].nr_errors++;
}

/* Addresses outside the text count in the last bucket. */
static u32 *bucket_of(u64 pc)
{
	return &buckets[min((pc - (u64)_stext) >> BUCKET_SHIFT, (u64)NR_BUCKETS - 1)];
}

static noinline void legoos_tick(const struct pt_regs *regs)
{
	if (!READ_ONCE(samples_on) || user_mode(regs))
		return;
	if (!(READ_ONCE(sampled_cpus) & BIT(smp_processor_id())))
		return;
	__atomic_fetch_add(bucket_of(instruction_pointer(regs)), 1, __ATOMIC_RELAXED);
}

static struct pt_regs regs;

static noinline void nothing(void)
{
	barrier();
}

static void a_call(void)
{
	legoos_call_enter(&thread, &regs);
	barrier();
	legoos_call_exit(&thread, &regs);
}

static void a_sample(void)
{
	legoos_tick(&regs);
}

static void time_events(const char *name, void (*event)(void))
{
	unsigned long flags = local_irq_save();
	u64 start = rdtsc();

	for (int i = 0; i < NR_EVENTS; i++)
		event();
	start = rdtsc() - start;
	local_irq_restore(flags);
	printk("bench: legoos_%s %lu %d\n", name, (unsigned long)start, NR_EVENTS);
}

SELFTEST(bench, legoos)
{
	time_events("nothing", nothing);
	regs.orig_rax = NR_GETPPID;
	time_events("strace", a_call);
	EXPECT_EQ(thread.rows[NR_GETPPID].nr_calls, NR_EVENTS);
	EXPECT_EQ(thread.rows[NR_GETPPID].nr_errors, 0);
	regs.rax = -1;
	time_events("strace_failing", a_call);
	EXPECT_EQ(thread.rows[NR_GETPPID].nr_errors, NR_EVENTS);
	regs = (struct pt_regs){ .orig_rax = NR_MMAP, .rdx = 3, .r10 = 0x22 };
	time_events("strace_flags", a_call);
	EXPECT_EQ(thread.rows[NR_MMAP].nr_calls, NR_EVENTS);
	regs = (struct pt_regs){ .cs = KERNEL_CS, .rip = (u64)nothing };
	time_events("sample", a_sample);
	EXPECT_EQ(*bucket_of((u64)nothing), NR_EVENTS);
}
