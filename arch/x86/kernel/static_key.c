// SPDX-License-Identifier: BSD-2-Clause
/* All sites of a batch of keys are switched together, by text_patch_apply(). */

#include <lego/static_key.h>

#include <asm/text_patch.h>
#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/mutex.h>
#include <lego/string.h>

#define JMP_BYTE 0xe9

extern const struct static_key_site __start_static_key_sites[], __stop_static_key_sites[];

#define for_each_site(site) \
	for ((site) = __start_static_key_sites; (site) < __stop_static_key_sites; (site)++)

static DEFINE_MUTEX(key_mutex); /* guards all keys */
static bool any_changes;

static notrace u8 *site_code(const struct static_key_site *site)
{
	return (u8 *)&site->code + site->code;
}

static notrace u8 *site_target(const struct static_key_site *site)
{
	return (u8 *)&site->target + site->target;
}

static notrace struct static_key *site_key(const struct static_key_site *site)
{
	return (struct static_key *)((u8 *)&site->key + site->key);
}

static notrace struct text_insn site_insn(const struct static_key_site *site, bool on)
{
	return on ? text_branch(JMP_BYTE, site_code(site), (u64)site_target(site)) : TEXT_NOP;
}

/* Panics if a site to be switched has unexpected bytes, which must not be overwritten. */
static void check_sites(void)
{
	const struct static_key_site *site;
	struct text_insn insn;

	for_each_site(site) {
		if (!site_key(site)->changes)
			continue;
		insn = site_insn(site, site_key(site)->on);
		BUG_ON(memcmp(site_code(site), &insn, TEXT_PATCH_BYTES));
	}
}

static notrace u8 *switched_site(u32 i, struct text_insn *insn)
{
	const struct static_key_site *site = &__start_static_key_sites[i];

	if (!site_key(site)->changes)
		return NULL;
	*insn = site_insn(site, !site_key(site)->on);
	return site_code(site);
}

static bool has_sites(const struct static_key *key)
{
	const struct static_key_site *site;

	for_each_site(site) {
		if (site_key(site) == key)
			return true;
	}
	return false;
}

static notrace u64 resume_site(u64 addr)
{
	const struct static_key_site *site;

	for_each_site(site) {
		if ((u64)site_code(site) == addr && site_key(site)->changes)
			return site_key(site)->on ? addr + TEXT_PATCH_BYTES :
						    (u64)site_target(site);
	}
	return 0;
}

void static_keys_begin(void)
{
	mutex_lock(&key_mutex);
}

void static_keys_add(struct static_key *key, bool on)
{
	ASSERT_HELD(&key_mutex);
	if (key->on == on)
		return;
	if (has_sites(key))
		key->changes = any_changes = true;
	else
		WRITE_ONCE(key->on, on);
}

void static_keys_commit(void)
{
	const struct text_patch patch = {
		.nr = __stop_static_key_sites - __start_static_key_sites,
		.site = switched_site,
		.resume = resume_site,
	};

	const struct static_key_site *site;

	if (any_changes) {
		check_sites();
		text_patch_apply(&patch);
	}
	for_each_site(site) {
		struct static_key *key = site_key(site);

		WRITE_ONCE(key->on, key->on != key->changes);
		key->changes = false;
	}
	any_changes = false;
	mutex_unlock(&key_mutex);
}

void static_key_set(struct static_key *key, bool on)
{
	static_keys_begin();
	static_keys_add(key, on);
	static_keys_commit();
}
