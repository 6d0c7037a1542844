/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes the settings of the profilers, drawn from a seed; for soak.c and fuzz.c. */
#ifndef TESTS_USER_FLIP_H
#define TESTS_USER_FLIP_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct flip {
	const char *file, *text;
};

/* Source, rate and points. */
static const struct flip flips_of_samples[] = {
	{ "heatmap", "source timer" },
	{ "heatmap", "source nmi" },
	{ "source", "source nmi hz 1" },
	{ "source", "hz 100" },
	{ "source", "hz 997" },
	{ "source", "source timer hz 300" },
	{ "source", "source nmi hz 2000" },
	{ "heatmap", "off" },
	{ "heatmap", "on" },
	{ "points", "*" },
	{ "points", "-*" },
	{ "points", "-*,page_*,context_switch" },
	{ "source", "hz 9973" }, /* the last one: see late-kills.c */
};

/* Other settings, which do not change strace's counts. The trace they set up prints no line. */
static const struct flip flips_of_others[] = {
	{ "heatmap", "reset" },
	{ "points", "reset" },
	{ "source", "seed 7" },
	{ "source", "seed none" },
	{ "waits", "off" },
	{ "waits", "on" },
	{ "waits", "reset" },
	{ "memory_growth", "mark" },
	{ "memory_chains", "on" },
	{ "memory_chains", "off" },
	{ "memory_chains", "reset" },
	{ "kernel_chains", "on" },
	{ "kernel_chains", "off" },
	{ "kernel_chains", "reset" },
	{ "working_set", "on" },
	{ "working_set", "off" },
	{ "working_set", "reset" },
	{ "strace_live", "all,pid:999999999" },
	{ "strace_live", "file,failed,>1000s" },
	{ "strace_live", "off" },
};

static const struct flip flips_of_strace[] = {
	{ "strace", "off" },
	{ "strace", "on" },
	{ "strace", "reset" },
	{ "report", "reset" },
};

#define NR_FLIPS(flips) (sizeof(flips) / sizeof(*(flips)))

static inline uint64_t flip_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 16;
}

/* Changes a random setting. Returns 0 if the kernel refuses it. */
static inline int flip_one(const struct flip *flips, size_t nr, uint64_t *state)
{
	const struct flip *flip = &flips[flip_random(state) % nr];
	char path[64];
	int fd, ok;

	snprintf(path, sizeof(path), "/proc/profile/%s", flip->file);
	fd = open(path, O_WRONLY);
	ok = write(fd, flip->text, strlen(flip->text)) > 0;
	close(fd);
	return ok;
}

/* Reads a file to its end, so that the kernel makes the whole text. Returns 0 on failure. */
static inline int flip_read(const char *path)
{
	static char buf[1 << 16];
	int fd = open(path, O_RDONLY);
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		;
	close(fd);
	return n == 0;
}

#endif
