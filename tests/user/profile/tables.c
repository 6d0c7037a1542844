// SPDX-License-Identifier: BSD-2-Clause
/*
 * tables: makes system calls that succeed and that fail, samples and pairs, switches all profilers
 * off, and prints each table, as text and as JSON, from files in /proc/profile and /proc/self:
 * `<file> <line>`.
 */
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "proc_profile.h"

static void spin(long ms)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		for (int i = 0; i < 1000; i++)
			getppid();
		close(-1);
		access("/no/such/file", F_OK);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
}

int main(void)
{
	static const char *const files[] = {
		"report",	    "strace",		"strace.json",
		"processes.json",   "heatmap.json",	"functions.json",
		"calls.json",	    "tasks.json",	"cpus.json",
		"points.json",	    "function",		"function.json",
		"irqs_off.json",    "waits.json",	"waits",
		"wakers",	    "waits_calls.json", "waits_tasks.json",
		"waits_locks.json",
	};
	pid_t child = fork();

	if (!child) {
		spin(50);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	prctl(PR_SET_NAME, "a\"b\\c\n\x01\xe4;d");
	spin(200);
	control("/proc/profile/strace", "off");
	control("/proc/profile/heatmap", "off");
	control("/proc/profile/points", "-*");
	control("/proc/profile/waits", "off");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/profile/%s", files[i]);
		print_file(files[i], path);
	}
	print_file("self", "/proc/self/strace");
	print_file("self.json", "/proc/self/strace.json");
	puts("PASS: tables");
	return 0;
}
