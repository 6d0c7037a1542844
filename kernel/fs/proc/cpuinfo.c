// SPDX-License-Identifier: BSD-2-Clause
/* /proc/cpuinfo: what CPUID says (SDM vol. 2, CPUID), the same for all CPUs. */

#include "internal.h"

#include <asm/cpufeature.h>
#include <lego/smp.h>
#include <lego/string.h>

static void put_u32(char *at, u32 value)
{
	memcpy(at, &value, sizeof(value));
}

static void read_vendor(char vendor[13])
{
	struct cpuid_regs regs = cpuid(0);

	put_u32(vendor, regs.ebx);
	put_u32(vendor + 4, regs.edx);
	put_u32(vendor + 8, regs.ecx);
	vendor[12] = '\0';
}

/* The brand string of leaves 0x80000002 to 4, without the blanks some CPUs put in front. */
static const char *read_model_name(char name[49])
{
	memset(name, 0, 49);
	for (u32 i = 0; i < 3; i++) {
		struct cpuid_regs regs = cpuid_checked(0x80000002 + i, 0);

		put_u32(name + 16 * i, regs.eax);
		put_u32(name + 16 * i + 4, regs.ebx);
		put_u32(name + 16 * i + 8, regs.ecx);
		put_u32(name + 16 * i + 12, regs.edx);
	}
	while (*name == ' ')
		name++;
	return *name ? name : "unknown";
}

static u32 family_of(u32 eax)
{
	u32 family = eax >> 8 & 0xf;

	return family == 0xf ? family + (eax >> 20 & 0xff) : family;
}

static u32 model_of(u32 eax)
{
	u32 family = eax >> 8 & 0xf, model = eax >> 4 & 0xf;

	return family == 6 || family == 0xf ? model + (eax >> 12 & 0xf0) : model;
}

struct flag {
	u32 leaf;
	char reg; /* of a, b, c, d */
	u8 bit;
	const char *name;
};

static const struct flag flags[] = {
	{ 1, 'd', 0, "fpu" },
	{ 1, 'd', 3, "pse" },
	{ 1, 'd', 4, "tsc" },
	{ 1, 'd', 5, "msr" },
	{ 1, 'd', 6, "pae" },
	{ 1, 'd', 9, "apic" },
	{ 1, 'd', 15, "cmov" },
	{ 1, 'd', 19, "clflush" },
	{ 1, 'd', 23, "mmx" },
	{ 1, 'd', 24, "fxsr" },
	{ 1, 'd', 25, "sse" },
	{ 1, 'd', 26, "sse2" },
	{ 0x80000001, 'd', 11, "syscall" },
	{ 0x80000001, 'd', 20, "nx" },
	{ 0x80000001, 'd', 26, "pdpe1gb" },
	{ 0x80000001, 'd', 27, "rdtscp" },
	{ 0x80000001, 'd', 29, "lm" },
	{ 0x80000007, 'd', 8, "constant_tsc" },
	{ 1, 'c', 0, "pni" },
	{ 1, 'c', 9, "ssse3" },
	{ 1, 'c', 12, "fma" },
	{ 1, 'c', 13, "cx16" },
	{ 1, 'c', 19, "sse4_1" },
	{ 1, 'c', 20, "sse4_2" },
	{ 1, 'c', 23, "popcnt" },
	{ 1, 'c', 25, "aes" },
	{ 1, 'c', 26, "xsave" },
	{ 1, 'c', 28, "avx" },
	{ 1, 'c', 30, "rdrand" },
	{ 1, 'c', 31, "hypervisor" },
	{ 7, 'b', 3, "bmi1" },
	{ 7, 'b', 5, "avx2" },
	{ 7, 'b', 7, "smep" },
	{ 7, 'b', 8, "bmi2" },
	{ 7, 'b', 9, "erms" },
	{ 7, 'b', 18, "rdseed" },
	{ 7, 'b', 20, "smap" },
};

static bool has_flag(const struct flag *flag)
{
	struct cpuid_regs regs = cpuid_checked(flag->leaf, 0);
	u32 value = flag->reg == 'b' ? regs.ebx : flag->reg == 'c' ? regs.ecx : regs.edx;

	return value >> flag->bit & 1;
}

int proc_show_cpuinfo(struct text *text, const void *unused)
{
	u32 version = cpuid(1).eax;
	char vendor[13], name[49];
	unsigned int cpu;

	read_vendor(vendor);
	for_each_online_cpu(cpu) {
		text_printf(text, "processor\t: %u\nvendor_id\t: %s\ncpu family\t: %u\n", cpu,
			    vendor, family_of(version));
		text_printf(text, "model\t\t: %u\nmodel name\t: %s\nstepping\t: %u\n",
			    model_of(version), read_model_name(name), version & 0xf);
		text_printf(text, "cpu MHz\t\t: %llu.%03llu\nflags\t\t:",
			    (unsigned long long)tsc_khz / 1000, (unsigned long long)tsc_khz % 1000);
		for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
			if (has_flag(&flags[i]))
				text_printf(text, " %s", flags[i].name);
		}
		text_printf(text, "\n\n");
	}
	return 0;
}
