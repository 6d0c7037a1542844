// SPDX-License-Identifier: BSD-2-Clause
/* read_record() maps a file and unmaps it again, for each record of 64 bytes. */
#include "diagnosis.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define NR_RECORDS 4096
#define NR_ROUNDS  5

struct record {
	char text[64];
};

static struct record records[NR_RECORDS];

static void make_file(const char *name)
{
	FILE *file = fopen(name, "w");

	if (!file)
		die(name);
	for (int i = 0; i < NR_RECORDS; i++)
		snprintf(records[i].text, sizeof(records[i].text), "record %d", i);
	if (fwrite(records, sizeof(*records), NR_RECORDS, file) != NR_RECORDS || fclose(file))
		die(name);
}

static void NOINLINE read_record(int fd, int number, struct record *record)
{
	struct record *file = mmap(NULL, sizeof(records), PROT_READ, MAP_SHARED, fd, 0);

	if (file == MAP_FAILED)
		die("mmap");
	memcpy(record, &file[number], sizeof(*record));
	munmap(file, sizeof(records));
}

int main(void)
{
	struct record record;
	int fd;

	make_file("/tmp/records");
	fd = open("/tmp/records", O_RDONLY);
	if (fd < 0)
		die("/tmp/records");
	for (int i = 0; i < NR_ROUNDS * NR_RECORDS; i++) {
		read_record(fd, i % NR_RECORDS, &record);
		if (!strlen(record.text))
			die("an empty record");
	}
	return 0;
}
