// SPDX-License-Identifier: BSD-2-Clause
/*
 * worksets MS...: maps 64 MiB at a fixed address, touches all of it, and resets the sampling of
 * used memory, so that this does not count. Then uses a known part, for so many milliseconds:
 * writes to each page of 8 MiB, and reads each page of another 4 MiB, again and again. For each
 * further number, the part that is written to moves on by 16 MiB. A number of 0 sleeps for a second
 * instead; a last `+MS` only writes to 16 pages of another area, which all stay in the TLB. After a
 * first `=`, it does not reset the sampling.
 * tests/boot/test_working_set.py knows the addresses.
 */
#include "check.h"
#include "clock.h"
#include "proc_profile.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PLACE	   0x200000000000
#define MIB	   (1ul << 20)
#define NR_MIB	   64
#define HOT_MIB	   8
#define READ_AT	   (40 * MIB)
#define READ_MIB   4
#define MOVE_BY	   (16 * MIB)
#define FEW_AT	   (65 * MIB)
#define FEW_PAGES  16
#define PAGE_BYTES 4096

static char *map_at(unsigned long addr, unsigned long size)
{
	char *place = mmap((void *)addr, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	CHECK(place == (char *)addr);
	return place;
}

static void use_few(volatile char *few)
{
	for (unsigned long i = 0; i < FEW_PAGES; i++)
		few[i * PAGE_BYTES] = 1;
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
	char *place = map_at(PLACE, NR_MIB * MIB);
	bool uses_few = *argv[argc - 1] == '+';
	bool resets = argc < 2 || *argv[1] != '=';
	char *few = uses_few ? map_at(PLACE + FEW_AT, FEW_PAGES * PAGE_BYTES) : NULL;

	for (unsigned long i = 0; i < NR_MIB * MIB; i += PAGE_BYTES)
		place[i] = 1;
	if (uses_few)
		use_few(few);
	if (resets)
		control("/proc/profile/working_set", "reset");
	for (int i = resets ? 1 : 2; i < argc; i++) {
		unsigned long ms = strtoul(argv[i], NULL, 10), end = now_ms() + ms;

		if (!ms)
			sleep(1);
		while (now_ms() < end) {
			if (*argv[i] == '+')
				use_few(few);
			else
				use(place + i * MOVE_BY, place + READ_AT);
		}
	}
	return check_finish("worksets");
}
