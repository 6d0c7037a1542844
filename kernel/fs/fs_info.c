// SPDX-License-Identifier: BSD-2-Clause
/*
 * Working directory and umask. A spinlock guards them, because the threads of a process share them.
 */

#include "mount.h"

#include <lego/assert.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/syscall.h>

#define UMASK_DEFAULT 022

struct fs_info {
	atomic_t refs;
	spinlock_t lock; /* guards the rest */
	struct path cwd;
	u32 umask;
};

/* Allocates a struct. Takes over the references of cwd. */
static struct fs_info *alloc_fs_info(struct path cwd, u32 umask)
{
	struct fs_info *fs = kmalloc(sizeof(*fs));

	if (!fs) {
		path_put(&cwd);
		return NULL;
	}
	atomic_set(&fs->refs, 1);
	spin_lock_init(&fs->lock);
	fs->cwd = cwd;
	fs->umask = umask;
	return fs;
}

struct fs_info *fs_info_alloc(void)
{
	return alloc_fs_info(path_get(&root_path), UMASK_DEFAULT);
}

struct fs_info *fs_info_copy(struct fs_info *fs)
{
	struct path cwd;
	u32 umask;

	spin_lock(&fs->lock);
	cwd = path_get(&fs->cwd);
	umask = fs->umask;
	spin_unlock(&fs->lock);
	return alloc_fs_info(cwd, umask);
}

struct fs_info *fs_info_get(struct fs_info *fs)
{
	DEBUG_ASSERT(atomic_read(&fs->refs) > 0);
	atomic_inc(&fs->refs);
	return fs;
}

void fs_info_put(struct fs_info *fs)
{
	DEBUG_ASSERT(atomic_read(&fs->refs) > 0);
	might_sleep();
	if (!atomic_dec_and_test(&fs->refs))
		return;
	path_put(&fs->cwd);
	kfree(fs);
}

struct path fs_info_cwd(struct fs_info *fs)
{
	struct path path;

	spin_lock(&fs->lock);
	path = path_get(&fs->cwd);
	spin_unlock(&fs->lock);
	return path;
}

struct path cwd_get(void)
{
	return fs_info_cwd(current->proc->fs);
}

void cwd_set(const struct path *path)
{
	struct fs_info *fs = current->proc->fs;
	struct path old;

	spin_lock(&fs->lock);
	old = fs->cwd;
	fs->cwd = *path;
	spin_unlock(&fs->lock);
	path_put(&old);
}

u32 fs_umask(void)
{
	return READ_ONCE(current->proc->fs->umask);
}

SYSCALL_DEFINE1(umask, u32, mask)
{
	return xchg(&current->proc->fs->umask, mask & 0777);
}
