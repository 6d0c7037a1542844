/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_TEXT_PATCH_H
#define ASM_TEXT_PATCH_H

#include <lego/types.h>

/*
 * Writes to the kernel's code, which is mapped read-only, through a temporary writable alias that
 * only this CPU uses. The bytes may span two pages. The caller serializes writers. Any context but
 * NMI. Other CPUs may run the bytes meanwhile; the caller must make that safe.
 */
void text_write(void *addr, const void *bytes, size_t n);

/* Makes every CPU discard prefetched instructions. Process context, interrupts on. */
void text_sync_cpus(void);

#define TEXT_PATCH_BYTES 5

struct text_insn {
	u8 opcode;
	s32 distance; /* of a call or jump, from its end */
} __packed;

/* The NOP of 5 bytes. */
#define TEXT_NOP ((struct text_insn){ 0x0f, 0x0000441f })

/* Returns a call or jump at an address. */
static inline struct text_insn text_branch(u8 opcode, const u8 *at, u64 target)
{
	return (struct text_insn){ opcode, (s32)(target - (u64)(at + TEXT_PATCH_BYTES)) };
}

struct pt_regs;

/* Instructions of TEXT_PATCH_BYTES to be changed together, while other CPUs may run them. */
struct text_patch {
	u32 nr;
	/*
	 * Returns the address of instruction i and stores the new instruction; NULL: it does not
	 * change. Fast if the addresses ascend. Must be notrace; interrupts
	 * may be off.
	 */
	u8 *(*site)(u32 i, struct text_insn *insn);
	/*
	 * Returns where a CPU continues that has come to addr during the change: as if the
	 * instruction were the new one, or a NOP. 0: none of these instructions is there. Any
	 * context.
	 */
	u64 (*resume)(u64 addr);
};

/*
 * Changes instructions. Until it returns, one CPU may still run the old instruction and another
 * already the new one. Process context, interrupts on; may sleep.
 */
void text_patch_apply(const struct text_patch *patch);

/*
 * Called by the breakpoint exception in the kernel. Returns true if the instruction is being
 * changed, with regs set to where the CPU continues. Any context.
 */
bool text_patch_breakpoint(struct pt_regs *regs);

#endif
