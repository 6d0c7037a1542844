// SPDX-License-Identifier: BSD-2-Clause
/*
 * /proc/interrupts, slabinfo and vmstat, in Linux's formats (proc(5), slabinfo(5)). They have what
 * the kernel counts, and zeros for what it cannot do: it has no disk and no swap.
 */
#include "internal.h"

#include <asm/acpi.h>
#include <asm/traps.h>
#include <asm/vectors.h>
#include <lego/page.h>
#include <lego/printk.h>
#include <lego/slab.h>
#include <lego/smp.h>

#define U64(x) ((unsigned long long)(x))

#define UART_IRQ 4 /* of COM1 */

static const struct {
	unsigned int vector;
	const char *name, *what;
} local_interrupts[] = {
	{ VECTOR_TIMER, "LOC", "Local timer interrupts" },
	{ VECTOR_SPURIOUS, "SPU", "Spurious interrupts" },
	{ VECTOR_RESCHEDULE, "RES", "Rescheduling interrupts" },
	{ VECTOR_CALL, "CAL", "Function call interrupts" },
	{ VECTOR_TLB, "TLB", "TLB shootdowns" },
};

static void show_counts(struct text *text, const char *name, unsigned int vector)
{
	unsigned int cpu;

	text_printf(text, "%3s: ", name);
	for_each_online_cpu(cpu)
		text_printf(text, "%10llu ", U64(irq_nr_handled(cpu, vector)));
}

int proc_show_interrupts(struct text *text, const void *unused)
{
	const struct acpi_isa_irq *uart = &acpi_info.isa_irqs[UART_IRQ];
	unsigned int cpu;

	text_printf(text, "     ");
	for_each_online_cpu(cpu)
		text_printf(text, "      CPU%-2u", cpu);
	text_printf(text, "\n");
	show_counts(text, "4", VECTOR_UART);
	text_printf(text, " IO-APIC %3u-%s      ttyS0\n", uart->gsi,
		    uart->level ? "fasteoi" : "edge");
	for (size_t i = 0; i < ARRAY_SIZE(local_interrupts); i++) {
		show_counts(text, local_interrupts[i].name, local_interrupts[i].vector);
		text_printf(text, "  %s\n", local_interrupts[i].what);
	}
	return 0;
}

u64 proc_nr_interrupts(void)
{
	unsigned int cpu;
	u64 nr = 0;

	for_each_online_cpu(cpu) {
		for (unsigned int vector = 0; vector < NR_VECTORS; vector++)
			nr += irq_nr_handled(cpu, vector);
	}
	return nr;
}

/* Each size of kmalloc() is a cache. A CPU keeps at most two batches of free objects. */
int proc_show_slabinfo(struct text *text, const void *unused)
{
	text_printf(text, "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> "
			  "<objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> "
			  "<sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n");
	for (unsigned int class = 0; class < SLAB_NR_CLASSES; class ++) {
		struct slab_class info;
		char name[24];

		slab_get_class(class, &info);
		snprintf(name, sizeof(name), "kmalloc-%u", info.size);
		text_printf(text, "%-17s %6llu %6llu %6u %4u %4u : tunables %4u %4u %4u", name,
			    U64(info.nr_live), U64(info.nr_slabs * info.nr_per_slab), info.size,
			    info.nr_per_slab, 1u << info.order, 2 * info.batch, info.batch, 0);
		text_printf(text, " : slabdata %6llu %6llu %6u\n",
			    U64(info.nr_slabs - info.nr_empty), U64(info.nr_slabs), 0);
	}
	return 0;
}

static u64 nr_faults(void)
{
	unsigned int cpu;
	u64 nr = 0;

	for_each_possible_cpu(cpu)
		nr += READ_ONCE(per_cpu(cpu_account, cpu).events[CPU_FAULTS]);
	return nr;
}

int proc_show_vmstat(struct text *text, const void *unused)
{
	text_printf(text, "nr_free_pages %llu\nnr_slab_reclaimable 0\nnr_slab_unreclaimable %llu\n",
		    U64(page_nr_free()), U64(slab_nr_pages()));
	text_printf(text, "pgpgin 0\npgpgout 0\npswpin 0\npswpout 0\npgfault %llu\npgmajfault 0\n",
		    U64(nr_faults()));
	return 0;
}
