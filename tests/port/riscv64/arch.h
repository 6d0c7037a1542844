/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PORT_RISCV64_ARCH_H
#define PORT_RISCV64_ARCH_H

/* riscv64 in supervisor mode, without page tables. The register tp leads to this CPU's struct. */

/* The registers that an interrupt saves: those that C functions may change, s0 and sp. */
struct pt_regs {
	u64 ra, sp, s0, t[7], a[8];
	u64 sepc, sstatus;
};

#define SSTATUS_SIE  (1ul << 1) /* interrupts are on */
#define SSTATUS_SPIE (1ul << 5) /* they were before the interrupt */

#define os_regs_pc(regs)       ((regs)->sepc)
#define os_regs_sp(regs)       ((regs)->sp)
#define os_regs_fp(regs)       ((regs)->s0)
#define os_regs_link(regs)     ((regs)->ra)
#define os_regs_irqs_off(regs) (!((regs)->sstatus & SSTATUS_SPIE))

#define FLAGS_IRQS_ON  SSTATUS_SIE
#define FLAGS_IRQS_OFF 0ul

#define SWITCH_WORDS 14
#define SWITCH_PC    12

static inline struct cpu *read_this_cpu(void)
{
	struct cpu *cpu;

	asm volatile("mv %0, tp" : "=r"(cpu));
	return cpu;
}

static inline void set_this_cpu(struct cpu *cpu)
{
	asm volatile("mv tp, %0" : : "r"(cpu));
}

/* An interrupt that comes before wfi ends it, although it is only taken afterwards. */
static inline void wait_for_interrupt(void)
{
	asm volatile("wfi; csrs sstatus, %0" : : "r"(SSTATUS_SIE) : "memory");
}

#endif
