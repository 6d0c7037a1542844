// SPDX-License-Identifier: BSD-2-Clause
#include <asm/ptrace.h>
#include <lego/irq.h>

/* Offsets for assembly: the build picks the "->" lines out of the compiler's output. */

#define DEFINE(sym, value) asm volatile("\n.ascii \"->" #sym " %0 " #value "\"" ::"i"(value))
#define REG(sym, reg)	   DEFINE(PT_##sym, offsetof(struct pt_regs, reg))

void asm_offsets(void);

void asm_offsets(void)
{
	REG(R11, r11);
	REG(RCX, rcx);
	REG(ORIG_RAX, orig_rax);
	REG(RIP, rip);
	REG(CS, cs);
	REG(RFLAGS, rflags);
	REG(RSP, rsp);
	REG(SS, ss);
	DEFINE(PT_BYTES, sizeof(struct pt_regs));
	DEFINE(NMI_OFFSET, NMI_OFFSET);
}
