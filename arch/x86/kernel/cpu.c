// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sets up a CPU before it runs C code that may be interrupted: descriptor tables, the system call
 * entry and the protections (SDM vol. 3, 2.5, 3.5, 5.8.8, 8.7). All tables are per-CPU variables.
 */
#include <asm/setup.h>

#include <asm/cpufeature.h>
#include <asm/desc.h>
#include <asm/fpu.h>
#include <asm/irqflags.h>
#include <asm/msr.h>
#include <asm/traps.h>
#include <lego/percpu.h>

#define CR0_PE BIT(0)
#define CR0_MP BIT(1)
#define CR0_ET BIT(4)
#define CR0_NE BIT(5)
#define CR0_WP BIT(16)
#define CR0_AM BIT(18)
#define CR0_PG BIT(31)

#define CR4_PAE	 BIT(5)
#define CR4_MCE	 BIT(6)
#define CR4_UMIP BIT(11)
#define CR4_SMEP BIT(20)
#define CR4_SMAP BIT(21)

#define RFLAGS_TF BIT(8)
#define RFLAGS_DF BIT(10)
#define RFLAGS_NT BIT(14)
#define RFLAGS_AC BIT(18)
#define IOPL_3	  (3ULL << 12)

#define NR_GDT_ENTRIES 7
#define TSS_ENTRY      (TSS_SEL / 8)

static const u64 gdt_template[NR_GDT_ENTRIES] = {
	[KERNEL_CS / 8] = 0x00af9b000000ffff,
	[KERNEL_DS / 8] = 0x00cf93000000ffff,
	[USER_DS / 8] = 0x00cff3000000ffff,
	[USER_CS / 8] = 0x00affb000000ffff,
};

static DEFINE_PER_CPU(u64, gdt[NR_GDT_ENTRIES]);
static DEFINE_PER_CPU(char, ist_stacks[NR_ISTS][IST_STACK_SIZE]) __aligned(16);
DEFINE_PER_CPU(struct tss, cpu_tss) __aligned(64);

static void init_tss(struct tss *tss)
{
	char *stacks = (char *)this_cpu_ptr(&ist_stacks);

	for (int i = 0; i < NR_ISTS; i++)
		tss->ist[i] = (u64)(stacks + (i + 1) * IST_STACK_SIZE);
	tss->io_map_base = sizeof(*tss); /* beyond the limit: no I/O ports for users */
}

/* A TSS descriptor takes two entries (SDM vol. 3, figure 8-4). */
static void init_gdt(u64 *table, const struct tss *tss)
{
	u64 base = (u64)tss;

	for (int i = 0; i < NR_GDT_ENTRIES; i++)
		table[i] = gdt_template[i];
	table[TSS_ENTRY] = (sizeof(*tss) - 1) | (base & 0xffffff) << 16 | 0x89ULL << 40 |
			   (base >> 24 & 0xff) << 56;
	table[TSS_ENTRY + 1] = base >> 32;
}

/* FS and GS stay as they are: loading them would clear their bases. */
static void load_gdt(u64 *table)
{
	struct desc_ptr ptr = {
		.limit = sizeof(gdt_template) - 1,
		.base = (u64)table,
	};

	asm volatile("lgdt %0" ::"m"(ptr));
	asm volatile("pushq %0\n\t"
		     "leaq 1f(%%rip), %%rax\n\t"
		     "pushq %%rax\n\t"
		     "lretq\n"
		     "1:\tmovl %1, %%ss\n\t"
		     "movl %2, %%ds\n\t"
		     "movl %2, %%es" ::"i"(KERNEL_CS),
		     "r"(KERNEL_DS), "r"(0)
		     : "rax", "memory");
	asm volatile("ltr %w0" ::"r"(TSS_SEL));
}

static void init_control_registers(void)
{
	u64 cr0 = CR0_PE | CR0_MP | CR0_ET | CR0_NE | CR0_WP | CR0_AM | CR0_PG;
	u64 cr4 = CR4_PAE | CR4_MCE;

	if (cpu_has_smep())
		cr4 |= CR4_SMEP;
	if (cpu_has_smap())
		cr4 |= CR4_SMAP;
	if (cpu_has_umip())
		cr4 |= CR4_UMIP;
	asm volatile("mov %0, %%cr0" ::"r"(cr0) : "memory");
	asm volatile("mov %0, %%cr4" ::"r"(cr4) : "memory");
}

static void init_syscall_msrs(void)
{
	u64 efer = rdmsr(MSR_EFER) | EFER_SCE;

	if (cpu_has_nx())
		efer |= EFER_NXE;
	wrmsr(MSR_EFER, efer);
	/* SYSRET adds 8 for SS and 16 for CS to its half. */
	wrmsr(MSR_STAR, (u64)(USER_DS - 8) << 48 | (u64)KERNEL_CS << 32);
	wrmsr(MSR_LSTAR, (u64)syscall_entry);
	wrmsr(MSR_SFMASK, RFLAGS_TF | RFLAGS_IF | RFLAGS_DF | RFLAGS_NT | RFLAGS_AC | IOPL_3);
	wrmsr(MSR_FS_BASE, 0);
	wrmsr(MSR_KERNEL_GS_BASE, 0);
}

void cpu_init(unsigned int cpu)
{
	struct tss *tss = this_cpu_ptr(&cpu_tss);
	u64 *table = (u64 *)this_cpu_ptr(&gdt);

	init_tss(tss);
	init_gdt(table, tss);
	load_gdt(table);
	idt_load();
	init_control_registers();
	init_syscall_msrs();
	fpu_init_cpu(cpu);
}
