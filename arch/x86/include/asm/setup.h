/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_SETUP_H
#define ASM_SETUP_H

/* Boot: head.S to C, CPU set-up, per-CPU areas, and the image's own map. */

#include <asm/page.h>

/*
 * The boot CPU's per-CPU area is the image's copy, seen through the direct map: valid from the
 * first C instruction, never moved, and a GS base with the sign bit set as the NMI entry wants.
 */
#define PERCPU_BOOT_OFFSET (PAGE_OFFSET - KERNEL_MAP_BASE)

/* What a multiboot2 loader has in %eax at the entry. */
#define MULTIBOOT2_BOOT_MAGIC 0x36d76289

#ifndef __ASSEMBLY__
#include <lego/types.h>

/*
 * What the loader left in %eax, 0 for PVH, and %ebx: the physical address of struct hvm_start_info
 * or of the multiboot2 information.
 */
extern u32 boot_loader_magic, boot_start_info;

/* Stack of start_kernel(), later of the boot CPU's idle loop. */
extern char boot_stack[KERNEL_STACK_SIZE];

/* head.S's page table: identity and direct map of the low 4 GiB, the image; all writable,
 * executable. */
extern u64 boot_pgd[512];

/* Linker script. Pages of _text.._etext are code, __rodata_start..__rodata_end constants, the rest
 * data. */
extern char _text[], _stext[], _etext[], __rodata_start[], __rodata_end[], _data[], _end[];
extern char __bss_start[], __bss_stop[];
extern char __per_cpu_start[], __per_cpu_end[];
extern char __per_cpu_initial[]; /* room for a copy of the per-CPU section in its first state */

/*
 * GDT, TSS, IDT, system call entry, protections in CR0, CR4 and EFER, FPU of the running CPU. The
 * GS base is that of its per-CPU area already. Interrupts off.
 */
void cpu_init(unsigned int cpu);

/* Keep the per-CPU section's initial values for the other CPUs, before anything changes them. */
void percpu_save_initial(void);

/* Fill boot_info from what the loader left at boot_start_info (boot/info.c). */
void boot_info_init(void);
#endif

#endif
