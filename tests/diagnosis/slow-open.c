// SPDX-License-Identifier: BSD-2-Clause
/* read_setting() looks for a file that does not exist, again for each item of work. */
#include "diagnosis.h"

#include <fcntl.h>

#define NR_ITEMS 30000

static int NOINLINE read_setting(void)
{
	int fd = open("/etc/foo.conf", O_RDONLY);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int main(void)
{
	int nr_found = 0;

	for (int i = 0; i < NR_ITEMS; i++) {
		work(20);
		nr_found += read_setting();
	}
	return nr_found;
}
