// SPDX-License-Identifier: BSD-2-Clause
/*
 * The keys of places where several hooks come together. While all of these are off, the place costs
 * one NOP: its key `any` is on while one of the hooks' keys is on. Its key `slow` is off while just
 * those are on that usually are: then the place runs them without looking at their keys.
 *
 * A change first makes the place look at the hooks' keys, on all CPUs, then changes these, and then
 * sets what the place needs. So no CPU begins a hook that is off, or leaves one out that is on.
 */

#include "hook_keys.h"

os_key_t profile_off_key;

#ifdef PROFILE_HAS_PLACES
os_key_t profile_syscall_key, profile_syscall_slow_key;
os_key_t profile_switch_key, profile_switch_slow_key;
os_key_t profile_kmalloc_key, profile_page_alloc_key;

#define MAX_KEYS 4

static struct place {
	os_key_t *any, *slow; /* slow is NULL if usually no hook is on */
	os_key_t *keys[MAX_KEYS];
	u32 nr_keys;
	u32 usual; /* bit i: keys[i] is on usually */
} places[HOOK_NR_PLACES] = {
	[HOOK_CALL] = { &profile_syscall_key, &profile_syscall_slow_key },
	[HOOK_SWITCH] = { &profile_switch_key, &profile_switch_slow_key },
	[HOOK_KMALLOC] = { &profile_kmalloc_key },
	[HOOK_PAGE_ALLOC] = { &profile_page_alloc_key },
};

static struct poll_lock changing; /* held while keys of hooks change */
u32 profile_syscall_generation = 1;

static bool has_key(const struct place *place, const os_key_t *key)
{
	for (u32 i = 0; i < place->nr_keys; i++) {
		if (place->keys[i] == key)
			return true;
	}
	return !key;
}

static void set(os_key_t *key, bool on)
{
	if (key && os_key_is_set(key) != on)
		os_key_set(key, on);
}

void hook_keys_begin(const os_key_t *key)
{
	bool was_slow;

	poll_lock(&changing);
	was_slow = os_key_is_set(&profile_syscall_slow_key);
	for (u32 i = 0; i < HOOK_NR_PLACES; i++) {
		if (!has_key(&places[i], key))
			continue;
		set(places[i].slow, true);
		set(places[i].any, true);
	}
	if (!was_slow && os_key_is_set(&profile_syscall_slow_key))
		pf_write_once(profile_syscall_generation, profile_syscall_generation + 1);
}

void hook_keys_end(const os_key_t *key)
{
	for (u32 i = 0; i < HOOK_NR_PLACES; i++) {
		const struct place *place = &places[i];
		u32 on = 0;

		if (!has_key(place, key))
			continue;
		for (u32 k = 0; k < place->nr_keys; k++)
			on |= (u32)os_key_is_set(place->keys[k]) << k;
		set(place->any, on);
		set(place->slow, on && on != place->usual);
	}
	poll_unlock(&changing);
}

void hook_keys_add(enum hook_place place, os_key_t *key, bool usual)
{
	struct place *p = &places[place];

	if (has_key(p, key))
		return;
	hook_keys_begin(NULL);
	os_assert(p->nr_keys < MAX_KEYS);
	p->usual |= (u32)usual << p->nr_keys;
	p->keys[p->nr_keys++] = key;
	hook_keys_end(NULL);
}

void hook_key_set(os_key_t *key, bool on)
{
	hook_keys_begin(key);
	os_key_set(key, on);
	hook_keys_end(key);
}
#endif
