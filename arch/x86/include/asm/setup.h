/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_SETUP_H
#define ASM_SETUP_H

/* Boot: from head.S to C, CPU set-up, per-CPU areas, and the map of the image. */

#include <asm/page.h>

/*
 * The boot CPU's per-CPU area is the image's copy, seen through the direct map. It is valid from
 * the first C instruction and never moves. Its GS base has the sign bit set, as the NMI entry
 * requires.
 */
#define PERCPU_BOOT_OFFSET (PAGE_OFFSET - KERNEL_MAP_BASE)

/* The value in %eax at the entry from a multiboot2 loader. */
#define MULTIBOOT2_BOOT_MAGIC 0x36d76289

/* No CPU's APIC ID. */
#define TRAMPOLINE_NO_CPU 0xffffffff

#ifndef __ASSEMBLY__
#include <lego/types.h>

/*
 * The loader's %eax (0 for PVH) and %ebx: the physical address of struct hvm_start_info or of the
 * multiboot2 information.
 */
extern u32 boot_loader_magic, boot_start_info;

/* The stack of start_kernel(), later of the boot CPU's idle loop. */
extern char boot_stack[KERNEL_STACK_SIZE];

/*
 * head.S's page table: the identity map and direct map of the low 4 GiB, and the image. All of it
 * is writable and executable.
 */
extern u64 boot_pgd[512];

/*
 * From the linker script. Pages of _text.._etext are code, __rodata_start..__rodata_end constants,
 * the rest data.
 */
extern char _text[], _stext[], _etext[], __rodata_start[], __rodata_end[], _data[], _end[];
extern char __bss_start[], __bss_stop[];
extern char __per_cpu_start[], __per_cpu_end[];
extern char __per_cpu_initial[]; /* room for a copy of the per-CPU section's initial values */

/*
 * Sets up the running CPU: GDT, TSS, IDT, system call entry, protections in CR0, CR4 and EFER, FPU.
 * The GS base is already that of its per-CPU area. Interrupts off.
 */
void cpu_init(unsigned int cpu);

/* Saves the per-CPU section's initial values for the other CPUs, before anything changes them. */
void percpu_save_initial(void);

/* Fills boot_info from the loader's data at boot_start_info (boot/info.c). */
void boot_info_init(void);
#endif

#endif
