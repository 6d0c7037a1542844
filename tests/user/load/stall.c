// SPDX-License-Identifier: BSD-2-Clause
/*
 * stall <n>: waits for a line, and then lets the kernel print its list of keys n times, while the
 * host does not read the serial line (tests/boot/test_console.py). Then it prints the longest
 * stretches with interrupts off, and the log.
 */
#include <stdlib.h>
#include <sys/klog.h>

#include "check.h"
#include "clock.h"
#include "proc_profile.h"

#define READ_ALL  3
#define LOG_BYTES (1 << 20)

int main(int argc, char **argv)
{
	int nr_lists = argc > 1 ? atoi(argv[1]) : 1, n;
	char *log = malloc(LOG_BYTES), key;
	long start_ms;

	printf("stall: ready\n");
	fflush(stdout);
	CHECK(read(0, &key, 1) == 1);
	control("/proc/profile/heatmap", "reset");
	start_ms = now_ms();
	for (int i = 0; i < nr_lists; i++)
		control("/proc/sysrq-trigger", "h");
	printf("stall: took %ld ms\n", now_ms() - start_ms);
	print_file("stall:", "/proc/profile/irqs_off.json");
	n = klogctl(READ_ALL, log, LOG_BYTES);
	CHECK(n > 0 && n < LOG_BYTES);
	fwrite(log, 1, n, stdout);
	return check_finish("stall");
}
