// SPDX-License-Identifier: BSD-2-Clause
/* The calls that return information about the system: uname, sysinfo and so on. */

#include <lego/process.h>

#include "process.h"
#include <asm/page.h>
#include <lego/errno.h>
#include <lego/page.h>
#include <lego/spinlock.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

struct utsname {
	char sysname[SYSTEM_NAME_LEN];
	char nodename[SYSTEM_NAME_LEN];
	char release[SYSTEM_NAME_LEN];
	char version[SYSTEM_NAME_LEN];
	char machine[SYSTEM_NAME_LEN];
	char domainname[SYSTEM_NAME_LEN];
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

static DEFINE_SPINLOCK(names_lock); /* guards the two names of system_name that can be set */

/*
 * The release is a Linux version, because C libraries compare it with the oldest one they support.
 */
static struct utsname system_name = {
	.sysname = "Linux",
	.nodename = "lego",
	.release = "6.1.0-lego",
	.version = "#1 SMP",
	.machine = "x86_64",
	.domainname = "(none)",
};

SYSCALL_DEFINE1(uname, struct utsname __user *, buf)
{
	struct utsname name;
	unsigned long flags = spin_lock_irqsave(&names_lock);

	name = system_name;
	spin_unlock_irqrestore(&names_lock, flags);
	return copy_to_user(buf, &name, sizeof(name));
}

void system_get_name(enum system_name which, char name[SYSTEM_NAME_LEN])
{
	unsigned long flags = spin_lock_irqsave(&names_lock);

	memcpy(name, (const char *)&system_name + which * SYSTEM_NAME_LEN, SYSTEM_NAME_LEN);
	spin_unlock_irqrestore(&names_lock, flags);
}

static long set_name(char *name, const char __user *user, int len)
{
	char copy[SYSTEM_NAME_LEN] = { 0 };
	unsigned long flags;

	if (!process_is_root(current->proc))
		return -EPERM;
	if (len < 0 || len >= SYSTEM_NAME_LEN)
		return -EINVAL;
	if (copy_from_user(copy, user, len))
		return -EFAULT;
	flags = spin_lock_irqsave(&names_lock);
	memcpy(name, copy, SYSTEM_NAME_LEN);
	spin_unlock_irqrestore(&names_lock, flags);
	return 0;
}

SYSCALL_DEFINE2(sethostname, const char __user *, name, int, len)
{
	return set_name(system_name.nodename, name, len);
}

SYSCALL_DEFINE2(setdomainname, const char __user *, name, int, len)
{
	return set_name(system_name.domainname, name, len);
}

SYSCALL_DEFINE1(sysinfo, struct sysinfo __user *, buf)
{
	struct sysinfo info;

	memset(&info, 0, sizeof(info));
	info.uptime = (s64)(clock_monotonic_ns() / NSEC_PER_SEC);
	info.totalram = page_nr_total() * PAGE_SIZE;
	info.freeram = page_nr_free() * PAGE_SIZE;
	info.procs = task_nr_users();
	account_load_averages(info.loads);
	info.mem_unit = 1;
	return copy_to_user(buf, &info, sizeof(info));
}

/* No command is supported; command 0 returns that. */
SYSCALL_DEFINE3(membarrier, int, command, unsigned int, flags, int, cpu)
{
	return command || flags ? -EINVAL : 0;
}
