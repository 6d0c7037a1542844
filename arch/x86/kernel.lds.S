/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layout of the image. Code, constants and data each start on a page of their own, so that
 * paging_init() can protect them. Linked at KERNEL_VIRT, loaded at KERNEL_PHYS. Tables to which
 * files add entries (sections with a C identifier as name) have __start_ and __stop_ symbols.
 */
#define VIRT	   0xffffffff81000000 /* KERNEL_VIRT, without UL */
#define LOAD_PHYS  0x200000	      /* KERNEL_PHYS */
#define PAGE	   0x1000
#define CACHE_LINE 64

#define PHYS(section) AT(ADDR(section) - VIRT + LOAD_PHYS)

#define TABLE(name)                                                                                \
	. = ALIGN(8);                                                                              \
	__start_##name = .;                                                                        \
	KEEP(*(name))                                                                              \
	__stop_##name = .;

OUTPUT_FORMAT(elf64-x86-64)
OUTPUT_ARCH(i386:x86-64)
ENTRY(pvh_entry)

PHDRS
{
	text PT_LOAD FLAGS(5);
	rodata PT_LOAD FLAGS(4);
	data PT_LOAD FLAGS(6);
	note PT_NOTE FLAGS(4);
}

SECTIONS
{
	. = VIRT;

	.text : PHYS(.text) {
		_text = .;
		*(.head.text)
		_stext = .;
		*(.entry.text)
#ifdef CONFIG_PROFILE_FUNCTIONS
		function_calls_start = .;
		*(.entry.calls)
		function_hooks_start = .;
		*(.entry.hooks)
		function_calls_end = .;
#endif
		__sched_text_start = .;
		__lock_text_start = .;
		*kernel?sched?*mutex.o(.text .text.*)
		__lock_text_end = .;
		*kernel?sched?*.o(.text .text.*)
		*kernel?time?sleep.o(.text .text.*)
		__sched_text_end = .;
		*(.text .text.*)
		_etext = .;
	} :text =0xcccccccc

	. = ALIGN(PAGE);
	.rodata : PHYS(.rodata) {
		__rodata_start = .;
		*(.rodata .rodata.str* .rodata.cst* .rodata.trampoline .data.rel.ro .data.rel.ro.*)
		TABLE(__ex_table)
		TABLE(smap_sites)
		TABLE(clock_reads)
		TABLE(static_key_sites)
		TABLE(point_fences)
		TABLE(boot_params)
		TABLE(sysrq_keys)
		TABLE(profilers)
		TABLE(tracers)
		TABLE(selftests)
		TABLE(memory_sites)
#ifdef CONFIG_PROFILE_FUNCTIONS
		TABLE(__patchable_function_entries)
		TABLE(function_frameless)
#endif
	} :rodata

	/* QEMU reads PT_NOTE with the segment's alignment: 4, as for all notes here. */
	.notes : PHYS(.notes) {
		KEEP(*(.note.Xen))
		__build_id_start = .;
		KEEP(*(.note.gnu.build-id))
		__build_id_end = .;
	} :rodata :note

	/* After all other constants, because its size differs from one link pass to the next. */
	.kallsyms : PHYS(.kallsyms) {
		*(.rodata.kallsyms)
	} :rodata

	. = ALIGN(PAGE);
	__rodata_end = .;

	.data : PHYS(.data) {
		_data = .;
		*(.data.boot_stack)
		*(.data .data.[!.]*)
		. = ALIGN(CACHE_LINE);
		*(.data..cacheline_aligned)
		. = ALIGN(CACHE_LINE);
		*(.data..read_mostly)
		. = ALIGN(CACHE_LINE);
		TABLE(profile_points)
		TABLE(trace_events)
	} :data

	. = ALIGN(PAGE);
	.data..percpu : PHYS(.data..percpu) {
		__per_cpu_start = .;
		*(.data..percpu)
		. = ALIGN(CACHE_LINE);
		__per_cpu_end = .;
	} :data

	. = ALIGN(PAGE);
	.bss : PHYS(.bss) {
		__bss_start = .;
		*(.bss .bss.* COMMON)
		. = ALIGN(PAGE);
		__per_cpu_initial = .;
		. += __per_cpu_end - __per_cpu_start;
		. = ALIGN(PAGE);
		__bss_stop = .;
	} :data

	_end = .;

#ifdef CONFIG_PROFILE_FUNCTIONS
	/* MAX_TEXT, without UL */
	ASSERT(_etext - _text <= 0x100000, "the text is too large: double MAX_TEXT, also here")
#endif

	/* Not loaded: scripts/frameless.py reads it. */
	.eh_frame 0 (INFO) : {
		*(.eh_frame)
	}

	/DISCARD/ : {
		*(.comment .note.gnu.property .note.GNU-stack)
	}
}
