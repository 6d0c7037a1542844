/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef X86_KERNEL_STACKTRACE_H
#define X86_KERNEL_STACKTRACE_H

/* Shared by both parts of a stack walk, stacktrace.c and stacktrace_user.c. */

#include <asm/stack_match.h>

/* Functions that take a walker are inlined, so that it stays in registers. */
struct walker {
	u64 *at, *full;
	u64 hash;
	enum profile_stack_truncation truncated;
	enum profile_stack_replay replayable; /* the part walked so far */
};

static __always_inline bool add_pc(struct walker *walker, u64 pc)
{
	if (unlikely(walker->at == walker->full)) {
		walker->truncated = PROFILE_STACK_TRUNCATED_DEPTH;
		return false;
	}
	*walker->at++ = pc;
	walker->hash = profile_stack_mix(walker->hash, pc);
	return true;
}

static __always_inline struct profile_stack_walk walked(const struct walker *walker, const u64 *pcs,
							u64 nr_kernel)
{
	return (struct profile_stack_walk){
		.hash = walker->hash,
		.counts = PROFILE_STACK_COUNTS(nr_kernel, walker->at - pcs - nr_kernel,
					       walker->truncated, walker->replayable),
	};
}

/*
 * Continues with user code behind nr_kernel pcs. hash, replayable: of the kernel's part. Interrupts
 * off.
 */
struct profile_stack_walk stack_walk_user(const struct pt_regs *regs, u64 *pcs, u64 nr_kernel,
					  u64 *full, u64 hash,
					  enum profile_stack_replay replayable);

#endif
