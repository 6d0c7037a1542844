/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNIT_BLOCKS_H
#define UNIT_BLOCKS_H

/*
 * For tests of costs: basic blocks that have run, which the compiler counts by a call of
 * __sanitizer_cov_trace_pc() in each, and random numbers. A test begins with random_state = 1.
 */

#include <lego/types.h>

static u64 nr_blocks, random_state;

void __sanitizer_cov_trace_pc(void);

__attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_pc(void)
{
	nr_blocks++;
}

static u64 next_random(u64 below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (random_state >> 33) % below;
}

#endif
