// SPDX-License-Identifier: BSD-2-Clause
#include <lego/static_key.h>

#include <asm/ptrace.h>
#include <asm/text_patch.h>
#include <lego/bug.h>
#include <lego/mutex.h>
#include <lego/string.h>

/*
 * Changing an instruction that other CPUs may be running (SDM vol. 3, 9.1.3, cross-modifying
 * code): first its first byte becomes INT3, then, when every CPU has been made to see that, the
 * other bytes change, then, after another round, the first byte. A CPU that hits the INT3 goes on
 * as if the site were switched already. It does so with interrupts off, so while a round of
 * interrupts is complete no CPU is in between. All sites of a key go through each step together.
 */

#define SITE_BYTES 5
#define INT3_BYTE  0xcc
#define JMP_BYTE   0xe9

static const u8 nop[SITE_BYTES] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

extern const struct static_key_site __start_static_key_sites[], __stop_static_key_sites[];

#define for_each_site(site) \
	for ((site) = __start_static_key_sites; (site) < __stop_static_key_sites; (site)++)

static DEFINE_MUTEX(patch_mutex);

/* The key being switched, for static_key_breakpoint(); NULL: none. */
static const struct static_key *switching;
static bool switching_on;

static u8 *site_code(const struct static_key_site *site)
{
	return (u8 *)&site->code + site->code;
}

static u8 *site_target(const struct static_key_site *site)
{
	return (u8 *)&site->target + site->target;
}

static const struct static_key *site_key(const struct static_key_site *site)
{
	return (struct static_key *)((u8 *)&site->key + site->key);
}

static void site_insn(const struct static_key_site *site, bool on, u8 *insn)
{
	s32 distance = site_target(site) - (site_code(site) + SITE_BYTES);

	memcpy(insn, nop, SITE_BYTES);
	if (on) {
		insn[0] = JMP_BYTE;
		memcpy(insn + 1, &distance, sizeof(distance));
	}
}

/* Write bytes [first, first + nr) of the new instructions, or INT3s, at all sites of a key. */
static void write_sites(const struct static_key *key, bool on, bool int3, size_t first, size_t nr)
{
	const struct static_key_site *site;
	u8 insn[SITE_BYTES];

	for_each_site(site)
	{
		if (site_key(site) != key)
			continue;
		site_insn(site, on, insn);
		if (int3)
			insn[0] = INT3_BYTE;
		text_write(site_code(site) + first, insn + first, nr);
	}
}

/*
 * One step, seen by all CPUs. It is done twice for the sake of QEMU: a CPU that is translating the
 * old bytes while they are written keeps that translation, and shares it. By the end of the round
 * it is complete; the second write drops it, and the second round waits for those who are running
 * it.
 */
static void write_step(const struct static_key *key, bool on, bool int3, size_t first, size_t nr)
{
	for (int i = 0; i < 2; i++) {
		write_sites(key, on, int3, first, nr);
		text_sync_cpus();
	}
}

/* What stands there is what we put there: anything else must not be written over. */
static void check_sites(const struct static_key *key)
{
	const struct static_key_site *site;
	u8 insn[SITE_BYTES];

	for_each_site(site)
	{
		if (site_key(site) != key)
			continue;
		site_insn(site, key->on, insn);
		BUG_ON(memcmp(site_code(site), insn, SITE_BYTES));
	}
}

void static_key_set(struct static_key *key, bool on)
{
	mutex_lock(&patch_mutex);
	if (key->on == on)
		goto out_unlock;
	check_sites(key);
	switching_on = on;
	/* Pairs with the acquire in static_key_breakpoint(). */
	smp_store_release(&switching, key);
	write_step(key, on, true, 0, 1);
	write_step(key, on, false, 1, SITE_BYTES - 1);
	write_step(key, on, false, 0, 1);
	smp_store_release(&switching, NULL);
	WRITE_ONCE(key->on, on);
out_unlock:
	mutex_unlock(&patch_mutex);
}

notrace bool static_key_breakpoint(struct pt_regs *regs)
{
	/* Pairs with the release in static_key_set(). */
	const struct static_key *key = smp_load_acquire(&switching);
	const struct static_key_site *site;
	u64 addr = regs->rip - 1; /* INT3 is a trap: rip is behind it */

	for_each_site(site)
	{
		if ((u64)site_code(site) != addr || site_key(site) != key)
			continue;
		regs->rip = switching_on ? (u64)site_target(site) : addr + SITE_BYTES;
		return true;
	}
	return false;
}
