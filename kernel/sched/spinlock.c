// SPDX-License-Identifier: BSD-2-Clause
/* What a spinlock that is not free costs is counted here, off the path of those that are. */
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
