// SPDX-License-Identifier: BSD-2-Clause
/* Offsets for assembly: the build picks the "->" lines out of the compiler's output. */

#include <asm/ptrace.h>
#include <lego/cputime.h>
#include <lego/irq.h>

#define DEFINE(sym, value) asm volatile("\n.ascii \"->" #sym " %0 " #value "\"" ::"i"(value))
#define REG(sym, reg)	   DEFINE(PT_##sym, offsetof(struct pt_regs, reg))

void asm_offsets(void);

void asm_offsets(void)
{
	REG(R11, r11);
	REG(RAX, rax);
	REG(RCX, rcx);
	REG(RDX, rdx);
	REG(RSI, rsi);
	REG(RDI, rdi);
	REG(ORIG_RAX, orig_rax);
	REG(RIP, rip);
	REG(CS, cs);
	REG(RFLAGS, rflags);
	REG(RSP, rsp);
	REG(SS, ss);
	DEFINE(PT_BYTES, sizeof(struct pt_regs));
	DEFINE(NMI_OFFSET, NMI_OFFSET);
	DEFINE(ACCOUNT_ENTRY, offsetof(struct cpu_account, entry_cycles));
	DEFINE(ACCOUNT_OWNER, offsetof(struct cpu_account, owner));
}
