/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_NMI_SAMPLER_H
#define ASM_NMI_SAMPLER_H

/* NMIs at a mean rate on every CPU, whatever the CPU is doing. */

#include <lego/types.h>

/*
 * Start them, about hz times a second, by whatever this machine has: returns its name, or NULL if
 * it has nothing that can. *period: of what is about hz, in TSC cycles times 2^16. *start: the TSC
 * when it began; the first NMI comes within a period of it. A second NMI may follow each at once.
 * *jitter: whether nmi_sampler_move() is wanted, and whether it works. Process context, one caller
 * at a time.
 */
const char *nmi_sampler_start(u32 hz, bool *jitter, u64 *period, u64 *start);

/*
 * Time is cut into periods: put the next NMI into the next one, at random/2^32 of it (less than 1),
 * but no less than an eighth of a period from now. Without, it comes a period after the last one.
 * From the NMI handler, on one CPU.
 */
void nmi_sampler_move(u64 random);

/* No more are sent; one may still be under way. Process context; also when nothing was started. */
void nmi_sampler_stop(void);

/* One to every other CPU. Interrupts off, not from NMI. */
void nmi_sampler_send(void);

#endif
