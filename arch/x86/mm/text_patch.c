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

static void map_alias(u64 alias, const void *text)
{
	u64 *pte = pgtable_alloc(kernel_pgd, alias);

	if (!pte)
		panic("no memory to patch the kernel's code");
	WRITE_ONCE(*pte, ALIGN_DOWN(virt_to_phys(text), PAGE_SIZE) | PTE_KERNEL);
	invlpg(alias);
}

static void unmap_alias(u64 alias)
{
	WRITE_ONCE(*pgtable_find(kernel_pgd, alias), 0);
	invlpg(alias);
}

void text_write(void *addr, const void *bytes, size_t n)
{
	volatile u8 *to = (u8 *)ALIAS + (u64)addr % PAGE_SIZE;
	const u8 *from = bytes;
	unsigned long flags;

	BUG_ON((u64)addr < (u64)_stext || (u64)addr + n > (u64)_etext || n > PAGE_SIZE);
	flags = local_irq_save();
	map_alias(ALIAS, addr);
	map_alias(ALIAS + PAGE_SIZE, (u8 *)addr + n - 1);
	while (n--)
		*to++ = *from++;
	unmap_alias(ALIAS);
	unmap_alias(ALIAS + PAGE_SIZE);
	local_irq_restore(flags);
}

/* CPUID serializes (SDM vol. 3, 9.3), as does the IRET from the interrupt. */
static void serialize(void *unused)
{
	u32 eax = 0, ecx = 0;

	asm volatile("cpuid" : "+a"(eax), "+c"(ecx)::"ebx", "edx", "memory");
}

void text_sync_cpus(void)
{
	smp_call_mask(READ_ONCE(cpu_online_mask), serialize, NULL);
}

/* Writes bytes [first, first + nr) of the new instructions, or INT3s. */
static void write_sites(const struct text_patch *patch, bool int3, size_t first, size_t nr)
{
	u8 insn[TEXT_PATCH_BYTES];

	for (u32 i = 0; i < patch->nr; i++) {
		u8 *code = patch->site(i, insn);

		if (!code)
			continue;
		if (int3)
			insn[0] = INT3_BYTE;
		text_write(code + first, insn + first, nr);
	}
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
	/* Pairs with the acquire in text_patch_breakpoint(). */
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
