// SPDX-License-Identifier: BSD-2-Clause
/* chain.c as most programs are built: without frame pointers. */
#include "chain.c"
