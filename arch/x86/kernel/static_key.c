// SPDX-License-Identifier: BSD-2-Clause
#include <lego/static_key.h>

#include <asm/text_patch.h>
#include <lego/bug.h>
#include <lego/mutex.h>
#include <lego/string.h>

/* All sites of a key are switched together, by text_patch_apply(). */

#define JMP_BYTE 0xe9

static const u8 nop[TEXT_PATCH_BYTES] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

extern const struct static_key_site __start_static_key_sites[], __stop_static_key_sites[];

#define for_each_site(site) \
	for ((site) = __start_static_key_sites; (site) < __stop_static_key_sites; (site)++)

static DEFINE_MUTEX(key_mutex);

/* The key being switched, and how. Guarded by key_mutex. */
static const struct static_key *switching;
static bool switching_on;

static notrace u8 *site_code(const struct static_key_site *site)
{
	return (u8 *)&site->code + site->code;
}

static notrace u8 *site_target(const struct static_key_site *site)
{
	return (u8 *)&site->target + site->target;
}

static notrace const struct static_key *site_key(const struct static_key_site *site)
{
	return (struct static_key *)((u8 *)&site->key + site->key);
}

static void site_insn(const struct static_key_site *site, bool on, u8 *insn)
{
	s32 distance = site_target(site) - (site_code(site) + TEXT_PATCH_BYTES);

	memcpy(insn, nop, TEXT_PATCH_BYTES);
	if (on) {
		insn[0] = JMP_BYTE;
		memcpy(insn + 1, &distance, sizeof(distance));
	}
}

/* Panics if a site has unexpected bytes, which must not be overwritten. */
static void check_sites(const struct static_key *key)
{
	const struct static_key_site *site;
	u8 insn[TEXT_PATCH_BYTES];

	for_each_site(site)
	{
		if (site_key(site) != key)
			continue;
		site_insn(site, key->on, insn);
		BUG_ON(memcmp(site_code(site), insn, TEXT_PATCH_BYTES));
	}
}

static u8 *switched_site(u32 i, u8 *insn)
{
	const struct static_key_site *site = &__start_static_key_sites[i];

	if (site_key(site) != switching)
		return NULL;
	site_insn(site, switching_on, insn);
	return site_code(site);
}

static notrace u64 resume_site(u64 addr)
{
	const struct static_key_site *site;

	for_each_site(site)
	{
		if ((u64)site_code(site) == addr && site_key(site) == switching)
			return switching_on ? (u64)site_target(site) : addr + TEXT_PATCH_BYTES;
	}
	return 0;
}

void static_key_set(struct static_key *key, bool on)
{
	const struct text_patch patch = {
		.nr = __stop_static_key_sites - __start_static_key_sites,
		.site = switched_site,
		.resume = resume_site,
	};

	mutex_lock(&key_mutex);
	if (key->on == on)
		goto out_unlock;
	check_sites(key);
	switching = key;
	switching_on = on;
	text_patch_apply(&patch);
	WRITE_ONCE(key->on, on);
out_unlock:
	mutex_unlock(&key_mutex);
}
