// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests static keys in all interleavings (interleave.h): a thread switches a key, which patches the
 * key's sites, while another CPU runs these sites. The kernel's code patches bytes of a page. A CPU
 * that runs a site reads them one after the other, as late as it likes, but handles interrupts only
 * between two instructions: so it may run a mix of what was there since the last interrupt.
 */

#include <asm/page.h>
#include <asm/ptrace.h>
#include <lego/compiler.h>

/* In place of the headers of the kernel that the host cannot run. */
#define ASM_IRQFLAGS_H
#define ASM_PGTABLE_H
#define ASM_SETUP_H
#define ASM_TSC_H
#define LEGO_ASSERT_H
#define LEGO_BUG_H
#define LEGO_MUTEX_H
#define LEGO_SCHED_H
#define LEGO_SMP_H

#undef READ_ONCE
#undef WRITE_ONCE
#undef smp_load_acquire
#undef smp_store_release
#define READ_ONCE(x)		pf_read_once(x)
#define WRITE_ONCE(x, v)	pf_write_once(x, v)
#define smp_load_acquire(p)	pf_load_acquire(p)
#define smp_store_release(p, v) pf_store_release(p, v)

#define BUG_ON(cond)	  il_check(!(cond))
#define panic(text)	  il_check(!(text))
#define ASSERT_HELD(lock) il_check((lock)->is_locked)
#define cond_resched()	  ((void)0)

#define local_irq_save()      \
	({                    \
		pf_barrier(); \
		0ul;          \
	})
#define local_irq_restore(flags) ((void)(flags))

/* The alias shows the page of the code by being that page. */
static u8 code_page[PAGE_SIZE] __attribute__((aligned(4096)));
static u64 ptes[2];
#undef VMAP_END
#define VMAP_END		 ((u64)code_page + 2 * PAGE_SIZE)
#define _stext			 code_page
#define _etext			 (code_page + PAGE_SIZE)
#define PTE_KERNEL		 1
#define pgtable_alloc(pgd, addr) (&ptes[(addr) != (u64)code_page])
#define invlpg(addr)		 ((void)(addr))
#define cpus_take_turns		 true /* each step is made once */

struct mutex {
	u64 is_locked;
};
#define DEFINE_MUTEX(name) struct mutex name

static void mutex_lock(struct mutex *m)
{
	while (__atomic_exchange_n(&m->is_locked, 1, __ATOMIC_SEQ_CST))
		il_relax();
}

static void mutex_unlock(struct mutex *m)
{
	__atomic_exchange_n(&m->is_locked, 0, __ATOMIC_SEQ_CST);
}

/* CPU 1 runs sites. It serves an interrupt by noting the number of the latest one. */
static const u64 cpu_online_mask = 1;
static u64 nr_sent, nr_served;

static void smp_call_mask(u64 mask, void (*fn)(void *arg), void *arg)
{
	u64 nr = __atomic_fetch_add(&nr_sent, 1, __ATOMIC_SEQ_CST) + 1;

	while (pf_read_once(nr_served) < nr)
		il_relax();
	fn(arg);
}

static void serve_interrupts(void)
{
	__atomic_exchange_n(&nr_served, pf_read_once(nr_sent), __ATOMIC_SEQ_CST);
}

#include "../../arch/x86/kernel/static_key.c"
#include "../../arch/x86/mm/text_patch.c"

#define NR_KEYS	   2
#define NEVER	   ~0ull /* nr_served of a CPU that runs no sites any more */
#define SITE_BYTES 32	 /* from one site to the next; the code for "on" is in the middle */

static struct static_key keys[NR_KEYS];
static struct static_key_site sites[NR_KEYS] __attribute__((__section__("static_key_sites")));
static u64 is_done; /* static_key_set() has returned */

static u8 *code_of(int key)
{
	return &code_page[key * SITE_BYTES];
}

static void share_keys(u64 nr_served_before)
{
	const struct text_insn nop = TEXT_NOP;

	memset(keys, 0, sizeof(keys));
	nr_sent = is_done = 0;
	nr_served = nr_served_before;
	key_mutex.is_locked = patch_mutex.is_locked = 0;
	applying = NULL;
	for (int i = 0; i < NR_KEYS; i++) {
		sites[i].code = code_of(i) - (u8 *)&sites[i].code;
		sites[i].target = code_of(i) + SITE_BYTES / 2 - (u8 *)&sites[i].target;
		sites[i].key = (u8 *)&keys[i] - (u8 *)&sites[i].key;
		memcpy(code_of(i), &nop, sizeof(nop));
	}
	il_share(code_page, NR_KEYS * SITE_BYTES);
	il_share(keys, sizeof(keys));
	il_share(&applying, sizeof(applying));
	il_share(&key_mutex, sizeof(key_mutex));
	il_share(&patch_mutex, sizeof(patch_mutex));
	il_share(&nr_sent, sizeof(nr_sent));
	il_share(&nr_served, sizeof(nr_served));
	il_share(&is_done, sizeof(is_done));
	il_keep(&any_changes, sizeof(any_changes));
}

static void share_keys_with_runner(void)
{
	share_keys(0);
}

static void share_keys_alone(void)
{
	share_keys(NEVER);
}

/* Returns whether a complete instruction is the jump. */
static bool is_jump(int key, const u8 *bytes)
{
	const struct text_insn nop = TEXT_NOP, jump = site_insn(&sites[key], true);

	il_check(!memcmp(bytes, &nop, sizeof(nop)) || !memcmp(bytes, &jump, sizeof(jump)));
	return bytes[0] == jump.opcode;
}

/* Runs a site, whose bytes the CPU reads in either order. Returns whether the key seems on. */
static bool run_site(int key, bool last_byte_first)
{
	struct pt_regs regs = { .rip = (u64)code_of(key) + 1 };
	u8 bytes[TEXT_PATCH_BYTES];

	for (int i = 0; i < TEXT_PATCH_BYTES; i++) {
		int at = last_byte_first ? TEXT_PATCH_BYTES - 1 - i : i;

		bytes[at] = code_of(key)[at];
	}
	if (bytes[0] != INT3_BYTE)
		return is_jump(key, bytes);
	pf_barrier(); /* the exception comes after the instruction was read */
	il_check(text_patch_breakpoint(&regs));
	il_check(regs.rip == (u64)code_of(key) + TEXT_PATCH_BYTES ||
		 regs.rip == (u64)code_of(key) + SITE_BYTES / 2);
	return regs.rip != (u64)code_of(key) + TEXT_PATCH_BYTES;
}

/* A key that is switched on is on for good, at the latest when static_key_set() has returned. */
static void run_first_site(bool last_byte_first)
{
	bool was_on = false, must_be_on, on;

	for (int i = 0; i < 2; i++) {
		serve_interrupts();
		must_be_on = was_on || pf_read_once(is_done);
		on = run_site(0, last_byte_first);
		il_check(on || !must_be_on);
		was_on = on;
	}
	pf_write_once(nr_served, NEVER);
}

static void run_forward(void)
{
	run_first_site(false);
}

static void run_backward(void)
{
	run_first_site(true);
}

static void run_in_nmi(void)
{
	run_site(0, false);
}

static void switch_first_on(void)
{
	static_key_set(&keys[0], true);
	il_check(static_key_is_set(&keys[0]));
	__atomic_exchange_n(&is_done, 1, __ATOMIC_SEQ_CST);
}

static void switch_first(void)
{
	static_key_set(&keys[0], true);
}

static void switch_first_off(void)
{
	static_key_set(&keys[0], false);
}

static void switch_second_on(void)
{
	static_key_set(&keys[1], true);
}

/* Users of text_patch_apply() that do not know each other: static keys are one of them. */
static u8 *first_site(u32 i, struct text_insn *insn)
{
	*insn = site_insn(&sites[0], true);
	return code_of(0);
}

static u8 *second_site(u32 i, struct text_insn *insn)
{
	*insn = site_insn(&sites[1], true);
	return code_of(1);
}

static u64 resume_first_site(u64 addr)
{
	return addr == (u64)code_of(0) ? addr + TEXT_PATCH_BYTES : 0;
}

static u64 resume_second_site(u64 addr)
{
	return addr == (u64)code_of(1) ? addr + TEXT_PATCH_BYTES : 0;
}

static void patch_first_site(void)
{
	static const struct text_patch patch = { 1, first_site, resume_first_site };

	text_patch_apply(&patch);
}

static void patch_second_site(void)
{
	static const struct text_patch patch = { 1, second_site, resume_second_site };

	text_patch_apply(&patch);
}

static void both_are_jumps(void)
{
	il_check(is_jump(0, code_of(0)) && is_jump(1, code_of(1)));
}

static void first_is_on(void)
{
	il_check(static_key_is_set(&keys[0]) && is_jump(0, code_of(0)));
	il_check(!applying && !any_changes && !keys[0].changes);
}

static void first_is_consistent(void)
{
	il_check(static_key_is_set(&keys[0]) == is_jump(0, code_of(0)));
	il_check(!static_key_is_set(&keys[1]) && !is_jump(1, code_of(1)));
}

static void both_are_on(void)
{
	first_is_on();
	il_check(is_jump(1, code_of(1)));
}

/*
 * The first release publishes the sites before the first INT3 can be met. open_alias() keeps that
 * order, too: it turns interrupts off before the INT3 is written, which is a barrier for the
 * compiler. The last release comes after a round of interrupts.
 */
#define ORDERED_BY_OTHERS " text_patch_apply:pf_store_release "

const struct il_test il_tests[] = {
	{ "a CPU that reads the first byte first",
	  share_keys_with_runner,
	  { { switch_first_on, 0 }, { run_forward, 1 } },
	  first_is_on,
	  2,
	  ORDERED_BY_OTHERS },
	{ "a CPU that reads the last byte first",
	  share_keys_with_runner,
	  { { switch_first_on, 0 }, { run_backward, 1 } },
	  first_is_on,
	  2,
	  ORDERED_BY_OTHERS },
	{ "an NMI",
	  share_keys_alone,
	  { { switch_first_on, 0 }, { run_in_nmi, 0 } },
	  first_is_on,
	  1,
	  NULL },
	{ "on and off",
	  share_keys_alone,
	  { { switch_first, 0 }, { switch_first_off, 1 } },
	  first_is_consistent,
	  2,
	  NULL },
	{ "two keys",
	  share_keys_alone,
	  { { switch_first, 0 }, { switch_second_on, 1 } },
	  both_are_on,
	  2,
	  NULL },
	{ "two users",
	  share_keys_alone,
	  { { patch_first_site, 0 }, { run_in_nmi, 0 }, { patch_second_site, 1 } },
	  both_are_jumps,
	  2,
	  NULL },
	{ 0 },
};
