// SPDX-License-Identifier: BSD-2-Clause
/* Character devices, with Linux's names and numbers. */

#include "iov.h"
#include "mount.h"

#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/page.h>
#include <lego/random.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/tty.h>

static ssize_t null_read(struct file *file, void *buf, size_t n, u64 pos)
{
	return 0;
}

static ssize_t null_write(struct file *file, const void *buf, size_t n, u64 pos)
{
	return n;
}

static ssize_t zero_read(struct file *file, void *buf, size_t n, u64 pos)
{
	memset(buf, 0, n);
	return n;
}

static ssize_t zero_read_user(struct file *file, struct iov_iter *iter)
{
	size_t total = 0;

	while (iter->left) {
		size_t n = min(iter->left, (size_t)PAGE_SIZE), done = iov_clear(iter, n);

		total += done;
		if (done < n)
			return total ? (ssize_t)total : -EFAULT;
		if (task_interrupted(current))
			break;
		cond_resched();
	}
	return total;
}

static ssize_t full_write(struct file *file, const void *buf, size_t n, u64 pos)
{
	return -ENOSPC;
}

/* Reads both random devices: there is no pool that could be exhausted. Writes are ignored. */
static ssize_t random_read(struct file *file, void *buf, size_t n, u64 pos)
{
	random_bytes(buf, n);
	return n;
}

static const struct file_ops null_ops = {
	.read = null_read,
	.write = null_write,
	.stays_at_start = true,
};
static const struct file_ops zero_ops = {
	.read = zero_read,
	.read_user = zero_read_user,
	.write = null_write,
	.stays_at_start = true,
};
static const struct file_ops full_ops = {
	.read = zero_read,
	.read_user = zero_read_user,
	.write = full_write,
	.stays_at_start = true,
};
static const struct file_ops random_ops = { .read = random_read, .write = null_write };

static const struct device devices[] = {
	{ MAKE_DEVICE(5, 1), "console", 0600, true, &console_file_ops },
	{ MAKE_DEVICE(5, 0), "tty", 0666, true, &controlling_tty_file_ops },
	{ MAKE_DEVICE(4, 64), "ttyS0", 0600, true, &tty_file_ops },
	{ MAKE_DEVICE(1, 3), "null", 0666, false, &null_ops },
	{ MAKE_DEVICE(1, 5), "zero", 0666, false, &zero_ops },
	{ MAKE_DEVICE(1, 7), "full", 0666, false, &full_ops },
	{ MAKE_DEVICE(1, 8), "random", 0666, false, &random_ops },
	{ MAKE_DEVICE(1, 9), "urandom", 0666, false, &random_ops },
};

bool file_is_full_device(const struct file *file)
{
	return file->ops == &full_ops;
}

bool file_is_zero_device(const struct file *file)
{
	return file->ops == &zero_ops;
}

const struct device *device_find(u32 number)
{
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		if (devices[i].number == number)
			return &devices[i];
	}
	return NULL;
}

static const struct {
	const char *name, *target;
} links[] = {
	{ "fd", "/proc/self/fd" },
	{ "stdin", "/proc/self/fd/0" },
	{ "stdout", "/proc/self/fd/1" },
	{ "stderr", "/proc/self/fd/2" },
};

/* Makes /dev. Called once, at boot. */
static struct inode *make_root(struct filesystem *fs)
{
	struct inode *root = tree_create_root(fs, 0755), *inode;

	/* The C library keeps shm_open()'s and sem_open()'s files here. */
	if (root && IS_ERR(tree_create(root, "shm", S_IFDIR | 01777)))
		panic("no memory for /dev/shm");

	for (size_t i = 0; root && i < ARRAY_SIZE(links); i++) {
		inode = tree_create(root, links[i].name, S_IFLNK | 0777);
		if (!IS_ERR(inode))
			inode->target = kstrdup(links[i].target);
		if (IS_ERR(inode) || !inode->target)
			panic("no memory for /dev/%s", links[i].name);
		inode->size_bytes = strlen(inode->target);
	}

	for (size_t i = 0; root && i < ARRAY_SIZE(devices); i++) {
		inode = tree_create(root, devices[i].name, S_IFCHR | devices[i].mode);
		if (IS_ERR(inode))
			panic("no memory for /dev/%s", devices[i].name);
		inode->device = &devices[i];
		inode->rdev = devices[i].number;
	}
	return root;
}

static const struct fs_type devtmpfs_type = {
	.name = "devtmpfs",
	.make_root = make_root,
	.magic = 0x01021994, /* tmpfs's, as on Linux */
	.single = true,
	.is_bounded = true,
};

void device_init(void)
{
	if (fs_register(&devtmpfs_type))
		panic("no room for devtmpfs");
	fs_mount_at_boot(devtmpfs_type.name, "dev");
}
