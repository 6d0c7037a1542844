/* SPDX-License-Identifier: BSD-2-Clause */
/* What call chains need as well as samples.h: chains of the kernel alone, or of the user alone. */
static inline struct stack_walk os_stack_walk(const os_regs_t *regs, u64 *pcs, u32 max)
{
	u32 nr = backtrace(regs, pcs, max), nr_user = os_regs_user(regs) ? nr : 0, i;
	struct stack_walk walk = { 0 };

	for (i = 0; i < nr; i++)
		walk.hash = stack_mix(walk.hash, pcs[i]);
	walk.counts = STACK_COUNTS(nr - nr_user, nr_user, STACK_WHOLE, STACK_NOT_REPLAYABLE);
	return walk;
}
#define os_stack_walk	   os_stack_walk
#define os_regs_here(regs) ((void)memset(regs, 0, sizeof(*(regs))))
