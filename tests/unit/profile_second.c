// SPDX-License-Identifier: BSD-2-Clause
/* The second file of test_profile_points.c: a point with a name that is in use there, too. */

#include "unit.h"

DEFINE_PROFILE_POINT(lego)

void hit_second_lego(u64 cycles);

void hit_second_lego(u64 cycles)
{
	PROFILE_SCOPE(lego);
	host_now += cycles;
}
