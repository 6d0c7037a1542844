// SPDX-License-Identifier: BSD-2-Clause
/*
 * Says what the system calls on the path returned: how many bytes a read or a write moved, and how
 * often a poll found nothing. The events have each call's return value, so calls cost nothing more.
 * All calls of the report's threads count whose begin and end are in the rings.
 */

#include "path.h"

#include "../findings.h"

#define NR_CALLS  512
#define MAX_TOLD  3
#define MIN_SHARE 1000 /* of the path, in hundredths of a percent */

static struct result {
	u64 nr, nr_zero, nr_failed, bytes;
	u64 path_ns; /* on the path */
} results[NR_CALLS]; /* of the one reader, by number */

void path_begin_results(void)
{
	memset(results, 0, sizeof(results));
}

void path_add_result(u32 call, long value)
{
	struct result *result = &results[pf_min(call, NR_CALLS - 1u)];

	if (call >= NR_CALLS)
		return;
	result->nr++;
	result->nr_zero += !value;
	result->nr_failed += value < 0;
	result->bytes += value > 0 ? value : 0;
}

static bool is_one_of(const char *name, const char *const *names)
{
	while (*names && strcmp(name, *names))
		names++;
	return *names;
}

/* Copies an average: "1 byte", "2.5 bytes", "512 bytes", "64 KiB". */
static void print_average(char text[FINDING_COUNT_BYTES], u64 bytes, u64 nr)
{
	u64 tenths = (bytes * 10 + nr / 2) / nr;

	if (tenths >= 10240)
		finding_bytes(text, bytes / nr);
	else if (tenths < 100 && tenths % 10)
		os_snprintf(text, FINDING_COUNT_BYTES, "%lu.%lu bytes", tenths / 10, tenths % 10);
	else
		os_snprintf(text, FINDING_COUNT_BYTES, "%lu byte%s", (tenths + 5) / 10,
			    tenths == 10 ? "" : "s");
}

/* Appends what is worth telling of a call, or nothing. Returns the number of characters. */
static size_t print_result(char *line, size_t size, u32 call, const char *before)
{
	static const char *const transfers[] = { "sys_read",	 "sys_write",	   "sys_pread64",
						 "sys_pwrite64", "sys_readv",	   "sys_writev",
						 "sys_recvfrom", "sys_sendto",	   "sys_recvmsg",
						 "sys_sendmsg",	 "sys_sendfile",   "sys_splice",
						 "sys_getdents", "sys_getdents64", NULL };
	static const char *const polls[] = {
		"sys_poll",	  "sys_ppoll",	     "sys_select", "sys_pselect6",
		"sys_epoll_wait", "sys_epoll_pwait", NULL
	};
	const struct result *result = &results[call];
	char count[FINDING_COUNT_BYTES], all[FINDING_COUNT_BYTES];
	const char *name = os_syscall_name(call);

	if (!name)
		return 0;
	if (is_one_of(name, transfers) && result->nr > result->nr_failed) {
		print_average(count, result->bytes, result->nr - result->nr_failed);
		return os_snprintf(line, size, "%s%s returned %s on average", before, name, count);
	}
	if (!is_one_of(name, polls) || !result->nr_zero)
		return 0;
	return os_snprintf(line, size, "%s%s found nothing ready in %s of %s calls", before, name,
			   finding_count(count, result->nr_zero), finding_count(all, result->nr));
}

/* Returns the call with most time on the path. */
static u32 longest(void)
{
	u32 found = 0;

	for (u32 i = 1; i < NR_CALLS; i++)
		found = results[i].path_ns > results[found].path_ns ? i : found;
	return found;
}

void path_print_results(const struct path_row *rows, u32 nr, u64 whole_ns)
{
	char line[320];
	size_t len = 0;

	for (u32 i = 0; i < nr; i++) {
		if (rows[i].example.cause == PATH_NOT_RECORDED)
			whole_ns -= rows[i].ns;
		if (rows[i].example.call < NR_CALLS)
			results[rows[i].example.call].path_ns += rows[i].ns;
	}
	for (u32 i = 0; i < MAX_TOLD; i++) {
		u32 call = longest();

		if (report_percent(results[call].path_ns, whole_ns) < MIN_SHARE)
			break;
		len += print_result(line + len, sizeof(line) - len, call, len ? "; " : "");
		results[call].path_ns = 0;
	}
	if (len)
		report_printf("calls%s: %s\n",
			      path_known_cycles() ? ", as far as they are recorded" : "", line);
}
