// SPDX-License-Identifier: BSD-2-Clause
/*
 * Walks call chains by frame pointer. A frame is two words: the caller's frame pointer, and the
 * return address into the caller. Each frame must lie above the one before, on the same stack; the
 * walk ends otherwise. The samples and the events of the profilers use the result.
 *
 * At its first and last instructions, a function has no frame of its own. The return address is
 * then at the top of the stack or one word above, depending on the instruction. Compilers also omit
 * the frame in a leaf function without stack use, whatever the flags say. A map with a bit for each
 * 16 bytes of text has these functions.
 *
 * An interrupt or exception inside the kernel leaves a struct pt_regs between two frames. The walk
 * recognizes it by the return address of do_vector(), and continues with the interrupted code.
 *
 * Hooks of functions (<asm/function_call.h>) may replace return addresses. The replacements, and
 * the code of the hooks, lie outside of the text. So all of this is handled only where a chain
 * would end, and costs the usual walk nothing.
 */
#include <asm/stack_match.h>

#include <asm/pgtable.h>
#include <lego/bug.h>
#include <lego/kallsyms.h>
#include <lego/mm.h>
#include <lego/user_unwind.h>
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

/* Functions that take a walker are inlined, so that it stays in registers. */
struct walker {
	u64 *at, *full;
	u64 hash;
	enum stack_truncation truncated;
	enum stack_replay replayable; /* the part walked so far */
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
#define PROLOGUE_BYTES 40 /* a function with a frame makes it within its first 40 bytes */

#define MAP_BASE ((u64)_text)

extern u64 frameless_map[]; /* from the linker script: a bit for each chunk of text */

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

/* Marks the chunks that belong to this function alone. */
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

	BUG_ON(MAP_BASE % BIT(CHUNK_SHIFT));
	for (u64 pc = entry_marks.text_end; pc < (u64)_etext; pc = start + size) {
		if (!kallsyms_lookup(pc, &start, &size))
			break;
		if (!has_prologue((const u8 *)start, size))
			mark_frameless(start, size);
	}
}

/* Opcodes of instructions at which a function may have no frame. */
static const bool is_edge[256] = {
	[OPCODE_PUSH_RBP] = true, [OPCODE_RET] = true,	 [MOV_RSP_RBP & 0xff] = true,
	[OPCODE_JMP] = true,	  [OPCODE_JMP_8] = true,
#ifdef CONFIG_PROFILE_FUNCTIONS
	[OPCODE_NOP] = true,	  [OPCODE_CALL] = true,	 [OPCODE_INT3] = true,
#endif
};

/* Returns whether a jump leads to the start of another function. */
static bool leaves(const u8 *jump)
{
	s32 near;
	u64 target, start;

	__builtin_memcpy(&near, jump + 1, sizeof(near));
	target = (u64)jump + (*jump == OPCODE_JMP ? 5 + near : 2 + (s8)near);
	return kallsyms_lookup(target, &start, NULL) && start == target;
}

/*
 * Returns where the return address is if the function has no frame at this instruction;
 * STACK_REPLAYABLE: it has one.
 */
static noinline enum stack_replay place_frameless(u64 pc, const u64 *words)
{
	const u8 *code = (const u8 *)pc;

	/* At the top of the stack, unless the function has pushed the flags. */
	if (is_frameless(pc))
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
	return STACK_REPLAYABLE;
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
 * Adds the function that called the interrupted hook, and that function's caller, if the hook has
 * no frame: at its first two instructions and its last one. Returns the frames to follow.
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
	walker->replayable = STACK_NOT_REPLAYABLE;
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
			/*
			 * The function has no frame; its return address follows the hook's frame.
			 */
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
 * Returns the registers that lie behind the outermost frame of a chain, or NULL. They are those of
 * interrupted kernel code, or of user code.
 */
static __always_inline const struct pt_regs *regs_behind(struct walker *walker,
							 const struct stack_frame *frame, u64 end)
{
	const struct pt_regs *regs = (const struct pt_regs *)((const u64 *)(frame + 1) + 1);
	u64 ret = stack_return_address(current, &frame->ret);

	walker->truncated = STACK_WHOLE;
	if (ret == entry_marks.vector_return && (u64)(regs + 1) <= end)
		return regs;
	/* Entry code has no frame, so rbp is arbitrary there. */
	if (pc_in_entry(ret))
		return (u64)(regs + 1) == end ? regs : NULL;
	if (frame->caller)
		walker->truncated = STACK_TRUNCATED_TEXT;
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
		/* An interrupt's frame must lie below the interrupted code's stack. */
		if (user_mode(regs) || regs->rsp < (u64)(regs + 1)) {
			walker->truncated = STACK_TRUNCATED_STACK;
			return NULL;
		}
		/* + 1 as in a return address: names are looked up one byte lower. */
		pc = regs->rip;
		if (!add_pc(walker, pc + 1))
			return NULL;
	}
}

/*
 * Returns the entry of the page table that `above` points to; 0: not present, or not user memory.
 */
static u64 user_entry_below(u64 above, u64 addr, int shift)
{
	const u64 *table = phys_to_virt(above & PTE_ADDR_MASK);
	u64 entry = READ_ONCE(table[addr >> shift & (PTRS_PER_TABLE - 1)]);
	u64 flags = entry & (PTE_PRESENT | PTE_USER | PTE_LARGE);

	return flags == (PTE_PRESENT | PTE_USER) ? entry : 0;
}

/*
 * Returns the page table entry of a user address; 0: not present. The page can be read through the
 * direct map. It stays: with interrupts off, this CPU does not answer TLB shootdowns, and a page or
 * a table is freed only after all CPUs that use the address space have answered.
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
 * Returns CR3, or 0 if it is not the task's own page table: during a context switch or an execve.
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
	u64 code; /* the last executable page found; callers often lie in the same page */
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

/* Returns whether addr is in an executable page. A true caller has run, so its page is present. */
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

/*
 * The path of a walk that did not only follow frame pointers: where on the user's stack it found
 * the return addresses. The same registers lead along the same path, as long as the words there
 * are the same.
 */
#define LOG2_NR_STACK_PATHS 6
#define NR_STACK_PATHS	    (1 << LOG2_NR_STACK_PATHS)
#define STACK_PATH_SLOTS    24

struct stack_path {
	u64 rip, rsp, rbp;
	u32 nr;	 /* program counters, the interrupted one included; 0: no path */
	u32 end; /* enum stack_truncation */
	u32 slots[STACK_PATH_SLOTS]; /* bytes above rsp */
};

static DEFINE_PER_CPU(struct stack_path[NR_STACK_PATHS], stack_paths);

static struct stack_path *stack_path_of(const struct pt_regs *regs)
{
	u64 hash = stack_hash(regs->rip, regs->rsp) >> (64 - LOG2_NR_STACK_PATHS);

	return this_cpu_ptr(&stack_paths[hash]);
}

enum stack_truncation stack_matches_path(const struct pt_regs *regs, const u64 *pcs, u64 nr)
{
	const struct stack_path *path = stack_path_of(regs);

	if (path->rip != regs->rip || path->rsp != regs->rsp || path->rbp != regs->rbp ||
	    path->nr != nr || regs->rip != *pcs)
		return NR_STACK_TRUNCATIONS;
	for (u64 i = 1; i < nr; i++) {
		u64 addr = regs->rsp + path->slots[i - 1];
		const struct stack_window *window = stack_window_of(addr);

		if (unlikely(window->generation != this_cpu_read(tlb_generation)) ||
		    unlikely(addr - window->page > PAGE_SIZE - sizeof(u64)) ||
		    unlikely(READ_ONCE(*(const u64 *)(addr + window->to_kernel)) != pcs[i]))
			return NR_STACK_TRUNCATIONS;
	}
	return path->end;
}

/* The registers of a user's frame, and the reader of its stack. */
struct user_frame {
	struct user_reader reader;
	struct user_unwind_place place;
	u64 pc; /* minus 1 if it is a return address */
	u64 sp, fp;
	u64 slot; /* of the return address by which this frame was found */
	bool uses_rules, is_of_signal, has_caller;
};

static bool read_words(struct user_frame *frame, u64 addr, u64 *first, u64 *second)
{
	return read_user_word(frame->reader.cr3, addr, first) &&
	       read_user_word(frame->reader.cr3, addr + sizeof(u64), second);
}

/* Offsets in struct ucontext of Linux's x86-64 ABI, which a signal frame contains. */
#define UCONTEXT_RBP 120
#define UCONTEXT_RSP 160
#define UCONTEXT_RIP 168

/* Continues with the code that a signal interrupted. */
static enum stack_truncation enter_interrupted(struct user_frame *frame, u64 *ret)
{
	u64 context = frame->sp;

	frame->is_of_signal = true;
	if (!read_words(frame, context + UCONTEXT_RSP, &frame->sp, ret) ||
	    !read_user_word(frame->reader.cr3, context + UCONTEXT_RBP, &frame->fp))
		return STACK_TRUNCATED_USER_MEMORY;
	if (!is_user_code(&frame->reader, *ret))
		return STACK_TRUNCATED_USER_FRAME;
	frame->pc = *ret;
	/* + 1 as in a return address: names are looked up one byte lower. */
	++*ret;
	return NR_STACK_TRUNCATIONS;
}

/* Follows the frame pointer. */
static enum stack_truncation follow_frame(struct user_frame *frame, u64 *ret)
{
	u64 caller;

	/*
	 * The outermost frame has no caller. Code without any caller has been built without frames.
	 */
	if (!is_user_frame(frame->fp, frame->sp))
		return frame->fp || !frame->has_caller ? STACK_TRUNCATED_USER_FRAME : STACK_WHOLE;
	if (!read_words(frame, frame->fp, &caller, ret))
		return STACK_TRUNCATED_USER_MEMORY;
	if (unlikely(!is_user_code(&frame->reader, *ret)))
		return caller || *ret ? STACK_TRUNCATED_USER_FRAME : STACK_WHOLE;
	frame->slot = frame->fp + sizeof(u64);
	frame->sp = frame->fp + sizeof(struct stack_frame);
	frame->fp = caller;
	frame->pc = *ret - 1;
	return NR_STACK_TRUNCATIONS;
}

/* Goes to the caller. Returns why the chain ends, or NR_STACK_TRUNCATIONS. */
static enum stack_truncation next_frame(struct user_frame *frame, u64 *ret)
{
	struct user_unwind rule = user_unwind(&frame->place, frame->pc);
	u64 cfa = frame->sp + rule.cfa;

	switch (rule.kind) {
	case UNWIND_UNKNOWN:
		return follow_frame(frame, ret);
	case UNWIND_OUTERMOST:
		return STACK_WHOLE;
	case UNWIND_SIGNAL:
		frame->uses_rules = true;
		return enter_interrupted(frame, ret);
	case UNWIND_SP:
		break;
	case UNWIND_FP:
		cfa = frame->fp + rule.cfa;
		break;
	case UNWIND_PLT:
		cfa = frame->sp + ((frame->pc & 15) >= rule.cfa / 8 ? 16 : 8);
		break;
	}
	frame->uses_rules = true;
	frame->slot = cfa - sizeof(u64);
	if (cfa % sizeof(u64) || cfa <= frame->sp || cfa - frame->sp > USER_MAX_FRAME)
		return STACK_TRUNCATED_USER_FRAME;
	if (!read_user_word(frame->reader.cr3, frame->slot, ret) ||
	    (rule.fp && !read_user_word(frame->reader.cr3, cfa - rule.fp, &frame->fp)))
		return STACK_TRUNCATED_USER_MEMORY;
	if (unlikely(!is_user_code(&frame->reader, *ret)))
		return STACK_TRUNCATED_USER_FRAME;
	frame->sp = cfa;
	frame->pc = *ret - 1;
	return NR_STACK_TRUNCATIONS;
}

/* Returns whether user code made a system call, so that regs->rip is behind the instruction. */
static bool is_behind_call(const struct pt_regs *regs)
{
	return regs == task_pt_regs(current) &&
	       ((const u64 *)regs)[-2] == entry_marks.syscall_return;
}

/* Walks the callers of user code by frame pointer alone. */
static enum stack_truncation follow_frames(struct walker *walker, const struct pt_regs *regs)
{
	struct user_reader reader = { .cr3 = own_cr3() };
	enum stack_replay replayable = walker->replayable;
	u64 ret, caller, fp = regs->rbp, low = regs->rsp;
	bool has_caller = false;

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
	/*
	 * The outermost frame has no caller. Code without any caller has been built without frames.
	 */
	return fp || !has_caller ? STACK_TRUNCATED_USER_FRAME : STACK_WHOLE;
}

/*
 * Walks the callers of user code. Where rules say where frames are, remembers the path of the walk,
 * for stack_matches_path().
 */
static enum stack_truncation follow_rules(struct walker *walker, const struct pt_regs *regs)
{
	struct user_frame frame = {
		.reader.cr3 = own_cr3(),
		.pc = regs->rip,
		.sp = regs->rsp,
		.fp = regs->rbp,
	};
	struct stack_path *path = stack_path_of(regs);
	enum stack_replay replayable = walker->replayable;
	enum stack_truncation end;
	u64 ret, nr = 0;

	walker->replayable = STACK_NOT_REPLAYABLE;
	if (!frame.reader.cr3)
		return STACK_TRUNCATED_USER_MEMORY;
	frame.place = user_unwind_begin(&current->mm->profile);
	if (is_behind_call(regs) && !user_unwind(&frame.place, frame.pc).kind)
		frame.pc--; /* the call is the last instruction of its function */
	path->nr = 0;
	for (;; nr++) {
		end = next_frame(&frame, &ret);
		if (end != NR_STACK_TRUNCATIONS)
			break;
		if (!add_pc(walker, ret))
			return STACK_TRUNCATED_DEPTH;
		if (nr < STACK_PATH_SLOTS)
			path->slots[nr] = frame.slot - regs->rsp;
		frame.has_caller = true;
	}
	if (!frame.uses_rules) {
		if (end == STACK_WHOLE || end == STACK_TRUNCATED_USER_FRAME)
			walker->replayable = replayable;
	} else if (nr <= STACK_PATH_SLOTS && !frame.is_of_signal &&
		   end != STACK_TRUNCATED_USER_MEMORY && replayable == STACK_REPLAYABLE) {
		walker->replayable = STACK_PATH;
		path->rip = regs->rip;
		path->rsp = regs->rsp;
		path->rbp = regs->rbp;
		path->end = end;
		path->nr = nr + 1;
	}
	return end;
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

/* Continues with user code behind nr_kernel pcs. */
static noinline struct stack_walk walk_user(const struct pt_regs *regs, u64 *pcs, u64 nr_kernel,
					    u64 *full, u64 hash, enum stack_replay replayable)
{
	struct walker walker = { .at = pcs + nr_kernel, .full = full, .hash = hash };

	if (add_pc(&walker, regs->rip)) {
		walker.replayable = replayable;
		walker.truncated = user_unwind_is_on() ? follow_rules(&walker, regs) :
							 follow_frames(&walker, regs);
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

	/* switch_stack() has pushed rbp, the frame of switch_to(), and then five registers. */
	if (sp - start < KERNEL_STACK_SIZE - 6 * sizeof(u64))
		follow(&walker, task, ((const u64 *)sp)[5], sp, start + KERNEL_STACK_SIZE, false);
	return walker.at - pcs;
}
