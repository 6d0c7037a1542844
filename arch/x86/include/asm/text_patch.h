/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ASM_TEXT_PATCH_H
#define ASM_TEXT_PATCH_H

#include <lego/types.h>

/*
 * Write to the kernel's code, which is mapped read-only, through a writable alias that exists only
 * for the call and is used by this CPU only. The bytes may lie in two pages. Serialized by the
 * caller; any context but NMI. Other CPUs may run the bytes meanwhile: what makes that safe is the
 * caller's business.
 */
void text_write(void *addr, const void *bytes, size_t n);

/* Make every CPU forget instructions it fetched earlier. Process context, interrupts on. */
void text_sync_cpus(void);

#endif
