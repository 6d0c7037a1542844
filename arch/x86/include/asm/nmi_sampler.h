/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_NMI_SAMPLER_H
#define ASM_NMI_SAMPLER_H

/* NMIs at a mean rate on every CPU, also while interrupts are off. */

#include <lego/types.h>

/*
 * Starts NMIs to all CPUs, hz times a second, from a timer of this machine. *jitter: in, whether
 * random moments are wanted; out, whether they are random. *moves becomes true before the first NMI
 * if the handler of one CPU must call nmi_sampler_move(). Process context, one caller at a time.
 * Returns the timer's name, or NULL if no timer can do it.
 */
const char *nmi_sampler_start(u32 hz, bool *jitter, bool *moves);

/*
 * Moves the next NMI into the next period; each period has one. With jitter it comes at random/2^32
 * of the period, but at least an eighth of a period from now. Called by the NMI handler on one CPU.
 * Does nothing in an NMI from another source.
 */
void nmi_sampler_move(u64 random);

/*
 * Returns how many periods have passed since the start, by the timer's own clock. Any context,
 * while NMIs are on.
 */
u64 nmi_sampler_slots(void);

/* Stops the NMIs; one may still be in flight. Process context. Harmless if nothing was started. */
void nmi_sampler_stop(void);

/* Sends one NMI to every other CPU. Interrupts off, not from NMI. */
void nmi_sampler_send(void);

#endif
