// SPDX-License-Identifier: BSD-2-Clause
/*
 * Walks call chains by frame pointer; this is the kernel's part. A frame is two words: the caller's
 * frame pointer, and the return address into the caller. Each frame must lie above the one before,
 * on the same stack; the walk ends otherwise. The samples and the events of the profilers use the
 * result. stacktrace_user.c continues in user code.
 *
 * An interrupted function may have no frame yet, or no longer. The return address is then at the
 * top of the stack or one word above, depending on the instruction. The instructions that make a
 * frame, and RET, are known by their opcodes, all others from a table that is made from the
 * compiler's call frame information (scripts/frameless.py).
 *
 * An interrupt or exception inside the kernel leaves a struct pt_regs between two frames. The walk
 * recognizes it by the return address of do_vector(), and continues with the interrupted code.
 *
 * Hooks of functions (<asm/function_call.h>) may replace return addresses. The replacements, and
 * the code of the hooks, lie outside of the text. So all of this is handled only where a chain
 * would end, and costs the usual walk nothing.
 */
#include "stacktrace.h"

#include <lego/bug.h>
#include <lego/mm.h>

#define OPCODE_PUSH_RBP 0x55
#define OPCODE_RET	0xc3
#define OPCODE_NOP	0x0f
#define OPCODE_CALL	0xe8
#define OPCODE_INT3	0xcc
#define MOV_RSP_RBP	0xe58948 /* three bytes */

/* scripts/frameless.py: ranges of text, minus KERNEL_VIRT, and the first one for each page. */
extern const struct frameless_range {
	u32 start, end;
} frameless_ranges[];
extern const u32 frameless_pages[];

static bool is_frameless(u64 pc)
{
	u32 at = pc - KERNEL_VIRT;
	const struct frameless_range *range = &frameless_ranges[frameless_pages[at / PAGE_SIZE]];

	while (range->end <= at)
		range++;
	return range->start <= at;
}

static bool is_mov_rsp_rbp(const u8 *code)
{
	return code[0] == (MOV_RSP_RBP & 0xff) && code[1] == (MOV_RSP_RBP >> 8 & 0xff) &&
	       code[2] == MOV_RSP_RBP >> 16;
}

/* Opcodes of instructions at which a function may have no frame. */
static const bool is_edge[256] = {
	[OPCODE_PUSH_RBP] = true, [OPCODE_RET] = true,	[MOV_RSP_RBP & 0xff] = true,
#ifdef CONFIG_PROFILE_FUNCTIONS
	[OPCODE_NOP] = true,	  [OPCODE_CALL] = true, [OPCODE_INT3] = true,
#endif
};

/*
 * Returns where the return address is if the function has no frame at this instruction;
 * PROFILE_STACK_REPLAYABLE: it has one.
 */
static noinline enum profile_stack_replay place_frameless(u64 pc, const u64 *words)
{
	const u8 *code = (const u8 *)pc;

	/* At the top of the stack, unless the flags have been pushed, or %rbp of a frame. */
	if (is_frameless(pc))
		return pc_in_text(words[0]) || pc_in_function_call(words[0]) ?
			       PROFILE_STACK_FRAMELESS_0 :
			       PROFILE_STACK_FRAMELESS_1;
	switch (code[0]) {
	case OPCODE_PUSH_RBP:
	case OPCODE_RET:
		return PROFILE_STACK_FRAMELESS_0;
	case MOV_RSP_RBP & 0xff:
		if (is_mov_rsp_rbp(code))
			return PROFILE_STACK_FRAMELESS_1;
		break;
#ifdef CONFIG_PROFILE_FUNCTIONS
	case OPCODE_NOP:
	case OPCODE_CALL:
	case OPCODE_INT3:
		if (function_is_place(pc))
			return PROFILE_STACK_FRAMELESS_0;
		break;
#endif
	}
	return PROFILE_STACK_REPLAYABLE;
}

/* Where to follow frames: the first one, and the lowest address where it may lie. */
struct frames {
	u64 fp, sp;
};

/*
 * Returns where the frame of a function that entry code has called will lie. slot: of its return
 * address, which is the only part of the frame that is used, because the chain ends there.
 */
static __always_inline struct frames outermost_frames(const u64 *slot)
{
	return (struct frames){ (u64)(slot - 1), (u64)(slot - 1) };
}

/* Adds the caller of a function without a frame. Returns false if there is no room for it. */
static __always_inline bool add_frameless(struct walker *walker, u64 pc, struct frames *frames)
{
	const u64 *words = (const u64 *)frames->sp;
	enum profile_stack_replay place = place_frameless(pc, words);
	u64 ret;

	if (place == PROFILE_STACK_REPLAYABLE)
		return true;
	words += place == PROFILE_STACK_FRAMELESS_1;
	ret = *words;
	if (pc_in_text(ret)) {
		if (walker->replayable)
			walker->replayable = place;
		return add_pc(walker, ret);
	}
	walker->replayable = PROFILE_STACK_NOT_REPLAYABLE;
	ret = stack_return_address(current, words);
	if (!pc_in_entry(ret))
		return !pc_in_function_call(*words) || add_pc(walker, ret);
	*frames = outermost_frames(words);
	return true;
}

#ifdef CONFIG_PROFILE_FUNCTIONS
extern const struct function_frameless __start_function_frameless[], __stop_function_frameless[];

/*
 * Adds the function that called the interrupted hook, and that function's caller, if the hook has
 * no frame: at its first two instructions and its last one. Returns the frames to follow.
 */
static struct frames add_function_hook(struct walker *walker, const struct pt_regs *regs)
{
	const u8 *code = (const u8 *)regs->rip;
	const u64 *words = (const u64 *)regs->rsp;
	struct frames frames = { regs->rbp, regs->rsp };
	u64 ret;

	walker->replayable = PROFILE_STACK_NOT_REPLAYABLE;
	if (is_mov_rsp_rbp(code))
		words++;
	else if (*code != OPCODE_PUSH_RBP && *code != OPCODE_RET)
		return frames;
	add_pc(walker, words[0]);
	ret = stack_return_address(current, &words[1]);
	if (pc_in_entry(ret))
		return outermost_frames(&words[1]);
	add_pc(walker, ret);
	return frames;
}

/*
 * Adds the callers of an instruction of function_call.S at which frames are not complete. Returns
 * the frames to follow. If there is no room for a caller, following the frames will notice that.
 */
static noinline struct frames add_function_call(struct walker *walker, const struct pt_regs *regs)
{
	const struct function_frameless *at = __start_function_frameless;
	const u64 *words = (const u64 *)regs->rsp;
	struct frames frames = { regs->rbp, regs->rsp };

	if (pc_in_function_hook(regs->rip))
		return add_function_hook(walker, regs);
	while (at < __stop_function_frameless && at->pc != regs->rip)
		at++;
	if (at == __stop_function_frameless)
		return frames;
	walker->replayable = PROFILE_STACK_NOT_REPLAYABLE;
	words += at->word;
	for (u32 i = 0; i < at->nr; i++) {
		/* Its slot has just been popped, so an interrupt may have overwritten it. */
		u64 ret = at->word < 0 ? function_true_return(current, words) ?: regs->rip :
					 stack_return_address(current, &words[i]);

		if (pc_in_entry(ret))
			return outermost_frames(&words[i]);
		add_pc(walker, ret);
	}
	/* If one of the two frames exists already, its function has just been added. */
	if (at->word > 0 && regs->rbp - regs->rsp < at->word * sizeof(u64))
		frames.fp = ((const struct stack_frame *)regs->rbp)->caller;
	return frames;
}
#else
#define add_function_call(walker, regs) ((struct frames){ 0 }) /* never */
#endif

/*
 * Follows frames from fp, which must not lie below sp. is_hook: the first frame is that of a hook
 * (<asm/function_hook.h>). Returns the frame at which the chain ends, or NULL if it is truncated.
 */
static __always_inline const struct stack_frame *
follow(struct walker *walker, const struct task *task, u64 fp, u64 sp, u64 end, bool is_hook)
{
	u64 last = end - sizeof(struct stack_frame);

	walker->truncated = PROFILE_STACK_TRUNCATED_STACK;
	if (unlikely(fp < sp))
		return NULL;
	for (;;) {
		const struct stack_frame *frame = (const struct stack_frame *)fp;
		u64 ret;

		if (unlikely(fp > last || fp % sizeof(u64)))
			return NULL;
		ret = frame->ret;
		if (unlikely(is_hook)) {
			/*
			 * The function has no frame; its return address follows the hook's frame.
			 */
			if (fp == last || !add_pc(walker, ret))
				return NULL;
			walker->replayable = PROFILE_STACK_NOT_REPLAYABLE;
			ret = stack_return_address(task, &frame->ret + 1);
			if (pc_in_entry(ret))
				return (const struct stack_frame *)&frame->ret;
			is_hook = false;
		} else if (unlikely(!pc_in_text(ret))) {
			if (!pc_in_function_call(ret))
				return frame;
			ret = stack_return_address(task, &frame->ret);
			if (pc_in_entry(ret))
				return frame;
			is_hook = pc_in_function_hook(ret);
		}
		if (!add_pc(walker, ret))
			return NULL;
		if (unlikely(frame->caller <= fp))
			return NULL;
		fp = frame->caller;
	}
}

/*
 * Returns the registers that lie behind the outermost frame of a chain, or NULL. They are those of
 * interrupted kernel code, or of user code.
 */
static __always_inline const struct pt_regs *regs_behind(struct walker *walker,
							 const struct stack_frame *frame, u64 end)
{
	const struct pt_regs *regs = (const struct pt_regs *)((const u64 *)(frame + 1) + 1);
	u64 ret = stack_return_address(current, &frame->ret);

	walker->truncated = PROFILE_STACK_WHOLE;
	if (ret == entry_marks.vector_return && (u64)(regs + 1) <= end)
		return regs;
	/* Entry code has no frame, so rbp is arbitrary there. */
	if (pc_in_entry(ret))
		return (u64)(regs + 1) == end ? regs : NULL;
	if (frame->caller)
		walker->truncated = PROFILE_STACK_TRUNCATED_TEXT;
	return NULL;
}

/* Walks the kernel's part. Returns the user's registers behind it, or NULL. */
static __always_inline const struct pt_regs *walk_kernel(struct walker *walker,
							 const struct pt_regs *regs)
{
	const struct task *task = current;
	u64 start = (u64)task->kernel_stack, end = start + KERNEL_STACK_SIZE, pc = regs->rip;
	const struct stack_frame *frame;

	add_pc(walker, pc);
	for (;;) {
		struct frames frames;
		u64 sp = regs->rsp;

		if (unlikely(!pc_in_text(pc)) && !pc_in_function_call(pc)) {
			walker->truncated = pc_in_entry(pc) ? PROFILE_STACK_TRUNCATED_ENTRY :
							      PROFILE_STACK_TRUNCATED_TEXT;
			return NULL;
		}
		walker->truncated = PROFILE_STACK_TRUNCATED_STACK;
		if (unlikely(sp - start > end - start - sizeof(struct stack_frame) ||
			     sp % sizeof(u64)))
			return NULL;
		frames = (struct frames){ regs->rbp, sp };
		if (unlikely(pc_in_function_call(pc)))
			frames = add_function_call(walker, regs);
		else if (unlikely(is_edge[*(const u8 *)pc] || is_frameless(pc)) &&
			 !add_frameless(walker, pc, &frames))
			return NULL;
		frame = follow(walker, task, frames.fp, frames.sp, end,
			       pc_in_function_hook(walker->at[-1]));
		if ((u64)frame != outermost_frame(task))
			walker->replayable = PROFILE_STACK_NOT_REPLAYABLE;
		if (!frame)
			return NULL;
		regs = regs_behind(walker, frame, end);
		if (regs && (u64)(regs + 1) == end && user_mode(regs) && task->mm)
			return regs;
		if (task->mm)
			walker->replayable = PROFILE_STACK_NOT_REPLAYABLE;
		if (!regs || (u64)(regs + 1) == end)
			return NULL;
		/* An interrupt's frame must lie below the interrupted code's stack. */
		if (user_mode(regs) || regs->rsp < (u64)(regs + 1)) {
			walker->truncated = PROFILE_STACK_TRUNCATED_STACK;
			return NULL;
		}
		/* + 1 as in a return address: names are looked up one byte lower. */
		pc = regs->rip;
		if (!add_pc(walker, pc + 1))
			return NULL;
	}
}

struct profile_stack_walk stack_walk(const struct pt_regs *regs, u64 *pcs, u32 max)
{
	struct walker walker = { .at = pcs,
				 .full = pcs + max,
				 .replayable = PROFILE_STACK_REPLAYABLE };

	if (user_mode(regs))
		return stack_walk_user(regs, pcs, 0, walker.full, 0, PROFILE_STACK_REPLAYABLE);
	regs = walk_kernel(&walker, regs);
	if (regs)
		return stack_walk_user(regs, pcs, walker.at - pcs, walker.full, walker.hash,
				       walker.replayable);
	if (walker.truncated != PROFILE_STACK_WHOLE)
		walker.replayable = PROFILE_STACK_NOT_REPLAYABLE;
	return walked(&walker, pcs, walker.at - pcs);
}

u32 stack_walk_sleeper(const struct task *task, u64 *pcs, u32 max)
{
	u64 start = (u64)task->kernel_stack, sp = READ_ONCE(task->thread.sp);
	struct walker walker = { .at = pcs, .full = pcs + max };

	/* switch_stack() has pushed rbp, the frame of switch_to(), and then five registers. */
	if (sp - start < KERNEL_STACK_SIZE - 6 * sizeof(u64))
		follow(&walker, task, ((const u64 *)sp)[5], sp, start + KERNEL_STACK_SIZE, false);
	return walker.at - pcs;
}
