/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_PROCFS_H
#define LEGO_PROCFS_H

/* /proc: files whose text is made when they are read. */

#include <lego/text.h>

/*
 * Add /proc/<path>, whose directories are made as needed. show() prints the text, from the start
 * whenever it is read from position 0; write() is handed what one write() wrote, at most 4095 bytes
 * without NUL, as a string. NULL: it cannot be read, written. Both run in process context, may
 * sleep and return 0 or a negative errno. Never removed. Process context, after fs_init(). 0 or a
 * negative errno.
 */
int proc_add_file(const char *path, int (*show)(struct text *text), int (*write)(const char *text));

struct process;

/*
 * Add /proc/<pid>/<name> for all processes; as above, with the process whose directory it is.
 * Before the first look into /proc. name stays the caller's.
 */
int proc_add_process_file(const char *name, int (*show)(struct text *text, struct process *proc),
			  int (*write)(const char *text, struct process *proc));

#endif
