// SPDX-License-Identifier: BSD-2-Clause
/* The names of errors, for the tables. Trace output also prints their meanings (live/decode.c). */

#include "strace.h"

#include "errno_list.h"

#define NAME(number, name, text) [number] = #name,
static const char *const names[] = { ERRNO_LIST(NAME) };
#undef NAME

const char *errno_name(u32 error)
{
	return error < PF_ARRAY_SIZE(names) ? names[error] : NULL;
}
