/* SPDX-License-Identifier: BSD-2-Clause */
/* LegoOS's name for the profilers' hooks. */
#include <profile/profile.h>
