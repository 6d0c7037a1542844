// SPDX-License-Identifier: BSD-2-Clause
/*
 * The keys of places where several hooks come together. While all of these are off, the place costs
 * one NOP: its key `any` is on while one of the hooks' keys is on. Its key `slow` is off while just
 * those are on that usually are: then the place runs them without looking at their keys.
 *
 * A change first makes the place look at the hooks' keys, on all CPUs, and then switches these and
 * `any` together. So no CPU begins a hook that is off. If just the usual keys are on then, the
 * place may be fast again. While none is on, `slow` stays as it is, because each of these steps
 * interrupts all CPUs.
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
	u32 usual, on; /* bit i: keys[i] is on usually, or now */
} places[HOOK_NR_PLACES] = {
	[HOOK_CALL] = { &profile_syscall_key, &profile_syscall_slow_key },
	[HOOK_SWITCH] = { &profile_switch_key, &profile_switch_slow_key },
	[HOOK_KMALLOC] = { &profile_kmalloc_key },
	[HOOK_PAGE_ALLOC] = { &profile_page_alloc_key },
};

#define for_each_place(place) for ((place) = places; (place) < places + HOOK_NR_PLACES; (place)++)

static struct poll_lock changing; /* held while keys of hooks change */
u32 profile_syscall_generation = 1;

/* Returns the bit of a key of a place; 0: the place has not that key. */
static u32 bit_of(const struct place *place, const os_key_t *key)
{
	for (u32 i = 0; i < place->nr_keys; i++) {
		if (place->keys[i] == key)
			return PF_BIT(i);
	}
	return 0;
}

static void add_key(os_key_t *key, bool on)
{
	if (os_key_is_set(key) != on)
		os_keys_add(key, on);
}

/* Makes places slow that have this key or, with NULL, all; or fast, if they may be. */
static void set_slow(const os_key_t *key, bool on)
{
	struct place *place;

	os_keys_begin();
	for_each_place(place) {
		if (place->slow && (!key || bit_of(place, key)) &&
		    (on || place->on == place->usual))
			add_key(place->slow, on);
	}
	os_keys_commit();
}

void hook_keys_begin(const os_key_t *key)
{
	bool was_slow;

	poll_lock(&changing);
	was_slow = os_key_is_set(&profile_syscall_key) && os_key_is_set(&profile_syscall_slow_key);
	set_slow(key, true);
	if (!was_slow && os_key_is_set(&profile_syscall_slow_key))
		pf_write_once(profile_syscall_generation, profile_syscall_generation + 1);
}

void hook_keys_add(os_key_t *key, bool on)
{
	struct place *place;

	os_assert(changing.is_held);
	os_keys_add(key, on);
	for_each_place(place) {
		u32 bit = bit_of(place, key);

		place->on = (place->on & ~bit) | (on ? bit : 0);
	}
}

void hook_keys_commit(void)
{
	struct place *place;

	for_each_place(place)
		add_key(place->any, place->on);
	os_keys_commit();
}

void hook_keys_end(const os_key_t *key)
{
	set_slow(key, false);
	poll_unlock(&changing);
}

void hook_keys_register(enum hook_place at, os_key_t *key, bool usual)
{
	struct place *place = &places[at];

	if (bit_of(place, key))
		return;
	hook_keys_begin(NULL);
	os_assert(place->nr_keys < MAX_KEYS);
	place->usual |= usual ? PF_BIT(place->nr_keys) : 0;
	place->keys[place->nr_keys++] = key;
	hook_keys_end(NULL);
}

void hook_key_set(os_key_t *key, bool on)
{
	hook_keys_begin(key);
	os_keys_begin();
	hook_keys_add(key, on);
	hook_keys_commit();
	hook_keys_end(key);
}
#endif
