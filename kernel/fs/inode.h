/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_INODE_H
#define FS_INODE_H

/*
 * A file system is a tree of inodes in memory; mounts connect the trees (mount.h). An inode has its
 * name and parent. Each further name (hard link) is an entry of its own, an inode without content
 * whose ->linked is the real one.
 *
 * Locks, outer first: file->pos_lock, inode->write_lock, tree_lock (an rw_mutex; user memory must
 * not be accessed while it is held), inode->data_lock (a spinlock; data is copied without it).
 */

#include <lego/fs.h>
#include <lego/list.h>
#include <lego/rw_mutex.h>
#include <lego/spinlock.h>

struct filesystem;
struct file_locks;
struct page;
struct path;

#define S_ISUID 04000
#define S_ISGID 02000
#define S_ISVTX 01000
#define S_IXGRP 00010
#define S_IWGRP 00020
#define S_IWOTH 00002

#define S_ISREG(mode)  (((mode)&S_IFMT) == S_IFREG)
#define S_ISDIR(mode)  (((mode)&S_IFMT) == S_IFDIR)
#define S_ISCHR(mode)  (((mode)&S_IFMT) == S_IFCHR)
#define S_ISFIFO(mode) (((mode)&S_IFMT) == S_IFIFO)
#define S_ISBLK(mode)  (((mode)&S_IFMT) == S_IFBLK)
#define S_ISLNK(mode)  (((mode)&S_IFMT) == S_IFLNK)
#define S_ISSOCK(mode) (((mode)&S_IFMT) == S_IFSOCK)
#define S_ISANON(mode) (!((mode)&S_IFMT)) /* file_alloc_anon()'s, as in Linux */

#define MAKE_DEVICE(major, minor) ((u32)(major) << 8 | (u32)(minor))

struct device {
	u32 number; /* MAKE_DEVICE() */
	const char *name;
	u32 mode;    /* of its file in /dev */
	bool stream; /* no position: lseek and pread fail */
	const struct file_ops *ops;
};

/*
 * Operations of an inode whose children or target are generated, as in procfs. All are NULL for a
 * ramfs inode. Called in process context with tree_lock held for writing. They may sleep, but must
 * not access user memory.
 */
struct inode_ops {
	/*
	 * Called before a directory is searched or listed: updates its children, by tree_create()
	 * and tree_remove().
	 */
	void (*populate)(struct inode *dir);
	/* Does the same for the child with this name alone. NULL: populate() is called. */
	void (*populate_name)(struct inode *dir, const char *name, size_t len);
	/*
	 * Writes the target of a symbolic link, without a NUL. Returns its length, or a negative
	 * errno.
	 */
	ssize_t (*read_link)(struct inode *inode, char *buf, size_t size);
	/*
	 * Follows a symbolic link directly to a place, which may have another name or none. Stores
	 * the place, with references. Returns 0 or a negative errno. NULL: the text of the link is
	 * followed.
	 */
	int (*follow)(struct inode *inode, struct path *found);
	/*
	 * Returns true if the inode is about the current process, which may then access it against
	 * its mode.
	 */
	bool (*is_own)(const struct inode *inode);
	/* Called when the inode is freed: releases ->private. tree_lock may not be held. */
	void (*free)(struct inode *inode);
};

struct inode {
	u64 number;
	u32 mode; /* type, never changes, and permission bits */
	u32 uid, gid;
	atomic_t refs;			  /* one for its name in the tree, one for each user */
	s64 atime_ns, mtime_ns, ctime_ns; /* since 1970 */
	struct filesystem *fs;

	/* Guarded by tree_lock. */
	char *name;
	struct inode
		*parent; /* NULL: of a root or without a place; holds a reference, removed or not */
	bool removed;	 /* no longer in the tree: only open files use it */
	bool may_get_name;	    /* created removed, by O_TMPFILE without O_EXCL */
	struct inode *next_by_name; /* with the same hash of parent and name */
	struct list_head sibling;
	struct list_head children; /* directory: in order of ->position */
	u64 position;		   /* in its directory */
	unsigned int nr_subdirs;
	unsigned int nr_mounts; /* on it */
	struct inode *linked;	/* the inode of which this is another name; holds a reference */
	struct list_head links; /* the other names of this inode: their link_node */
	struct list_head link_node;

	struct user_files *payer; /* whose limit it counts against; NULL: nobody's. See space.c */
	u64 payer_bytes;	  /* what that limit has of it */

	const struct inode_ops *ops;	 /* NULL: none */
	const struct file_ops *file_ops; /* of files opened on it; NULL: a device's, or none */
	void *private;			 /* the ops' own */

	const struct device *device; /* character device; NULL: unknown */
	u32 rdev;		     /* number of a device */
	char *target;		     /* symbolic link */
	struct file_locks *locks;    /* see lock.c; NULL: there never was one */

	/* Regular file. */
	int nr_writers; /* files open for writing; negative: number of executions; atomic */
	u64 version;	/* of the content: see file_version(); 0: it has none yet */
	struct mutex write_lock; /* one writer at a time */
	u32 seals;		 /* of a memfd: see memfd.c; changed under write_lock */
	spinlock_t data_lock;	 /* guards the rest, and changes of owner and mode */
	u64 size_bytes;
	struct page **pages; /* NULL: a hole */
	u64 max_pages;
	u64 nr_pages; /* that are not holes */
};

extern struct inode *root_inode; /* of the file system in which the others are mounted */
extern struct rw_mutex tree_lock;

/*
 * Take tree_lock: readers look up names, writers change the tree and use generated directories and
 * links (struct inode_ops). A reader does not drop references. tree_unlock() is for both.
 */
void tree_lock_read(void);
void tree_lock_write(void);
void tree_unlock(void);
bool tree_is_writer(void); /* the current task; any context */

/* ramfs.c: the tree. Other functions with "tree" in their name are called with tree_lock held. */
struct inode *inode_get(struct inode *inode);
void inode_put(struct inode *inode);
/*
 * Makes an inode in its parent. Returns it without a reference for the caller, or ERR_PTR(-ENOMEM),
 * or ERR_PTR(-ENOENT) if the directory was removed.
 */
struct inode *tree_create(struct inode *parent, const char *name, u32 mode);
/* Makes the root of a file system, with a reference, for fs_type.make_root. NULL: no memory. */
struct inode *tree_create_root(struct filesystem *fs, u32 mode);
/*
 * Makes a regular file without a name, as if it had been created in a directory and removed.
 * Returns it with a reference, or ERR_PTR(-ENOMEM, -ENOSPC, -ENOENT).
 */
struct inode *tree_create_removed(struct inode *parent, u32 mode);
/*
 * Adds another name for an inode that is no directory, or a first name for one created without a
 * name. Returns 0, -ENOMEM, -ENOSPC, or -ENOENT in a removed directory.
 */
int tree_link(struct inode *parent, const char *name, struct inode *inode);
/* Moves an entry. Any entry with that name there was removed before. Returns 0 or -ENOMEM. */
int tree_move(struct inode *entry, struct inode *parent, const char *name);
/* Swaps the places of two entries, neither of which is below the other. */
void tree_exchange(struct inode *a, struct inode *b);
unsigned int tree_nr_links(const struct inode *inode);
/*
 * Makes an inode without a place in the tree, with a reference. Its path is its name, or
 * "pipe:[number]" for a pipe. NULL: no memory.
 */
struct inode *inode_alloc_unnamed(const char *name, u32 mode);
struct inode *tree_find(struct inode *parent, const char *name, size_t len); /* an entry, or NULL */
/*
 * Moves an entry to the end of its directory if it is before that position. Returns its position.
 */
u64 tree_keep_order(struct inode *entry, u64 position);
void tree_remove(struct inode *entry);	   /* it has no children */
void tree_remove_all(struct inode *inode); /* and all below it */
void tree_remove_below(struct inode *inode);
u64 tree_count(struct inode *top); /* it and all below it; NULL: 0 */
static inline struct inode *entry_inode(struct inode *entry)
{
	return entry && entry->linked ? entry->linked : entry;
}
static inline bool tree_is_at_or_below(const struct inode *inode, const struct inode *top)
{
	while (inode && inode != top)
		inode = inode->parent;
	return inode;
}
void inode_touch(struct inode *inode); /* sets mtime and ctime: its content has changed */
/* Called before a user's access to the children of a directory: see inode_ops.populate. */
void tree_populate(struct inode *dir);
void tree_populate_name(struct inode *dir, const char *name, size_t len);
/* file_path() with tree_lock held. */
const char *tree_file_path(struct file *file, char *buf, size_t size);
/*
 * Copies the text of a symbolic link, without a NUL. Returns its length, at most size, or a
 * negative errno.
 */
ssize_t tree_read_link(struct inode *inode, char *buf, size_t size);

/*
 * Return a directory, and make it if it is missing: the one with this name, or the parent of the
 * last component, *name, of a relative path. ERR_PTR on failure. tree_lock is held.
 */
struct inode *tree_make_directory(struct inode *parent, const char *name, size_t len, u32 mode);
struct inode *tree_make_directories(struct inode *top, const char *path, u32 mode,
				    const char **name);

/*
 * data.c: the content of a regular file. user: the buffer is in user memory. Returns the bytes
 * done, or a negative errno if there are none. Others may read and write meanwhile.
 */
ssize_t inode_read(struct inode *inode, void *buf, size_t n, u64 pos, bool user);
/* The same. write_lock is held. */
ssize_t inode_write(struct inode *inode, const void *buf, size_t n, u64 pos, bool user);
int inode_truncate(struct inode *inode, u64 size_bytes);
/* Fills holes in the range, and extends the file to its end. write_lock is held. */
int inode_allocate(struct inode *inode, u64 pos, u64 n);
/*
 * Returns the first position from pos on that is in a page with content, or in a hole; the end of
 * the file counts as a hole. -ENXIO: pos is not in the file, or there is no content after it.
 */
s64 inode_seek(struct inode *inode, s64 pos, bool hole);
/* Returns roughly the memory of the inode and its content. Needs no lock. */
u64 inode_held_bytes(const struct inode *inode);

/*
 * Check what the current process may do. inode_limit_write() returns how many of n bytes at pos it
 * may write; inode_limit_size() returns 0 if it may make the file that long. Beyond RLIMIT_FSIZE,
 * they send SIGXFSZ to the current thread and return -EFBIG; if a seal forbids it, they return
 * -EPERM. write_lock is held.
 */
ssize_t inode_limit_write(const struct inode *inode, u64 pos, size_t n);
int inode_limit_size(const struct inode *inode, u64 size_bytes);

/* memfd.c: the same checks for seals alone, and the commands of fcntl(2) for seals. */
ssize_t seals_limit_write(const struct inode *inode, u64 pos, size_t n);
int seals_limit_size(const struct inode *inode, u64 size_bytes);
#define F_ADD_SEALS 1033
#define F_GET_SEALS 1034
long seals_add(struct file *file, u64 seals);
long seals_get(const struct file *file);
/* Like file_get_page(). */
struct page *inode_get_page(struct inode *inode, u64 index);
void inode_free_data(struct inode *inode);

/* pipe.c */
#define PIPE_BYTES 65536
/* Makes a pipe without ends for a new S_IFIFO inode. Returns 0 or -ENOMEM. */
int pipe_attach(struct inode *inode);

/* device.c */
const struct device *device_find(u32 number);
void device_init(void); /* makes /dev */

#endif
