// SPDX-License-Identifier: BSD-2-Clause
/*
 * Walks the user's part of a call chain: by frame pointer alone or, with profile.unwind=on, by
 * rules from call frame information (<profile/user_unwind.h>) where there are some. User memory is
 * read through the page table, which an interrupt or NMI may do: a page that is not present ends
 * the chain. The pages and code pages that a walk has found, and the paths of walks by rules, are
 * kept for each CPU, so that most walks look up nothing.
 */
#include "stacktrace.h"

#include <asm/pgtable.h>
#include <lego/mm.h>
#include <lego/page.h>
#include <lego/slab.h>
#include <lego/smp.h>
#include <profile/user_unwind.h>

#define USER_MIN PAGE_SIZE

/* Returns the entry of an address in a page table; 0: not present, or not user memory. */
static u64 user_entry_in(const u64 *table, u64 addr, int shift)
{
	u64 entry = READ_ONCE(table[addr >> shift & (PTRS_PER_TABLE - 1)]);
	u64 flags = entry & (PTE_PRESENT | PTE_USER | PTE_LARGE);

	return flags == (PTE_PRESENT | PTE_USER) ? entry : 0;
}

static u64 user_entry_below(u64 above, u64 addr, int shift)
{
	return user_entry_in(phys_to_virt(above & PTE_ADDR_MASK), addr, shift);
}

/*
 * Returns the page table entry of a user address; 0: not present. The page can be read through the
 * direct map. It stays: with interrupts off, this CPU does not answer TLB shootdowns, and a page or
 * a table is freed only after all CPUs that use the address space have answered.
 */
static __always_inline u64 user_entry(const u64 *pgd, u64 addr)
{
	u64 entry = user_entry_in(pgd, addr, PAGE_SHIFT + 27);

	if (entry)
		entry = user_entry_below(entry, addr, PAGE_SHIFT + 18);
	if (entry)
		entry = user_entry_below(entry, addr, PAGE_SHIFT + 9);
	return entry ? user_entry_below(entry, addr, PAGE_SHIFT) : 0;
}

/*
 * Returns the task's own page table, or NULL if it is not loaded: during a context switch or an
 * execve.
 */
static const u64 *own_pgd(void)
{
	const struct mm *mm = current->mm;
	u64 cr3;

	asm volatile("mov %%cr3, %0" : "=r"(cr3));
	return mm && phys_to_virt(cr3 & PTE_ADDR_MASK) == mm->pgd ? mm->pgd : NULL;
}

bool stack_is_of_loaded_mm(void)
{
	return own_pgd();
}

DEFINE_PER_CPU(struct stack_windows, stack_windows);

/* Sets the window of an address. Returns false if its page cannot be read, or pgd is NULL. */
static noinline bool set_window(const u64 *pgd, u64 addr)
{
	u64 page = ALIGN_DOWN(addr, PAGE_SIZE), entry = pgd ? user_entry(pgd, addr) : 0;
	struct stack_window *window = stack_window_of(addr);

	if (!entry)
		return false;
	WRITE_ONCE(window->generation, 0);
	WRITE_ONCE(window->page, page);
	WRITE_ONCE(window->to_kernel, (u64)phys_to_virt(entry & PTE_ADDR_MASK) - page);
	WRITE_ONCE(window->generation, this_cpu_read(tlb_generation));
	return true;
}

static __always_inline bool is_window_of(const struct stack_window *window, u64 addr)
{
	return window->page == ALIGN_DOWN(addr, PAGE_SIZE) &&
	       window->generation == this_cpu_read(tlb_generation);
}

static bool read_user_word(const u64 *pgd, u64 addr, u64 *word)
{
	const struct stack_window *window = stack_window_of(addr);

	if (!is_window_of(window, addr) && !set_window(pgd, addr))
		return false;
	*word = READ_ONCE(*(const u64 *)(addr + window->to_kernel));
	return true;
}

/* Executable pages that a walk has found, by page number. Valid, and written, as stack windows. */
#define NR_CODE_PAGES 8

struct code_page {
	u64 generation, page;
};

static DEFINE_PER_CPU(struct code_page[NR_CODE_PAGES], code_pages);

/* Returns whether addr is in an executable page. A true caller has run, so its page is present. */
static bool is_user_code(const u64 *pgd, u64 addr)
{
	u64 page = ALIGN_DOWN(addr, PAGE_SIZE), generation = this_cpu_read(tlb_generation), entry;
	struct code_page *known =
		this_cpu_ptr(&code_pages[addr >> PAGE_SHIFT & (NR_CODE_PAGES - 1)]);

	if (addr < USER_MIN || addr >= TASK_SIZE)
		return false;
	if (known->page == page && known->generation == generation)
		return true;
	entry = user_entry(pgd, page);
	if (!entry || entry & PTE_NX)
		return false;
	WRITE_ONCE(known->generation, 0);
	WRITE_ONCE(known->page, page);
	WRITE_ONCE(known->generation, generation);
	return true;
}

/* Reads a frame. Returns why the chain ends there, or PROFILE_NR_STACK_TRUNCATIONS. */
static enum profile_stack_truncation read_frame(const u64 *pgd, u64 fp, u64 *caller, u64 *ret)
{
	if (!read_user_word(pgd, fp, caller) || !read_user_word(pgd, fp + sizeof(u64), ret))
		return PROFILE_STACK_TRUNCATED_USER_MEMORY;
	if (likely(is_user_code(pgd, *ret)))
		return PROFILE_NR_STACK_TRUNCATIONS;
	return *caller || *ret ? PROFILE_STACK_TRUNCATED_USER_FRAME : PROFILE_STACK_WHOLE;
}

bool stack_ends_at(u64 fp, enum profile_stack_truncation end)
{
	const u64 *pgd = own_pgd();
	u64 caller, ret;

	/* A frame that cannot be read is no reason that is sure to be the same. */
	return pgd && end != PROFILE_STACK_TRUNCATED_USER_MEMORY &&
	       read_frame(pgd, fp, &caller, &ret) == end;
}

#define LOG2_NR_NMI_PATHS 6
#define NR_STACK_PATHS	  BIT(LOG2_NR_STACK_PATHS)
#define NR_NMI_PATHS	  BIT(LOG2_NR_NMI_PATHS)

DEFINE_PER_CPU(struct stack_path *, stack_paths);
DEFINE_PER_CPU(struct stack_path[2], only_stack_paths);

/* If the paths took more than a 64th of the memory, each CPU has only two. */
void stack_walk_init(void)
{
	u64 bytes = sizeof(struct stack_path) * (NR_STACK_PATHS + NR_NMI_PATHS);
	unsigned int cpu;

	if (bytes * nr_cpus > page_nr_total() * PAGE_SIZE / 64)
		return;
	for_each_possible_cpu(cpu)
		per_cpu(stack_paths, cpu) = kzalloc(bytes);
}

static struct stack_path *nmi_path_at(u64 pc, u64 sp)
{
	struct stack_path *paths = this_cpu_read(stack_paths);
	u32 hash = stack_path_hash(pc, sp);

	return likely(paths) ? &paths[NR_STACK_PATHS + (hash >> (32 - LOG2_NR_NMI_PATHS))] :
			       this_cpu_ptr(&only_stack_paths[1]);
}

/* Returns the path that begins there, or NULL. */
static struct stack_path *find_path(u64 pc, u64 sp, u64 fp)
{
	struct stack_path *path = in_nmi() ? nmi_path_at(pc, sp) : NULL;

	if (!path || !path->nr || !stack_path_begins_at(path, pc, sp, fp))
		path = stack_path_at(pc, sp);
	return path->nr && stack_path_begins_at(path, pc, sp, fp) ? path : NULL;
}

/* Returns a path that has no functions yet. An NMI finds it only when it has. */
static struct stack_path *new_path(u64 pc, u64 sp, u64 fp)
{
	struct stack_path *path = in_nmi() ? nmi_path_at(pc, sp) : stack_path_at(pc, sp);

	WRITE_ONCE(path->nr, 0);
	WRITE_ONCE(path->nr_on_page, 0);
	barrier();
	path->pc = pc;
	path->sp = sp;
	path->fp = fp;
	for (u32 i = 0; i < TLB_NR_COLORS; i++)
		path->places[i].generation = 0;
	return path;
}

/* Returns path->end if the stack still leads along the path to these callers. */
static noinline enum profile_stack_truncation path_end(const struct stack_path *path,
						       const u64 *pcs)
{
	const u16 *slot = path->slots, *end = slot + path->nr - 1;

	if (slot == end && !own_pgd())
		return PROFILE_NR_STACK_TRUNCATIONS;
	while (slot < end) {
		u64 first = *slot, above = 0, addr = path->sp + first;
		const struct stack_window *window = stack_window_of(addr);
		const char *word;

		if (unlikely(!is_window_of(window, addr)) && !set_window(own_pgd(), addr))
			return PROFILE_NR_STACK_TRUNCATIONS;
		word = (const char *)(addr + window->to_kernel);
		do {
			if (READ_ONCE(*(const u64 *)(word + above)) != *pcs++)
				return PROFILE_NR_STACK_TRUNCATIONS;
			if (++slot == end)
				break;
			above = *slot - first;
		} while (above < PAGE_SIZE - addr % PAGE_SIZE);
	}
	return path->end;
}

/* The registers of a user's frame, and how it was found. */
struct user_frame {
	const u64 *pgd;
	struct profile_user_unwind_place place;
	u64 pc; /* minus 1 if it is a return address */
	u64 sp, fp;
	u64 slot; /* of the return address by which this frame was found */
	bool uses_rules, is_of_signal, has_caller;
	bool has_first_fp;   /* fp is still that of the first function of the path */
	bool needs_first_fp; /* it was used; code without frames has anything there */
};

static bool read_words(struct user_frame *frame, u64 addr, u64 *first, u64 *second)
{
	return read_user_word(frame->pgd, addr, first) &&
	       read_user_word(frame->pgd, addr + sizeof(u64), second);
}

/* Offsets in struct ucontext of Linux's x86-64 ABI, which a signal frame contains. */
#define UCONTEXT_RBP 120
#define UCONTEXT_RSP 160 /* behind it is RIP */

/* Continues with the code that a signal interrupted. */
static enum profile_stack_truncation enter_interrupted(struct user_frame *frame, u64 *ret)
{
	u64 context = frame->sp;

	frame->is_of_signal = true;
	if (!read_words(frame, context + UCONTEXT_RSP, &frame->sp, ret) ||
	    !read_user_word(frame->pgd, context + UCONTEXT_RBP, &frame->fp))
		return PROFILE_STACK_TRUNCATED_USER_MEMORY;
	if (!is_user_code(frame->pgd, *ret))
		return PROFILE_STACK_TRUNCATED_USER_FRAME;
	frame->pc = *ret;
	/* + 1 as in a return address: names are looked up one byte lower. */
	++*ret;
	return PROFILE_NR_STACK_TRUNCATIONS;
}

/* Follows the frame pointer. */
static enum profile_stack_truncation follow_frame(struct user_frame *frame, u64 *ret)
{
	enum profile_stack_truncation end;
	u64 caller;

	frame->needs_first_fp |= frame->has_first_fp;
	frame->has_first_fp = false;
	/*
	 * The outermost frame has no caller. Code without any caller has been built without frames.
	 */
	if (!is_user_frame(frame->fp, frame->sp))
		return frame->fp || !frame->has_caller ? PROFILE_STACK_TRUNCATED_USER_FRAME :
							 PROFILE_STACK_WHOLE;
	end = read_frame(frame->pgd, frame->fp, &caller, ret);
	if (unlikely(end != PROFILE_NR_STACK_TRUNCATIONS))
		return end;
	frame->slot = frame->fp + sizeof(u64);
	frame->sp = frame->fp + sizeof(struct stack_frame);
	frame->fp = caller;
	frame->pc = *ret - 1;
	return PROFILE_NR_STACK_TRUNCATIONS;
}

/* Goes to the caller. Returns why the chain ends, or PROFILE_NR_STACK_TRUNCATIONS. */
static enum profile_stack_truncation next_frame(struct user_frame *frame, u64 *ret)
{
	struct profile_user_unwind rule = profile_user_unwind(&frame->place, frame->pc);
	u64 cfa = frame->sp + rule.cfa * sizeof(u64);

	switch (rule.kind) {
	case PROFILE_UNWIND_UNKNOWN:
		return follow_frame(frame, ret);
	case PROFILE_UNWIND_OUTERMOST:
		return PROFILE_STACK_WHOLE;
	case PROFILE_UNWIND_OTHER_STACK:
		return frame->has_caller ? PROFILE_STACK_WHOLE : follow_frame(frame, ret);
	case PROFILE_UNWIND_SIGNAL:
		frame->uses_rules = true;
		return enter_interrupted(frame, ret);
	case PROFILE_UNWIND_SP:
		break;
	case PROFILE_UNWIND_FP:
		cfa = frame->fp + rule.cfa * sizeof(u64);
		frame->needs_first_fp |= frame->has_first_fp;
		break;
	case PROFILE_UNWIND_PLT:
		cfa = frame->sp + ((frame->pc & 15) >= rule.cfa ? 16 : 8);
		break;
	}
	frame->uses_rules = true;
	frame->slot = cfa - sizeof(u64);
	if (cfa % sizeof(u64) || cfa <= frame->sp || cfa - frame->sp > USER_MAX_FRAME)
		return PROFILE_STACK_TRUNCATED_USER_FRAME;
	if (!read_user_word(frame->pgd, frame->slot, ret) ||
	    (rule.fp && !read_user_word(frame->pgd, cfa - rule.fp * sizeof(u64), &frame->fp)))
		return PROFILE_STACK_TRUNCATED_USER_MEMORY;
	if (unlikely(!is_user_code(frame->pgd, *ret)))
		return PROFILE_STACK_TRUNCATED_USER_FRAME;
	frame->has_first_fp &= !rule.fp;
	frame->sp = cfa;
	frame->pc = *ret - 1;
	return PROFILE_NR_STACK_TRUNCATIONS;
}

/* Returns whether user code made a system call, so that regs->rip is behind the instruction. */
static bool is_behind_call(const struct pt_regs *regs)
{
	return regs == task_pt_regs(current) &&
	       ((const u64 *)regs)[-2] == entry_marks.syscall_return;
}

/* Walks the callers of user code by frame pointer alone. */
static enum profile_stack_truncation follow_frames(struct walker *walker,
						   const struct pt_regs *regs)
{
	enum profile_stack_replay replayable = walker->replayable;
	u64 ret, caller, fp = regs->rbp, low = regs->rsp;
	const u64 *pgd = own_pgd();
	bool has_caller = false;

	walker->replayable = PROFILE_STACK_NOT_REPLAYABLE;
	if (!pgd)
		return PROFILE_STACK_TRUNCATED_USER_MEMORY;
	for (; is_user_frame(fp, low); has_caller = true) {
		enum profile_stack_truncation end = read_frame(pgd, fp, &caller, &ret);

		if (unlikely(end != PROFILE_NR_STACK_TRUNCATIONS)) {
			if (end != PROFILE_STACK_TRUNCATED_USER_MEMORY)
				walker->replayable = replayable;
			return end;
		}
		if (!add_pc(walker, ret))
			return PROFILE_STACK_TRUNCATED_DEPTH;
		low = fp + sizeof(struct stack_frame);
		fp = caller;
	}
	walker->replayable = replayable;
	/*
	 * The outermost frame has no caller. Code without any caller has been built without frames.
	 */
	return fp || !has_caller ? PROFILE_STACK_TRUNCATED_USER_FRAME : PROFILE_STACK_WHOLE;
}

/* Sets the frame at which a walk begins. Returns false if the stack cannot be read now. */
static bool begin_walk(struct user_frame *frame, const struct pt_regs *regs)
{
	frame->pgd = own_pgd();
	if (!frame->pgd)
		return false;
	frame->place = profile_user_unwind_begin(&current->mm->profile);
	frame->pc = regs->rip;
	frame->sp = regs->rsp;
	frame->fp = regs->rbp;
	frame->uses_rules = frame->is_of_signal = frame->has_caller = false;
	frame->has_first_fp = frame->needs_first_fp = false;
	if (is_behind_call(regs) && !profile_user_unwind(&frame->place, frame->pc).kind)
		frame->pc--; /* the call is the last instruction of its function */
	return true;
}

/* As stack_matches_path(), for a path that begins at the caller. */
static noinline bool caller_matches_path(const struct pt_regs *regs, const u64 *pcs, u64 nr,
					 enum profile_stack_truncation end)
{
	const struct stack_path *path;
	struct user_frame frame;
	u64 ret;

	if (nr < 2 || !begin_walk(&frame, regs) ||
	    next_frame(&frame, &ret) != PROFILE_NR_STACK_TRUNCATIONS || ret != pcs[1])
		return false;
	path = find_path(frame.pc, frame.sp, frame.fp);
	return path && path->nr + 1 == nr && path_end(path, pcs + 2) == end;
}

/* An NMI may have interrupted the use of a path, so it changes none. */
static noinline bool path_matches(const struct stack_path *path, const u64 *pcs,
				  enum profile_stack_truncation end)
{
	return path->end == end && path_end(path, pcs + 1) == end;
}

/* Notes where sp is in this generation of the TLB. */
noinline bool stack_matches_path_anew(struct stack_path *path, const u64 *pcs, u64 nr,
				      enum profile_stack_truncation end)
{
	u64 generation = this_cpu_read(tlb_generation), sp = path->sp, entry;
	const u64 *pgd = own_pgd();
	struct stack_place *place = &path->places[generation % TLB_NR_COLORS];

	if (path->pc != *pcs)
		return false;
	if (unlikely(in_nmi()))
		return path_matches(path, pcs, end);
	entry = pgd ? user_entry(pgd, sp) : 0;
	if (!entry || path->end != end)
		return false;
	WRITE_ONCE(place->generation, 0);
	WRITE_ONCE(place->sp, phys_to_virt(entry & PTE_ADDR_MASK) + sp % PAGE_SIZE);
	WRITE_ONCE(place->generation, generation);
	return stack_has_callers(path, place->sp, pcs, nr);
}

noinline bool stack_matches_path_slow(const struct pt_regs *regs, const u64 *pcs, u64 nr,
				      enum profile_stack_truncation end)
{
	struct stack_path *path = find_path(regs->rip, regs->rsp, regs->rbp);

	if (regs->rip != *pcs)
		return false;
	if (!path)
		return caller_matches_path(regs, pcs, nr, end);
	return path->nr == nr && path_matches(path, pcs, end);
}

/* Adds the callers of a path. Returns why the chain ends. */
static enum profile_stack_truncation follow_path(struct walker *walker,
						 const struct stack_path *path,
						 enum profile_stack_replay replayable)
{
	for (u32 i = 0; i < path->nr - 1u; i++) {
		if (!add_pc(walker, path->pcs[i]))
			return PROFILE_STACK_TRUNCATED_DEPTH;
	}
	if (replayable == PROFILE_STACK_REPLAYABLE)
		walker->replayable = PROFILE_STACK_PATH;
	return path->end;
}

/*
 * Walks the callers of user code. Where rules say where frames are, remembers the path of the walk,
 * for stack_matches_path() and for other walks. is_call: user code has entered the kernel, which it
 * often does at the same instruction, so the path begins there.
 */
static enum profile_stack_truncation follow_rules(struct walker *walker, const struct pt_regs *regs,
						  bool is_call)
{
	struct user_frame frame;
	enum profile_stack_replay replayable = walker->replayable;
	struct stack_path *path = NULL;
	u64 ret, pc = regs->rip, nr = 0;
	enum profile_stack_truncation end;

	walker->replayable = PROFILE_STACK_NOT_REPLAYABLE;
	if (!begin_walk(&frame, regs))
		return PROFILE_STACK_TRUNCATED_USER_MEMORY;
	for (;; pc = frame.pc) {
		if (!path && (is_call || frame.has_caller)) {
			const struct stack_path *found = find_path(pc, frame.sp, frame.fp);

			if (found && path_end(found, found->pcs) != PROFILE_NR_STACK_TRUNCATIONS)
				return follow_path(walker, found, replayable);
			path = new_path(pc, frame.sp, frame.fp);
			frame.has_first_fp = true;
			frame.needs_first_fp = false;
		}
		end = next_frame(&frame, &ret);
		if (end != PROFILE_NR_STACK_TRUNCATIONS)
			break;
		if (!add_pc(walker, ret)) {
			end = PROFILE_STACK_TRUNCATED_DEPTH;
			break;
		}
		if (path && frame.slot - path->sp >= BIT(16))
			nr = STACK_PATH_SLOTS; /* too far away for a slot: the path is not kept */
		if (path && nr < STACK_PATH_SLOTS) {
			path->slots[nr] = frame.slot - path->sp;
			path->pcs[nr] = ret;
		}
		nr += path != NULL;
		frame.has_caller = true;
	}
	if (!frame.uses_rules) {
		if (end == PROFILE_STACK_WHOLE || end == PROFILE_STACK_TRUNCATED_USER_FRAME)
			walker->replayable = replayable;
	} else if (path && nr <= STACK_PATH_SLOTS && !frame.is_of_signal &&
		   end != PROFILE_STACK_TRUNCATED_USER_MEMORY &&
		   end != PROFILE_STACK_TRUNCATED_DEPTH) {
		if (replayable == PROFILE_STACK_REPLAYABLE)
			walker->replayable = PROFILE_STACK_PATH;
		path->needs_fp = frame.needs_first_fp;
		path->end = end;
		barrier();
		WRITE_ONCE(path->nr, nr + 1);
		if (!nr || path->sp % PAGE_SIZE + path->slots[nr - 1] < PAGE_SIZE)
			WRITE_ONCE(path->nr_on_page, nr + 1);
	}
	return end;
}

struct profile_stack_walk stack_walk_user(const struct pt_regs *regs, u64 *pcs, u64 nr_kernel,
					  u64 *full, u64 hash, enum profile_stack_replay replayable)
{
	struct walker walker = { .at = pcs + nr_kernel, .full = full, .hash = hash };

	if (add_pc(&walker, regs->rip)) {
		walker.replayable = replayable;
		walker.truncated = profile_user_unwind_is_on() ?
					   follow_rules(&walker, regs, nr_kernel) :
					   follow_frames(&walker, regs);
	}
	return walked(&walker, pcs, nr_kernel);
}
