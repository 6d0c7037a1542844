/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_PROC_PROFILE_H
#define TESTS_PROC_PROFILE_H

/*
 * Accessors of the files in /proc/profile/. A kernel without profilers does not have these files.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Prints each line of a file after a word and a space. */
static inline void print_file(const char *word, const char *path)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0)
		printf("%s %s", word, line);
	free(line);
	if (file)
		fclose(file);
}

static inline void control(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		perror(path);
	close(fd);
}

#endif
