// SPDX-License-Identifier: BSD-2-Clause
/* find_file() reads the whole directory for each file that it looks for. */
#include "diagnosis.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#define NR_FILES 500

static void make_files(void)
{
	char name[64];

	if (mkdir("/tmp/mail", 0700))
		die("/tmp/mail");
	for (int i = 0; i < NR_FILES; i++) {
		FILE *file;

		snprintf(name, sizeof(name), "/tmp/mail/%d", i);
		file = fopen(name, "w");
		if (!file || fclose(file))
			die(name);
	}
}

static int NOINLINE find_file(const char *name)
{
	DIR *directory = opendir("/tmp/mail");
	struct dirent *entry;
	int found = 0;

	if (!directory)
		die("/tmp/mail");
	while ((entry = readdir(directory)))
		found += !strcmp(entry->d_name, name);
	closedir(directory);
	return found;
}

int main(void)
{
	char name[16];

	make_files();
	for (int i = 0; i < NR_FILES; i++) {
		snprintf(name, sizeof(name), "%d", i);
		if (find_file(name) != 1)
			die(name);
	}
	return 0;
}
