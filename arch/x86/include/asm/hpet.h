/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_HPET_H
#define ASM_HPET_H

#include <lego/types.h>

/*
 * Maps the HPET and starts its main counter. Returns false if there is none or its registers are
 * implausible. Boot only, once.
 */
bool hpet_init(void);

/*
 * Reads the low half of the main counter, for calibration at boot. The NMI sampler later restarts
 * it from 0.
 */
u32 hpet_read_counter(void);

/* Femtoseconds per count; 0 without HPET. */
extern u64 hpet_period_fs;

/* The registers; NULL without HPET. The offsets are those of the IA-PC HPET specification. */
extern volatile void *hpet_registers;

#endif
