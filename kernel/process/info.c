// SPDX-License-Identifier: BSD-2-Clause
#include <lego/sched.h>

#include <asm/page.h>
#include <lego/errno.h>
#include <lego/page.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

/* What the system says about itself. */

#define UTS_LEN 65

struct utsname {
	char sysname[UTS_LEN];
	char nodename[UTS_LEN];
	char release[UTS_LEN];
	char version[UTS_LEN];
	char machine[UTS_LEN];
	char domainname[UTS_LEN];
};

struct sysinfo {
	s64 uptime;
	u64 loads[3];
	u64 totalram;
	u64 freeram;
	u64 sharedram;
	u64 bufferram;
	u64 totalswap;
	u64 freeswap;
	u16 procs;
	u16 pad;
	u64 totalhigh;
	u64 freehigh;
	u32 mem_unit;
};

BUILD_BUG_ON(sizeof(struct sysinfo) != 112);

/* The release is a Linux version: C libraries compare it with the oldest they work on. */
SYSCALL_DEFINE1(uname, struct utsname __user *, buf)
{
	static const struct utsname name = {
		.sysname = "Linux",
		.nodename = "lego",
		.release = "6.1.0-lego",
		.version = "#1 SMP",
		.machine = "x86_64",
		.domainname = "(none)",
	};

	return copy_to_user(buf, &name, sizeof(name));
}

SYSCALL_DEFINE1(sysinfo, struct sysinfo __user *, buf)
{
	struct sysinfo info;

	memset(&info, 0, sizeof(info));
	info.uptime = (s64)(clock_monotonic_ns() / NSEC_PER_SEC);
	info.totalram = page_nr_total() * PAGE_SIZE;
	info.freeram = page_nr_free() * PAGE_SIZE;
	info.procs = READ_ONCE(current->proc->nr_threads);
	info.mem_unit = 1;
	return copy_to_user(buf, &info, sizeof(info));
}

/* No command is supported, which command 0 says. */
SYSCALL_DEFINE3(membarrier, int, command, unsigned int, flags, int, cpu)
{
	return command || flags ? -EINVAL : 0;
}
