/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_PATH_H
#define FS_PATH_H

/*
 * Places in the tree that users see, and the paths that lead to them: looked up from a directory,
 * usually the working directory of a process, and written for a place.
 */

#include <lego/fs.h>

#define PATH_MAX 4096 /* with the NUL */
#define NAME_MAX 255

/* A place in the tree that users see, with all mounts. */
struct path {
	struct mount *mount; /* NULL: of a file without a place */
	struct inode *inode;
};

struct path path_get(const struct path *path); /* a copy with references */
void path_put(struct path *path);	       /* with or without tree_lock */

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
 * Makes a reader of the tree a writer if the path leads through a generated directory.
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

/*
 * names.c: makes the name of a socket. The inode has a reference for the caller. Returns 0 or a
 * negative errno.
 */
int name_make_socket(const char *path, struct inode **inode);

/*
 * fs_info.c: return the working directory of any process, or of the current one, with references.
 */
struct path fs_info_cwd(struct fs_info *fs);
struct path cwd_get(void);
void cwd_set(const struct path *path); /* takes over the references */
u32 fs_umask(void);		       /* the current process's */

#endif
