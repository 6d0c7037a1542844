// SPDX-License-Identifier: BSD-2-Clause
/*
 * The few ACPI tables a kernel needs to find CPUs, interrupt controllers, timers and the power
 * switch (ACPI specification 6.4, chapter 5). Every table is mapped by its own length, checksummed,
 * and read with bounds. Damaged tables are logged and ignored. There is no AML interpreter: the
 * sleep type of S5 is found by its byte pattern in the DSDT.
 */
#include <asm/acpi.h>

#include <asm/cpufeature.h>
#include <asm/io.h>
#include <asm/processor.h>
#include <lego/boot.h>
#include <lego/errno.h>
#include <lego/params.h>
#include <lego/printk.h>
#include <lego/smp.h>
#include <lego/string.h>
#include <lego/vmap.h>

struct acpi_info acpi_info;
unsigned int nr_cpus = 1;

static unsigned int max_cpus = CONFIG_NR_CPUS;

#define MAX_TABLE_BYTES (4UL << 20)
#define BIOS_AREA	0xe0000UL
#define BIOS_AREA_BYTES 0x20000UL
#define EBDA_POINTER	0x40eUL

struct rsdp {
	char signature[8];
	u8 checksum;
	char oem[6];
	u8 revision;
	u32 rsdt;
	/* Revision 2 on. */
	u32 length;
	u64 xsdt;
	u8 extended_checksum;
	u8 reserved[3];
} __packed;

#define RSDP_V1_BYTES 20

struct table_header {
	char signature[4];
	u32 length;
	u8 revision;
	u8 checksum;
	char oem[6];
	char oem_table[8];
	u32 oem_revision;
	u32 creator;
	u32 creator_revision;
} __packed;

BUILD_BUG_ON(sizeof(struct table_header) != 36);

static int set_nr_cpus(const char *value)
{
	u64 n;

	if (parse_u64(value, &n) || !n)
		return -EINVAL;
	max_cpus = min(n, (u64)CONFIG_NR_CPUS);
	return 0;
}

/* Starts at most so many CPUs: all by default, up to CONFIG_NR_CPUS (64). */
BOOT_PARAM(nr_cpus, "nr_cpus", "<number of CPUs to use, at least 1>", set_nr_cpus);

static u8 sum_bytes(const void *data, size_t n)
{
	const u8 *p = data;
	u8 sum = 0;

	while (n--)
		sum += *p++;
	return sum;
}

static u64 get_bytes(const void *data, unsigned int n)
{
	const u8 *p = data;
	u64 value = 0;

	while (n--)
		value = value << 8 | p[n];
	return value;
}

/* Returns a field of a table, or 0 if the table is too old to have it. */
static u64 table_field(const struct table_header *table, unsigned int offset, unsigned int n)
{
	return offset + n <= table->length ? get_bytes((const u8 *)table + offset, n) : 0;
}

static const void *map_firmware(phys_addr_t phys, size_t n)
{
	return (const void *)ioremap(phys, n);
}

static bool rsdp_valid(const struct rsdp *rsdp)
{
	return !memcmp(rsdp->signature, "RSD PTR ", 8) && !sum_bytes(rsdp, RSDP_V1_BYTES);
}

static const struct rsdp *search_rsdp(phys_addr_t start, size_t n)
{
	const u8 *area = map_firmware(start, n);

	for (size_t i = 0; area && i + sizeof(struct rsdp) <= n; i += 16)
		if (rsdp_valid((const struct rsdp *)(area + i)))
			return (const struct rsdp *)(area + i);
	return NULL;
}

static const struct rsdp *find_rsdp(void)
{
	const struct rsdp *rsdp = NULL;
	const u16 *ebda;

	if (boot_info.rsdp) {
		rsdp = map_firmware(boot_info.rsdp, sizeof(*rsdp));
		if (rsdp && rsdp_valid(rsdp))
			return rsdp;
		printk("acpi: the loader's RSDP at %#llx is damaged: searching\n",
		       (unsigned long long)boot_info.rsdp);
	}
	ebda = map_firmware(EBDA_POINTER, sizeof(*ebda));
	rsdp = ebda && *ebda ? search_rsdp((phys_addr_t)*ebda << 4, 1024) : NULL;
	return rsdp ? rsdp : search_rsdp(BIOS_AREA, BIOS_AREA_BYTES);
}

/* Maps the table at phys. Returns NULL, after a log line, if it is not valid. */
static const struct table_header *map_table(phys_addr_t phys)
{
	const struct table_header *table = phys ? map_firmware(phys, sizeof(*table)) : NULL;
	u32 length;

	if (!table)
		return NULL;
	length = table->length;
	if (length < sizeof(*table) || length > MAX_TABLE_BYTES) {
		printk("acpi: table at %#llx has a length of %u bytes: skipped\n",
		       (unsigned long long)phys, length);
		return NULL;
	}
	table = map_firmware(phys, length);
	if (!table)
		return NULL;
	if (sum_bytes(table, length)) {
		printk("acpi: table %.4s at %#llx has a wrong checksum: skipped\n",
		       table->signature, (unsigned long long)phys);
		return NULL;
	}
	return table;
}

static void add_cpu(u32 apic_id, u32 acpi_uid, u32 flags)
{
	u8 boot_apic_id = acpi_info.apic_id[0];

	/* Online-capable but not enabled: a slot for hot plug. */
	if (!(flags & 1))
		return;
	if (apic_id >= 0xff) {
		printk("acpi: CPU with APIC id %u needs x2APIC: not used\n", apic_id);
		return;
	}
	if (apic_id == boot_apic_id) {
		acpi_info.acpi_uid[0] = acpi_uid;
		return;
	}
	if (nr_cpus < max_cpus) {
		acpi_info.apic_id[nr_cpus] = apic_id;
		acpi_info.acpi_uid[nr_cpus] = acpi_uid;
	}
	nr_cpus++;
}

static void add_ioapic(const u8 *entry)
{
	struct acpi_ioapic *ioapic = &acpi_info.ioapics[acpi_info.nr_ioapics];

	if (acpi_info.nr_ioapics == MAX_IOAPICS) {
		printk("acpi: more than %d IOAPICs: the rest is not used\n", MAX_IOAPICS);
		return;
	}
	ioapic->id = entry[2];
	ioapic->address = get_bytes(entry + 4, 4);
	ioapic->gsi_base = get_bytes(entry + 8, 4);
	acpi_info.nr_ioapics++;
}

static void add_isa_override(const u8 *entry)
{
	u16 flags = get_bytes(entry + 8, 2);
	struct acpi_isa_irq *irq;

	if (entry[2] != 0 || entry[3] >= NR_ISA_IRQS)
		return;
	irq = &acpi_info.isa_irqs[entry[3]];
	irq->gsi = get_bytes(entry + 4, 4);
	/* "As the bus says" (0) is active high, edge for ISA. */
	irq->active_low = (flags & 3) == 3;
	irq->level = (flags >> 2 & 3) == 3;
}

static void add_lint_nmi(const u8 *entry)
{
	unsigned int lint = entry[5];

	if (lint >= NR_APIC_LINT)
		return;
	for (unsigned int cpu = 0; cpu < min(nr_cpus, max_cpus); cpu++)
		if (entry[2] == 0xff || entry[2] == acpi_info.acpi_uid[cpu])
			acpi_info.lint_nmi[lint] |= BIT(cpu);
}

enum madt_type {
	MADT_LAPIC,
	MADT_IOAPIC,
	MADT_OVERRIDE,
	MADT_LAPIC_NMI = 4,
	MADT_LAPIC_ADDRESS,
	MADT_X2APIC = 9,
};

/* The minimum length of an entry of each type that is read. */
static const u8 madt_entry_bytes[] = {
	[MADT_LAPIC] = 8,     [MADT_IOAPIC] = 12,	 [MADT_OVERRIDE] = 10,
	[MADT_LAPIC_NMI] = 6, [MADT_LAPIC_ADDRESS] = 12, [MADT_X2APIC] = 16,
};

static void parse_madt_entry(const u8 *entry, bool nmis)
{
	if (nmis) {
		if (entry[0] == MADT_LAPIC_NMI)
			add_lint_nmi(entry);
		return;
	}
	switch (entry[0]) {
	case MADT_LAPIC:
		add_cpu(entry[3], entry[2], get_bytes(entry + 4, 4));
		break;
	case MADT_IOAPIC:
		add_ioapic(entry);
		break;
	case MADT_OVERRIDE:
		add_isa_override(entry);
		break;
	case MADT_LAPIC_ADDRESS:
		acpi_info.lapic_address = get_bytes(entry + 4, 8);
		break;
	case MADT_X2APIC:
		add_cpu(get_bytes(entry + 4, 4), get_bytes(entry + 12, 4), get_bytes(entry + 8, 4));
		break;
	}
}

/* Parses entries. NMI entries refer to CPUs that may come later, so a second pass reads them. */
static void parse_madt_entries(const struct table_header *madt, bool nmis)
{
	const u8 *bytes = (const u8 *)madt;
	u32 offset = 44;

	while (offset + 2 <= madt->length) {
		u8 type = bytes[offset], length = bytes[offset + 1];

		if (length < 2 || offset + length > madt->length ||
		    (type < ARRAY_SIZE(madt_entry_bytes) && length < madt_entry_bytes[type])) {
			if (!nmis)
				printk("acpi: MADT is damaged at byte %u: the rest is skipped\n",
				       offset);
			return;
		}
		parse_madt_entry(bytes + offset, nmis);
		offset += length;
	}
}

static void parse_madt(const struct table_header *madt)
{
	acpi_info.lapic_address = table_field(madt, 36, 4);
	parse_madt_entries(madt, false);
	parse_madt_entries(madt, true);
	if (nr_cpus > max_cpus) {
		printk("acpi: %u CPUs found, %u used: the limit is %s\n", nr_cpus, max_cpus,
		       max_cpus < CONFIG_NR_CPUS ? "nr_cpus=" : "CONFIG_NR_CPUS");
		nr_cpus = max_cpus;
	}
}

/* Reads one small integer of a package and advances *pos; -1: there is none. */
static int aml_small_integer(const u8 *aml, u32 length, u32 *pos)
{
	u8 op = *pos < length ? aml[*pos] : 0xff;

	if (op == 0x00 || op == 0x01) { /* ZeroOp, OneOp */
		*pos += 1;
		return op;
	}
	if (op == 0x0a && *pos + 1 < length) { /* BytePrefix */
		*pos += 2;
		return aml[*pos - 1];
	}
	return -1;
}

/* "Name (_S5, Package () { a, b, ..." at pos, the position of its name: ACPI 6.4, 20.2.5.4. */
static bool parse_s5(const u8 *aml, u32 length, u32 pos)
{
	bool named = aml[pos - 1] == 0x08 || (aml[pos - 1] == '\\' && aml[pos - 2] == 0x08);
	int a, b;

	pos += 4;
	if (!named || pos + 3 > length || aml[pos] != 0x12)
		return false;
	pos++;
	pos += 1 + (aml[pos] >> 6); /* package length, 1 to 4 bytes */
	pos++;			    /* number of elements */
	a = aml_small_integer(aml, length, &pos);
	b = aml_small_integer(aml, length, &pos);
	if (a < 0 || a > 7)
		return false;
	acpi_info.s5_type_a = a;
	acpi_info.s5_type_b = b < 0 || b > 7 ? 0 : b;
	acpi_info.s5_valid = true;
	return true;
}

static void parse_dsdt(phys_addr_t phys)
{
	const struct table_header *dsdt = map_table(phys);
	const u8 *aml = (const u8 *)dsdt;

	if (!dsdt)
		return;
	for (u32 i = sizeof(*dsdt); i + 4 <= dsdt->length; i++)
		if (!memcmp(aml + i, "_S5_", 4) && parse_s5(aml, dsdt->length, i))
			return;
	printk("acpi: no \\_S5 in the DSDT: cannot power off\n");
}

/* A generic address structure (12 bytes) that is an I/O port, or 0. */
static u16 table_port(const struct table_header *table, unsigned int offset)
{
	u64 address = table_field(table, offset + 4, 8);

	return table_field(table, offset, 1) == 1 && address <= 0xffff ? address : 0;
}

static void parse_fadt(const struct table_header *fadt)
{
	u32 flags = table_field(fadt, 112, 4);
	phys_addr_t dsdt = table_field(fadt, 140, 8);
	u16 port;

	acpi_info.smi_command_port = table_field(fadt, 48, 4);
	acpi_info.acpi_enable = table_field(fadt, 52, 1);
	port = table_port(fadt, 172);
	acpi_info.pm1a_control_port = port ? port : table_field(fadt, 64, 4);
	port = table_port(fadt, 184);
	acpi_info.pm1b_control_port = port ? port : table_field(fadt, 68, 4);
	port = table_port(fadt, 208);
	acpi_info.pm_timer_port = port ? port : table_field(fadt, 76, 4);
	if (flags & BIT(10)) {
		acpi_info.reset_port = table_port(fadt, 116);
		acpi_info.reset_value = table_field(fadt, 128, 1);
	}
	parse_dsdt(dsdt ? dsdt : table_field(fadt, 40, 4));
}

static void parse_hpet(const struct table_header *hpet)
{
	/* Address space 0 is memory. */
	if (table_field(hpet, 40, 1) == 0)
		acpi_info.hpet_address = table_field(hpet, 44, 8);
}

#define SRAT_MEMORY	  1
#define SRAT_MEMORY_BYTES 40

/* Memory with its proximity domain. An entry that is not enabled is a slot for hot plug. */
static void add_memory(const u8 *entry)
{
	struct acpi_memory *memory = &acpi_info.memory[acpi_info.nr_memory];

	if (!(get_bytes(entry + 28, 4) & 1) || !get_bytes(entry + 16, 8))
		return;
	if (acpi_info.nr_memory == MAX_ACPI_MEMORY) {
		acpi_info.nr_memory_lost++;
		return;
	}
	*memory = (struct acpi_memory){ get_bytes(entry + 8, 8), get_bytes(entry + 16, 8),
					get_bytes(entry + 2, 4) };
	acpi_info.nr_memory++;
}

static void parse_srat(const struct table_header *srat)
{
	const u8 *bytes = (const u8 *)srat;

	for (u32 offset = 48; offset + 2 <= srat->length; offset += bytes[offset + 1]) {
		u8 length = bytes[offset + 1];

		if (length < 2 || offset + length > srat->length ||
		    (bytes[offset] == SRAT_MEMORY && length < SRAT_MEMORY_BYTES)) {
			printk("acpi: SRAT is damaged at byte %u: the rest is skipped\n", offset);
			return;
		}
		if (bytes[offset] == SRAT_MEMORY)
			add_memory(bytes + offset);
	}
	if (acpi_info.nr_memory_lost)
		printk("acpi: %u more than %d ranges of memory have a node: it is unknown\n",
		       acpi_info.nr_memory_lost, MAX_ACPI_MEMORY);
}

static void parse_table(phys_addr_t phys)
{
	static const struct {
		char signature[5];
		void (*parse)(const struct table_header *table);
	} parsers[] = {
		{ "APIC", parse_madt },
		{ "FACP", parse_fadt },
		{ "HPET", parse_hpet },
		{ "SRAT", parse_srat },
	};
	const struct table_header *table = phys ? map_firmware(phys, sizeof(*table)) : NULL;

	for (size_t i = 0; table && i < ARRAY_SIZE(parsers); i++) {
		if (memcmp(table->signature, parsers[i].signature, 4))
			continue;
		table = map_table(phys);
		if (table)
			parsers[i].parse(table);
		return;
	}
}

/* Parses all tables in the RSDT (4-byte pointers) or XSDT (8-byte pointers). */
static bool parse_root(phys_addr_t phys, const char *signature, unsigned int pointer_bytes)
{
	const struct table_header *root = map_table(phys);

	if (!root)
		return false;
	if (memcmp(root->signature, signature, 4)) {
		printk("acpi: no %s at %#llx\n", signature, (unsigned long long)phys);
		return false;
	}
	for (u32 i = sizeof(*root); i + pointer_bytes <= root->length; i += pointer_bytes)
		parse_table(get_bytes((const u8 *)root + i, pointer_bytes));
	return true;
}

void acpi_init(void)
{
	const struct rsdp *rsdp = find_rsdp();
	bool found = false;

	acpi_info.apic_id[0] = cpuid(1).ebx >> 24;
	for (unsigned int i = 0; i < NR_ISA_IRQS; i++)
		acpi_info.isa_irqs[i].gsi = i;

	if (rsdp && rsdp->revision >= 2 && rsdp->xsdt && rsdp->length >= sizeof(*rsdp) &&
	    !sum_bytes(rsdp, sizeof(*rsdp)))
		found = parse_root(rsdp->xsdt, "XSDT", 8);
	if (rsdp && !found && rsdp->rsdt)
		found = parse_root(rsdp->rsdt, "RSDT", 4);
	if (!found)
		printk("acpi: no tables: one CPU, no IOAPIC, no power off\n");
	printk("acpi: %u CPU%s, %u IOAPIC%s\n", nr_cpus, nr_cpus == 1 ? "" : "s",
	       acpi_info.nr_ioapics, acpi_info.nr_ioapics == 1 ? "" : "s");
}

void acpi_power_off(void)
{
	const u16 sleep_enable = BIT(13), sleep_type_mask = 7 << 10, sci_enable = BIT(0);
	u16 a = acpi_info.pm1a_control_port, b = acpi_info.pm1b_control_port;

	if (!acpi_info.s5_valid || !a)
		return;
	/* Firmware that still owns the power registers must release them first. */
	if (!(inw(a) & sci_enable) && acpi_info.smi_command_port && acpi_info.acpi_enable) {
		outb(acpi_info.acpi_enable, acpi_info.smi_command_port);
		for (int i = 0; i < 100000 && !(inw(a) & sci_enable); i++)
			cpu_relax();
	}
	outw((inw(a) & ~sleep_type_mask) | acpi_info.s5_type_a << 10 | sleep_enable, a);
	if (b)
		outw((inw(b) & ~sleep_type_mask) | acpi_info.s5_type_b << 10 | sleep_enable, b);
	for (int i = 0; i < 100000; i++)
		cpu_relax();
}
