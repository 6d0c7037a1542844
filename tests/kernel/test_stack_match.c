// SPDX-License-Identifier: BSD-2-Clause
/*
 * Changes the stack word by word. Whenever <asm/stack_match.h> says that a chain matches, a walk
 * must find the same chain. An unchanged chain must match.
 */

#include <lego/selftest.h>

#ifdef CONFIG_PROFILE_CALLCHAIN

#include "test_mm.h"

#include <asm/desc.h>
#include <asm/stack_match.h>
#include <lego/string.h>
#include <lego/uaccess.h>

#ifndef CONFIG_PROFILE_FUNCTIONS
/* Moves these tests, and those that are linked later, behind the first 2 MiB of text. */
asm(".pushsection .text\n"
    ".type large_text, @function\n"
    "large_text: .fill 0x200000, 1, 0xcc\n"
    ".size large_text, . - large_text\n"
    ".popsection");

SELFTEST(stack_match, text_may_be_large)
{
	EXPECT((u64)_etext - (u64)_text > 2 << 20);
}
#endif

#define MAX_PCS	    64
#define NR_FRAMES   6
#define FRAME_BYTES 48

struct found {
	u64 counts;
	u64 pcs[MAX_PCS];
};

static struct found before, now;
static u64 nr_looks, nr_wrong;

static void find(const struct pt_regs *regs, struct found *found)
{
	memset(found, 0, sizeof(*found));
	found->counts = stack_walk(regs, found->pcs, MAX_PCS).counts;
}

static enum profile_stack_replay replay_of(u64 counts)
{
	return counts >> 24;
}

/* Compares regs with the chain in `before`. Called with interrupts off. */
static bool is_match(const struct pt_regs *regs)
{
	u32 nr_kernel = before.counts & 0xff, nr_user = before.counts >> 8 & 0xff;
	enum profile_stack_replay replayable = replay_of(before.counts);

	if (replayable != PROFILE_STACK_REPLAYABLE &&
	    !stack_matches_frameless(regs, before.pcs, nr_kernel, replayable))
		return false;
	if (replayable == PROFILE_STACK_REPLAYABLE && nr_kernel &&
	    !stack_matches_kernel(regs, before.pcs, nr_kernel))
		return false;
	return !nr_user || stack_matches_user(regs, before.pcs + nr_kernel, nr_user,
					      before.counts >> 16 & 0xff);
}

static void look(const struct pt_regs *regs)
{
	bool matches = is_match(regs);

	find(regs, &now);
	nr_looks++;
	/* The top byte may differ: it says how the chain can be compared, and is not part of it. */
	if (matches && (memcmp(now.pcs, before.pcs, sizeof(now.pcs)) ||
			(u32)(now.counts ^ before.counts) << 8))
		nr_wrong++;
}

/* Returns the i-th replacement for a word of a frame; the word itself after the last one. */
static u64 value_near(u64 word, u32 i)
{
	static const s64 steps[] = { -16, -8, -1, 1, 8, 16, 4096, 1 << 20 };
	const u64 values[] = { 0,	   1,	      ~0ull,
			       1ull << 63, TASK_SIZE, (u64)current->kernel_stack,
			       (u64)find };

	if (i < ARRAY_SIZE(steps))
		return word + steps[i];
	i -= ARRAY_SIZE(steps);
	return i < ARRAY_SIZE(values) ? values[i] : word;
}

#define for_each_value(value, word) \
	for (u32 i_ = 0; ((value) = value_near(word, i_)) != (word); i_++)

static void look_with_other_frame(const struct pt_regs *regs)
{
	struct pt_regs other = *regs;

	for_each_value(other.rbp, regs->rbp)
		look(&other);
}

static void look_with_other_stack(const struct pt_regs *regs)
{
	struct pt_regs other = *regs;

	for_each_value(other.rsp, regs->rsp)
		look(&other);
}

static void spoil_words(const struct pt_regs *regs, u64 *words)
{
	u64 value;

	for (u32 i = 0; i < 2; i++) {
		u64 word = words[i];

		for_each_value(value, word) {
			words[i] = value;
			look(regs);
		}
		words[i] = word;
	}
}

/*
 * Builds a stack nr_frames calls deep, as interrupted at rip with word0 and word1 on top, and
 * checks matches while each word is changed in turn.
 */
static noinline void spoil_kernel_stack(u64 rip, u64 word0, u64 word1,
					enum profile_stack_replay replayable, u32 nr_frames)
{
	u64 words[] = { word0, word1 }, *frame = __builtin_frame_address(0);
	struct pt_regs regs = { .cs = KERNEL_CS, .rip = rip, .rsp = (u64)words, .rbp = (u64)frame };
	unsigned long flags;

	if (nr_frames) {
		spoil_kernel_stack(rip, word0, word1, replayable, nr_frames - 1);
		barrier(); /* prevents a tail call */
		return;
	}
	flags = local_irq_save();
	find(&regs, &before);
	EXPECT_EQ(replay_of(before.counts), replayable);
	EXPECT(is_match(&regs));
	look_with_other_frame(&regs);
	spoil_words(&regs, words);
	/* The outermost frame belongs to the entry code, and stays. */
	while ((u64)frame != outermost_frame(current)) {
		u64 *next = (u64 *)frame[0];

		spoil_words(&regs, frame);
		frame = next;
	}
	EXPECT(is_match(&regs));
	local_irq_restore(flags);
}

SELFTEST(stack_match, kernel)
{
	u64 framed = (u64)find + 16, without = (u64)memset, start = (u64)find;

	nr_looks = nr_wrong = 0;
	spoil_kernel_stack(framed, 0, 0, PROFILE_STACK_REPLAYABLE, NR_FRAMES);
	spoil_kernel_stack(start, framed, 0, PROFILE_STACK_FRAMELESS_0, NR_FRAMES);
	spoil_kernel_stack(without, framed, 0, PROFILE_STACK_FRAMELESS_0, NR_FRAMES);
	spoil_kernel_stack(without, 2, framed, PROFILE_STACK_FRAMELESS_1, NR_FRAMES);
	EXPECT(nr_looks > 4 * 2 * NR_FRAMES * 12);
	EXPECT_EQ(nr_wrong, 0);
}

/* Maps a page of code, and frames from `stack` on in the next two pages. */
static struct mm *map_user(u64 stack, struct pt_regs *regs)
{
	struct mm *mm = mm_alloc();
	u64 code = USER_BASE, word;

	if (!mm)
		return NULL;
	EXPECT_EQ(map_fixed(mm, code, 3 * PAGE_SIZE), 0);
	EXPECT_EQ(mm_protect(mm, code, PAGE_SIZE, PROT_READ | PROT_EXEC), 0);
	set_mm(mm);
	*regs = (struct pt_regs){ .cs = USER_CS, .rip = code, .rsp = stack, .rbp = stack };
	EXPECT_EQ(get_user(word, (u64 *)code), 0);
	for (u32 i = 0; i < NR_FRAMES; i++, stack += FRAME_BYTES) {
		word = i < NR_FRAMES - 1 ? stack + FRAME_BYTES : 0;
		EXPECT_EQ(put_user(word, (u64 *)stack), 0);
		EXPECT_EQ(put_user(code + 16 * i, (u64 *)(stack + 8)), 0);
	}
	return mm;
}

static void look_at_user(const struct pt_regs *regs)
{
	unsigned long flags = local_irq_save();

	look(regs);
	local_irq_restore(flags);
}

static void spoil_user_stack(u64 stack)
{
	struct pt_regs regs;
	struct mm *mm = map_user(stack, &regs);
	u64 value, word;
	unsigned long flags;

	ASSERT(mm);
	nr_looks = nr_wrong = 0;
	flags = local_irq_save();
	find(&regs, &before);
	EXPECT_EQ(before.counts, PROFILE_STACK_COUNTS(0, 1 + NR_FRAMES, PROFILE_STACK_WHOLE,
						      PROFILE_STACK_REPLAYABLE));
	EXPECT(is_match(&regs));
	look_with_other_frame(&regs);
	look_with_other_stack(&regs);
	local_irq_restore(flags);
	for (u32 i = 0; i < 2 * NR_FRAMES; i++) {
		u64 *place = (u64 *)(stack + i / 2 * FRAME_BYTES + i % 2 * 8);

		EXPECT_EQ(get_user(word, place), 0);
		for_each_value(value, word) {
			EXPECT_EQ(put_user(value, place), 0);
			look_at_user(&regs);
		}
		EXPECT_EQ(put_user(word, place), 0);
	}
	EXPECT(nr_looks > 2 * NR_FRAMES * 12);
	EXPECT_EQ(nr_wrong, 0);
	leave_mm(mm);
}

SELFTEST(stack_match, user)
{
	spoil_user_stack(USER_BASE + PAGE_SIZE);
	/* The fourth frame is the first on its page. */
	spoil_user_stack(USER_BASE + 2 * PAGE_SIZE - 3 * FRAME_BYTES);
}

static bool is_user_match(const struct pt_regs *regs)
{
	unsigned long flags = local_irq_save();
	bool matches = is_match(regs);

	local_irq_restore(flags);
	return matches;
}

/*
 * Walks first, which fills the windows. Interrupts stay off, so that no TLB flush from another CPU
 * empties them before the comparison.
 */
static bool is_user_match_again(const struct pt_regs *regs)
{
	unsigned long flags = local_irq_save();
	bool matches;

	look(regs);
	matches = is_match(regs);
	local_irq_restore(flags);
	return matches;
}

/*
 * A chain must not match right after a fork, in another address space, or after its memory has
 * changed or was unmapped.
 */
SELFTEST(stack_match, memory_copied_or_unmapped)
{
	u64 stack = USER_BASE + PAGE_SIZE;
	struct mm *mm, *child;
	struct pt_regs regs;

	mm = map_user(stack, &regs);
	ASSERT(mm);
	look_at_user(&regs);
	before = now;
	EXPECT(is_user_match_again(&regs));
	child = mm_copy(mm);
	ASSERT(child);
	EXPECT(!is_user_match(&regs)); /* the fork flushed the TLB */
	EXPECT(is_user_match_again(&regs));
	EXPECT_EQ(put_user(1UL, (u64 *)(stack + 8)), 0); /* copies the page */
	EXPECT(!is_user_match_again(&regs));
	set_mm(child);
	EXPECT(!is_user_match(&regs));
	EXPECT(is_user_match_again(&regs)); /* the child has the old content */
	set_mm(mm);
	mm_put(child);
	EXPECT_EQ(put_user(USER_BASE, (u64 *)(stack + 8)), 0);
	EXPECT(is_user_match_again(&regs));
	EXPECT_EQ(mm_unmap(mm, stack, PAGE_SIZE), 0);
	EXPECT(!is_user_match(&regs));
	EXPECT(!is_user_match_again(&regs));
	EXPECT_EQ(now.counts >> 16, PROFILE_STACK_TRUNCATED_USER_MEMORY);
	leave_mm(mm);
}

#endif
