// SPDX-License-Identifier: BSD-2-Clause
/*
 * A frame is two words: the caller's frame pointer, and the return address into the caller. Each
 * lies above the one before, on the same stack; what does not is not followed.
 *
 * A function's first and last instructions run without a frame of their own: the return address is
 * then next to the stack pointer, which the instruction itself tells. Compilers leave the frame out
 * altogether in a function that calls nobody and keeps nothing on its stack, whatever they are
 * told; such functions are known by a map with a bit for each 16 bytes of text.
 *
 * An interrupt or exception inside the kernel leaves a struct pt_regs between two frames, known by
 * do_vector()'s return address: the walk goes on with what was interrupted.
 *
 * While calls of functions are told (<asm/function_call.h>), return addresses may be replaced.
 * Those that replace them, and the code there, lie outside of the text: so all this is done only
 * where a chain would end.
 */
#include <asm/stack_match.h>

#include <asm/pgtable.h>
#include <lego/bug.h>
#include <lego/kallsyms.h>
#include <lego/mm.h>
#include <lego/string.h>

#define OPCODE_PUSH_RBP 0x55
#define OPCODE_POP_RBP	0x5d
#define OPCODE_LEAVE	0xc9
#define OPCODE_RET	0xc3
#define OPCODE_JMP	0xe9
#define OPCODE_JMP_8	0xeb
#define OPCODE_NOP	0x0f
#define OPCODE_CALL	0xe8
#define OPCODE_INT3	0xcc
#define MOV_RSP_RBP	0xe58948 /* three bytes */

#define USER_MIN PAGE_SIZE

/* Kept in registers: what calls with it is inlined. */
struct walker {
	u64 *at, *full;
	u64 hash;
	enum stack_truncation truncated;
	enum stack_replay replayable; /* so far */
};

static __always_inline bool add_pc(struct walker *walker, u64 pc)
{
	if (unlikely(walker->at == walker->full)) {
		walker->truncated = STACK_TRUNCATED_DEPTH;
		return false;
	}
	*walker->at++ = pc;
	walker->hash = stack_mix(walker->hash, pc);
	return true;
}

#define CHUNK_SHIFT    4
#define PROLOGUE_BYTES 40 /* where the frame is made, if it is */

#define MAP_BASE ((u64)_text)

static u64 frameless_map[(MAX_TEXT >> CHUNK_SHIFT) / 64]; /* a bit for each chunk of text */

static __always_inline bool is_frameless(u64 pc)
{
	u64 chunk = (pc - MAP_BASE) >> CHUNK_SHIFT;

	return frameless_map[chunk / 64] >> chunk % 64 & 1;
}

static bool is_mov_rsp_rbp(const u8 *code)
{
	return code[0] == (MOV_RSP_RBP & 0xff) && code[1] == (MOV_RSP_RBP >> 8 & 0xff) &&
	       code[2] == MOV_RSP_RBP >> 16;
}

static bool has_prologue(const u8 *code, u64 size)
{
	for (u64 i = 0; i + 3 <= min(size, (u64)PROLOGUE_BYTES); i++) {
		if (is_mov_rsp_rbp(code + i))
			return true;
	}
	return false;
}

/* Chunks that two functions share stay as they are: the first one's padding is no code. */
static void mark_frameless(u64 start, u64 size)
{
	u64 first = ALIGN_UP(start - MAP_BASE, BIT(CHUNK_SHIFT)) >> CHUNK_SHIFT;
	u64 end = (start + size - MAP_BASE) >> CHUNK_SHIFT;

	for (u64 chunk = first; chunk < end; chunk++)
		frameless_map[chunk / 64] |= BIT(chunk % 64);
}

void stack_walk_init(void)
{
	u64 start, size;

	BUG_ON((u64)_etext - MAP_BASE > MAX_TEXT || MAP_BASE % BIT(CHUNK_SHIFT));
	for (u64 pc = entry_marks.text_end; pc < (u64)_etext; pc = start + size) {
		if (!kallsyms_lookup(pc, &start, &size))
			break;
		if (!has_prologue((const u8 *)start, size))
			mark_frameless(start, size);
	}
}

/* Instructions at which a function may have no frame. */
static const bool is_edge[256] = {
	[OPCODE_PUSH_RBP] = true, [OPCODE_RET] = true,	 [MOV_RSP_RBP & 0xff] = true,
	[OPCODE_JMP] = true,	  [OPCODE_JMP_8] = true,
#ifdef CONFIG_PROFILE_FUNCTIONS
	[OPCODE_NOP] = true,	  [OPCODE_CALL] = true,	 [OPCODE_INT3] = true,
#endif
};

/* Whether a jump is to another function, and not within its own. */
static bool leaves(const u8 *jump)
{
	s32 near;
	u64 target, start;

	__builtin_memcpy(&near, jump + 1, sizeof(near));
	target = (u64)jump + (*jump == OPCODE_JMP ? 5 + near : 2 + (s8)near);
	return kallsyms_lookup(target, &start, NULL) && start == target;
}

/* Where the return address is of a function that has no frame at this instruction. */
static noinline enum stack_replay place_frameless(u64 pc, const u64 *words)
{
	const u8 *code = (const u8 *)pc;

	if (is_frameless(pc)) /* the flags may have been pushed */
		return pc_in_text(words[0]) || pc_in_function_call(words[0]) ? STACK_FRAMELESS_0 :
									       STACK_FRAMELESS_1;
	switch (code[0]) {
	case OPCODE_PUSH_RBP:
	case OPCODE_RET:
		return STACK_FRAMELESS_0;
	case MOV_RSP_RBP & 0xff:
		if (is_mov_rsp_rbp(code))
			return STACK_FRAMELESS_1;
		break;
	case OPCODE_JMP:
	case OPCODE_JMP_8:
		if ((code[-1] == OPCODE_POP_RBP || code[-1] == OPCODE_LEAVE) && leaves(code))
			return STACK_FRAMELESS_0;
		break;
#ifdef CONFIG_PROFILE_FUNCTIONS
	case OPCODE_NOP:
	case OPCODE_CALL:
	case OPCODE_INT3:
		if (function_is_place(pc))
			return STACK_FRAMELESS_0;
		break;
#endif
	}
	return STACK_REPLAYABLE; /* it has one */
}

/* Where frames begin: the first one, and what it must not lie below. */
struct frames {
	u64 fp, sp;
};

/*
 * Of a function that entry code has called: where its frame lies when it is complete. A chain ends
 * there, and needs no more of the frame than the return address, at slot.
 */
static __always_inline struct frames outermost_frames(const u64 *slot)
{
	return (struct frames){ (u64)(slot - 1), (u64)(slot - 1) };
}

/* Adds the caller of a function without a frame; false: there was no room for it. */
static __always_inline bool add_frameless(struct walker *walker, u64 pc, struct frames *frames)
{
	const u64 *words = (const u64 *)frames->sp;
	enum stack_replay place = place_frameless(pc, words);
	u64 ret;

	if (place == STACK_REPLAYABLE)
		return true;
	words += place == STACK_FRAMELESS_1;
	ret = *words;
	if (pc_in_text(ret)) {
		if (walker->replayable)
			walker->replayable = place;
		return add_pc(walker, ret);
	}
	walker->replayable = STACK_NOT_REPLAYABLE;
	ret = stack_return_address(current, words);
	if (!pc_in_entry(ret))
		return !pc_in_function_call(*words) || add_pc(walker, ret);
	*frames = outermost_frames(words);
	return true;
}

#ifdef CONFIG_PROFILE_FUNCTIONS
extern const struct function_frameless __start_function_frameless[], __stop_function_frameless[];

/*
 * Adds the function that called a hook, and that one's caller, if the hook has no frame: at its
 * first two instructions and its last one. Returns the frames from which to go on.
 */
static struct frames add_function_hook(struct walker *walker, const struct pt_regs *regs)
{
	const u8 *code = (const u8 *)regs->rip;
	const u64 *words = (const u64 *)regs->rsp;
	struct frames frames = { regs->rbp, regs->rsp };
	u64 ret;

	walker->replayable = STACK_NOT_REPLAYABLE;
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
 * Adds the callers of an instruction of function_call.S that runs without a complete frame. Returns
 * the frames from which to go on. (What there is no room for, the next frame has none for either.)
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
	walker->replayable = STACK_NOT_REPLAYABLE;
	words += at->word;
	for (u32 i = 0; i < at->nr; i++) {
		/* Popped just now, it may lie below an interrupt's frame. */
		u64 ret = at->word < 0 ? function_true_return(current, words) ?: regs->rip :
					 stack_return_address(current, &words[i]);

		if (pc_in_entry(ret))
			return outermost_frames(&words[i]);
		add_pc(walker, ret);
	}
	/* One of the two frames may be there already: of what has been added just now. */
	if (at->word > 0 && regs->rbp - regs->rsp < at->word * sizeof(u64))
		frames.fp = ((const struct stack_frame *)regs->rbp)->caller;
	return frames;
}
#else
#define add_function_call(walker, regs) ((struct frames){ 0 }) /* never */
#endif

/*
 * Follow frames from fp, the first of which lies at or above sp. is_hook: the first one is that of
 * a hook. Returns the frame at which the chain ends, or NULL when it is truncated.
 */
static __always_inline const struct stack_frame *
follow(struct walker *walker, const struct task *task, u64 fp, u64 sp, u64 end, bool is_hook)
{
	u64 last = end - sizeof(struct stack_frame);

	walker->truncated = STACK_TRUNCATED_STACK;
	if (unlikely(fp < sp))
		return NULL;
	for (;;) {
		const struct stack_frame *frame = (const struct stack_frame *)fp;
		u64 ret;

		if (unlikely(fp > last || fp % sizeof(u64)))
			return NULL;
		ret = frame->ret;
		if (unlikely(is_hook)) {
			/* The function has no frame: its return address is above the hook's. */
			if (fp == last || !add_pc(walker, ret))
				return NULL;
			walker->replayable = STACK_NOT_REPLAYABLE;
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
 * Where a chain ends: the registers that lie behind the outermost frame, or NULL. They are what was
 * interrupted in the kernel, or the user's.
 */
static __always_inline const struct pt_regs *regs_behind(struct walker *walker,
							 const struct stack_frame *frame, u64 end)
{
	const struct pt_regs *regs = (const struct pt_regs *)((const u64 *)(frame + 1) + 1);
	u64 ret = stack_return_address(current, &frame->ret);

	walker->truncated = STACK_WHOLE;
	if (ret == entry_marks.vector_return && (u64)(regs + 1) <= end)
		return regs;
	/* Entry code has no frame: what it leaves in rbp means nothing. */
	if (pc_in_entry(ret))
		return (u64)(regs + 1) == end ? regs : NULL;
	if (frame->caller)
		walker->truncated = STACK_TRUNCATED_TEXT;
	return NULL;
}

/* Fills in the kernel's part; the user's registers behind it, or NULL. */
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
			walker->truncated = pc_in_entry(pc) ? STACK_TRUNCATED_ENTRY :
							      STACK_TRUNCATED_TEXT;
			return NULL;
		}
		walker->truncated = STACK_TRUNCATED_STACK;
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
			walker->replayable = STACK_NOT_REPLAYABLE;
		if (!frame)
			return NULL;
		regs = regs_behind(walker, frame, end);
		if (regs && (u64)(regs + 1) == end && user_mode(regs) && task->mm)
			return regs;
		if (task->mm)
			walker->replayable = STACK_NOT_REPLAYABLE;
		if (!regs || (u64)(regs + 1) == end)
			return NULL;
		/* An interrupt's frame lies below what it interrupted. */
		if (user_mode(regs) || regs->rsp < (u64)(regs + 1)) {
			walker->truncated = STACK_TRUNCATED_STACK;
			return NULL;
		}
		/* Like return addresses: one lower is in the function. */
		pc = regs->rip;
		if (!add_pc(walker, pc + 1))
			return NULL;
	}
}

/* What the table of `above` has; 0: nothing, or nothing of the user's. */
static u64 user_entry_below(u64 above, u64 addr, int shift)
{
	const u64 *table = phys_to_virt(above & PTE_ADDR_MASK);
	u64 entry = READ_ONCE(table[addr >> shift & (PTRS_PER_TABLE - 1)]);
	u64 flags = entry & (PTE_PRESENT | PTE_USER | PTE_LARGE);

	return flags == (PTE_PRESENT | PTE_USER) ? entry : 0;
}

/*
 * The page table entry of user memory, which can be read through the direct map; 0: not present.
 * With interrupts off this CPU answers no request to forget translations, and nobody frees a table
 * or a page before all CPUs that have the address space loaded have answered: so whatever is found
 * present stays.
 */
static u64 user_entry(u64 cr3, u64 addr)
{
	u64 entry = user_entry_below(cr3, addr, PAGE_SHIFT + 27);

	if (entry)
		entry = user_entry_below(entry, addr, PAGE_SHIFT + 18);
	if (entry)
		entry = user_entry_below(entry, addr, PAGE_SHIFT + 9);
	return entry ? user_entry_below(entry, addr, PAGE_SHIFT) : 0;
}

/*
 * CR3; 0: while a task is switched to, or moves to another program, when another table than its own
 * is loaded.
 */
static u64 own_cr3(void)
{
	u64 cr3;

	asm volatile("mov %%cr3, %0" : "=r"(cr3));
	return current->mm && phys_to_virt(cr3 & PTE_ADDR_MASK) == current->mm->pgd ? cr3 : 0;
}

DEFINE_PER_CPU(struct stack_window[NR_STACK_WINDOWS], stack_windows);

struct user_reader {
	u64 cr3;
	u64 code; /* the last page looked up that may be executed: callers are neighbours */
};

static bool read_user_word(u64 cr3, u64 addr, u64 *word)
{
	u64 page = ALIGN_DOWN(addr, PAGE_SIZE), generation = this_cpu_read(tlb_generation);
	struct stack_window *window = stack_window_of(addr);

	if (window->page != page || window->generation != generation) {
		u64 entry = user_entry(cr3, addr);

		if (!entry)
			return false;
		window->page = page;
		window->generation = generation;
		window->to_kernel = (u64)phys_to_virt(entry & PTE_ADDR_MASK) - page;
	}
	*word = READ_ONCE(*(const u64 *)(addr + window->to_kernel));
	return true;
}

/* Who called has run, so its page is there. */
static bool is_user_code(struct user_reader *reader, u64 addr)
{
	u64 base = ALIGN_DOWN(addr, PAGE_SIZE), entry;

	if (addr < USER_MIN || addr >= TASK_SIZE)
		return false;
	if (reader->code == base)
		return true;
	entry = user_entry(reader->cr3, base);
	if (!entry || entry & PTE_NX)
		return false;
	reader->code = base;
	return true;
}

static enum stack_truncation follow_user(struct walker *walker, u64 fp, u64 low)
{
	struct user_reader reader = { .cr3 = own_cr3() };
	enum stack_replay replayable = walker->replayable;
	bool has_caller = false;
	u64 ret, caller;

	walker->replayable = STACK_NOT_REPLAYABLE;
	if (!reader.cr3)
		return STACK_TRUNCATED_USER_MEMORY;
	for (; is_user_frame(fp, low); has_caller = true) {
		if (!read_user_word(reader.cr3, fp, &caller) ||
		    !read_user_word(reader.cr3, fp + sizeof(u64), &ret))
			return STACK_TRUNCATED_USER_MEMORY;
		if (unlikely(!is_user_code(&reader, ret)))
			return caller || ret ? STACK_TRUNCATED_USER_FRAME : STACK_WHOLE;
		if (!add_pc(walker, ret))
			return STACK_TRUNCATED_DEPTH;
		low = fp + sizeof(struct stack_frame);
		fp = caller;
	}
	walker->replayable = replayable;
	/* The outermost caller has none, but who has no caller has no frames at all. */
	return fp || !has_caller ? STACK_TRUNCATED_USER_FRAME : STACK_WHOLE;
}

static __always_inline struct stack_walk walked(const struct walker *walker, const u64 *pcs,
						u64 nr_kernel)
{
	return (struct stack_walk){
		.hash = walker->hash,
		.counts = STACK_COUNTS(nr_kernel, walker->at - pcs - nr_kernel, walker->truncated,
				       walker->replayable),
	};
}

/* Go on behind nr_kernel pcs with those of the user. */
static noinline struct stack_walk walk_user(const struct pt_regs *regs, u64 *pcs, u64 nr_kernel,
					    u64 *full, u64 hash, enum stack_replay replayable)
{
	struct walker walker = { .at = pcs + nr_kernel, .full = full, .hash = hash };

	if (add_pc(&walker, regs->rip)) {
		walker.replayable = replayable;
		walker.truncated = follow_user(&walker, regs->rbp, regs->rsp);
	}
	return walked(&walker, pcs, nr_kernel);
}

struct stack_walk stack_walk(const struct pt_regs *regs, u64 *pcs, u32 max)
{
	struct walker walker = { .at = pcs, .full = pcs + max, .replayable = STACK_REPLAYABLE };

	if (user_mode(regs))
		return walk_user(regs, pcs, 0, walker.full, 0, STACK_REPLAYABLE);
	regs = walk_kernel(&walker, regs);
	if (regs)
		return walk_user(regs, pcs, walker.at - pcs, walker.full, walker.hash,
				 walker.replayable);
	if (walker.truncated != STACK_WHOLE)
		walker.replayable = STACK_NOT_REPLAYABLE;
	return walked(&walker, pcs, walker.at - pcs);
}

u32 stack_walk_sleeper(const struct task *task, u64 *pcs, u32 max)
{
	u64 start = (u64)task->kernel_stack, sp = READ_ONCE(task->thread.sp);
	struct walker walker = { .at = pcs, .full = pcs + max };

	/* switch_stack() has left the frame of switch_to() in rbp, above five registers. */
	if (sp - start < KERNEL_STACK_SIZE - 6 * sizeof(u64))
		follow(&walker, task, ((const u64 *)sp)[5], sp, start + KERNEL_STACK_SIZE, false);
	return walker.at - pcs;
}
