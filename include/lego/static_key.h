/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_STATIC_KEY_H
#define LEGO_STATIC_KEY_H

/*
 * A condition that is nearly always one way, at the price of one NOP: static_key_on(&key) is false
 * until static_key_set() turns the NOP, everywhere it is used, into a jump. Keys are static objects
 * and start off. Not for code that the breakpoint exception itself runs through.
 */

#include <asm/static_key.h>

/*
 * Switch a key. While it is being switched a site may still be the old way on one CPU and already
 * the new way on another; when this returns it is the new way on all. Process context, interrupts
 * on; may sleep. No effect when the key is that way already.
 */
void static_key_set(struct static_key *key, bool on);

/* How the key was last set; any context. */
static inline bool static_key_is_set(const struct static_key *key)
{
	return READ_ONCE(key->on);
}

#endif
