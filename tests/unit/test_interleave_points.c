// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests in all interleavings (interleave.h) that a reset of the points, on another CPU, leaves no
 * maximum from before it: that would hide pairs in flight.
 */

#include "../../kernel/profile/points/point.c"

#include "unit.h"

#define PAIR_CYCLES 500

DEFINE_PROFILE_POINT(pair)

static struct profile_point_cpu *counters(void)
{
	return &os_per_cpu(__PROFILE_POINT_CPU(pair), 0);
}

static void make_point(void)
{
	if (!usable)
		points_init(true);
	host_now = 10 * PAIR_CYCLES;
	reset_cycles = 0;
	nr_resets = __PROFILE_POINT(pair).nr_resets = 0;
	counters()->max_cycles = PAIR_CYCLES / 2;
	il_share(&reset_cycles, sizeof(reset_cycles));
	il_share(&counters()->max_cycles, sizeof(u64));
	il_share(&nr_resets, sizeof(nr_resets));
	il_share(&__PROFILE_POINT(pair).nr_resets, sizeof(u32));
}

/* The pair ended before the reset can have begun, so it counts nothing if that comes first. */
static void end_pair(void)
{
	profile_point_end_slow(&__PROFILE_POINT(pair), PAIR_CYCLES, PAIR_CYCLES, 0);
}

static void no_maximum(void)
{
	il_check(counters()->max_cycles == 0);
}

/*
 * No interrupt comes. The barriers of the reset order stores, which x86 does anyway, and the copy
 * of the sums. That of a walk is for a panic.
 */
const struct il_test il_tests[] = {
	{ "reset",
	  make_point,
	  { { end_pair, 0 }, { points_reset, 1 } },
	  no_maximum,
	  3,
	  " raise_max:os_local(*c).max_cycles catch_up:pf_mb walk_begin:pf_barrier " },
	{ 0 },
};
