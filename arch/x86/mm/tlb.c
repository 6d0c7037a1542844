// SPDX-License-Identifier: BSD-2-Clause
/*
 * TLB flushes. A CPU that runs a kernel thread or is idle keeps the last mm loaded, and stays in
 * mm->cpus, so that switching back to it is free. If it is asked to flush in this state, it unloads
 * the mm instead, and is not asked again.
 *
 * Each CPU has its own request. It sets its bit in the senders mask of every target, interrupts the
 * targets, and waits until each one has cleared its bit in the request's waiting mask. It waits
 * with interrupts on, so that CPUs that send requests to each other serve each other. No CPU holds
 * a lock for which another one waits.
 */

#include <asm/tlb.h>

#include <asm/apic.h>
#include <asm/irqflags.h>
#include <asm/pgtable.h>
#include <asm/processor.h>
#include <asm/smp.h>
#include <asm/vectors.h>
#include <lego/atomic.h>
#include <lego/bug.h>
#include <lego/mm.h>
#include <lego/percpu.h>
#include <lego/profile.h>
#include <lego/smp.h>

DEFINE_PROFILE_POINT(flush_tlb_others)

#define MAX_SINGLE_FLUSHES 32 /* pages; more: the whole TLB */

struct tlb_request {
	struct mm *mm;
	u64 start, end;
	cpumask_t waiting;
};

struct tlb_state {
	struct mm *loaded_mm; /* NULL: kernel_pgd */
	bool lazy;	      /* loaded_mm is not the running task's */
	cpumask_t senders;    /* CPUs with a request to this one */
	struct tlb_request request;
};

static DEFINE_PER_CPU(struct tlb_state, tlb_state);
DEFINE_PER_CPU(u64, tlb_generation) = TLB_NO_MM;
static DEFINE_PER_CPU(u64, nr_generations); /* that this CPU has made */
static DEFINE_PER_CPU(u64, nr_mms);

static struct tlb_state *this_state(void)
{
	return &per_cpu(tlb_state, smp_processor_id());
}

/*
 * Gives an mm a generation that none ever had. Each CPU makes numbers of its own, so they share no
 * cache line. Process context.
 */
static void new_generation(struct mm *mm)
{
	u64 color = mm->tlb_generation % TLB_NR_COLORS, nr;

	this_cpu_inc(nr_generations);
	nr = this_cpu_read(nr_generations) * CONFIG_NR_CPUS + smp_processor_id();
	WRITE_ONCE(mm->tlb_generation, nr * TLB_NR_COLORS + color);
}

void tlb_mm_init(struct mm *mm)
{
	this_cpu_inc(nr_mms);
	mm->tlb_generation = this_cpu_read(nr_mms) % TLB_NR_COLORS;
	new_generation(mm);
}

static void use_generation(const struct mm *mm)
{
	this_cpu_write(tlb_generation, READ_ONCE(mm->tlb_generation));
}

static void flush_local(const struct tlb_state *state, u64 start, u64 end)
{
	use_generation(state->loaded_mm);
	if (end - start > MAX_SINGLE_FLUSHES * PAGE_SIZE) {
		load_pgd(state->loaded_mm->pgd);
		return;
	}
	for (u64 addr = start; addr < end; addr += PAGE_SIZE)
		invlpg(addr);
}

/* Unloads the mm. Interrupts are off. */
static void leave_mm(struct tlb_state *state)
{
	struct mm *mm = state->loaded_mm;

	state->loaded_mm = NULL;
	state->lazy = false;
	load_pgd(kernel_pgd);
	this_cpu_write(tlb_generation, TLB_NO_MM);
	/* The last access to mm: its owner may free it as soon as the bit is cleared. */
	atomic_and_bits(&mm->cpus, ~BIT(smp_processor_id()));
}

static void serve_request(struct tlb_state *state, struct tlb_request *request, unsigned int sender)
{
	if (request->mm != state->loaded_mm)
		; /* has left it since */
	else if (state->lazy)
		leave_mm(state);
	else
		flush_local(state, request->start, request->end);
	/* Pairs with the acquire in flush_tlb_others(): the sender may reuse the request. */
	if (!__atomic_and_fetch(&request->waiting, ~BIT(smp_processor_id()), __ATOMIC_RELEASE))
		smp_wake_waiter(sender);
}

static void tlb_interrupt(struct pt_regs *regs)
{
	struct tlb_state *state = this_state();
	cpumask_t senders;
	unsigned int cpu;

	profile_trace(call_function_entry, VECTOR_TLB);
	apic_eoi();
	/* Pairs with the or in flush_tlb_others(): the sender's request is complete. */
	senders = xchg(&state->senders, 0);
	for_each_cpu_in(cpu, senders)
		serve_request(state, &per_cpu(tlb_state, cpu).request, cpu);
	profile_trace(call_function_exit, VECTOR_TLB);
}

static noinline void flush_tlb_others(struct mm *mm, cpumask_t targets, u64 start, u64 end)
{
	PROFILE_POINT_TIME(flush_tlb_others);
	unsigned int self = smp_processor_id(), cpu;
	struct tlb_request *request = &per_cpu(tlb_state, self).request;

	BUG_ON(irqs_disabled());
	profile_point_start(flush_tlb_others);
	request->mm = mm;
	request->start = start;
	request->end = end;
	request->waiting = targets;
	for_each_cpu_in(cpu, targets) {
		/* Orders the request before the bit; pairs with the xchg in tlb_interrupt(). */
		atomic_or_bits(&per_cpu(tlb_state, cpu).senders, BIT(self));
		apic_send_ipi(cpu, VECTOR_TLB);
	}
	/* Pairs with the release in serve_request(). */
	smp_wait_zero(&request->waiting);
	profile_point_leave(flush_tlb_others);
}

void flush_tlb_mm_range(struct mm *mm, u64 start, u64 end)
{
	struct tlb_state *state = this_state();
	unsigned long flags;
	cpumask_t others;

	new_generation(mm);
	/* A request of another CPU for a lazy mm, in between, would unload it. */
	flags = local_irq_save();
	if (state->loaded_mm == mm)
		flush_local(state, start, end);
	local_irq_restore(flags);
	/*
	 * Orders the caller's page table stores and the new generation before the load. Pairs with
	 * the or in mm_switch(): a CPU that is not in the mask yet will see them.
	 */
	smp_mb();
	others = READ_ONCE(mm->cpus) & ~BIT(smp_processor_id());
	if (others)
		flush_tlb_others(mm, others, start, end);
}

void tlb_leave_mm(struct mm *mm)
{
	struct tlb_state *state = this_state();
	unsigned long flags = local_irq_save();

	if (state->loaded_mm == mm) {
		BUG_ON(!state->lazy);
		leave_mm(state);
	}
	local_irq_restore(flags);
	if (READ_ONCE(mm->cpus))
		flush_tlb_others(mm, READ_ONCE(mm->cpus), 0, TASK_SIZE);
	BUG_ON(READ_ONCE(mm->cpus));
}

void mm_switch(struct mm *prev, struct mm *next)
{
	struct tlb_state *state = this_state();
	struct mm *loaded = state->loaded_mm;

	if (!next || next == loaded) {
		state->lazy = !next && loaded;
		return;
	}
	/* Before the new table is used: pairs with the barrier in flush_tlb_mm_range(). */
	atomic_or_bits(&next->cpus, BIT(smp_processor_id()));
	state->loaded_mm = next;
	state->lazy = false;
	load_pgd(next->pgd);
	use_generation(next);
	if (loaded)
		atomic_and_bits(&loaded->cpus, ~BIT(smp_processor_id()));
}

void tlb_init(void)
{
	irq_set_handler(VECTOR_TLB, tlb_interrupt);
}
