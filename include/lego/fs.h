/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_FS_H
#define LEGO_FS_H

/*
 * Files. A path leads to an inode (of a ramfs or a device); opening it makes a struct file
 * (position, flags), and each process has a table of open files. Process context; all functions may
 * sleep.
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
	 * write_page() works like ->write for a whole page. The file may keep a reference to it,
	 * because it is not changed any more. take_page() takes a whole page out of a stream, with
	 * the reference, if there is one now. NULL: not supported.
	 */
	ssize_t (*write_page)(struct file *file, struct page *page);
	struct page *(*take_page)(struct file *file);
	/*
	 * Read and write the memory of an iterator directly, for a file without a position. NULL:
	 * ->read and ->write are used.
	 */
	ssize_t (*read_user)(struct file *file, struct iov_iter *iter);
	ssize_t (*write_user)(struct file *file, struct iov_iter *iter);
	/*
	 * For a stream: reads more bytes that are there now, or returns 0; never waits. NULL: a
	 * read(2) is one call of ->read with at most a page.
	 */
	ssize_t (*read_more)(struct file *file, void *buf, size_t n);
	long (*ioctl)(struct file *file, unsigned int cmd, unsigned long arg);
	/*
	 * Returns the events that there are now (POLLIN ...: <lego/poll.h>). If table is given,
	 * first calls poll_wait() for every queue that is woken when that changes. NULL: always
	 * ready.
	 */
	u32 (*poll)(struct file *file, struct poll_table *table);
	/*
	 * Called when the file is opened. May set file->private, or refuse with a negative errno.
	 * NULL: nothing to do.
	 */
	int (*open)(struct file *file);
	/* Called when the last reference is gone. */
	void (*release)(struct file *file);
	/* Called when a regular file is opened with O_TRUNC. NULL: nothing to do. */
	int (*truncate)(struct file *file);
	/* Reads wait and have no position, as for a pipe. Not used for devices. */
	bool is_stream;
	bool stays_at_start; /* lseek() always goes to position 0: /dev/null, zero and full */
	/* Reads and writes move whole records, so that none fits into 0 bytes: -EINVAL. */
	bool has_records;
	bool no_splice; /* splice() and sendfile() refuse the file, as Linux's */
	/*
	 * Returns roughly how much memory the file uses. Called with a spinlock held. NULL: none.
	 */
	u64 (*held_bytes)(const struct file *file);
};

struct file {
	struct inode *inode;
	struct mount *mount;	    /* NULL: of a file without a place */
	const struct file_ops *ops; /* of a device; NULL for regular files and directories */
	u32 flags;		    /* O_*, without the flags that only open() uses */
	atomic_t refs;
	bool writes; /* the file is counted in inode->nr_writers */
	/* Number of the last count that included it: see file_held_bytes(). */
	u32 counted;
	u32 nr_locks;	       /* locks held that were set through this file */
	struct mutex pos_lock; /* guards pos; not taken for streams */
	u64 pos;
	void *private;	       /* the ops' own */
	struct watch *watches; /* watches of epolls on this file: see epoll.c */
};

/* Linux's values: the maximum of RLIMIT_NOFILE (nr_open), and its first soft and hard limits. */
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

/* O_RDONLY, O_WRONLY and O_RDWR are 0, 1 and 2; with 3, only ioctl() is allowed, as in Linux. */
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
 * Unpacks a newc cpio archive into the ramfs. Returns 0 or a negative errno, and logs what is wrong
 * with a bad archive. If used is not NULL, calls it repeatedly with how much of the archive, from
 * its start, is no longer needed.
 */
int initramfs_unpack(const void *archive, size_t size_bytes, void (*used)(size_t bytes));

/* Opens a file for the kernel, relative to the process's working directory. ERR_PTR on failure. */
struct file *file_open(const char *path, u32 flags, u32 mode);
/*
 * Makes a regular file of zeros that is in no directory, open for reading and writing, for shared
 * memory. Its path is the name. ERR_PTR on failure.
 */
struct file *file_create_unnamed(const char *name, u32 mode, u64 size_bytes);
void file_get(struct file *file);
void file_put(struct file *file);
/* Reads a regular file. Returns the bytes read, fewer at its end, or a negative errno. */
ssize_t file_read_at(struct file *file, void *buf, size_t n, u64 pos);
u64 file_size_bytes(const struct file *file);
u64 file_changed_ns(const struct file *file); /* since 1970 */
/*
 * Returns a number that only this content of this file has, or 0 if somebody may be changing the
 * content. A caller that keeps what it reads asks for the number first.
 */
u64 file_version(const struct file *file);
u32 file_mode(const struct file *file);		/* S_IF* and permission bits */
int file_may_execute(const struct file *file);	/* the current process: 0 or -EACCES */
bool file_is_readable(const struct file *file); /* its mode lets the current process read it */
/*
 * Prevents opening the file for writing while it is executed. Returns 0, or -ETXTBSY if it is open
 * for writing. Each call that returned 0 is paired with one of file_allow_writing().
 */
int file_deny_writing(struct file *file);
void file_allow_writing(struct file *file);
bool file_is_noexec(const struct file *file); /* on a mount with noexec */
/*
 * Returns true if no process can write to the file any more, except through present shared
 * mappings.
 */
bool file_is_write_sealed(const struct file *file);
/*
 * Sets the user and group in creds to those of a set-user-ID or set-group-ID program, unless its
 * mount is nosuid.
 */
void file_apply_set_ids(const struct file *file, struct credentials *creds);
bool file_is_regular(const struct file *file);

/*
 * Say whether the file can be mapped: a regular file, whose pages are its content; or /dev/zero,
 * whose mappings are anonymous memory.
 */
bool file_has_pages(const struct file *file);
bool file_is_zero_device(const struct file *file);
bool file_is_full_device(const struct file *file);

/*
 * Returns the page of a regular file's content at index (bytes index * 4096 ...), with a reference
 * for the caller. It is the file's own page, to be mapped read-only or copied. ERR_PTR: -ENXIO
 * beyond the end; for a hole that cannot be filled, -ENOMEM, or -ENOSPC if waiting for memory would
 * not help.
 */
struct page *file_get_page(struct file *file, u64 index);
/* Returns true if page is the file's own page at the index. */
bool file_has_page(const struct file *file, u64 index, const struct page *page);

/*
 * Descriptor tables: of one process, or shared by several made by clone(CLONE_FILES). All functions
 * take or return references. NULL: out of memory.
 */
struct files *files_alloc(void); /* for init: 0 by stdin=, else 0, 1 and 2 on the console */
struct files *files_copy(struct files *files); /* for fork: another table with the same files */
struct files *files_get(struct files *files);
void files_put(struct files *files); /* the last reference closes all */
void files_close_on_exec(struct files *files);
/*
 * Returns how many descriptors the table has room for, in the steps in which Linux's table grows.
 */
unsigned int files_nr_slots(struct files *files);

/*
 * For oom.c: returns roughly the memory that is freed when the file is no longer open or mapped.
 * This excludes the content of a file with a name. Within one count a file counts only once. The
 * caller chooses the number of the count, and prevents other counts meanwhile. Any lock may be
 * held.
 */
u64 file_held_bytes(struct file *file, u32 count);
/* Returns the sum of file_held_bytes() for all files in a table. Takes the lock of the table. */
u64 files_held_bytes(struct files *files, u32 count);
bool file_has_no_name(const struct file *file);

/*
 * The working directory and the umask, of one process or shared (CLONE_FS). References as for
 * struct files.
 */
struct fs_info *fs_info_alloc(void); /* the root directory, 022 */
struct fs_info *fs_info_copy(struct fs_info *fs);
struct fs_info *fs_info_get(struct fs_info *fs);
void fs_info_put(struct fs_info *fs);

/*
 * Returns the absolute path of an open file, or "(unreachable)...", as a pointer into buf, never
 * NULL. Process context, may sleep.
 */
const char *file_path(struct file *file, char *buf, size_t size);

/*
 * Returns the current process's open file, with a reference for the caller. NULL: fd is not open,
 * or open as a path only (O_PATH).
 */
struct file *fd_get(int fd);

#endif
