// SPDX-License-Identifier: BSD-2-Clause
/* hello as a position independent program: the kernel chooses its base, libc relocates it. */
#include "hello.c"

#ifndef __PIE__
#error hello-pie must be built as a static PIE
#endif
