/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FS_MOUNT_H
#define FS_MOUNT_H

/*
 * File systems and mounts: kinds of file systems, where they are mounted, and the memory that they
 * may use. tree_lock guards the list of mounts.
 */

#include "inode.h"
#include "path.h"

struct text;

/* A kind of file system. */
struct fs_type {
	const char *name;
	/*
	 * Makes the root with tree_create_root(), and its content. tree_lock is held. NULL: no
	 * memory.
	 */
	struct inode *(*make_root)(struct filesystem *fs);
	u32 magic;     /* for statfs() */
	bool single;   /* all mounts show the same file system; else each mount makes a new one */
	bool is_fixed; /* users cannot make, remove, rename or change anything in it */
	bool is_permanent; /* the kernel removes nothing from it */
	bool is_bounded;   /* its content is limited: see space.c */
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

/* mount.c */
extern struct path root_path;		     /* "/", for ever */
extern struct filesystem fs_without_name;    /* that of inodes without a place */
int fs_register(const struct fs_type *type); /* at boot; type stays. 0 or -ENOMEM */
void fs_show_types(struct text *text);	     /* for /proc/filesystems */
/*
 * Mounts a file system at boot, on a directory of the root file system, or of one that is mounted
 * on the first directory of the path. It is made if missing.
 */
void fs_mount_at_boot(const char *type, const char *path);
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

/*
 * space.c: limits the memory of all bounded file systems together, and each user's part. Charging
 * returns false if there is no room for the current process, or for the user who made the inode;
 * with force (for the initramfs) it always succeeds. An inode is charged before anything of it.
 * Calls for one inode exclude each other: they hold its data_lock, or it is new or goes away.
 */
bool space_charge(struct inode *inode, u64 bytes, bool force);
void space_uncharge(struct inode *inode, u64 bytes);
bool space_charge_inode(struct inode *inode, bool force);
void space_uncharge_inode(struct inode *inode);
struct space {
	u64 max_pages, free_pages, max_inodes, free_inodes;
	u64 available_pages; /* of free_pages, to the current process */
};
void space_get(struct space *space);

/* proc/root.c, sysfs.c and tracefs.c */
void proc_init(void);	 /* makes /proc */
void sysfs_init(void);	 /* makes /sys */
void tracefs_init(void); /* makes /sys/kernel/tracing */

#endif
