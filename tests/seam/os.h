/* SPDX-License-Identifier: BSD-2-Clause */
/* The seam: points need only common.h; the other profilers need one more part each. */
#include "common.h"
#ifdef CONFIG_PROFILE_STRACE
#include "strace.h"
#endif
#ifdef CONFIG_PROFILE_STRACE_LIVE
#include "live.h"
#endif
#ifdef CONFIG_PROFILE_HEATMAP
#include "samples.h"
#endif
#ifdef CONFIG_PROFILE_CALLCHAIN
#include "chains.h"
#endif
#ifdef CONFIG_PROFILE_WAITS
#include "waits.h"
#endif
#ifdef CONFIG_PROFILE_TRACE
#include "trace.h"
#endif
#ifdef CONFIG_PROFILE_EXPORT
#include "export.h"
#endif
#ifdef CONFIG_PROFILE_IMAGES
#include "images.h"
#endif
#ifdef CONFIG_PROFILE_MEMORY
#include "memory.h"
#endif
#ifdef CONFIG_PROFILE_WORKING_SET
#include "working_set.h"
#endif
#ifdef CONFIG_PROFILE_FUNCTIONS
#include <profile/functions.h>
#include "functions.h"
#endif
