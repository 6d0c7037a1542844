/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_TEXT_PATCH_H
#define ASM_TEXT_PATCH_H

#include <lego/types.h>

/*
 * Write to the kernel's code, which is mapped read-only, through a writable alias that exists only
 * for the call and is used by this CPU only. The bytes may lie in two pages. Serialized by the
 * caller; any context but NMI. Other CPUs may run the bytes meanwhile: what makes that safe is the
 * caller's business.
 */
void text_write(void *addr, const void *bytes, size_t n);

/* Make every CPU forget instructions it fetched earlier. Process context, interrupts on. */
void text_sync_cpus(void);

#define TEXT_PATCH_BYTES 5

struct pt_regs;

/* Instructions of TEXT_PATCH_BYTES that change together while other CPUs may run them. */
struct text_patch {
	u32 nr;
	/* Returns where instruction i stands, and stores the new one; NULL: it does not change. */
	u8 *(*site)(u32 i, u8 *insn);
	/*
	 * Meanwhile, returns where a CPU goes on that has come to addr: as if the instruction there
	 * were the new one, or a NOP. 0: none of these instructions is there. Any context.
	 */
	u64 (*resume)(u64 addr);
};

/*
 * Changes instructions. Until this returns, an instruction may still be the old one on one CPU and
 * already the new one on another. Process context, interrupts on; may sleep.
 */
void text_patch_apply(const struct text_patch *patch);

/*
 * From the breakpoint exception in the kernel. True: the instruction is being changed, and regs go
 * on as it says. Any context.
 */
bool text_patch_breakpoint(struct pt_regs *regs);

#endif
