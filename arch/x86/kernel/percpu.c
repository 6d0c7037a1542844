// SPDX-License-Identifier: BSD-2-Clause
/*
 * Per-CPU areas. The boot CPU keeps the image's copy, which is in use since the first C
 * instruction; pointers to it may exist. Every other CPU gets a copy of the section's initial
 * values, whose memory is then free.
 */
#include <lego/percpu.h>

#include <asm/setup.h>
#include <lego/boot.h>
#include <lego/bug.h>
#include <lego/page.h>
#include <lego/smp.h>
#include <lego/string.h>

u64 percpu_offset[CONFIG_NR_CPUS] = { PERCPU_BOOT_OFFSET };

DEFINE_PER_CPU(u64, this_cpu_offset) = PERCPU_BOOT_OFFSET;
DEFINE_PER_CPU(unsigned int, cpu_number);

void percpu_save_initial(void)
{
	memcpy(__per_cpu_initial, __per_cpu_start, __per_cpu_end - __per_cpu_start);
}

void percpu_init(void)
{
	size_t size_bytes = __per_cpu_end - __per_cpu_start;
	unsigned int order = 0;

	while (PAGE_SIZE << order < size_bytes)
		order++;
	for (unsigned int cpu = 1; cpu < nr_cpus; cpu++) {
		struct page *page = page_alloc(order, 0);
		char *area;

		if (!page)
			panic("no memory for the per-CPU area of CPU %u", cpu);
		area = page_address(page);
		memcpy(area, __per_cpu_initial, size_bytes);
		percpu_offset[cpu] = (u64)area - (u64)__per_cpu_start;
		per_cpu(this_cpu_offset, cpu) = percpu_offset[cpu];
		per_cpu(cpu_number, cpu) = cpu;
	}
	page_free_range(virt_to_phys(__per_cpu_initial), virt_to_phys(__bss_stop));
}
