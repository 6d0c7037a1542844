// SPDX-License-Identifier: BSD-2-Clause
/* A second file of test_profile_points_counts.c. Its point has the name of a point there. */

#include "unit.h"

DEFINE_PROFILE_POINT(lego)

void hit_second_lego(u64 cycles);

void hit_second_lego(u64 cycles)
{
	PROFILE_SCOPE(lego);
	host_now += cycles;
}
