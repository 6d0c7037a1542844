/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_HOOK_KEYS_H
#define PROFILE_HOOK_KEYS_H

/*
 * A place with several hooks, such as a system call, has keys of its own: see hook_keys.c. These
 * functions switch the keys of such hooks, and with them those of the place. Process context; they
 * sleep.
 */

#include "util.h"

enum hook_place {
	HOOK_CALL,   /* profile_sys_enter(), profile_sys_exit() */
	HOOK_SWITCH, /* profile_switch() */
	HOOK_KMALLOC,
	HOOK_PAGE_ALLOC, /* profile_asks() */
	HOOK_NR_PLACES,
};

#ifdef PROFILE_HAS_PLACES
/*
 * Makes a key one of those of a place. usual: it is among the keys that are on usually. Called by
 * init() of the profiler, while the key is off.
 */
void hook_keys_register(enum hook_place place, os_key_t *key, bool usual);

void hook_key_set(os_key_t *key, bool on);

/*
 * For several changes: begin, for one key or, with NULL, for any; then, once or more often,
 * os_keys_begin(), these two instead of os_keys_add() and os_keys_commit(); then end.
 */
void hook_keys_begin(const os_key_t *key);
void hook_keys_add(os_key_t *key, bool on);
void hook_keys_commit(void);
void hook_keys_end(const os_key_t *key);
#else
#define hook_keys_register(place, key, usual) ((void)0)
#define hook_key_set(key, on)		      os_key_set(key, on)
#endif

#endif
