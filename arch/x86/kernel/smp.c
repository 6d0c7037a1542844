// SPDX-License-Identifier: BSD-2-Clause
/*
 * Starts the CPUs one after the other, and sends calls and interrupts between them.
 *
 * CPUs that are not used wait for a start-up IPI, which no interrupt ends. But QEMU lets an NMI end
 * it, and the one entry of the IOAPIC that sends NMIs reaches all CPUs. So the real mode vector of
 * NMIs leads to code that halts, in the trampoline's page.
 *
 * A call puts one node per target on the target's list, without a lock, and sends an interrupt if
 * the list was empty. The caller waits with interrupts on, so CPUs that call each other serve each
 * other.
 */
#include <lego/smp.h>

#include <asm/acpi.h>
#include <asm/apic.h>
#include <asm/irqflags.h>
#include <asm/msr.h>
#include <asm/page.h>
#include <asm/pgtable.h>
#include <asm/processor.h>
#include <asm/setup.h>
#include <asm/smp.h>
#include <asm/vectors.h>
#include <lego/atomic.h>
#include <lego/boot.h>
#include <lego/bug.h>
#include <lego/printk.h>
#include <lego/sched.h>
#include <lego/string.h>
#include <lego/time.h>

cpumask_t cpu_online_mask = 1;

/* As trampoline.S has it. */
struct trampoline_data {
	u32 cr3, cr4, cr0, efer;
	u32 long_mode_offset, long_mode_selector;
	u16 pad;
	u16 gdt_limit;
	u32 gdt_base;
	u64 gs_base, stack, entry;
	u32 cpu, apic_id;
};

BUILD_BUG_ON(sizeof(struct trampoline_data) != 64);

extern char trampoline_start[], trampoline_data[], trampoline_long_mode[], trampoline_gdt[],
	trampoline_park[], trampoline_end[];

#define CR4_PCIDE BIT(17)

#define MAX_WAIT_SPINS	 200
#define LOW_MEMORY_END	 0xa0000
#define FAVOURITE_PAGE	 0x8000
#define NMI_VECTOR_PHYS	 (2 * 4) /* offset, segment: in the vector table of real mode */
#define START_TIMEOUT_S	 30
#define START_SPIN_NS	 (5 * NSEC_PER_MSEC)
#define INIT_DELAY_US	 100
#define STARTUP_DELAY_US 200
#define STOP_TIMEOUT_MS	 1000 /* an emulator may keep a CPU waiting for long */
#define MAX_STOP_POLLS	 10000000

/* A starting CPU and the boot CPU agree on its fate by cmpxchg from ARRIVED. */
enum boot_state {
	BOOT_OFF,
	BOOT_ARRIVED,
	BOOT_ONLINE,
	BOOT_ABANDONED
};

static enum boot_state boot_states[CONFIG_NR_CPUS];

#define read_control_register(n)                                   \
	({                                                         \
		u64 _value;                                        \
		asm volatile("mov %%cr" #n ", %0" : "=r"(_value)); \
		_value;                                            \
	})

void secondary_start(unsigned int cpu)
{
	load_pgd(kernel_pgd);
	cpu_init(cpu);
	apic_init_cpu();
	smp_store_release(&boot_states[cpu], BOOT_ARRIVED);
	tsc_compare_answer();
	if (cmpxchg(&boot_states[cpu], BOOT_ARRIVED, BOOT_ONLINE) != BOOT_ARRIVED)
		machine_halt();
	sched_init_cpu();
	atomic_or_bits(&cpu_online_mask, BIT(cpu));
	clock_start_tick();
	start_secondary();
}

static bool page_usable(phys_addr_t page)
{
	for (unsigned int i = 0; i < boot_info.nr_regions; i++) {
		const struct boot_region *region = &boot_info.regions[i];

		if (region->usable && page >= region->start &&
		    page + PAGE_SIZE <= region->start + region->size_bytes)
			return true;
	}
	return false;
}

/*
 * Returns a page that a start-up IPI can address, or 0. The page allocator does not use memory
 * below 1 MiB.
 */
static phys_addr_t find_trampoline_page(void)
{
	if (page_usable(FAVOURITE_PAGE))
		return FAVOURITE_PAGE;
	for (phys_addr_t page = PAGE_SIZE; page < LOW_MEMORY_END; page += PAGE_SIZE)
		if (page_usable(page))
			return page;
	return 0;
}

static struct trampoline_data *copy_trampoline(phys_addr_t page)
{
	char *copy = phys_to_virt(page);
	struct trampoline_data *data;

	memcpy(copy, trampoline_start, trampoline_end - trampoline_start);
	data = (struct trampoline_data *)(copy + (trampoline_data - trampoline_start));
	data->cr3 = virt_to_phys(trampoline_pgd);
	data->cr4 = read_control_register(4) & ~CR4_PCIDE;
	data->cr0 = read_control_register(0);
	data->efer = rdmsr(MSR_EFER) & (EFER_SCE | EFER_LME | EFER_NXE);
	data->long_mode_offset = page + (trampoline_long_mode - trampoline_start);
	data->gdt_base = page + (trampoline_gdt - trampoline_start);
	data->entry = (u64)secondary_start;
	return data;
}

/* Lets all other CPUs wait for a start-up IPI. An NMI leads them to trampoline_park. */
static void park_others(phys_addr_t page)
{
	u16 *vector = phys_to_virt(NMI_VECTOR_PHYS);

	vector[0] = trampoline_park - trampoline_start;
	vector[1] = page >> 4;
	apic_send_init_others();
}

/*
 * Waits first with short delays, then from tick to tick: a host with fewer CPUs needs the time for
 * the CPU that starts. Interrupts on.
 */
static bool wait_boot_state(unsigned int cpu, enum boot_state state, u64 timeout_ns)
{
	u64 start_ns = clock_monotonic_ns(), waited_ns;

	/* Pairs with the release or cmpxchg in secondary_start(). */
	while (smp_load_acquire(&boot_states[cpu]) != state) {
		waited_ns = clock_monotonic_ns() - start_ns;
		if (waited_ns > timeout_ns)
			return false;
		if (waited_ns < START_SPIN_NS)
			cpu_relax();
		else
			cpu_wait_for_interrupt();
	}
	return true;
}

static void wake_cpu(unsigned int cpu, phys_addr_t page)
{
	u32 apic_id = acpi_info.apic_id[cpu];

	apic_send_init(apic_id);
	udelay(INIT_DELAY_US);
	apic_send_startup(apic_id, page >> PAGE_SHIFT);
	if (wait_boot_state(cpu, BOOT_ARRIVED, STARTUP_DELAY_US * NSEC_PER_USEC))
		return;
	/* A CPU that is running already ignores it. */
	apic_send_startup(apic_id, page >> PAGE_SHIFT);
}

/* Sends the CPU back to waiting for a start-up IPI, so that it does not start later. */
static void abandon_cpu(unsigned int cpu, const char *why)
{
	apic_send_init(acpi_info.apic_id[cpu]);
	printk("smp: CPU%u (APIC id %u) %s: not used\n", cpu, acpi_info.apic_id[cpu], why);
}

/* Waits until the CPU runs C code. Returns false if it has not begun in time, and never will. */
static bool wait_arrival(unsigned int cpu, struct trampoline_data *data)
{
	u32 apic_id = acpi_info.apic_id[cpu];

	if (wait_boot_state(cpu, BOOT_ARRIVED, START_TIMEOUT_S * NSEC_PER_SEC))
		return true;
	/* Either the CPU or we take the number: pairs with the cmpxchg of the trampoline. */
	if (cmpxchg(&data->apic_id, apic_id, TRAMPOLINE_NO_CPU) == apic_id)
		return false;
	printk("smp: CPU%u (APIC id %u) is slow: waiting for it\n", cpu, apic_id);
	return wait_boot_state(cpu, BOOT_ARRIVED, ~0ULL);
}

static void start_cpu(unsigned int cpu, phys_addr_t page, struct trampoline_data *data)
{
	struct task *idle = sched_idle_task(cpu);
	unsigned long flags;
	bool answered;

	data->gs_base = percpu_offset[cpu];
	data->stack = (u64)task_pt_regs(idle) - 8; /* see outermost_frame() */
	data->cpu = cpu;
	tsc_compare_prepare();
	/* Pairs with the cmpxchg of the trampoline. */
	smp_store_release(&data->apic_id, acpi_info.apic_id[cpu]);

	wake_cpu(cpu, page);
	if (!wait_arrival(cpu, data)) {
		abandon_cpu(cpu, "did not start");
		return;
	}
	flags = local_irq_save();
	answered = tsc_compare_with(cpu);
	local_irq_restore(flags);
	if (!wait_boot_state(cpu, BOOT_ONLINE, answered ? START_TIMEOUT_S * NSEC_PER_SEC : 0) &&
	    cmpxchg(&boot_states[cpu], BOOT_ARRIVED, BOOT_ABANDONED) == BOOT_ARRIVED) {
		abandon_cpu(cpu, "stopped answering");
		return;
	}
	/* It has decided to start, and sets its bit in the mask soon. */
	while (!cpu_online(cpu))
		cpu_relax();
	printk("smp: CPU%u online (APIC id %u)\n", cpu, acpi_info.apic_id[cpu]);
}

static void start_cpus(void)
{
	phys_addr_t page = find_trampoline_page();
	struct trampoline_data *data;

	if (!page) {
		printk("smp: no usable page below 640 KiB to start CPUs in\n");
		return;
	}
	data = copy_trampoline(page);
	park_others(page);
	for (unsigned int cpu = 1; cpu < nr_cpus; cpu++)
		start_cpu(cpu, page, data);
}

void smp_init(void)
{
	unsigned int cpu, nr_online = 0;

	start_cpus();
	for_each_online_cpu(cpu)
		nr_online++;
	printk("smp: %u of %u CPUs online\n", nr_online, nr_cpus);
}

struct call {
	void (*fn)(void *arg);
	void *arg;
	unsigned int caller;
	u64 pending; /* targets that have not finished */
};

struct call_node {
	struct call_node *next;
	struct call *call;
};

static DEFINE_PER_CPU(struct call_node *, call_list);
static DEFINE_PER_CPU(bool, waiter_halted);

void smp_wait_zero(const u64 *word)
{
	might_sleep(); /* others may wait for this CPU to take an interrupt */
	for (;;) {
		for (int i = 0; i < MAX_WAIT_SPINS; i++) {
			/* Pairs with the release of the CPU that makes it zero. */
			if (!smp_load_acquire(word))
				return;
			cpu_relax();
		}
		local_irq_disable();
		this_cpu_write(waiter_halted, true);
		/*
		 * Either we see the zero, or smp_wake_waiter(), called after it, sees that we halt.
		 */
		smp_mb();
		if (smp_load_acquire(word))
			cpu_wait_for_interrupt();
		else
			local_irq_enable();
		this_cpu_write(waiter_halted, false);
	}
}

void smp_wake_waiter(unsigned int cpu)
{
	/* Pairs with the one in smp_wait_zero(). */
	smp_mb();
	if (READ_ONCE(per_cpu(waiter_halted, cpu)))
		apic_send_ipi(cpu, VECTOR_RESCHEDULE);
}

static void call_interrupt(struct pt_regs *regs)
{
	struct call_node *node, *next, *in_order = NULL;
	u64 self = BIT(smp_processor_id());
	unsigned int caller;

	profile_trace(call_function_entry, VECTOR_CALL);
	apic_eoi();
	/* Takes all nodes that push_call() has added, newest first. */
	node = xchg(&per_cpu(call_list, smp_processor_id()), NULL);
	for (; node; node = next) {
		next = node->next;
		node->next = in_order;
		in_order = node;
	}
	for (node = in_order; node; node = next) {
		struct call *call = node->call;

		next = node->next;
		caller = call->caller;
		call->fn(call->arg);
		/*
		 * The last access: node and call are on the caller's stack. Pairs with
		 * smp_wait_zero().
		 */
		if (!__atomic_and_fetch(&call->pending, ~self, __ATOMIC_RELEASE))
			smp_wake_waiter(caller);
	}
	profile_trace(call_function_exit, VECTOR_CALL);
}

static void push_call(unsigned int cpu, struct call_node *node)
{
	struct call_node **list = &per_cpu(call_list, cpu), *head = READ_ONCE(*list), *seen;

	for (;;) {
		node->next = head;
		seen = cmpxchg(list, head, node);
		if (seen == head)
			break;
		head = seen;
		cpu_relax();
	}
	/* If the list was not empty, an interrupt is pending already. */
	if (!head)
		apic_send_ipi(cpu, VECTOR_CALL);
}

void smp_call_mask(cpumask_t mask, void (*fn)(void *arg), void *arg)
{
	struct call_node nodes[CONFIG_NR_CPUS];
	unsigned int cpu, self = smp_processor_id();
	struct call call = { .fn = fn, .arg = arg, .caller = self };
	unsigned long flags;
	cpumask_t others;

	WARN_ON(irqs_disabled());
	mask &= READ_ONCE(cpu_online_mask);
	others = mask & ~BIT(self);
	call.pending = others;
	for_each_cpu_in(cpu, others) {
		nodes[cpu].call = &call;
		push_call(cpu, &nodes[cpu]);
	}
	smp_wait_zero(&call.pending);
	if (mask & BIT(self)) {
		flags = local_irq_save();
		fn(arg);
		local_irq_restore(flags);
	}
}

void smp_send_reschedule(unsigned int cpu)
{
	apic_send_ipi(cpu, VECTOR_RESCHEDULE);
}

/* Does nothing itself: the return from the interrupt checks need_resched. */
static void reschedule_interrupt(struct pt_regs *regs)
{
	profile_trace(reschedule_entry, VECTOR_RESCHEDULE);
	apic_eoi();
	profile_trace(reschedule_exit, VECTOR_RESCHEDULE);
}

void smp_init_vectors(void)
{
	irq_set_handler(VECTOR_CALL, call_interrupt);
	irq_set_handler(VECTOR_RESCHEDULE, reschedule_interrupt);
}

#define NOBODY ~0u

static unsigned int stopping_cpu = NOBODY; /* who called smp_stop_others() */
static cpumask_t stopped_mask;

void smp_stop_self(void)
{
	atomic_or_bits(&stopped_mask, BIT(smp_processor_id()));
	machine_halt();
}

bool smp_handle_nmi(void)
{
	unsigned int by = READ_ONCE(stopping_cpu);

	if (by != NOBODY && by != smp_processor_id())
		smp_stop_self();
	return by != NOBODY;
}

unsigned int smp_stop_others(void)
{
	unsigned int cpu, self = smp_processor_id(), nr_running = 0;
	cpumask_t running = READ_ONCE(cpu_online_mask) & ~BIT(self);
	u64 start = rdtsc();

	WRITE_ONCE(stopping_cpu, self);
	for_each_cpu_in(cpu, running)
		apic_send_nmi(cpu);
	for (int i = 0; running && i < MAX_STOP_POLLS; i++) {
		if (tsc_khz && rdtsc() - start > STOP_TIMEOUT_MS * tsc_khz)
			break;
		cpu_relax();
		running &= ~READ_ONCE(stopped_mask);
	}
	for_each_cpu_in(cpu, running)
		nr_running++;
	return nr_running;
}
