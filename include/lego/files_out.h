/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_FILES_OUT_H
#define LEGO_FILES_OUT_H

/*
 * Files that leave the guest with its memory. At the end of a run, the kernel writes a list of the
 * files that the boot parameters get= and host= name, and where in memory their pages are. QEMU
 * keeps the memory in a file of the host, where scripts/guest_files.py finds `files_out` by its
 * symbol, and copies the files. All numbers are little-endian.
 *
 * During the run, the list has the files below host= that were closed after writing, or moved
 * there. It grows until it has FILES_OUT_LIVE_BYTES, then it begins again. The host looks at it a
 * few times a second. The guest does not wait for the host: a list or a file that changes while it
 * is copied has a wrong checksum, and the host drops that copy.
 *
 * The list is text in pages, each of which begins with the physical address of the next one (0: the
 * last one). Its lines are:
 *
 *	file <name> <permissions, octal> <bytes>
 *	data <index of the first page> <page frame> <number of pages>	(a run; others are holes)
 *	sum <CRC-32 of the bytes in data, in this order; 8 hexadecimal digits>
 *	left <name> <why>	a link, a device and so on
 *	none <name> <errno>	named by get=, but not there
 *
 * A name is a path from / on; bytes other than letters, digits and _.,:=@~+- are %XX.
 */

#include <lego/types.h>

struct file;
struct inode;
struct mount;

#define FILES_OUT_MAGIC	  "LEGOFILE" /* 8 bytes, without the NUL */
#define FILES_OUT_VERSION 2

#define FILES_OUT_LIVE_BYTES (256 << 10) /* of the list, during the run */

enum files_out_state {
	FILES_OUT_NONE,
	FILES_OUT_WRITING, /* also when there was no memory for the list, or the kernel died */
	FILES_OUT_COMPLETE,
	FILES_OUT_LIVE, /* the run goes on */
};

struct files_out {
	char magic[8];
	u32 version;
	u32 state; /* enum files_out_state */
	u64 bytes; /* of the list */
	u64 first; /* physical address of its first page */
	u32 crc32; /* of the list */
};

/* Finds the directory of host=. Called before init starts. */
void files_out_init(void);

/*
 * Adds a file that was moved, or a directory with all below it, to the list of the running machine,
 * if it is below host=. Reads all of the content, for the checksum. tree_lock is held.
 */
void files_out_add(struct mount *mount, struct inode *entry);

/*
 * Gives up a descriptor's reference to a file that was open for writing. The last one adds the
 * file, whose content is read without tree_lock. Process context.
 */
void files_out_close(struct file *file);

/*
 * Writes the list of get= and host=, if there is one of them. Called when the machine is about to
 * be switched off. Process context.
 */
void files_out_write(void);

#endif
