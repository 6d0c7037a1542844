// SPDX-License-Identifier: BSD-2-Clause
/* The slow path of a spinlock that is not free: spins, and records the time. */
#include <lego/spinlock.h>

#include <asm/tsc.h>
#include <lego/profile.h>

void spin_lock_contended(spinlock_t *lock, const char *name)
{
	u64 start __maybe_unused = rdtsc();

	profile_trace(contention_begin, lock, PROFILE_LOCK_SPIN);
	while (!spin_take(lock))
		cpu_relax();
	profile_trace(contention_end, lock, 0);
	profile_spun(name, start);
}
