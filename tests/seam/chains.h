/* SPDX-License-Identifier: BSD-2-Clause */
/* Needed by call chains, besides samples.h. A chain has either kernel or user addresses here. */
static inline struct profile_stack_walk os_stack_walk(const os_regs_t *regs, u64 *pcs, u32 max)
{
	u32 nr = backtrace(regs, pcs, max), nr_user = os_regs_user(regs) ? nr : 0, i;
	struct profile_stack_walk walk = { 0 };

	for (i = 0; i < nr; i++)
		walk.hash = profile_stack_mix(walk.hash, pcs[i]);
	walk.counts = PROFILE_STACK_COUNTS(nr - nr_user, nr_user, PROFILE_STACK_WHOLE,
					   PROFILE_STACK_NOT_REPLAYABLE);
	return walk;
}
#define os_stack_walk	   os_stack_walk
#define os_regs_here(regs) ((void)memset(regs, 0, sizeof(*(regs))))
