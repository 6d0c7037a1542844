// SPDX-License-Identifier: BSD-2-Clause
/* The names of errors, for whoever counts them. */

#include "errno_list.h"
#include "internal.h"

#define NAME(number, name, text) [number] = #name,
static const char *const names[] = { ERRNO_LIST(NAME) };
#undef NAME

const char *errno_name(u32 error)
{
	return error < ARRAY_SIZE(names) ? names[error] : NULL;
}
