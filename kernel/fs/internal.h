/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_INTERNAL_H
#define FS_INTERNAL_H

/*
 * Declarations that the files of kernel/fs/ share. A file system is a tree of inodes in memory;
 * mounts connect the trees. An inode has its name and parent. Each further name (hard link) is an
 * entry of its own, an inode without content whose ->linked is the real one.
 *
 * Locks, outer first: file->pos_lock, inode->write_lock, tree_lock (a mutex; user memory must not
 * be accessed while it is held), inode->data_lock (a spinlock; data is copied without it).
 */

#include <lego/fs.h>
#include <lego/list.h>
#include <lego/sched.h>
#include <lego/spinlock.h>
#include <lego/text.h>
#include <lego/time.h>

#define PATH_MAX 4096 /* with the NUL */
#define NAME_MAX 255

/* Linux's values. */
enum {
	SEEK_SET,
	SEEK_CUR,
	SEEK_END,
	SEEK_DATA,
	SEEK_HOLE
};

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

struct path;

/*
 * Operations of an inode whose children or target are generated, as in procfs. All are NULL for a
 * ramfs inode. Called in process context with tree_lock held. They may sleep, but must not access
 * user memory.
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

struct filesystem;
struct file_locks;

/* A kind of file system. */
struct fs_type {
	const char *name;
	/*
	 * Makes the root with tree_create_root(), and its content. tree_lock is held. NULL: no
	 * memory.
	 */
	struct inode *(*make_root)(struct filesystem *fs);
	u32 magic;	 /* for statfs() */
	bool single;	 /* all mounts show the same file system; else each mount makes a new one */
	bool is_fixed;	 /* users cannot make, remove, rename or change anything in it */
	bool is_bounded; /* its content is limited: see space.c */
};

struct filesystem {
	const struct fs_type *type;
	struct inode *root;
	u32 device;		/* st_dev */
	unsigned int nr_mounts; /* guarded by tree_lock */
	struct list_head node;	/* of single ones */
};

/* Flags of a mount, with the values of mount(2) and statfs(2). */
#define MOUNT_NOSUID 0x2 /* execve() ignores set-user-ID and set-group-ID bits */
#define MOUNT_NODEV  0x4 /* device files cannot be opened */
#define MOUNT_NOEXEC 0x8 /* files can be neither executed nor mapped for execution */

struct mount {
	struct filesystem *fs;
	u32 id;			  /* for /proc/<pid>/mountinfo; no two have the same */
	u32 flags;		  /* MOUNT_* */
	struct mount *parent;	  /* NULL: of the root */
	struct inode *mountpoint; /* in the parent's tree, holds a reference */
	char *source;		  /* the source argument of mount(2) */
	atomic_t refs;		  /* one while attached, one for each file, cwd and mount on it */
	bool attached;		  /* guarded by tree_lock, as the list */
	struct list_head node;
};

/* A place in the tree that users see, with all mounts. */
struct path {
	struct mount *mount; /* NULL: of a file without a place */
	struct inode *inode;
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

	const struct inode_ops *ops;	 /* NULL: none */
	const struct file_ops *file_ops; /* of files opened on it; NULL: a device's, or none */
	void *private;			 /* the ops' own */

	const struct device *device; /* character device; NULL: unknown */
	u32 rdev;		     /* number of a device */
	char *target;		     /* symbolic link */
	struct file_locks *locks;    /* see lock.c; NULL: there never was one */

	/* Regular file. */
	int nr_writers; /* files open for writing; negative: number of executions; atomic */
	struct mutex write_lock; /* one writer at a time */
	u32 seals;		 /* of a memfd: see memfd.c; changed under write_lock */
	spinlock_t data_lock;	 /* guards the rest, and changes of owner and mode */
	u64 size_bytes;
	struct page **pages; /* NULL: a hole */
	u64 max_pages;
	u64 nr_pages; /* that are not holes */
};

extern struct inode *root_inode; /* of the file system in which the others are mounted */
extern struct mutex tree_lock;

/* ramfs.c: the tree. Functions with "tree" in their name are called with tree_lock held. */
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
unsigned int tree_nr_links(const struct inode *inode);
/*
 * Makes an inode without a place in the tree, with a reference. Its path is its name, or
 * "pipe:[number]" for a pipe. NULL: no memory.
 */
struct inode *inode_alloc_unnamed(const char *name, u32 mode);
struct inode *tree_find(struct inode *parent, const char *name, size_t len); /* an entry, or NULL */
void tree_append(struct inode *entry);	   /* moves it to the end of its directory */
void tree_remove(struct inode *entry);	   /* it has no children */
void tree_remove_all(struct inode *inode); /* and all below it */
void tree_remove_below(struct inode *inode);
u64 tree_count(struct inode *top); /* it and all below it; NULL: 0 */
static inline struct inode *entry_inode(struct inode *entry)
{
	return entry && entry->linked ? entry->linked : entry;
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

/*
 * space.c: limits the memory of all bounded file systems together. Charging returns false if there
 * is no room for the current process; with force (for the initramfs) it always succeeds.
 */
bool space_charge(const struct filesystem *fs, u64 bytes, bool force);
void space_uncharge(const struct filesystem *fs, u64 bytes);
bool space_charge_inode(const struct filesystem *fs, bool force);
void space_uncharge_inode(const struct filesystem *fs);
struct space {
	u64 max_pages, free_pages, max_inodes, free_inodes;
	u64 available_pages; /* of free_pages, to the current process */
};
void space_get(struct space *space);

/* mount.c */
extern struct path root_path;		     /* "/", for ever */
extern struct filesystem fs_without_name;    /* that of inodes without a place */
int fs_register(const struct fs_type *type); /* at boot; type stays. 0 or -ENOMEM */
void fs_show_types(struct text *text);	     /* for /proc/filesystems */
/*
 * Mounts a file system at boot, on a directory of the root file system, which is made if missing.
 */
void fs_mount_at_boot(const char *type, const char *path);
/*
 * Return a directory, and make it if it is missing: the one with this name, or the parent of the
 * last component, *name, of a relative path. ERR_PTR on failure. tree_lock is held.
 */
struct inode *tree_make_directory(struct inode *parent, const char *name, size_t len, u32 mode);
struct inode *tree_make_directories(struct inode *top, const char *path, u32 mode,
				    const char **name);
void mount_init(void);
struct mount *mount_get(struct mount *mount); /* NULL is allowed */
void mount_put(struct mount *mount);	      /* with or without tree_lock */
/*
 * mount_attach() mounts a file system on a directory; flags are MOUNT_*. mount_detach() removes a
 * mount and those on it, even if in use when lazily is set. The caller has a reference to it, and
 * calls mount_drop_detached() afterwards. Both return 0 or a negative errno. tree_lock is held.
 */
int mount_attach(const char *type_name, const struct path *at, const char *source, u32 flags);
int mount_detach(struct mount *mount, bool lazily, struct list_head *detached);
void mount_drop_detached(struct list_head *detached); /* tree_lock not held */
/* Returns the mount on a place, or NULL. tree_lock is held, also for the next function. */
struct mount *mount_on(const struct path *path);
/*
 * Prints /proc/<pid>/mounts, in lines of "source directory type rw,... 0 0", or mountinfo, in lines
 * of "id parent's-id device / directory rw,... - type source rw". Returns 0 or -ENOMEM. Takes
 * tree_lock.
 */
int mounts_text(struct text *text, bool info);

static inline bool path_is_fixed(const struct path *path)
{
	return path->inode->fs->type->is_fixed;
}
struct path path_hold(const struct path *path); /* a copy with references */
void path_release(struct path *path);		/* with or without tree_lock */

/* permission.c: the access that the current process wants. The first three are access(2)'s. */
#define MAY_EXEC    1 /* for a directory: to look up a name in it */
#define MAY_WRITE   2
#define MAY_READ    4
#define MAY_AS_REAL 8 /* check the real user and group, for access(2) */

/* Returns true if the fs user is 0. Kernel threads may do everything, too. */
static inline bool fs_is_root(void)
{
	const struct process *proc = current->proc;

	return !proc || !READ_ONCE(proc->creds.fsuid);
}

/* Returns 0 or -EACCES. */
int inode_check_permission(const struct inode *inode, u32 mask);
static inline int inode_permission(const struct inode *inode, u32 mask)
{
	if (!(mask & (MAY_EXEC | MAY_AS_REAL)) && fs_is_root())
		return 0;
	return inode_check_permission(inode, mask);
}
bool inode_is_owned(const struct inode *inode); /* by the current process, or it is root */
bool inode_group_allowed(u32 gid);		/* the process is in the group, or it is root */
int tree_may_create(const struct inode *dir);	/* a name in the directory: 0 or -EACCES */
/*
 * Returns 0 if the process may remove a name from the directory; -EACCES, or -EPERM because the
 * directory is sticky.
 */
int tree_may_remove(const struct inode *dir, struct inode *entry);

/*
 * Linux's fs.protected_* settings (proc_sys_fs(5)), each 0 for off; root may change them. A user
 * may make hard links only of files that he owns, or may read and write. In a sticky directory that
 * all may write to, a symbolic link at the end of a path is followed only for its owner, or if it
 * is the directory owner's. open(O_CREAT) opens a FIFO or a regular file that is already there only
 * under the same condition; with 2, also in a sticky directory that its group may write to.
 */
extern struct protection {
	unsigned int hardlinks, symlinks, fifos, regular;
} fs_protection;

/* By these rules, root included. tree_lock is held. Return 0, -EPERM (a link), or -EACCES. */
int tree_may_link(const struct inode *inode);
int tree_may_follow(const struct inode *dir, const struct inode *link);
int tree_may_open_present(const struct inode *dir, const struct inode *inode);

static inline u32 mode_without_set_ids(u32 mode)
{
	/* Without x for the group, set-group-ID means something else (mandatory locking). */
	return mode & ~(mode & S_IXGRP ? S_ISUID | S_ISGID : S_ISUID);
}
/* Clears the set-ID bits when the content of a file changes, unless root changes it. */
void inode_strip_set_ids(struct inode *inode);
static inline void inode_content_changes(struct inode *inode)
{
	if (unlikely(inode->mode & (S_ISUID | S_ISGID)))
		inode_strip_set_ids(inode);
}

/* Returns 0, or -ETXTBSY if the file is being executed. */
int inode_begin_writing(struct inode *inode);
void inode_end_writing(struct inode *inode);

/* namei.c: paths. */
#define WALK_NOFOLLOW BIT(0) /* do not follow a final symbolic link without a slash */
#define WALK_AS_REAL  BIT(2) /* check the real user and group */
#define WALK_NAME     BIT(1) /* return the entry itself: follow no link or mount from it */

struct walk {
	struct path parent;  /* directory in which name is, or could be created */
	struct path found;   /* inode NULL: not there */
	struct inode *entry; /* of the name in the parent; NULL: none, or "." and the like */
	struct path pinned;  /* where an inode_ops.follow led, with references */
	char name[NAME_MAX + 1];
	bool wants_directory; /* the path ends in a slash */
};

/* Returns true unless the last component is "", "." or "..". */
bool walk_has_name(const struct walk *walk);

/*
 * Follows a path from base. tree_lock is held, and keeps the results alive until path_walk_end().
 * Returns 0 even if only the last component is missing. -EACCES: the current process may not search
 * a directory on the way.
 */
int path_walk(const struct path *base, const char *path, unsigned int flags, struct walk *walk);
/* Must be called after path_walk(), also after an error, with or without tree_lock. */
void path_walk_end(struct walk *walk);

/* Finds the place that a path leads to, with references. Returns 0 or a negative errno. */
int path_find(const struct path *base, const char *path, unsigned int flags, struct path *found);

#define AT_FDCWD	    (-100)
#define AT_SYMLINK_NOFOLLOW 0x100
#define AT_REMOVEDIR	    0x200
#define AT_SYMLINK_FOLLOW   0x400
#define AT_EMPTY_PATH	    0x1000
#define AT_REAL_IDS	    0x40000000 /* only inside the kernel: WALK_AS_REAL */

/*
 * Finds the directory of a system call's dirfd, with references. An absolute path does not use it.
 * Returns 0 or a negative errno.
 */
int path_base(int dirfd, const char *path, struct path *base);

/* Copies a path from user memory; kfree() it. ERR_PTR(-EFAULT, -ENAMETOOLONG, -ENOMEM). */
char *path_from_user(const char __user *path);

/*
 * path_from_user() and path_find() with dirfd. With AT_EMPTY_PATH, an empty path means dirfd
 * itself.
 */
int path_find_user(int dirfd, const char __user *path, int at_flags, struct path *found);

/*
 * dir.c: writes the path of a place to the end of buf. Returns its start, or NULL if the place has
 * no path any more or there is no room. tree_lock is held.
 */
char *path_write(const struct path *path, char *buf, size_t size);

/* device.c */
const struct device *device_find(u32 number);
void device_init(void); /* makes /dev */

/* proc/root.c */
void proc_init(void);	 /* makes /proc */
void tracefs_init(void); /* makes /sys/kernel/tracing */

/* file.c */
struct file *file_alloc(const struct path *path, u32 flags); /* takes references */
/*
 * Makes an open file without content, with operations and private data, which release() frees. Its
 * path is the name. mode is 0600, or a socket's. NULL: no memory; the caller still owns private.
 */
struct file *file_alloc_anon(const char *name, u32 mode, const struct file_ops *ops, void *private,
			     u32 flags);
u64 file_own_bytes(const struct file *file); /* like file_held_bytes(), even if counted already */
int file_call_open(struct file *file);	     /* by its creator, once; on error, file_put() it */
static inline bool file_is_pipe(const struct file *file)
{
	return S_ISFIFO(file->inode->mode);
}
/* Returns true if the file has no position. */
static inline bool file_is_stream(const struct file *file)
{
	const struct inode *inode = file->inode;

	if (S_ISFIFO(inode->mode) || (file->ops && file->ops->is_stream))
		return true;
	if (inode->device)
		return inode->device->stream;
	return S_ISANON(inode->mode) || S_ISSOCK(inode->mode);
}
/* Replaces the flags in mask atomically. */
void file_set_flags(struct file *file, u32 mask, u32 flags);

/* iov.c: a buffer of a call, in user memory. */
struct iovec {
	void __user *base;
	size_t len;
};

/* Linux's limit for one call: whole pages below 2 GiB. */
#define MAX_RW_BYTES 0x7ffff000UL

/* The remaining part of a transfer: `left` bytes, from offset in *iov on. */
struct iov_iter {
	const struct iovec *iov;
	size_t offset;
	size_t left; /* at most MAX_RW_BYTES */
};

/* Copies and checks a vector; kfree() it. ERR_PTR on failure. */
struct iovec *iovec_from_user(const struct iovec __user *user_iov, unsigned long nr);
void iov_iter_init(struct iov_iter *iter, const struct iovec *iov, unsigned int nr);
/*
 * Copy at most n bytes and advance the iterator. Return the bytes copied; fewer than n only at a
 * bad address or at the end.
 */
size_t iov_copy_from(void *dst, struct iov_iter *iter, size_t n);
size_t iov_copy_to(struct iov_iter *iter, const void *src, size_t n);
size_t iov_clear(struct iov_iter *iter, size_t n); /* zeros */
/* Returns 0 if the next n bytes can be written to now, or -EFAULT. */
int iov_make_writable(struct iov_iter iter, size_t n);

/* bounce.c: read and write with file->ops. Return the bytes done, or a negative errno. */
ssize_t bounce_read(struct file *file, struct iov_iter *iter, u64 pos);
ssize_t bounce_write(struct file *file, struct iov_iter *iter, u64 pos);

/* poll.c: a descriptor to wait for. */
struct poll_item {
	int fd;		   /* negative: ignored */
	u32 events;	   /* POLL* to wait for */
	u32 revents;	   /* result: those that are there, or POLLNVAL */
	struct file *file; /* used by poll_items() */
};

/*
 * Waits until an item has an event, at most until clock_monotonic_ns() reaches the deadline.
 * Returns the number of items with events; 0 at the deadline; -EINTR after a signal; or -ENOMEM.
 */
int poll_items(struct poll_item *items, unsigned int nr, u64 deadline_ns);

/*
 * Converts a user's relative time to a deadline; NULL: TIME_NEVER_NS. Returns 0, -EFAULT or
 * -EINVAL.
 */
int poll_deadline(const struct timespec64 __user *user_time, u64 *deadline_ns);
int poll_deadline_of(const struct timespec64 *time, u64 *deadline_ns); /* 0 or -EINVAL */
u64 poll_deadline_ms(int timeout_ms);				       /* negative: TIME_NEVER_NS */
struct timespec64 poll_time_left(u64 deadline_ns);
/* Copies the remaining time to the user. A bad address is no error. */
void poll_return_time(struct timespec64 __user *user_time, u64 deadline_ns);
/*
 * Set a signal mask for the time of a call, if user_mask is given. poll_end_mask() returns the
 * call's result.
 */
int poll_begin_mask(const u64 __user *user_mask, size_t mask_bytes);
long poll_end_mask(long ret, bool has_mask);

/* Returns true if the file can be polled. Any other file is always ready. */
static inline bool file_can_poll(const struct file *file)
{
	return file->ops && file->ops->poll;
}

/* epoll.c: removes all watches of a file whose last reference is gone. */
void epoll_forget_file(struct file *file);

/*
 * names.c: makes the name of a socket. The inode has a reference for the caller. Returns 0 or a
 * negative errno.
 */
int name_make_socket(const char *path, struct inode **inode);

/* pipe.c */
#define PIPE_BYTES 65536
/* Makes a pipe without ends for a new S_IFIFO inode. Returns 0 or -ENOMEM. */
int pipe_attach(struct inode *inode);

/* open.c: opens a file, for file_open() and the system calls. */
struct file *open_at(const struct path *base, const char *path, u32 flags, u32 mode);

/*
 * fdtable.c: installs a file at the lowest free descriptor from `from` on, and takes over the
 * reference. Returns the descriptor or -EMFILE, -ENOMEM.
 */
int fd_install(struct file *file, int from, bool close_on_exec);
/* The same from 0 on. Drops the reference if there is no free descriptor. */
int fd_install_or_put(struct file *file, bool close_on_exec);
/* Installs two files and copies their numbers to the user. After an error, neither is installed. */
int fd_install_pair(struct file *const files[2], bool close_on_exec, int __user *user_fds);

/*
 * Replaces the file of a valid descriptor by another one, whose reference passes to the table, or
 * by none. Closes the old file. Returns 1 if there was one, 0 if not, or -ENOMEM with nothing
 * changed.
 */
int fd_replace(int fd, struct file *file, bool close_on_exec);
long fd_set_close_on_exec(int fd, bool on); /* 0 or -EBADF */
bool fd_get_close_on_exec(int fd);

/* Returns the limit of the current process's descriptors: RLIMIT_NOFILE, at most FILE_MAX_FDS. */
int fd_limit(void);

/* Returns the file of a descriptor of any table, with a reference, or NULL if it is not open. */
struct file *files_get_file(struct files *files, int fd);
/* Returns the first open descriptor from fd on, or -1. */
int files_next_fd(struct files *files, int fd);

/* Like fd_get(), but also returns a file that is open as a path only (O_PATH). */
struct file *fd_get_any(int fd);
/*
 * Like fd_get(), but only for files with these operations. ERR_PTR(-EBADF), or -EINVAL for others.
 */
struct file *fd_get_with(int fd, const struct file_ops *ops);
/* Finds the place of fd or AT_FDCWD, with references. Returns 0 or -EBADF. */
int fd_get_path(int fd, struct path *path);

/*
 * fs_info.c: return the working directory of any process, or of the current one, with references.
 */
struct path fs_info_cwd(struct fs_info *fs);
struct path cwd_get(void);
void cwd_set(const struct path *path); /* takes over the references */
u32 fs_umask(void);		       /* the current process's */

#endif
