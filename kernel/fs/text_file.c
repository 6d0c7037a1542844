// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <lego/errno.h>
#include <lego/slab.h>
#include <lego/string.h>

/*
 * Files whose content a function writes, and that do something when written to. Each read makes the
 * whole text and takes its part of it. They are character devices without a number.
 */

#define MAX_TEXT_BYTES	4096
#define MAX_WRITE_BYTES 256

struct text_file {
	struct device device;
	ssize_t (*read)(char *buf, size_t size);
	ssize_t (*write)(const char *text);
};

static const struct text_file *text_file_of(const struct file *file)
{
	return container_of(file->inode->device, struct text_file, device);
}

static ssize_t text_read(struct file *file, void *buf, size_t n, u64 pos)
{
	char *text = kmalloc(MAX_TEXT_BYTES);
	ssize_t len;

	if (!text)
		return -ENOMEM;
	len = text_file_of(file)->read(text, MAX_TEXT_BYTES);
	if (len > 0 && pos < len) {
		len = min((size_t)(len - pos), n);
		memcpy(buf, text + pos, len);
	} else if (len > 0) {
		len = 0;
	}
	kfree(text);
	return len;
}

/* One write is one whole text. */
static ssize_t text_write(struct file *file, const void *buf, size_t n, u64 pos)
{
	char text[MAX_WRITE_BYTES];
	ssize_t error;

	if (n >= sizeof(text))
		return -EINVAL;
	memcpy(text, buf, n);
	text[n] = '\0';
	if (strlen(text) != n)
		return -EINVAL;
	error = text_file_of(file)->write(text);
	return error < 0 ? error : (ssize_t)n;
}

static const struct file_ops text_file_ops = { .read = text_read, .write = text_write };

/* The directory of an absolute path, made if it is missing. With tree_lock held. */
static struct inode *make_directories(const char *path)
{
	struct inode *at = root_inode, *next;

	while (!IS_ERR(at)) {
		char name[NAME_MAX + 1];
		size_t len = 0;

		while (*path == '/')
			path++;
		if (!*path)
			break;
		while (*path && *path != '/' && len < NAME_MAX)
			name[len++] = *path++;
		name[len] = '\0';
		next = tree_find(at, name, len);
		at = next ? next : tree_create(at, name, S_IFDIR | 0755);
	}
	return at;
}

int fs_add_text_file(const char *directory, const char *name,
		     ssize_t (*read)(char *buf, size_t size), ssize_t (*write)(const char *text))
{
	struct text_file *text = kzalloc(sizeof(*text));
	struct inode *inode;

	if (!text)
		return -ENOMEM;
	text->device.name = name;
	text->device.ops = &text_file_ops;
	text->read = read;
	text->write = write;
	mutex_lock(&tree_lock);
	inode = make_directories(directory);
	if (!IS_ERR(inode))
		inode = tree_create(inode, name, S_IFCHR | 0644);
	if (!IS_ERR(inode))
		inode->device = &text->device;
	mutex_unlock(&tree_lock);
	if (!IS_ERR(inode))
		return 0;
	kfree(text);
	return PTR_ERR(inode);
}
