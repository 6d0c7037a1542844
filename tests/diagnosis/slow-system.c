// SPDX-License-Identifier: BSD-2-Clause
/* remove_file() starts a shell and a program for each file. */
#include "diagnosis.h"

#define NR_FILES 60

static char name[64];

static void make_file(int number)
{
	FILE *file;

	snprintf(name, sizeof(name), "/tmp/part.%d", number);
	file = fopen(name, "w");
	if (!file || fprintf(file, "%d\n", number) < 0 || fclose(file))
		die(name);
}

static void NOINLINE remove_file(void)
{
	char command[128];

	snprintf(command, sizeof(command), "/bin/rm -f %s", name);
	if (system(command))
		die(command);
}

int main(void)
{
	for (int i = 0; i < NR_FILES; i++) {
		make_file(i);
		work(1000);
		remove_file();
	}
	return 0;
}
