// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <lego/bug.h>
#include <lego/console.h>
#include <lego/errno.h>
#include <lego/string.h>

/* Character devices, with Linux's names and numbers. */

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

static const struct file_ops null_ops = { .read = null_read, .write = null_write };
static const struct file_ops zero_ops = { .read = zero_read, .write = null_write };

static const struct device devices[] = {
	{ MAKE_DEVICE(5, 1), "console", true, &console_file_ops },
	{ MAKE_DEVICE(4, 64), "ttyS0", true, &console_file_ops },
	{ MAKE_DEVICE(1, 3), "null", false, &null_ops },
	{ MAKE_DEVICE(1, 5), "zero", false, &zero_ops },
};

const struct device *device_find(u32 number)
{
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		if (devices[i].number == number)
			return &devices[i];
	}
	return NULL;
}

void device_init(void)
{
	struct inode *dev, *inode;

	mutex_lock(&tree_lock);
	dev = tree_create(root_inode, "dev", S_IFDIR | 0755);
	if (IS_ERR(dev))
		panic("no memory for /dev");
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		inode = tree_create(dev, devices[i].name, S_IFCHR | 0666);
		if (IS_ERR(inode))
			panic("no memory for /dev/%s", devices[i].name);
		inode->device = &devices[i];
	}
	mutex_unlock(&tree_lock);
}
