// SPDX-License-Identifier: BSD-2-Clause
/* Walks intact, broken and vanishing stacks, and checks the sampler's results. */

#include <lego/selftest.h>

#include "../../kernel/profile/points/points.h"
#include "../../kernel/profile/samples/samples.h"
#include "sleep.h"
#include "test_mm.h"

#include <asm/desc.h>
#include <asm/stacktrace.h>
#include <lego/kallsyms.h>
#include <lego/time.h>
#include <lego/uaccess.h>

#define MAX_PCS 64

#ifdef CONFIG_PROFILE_CALLCHAIN
#define OFF_RFLAGS BIT(1) /* interrupts off */

static struct {
	u64 pcs[MAX_PCS];
	struct {
		u32 nr_kernel, nr_user, truncated;
	} walk;
} trail;

static void walk(const struct pt_regs *regs, u32 max)
{
	unsigned long flags = local_irq_save();
	struct profile_stack_walk walk;

	memset(&trail, 0, sizeof(trail));
	walk = stack_walk(regs, trail.pcs, max);
	trail.walk.nr_kernel = walk.counts & 0xff;
	trail.walk.nr_user = walk.counts >> 8 & 0xff;
	trail.walk.truncated = walk.counts >> 16 & 0xff;
	local_irq_restore(flags);
}

static const char *name_at(u32 i)
{
	const char *name = kallsyms_lookup(trail.pcs[i] - (i != 0), NULL, NULL);

	return name ? name : "none";
}

/*
 * Returns the index of a function in the trail, or -1. Compares prefixes, since the compiler adds
 * suffixes to the names of clones.
 */
static int place_of(const char *function)
{
	for (u32 i = 0; i < trail.walk.nr_kernel; i++) {
		if (!strncmp(name_at(i), function, strlen(function)))
			return i;
	}
	return -1;
}

/* Walks the stack as if an interrupt had hit this function. */
static noinline void walk_from_here(u32 max)
{
	struct pt_regs regs = { .cs = KERNEL_CS, .rflags = OFF_RFLAGS };

	asm volatile("leaq 1f(%%rip), %0\n"
		     "1:	movq %%rsp, %1\n"
		     "movq %%rbp, %2"
		     : "=r"(regs.rip), "=m"(regs.rsp), "=m"(regs.rbp));
	walk(&regs, max);
}

static noinline void recurse(int depth)
{
	if (depth)
		recurse(depth - 1);
	else
		walk_from_here(MAX_PCS);
	barrier(); /* no tail call */
}

static noinline void middle(void)
{
	recurse(3);
	barrier();
}

SELFTEST(heatmap, chain_of_callers)
{
	middle();
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_WHOLE);
	EXPECT_EQ(trail.walk.nr_user, 0);
	EXPECT_EQ(place_of("walk_from_here"), 0);
	EXPECT_EQ(place_of("recurse"), 1);
	EXPECT_EQ(place_of("middle"), 5);
	EXPECT_EQ(place_of("selftest_heatmap_chain_of_callers"), 6);
	EXPECT(place_of("selftest_run") > 6);
}

SELFTEST(heatmap, chain_longer_than_the_buffer)
{
	for (u32 max = 1; max < 5; max++) {
		walk_from_here(max);
		EXPECT_EQ(trail.walk.nr_kernel, max);
		EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_TRUNCATED_DEPTH);
	}
}

/* Walks a stack that the test has built in an array on the real stack. */
static void walk_fake(u64 *stack, u64 rip, u64 rbp)
{
	struct pt_regs regs = {
		.cs = KERNEL_CS,
		.rflags = OFF_RFLAGS,
		.rip = rip,
		.rsp = (u64)stack,
		.rbp = rbp,
	};

	walk(&regs, MAX_PCS);
}

#define EXPECT_WALK(nr, why)                          \
	do {                                          \
		EXPECT_EQ(trail.walk.nr_kernel, nr);  \
		EXPECT_EQ(trail.walk.truncated, why); \
	} while (0)

/* An address in the body of a function, behind its prologue. */
#define BODY(function) ((u64)(function) + 8)

SELFTEST(heatmap, corrupt_stacks)
{
	u64 stack[16] = { 0 }, here = BODY(middle);
	u64 frame = (u64)&stack[2];

	/* One valid frame, whose caller is 0. */
	stack[2] = 0;
	stack[3] = here;
	walk_fake(stack, here, frame);
	EXPECT_WALK(2, PROFILE_STACK_TRUNCATED_STACK);
	/*
	 * The caller's frame: the frame itself, below it, misaligned, below and above the stack,
	 * not canonical, at the end of memory.
	 */
	u64 bad[] = {
		frame,
		(u64)&stack[0],
		frame + 12,
		(u64)current->kernel_stack - 16,
		(u64)current->kernel_stack + KERNEL_STACK_SIZE - 8,
		(u64)current->kernel_stack + KERNEL_STACK_SIZE + 4096,
		0xdead000000000000,
		~0UL,
	};

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		stack[2] = bad[i];
		walk_fake(stack, here, frame);
		EXPECT_WALK(2, PROFILE_STACK_TRUNCATED_STACK);
		/* The same values in rbp. */
		if (bad[i] == frame || bad[i] == (u64)&stack[0])
			continue;
		walk_fake(stack, here, bad[i]);
		EXPECT_WALK(1, PROFILE_STACK_TRUNCATED_STACK);
	}
	/* The frame is below the stack pointer. */
	walk_fake(stack + 4, here, frame);
	EXPECT_WALK(1, PROFILE_STACK_TRUNCATED_STACK);
	/*
	 * A return address in data or in user code; a stack or an instruction pointer that is not
	 * mapped.
	 */
	stack[2] = (u64)&stack[8];
	stack[3] = (u64)&trail;
	walk_fake(stack, here, frame);
	EXPECT_WALK(1, PROFILE_STACK_TRUNCATED_TEXT);
	stack[3] = 0x401000;
	walk_fake(stack, here, frame);
	EXPECT_WALK(1, PROFILE_STACK_TRUNCATED_TEXT);
	walk_fake((u64 *)0x10, here, frame);
	EXPECT_WALK(1, PROFILE_STACK_TRUNCATED_STACK);
	walk_fake(NULL, 0xffffc90000000000, frame);
	EXPECT_WALK(1, PROFILE_STACK_TRUNCATED_TEXT);
	/* A walk ends at entry code. */
	walk_fake(stack, (u64)_stext + 3, frame);
	EXPECT_WALK(1, PROFILE_STACK_TRUNCATED_ENTRY);
}

/*
 * Two functions. The first has no frame at its first three instructions and at its last one; the
 * second ends with a tail call. The directives say so, as the compiler does.
 */
asm(".pushsection .text\n"
    ".type heatmap_test_code, @function\n"
    "heatmap_test_code:\n"
    ".cfi_startproc\n"
    "nop; push %rbp\n"
    ".cfi_def_cfa_offset 16\n"
    "mov %rsp, %rbp\n"
    ".cfi_def_cfa_register %rbp\n"
    "nop; pop %rbp\n"
    ".cfi_def_cfa %rsp, 8\n"
    "ret\n"
    ".cfi_def_cfa %rbp, 16\n"
    "pop %rbp\n"
    ".cfi_def_cfa %rsp, 8\n"
    ".byte 0xe9; .long do_syscall_64 - . - 4; nop; nop\n"
    ".cfi_endproc\n"
    ".popsection");
extern const u8 heatmap_test_code[];

SELFTEST(heatmap, functions_without_a_frame)
{
	u64 stack[16] = { 0 }, start = (u64)heatmap_test_code;

	/* The frame of the caller is at stack[4]. */
	stack[0] = BODY(middle);
	stack[5] = BODY(recurse);
	walk_fake(stack, start, (u64)&stack[4]); /* nop, before the frame */
	EXPECT_EQ(trail.walk.nr_kernel, 3);
	EXPECT_EQ(trail.pcs[1], BODY(middle));
	walk_fake(stack, start + 1, (u64)&stack[4]); /* push */
	EXPECT_EQ(trail.walk.nr_kernel, 3);
	EXPECT_EQ(trail.pcs[1], BODY(middle));
	EXPECT_EQ(trail.pcs[2], BODY(recurse));
	walk_fake(stack, start + 7, (u64)&stack[4]); /* ret */
	EXPECT_EQ(trail.pcs[1], BODY(middle));
	walk_fake(stack, start + 9, (u64)&stack[4]); /* jmp to another function */
	EXPECT_EQ(trail.pcs[1], BODY(middle));
	stack[0] = (u64)&stack[4];
	stack[1] = BODY(walk_from_here);
	walk_fake(stack, start + 2, (u64)&stack[4]); /* mov */
	EXPECT_EQ(trail.walk.nr_kernel, 3);
	EXPECT_EQ(trail.pcs[1], BODY(walk_from_here));
	EXPECT_EQ(trail.pcs[2], BODY(recurse));
	walk_fake(stack, start + 5,
		  (u64)&stack[4]); /* the function has its frame, so the top of the stack is data */
	EXPECT_EQ(trail.walk.nr_kernel, 2);
	EXPECT_EQ(trail.pcs[1], BODY(recurse));
}

/* A leaf function without a frame: the return address is on top of the stack. */
static noinline u64 leaf(u64 a)
{
	return a * 3 + 1;
}

SELFTEST(heatmap, leaf_functions)
{
	u64 stack[16] = { 0 };

	EXPECT_EQ(leaf(2), 7);
	stack[0] = BODY(middle);
	stack[5] = BODY(recurse);
	for (u64 pc = (u64)leaf; *(u8 *)pc != 0xc3; pc++) {
		walk_fake(stack, pc, (u64)&stack[4]);
		EXPECT_EQ(trail.walk.nr_kernel, 3);
		EXPECT_EQ(trail.pcs[1], BODY(middle));
	}
	/* Between pushf and pop the flags are on top of the stack. */
	stack[1] = stack[0];
	stack[0] = 0x202;
	walk_fake(stack, (u64)leaf, (u64)&stack[4]);
	EXPECT_EQ(trail.pcs[1], BODY(middle));
}

static bool spin_over;
static atomic_t spinning;

static noinline void spin_here(void)
{
	atomic_inc(&spinning);
	while (!READ_ONCE(spin_over))
		cpu_relax();
}

static int spin(void *unused)
{
	spin_here();
	barrier();
	atomic_dec(&spinning);
	return 0;
}

static void walk_in_interrupt(void *unused)
{
	walk_from_here(MAX_PCS);
	barrier();
}

/* The chain goes on from an interrupt handler to the interrupted function. */
SELFTEST(heatmap, chain_across_an_interrupt)
{
	struct task *task;

	if (!cpu_online(1))
		return;
	WRITE_ONCE(spin_over, false);
	task = kthread_create(spin, NULL, "spinner");
	ASSERT(!IS_ERR(task));
	sched_set_affinity(task, BIT(1));
	sched_set_affinity(current, BIT(0));
	task_wake(task);
	while (!atomic_read(&spinning))
		sched_yield();
	smp_call_mask(BIT(1), walk_in_interrupt, NULL);
	WRITE_ONCE(spin_over, true);
	sched_set_affinity(current, ~0UL);
	while (atomic_read(&spinning))
		sched_yield();
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_WHOLE);
	EXPECT(place_of("walk_in_interrupt") > 0);
	EXPECT(place_of("do_irq") > place_of("walk_in_interrupt"));
	EXPECT(place_of("spin_here") > place_of("do_irq"));
}

#define USER_FRAMES 40
#define USER_RET    0x401000UL

/*
 * Writes frames that cross into a second page. The caller of the last frame is 0. Returns the
 * first.
 */
static u64 make_user_frames(u64 base)
{
	u64 first = base + PAGE_SIZE - 16 * USER_FRAMES / 2;

	for (u64 i = 0; i < USER_FRAMES; i++) {
		u64 frame = first + 16 * i;
		u64 words[2] = { i + 1 < USER_FRAMES ? frame + 16 : 0, USER_RET + i };

		EXPECT_EQ(copy_to_user((void *)frame, words, sizeof(words)), 0);
	}
	return first;
}

static void walk_user(u64 rsp, u64 rbp, u32 max)
{
	struct pt_regs regs = { .cs = USER_CS, .rip = USER_RET, .rsp = rsp, .rbp = rbp };

	walk(&regs, max);
}

/* Maps the page that the frames return to. The first read makes the page present. */
static void make_user_code(struct mm *mm, unsigned int prot)
{
	u64 page = ALIGN_DOWN(USER_RET, PAGE_SIZE);
	u8 byte;

	EXPECT_EQ(map_fixed(mm, page, PAGE_SIZE), 0);
	EXPECT_EQ(copy_from_user(&byte, (void *)page, 1), 0);
	EXPECT_EQ(mm_protect(mm, page, PAGE_SIZE, prot), 0);
	EXPECT_EQ(copy_from_user(&byte, (void *)page, 1), 0);
}

SELFTEST(heatmap, user_stacks)
{
	struct mm *mm = mm_alloc();
	u64 first, bad[] = { 8, 0xffff888000000000, ~7UL, TASK_SIZE - 8, USER_BASE + 0x100000 };

	ASSERT(mm);
	EXPECT_EQ(map_fixed(mm, USER_BASE, 2 * PAGE_SIZE), 0);
	set_mm(mm);
	first = make_user_frames(USER_BASE);
	/* An address in memory that is not executable is no caller, and the walk ends there. */
	walk_user(first, first, MAX_PCS);
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_TRUNCATED_USER_FRAME);
	EXPECT_EQ(trail.walk.nr_user, 1);
	make_user_code(mm, RW);
	walk_user(first, first, MAX_PCS);
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_TRUNCATED_USER_FRAME);
	walk_user(first + 16 * (USER_FRAMES - 1), first + 16 * (USER_FRAMES - 1), MAX_PCS);
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_TRUNCATED_USER_FRAME);
	EXPECT_EQ(trail.walk.nr_user, 1);
	make_user_code(mm, PROT_READ | PROT_EXEC);
	walk_user(first, first, MAX_PCS);
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_WHOLE);
	EXPECT_EQ(trail.walk.nr_user, USER_FRAMES + 1);
	for (u32 i = 0; i < USER_FRAMES; i++)
		EXPECT_EQ(trail.pcs[i + 1], USER_RET + i);
	walk_user(first, first, 10);
	EXPECT_EQ(trail.walk.nr_user, 10);
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_TRUNCATED_DEPTH);
	/* Code without frame pointers leaves any value in rbp. */
	walk_user(first, 0, MAX_PCS);
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_TRUNCATED_USER_FRAME);
	walk_user(first, first + 4, MAX_PCS);
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_TRUNCATED_USER_FRAME);
	walk_user(first + 16, first, MAX_PCS);
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_TRUNCATED_USER_FRAME);
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		walk_user(bad[i], bad[i], MAX_PCS);
		EXPECT(trail.walk.truncated >= PROFILE_STACK_TRUNCATED_USER_FRAME);
		EXPECT_EQ(trail.walk.nr_user, 1);
	}
	/* The second page is made unreadable; then both are unmapped. */
	EXPECT_EQ(mm_protect(mm, USER_BASE + PAGE_SIZE, PAGE_SIZE, 0), 0);
	walk_user(first, first, MAX_PCS);
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_TRUNCATED_USER_MEMORY);
	EXPECT_EQ(trail.walk.nr_user, USER_FRAMES / 2 + 1);
	EXPECT_EQ(mm_unmap(mm, USER_BASE, 2 * PAGE_SIZE), 0);
	walk_user(first, first, MAX_PCS);
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_TRUNCATED_USER_MEMORY);
	/* The task has no address space any more. */
	leave_mm(mm);
	walk_user(first, first, MAX_PCS);
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_TRUNCATED_USER_MEMORY);
}

/* A walk reads a stack again if it was unmapped while another address space was loaded. */
SELFTEST(heatmap, user_stack_unmapped_while_away)
{
	struct mm *mm = mm_alloc(), *other = mm_alloc();
	cpumask_t cpus = stay_on_cpu();
	u64 first;

	ASSERT(mm && other);
	EXPECT_EQ(map_fixed(mm, USER_BASE, 2 * PAGE_SIZE), 0);
	set_mm(mm);
	make_user_code(mm, PROT_READ | PROT_EXEC);
	first = make_user_frames(USER_BASE);
	walk_user(first, first, MAX_PCS);
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_WHOLE);
	set_mm(other);
	walk_user(first, first, MAX_PCS);
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_TRUNCATED_USER_MEMORY);
	set_mm(mm);
	walk_user(first, first, MAX_PCS);
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_WHOLE);
	set_mm(other);
	EXPECT_EQ(mm_unmap(mm, USER_BASE, 2 * PAGE_SIZE), 0);
	set_mm(mm);
	walk_user(first, first, MAX_PCS);
	EXPECT_EQ(trail.walk.truncated, PROFILE_STACK_TRUNCATED_USER_MEMORY);
	set_mm(other);
	mm_put(mm);
	leave_mm(other);
	sched_set_affinity(current, cpus);
}

#define NR_ROUNDS 100

static struct mm *torn_mm;
static atomic_t tearing;
static u64 nr_whole, nr_truncated; /* walks */

/* Unmaps the frames and maps them again, and frees address spaces with their page tables. */
static int tear(void *unused)
{
	u64 give_up_ns = clock_monotonic_ns() + PATIENCE_NS;

	for (int i = 0; i < NR_ROUNDS || !READ_ONCE(nr_whole); i++) {
		if (clock_monotonic_ns() >= give_up_ns)
			break;
		struct mm *copy = mm_copy(torn_mm);

		EXPECT_EQ(mm_unmap(torn_mm, USER_BASE, 2 * PAGE_SIZE), 0);
		EXPECT_EQ(map_fixed(torn_mm, USER_BASE, 2 * PAGE_SIZE), 0);
		set_mm(torn_mm);
		make_user_frames(USER_BASE);
		set_mm(NULL);
		if (copy)
			mm_put(copy);
	}
	atomic_dec(&tearing);
	return 0;
}

/* Every walk returns only frames that were there, or says that it is truncated. */
SELFTEST(heatmap, user_stack_unmapped_while_walked)
{
	struct task *task;
	u64 first;

	nr_whole = nr_truncated = 0;
	torn_mm = mm_alloc();
	ASSERT(torn_mm);
	EXPECT_EQ(map_fixed(torn_mm, USER_BASE, 2 * PAGE_SIZE), 0);
	set_mm(torn_mm);
	make_user_code(torn_mm, PROT_READ | PROT_EXEC);
	first = make_user_frames(USER_BASE);
	atomic_inc(&tearing);
	task = kthread_create(tear, NULL, "tear");
	ASSERT(!IS_ERR(task));
	task_wake(task);
	while (atomic_read(&tearing)) {
		walk_user(first, first, MAX_PCS);
		for (u32 i = 1; i < trail.walk.nr_user; i++)
			EXPECT_EQ(trail.pcs[i], USER_RET + i - 1);
		if (trail.walk.truncated == PROFILE_STACK_WHOLE)
			WRITE_ONCE(nr_whole, nr_whole + 1);
		else
			nr_truncated++;
		cond_resched();
	}
	EXPECT(nr_whole > 0);
	printk("# %lu whole, %lu cut\n", nr_whole, nr_truncated);
	leave_mm(torn_mm);
}
#endif

#ifdef CONFIG_PROFILE_HEATMAP
static struct view view;
static bool burn_over;

static noinline void burn(void)
{
	u64 end = clock_monotonic_ns() + 100 * NSEC_PER_MSEC;

	while (clock_monotonic_ns() < end)
		cpu_relax();
}

static noinline void burner(void)
{
	burn();
	barrier();
}

static const struct view_row *row_of(const char *name)
{
	u64 start = 0, size;

	kallsyms_find(name, &start, &size);
	for (u32 i = 0; i < view.nr_rows; i++) {
		if (view.rows[i].keys[0] == start)
			return &view.rows[i];
	}
	return NULL;
}

static void expect_stats_add_up(void)
{
	unsigned int cpu;

	samples_pin();
	for_each_online_cpu(cpu) {
		const struct sample_stats *stats = samples_stats(cpu);
		u64 nr = stats->nr_stored;

		for (u32 i = 0; i < NR_SAMPLE_DROPS; i++)
			nr += stats->nr_dropped[i];
		EXPECT_EQ(nr + stats->nr_unread, stats->nr_attempts);
	}
	samples_unpin();
}

static bool burner_is_seen(void)
{
	const struct view_row *row;

	burner();
	samples_pin();
	view_functions(&view, &(struct sample_scope){ 0 });
	samples_unpin();
	row = row_of("burn");
	return row && row->nr_inclusive >= 3;
}

/* Every sample in burn() is also one of its caller burner(), which has a few of its own. */
SELFTEST(heatmap, samples_find_a_busy_function)
{
	const struct view_row *row;

	sample_reset();
	ASSERT(becomes(burner_is_seen()));
	expect_stats_add_up();
	if (!IS_ENABLED(CONFIG_PROFILE_CALLCHAIN))
		return;
	row = row_of("burner");
	ASSERT(row);
	EXPECT_EQ(row->nr_inclusive, row_of("burn")->nr_inclusive + row->nr);
}

static int keep_resetting(void *unused)
{
	while (!READ_ONCE(burn_over)) {
		points_toggle(); /* patches text */
		sample_reset();
		cond_resched();
	}
	WRITE_ONCE(burn_over, false);
	return 0;
}

/* The counts add up while another thread resets samples and patches text. */
SELFTEST(heatmap, reset_and_read_while_it_runs)
{
	struct task *task = kthread_create(keep_resetting, NULL, "resetter");
	u64 end = clock_monotonic_ns() + 500 * NSEC_PER_MSEC;

	ASSERT(!IS_ERR(task));
	task_wake(task);
	while (clock_monotonic_ns() < end) {
		expect_stats_add_up();
		cond_resched();
	}
	WRITE_ONCE(burn_over, true);
	while (READ_ONCE(burn_over))
		sched_yield();
	expect_stats_add_up();
}
#endif
