// SPDX-License-Identifier: BSD-2-Clause
/*
 * A leak to be found. With leak=<bytes>, each write to /proc/leak allocates so many bytes, and
 * forgets them.
 */

#include <lego/selftest.h>

#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/params.h>
#include <lego/procfs.h>
#include <lego/slab.h>

static u64 leak_bytes;

static noinline int forget_request(const char *text)
{
	return kmalloc(leak_bytes) ? 0 : -ENOMEM;
}

void planted_leak_start(void)
{
	if (leak_bytes)
		BUG_ON(proc_add_file("leak", "<text>", NULL, NULL, forget_request));
}

static int set_leak(const char *value)
{
	return parse_u64(value, &leak_bytes);
}

/* Plants a leak of so many bytes in /proc/leak. */
BOOT_PARAM(leak, "leak", "<bytes>", set_leak);
