// SPDX-License-Identifier: BSD-2-Clause
/*
 * /sys, a file system of the type sysfs, with what programs read there to learn about CPUs: Linux's
 * files of devices/system/cpu. /sys/kernel/tracing is mounted on it.
 *
 * The place of a CPU in the machine is its APIC id, whose lowest bits number the threads of a core,
 * and the next ones the cores of a package (SDM vol. 3, 8.9). All CPUs divide their ids alike.
 */
#include "../mount.h"
#include "internal.h"

#include <asm/acpi.h>
#include <asm/cpufeature.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/printk.h>
#include <lego/slab.h>
#include <lego/smp.h>

#define PLACE	"sys"
#define CPU_DIR "devices/system/cpu/"

static struct inode *sys_root;
static unsigned int core_shift, package_shift; /* of an APIC id */

/* Returns how many bits are needed to number that many things. */
static unsigned int nr_bits(u32 nr)
{
	return nr > 1 ? 32 - __builtin_clz(nr - 1) : 0;
}

#define LEVEL_THREADS 1
#define LEVEL_CORES   2

/* Learns how APIC ids are divided: from CPUID's leaf 11 or, on older CPUs, from leaves 1 and 4. */
static void read_topology(void)
{
	struct cpuid_regs threads = cpuid_checked(11, 0), cores = cpuid_checked(11, 1);
	struct cpuid_regs basic = cpuid(1);
	u32 nr_threads = basic.edx >> 28 & 1 ? basic.ebx >> 16 & 0xff : 1;
	u32 nr_cores = (cpuid_checked(4, 0).eax >> 26) + 1;

	if ((threads.ecx >> 8 & 0xff) == LEVEL_THREADS && (cores.ecx >> 8 & 0xff) == LEVEL_CORES) {
		core_shift = threads.eax & 31;
		package_shift = cores.eax & 31;
		return;
	}
	package_shift = nr_bits(nr_threads);
	core_shift = package_shift - min(nr_bits(nr_cores), package_shift);
}

static u32 package_of(unsigned int cpu)
{
	return acpi_info.apic_id[cpu] >> package_shift;
}

/* Returns the number of a CPU's core within its package. */
static u32 core_of(unsigned int cpu)
{
	return (acpi_info.apic_id[cpu] & ((1u << package_shift) - 1)) >> core_shift;
}

/* Returns the online CPUs of the same package or, if core is set, of the same core. */
static cpumask_t siblings_of(unsigned int cpu, bool core)
{
	cpumask_t mask = 0;
	unsigned int other;

	for_each_online_cpu(other) {
		if (package_of(other) == package_of(cpu) &&
		    (!core || core_of(other) == core_of(cpu)))
			mask |= (cpumask_t)1 << other;
	}
	return mask;
}

/* Prints CPUs as a list of ranges: 0-3,5. */
static int show_list(struct text *text, cpumask_t mask)
{
	const char *before = "";
	unsigned int first, last;

	for (first = 0; first < nr_cpus; first = last + 1) {
		last = first;
		if (!(mask >> first & 1))
			continue;
		while (last + 1 < nr_cpus && mask >> (last + 1) & 1)
			last++;
		text_printf(text, first == last ? "%s%u" : "%s%u-%u", before, first, last);
		before = ",";
	}
	text_printf(text, "\n");
	return 0;
}

/* Prints CPUs as a hexadecimal number, with as many digits as all CPUs need; a comma after 32. */
static int show_mask(struct text *text, cpumask_t mask)
{
	for (unsigned int digit = DIV_ROUND_UP(nr_cpus, 4); digit-- > 0;)
		text_printf(text, digit == 8 ? "%x," : "%x", (u32)(mask >> 4 * digit & 15));
	text_printf(text, "\n");
	return 0;
}

static cpumask_t all_cpus(void)
{
	return (cpumask_t)(~0ull >> (64 - nr_cpus));
}

static int show_possible(struct text *text, const void *unused)
{
	return show_list(text, all_cpus());
}

static int show_online(struct text *text, const void *unused)
{
	return show_list(text, READ_ONCE(cpu_online_mask));
}

static int show_offline(struct text *text, const void *unused)
{
	return show_list(text, all_cpus() & ~READ_ONCE(cpu_online_mask));
}

static int show_kernel_max(struct text *text, const void *unused)
{
	text_printf(text, "%u\n", CONFIG_NR_CPUS - 1);
	return 0;
}

static int show_package(struct text *text, const void *cpu)
{
	text_printf(text, "%u\n", package_of((unsigned long)cpu));
	return 0;
}

static int show_core(struct text *text, const void *cpu)
{
	text_printf(text, "%u\n", core_of((unsigned long)cpu));
	return 0;
}

static int show_core_cpus(struct text *text, const void *cpu)
{
	return show_mask(text, siblings_of((unsigned long)cpu, true));
}

static int show_core_cpus_list(struct text *text, const void *cpu)
{
	return show_list(text, siblings_of((unsigned long)cpu, true));
}

static int show_package_cpus(struct text *text, const void *cpu)
{
	return show_mask(text, siblings_of((unsigned long)cpu, false));
}

static int show_package_cpus_list(struct text *text, const void *cpu)
{
	return show_list(text, siblings_of((unsigned long)cpu, false));
}

struct sys_file {
	const char *name;
	int (*show)(struct text *text, const void *cpu);
};

static const struct sys_file cpus_files[] = {
	{ "kernel_max", show_kernel_max }, { "offline", show_offline },	 { "online", show_online },
	{ "possible", show_possible },	   { "present", show_possible },
};

/* Each CPU has these files in topology/. Most programs read the old names of some of them. */
static const struct sys_file topology_files[] = {
	{ "core_cpus", show_core_cpus },
	{ "core_cpus_list", show_core_cpus_list },
	{ "core_id", show_core },
	{ "core_siblings", show_package_cpus },
	{ "core_siblings_list", show_package_cpus_list },
	{ "package_cpus", show_package_cpus },
	{ "package_cpus_list", show_package_cpus_list },
	{ "physical_package_id", show_package },
	{ "thread_siblings", show_core_cpus },
	{ "thread_siblings_list", show_core_cpus_list },
};

/* Returns false if there is no memory. */
static bool create_files(const char *dir, const struct sys_file *files, size_t nr, const void *arg)
{
	struct proc_file *made = kzalloc(nr * sizeof(*made));
	struct inode *inode;
	const char *name;

	inode = made ? tree_make_directories(sys_root, dir, 0555, &name) : NULL;
	for (size_t i = 0; inode && !IS_ERR(inode) && i < nr; i++) {
		struct inode *file;

		made[i].name = files[i].name;
		made[i].mode = 0444;
		made[i].show = files[i].show;
		made[i].arg = arg;
		file = proc_create_file(inode, &made[i]);
		if (IS_ERR(file))
			return false;
	}
	return inode && !IS_ERR(inode);
}

/* Makes /sys. Called once, at boot. */
static struct inode *make_root(struct filesystem *fs)
{
	char dir[sizeof(CPU_DIR) + 32];
	unsigned int cpu;
	bool done;

	sys_root = tree_create_root(fs, 0555);
	if (!sys_root)
		return NULL;
	done = create_files(CPU_DIR, cpus_files, ARRAY_SIZE(cpus_files), NULL);
	for_each_possible_cpu(cpu) {
		snprintf(dir, sizeof(dir), CPU_DIR "cpu%u/topology/", cpu);
		done = done && create_files(dir, topology_files, ARRAY_SIZE(topology_files),
					    (void *)(unsigned long)cpu);
	}
	if (!done)
		panic("no memory for the files of /sys");
	return sys_root;
}

static const struct fs_type sysfs_type = {
	.name = "sysfs",
	.make_root = make_root,
	.magic = 0x62656572,
	.single = true,
	.is_fixed = true,
	.is_permanent = true,
};

void sysfs_init(void)
{
	read_topology();
	if (fs_register(&sysfs_type))
		panic("no room for sysfs");
	fs_mount_at_boot(sysfs_type.name, PLACE);
}
