/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_INTERNAL_H
#define FS_INTERNAL_H

/*
 * What the files of kernel/fs/ share. A file system is a tree of inodes in memory; mounts put the
 * trees together. An inode's name and parent are in the inode itself. Further names (hard links)
 * are entries of their own, inodes without content: ->linked is the real one.
 *
 * Locks, outer first: file->pos_lock, inode->write_lock, tree_lock (a mutex; no user memory is
 * touched under it), inode->data_lock (a spinlock; copying happens outside of it).
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
 * What an inode that is more than memory does itself: of procfs. All NULL: a plain ramfs inode.
 * Process context, with tree_lock held; they may sleep, but not touch user memory.
 */
struct inode_ops {
	/*
	 * Before a directory is searched or listed: bring its children (tree_create(),
	 * tree_remove()) in line with what they stand for.
	 */
	void (*populate)(struct inode *dir);
	/* Likewise, but only for the child of that name. NULL: populate() is called. */
	void (*populate_name)(struct inode *dir, const char *name, size_t len);
	/* A symbolic link whose target is made when asked for: its length (no NUL), or -errno. */
	ssize_t (*read_link)(struct inode *inode, char *buf, size_t size);
	/*
	 * A symbolic link that leads to a place whatever its name is, or though it has none: that
	 * place, with references. 0 or a negative errno. NULL: its text is followed.
	 */
	int (*follow)(struct inode *inode, struct path *found);
	/* Its mode denies it to the current process, but it is about that process. */
	bool (*is_own)(const struct inode *inode);
	/* The inode is freed: release ->private. Maybe without tree_lock. */
	void (*free)(struct inode *inode);
};

struct filesystem;
struct file_locks;

/* A kind of file system. */
struct fs_type {
	const char *name;
	/* Its root: tree_create_root() and what is to be in it. tree_lock held. NULL: no memory. */
	struct inode *(*make_root)(struct filesystem *fs);
	u32 magic;	 /* what statfs() tells */
	bool single;	 /* there is one, wherever it is mounted; else each mount makes a new one */
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
	char *source;		  /* what mount(2) was given as such */
	atomic_t refs;		  /* one while attached, one for each file, cwd and mount on it */
	bool attached;		  /* guarded by tree_lock, as the list */
	struct list_head node;
};

/* A place in the tree as users see it. */
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
	bool removed;	 /* no longer in the tree: only used by who has it open */
	bool may_get_name;	    /* created removed, by O_TMPFILE without O_EXCL */
	struct inode *next_by_name; /* with the same hash of parent and name */
	struct list_head sibling;
	struct list_head children; /* directory: in order of ->position */
	u64 position;		   /* in its directory */
	unsigned int nr_subdirs;
	unsigned int nr_mounts; /* on it */
	struct inode *linked;	/* this is another name of it; holds a reference */
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
	int nr_writers; /* files open for writing; negative: how often it is executed; atomic */
	struct mutex write_lock; /* one writer at a time */
	u32 seals;		 /* of a memfd: see memfd.c; changed under write_lock */
	spinlock_t data_lock;	 /* guards the rest, and changes of owner and mode */
	u64 size_bytes;
	struct page **pages; /* NULL: a hole */
	u64 max_pages;
	u64 nr_pages; /* that are not holes */
};

extern struct inode *root_inode; /* of the file system that the others are mounted in */
extern struct mutex tree_lock;

/* ramfs.c: the tree. Functions with "tree" in their name are called with tree_lock held. */
struct inode *inode_get(struct inode *inode);
void inode_put(struct inode *inode);
/*
 * ERR_PTR(-ENOMEM, or -ENOENT in a removed directory), or the new inode in its parent, without a
 * reference for the caller.
 */
struct inode *tree_create(struct inode *parent, const char *name, u32 mode);
/* The root of a file system, with a reference, on behalf of fs_type.make_root. NULL: no memory. */
struct inode *tree_create_root(struct filesystem *fs, u32 mode);
/*
 * A regular file as if it had been created in a directory and removed; with a reference for the
 * caller. ERR_PTR(-ENOMEM, -ENOSPC, -ENOENT).
 */
struct inode *tree_create_removed(struct inode *parent, u32 mode);
/*
 * Another name for an inode that is not a directory, or a name for one that was created removed. 0,
 * -ENOMEM, -ENOSPC, -ENOENT in a removed directory.
 */
int tree_link(struct inode *parent, const char *name, struct inode *inode);
/* Another place for an entry: what has that name there was removed before. 0 or -ENOMEM. */
int tree_move(struct inode *entry, struct inode *parent, const char *name);
unsigned int tree_nr_links(const struct inode *inode);
/*
 * An inode without a place in the tree, with a reference. Its path is its name, or of a pipe
 * "pipe:[number]". NULL: no memory.
 */
struct inode *inode_alloc_unnamed(const char *name, u32 mode);
struct inode *tree_find(struct inode *parent, const char *name, size_t len); /* an entry, or NULL */
void tree_append(struct inode *entry);	   /* moves it to the end of its directory */
void tree_remove(struct inode *entry);	   /* it has no children */
void tree_remove_all(struct inode *inode); /* and all below it */
void tree_remove_below(struct inode *inode);
static inline struct inode *entry_inode(struct inode *entry)
{
	return entry && entry->linked ? entry->linked : entry;
}
void inode_touch(struct inode *inode); /* its content has changed now: mtime and ctime */
/* Before the children of a directory are looked at on behalf of a user: see inode_ops.populate. */
void tree_populate(struct inode *dir);
void tree_populate_name(struct inode *dir, const char *name, size_t len);
/* file_path() with tree_lock held. */
const char *tree_file_path(struct file *file, char *buf, size_t size);
/*
 * The text of a symbolic link: its length (it is not terminated), at most size, or -errno.
 */
ssize_t tree_read_link(struct inode *inode, char *buf, size_t size);

/*
 * data.c: the content of a regular file. user: the buffer is in user memory. Bytes done, or a
 * negative errno when there are none. Reads go on while others read and write.
 */
ssize_t inode_read(struct inode *inode, void *buf, size_t n, u64 pos, bool user);
/* With write_lock held. */
ssize_t inode_write(struct inode *inode, const void *buf, size_t n, u64 pos, bool user);
int inode_truncate(struct inode *inode, u64 size_bytes);
/* Fill the holes and extend the file to the end of that. With write_lock held. */
int inode_allocate(struct inode *inode, u64 pos, u64 n);
/*
 * The first position from pos on that is in a page with content, or in a hole: the end of the file
 * is one. -ENXIO if pos is not in the file, or there is no content behind it.
 */
s64 inode_seek(struct inode *inode, s64 pos, bool hole);
/* Memory of its content, and its own, about. No lock needed. */
u64 inode_held_bytes(const struct inode *inode);

/*
 * How many of n bytes at pos the current process may write, and whether it may make the file that
 * long. Errors: RLIMIT_FSIZE, -EFBIG and SIGXFSZ to the current thread; the file's seals, -EPERM.
 * With write_lock held.
 */
ssize_t inode_limit_write(const struct inode *inode, u64 pos, size_t n);
int inode_limit_size(const struct inode *inode, u64 size_bytes);

/* memfd.c: the part that seals have in these, and fcntl(2) for its commands about seals. */
ssize_t seals_limit_write(const struct inode *inode, u64 pos, size_t n);
int seals_limit_size(const struct inode *inode, u64 size_bytes);
#define F_ADD_SEALS 1033
#define F_GET_SEALS 1034
long seals_add(struct file *file, u64 seals);
long seals_get(const struct file *file);
/* As file_get_page(). */
struct page *inode_get_page(struct inode *inode, u64 index);
void inode_free_data(struct inode *inode);

/*
 * space.c: how much memory the bounded file systems, all together, may have. Charging says whether
 * there is room for more; with force it always is (the kernel's own: the initramfs).
 */
bool space_charge_pages(const struct inode *inode, u64 nr, bool force);
void space_uncharge_pages(const struct inode *inode, u64 nr);
bool space_charge_inode(const struct filesystem *fs, bool force);
void space_uncharge_inode(const struct filesystem *fs);
struct space {
	u64 max_pages, free_pages, max_inodes, free_inodes;
};
void space_get(struct space *space);

/* mount.c */
extern struct path root_path;		     /* "/", for ever */
extern struct filesystem fs_without_name;    /* that of inodes without a place */
int fs_register(const struct fs_type *type); /* at boot; type stays. 0 or -ENOMEM */
void fs_show_types(struct text *text);	     /* for /proc/filesystems */
/* The kernel's own mount at boot, on a directory of the root file system, made if need be. */
void fs_mount_at_boot(const char *type, const char *path);
/*
 * Return a directory that is made if it is missing: the one of this name, or the one that the last
 * component of a relative path, *name, is in. ERR_PTR on failure. tree_lock held.
 */
struct inode *tree_make_directory(struct inode *parent, const char *name, size_t len, u32 mode);
struct inode *tree_make_directories(struct inode *top, const char *path, u32 mode,
				    const char **name);
void mount_init(void);
struct mount *mount_get(struct mount *mount); /* NULL is allowed */
void mount_put(struct mount *mount);	      /* with or without tree_lock */
/*
 * Mount a file system on a directory, flags: MOUNT_*. 0 or a negative errno. mount_detach() takes a
 * mount away, with those on it, for which mount_drop_detached() is called afterwards; lazily:
 * though it is in use; the caller has a reference. tree_lock held.
 */
int mount_attach(const char *type_name, const struct path *at, const char *source, u32 flags);
int mount_detach(struct mount *mount, bool lazily, struct list_head *detached);
void mount_drop_detached(struct list_head *detached); /* tree_lock not held */
/* The mount on a place, NULL: none; needs tree_lock, as the next. */
struct mount *mount_on(const struct path *path);
/*
 * For /proc/<pid>/mounts, lines of "source directory type rw,... 0 0", and mountinfo, lines of
 * "id parent's-id device / directory rw,... - type source rw". 0 or -ENOMEM; takes tree_lock.
 */
int mounts_text(struct text *text, bool info);

static inline bool path_is_fixed(const struct path *path)
{
	return path->inode->fs->type->is_fixed;
}
struct path path_hold(const struct path *path); /* a copy with references */
void path_release(struct path *path);		/* with or without tree_lock */

/* permission.c: what the current process wants to do. The first three are access(2)'s. */
#define MAY_EXEC    1 /* of a directory: look for a name in it */
#define MAY_WRITE   2
#define MAY_READ    4
#define MAY_AS_REAL 8 /* by its real user and group, for access(2) */

/* The fs user is 0. The kernel's own threads may do everything, too. */
static inline bool fs_is_root(void)
{
	const struct process *proc = current->proc;

	return !proc || !READ_ONCE(proc->creds.fsuid);
}

/* 0 or -EACCES. */
int inode_check_permission(const struct inode *inode, u32 mask);
static inline int inode_permission(const struct inode *inode, u32 mask)
{
	if (!(mask & (MAY_EXEC | MAY_AS_REAL)) && fs_is_root())
		return 0;
	return inode_check_permission(inode, mask);
}
bool inode_is_owned(const struct inode *inode); /* by the current process, or it is root's */
bool inode_group_allowed(u32 gid);		/* it is in the group, or root's */
int tree_may_create(const struct inode *dir);	/* a name in the directory: 0 or -EACCES */
/* Take a name out of the directory: 0, -EACCES, or -EPERM in a sticky directory of others. */
int tree_may_remove(const struct inode *dir, struct inode *entry);

static inline u32 mode_without_set_ids(u32 mode)
{
	/* Without x for the group the bit means something else. */
	return mode & ~(mode & S_IXGRP ? S_ISUID | S_ISGID : S_ISUID);
}
/* The content of a file changes: unless root does that, it is no longer set-user-ID. */
void inode_strip_set_ids(struct inode *inode);
static inline void inode_content_changes(struct inode *inode)
{
	if (unlikely(inode->mode & (S_ISUID | S_ISGID)))
		inode_strip_set_ids(inode);
}

/* 0, or -ETXTBSY: it is executed. */
int inode_begin_writing(struct inode *inode);
void inode_end_writing(struct inode *inode);

/* namei.c: paths. */
#define WALK_NOFOLLOW BIT(0) /* a symbolic link in last place, without a slash, is the result */
#define WALK_AS_REAL  BIT(2) /* judge by the real user and group */
#define WALK_NAME     BIT(1) /* the entry itself is wanted: no link, no mount is followed from it */

struct walk {
	struct path parent;  /* directory in which name is, or could be created */
	struct path found;   /* inode NULL: not there */
	struct inode *entry; /* of the name in the parent; NULL: none, or "." and the like */
	struct path pinned;  /* where an inode_ops.follow led, with references */
	char name[NAME_MAX + 1];
	bool wants_directory; /* the path ends in a slash */
};

/* True unless the last component is "", "." or "..". */
bool walk_has_name(const struct walk *walk);

/*
 * Follow a path from base. Needs tree_lock, which keeps the results alive until path_walk_end(). 0
 * also when only the last component is missing. -EACCES: the current process may not search a
 * directory on the way.
 */
int path_walk(const struct path *base, const char *path, unsigned int flags, struct walk *walk);
/* With or without tree_lock, also after an error. */
void path_walk_end(struct walk *walk);

/* What a path leads to, with references. 0 or a negative errno. */
int path_find(const struct path *base, const char *path, unsigned int flags, struct path *found);

#define AT_FDCWD	    (-100)
#define AT_SYMLINK_NOFOLLOW 0x100
#define AT_REMOVEDIR	    0x200
#define AT_SYMLINK_FOLLOW   0x400
#define AT_EMPTY_PATH	    0x1000
#define AT_REAL_IDS	    0x40000000 /* only inside the kernel: WALK_AS_REAL */

/*
 * The directory that a system call's dirfd stands for, with references. Not needed for absolute
 * paths. 0 or a negative errno.
 */
int path_base(int dirfd, const char *path, struct path *base);

/* Copy a path from user memory; kfree() it. ERR_PTR(-EFAULT, -ENAMETOOLONG, -ENOMEM). */
char *path_from_user(const char __user *path);

/* path_from_user() and path_find() with dirfd; with AT_EMPTY_PATH an empty path is dirfd itself. */
int path_find_user(int dirfd, const char __user *path, int at_flags, struct path *found);

/*
 * dir.c: write the path of a place to the end of buf. Its start, or NULL when it has none (any
 * more) or there is no room. tree_lock held.
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
 * An open file that is nothing but its operations and private data, which release() frees. Its path
 * is the name. mode: 0600, or a socket's. NULL: no memory; private is still the caller's.
 */
struct file *file_alloc_anon(const char *name, u32 mode, const struct file_ops *ops, void *private,
			     u32 flags);
u64 file_own_bytes(const struct file *file); /* as file_held_bytes(), counted or not */
int file_call_open(struct file *file);	     /* once, by its maker; on an error only file_put() */
static inline bool file_is_pipe(const struct file *file)
{
	return S_ISFIFO(file->inode->mode);
}
/* It has no position. */
static inline bool file_is_stream(const struct file *file)
{
	const struct inode *inode = file->inode;

	if (S_ISFIFO(inode->mode) || (file->ops && file->ops->is_stream))
		return true;
	if (inode->device)
		return inode->device->stream;
	return S_ISANON(inode->mode) || S_ISSOCK(inode->mode);
}
/* Replace the flags in mask, whoever else does so. */
void file_set_flags(struct file *file, u32 mask, u32 flags);

/* iov.c: the buffers of a call, in user memory. */
struct iovec {
	void __user *base;
	size_t len;
};

/* Linux's limit for one call: whole pages below 2 GiB. */
#define MAX_RW_BYTES 0x7ffff000UL

/* What is still to be moved: left bytes from offset in *iov on. */
struct iov_iter {
	const struct iovec *iov;
	size_t offset;
	size_t left; /* at most MAX_RW_BYTES */
};

/* Copy and check a vector; kfree() it. ERR_PTR on failure. */
struct iovec *iovec_from_user(const struct iovec __user *user_iov, unsigned long nr);
void iov_iter_init(struct iov_iter *iter, const struct iovec *iov, unsigned int nr);
/*
 * Move at most n bytes and the iterator: bytes moved, fewer than asked for only at a bad address.
 */
size_t iov_copy_from(void *dst, struct iov_iter *iter, size_t n);
size_t iov_copy_to(struct iov_iter *iter, const void *src, size_t n);
size_t iov_clear(struct iov_iter *iter, size_t n); /* zeros */
/* 0 when the next n bytes can be written to now, or -EFAULT. */
int iov_make_writable(struct iov_iter iter, size_t n);

/* bounce.c: read and write by file->ops. Bytes done or a negative errno. */
ssize_t bounce_read(struct file *file, struct iov_iter *iter, u64 pos);
ssize_t bounce_write(struct file *file, struct iov_iter *iter, u64 pos);

/* poll.c: a descriptor to be waited for. */
struct poll_item {
	int fd;		   /* negative: none, nothing happens there */
	u32 events;	   /* POLL* that matter */
	u32 revents;	   /* out: what there is of them, or POLLNVAL */
	struct file *file; /* used inside */
};

/*
 * Wait until one of them has something, at most until clock_monotonic_ns() reaches the deadline:
 * how many have; 0 when time is over, -EINTR by a signal, -ENOMEM.
 */
int poll_items(struct poll_item *items, unsigned int nr, u64 deadline_ns);

/* A user's relative time as a deadline; NULL: TIME_NEVER_NS. 0, -EFAULT, -EINVAL. */
int poll_deadline(const struct timespec64 __user *user_time, u64 *deadline_ns);
int poll_deadline_of(const struct timespec64 *time, u64 *deadline_ns); /* 0 or -EINVAL */
u64 poll_deadline_ms(int timeout_ms);				       /* negative: TIME_NEVER_NS */
struct timespec64 poll_time_left(u64 deadline_ns);
/* What is left of it, to the user; a bad address is no error. */
void poll_return_time(struct timespec64 __user *user_time, u64 deadline_ns);
/* For the time of a call, when user_mask is given. poll_end_mask() gives the call's result. */
int poll_begin_mask(const u64 __user *user_mask, size_t mask_bytes);
long poll_end_mask(long ret, bool has_mask);

/* A file that does not announce changes is always ready. */
static inline bool file_can_poll(const struct file *file)
{
	return file->ops && file->ops->poll;
}

/* epoll.c: the file's last reference is gone: nobody watches it any more. */
void epoll_forget_file(struct file *file);

/* names.c: a socket's name; the inode has a reference for the caller. 0 or a negative errno. */
int name_make_socket(const char *path, struct inode **inode);

/* pipe.c */
#define PIPE_BYTES 65536
/* Make a new S_IFIFO inode a pipe without ends. 0 or -ENOMEM. */
int pipe_attach(struct inode *inode);

/* open.c: what file_open() and the system calls share. */
struct file *open_at(const struct path *base, const char *path, u32 flags, u32 mode);

/*
 * fdtable.c: lowest free descriptor at or above from, which takes over the reference; or -EMFILE,
 * -ENOMEM.
 */
int fd_install(struct file *file, int from, bool close_on_exec);
/* The lowest free one; without one, the reference is dropped. */
int fd_install_or_put(struct file *file, bool close_on_exec);
/* Installs two files and gives their numbers to the user. After an error neither is left. */
int fd_install_pair(struct file *const files[2], bool close_on_exec, int __user *user_fds);

/*
 * Puts a file (its reference passes to the table), or none, in the place of a valid descriptor's,
 * which is closed. Returns 1 if there was one, 0 if not, or -ENOMEM: then nothing has changed.
 */
int fd_replace(int fd, struct file *file, bool close_on_exec);
long fd_set_close_on_exec(int fd, bool on); /* 0 or -EBADF */
bool fd_get_close_on_exec(int fd);

/* Descriptors of the current process are below this: RLIMIT_NOFILE, at most FILE_MAX_FDS. */
int fd_limit(void);

/* The file of a descriptor of any table, with a reference; NULL: not open. */
struct file *files_get_file(struct files *files, int fd);
/* The first open descriptor from fd on, or -1. */
int files_next_fd(struct files *files, int fd);

/* The current process's open file, also one that is open as a path only (O_PATH); as fd_get(). */
struct file *fd_get_any(int fd);
/* As fd_get(), but only for files with these operations. ERR_PTR(-EBADF), or -EINVAL for others. */
struct file *fd_get_with(int fd, const struct file_ops *ops);
/* What fd, or AT_FDCWD, leads to, with references. 0 or -EBADF. */
int fd_get_path(int fd, struct path *path);

/* fs_info.c: the working directory, with references; of any process, or of the current one. */
struct path fs_info_cwd(struct fs_info *fs);
struct path cwd_get(void);
void cwd_set(const struct path *path); /* takes over the references */
u32 fs_umask(void);		       /* the current process's */

#endif
