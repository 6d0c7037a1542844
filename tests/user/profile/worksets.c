// SPDX-License-Identifier: BSD-2-Clause
/*
 * worksets MS...: maps 64 MiB at a fixed address, touches all of it, and resets the sampling of
 * used memory, so that this does not count. Then uses a known part, for so many milliseconds:
 * writes to each page of 8 MiB, and reads each page of another 4 MiB, again and again. For each
 * further number, the part that is written to moves on by 16 MiB. A number of 0 sleeps for a second
 * instead. tests/boot/test_working_set.py knows the addresses.
 */
#include "check.h"
#include "proc_profile.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PLACE	   0x200000000000
#define MIB	   (1ul << 20)
#define NR_MIB	   64
#define HOT_MIB	   8
#define READ_AT	   (40 * MIB)
#define READ_MIB   4
#define MOVE_BY	   (16 * MIB)
#define PAGE_BYTES 4096

static unsigned long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ul + now.tv_nsec / 1000000;
}

static void use(volatile char *written, const volatile char *read)
{
	for (unsigned long i = 0; i < HOT_MIB * MIB; i += PAGE_BYTES)
		written[i] = 1;
	for (unsigned long i = 0; i < READ_MIB * MIB; i += PAGE_BYTES)
		read[i];
}

int main(int argc, char **argv)
{
	char *place = mmap((void *)PLACE, NR_MIB * MIB, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	CHECK(place == (char *)PLACE);
	for (unsigned long i = 0; i < NR_MIB * MIB; i += PAGE_BYTES)
		place[i] = 1;
	control("/proc/profile/working_set", "reset");
	for (int i = 1; i < argc; i++) {
		unsigned long ms = strtoul(argv[i], NULL, 10), end = now_ms() + ms;

		if (!ms)
			sleep(1);
		while (now_ms() < end)
			use(place + i * MOVE_BY, place + READ_AT);
	}
	return check_finish("worksets");
}
