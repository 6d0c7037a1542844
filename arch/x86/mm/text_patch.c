// SPDX-License-Identifier: BSD-2-Clause
/*
 * Changes instructions that other CPUs may be executing (SDM vol. 3, 9.1.3, cross-modifying code),
 * in three steps. First the first byte becomes INT3. When every CPU has serialized, the other bytes
 * change. After another round, the first byte gets its final value. A CPU that hits the INT3
 * continues as if it had executed the new instruction. It does so with interrupts off, so when a
 * round of interrupts is complete, no CPU is in the middle of that. All instructions go through
 * each step together.
 */

#include <asm/text_patch.h>

#include <asm/irqflags.h>
#include <asm/pgtable.h>
#include <asm/ptrace.h>
#include <asm/setup.h>
#include <asm/tsc.h>
#include <lego/bug.h>
#include <lego/kernel.h>
#include <lego/mutex.h>
#include <lego/sched.h>
#include <lego/smp.h>

#define INT3_BYTE 0xcc

/* The last two pages of the vmap area are the alias: vmap.c never allocates them. */
#define ALIAS (VMAP_END - 2 * PAGE_SIZE)

/*
 * While it is open, this CPU has interrupts off, and the alias shows the pages of the first and of
 * the last byte to write.
 */
struct alias {
	u64 first, last; /* addresses of the pages; 0: closed */
	unsigned long flags;
};

static void map_alias(u64 alias, u64 page)
{
	u64 *pte = pgtable_alloc(kernel_pgd, alias);

	if (!pte)
		panic("no memory to patch the kernel's code");
	WRITE_ONCE(*pte, page ? virt_to_phys((void *)page) | PTE_KERNEL : 0);
	invlpg(alias);
}

static void close_alias(struct alias *a)
{
	if (!a->first)
		return;
	map_alias(ALIAS, 0);
	map_alias(ALIAS + PAGE_SIZE, 0);
	a->first = 0;
	local_irq_restore(a->flags);
}

static void open_alias(struct alias *a, u64 first, u64 last)
{
	if (a->first == first && a->last == last)
		return;
	close_alias(a);
	a->flags = local_irq_save();
	a->first = first;
	a->last = last;
	map_alias(ALIAS, first);
	map_alias(ALIAS + PAGE_SIZE, last);
}

/*
 * Writes through the alias, which the caller closes. What runs for each site is notrace: a hook
 * that is being switched would make it an exception each time.
 */
static notrace void write_code(struct alias *a, u64 addr, const u8 *bytes, size_t n)
{
	volatile u8 *to = (u8 *)ALIAS + addr % PAGE_SIZE;

	BUG_ON(addr < (u64)_stext || addr + n > (u64)_etext || n > PAGE_SIZE);
	open_alias(a, ALIGN_DOWN(addr, PAGE_SIZE), ALIGN_DOWN(addr + n - 1, PAGE_SIZE));
	while (n--)
		*to++ = *bytes++;
}

void text_write(void *addr, const void *bytes, size_t n)
{
	struct alias alias = { 0 };

	write_code(&alias, (u64)addr, bytes, n);
	close_alias(&alias);
}

/* CPUID serializes (SDM vol. 3, 9.3), as does the IRET from the interrupt. */
static void serialize_cpu(void *unused)
{
	u32 eax = 0, ecx = 0;

	asm volatile("cpuid" : "+a"(eax), "+c"(ecx)::"ebx", "edx", "memory");
}

void text_sync_cpus(void)
{
	smp_call_mask(READ_ONCE(cpu_online_mask), serialize_cpu, NULL);
}

/*
 * Writes bytes [first, first + nr) of the new instructions, or INT3s. The alias stays open for
 * sites in a row that are in the same page: mapping it for each of thousands would take long.
 */
static notrace void write_sites(const struct text_patch *patch, bool int3, size_t first, size_t nr)
{
	struct alias alias = { 0 };
	struct text_insn insn;

	for (u32 i = 0; i < patch->nr; i++) {
		u8 *code = patch->site(i, &insn);

		if (!code) {
			close_alias(&alias);
			continue;
		}
		if (int3)
			insn.opcode = INT3_BYTE;
		write_code(&alias, (u64)code + first, (const u8 *)&insn + first, nr);
	}
	close_alias(&alias);
}

/*
 * Does one step, and makes all CPUs see it. Does it twice because of QEMU: a CPU that translates
 * the old bytes while they are written keeps that translation and shares it. At the end of the
 * round the translation is complete; the second write drops it, and the second round waits for the
 * CPUs that run it. CPUs that take turns translate one at a time.
 */
static void write_step(const struct text_patch *patch, bool int3, size_t first, size_t nr)
{
	for (int i = 0; i < (cpus_take_turns ? 1 : 2); i++) {
		write_sites(patch, int3, first, nr);
		text_sync_cpus();
		cond_resched();
	}
}

static DEFINE_MUTEX(patch_mutex);
static const struct text_patch *applying; /* for text_patch_breakpoint(); NULL: none */

void text_patch_apply(const struct text_patch *patch)
{
	mutex_lock(&patch_mutex);
	/*
	 * Pairs with the acquire in text_patch_breakpoint(). The first INT3 is written later:
	 * open_alias() turns interrupts off before, which is a barrier of the compiler.
	 */
	smp_store_release(&applying, patch);
	write_step(patch, true, 0, 1);
	write_step(patch, false, 1, TEXT_PATCH_BYTES - 1);
	write_step(patch, false, 0, 1);
	smp_store_release(&applying, NULL);
	mutex_unlock(&patch_mutex);
}

notrace bool text_patch_breakpoint(struct pt_regs *regs)
{
	/* Pairs with the release in text_patch_apply(). */
	const struct text_patch *patch = smp_load_acquire(&applying);
	/* INT3 is a trap: rip points after it. */
	u64 rip = patch ? patch->resume(regs->rip - 1) : 0;

	if (rip)
		regs->rip = rip;
	return rip;
}
