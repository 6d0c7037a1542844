/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_EXPORT_OS_H
#define PROFILE_EXPORT_OS_H

/* The kernel's contract for exports, besides ../os.h. */

#include "../os.h"

/* Returns the physical address of memory that os_alloc() has returned. */
#ifndef os_physical_address
#error "profile: define os_physical_address(ptr): physical address of os_alloc()'s memory"
#endif
/* Returns a number that programs cannot guess. Process context. */
#ifndef os_random
#error "profile: define os_random(): a number that programs cannot guess"
#endif
/* Copies the build id of the kernel, in hexadecimal digits; "" if it has none. */
#ifndef os_build_id
#define os_build_id(text, size) ((void)(size), (void)((text)[0] = '\0'))
#endif

#endif
