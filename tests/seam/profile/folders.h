/* SPDX-License-Identifier: BSD-2-Clause */
/* The profilers with hooks of their own. */
#ifdef PROFILE_FOLDER
PROFILE_FOLDER(points)
PROFILE_FOLDER(samples) PROFILE_FOLDER(strace)
#ifdef CONFIG_PROFILE_WAITS
	PROFILE_FOLDER(waits)
#endif
#ifdef CONFIG_PROFILE_IMAGES
		PROFILE_FOLDER(images)
#endif
#else
#include <../points/hooks.h>
#include <../samples/hooks.h>
#include <../strace/hooks.h>
#ifdef CONFIG_PROFILE_WAITS
#include <../waits/hooks.h>
#endif
#ifdef CONFIG_PROFILE_IMAGES
#include <../images/hooks.h>
#endif
#endif
