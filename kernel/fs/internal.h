/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_INTERNAL_H
#define FS_INTERNAL_H

/*
 * What the files of kernel/fs/ share. There is one tree, of ramfs inodes; an inode has one name
 * (no hard links), so name and parent are in the inode itself.
 *
 * Locks, outer first: file->pos_lock, inode->write_lock, tree_lock (a mutex; no user memory is
 * touched under it), inode->data_lock (a spinlock; copying happens outside of it).
 */

#include <lego/fs.h>
#include <lego/list.h>
#include <lego/spinlock.h>

#define PATH_MAX 4096 /* with the NUL */
#define NAME_MAX 255

#define S_ISREG(mode) (((mode)&S_IFMT) == S_IFREG)
#define S_ISDIR(mode) (((mode)&S_IFMT) == S_IFDIR)
#define S_ISCHR(mode) (((mode)&S_IFMT) == S_IFCHR)
#define S_ISLNK(mode) (((mode)&S_IFMT) == S_IFLNK)

#define MAKE_DEVICE(major, minor) ((u32)(major) << 8 | (u32)(minor))

struct device {
	u32 number; /* MAKE_DEVICE() */
	const char *name;
	bool stream; /* no position: lseek and pread fail */
	const struct file_ops *ops;
};

struct inode {
	u64 number;
	u32 mode;      /* type, never changes, and permission bits */
	atomic_t refs; /* one for its name in the tree, one for each user */
	u64 mtime_ns;  /* clock_realtime_ns() */

	/* Guarded by tree_lock. */
	char *name;
	struct inode *parent; /* of the root: itself; holds a reference, removed or not */
	bool removed;	      /* no longer in the tree: only used by who has it open */
	struct list_head sibling;
	struct list_head children; /* directory: in order of their numbers */

	const struct device *device; /* character device */
	char *target;		     /* symbolic link */

	/* Regular file. */
	struct mutex write_lock; /* one writer at a time */
	spinlock_t data_lock;	 /* guards the rest */
	u64 size_bytes;
	struct page **pages; /* NULL: a hole */
	u64 max_pages;
};

extern struct inode *root_inode;
extern struct mutex tree_lock;

/* ramfs.c: the tree. Those with "tree" in the name need tree_lock. */
struct inode *inode_get(struct inode *inode);
void inode_put(struct inode *inode);
/*
 * ERR_PTR(-ENOMEM, or -ENOENT in a removed directory), or the new inode in its parent, without a
 * reference for the caller.
 */
struct inode *tree_create(struct inode *parent, const char *name, u32 mode);
struct inode *tree_find(struct inode *parent, const char *name, size_t len);
void tree_remove(struct inode *inode);

/*
 * data.c: the content of a regular file. user: the buffer is in user memory. Bytes done, or a
 * negative errno when there are none. Reads go on while others read and write.
 */
ssize_t inode_read(struct inode *inode, void *buf, size_t n, u64 pos, bool user);
/* With write_lock held. */
ssize_t inode_write(struct inode *inode, const void *buf, size_t n, u64 pos, bool user);
int inode_truncate(struct inode *inode, u64 size_bytes);
/* With a reference, filling holes; NULL beyond the end or when out of memory. */
struct page *inode_get_page(struct inode *inode, u64 index);
void inode_free_data(struct inode *inode);

/* namei.c: paths. */
#define WALK_NOFOLLOW BIT(0) /* a symbolic link in last place is the result */

struct walk {
	struct inode *parent; /* directory in which name is, or could be created */
	struct inode *inode;  /* NULL: not there */
	char name[NAME_MAX + 1];
	bool wants_directory; /* the path ends in a slash */
};

/*
 * Follow a path from base. Needs tree_lock, which keeps the results alive. 0 also when only the
 * last component is missing.
 */
int path_walk(struct inode *base, const char *path, unsigned int flags, struct walk *walk);

/* The inode of a path with a reference for the caller, or ERR_PTR. */
struct inode *path_get(struct inode *base, const char *path, unsigned int flags);

#define AT_FDCWD	    (-100)
#define AT_SYMLINK_NOFOLLOW 0x100
#define AT_EMPTY_PATH	    0x1000

/*
 * The directory that a system call's dirfd stands for, with a reference, or ERR_PTR. Not needed
 * for absolute paths.
 */
struct inode *path_base(int dirfd, const char *path);

/* Copy a path from user memory; kfree() it. ERR_PTR(-EFAULT, -ENAMETOOLONG, -ENOMEM). */
char *path_from_user(const char __user *path);

/* path_from_user() and path_get() with dirfd; with AT_EMPTY_PATH an empty path is dirfd itself. */
struct inode *path_get_user(int dirfd, const char __user *path, int at_flags);

/* device.c */
const struct device *device_find(u32 number);
void device_init(void); /* makes /dev */

/* file.c */
struct file *file_alloc(struct inode *inode, u32 flags); /* takes a reference to the inode */
static inline bool file_is_stream(const struct file *file)
{
	return file->inode->device && file->inode->device->stream;
}

/* open.c: what file_open() and the system calls share. */
struct file *open_at(struct inode *base, const char *path, u32 flags, u32 mode);

/*
 * fdtable.c: lowest free descriptor at or above from, which takes over the reference; or -EMFILE.
 */
int fd_install(struct file *file, int from, bool close_on_exec);

/* The process's working directory, with a reference. */
struct inode *cwd_get(void);
void cwd_set(struct inode *inode); /* takes over the reference */

#endif
