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

struct credentials;
struct page;
struct file;
struct inode;
struct iov_iter;
struct poll_table;

struct file_ops {
	/*
	 * Kernel buffers; the system calls copy to and from user memory around them. Bytes done
	 * or -errno.
	 */
	ssize_t (*read)(struct file *file, void *buf, size_t n, u64 pos);
	ssize_t (*write)(struct file *file, const void *buf, size_t n, u64 pos);
	/*
	 * As ->write of a whole page, of which the file may keep a reference; nobody changes it any
	 * more. And a whole page out of a stream, with the reference, if there is one right now.
	 * NULL: not offered.
	 */
	ssize_t (*write_page)(struct file *file, struct page *page);
	struct page *(*take_page)(struct file *file);
	/*
	 * read(2) and write(2) without a buffer between, of a file that has no position. NULL: by
	 * ->read and ->write.
	 */
	ssize_t (*read_user)(struct file *file, struct iov_iter *iter);
	ssize_t (*write_user)(struct file *file, struct iov_iter *iter);
	/*
	 * Of a stream: what else there is right now, 0 when nothing; never waits. NULL: a read(2)
	 * is one call of ->read with at most a page.
	 */
	ssize_t (*read_more)(struct file *file, void *buf, size_t n);
	long (*ioctl)(struct file *file, unsigned int cmd, unsigned long arg);
	/*
	 * What could be done now without waiting (POLLIN ...: <lego/poll.h>); when table is given,
	 * after poll_wait() on every queue that is woken when that changes. NULL: always ready.
	 */
	u32 (*poll)(struct file *file, struct poll_table *table);
	/*
	 * The file was opened: may fill file->private, refuse with a negative errno. NULL: nothing
	 * to do.
	 */
	int (*open)(struct file *file);
	/* The last reference is gone. */
	void (*release)(struct file *file);
	/* A regular file was opened to be written anew (O_TRUNC). NULL: nothing to do. */
	int (*truncate)(struct file *file);
	/* Reads wait, and have no position, as those of a pipe; for a file that is no device. */
	bool is_stream;
	/* Reads and writes move whole records, so that none fits into 0 bytes: -EINVAL. */
	bool has_records;
	/* How much memory it keeps, about. Called under a spinlock. NULL: none. */
	u64 (*held_bytes)(const struct file *file);
};

struct file {
	struct inode *inode;
	struct mount *mount;	    /* NULL: of a file without a place */
	const struct file_ops *ops; /* of a device; NULL for regular files and directories */
	u32 flags;		    /* O_*, without what only matters to open() */
	atomic_t refs;
	bool writes;	       /* it is counted in inode->nr_writers */
	u32 counted;	       /* by that count: see file_held_bytes() */
	u32 nr_locks;	       /* set through it, that are held */
	struct mutex pos_lock; /* guards pos; not taken for streams */
	u64 pos;
	void *private;	       /* the ops' own */
	struct watch *watches; /* by epolls: see epoll.c */
};

/*
 * The most that RLIMIT_NOFILE can be raised to (nr_open), and what it is at first: soft and hard.
 * Linux's.
 */
#define FILE_MAX_FDS	(1 << 20)
#define FILE_SOFT_LIMIT 1024
#define FILE_HARD_LIMIT 4096

/* Linux's values. */
#define O_ACCMODE      00000003
#define O_RDONLY       00000000
#define O_WRONLY       00000001
#define O_RDWR	       00000002
#define O_CREAT	       00000100
#define O_EXCL	       00000200
#define O_NOCTTY       00000400 /* only seen by file_ops.open */
#define O_TRUNC	       00001000
#define O_APPEND       00002000
#define O_NONBLOCK     00004000
#define O_LARGEFILE    00100000
#define O_DIRECTORY    00200000
#define O_NOFOLLOW     00400000
#define O_CLOEXEC      02000000
#define O_PATH	       010000000
#define O_TMPFILE_ONLY 020000000 /* O_TMPFILE of programs has O_DIRECTORY, too */

#define S_IFMT	 0170000
#define S_IFREG	 0100000
#define S_IFDIR	 0040000
#define S_IFIFO	 0010000
#define S_IFBLK	 0060000
#define S_IFSOCK 0140000
#define S_IFCHR	 0020000
#define S_IFLNK	 0120000

/* O_RDONLY, O_WRONLY and O_RDWR are 0, 1 and 2; with 3, as with Linux, only ioctl() is allowed. */
static inline bool file_may_read(const struct file *file)
{
	return !(file->flags & O_PATH) && (file->flags + 1) & 1;
}
static inline bool file_may_write(const struct file *file)
{
	return !(file->flags & O_PATH) && (file->flags + 1) & 2;
}

struct files;	/* descriptor table */
struct fs_info; /* working directory and umask */

void fs_init(void);

/*
 * Unpack a newc cpio archive into the ramfs. 0 or negative errno; logs what is wrong with a bad
 * archive. used, if not NULL, is told as it goes on how much of the archive, from its start, is not
 * looked at again.
 */
int initramfs_unpack(const void *archive, size_t size_bytes, void (*used)(size_t bytes));

/* Open for the kernel; relative to the process's working directory. ERR_PTR on failure. */
struct file *file_open(const char *path, u32 flags, u32 mode);
/*
 * A regular file of zeros that is in no directory, open for reading and writing: shared memory. Its
 * path is the name. ERR_PTR on failure.
 */
struct file *file_create_unnamed(const char *name, u32 mode, u64 size_bytes);
void file_get(struct file *file);
void file_put(struct file *file);
/* Regular files only. Bytes read (short at the end of file) or negative errno. */
ssize_t file_read_at(struct file *file, void *buf, size_t n, u64 pos);
u64 file_size_bytes(const struct file *file);
u32 file_mode(const struct file *file);	       /* S_IF* and permission bits */
int file_may_execute(const struct file *file); /* the current process: 0 or -EACCES */
/*
 * While a file is executed, nobody opens it for writing. 0, or -ETXTBSY if somebody has. Each call
 * that returned 0 is paired with one of file_allow_writing().
 */
int file_deny_writing(struct file *file);
void file_allow_writing(struct file *file);
bool file_is_noexec(const struct file *file); /* on a mount without programs */
/* Nobody writes to it any more, but through the shared mappings that may write now. */
bool file_is_write_sealed(const struct file *file);
/*
 * Gives creds the owner and the group of a program that is set-user-ID and set-group-ID, unless its
 * mount is nosuid.
 */
void file_apply_set_ids(const struct file *file, struct credentials *creds);
bool file_is_regular(const struct file *file);

/*
 * What can be mapped: a regular file whose pages are its content, or /dev/zero, whose mappings are
 * anonymous memory.
 */
bool file_has_pages(const struct file *file);
bool file_is_zero_device(const struct file *file);

/*
 * The page of a regular file's content at index (bytes index * 4096 ...), with a reference for
 * the caller; it is the file's own page, to be mapped read-only or copied. ERR_PTR: -ENXIO beyond
 * the end; in a hole that cannot be filled -ENOMEM, or -ENOSPC when waiting for memory is no use.
 */
struct page *file_get_page(struct file *file, u64 index);
/* Whether a page is the file's own at the index. */
bool file_has_page(const struct file *file, u64 index, const struct page *page);

/*
 * A table of descriptors: of one process, or shared by several that clone(CLONE_FILES) made. All
 * take or return references. NULL when out of memory.
 */
struct files *files_alloc(void);	       /* 0, 1 and 2 open on the console */
struct files *files_copy(struct files *files); /* the same files, a table of its own: fork */
struct files *files_get(struct files *files);
void files_put(struct files *files); /* the last reference closes all */
void files_close_on_exec(struct files *files);
/* How many descriptors there is room for, in steps as Linux's table grows. */
unsigned int files_nr_slots(struct files *files);

/*
 * For the choice of a process to kill (oom.c): memory, about, that is free once nobody has the file
 * open or mapped. So that is not the content of a file with a name. A file counts once in each
 * count: the number is the caller's choice, and the caller keeps others from counting. Any lock may
 * be held.
 */
u64 file_held_bytes(struct file *file, u32 count);
u64 files_held_bytes(struct files *files, u32 count); /* of all of a table; takes its lock */
bool file_has_no_name(const struct file *file);

/*
 * The working directory and the umask: of one process, or shared (CLONE_FS). As with struct files.
 */
struct fs_info *fs_info_alloc(void); /* the root directory, 022 */
struct fs_info *fs_info_copy(struct fs_info *fs);
struct fs_info *fs_info_get(struct fs_info *fs);
void fs_info_put(struct fs_info *fs);

/*
 * The absolute path of an open file, or "(unreachable)...": a pointer into buf, never NULL. Process
 * context, may sleep.
 */
const char *file_path(struct file *file, char *buf, size_t size);

/*
 * The current process's open file, with a reference for the caller; NULL when fd is not open, or as
 * a path only (O_PATH).
 */
struct file *fd_get(int fd);

#endif
