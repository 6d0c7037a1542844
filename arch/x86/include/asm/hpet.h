/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_HPET_H
#define ASM_HPET_H

#include <lego/types.h>

/*
 * Map it and start its main counter. False: there is none, or it makes no sense. Boot only,
 * once.
 */
bool hpet_init(void);

/* Low half of the main counter, for calibration at boot: the NMI sampler starts it again from 0. */
u32 hpet_read_counter(void);

/* Femtoseconds per count; 0 without HPET. */
extern u64 hpet_period_fs;

/* The registers, NULL without HPET; offsets as in the IA-PC HPET specification. */
extern volatile void *hpet_registers;

#endif
