/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PORT_AARCH64_ARCH_H
#define PORT_AARCH64_ARCH_H

/* aarch64 at EL1, without page tables. TPIDR_EL1 leads to this CPU's struct. */

/* The registers that an interrupt saves: those that C functions may change, and x29. */
struct pt_regs {
	u64 x[19], fp, lr, sp;
	u64 elr, spsr;
};

#define SPSR_IRQS_OFF (1ul << 7)

#define os_regs_pc(regs)       ((regs)->elr)
#define os_regs_sp(regs)       ((regs)->sp)
#define os_regs_fp(regs)       ((regs)->fp)
#define os_regs_irqs_off(regs) (((regs)->spsr & SPSR_IRQS_OFF) != 0)

#define FLAGS_IRQS_ON  0ul /* of DAIF */
#define FLAGS_IRQS_OFF 0xc0ul

#define SWITCH_WORDS 12
#define SWITCH_PC    11

static inline struct cpu *read_this_cpu(void)
{
	struct cpu *cpu;

	asm volatile("mrs %0, tpidr_el1" : "=r"(cpu));
	return cpu;
}

static inline void set_this_cpu(struct cpu *cpu)
{
	asm volatile("msr tpidr_el1, %0" : : "r"(cpu));
}

/* An interrupt that comes before wfi ends it, although it is only taken afterwards. */
static inline void wait_for_interrupt(void)
{
	asm volatile("wfi; msr daifclr, #3" : : : "memory");
}

#endif
