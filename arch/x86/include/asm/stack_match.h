/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_STACK_MATCH_H
#define ASM_STACK_MATCH_H

/*
 * Tells whether stack_walk() would find the same chain again, for less work than a walk. The chain
 * is from a replayable walk (enum profile_stack_replay) of the same task in the same program (see
 * profile_task_changed()). The same instruction was hit in the same mode, so both chains have a
 * user part, or neither does. A false "no" is always safe: it costs a walk.
 *
 * Called with interrupts off, on the CPU that was hit. No access here can fault. Inlined, because
 * every instruction counts.
 */

#include <asm/page.h>
#include <asm/stacktrace.h>
#include <asm/tlb.h>

/*
 * Compares the kernel part of a PROFILE_STACK_REPLAYABLE chain; the caller compares the user part.
 * The kernel's stack pointer is valid, so frames are not compared with it.
 */
static __always_inline bool stack_matches_kernel(const struct pt_regs *regs, const u64 *pcs, u32 nr)
{
	u64 fp = regs->rbp, outermost = outermost_frame(current);

	if (fp < (u64)current->kernel_stack)
		return false;
	for (const u64 *last = pcs + nr - 1; pcs != last;) {
		const struct stack_frame *frame = (const struct stack_frame *)fp;

		/*
		 * The frame is on the stack, so it can be read, aligned or not. Each is above the
		 * last.
		 */
		if (fp >= outermost || frame->ret != *++pcs || frame->caller <= fp)
			return false;
		fp = frame->caller;
	}
	return fp == outermost;
}

/*
 * Compares the innermost nr addresses of any chain, all of the kernel, with the stack of the
 * running function. Returns the frame behind them, or NULL if one differs. A return address that a
 * walk has found leads into a function of the kernel that has a frame. So the next frame can be
 * read, without checks, if the address matches.
 */
static __always_inline const struct stack_frame *stack_frame_behind(const struct pt_regs *regs,
								    const u64 *pcs, u32 nr)
{
	const struct stack_frame *frame = (const struct stack_frame *)regs->rbp;

	if (regs->rip != *pcs)
		return NULL;
	for (s64 i = 1 - (s64)nr; i; i++) {
		if (frame->ret != pcs[nr + i])
			return NULL;
		frame = (const struct stack_frame *)frame->caller;
	}
	return frame;
}

static __always_inline bool stack_matches_callers(const struct pt_regs *regs, const u64 *pcs,
						  u32 nr)
{
	return stack_frame_behind(regs, pcs, nr);
}

/* As stack_matches_kernel(), for registers of the running function. task: current. */
static __always_inline bool stack_matches_here(const struct task *task, const struct pt_regs *regs,
					       const u64 *pcs, u32 nr)
{
	return (u64)stack_frame_behind(regs, pcs, nr) == outermost_frame(task);
}

/* As stack_matches_kernel(), for a chain that is STACK_FRAMELESS_*. */
static inline bool stack_matches_frameless(const struct pt_regs *regs, const u64 *pcs, u32 nr,
					   enum profile_stack_replay replayable)
{
	const u64 *words = (const u64 *)regs->rsp;

	if (regs->rsp - (u64)current->kernel_stack > KERNEL_STACK_SIZE - 2 * sizeof(*words))
		return false;
	if (words[replayable == PROFILE_STACK_FRAMELESS_1] != pcs[1])
		return false;
	if (replayable == PROFILE_STACK_FRAMELESS_1 && pc_in_text(words[0]))
		return false;
	return stack_matches_kernel(regs, pcs + 1, nr - 1);
}

/*
 * Pages of the user's stack that a walk has read, with their addresses in the kernel. Valid for one
 * generation of the TLB. They are found by page number and by the color of the mm, so that a few
 * processes that take turns, with stacks at the same addresses, do not overwrite each other's.
 * Interrupts are off while they are used.
 *
 * An NMI may interrupt a walk between its check of a window and its use. So do_nmi() puts back the
 * windows that it found. It may also find a window half written: that one has generation 0, which
 * no TLB has.
 */
#define NR_STACK_WINDOWS 8

struct stack_window {
	u64 generation;
	u64 page;
	u64 to_kernel; /* to be added to a user address */
} __aligned(32);       /* a power of two, so that the index is a shift */

struct stack_windows {
	struct stack_window by_page[NR_STACK_WINDOWS];
};

DECLARE_PER_CPU(struct stack_windows, stack_windows);

/* Returns false during a context switch or an execve, when another task's memory is loaded. */
bool stack_is_of_loaded_mm(void);

static __always_inline struct stack_window *stack_window_of(u64 addr)
{
	u64 at = (addr >> PAGE_SHIFT) + 2 * this_cpu_read(tlb_generation);

	return this_cpu_ptr(&stack_windows.by_page[at % NR_STACK_WINDOWS]);
}

/*
 * A path: where a walk that did not only follow frame pointers found the return addresses on the
 * user's stack, and which. The same registers lead along the same path, as long as the words there
 * are the same. A path begins at the interrupted function or at its caller, and then serves all
 * instructions of the interrupted function.
 */
#define LOG2_NR_STACK_PATHS 8
#define STACK_PATH_SLOTS    22

/* The address of sp in the direct map. It is valid for one generation of the TLB. */
struct stack_place {
	u64 generation; /* 0: not known */
	const char *sp;
};

struct stack_path {
	u64 pc, sp, fp; /* of its first function */
	/* By color, as a few processes that take turns may have the same path. */
	struct stack_place places[TLB_NR_COLORS];
	bool needs_fp;		     /* else any fp leads along the path */
	u8 nr;			     /* of functions, this one included; 0: no path */
	u8 nr_on_page;		     /* nr if the return addresses are on the page of sp, else 0 */
	u8 end;			     /* enum profile_stack_truncation */
	u16 slots[STACK_PATH_SLOTS]; /* bytes above sp; each is above the last */
	u64 pcs[STACK_PATH_SLOTS];
};

/*
 * Behind the paths are those that NMIs have found. An NMI follows the others, too, but changes
 * none. NULL: only the two below.
 */
DECLARE_PER_CPU(struct stack_path *, stack_paths);
DECLARE_PER_CPU(struct stack_path[2], only_stack_paths); /* outside and inside an NMI */

/* Of 32 bits: a stack is not as large, and a longer factor takes an instruction more. */
static __always_inline u32 stack_path_hash(u64 pc, u64 sp)
{
	return (u32)(pc + sp) * 0x9e3779b1;
}

/* Returns where a path is, if it was not found in an NMI. */
static __always_inline struct stack_path *stack_path_at(u64 pc, u64 sp)
{
	struct stack_path *paths = this_cpu_read(stack_paths);
	u32 hash = stack_path_hash(pc, sp);

	return likely(paths) ? &paths[hash >> (32 - LOG2_NR_STACK_PATHS)] :
			       this_cpu_ptr(&only_stack_paths[0]);
}

static __always_inline bool stack_path_begins_at(const struct stack_path *path, u64 pc, u64 sp,
						 u64 fp)
{
	return path->pc == pc && path->sp == sp && (path->fp == fp || !path->needs_fp);
}

/* Compares the callers of a path of nr functions. sp: in the direct map; they are on its page. */
static __always_inline bool stack_has_callers(const struct stack_path *path, const char *sp,
					      const u64 *pcs, u64 nr)
{
	const u16 *slots = path->slots - 1 + nr;
	s64 i = 1 - (s64)nr;

	if (!i)
		return true;
	do {
		if (unlikely(*(const u64 *)(sp + slots[i]) != pcs[nr + i]))
			return false;
	} while (++i);
	return true;
}

/* For stack_matches_path(): a path that begins there, but whose place is not known. */
bool stack_matches_path_anew(struct stack_path *path, const u64 *pcs, u64 nr,
			     enum profile_stack_truncation end);
/* For stack_matches_path(): another path. */
bool stack_matches_path_slow(const struct pt_regs *regs, const u64 *pcs, u64 nr,
			     enum profile_stack_truncation end);

/*
 * Compares the user part of a PROFILE_STACK_PATH chain: these addresses, and why it ends there.
 * Returns false also if the path is not known any more.
 */
static __always_inline bool stack_matches_path(const struct pt_regs *regs, const u64 *pcs, u64 nr,
					       enum profile_stack_truncation end)
{
	struct stack_path *path = stack_path_at(regs->rip, regs->rsp);

	if (likely(stack_path_begins_at(path, regs->rip, regs->rsp, regs->rbp)) &&
	    likely(path->nr_on_page == nr)) {
		u64 generation = this_cpu_read(tlb_generation);
		const struct stack_place *place = &path->places[generation % TLB_NR_COLORS];

		if (likely(place->generation == generation))
			return path->end == end && regs->rip == *pcs &&
			       stack_has_callers(path, place->sp, pcs, nr);
		return stack_matches_path_anew(path, pcs, nr, end);
	}
	return stack_matches_path_slow(regs, pcs, nr, end);
}

/* Returns whether a chain ends, and for this reason, at a frame that is_user_frame(). */
bool stack_ends_at(u64 fp, enum profile_stack_truncation end);

/* The largest frame that a walk accepts. */
#define USER_MAX_FRAME (1UL << 20) /* bytes */

/* Returns whether a frame can be at fp. low: the stack pointer, or the end of the frame before. */
static __always_inline bool is_user_frame(u64 fp, u64 low)
{
	return fp - low <= USER_MAX_FRAME && fp % sizeof(u64) == 0 && fp < TASK_SIZE - sizeof(u64);
}

/* Compares the user part, whose registers are regs: these addresses, and why it ends there. */
static __always_inline bool stack_matches_user(const struct pt_regs *regs, const u64 *pcs, u32 nr,
					       enum profile_stack_truncation end_reason)
{
	const u64 *last = pcs + nr - 1;
	u64 fp = regs->rbp, low = regs->rsp;

	if (unlikely(regs->rip != *pcs))
		return false;
	if (nr == 1)
		return is_user_frame(fp, low) ? stack_ends_at(fp, end_reason) :
						end_reason == PROFILE_STACK_TRUNCATED_USER_FRAME;
	do {
		const struct stack_window *window = stack_window_of(fp);
		u64 to_kernel = window->to_kernel;
		/* The highest address at which a whole frame fits on the page, aligned or not. */
		u64 end = window->page + PAGE_SIZE - sizeof(struct stack_frame);

		if (unlikely(window->generation != this_cpu_read(tlb_generation)) ||
		    unlikely(fp - window->page > PAGE_SIZE - sizeof(struct stack_frame)) ||
		    unlikely(fp - low > USER_MAX_FRAME))
			return false;
		do {
			const struct stack_frame *frame = (const void *)(fp + to_kernel);

			if (unlikely(frame->ret != *++pcs))
				return false;
			low = fp + sizeof(*frame);
			fp = READ_ONCE(frame->caller);
			if (unlikely(fp < low))
				break;
		} while (pcs != last && fp <= end);
	} while (pcs != last);
	if (!fp)
		return end_reason == PROFILE_STACK_WHOLE;
	return is_user_frame(fp, low) ? stack_ends_at(fp, end_reason) :
					end_reason == PROFILE_STACK_TRUNCATED_USER_FRAME;
}

#endif
