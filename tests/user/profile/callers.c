// SPDX-License-Identifier: BSD-2-Clause
/*
 * callers MS: makes the same few system calls for MS milliseconds: read(), mmap() and munmap(),
 * whose kernel functions do most of their work in other functions. Then it stops the samples and
 * prints them: `stacks <line>`, `records <line>` and `heatmap <line>`.
 */
#include <sys/mman.h>

#include "clock.h"
#include "proc_profile.h"

#define PAGE 4096

int main(int argc, char **argv)
{
	int zero = open("/dev/zero", O_RDONLY), nr_failed = 0;
	static char buf[PAGE];
	long end_ms;

	if (argc != 2) {
		puts("usage: callers MS");
		return 2;
	}
	end_ms = now_ms() + atol(argv[1]);
	while (now_ms() < end_ms) {
		for (int i = 0; i < 100; i++) {
			char *area = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			nr_failed += area == MAP_FAILED || read(zero, buf, sizeof(buf)) < 0 ||
				     munmap(area, PAGE) < 0;
		}
	}
	control("/proc/profile/heatmap", "off");
	print_file("stacks", "/proc/profile/stacks");
	print_file("records", "/proc/profile/samples.json");
	print_file("heatmap", "/proc/profile/heatmap");
	puts(nr_failed ? "FAIL: callers" : "PASS: callers");
	return nr_failed != 0;
}
