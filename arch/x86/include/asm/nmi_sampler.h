/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_NMI_SAMPLER_H
#define ASM_NMI_SAMPLER_H

/* NMIs at a mean rate on every CPU, whatever the CPU is doing. */

#include <lego/types.h>

/*
 * Starts NMIs to all CPUs, hz times a second, by a timer of this machine. *jitter: asks for random
 * moments, and tells whether they are. *moves becomes true before the first NMI if one CPU's
 * handler has to call nmi_sampler_move(). Process context, one caller at a time. Returns the
 * timer's name, or NULL if no timer can do it.
 */
const char *nmi_sampler_start(u32 hz, bool *jitter, bool *moves);

/*
 * Puts the next NMI into the next period; each period has one. With jitter it comes at random/2^32
 * of the period (less than 1), but at least an eighth of a period from now. Called by the NMI
 * handler on one CPU. Does nothing in an NMI of another source.
 */
void nmi_sampler_move(u64 random);

/*
 * Returns how many periods are over since the start, by the timer's own clock. Any context, while
 * NMIs are on.
 */
u64 nmi_sampler_slots(void);

/* No more are sent; one may still be under way. Process context; also when nothing was started. */
void nmi_sampler_stop(void);

/* One to every other CPU. Interrupts off, not from NMI. */
void nmi_sampler_send(void);

#endif
