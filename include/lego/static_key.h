/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_STATIC_KEY_H
#define LEGO_STATIC_KEY_H

/*
 * Static keys: conditions that rarely change, for the cost of one NOP. static_key_on(&key) is false
 * until static_key_set() turns the NOP at each use into a jump. Keys are static objects and start
 * off. They must not be used in code that the breakpoint exception runs.
 */

#include <asm/static_key.h>

/*
 * Switches a key. Meanwhile, a site may still be in the old state on one CPU and in the new state
 * on another; when this returns, it is in the new state on all CPUs. Does nothing if the key has
 * that state already. Process context, interrupts on; may sleep.
 */
void static_key_set(struct static_key *key, bool on);

/*
 * The same for many keys, in the time of one: add the keys between begin and commit, which switches
 * them. A key may be added again with the same state. Other threads that switch keys wait
 * meanwhile; this one must not call static_key_set().
 */
void static_keys_begin(void);
void static_keys_add(struct static_key *key, bool on);
void static_keys_commit(void);

/* Returns how the key was last set. Any context. */
static inline bool static_key_is_set(const struct static_key *key)
{
	return READ_ONCE(key->on);
}

#endif
