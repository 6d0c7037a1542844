/* SPDX-License-Identifier: BSD-2-Clause */
/* The profilers with hooks of their own. */
#ifdef PROFILE_FOLDER
PROFILE_FOLDER(points)
PROFILE_FOLDER(samples)
PROFILE_FOLDER(strace) PROFILE_FOLDER(waits) PROFILE_FOLDER(images) PROFILE_FOLDER(working_set)
#else
#include <../images/hooks.h>
#include <../points/hooks.h>
#include <../samples/hooks.h>
#include <../strace/hooks.h>
#include <../waits/hooks.h>
#include <../working_set/hooks.h>
#endif
