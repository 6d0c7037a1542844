// SPDX-License-Identifier: BSD-2-Clause
/*
 * Only points that are on execute the fences, and no point is on, so no CPU executes the bytes that
 * are written.
 */

#include <asm/point_clock.h>

#include <asm/text_patch.h>

static const u8 nop[3] = { 0x0f, 0x1f, 0x00 };

extern const s64 __start_point_fences[], __stop_point_fences[];

void point_clock_drop_fences(void)
{
	for (const s64 *fence = __start_point_fences; fence < __stop_point_fences; fence++)
		text_write((u8 *)fence + *fence, nop, sizeof(nop));
	text_sync_cpus();
}
