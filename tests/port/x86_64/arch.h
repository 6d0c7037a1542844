/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PORT_X86_64_ARCH_H
#define PORT_X86_64_ARCH_H

/* x86-64. The segment register gs leads to this CPU's pointer to its struct. */

struct pt_regs {
	u64 r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax;
	u64 vector, error, rip, cs, rflags, rsp, ss;
};

#define FLAGS_IRQS_ON  (1ul << 9)
#define FLAGS_IRQS_OFF 0ul

#define os_regs_pc(regs)       ((regs)->rip)
#define os_regs_sp(regs)       ((regs)->rsp)
#define os_regs_fp(regs)       ((regs)->rbp)
#define os_regs_irqs_off(regs) (!((regs)->rflags & FLAGS_IRQS_ON))

#define SWITCH_WORDS 7
#define SWITCH_PC    6

static inline struct cpu *read_this_cpu(void)
{
	struct cpu *cpu;

	asm volatile("movq %%gs:0, %0" : "=r"(cpu));
	return cpu;
}

void set_this_cpu(struct cpu *cpu);

/* Interrupts stay off until hlt has begun, so none is missed. */
static inline void wait_for_interrupt(void)
{
	asm volatile("sti; hlt" : : : "memory");
}

#endif
