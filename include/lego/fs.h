/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_FS_H
#define LEGO_FS_H

/*
 * Files: a path leads to an inode (ramfs or a device), open makes a file (position, flags), a
 * process has a table of them. Process context; all may sleep.
 */

#include <lego/atomic.h>
#include <lego/kernel.h>
#include <lego/list.h>
#include <lego/mutex.h>

struct page;
struct file;
struct inode;

struct file_ops {
	/*
	 * Kernel buffers; the system calls copy to and from user memory around them. Bytes done
	 * or -errno.
	 */
	ssize_t (*read)(struct file *file, void *buf, size_t n, u64 pos);
	ssize_t (*write)(struct file *file, const void *buf, size_t n, u64 pos);
	long (*ioctl)(struct file *file, unsigned int cmd, unsigned long arg);
};

struct file {
	struct inode *inode;
	const struct file_ops *ops; /* of a device; NULL for regular files and directories */
	u32 flags;		    /* O_*, without what only matters to open() */
	atomic_t refs;
	struct mutex pos_lock; /* guards pos; not taken for streams */
	u64 pos;
};

#define FILE_MAX_FDS 1024

/* Linux's values. */
#define O_ACCMODE   00000003
#define O_RDONLY    00000000
#define O_WRONLY    00000001
#define O_RDWR	    00000002
#define O_CREAT	    00000100
#define O_EXCL	    00000200
#define O_TRUNC	    00001000
#define O_APPEND    00002000
#define O_NONBLOCK  00004000
#define O_DIRECTORY 00200000
#define O_NOFOLLOW  00400000
#define O_CLOEXEC   02000000

#define S_IFMT	0170000
#define S_IFREG 0100000
#define S_IFDIR 0040000
#define S_IFCHR 0020000
#define S_IFLNK 0120000

/* O_RDONLY, O_WRONLY and O_RDWR are 0, 1 and 2; with 3, as with Linux, only ioctl() is allowed. */
static inline bool file_may_read(const struct file *file)
{
	return (file->flags + 1) & 1;
}
static inline bool file_may_write(const struct file *file)
{
	return (file->flags + 1) & 2;
}

struct files; /* the process's descriptor table */

void fs_init(void);

/*
 * Make a file, and its directory if need be, whose text read() writes (at most 4096 bytes; returns
 * its length) and whose writes, of at most 255 bytes without NUL, are handed to write() as a string
 * (returns 0 or a negative errno). Never removed.
 */
int fs_add_text_file(const char *directory, const char *name,
		     ssize_t (*read)(char *buf, size_t size), ssize_t (*write)(const char *text));

/*
 * Unpack a newc cpio archive into the ramfs. 0 or negative errno; logs what is wrong with a bad
 * archive.
 */
int initramfs_unpack(const void *archive, size_t size_bytes);

/* Open for the kernel; relative to the process's working directory. ERR_PTR on failure. */
struct file *file_open(const char *path, u32 flags, u32 mode);
void file_get(struct file *file);
void file_put(struct file *file);
/* Regular files only. Bytes read (short at the end of file) or negative errno. */
ssize_t file_read_at(struct file *file, void *buf, size_t n, u64 pos);
u64 file_size_bytes(const struct file *file);
u32 file_mode(const struct file *file); /* S_IF* and permission bits */
bool file_is_regular(const struct file *file);

/*
 * The page of a regular file's content at index (bytes index * 4096 ...), with a reference for
 * the caller; it is the file's own page, to be mapped read-only or copied. NULL beyond the end or
 * in a hole that cannot be filled (out of memory).
 */
struct page *file_get_page(struct file *file, u64 index);

struct files *files_alloc(void); /* 0, 1 and 2 open on the console; NULL when out of memory */
struct files *files_get(struct files *files);
void files_put(struct files *files); /* the last reference closes all */
void files_close_on_exec(struct files *files);

/* The current process's open file, with a reference for the caller; NULL when fd is not open. */
struct file *fd_get(int fd);

#endif
