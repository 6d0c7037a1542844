/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_PROCFS_H
#define LEGO_PROCFS_H

/* /proc: files whose text is made when they are read. */

#include <lego/text.h>

/*
 * Adds /proc/<path>, and the directories on the way to it. show() prints the whole text and gets
 * arg; it runs whenever the file is read from position 0. write() gets the bytes of one write() as
 * a string: at most 4095, without NUL. NULL for show or write: the file cannot be read or written.
 * Both run in process context, may sleep, and return 0 or a negative errno. Only root may open the
 * file: such files show kernel addresses, or command the kernel.
 *
 * accepts has the words that can be written ("on|off|reset"): if write() returns -EINVAL, the log
 * names the file, the text and accepts. The strings are not copied, and a file is never removed, so
 * they must stay. Process context, after fs_init(). Returns 0 or a negative errno.
 */
int proc_add_file(const char *path, const char *accepts,
		  int (*show)(struct text *text, const void *arg), const void *arg,
		  int (*write)(const char *text));

/*
 * The same for a file that one handle at a time may have open: others get -EBUSY. close() is called
 * when that handle is closed, also because its process was killed. Process context; may sleep.
 */
int proc_add_exclusive_file(const char *path, const char *accepts,
			    int (*show)(struct text *text, const void *arg), const void *arg,
			    int (*write)(const char *text), void (*close)(void));

struct process;

/*
 * Removes the directory of a process that was removed from the tree of processes. Process context.
 */
void proc_forget_process(const struct process *proc);

/* Returns the memory of the entries of that directory. Process context; takes tree_lock. */
u64 proc_process_held_bytes(const struct process *proc);

/*
 * Adds /proc/<pid>/<name> for all processes, as proc_add_file() does. show() and write() also get
 * the process whose directory it is. The file is for that process's user, and for root. Called
 * before the first lookup in /proc.
 */
int proc_add_process_file(const char *name, const char *accepts,
			  int (*show)(struct text *text, struct process *proc),
			  int (*write)(const char *text, struct process *proc));

/*
 * A file of /sys/kernel/tracing. show(), write(), accepts and arg are as in proc_add_file(), but
 * write() gets arg, too. truncate() is called when the file is opened to be written anew, and
 * release() whenever a handle that may write is closed. Both are in process context and may sleep.
 * A file with next() is a stream: next() prints what there is by now, if any, and returns whether
 * there may be more. waits: the reader will wait for it, and else gets -EAGAIN. Reads end if there
 * is none and the handle has been read from before. ready() returns whether there is something now,
 * for poll().
 */
struct tracefs_file {
	const char *path; /* below /sys/kernel/tracing */
	const char *accepts;
	int (*show)(struct text *text, const void *arg);
	int (*write)(const char *text, const void *arg);
	int (*truncate)(const void *arg);
	void (*release)(const void *arg);
	bool (*next)(struct text *text, const void *arg, bool waits);
	bool (*ready)(const void *arg);
	const void *arg;
};

/* Adds it, and the directories on the way to it. Contexts, errors and strings as above. */
int tracefs_add_file(const struct tracefs_file *file);

/*
 * Adds a directory that fill() fills when it is used: with the entry that is looked for or, if name
 * is NULL, with all. fill() calls tracefs_fill_file(), with tree_lock held.
 */
int tracefs_add_directory(const char *path, void (*fill)(const char *name));
int tracefs_fill_file(const struct tracefs_file *file);

#endif
