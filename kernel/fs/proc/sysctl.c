// SPDX-License-Identifier: BSD-2-Clause
/*
 * /proc/sys: the files that programs read there, in Linux's formats (proc(5)). Root can write
 * fs/protected_*, kernel/kptr_restrict and kernel/sched_rt_*; the others are read only. A setting
 * that this kernel does not have shows the value that describes its behaviour.
 */
#include "../permission.h"
#include "internal.h"

#include <lego/errno.h>
#include <lego/mm.h>
#include <lego/params.h>
#include <lego/random.h>
#include <lego/sched.h>
#include <lego/string.h>

#define UUID_BYTES 16

static int show_text(struct text *text, const void *value)
{
	text_printf(text, "%s\n", (const char *)value);
	return 0;
}

static int show_number(struct text *text, const void *value)
{
	text_printf(text, "%llu\n", (unsigned long long)(u64)value);
	return 0;
}

static int show_name(struct text *text, const void *which)
{
	char name[SYSTEM_NAME_LEN];

	system_get_name((enum system_name)(u64)which, name);
	return show_text(text, name);
}

static int show_threads_max(struct text *text, const void *unused)
{
	return show_number(text, (const void *)(u64)task_limit());
}

/* A random UUID, version 4 (RFC 4122). */
static void make_uuid(u8 *uuid)
{
	random_bytes(uuid, UUID_BYTES);
	uuid[6] = (uuid[6] & 0x0f) | 0x40;
	uuid[8] = (uuid[8] & 0x3f) | 0x80;
}

static int show_uuid_of(struct text *text, const u8 *uuid)
{
	for (int i = 0; i < UUID_BYTES; i++)
		text_printf(text, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
			    uuid[i]);
	return show_text(text, "");
}

static int show_uuid(struct text *text, const void *unused)
{
	u8 uuid[UUID_BYTES];

	make_uuid(uuid);
	return show_uuid_of(text, uuid);
}

static u8 boot_id[UUID_BYTES];

static int show_boot_id(struct text *text, const void *unused)
{
	return show_uuid_of(text, boot_id);
}

/* A number that root can set, from 0 to max. */
struct setting {
	unsigned int *value, max;
};

unsigned int kptr_restrict = 1;

static const struct setting kptr = { &kptr_restrict, 2 };
static const struct setting hardlinks = { &fs_protection.hardlinks, 1 };
static const struct setting symlinks = { &fs_protection.symlinks, 1 };
static const struct setting fifos = { &fs_protection.fifos, 2 };
static const struct setting regular = { &fs_protection.regular, 2 };

static int show_setting(struct text *text, const void *arg)
{
	const struct setting *setting = arg;

	text_printf(text, "%u\n", READ_ONCE(*setting->value));
	return 0;
}

static int write_setting(const char *text, const void *arg)
{
	const struct setting *setting = arg;
	unsigned int value = text[0] - '0';

	if (value > setting->max || (text[1] && strcmp(text + 1, "\n")))
		return -EINVAL;
	WRITE_ONCE(*setting->value, value);
	return 0;
}

static int show_rt_time(struct text *text, const void *arg)
{
	text_printf(text, "%d\n", READ_ONCE(*(const int *)arg));
	return 0;
}

/* Microseconds. The runtime is at most the period; -1: no limit. */
static int write_rt_time(const char *text, const void *arg)
{
	bool is_runtime = arg == &sched_rt_runtime_us;
	int period_us = READ_ONCE(sched_rt_period_us), runtime_us = READ_ONCE(sched_rt_runtime_us);
	int *changed = is_runtime ? &runtime_us : &period_us;
	char line[16], *end;
	u64 number;

	strscpy(line, text, sizeof(line));
	end = strchr(line, '\n');
	if (end && !end[1])
		*end = '\0';
	if (is_runtime && !strcmp(line, "-1"))
		number = (u64)-1;
	else if (parse_u64(line, &number) || number > INT32_MAX)
		return -EINVAL;
	*changed = (int)number;
	if (period_us <= 0 || runtime_us > period_us)
		return -EINVAL;
	WRITE_ONCE(*(is_runtime ? &sched_rt_runtime_us : &sched_rt_period_us), *changed);
	return 0;
}

/* Accepts only the value that the file shows, as tools write it before they begin. */
static __maybe_unused int write_one(const char *text)
{
	return text[0] == '1' && (!text[1] || !strcmp(text + 1, "\n")) ? 0 : -EINVAL;
}

#define FILE_OF(path_, show_, arg_)                                              \
	{                                                                        \
		.path = "sys/" path_, .mode = 0444, .show = show_, .arg = (arg_) \
	}
#define NAME(path, which) FILE_OF(path, show_name, (void *)(u64)(which))
#define TEXT(path, value) FILE_OF(path, show_text, value)
#define SETTING(path_, setting)                                           \
	{                                                                 \
		.path = "sys/" path_, .mode = 0644, .show = show_setting, \
		.write_arg = write_setting, .arg = &(setting)             \
	}
#define RT_TIME(path_, value)                                             \
	{                                                                 \
		.path = "sys/" path_, .mode = 0644, .show = show_rt_time, \
		.write_arg = write_rt_time, .arg = &(value)               \
	}
#define NUMBER(path, value) FILE_OF(path, show_number, (void *)(u64)(value))

static struct proc_file files[] = {
	NAME("kernel/ostype", SYSTEM_NAME),
	NAME("kernel/hostname", SYSTEM_NODE),
	NAME("kernel/osrelease", SYSTEM_RELEASE),
	NAME("kernel/version", SYSTEM_VERSION),
	NAME("kernel/domainname", SYSTEM_DOMAIN),
	NUMBER("kernel/pid_max", PID_MAX),
	FILE_OF("kernel/threads-max", show_threads_max, NULL),
	NUMBER("kernel/ngroups_max", NR_GROUPS),
	NUMBER("kernel/cap_last_cap", LAST_CAPABILITY),
	NUMBER("kernel/overflowuid", 65534),
	NUMBER("kernel/overflowgid", 65534),
	TEXT("kernel/core_pattern", "core"),
	NUMBER("kernel/core_uses_pid", 0),
	NUMBER("kernel/dmesg_restrict", 1),
#ifdef CONFIG_PROFILE_FUNCTIONS
	{ .path = "sys/kernel/ftrace_enabled",
	  .mode = 0644,
	  .show = show_number,
	  .write = write_one,
	  .arg = (void *)1 },
#endif
	SETTING("kernel/kptr_restrict", kptr),
	RT_TIME("kernel/sched_rt_period_us", sched_rt_period_us),
	RT_TIME("kernel/sched_rt_runtime_us", sched_rt_runtime_us),
	NUMBER("kernel/randomize_va_space", 0),
	NUMBER("kernel/random/poolsize", 256),
	NUMBER("kernel/random/entropy_avail", 256),
	FILE_OF("kernel/random/boot_id", show_boot_id, NULL),
	FILE_OF("kernel/random/uuid", show_uuid, NULL),
	NUMBER("vm/overcommit_memory", 0),
	NUMBER("vm/overcommit_ratio", 50),
	NUMBER("vm/max_map_count", MM_MAX_AREAS),
	NUMBER("vm/mmap_min_addr", MM_MIN_ADDR),
	NUMBER("vm/swappiness", 0),
	NUMBER("fs/file-max", INT64_MAX), /* no limit but memory */
	NUMBER("fs/nr_open", FILE_MAX_FDS),
	NUMBER("fs/pipe-max-size", PIPE_BYTES),
	NUMBER("fs/overflowuid", 65534),
	NUMBER("fs/overflowgid", 65534),
	SETTING("fs/protected_hardlinks", hardlinks),
	SETTING("fs/protected_symlinks", symlinks),
	SETTING("fs/protected_fifos", fifos),
	SETTING("fs/protected_regular", regular),
};

int proc_create_sysctls(void)
{
	make_uuid(boot_id);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		int error = proc_create_at_path(&files[i]);

		if (error)
			return error;
	}
	return 0;
}
