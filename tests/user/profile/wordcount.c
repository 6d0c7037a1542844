// SPDX-License-Identifier: BSD-2-Clause
/*
 * wordcount -t THREADS FILE
 *
 * Counts lines, words, bytes and distinct words of a file with THREADS threads (main is one of
 * them) and prints the totals and the ten most frequent words. A word is a run of letters,
 * digits, underscores and bytes above 127.
 *
 * It is the demo of the profilers, so the system calls it makes depend on the input and on the
 * number of threads, and as little as possible on scheduling: all threads exist before any of
 * them starts to work (a barrier), slices of the file are fixed, workers take memory by mmap in
 * sizes that depend on their slice only (no malloc, so no race for arenas), stacks are small
 * enough for libc to keep all of them, and the output is one write. What still depends on
 * scheduling is the number of futex calls.
 *
 * Workers unmap memory while the others run: that makes TLB shootdowns.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_THREADS 256
#define STACK_BYTES (256 << 10)
#define BLOCK_BYTES (256 << 10)
#define CARRY_BYTES (64 << 10) /* a word may be this long */
#define TAIL_BYTES  64	       /* read past the slice to finish its last word */
#define ARENA_BYTES (64 << 10)
#define FIRST_SLOTS 4096
#define NR_TOP	    10

#define HASH_BASIS 2166136261u
#define HASH_PRIME 16777619u

struct entry {
	const unsigned char *word;
	uint32_t len;
	uint32_t hash;
	uint64_t nr;
};

/* Open addressing, a power of two of slots, at most three quarters used. */
struct table {
	struct entry *slots;
	size_t nr_slots;
	size_t nr_used;
};

struct worker {
	pthread_t thread;
	off_t begin, end; /* owns the words that start in here */

	unsigned char *buffer; /* CARRY_BYTES, then a block */
	bool skipping;	       /* in a word that belongs to the slice before */
	bool in_word;
	size_t carry_len; /* bytes of the open word, just before the block */
	uint32_t hash;	  /* of the open word so far */

	struct table table;
	unsigned char *arena, *arena_end;

	uint64_t nr_lines, nr_words, nr_bytes;
	const char *failed; /* what went wrong, or NULL */
	int error;
};

static struct worker workers[MAX_THREADS];
static pthread_barrier_t gate;
static unsigned char is_word[256];
static int input_fd;
static off_t input_bytes;

static void *map(size_t nr_bytes)
{
	void *p = mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static bool fail(struct worker *w, const char *what, int error)
{
	w->failed = what;
	w->error = error;
	return false;
}

static bool table_init(struct table *t, size_t nr_slots)
{
	t->slots = map(nr_slots * sizeof(*t->slots));
	t->nr_slots = nr_slots;
	t->nr_used = 0;
	return t->slots != NULL;
}

/* Returns the slot of the word, or the free slot where it belongs. */
static struct entry *table_find(const struct table *t, const unsigned char *word, uint32_t len,
				uint32_t hash)
{
	size_t mask = t->nr_slots - 1;
	size_t i = (hash ^ hash >> 15) & mask;

	for (;; i = (i + 1) & mask) {
		struct entry *e = &t->slots[i];

		if (!e->word)
			return e;
		if (e->hash == hash && e->len == len && !memcmp(e->word, word, len))
			return e;
	}
}

static bool table_grow(struct table *t)
{
	struct table bigger;

	if (!table_init(&bigger, t->nr_slots * 2))
		return false;
	for (size_t i = 0; i < t->nr_slots; i++) {
		struct entry *e = &t->slots[i];

		if (e->word)
			*table_find(&bigger, e->word, e->len, e->hash) = *e;
	}
	bigger.nr_used = t->nr_used;
	munmap(t->slots, t->nr_slots * sizeof(*t->slots));
	*t = bigger;
	return true;
}

/* Counts the word @nr times. The word must stay in place, unless @copy is set. */
static bool count_word(struct worker *w, const unsigned char *word, uint32_t len, uint32_t hash,
		       uint64_t nr, bool copy)
{
	struct entry *e = table_find(&w->table, word, len, hash);

	if (e->word) {
		e->nr += nr;
		return true;
	}
	if (copy) {
		if (w->arena_end - w->arena < len) {
			w->arena = map(ARENA_BYTES);
			if (!w->arena)
				return fail(w, "mmap", errno);
			w->arena_end = w->arena + ARENA_BYTES;
		}
		word = memcpy(w->arena, word, len);
		w->arena += len;
	}
	*e = (struct entry){ .word = word, .len = len, .hash = hash, .nr = nr };
	if (++w->table.nr_used * 4 > w->table.nr_slots * 3 && !table_grow(&w->table))
		return fail(w, "mmap", errno);
	return true;
}

/*
 * Counts a block of @len bytes at file offset @pos. A word that is still open at the end of the
 * block is moved in front of it, where the next block continues it.
 */
static bool count_block(struct worker *w, off_t pos, size_t len)
{
	const unsigned char *p = w->buffer + CARRY_BYTES, *stop = p + len, *edge = stop;
	const unsigned char *start = p - w->carry_len;
	bool last = pos + (off_t)len == input_bytes;
	uint64_t nr_lines = 0;
	uint32_t hash = w->hash;

	if (pos + (off_t)len > w->end)
		edge = w->end > pos ? p + (w->end - pos) : p;
	if (pos < w->begin) /* the byte before the slice says where its first word starts */
		w->skipping = is_word[*p++];
	while (w->skipping && p < stop) {
		if (is_word[*p])
			p++;
		else
			w->skipping = false;
	}

	while (!w->skipping) {
		if (!w->in_word) {
			for (; p < edge && !is_word[*p]; p++)
				nr_lines += *p == '\n';
			if (p >= edge)
				break;
			start = p;
			hash = HASH_BASIS;
			w->in_word = true;
		}
		for (; p < stop && is_word[*p]; p++)
			hash = (hash ^ *p) * HASH_PRIME;
		if (p == stop && !last)
			break;
		if (!count_word(w, start, p - start, hash, 1, true))
			return false;
		w->nr_words++;
		w->in_word = false;
	}

	w->nr_lines += nr_lines;
	w->carry_len = w->in_word ? stop - start : 0;
	w->hash = hash;
	if (w->carry_len > CARRY_BYTES)
		return fail(w, "a word is longer than 64 KiB", 0);
	memmove(w->buffer + CARRY_BYTES - w->carry_len, start, w->carry_len);
	return true;
}

static bool count_slice(struct worker *w)
{
	off_t pos = w->begin ? w->begin - 1 : 0;

	while (pos < input_bytes && (pos < w->end || w->in_word)) {
		off_t want = (pos < w->end ? w->end - pos : 0) + TAIL_BYTES;
		ssize_t got;

		if (want > BLOCK_BYTES)
			want = BLOCK_BYTES;
		if (want > input_bytes - pos)
			want = input_bytes - pos;
		got = pread(input_fd, w->buffer + CARRY_BYTES, want, pos);
		if (got < 0)
			return fail(w, "pread", errno);
		if (!got)
			return fail(w, "the file became shorter", 0);
		if (!count_block(w, pos, got))
			return false;
		pos += got;
	}
	w->nr_bytes = w->end - w->begin;
	return true;
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;

	pthread_barrier_wait(&gate);
	w->buffer = map(CARRY_BYTES + BLOCK_BYTES);
	if (!w->buffer || !table_init(&w->table, FIRST_SLOTS)) {
		fail(w, "mmap", errno);
		return NULL;
	}
	count_slice(w);
	munmap(w->buffer, CARRY_BYTES + BLOCK_BYTES);
	return NULL;
}

/* Adds @from to @to; words stay in the arenas of the thread that met them first. */
static bool merge(struct worker *to, const struct worker *from)
{
	to->nr_lines += from->nr_lines;
	to->nr_words += from->nr_words;
	to->nr_bytes += from->nr_bytes;
	for (size_t i = 0; i < from->table.nr_slots; i++) {
		const struct entry *e = &from->table.slots[i];

		if (e->word && !count_word(to, e->word, e->len, e->hash, e->nr, false))
			return false;
	}
	return true;
}

/*
 * More frequent words come first; equally frequent ones in the order of their bytes, so that the
 * output is always the same.
 */
static bool entry_before(const struct entry *a, const struct entry *b)
{
	uint32_t len = a->len < b->len ? a->len : b->len;
	int order;

	if (a->nr != b->nr)
		return a->nr > b->nr;
	order = memcmp(a->word, b->word, len);
	return order ? order < 0 : a->len < b->len;
}

static void print_result(const struct worker *w, int nr_threads)
{
	const struct entry *top[NR_TOP];
	char text[4096];
	int nr_top = 0, len;

	for (size_t i = 0; i < w->table.nr_slots; i++) {
		const struct entry *e = &w->table.slots[i];
		int at = nr_top;

		if (!e->word)
			continue;
		while (at > 0 && entry_before(e, top[at - 1]))
			at--;
		if (at == NR_TOP)
			continue;
		if (nr_top < NR_TOP)
			nr_top++;
		memmove(&top[at + 1], &top[at], (nr_top - at - 1) * sizeof(top[0]));
		top[at] = e;
	}

	len = snprintf(text, sizeof(text),
		       "threads  %10d\nlines    %10llu\nwords    %10llu\nbytes    %10llu\n"
		       "distinct %10zu\n",
		       nr_threads, (unsigned long long)w->nr_lines, (unsigned long long)w->nr_words,
		       (unsigned long long)w->nr_bytes, w->table.nr_used);
	for (int i = 0; i < nr_top; i++)
		len += snprintf(text + len, sizeof(text) - len, "%10llu %.*s\n",
				(unsigned long long)top[i]->nr,
				top[i]->len < 128 ? (int)top[i]->len : 128, top[i]->word);
	if (write(STDOUT_FILENO, text, len) != len)
		_exit(1);
}

static _Noreturn void die(const char *what, const char *why)
{
	char text[512];
	int len = snprintf(text, sizeof(text), "wordcount: %s%s%s\n", what, why ? ": " : "",
			   why ? why : "");

	if (len >= (int)sizeof(text))
		len = sizeof(text) - 1;
	(void)!write(STDERR_FILENO, text, len);
	_exit(why ? 1 : 2);
}

static void open_input(const char *name)
{
	struct stat st;

	input_fd = open(name, O_RDONLY);
	if (input_fd < 0 || fstat(input_fd, &st))
		die(name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		die(name, "not a regular file");
	input_bytes = st.st_size;
	for (int c = 0; c < 256; c++)
		is_word[c] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || c == '_' || c > 127;
}

static void run_workers(int nr_threads)
{
	pthread_attr_t attr;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_barrier_init(&gate, NULL, nr_threads);
	for (int i = 0; i < nr_threads; i++) {
		workers[i].begin = input_bytes * i / nr_threads;
		workers[i].end = input_bytes * (i + 1) / nr_threads;
	}
	for (int i = 1; i < nr_threads; i++) {
		error = pthread_create(&workers[i].thread, &attr, worker_run, &workers[i]);
		if (error)
			die("cannot create a thread", strerror(error));
	}
	worker_run(&workers[0]);
	for (int i = 1; i < nr_threads; i++)
		pthread_join(workers[i].thread, NULL);
}

int main(int argc, char **argv)
{
	static const char usage[] = "usage: wordcount -t THREADS FILE (THREADS from 1 to 256)";
	char *end;
	long nr_threads;

	if (argc != 4 || strcmp(argv[1], "-t"))
		die(usage, NULL);
	nr_threads = strtol(argv[2], &end, 10);
	if (end == argv[2] || *end || nr_threads < 1 || nr_threads > MAX_THREADS)
		die(usage, NULL);

	open_input(argv[3]);
	run_workers(nr_threads);
	for (int i = 0; i < nr_threads; i++) {
		struct worker *w = &workers[i];

		if (!w->failed && i)
			merge(&workers[0], w);
		if (w->failed || workers[0].failed) {
			w = w->failed ? w : &workers[0];
			die(w->failed, w->error ? strerror(w->error) : argv[3]);
		}
	}
	print_result(&workers[0], nr_threads);
	return 0;
}
