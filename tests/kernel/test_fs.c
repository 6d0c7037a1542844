// SPDX-License-Identifier: BSD-2-Clause
/* Unpacks archives below /fstest. A builder makes each archive and corrupts it in one place. */

#include <lego/selftest.h>

#include "../../kernel/fs/mount.h"
#include "sleep.h"

#include <lego/errno.h>
#include <lego/leak.h>
#include <lego/page.h>
#include <lego/printk.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>

struct builder {
	char data[8192];
	size_t size_bytes;
};

static struct builder builder;

static void put_padded(const void *bytes, size_t n)
{
	memcpy(builder.data + builder.size_bytes, bytes, n);
	for (builder.size_bytes += n; builder.size_bytes % 4; builder.size_bytes++)
		builder.data[builder.size_bytes] = 0;
}

static void put_record(const char *name, u32 mode, const char *content)
{
	unsigned int size = strlen(content), name_bytes = strlen(name) + 1;

	builder.size_bytes +=
		scnprintf(builder.data + builder.size_bytes, 111,
			  "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", 1, mode, 0,
			  0, 1, 0, size, 0, 0, 0, 0, name_bytes, 0);
	put_padded(name, name_bytes);
	put_padded(content, size);
}

static void begin_archive(void)
{
	memset(&builder, 0, sizeof(builder));
	put_record("fstest", S_IFDIR | 0755, "");
}

static int unpack(void)
{
	return initramfs_unpack(builder.data, builder.size_bytes, NULL);
}

static void end_archive(void)
{
	put_record("TRAILER!!!", 0, "");
}

/* Returns the content of a file as text in a static buffer; NULL if the file cannot be opened. */
static const char *content(const char *path)
{
	static char buf[256];
	struct file *file = file_open(path, O_RDONLY, 0);
	ssize_t n;

	if (IS_ERR(file))
		return NULL;
	n = file_read_at(file, buf, sizeof(buf) - 1, 0);
	file_put(file);
	buf[max(n, 0L)] = '\0';
	return buf;
}

static bool has(const char *path, const char *want)
{
	const char *got = content(path);

	return got && !strcmp(got, want);
}

static long error_of(const char *path, u32 flags)
{
	struct file *file = file_open(path, flags, 0644);

	if (IS_ERR(file))
		return PTR_ERR(file);
	file_put(file);
	return 0;
}

/* Removes a tree, deepest entries first. */
static void remove_tree(struct inode *inode)
{
	while (!list_empty(&inode->children))
		remove_tree(list_first_entry(&inode->children, struct inode, sibling));
	tree_remove(inode);
}

static void clean_up(void)
{
	struct inode *inode;

	tree_lock_write();
	inode = tree_find(root_inode, "fstest", strlen("fstest"));
	if (inode)
		remove_tree(inode);
	tree_unlock();
}

SELFTEST(fs, cpio_good)
{
	u64 live_bytes;

	clean_up();
	live_bytes = slab_bytes_live();
	begin_archive();
	put_record("fstest/a", S_IFREG | 0644, "hello");
	put_record("./fstest//implied/b", S_IFREG | 0755, "");
	put_record("/fstest/link", S_IFLNK | 0777, "a");
	end_archive();
	put_padded("\0\0\0\0\0\0\0\0", 8);
	put_record("fstest/second", S_IFREG | 0600, "archive");
	end_archive();
	EXPECT_EQ(unpack(), 0);
	EXPECT(has("/fstest/a", "hello"));
	EXPECT(has("/fstest/implied/b", ""));
	EXPECT(has("/fstest/link", "hello"));
	EXPECT(has("/fstest/second", "archive"));

	/* Unpacks the same names with other content: the later archive wins. */
	begin_archive();
	put_record("fstest/a", S_IFREG | 0644, "hi");
	put_record("fstest/link", S_IFREG | 0644, "no link");
	end_archive();
	EXPECT_EQ(unpack(), 0);
	EXPECT(has("/fstest/a", "hi"));
	EXPECT(has("/fstest/link", "no link"));
	clean_up();
	EXPECT_EQ(slab_bytes_live(), live_bytes);
}

SELFTEST(fs, cpio_truncated)
{
	size_t whole, first;

	begin_archive();
	first = builder.size_bytes;
	put_record("fstest/a", S_IFREG | 0644, "hello, world");
	whole = builder.size_bytes;
	for (builder.size_bytes = first + 1; builder.size_bytes < whole; builder.size_bytes += 5) {
		if (unpack() != -EINVAL)
			selftest_fail_eq(__FILE__, __LINE__, "cut at", builder.size_bytes, whole);
		EXPECT_EQ(error_of("/fstest", O_RDONLY), 0);
		EXPECT_EQ(error_of("/fstest/a", O_RDONLY), -ENOENT);
	}
	builder.size_bytes = whole; /* no trailer */
	EXPECT_EQ(unpack(), -EINVAL);
	EXPECT(has("/fstest/a", "hello, world"));
	clean_up();
}

/*
 * Unpacks an archive after overwriting bytes of its second record. at: offset from the start of
 * that record.
 */
static int unpack_spoilt(size_t at, const char *bytes)
{
	size_t second;

	begin_archive();
	second = builder.size_bytes;
	put_record("fstest/a", S_IFREG | 0644, "hello");
	end_archive();
	memcpy(builder.data + second + at, bytes, strlen(bytes));
	return unpack();
}

SELFTEST(fs, cpio_bad)
{
	EXPECT_EQ(unpack_spoilt(0, "070707"), -EINVAL);
	EXPECT_EQ(unpack_spoilt(0, "\x1f\x8b"), -EINVAL);
	EXPECT_EQ(unpack_spoilt(6, "0000000g"), -EINVAL);
	EXPECT_EQ(unpack_spoilt(54, "ffffffff"), -EINVAL);  /* size */
	EXPECT_EQ(unpack_spoilt(54, "00001000"), -EINVAL);  /* one byte past the end */
	EXPECT_EQ(unpack_spoilt(94, "00000000"), -EINVAL);  /* no name */
	EXPECT_EQ(unpack_spoilt(94, "ffffffff"), -EINVAL);  /* name too long */
	EXPECT_EQ(unpack_spoilt(94, "00000008"), -EINVAL);  /* name without its NUL */
	EXPECT_EQ(unpack_spoilt(94, "0000000a"), -EINVAL);  /* NUL too early */
	EXPECT_EQ(unpack_spoilt(110, "../../aa"), -EINVAL); /* out of the tree */
	EXPECT_EQ(error_of("/fstest", O_RDONLY), 0);
	clean_up();
	begin_archive();
	put_record("fstest/a", S_IFREG | 0644, "x");
	put_record("fstest/a/b", S_IFREG | 0644, "x"); /* below a file */
	end_archive();
	EXPECT_EQ(unpack(), -EINVAL);
	clean_up();
}

SELFTEST(fs, paths)
{
	static char long_name[NAME_MAX + 8];

	begin_archive();
	put_record("fstest/dir/file", S_IFREG | 0644, "x");
	put_record("fstest/up", S_IFLNK | 0777, "dir/../dir/");
	put_record("fstest/absolute", S_IFLNK | 0777, "/fstest/dir/file");
	put_record("fstest/loop", S_IFLNK | 0777, "loop");
	put_record("fstest/dangling", S_IFLNK | 0777, "dir/new");
	end_archive();
	ASSERT(!unpack());

	EXPECT(has("//fstest/.//dir/../dir/file", "x"));
	EXPECT(has("/../../fstest/up/file", "x"));
	EXPECT(has("/fstest/absolute", "x"));
	EXPECT_EQ(error_of("/fstest/loop", O_RDONLY), -ELOOP);
	EXPECT_EQ(error_of("/fstest/loop/x", O_RDONLY), -ELOOP);
	EXPECT_EQ(error_of("/fstest/dir/file/", O_RDONLY), -ENOTDIR);
	EXPECT_EQ(error_of("/fstest/dir/file/x", O_RDONLY), -ENOTDIR);
	EXPECT_EQ(error_of("/fstest/no/x", O_RDONLY), -ENOENT);
	EXPECT_EQ(error_of("/fstest/no/", O_RDWR | O_CREAT), -EISDIR);
	EXPECT_EQ(error_of("", O_RDONLY), -ENOENT);
	EXPECT_EQ(error_of("/fstest/dir", O_WRONLY), -EISDIR);
	EXPECT_EQ(error_of("/fstest/dir/file", O_RDONLY | O_DIRECTORY), -ENOTDIR);
	EXPECT_EQ(error_of("/fstest/dir/file", O_RDWR | O_CREAT | O_EXCL), -EEXIST);
	EXPECT_EQ(error_of("/fstest/absolute", O_RDONLY | O_NOFOLLOW), -ELOOP);
	EXPECT_EQ(error_of("/fstest/dangling", O_RDONLY), -ENOENT);
	EXPECT_EQ(error_of("/fstest/dangling", O_RDWR | O_CREAT), 0);
	EXPECT_EQ(error_of("/fstest/dir/new", O_RDONLY), 0);

	memset(long_name, 'n', sizeof(long_name) - 1);
	long_name[0] = '/';
	EXPECT_EQ(error_of(long_name, O_RDONLY), -ENAMETOOLONG);
	long_name[NAME_MAX + 1] = '\0';
	EXPECT_EQ(error_of(long_name, O_RDONLY), -ENOENT);
	clean_up();
}

SELFTEST(fs, data)
{
	struct leak_counts before;
	struct inode *inode;
	struct page *page;
	char buf[16];

	clean_up();
	leak_snapshot(&before);
	tree_lock_write();
	inode = tree_create(root_inode, "fstest", S_IFREG | 0644);
	tree_unlock();
	ASSERT(!IS_ERR(inode));
	mutex_lock(&inode->write_lock);

	/* Reads a hole, data across a page border, and at the end of the file. */
	EXPECT_EQ(inode_write(inode, "0123456789", 10, 3 * PAGE_SIZE - 5, false), 10);
	EXPECT_EQ(inode->size_bytes, 3 * PAGE_SIZE + 5);
	memset(buf, 'x', sizeof(buf));
	EXPECT_EQ(inode_read(inode, buf, 4, PAGE_SIZE, false), 4);
	EXPECT(!memcmp(buf, "\0\0\0\0x", 5));
	EXPECT_EQ(inode_read(inode, buf, 16, 3 * PAGE_SIZE - 3, false), 8);
	EXPECT(!memcmp(buf, "23456789", 8));
	EXPECT_EQ(inode_read(inode, buf, 1, 3 * PAGE_SIZE + 5, false), 0);
	EXPECT_EQ(inode_read(inode, buf, 1, ~0ULL, false), 0);

	/* Bytes removed by a truncation read as zeros when the file grows again. */
	EXPECT_EQ(inode_truncate(inode, 3 * PAGE_SIZE + 1), 0);
	EXPECT_EQ(inode_truncate(inode, 4 * PAGE_SIZE), 0);
	EXPECT_EQ(inode_read(inode, buf, 4, 3 * PAGE_SIZE, false), 4);
	EXPECT(!memcmp(buf, "5\0\0\0", 4));
	EXPECT_EQ(inode_truncate(inode, ~0ULL >> 1), -EFBIG);
	EXPECT_EQ(inode_write(inode, "x", 1, ~0ULL >> 1, false), -EFBIG);
	mutex_unlock(&inode->write_lock);

	page = inode_get_page(inode, 3);
	ASSERT(!IS_ERR(page));
	EXPECT_EQ(*(char *)page_address(page), '5');
	page_put(page);
	EXPECT_EQ(PTR_ERR(inode_get_page(inode, 4)), -ENXIO);

	clean_up();
	EXPECT(leak_check(&before));
}

SELFTEST(fs, devices)
{
	struct file *file = file_open("/dev/zero", O_RDWR, 0);
	char buf[4] = "xxx";

	ASSERT(!IS_ERR(file));
	EXPECT_EQ(file->ops->read(file, buf, 4, 0), 4);
	EXPECT(!memcmp(buf, "\0\0\0\0", 4));
	EXPECT_EQ(file_read_at(file, buf, 4, 0), -EINVAL);
	EXPECT_EQ(PTR_ERR(file_get_page(file, 0)), -ENXIO);
	file_put(file);
	EXPECT_EQ(error_of("/dev/console", O_RDWR), 0);
	EXPECT_EQ(error_of("/dev/ttyS0", O_RDWR), 0);
	EXPECT_EQ(error_of("/dev/null", O_RDWR | O_CREAT | O_TRUNC), 0);
}

/* Removes the names of one file in turn. The other names stay; the last removal frees the inode. */
SELFTEST(fs, links)
{
	struct inode *dir, *inode;
	u64 live_bytes;

	clean_up();
	live_bytes = slab_bytes_live();
	tree_lock_write();
	dir = tree_create(root_inode, "fstest", S_IFDIR | 0755);
	inode = tree_create(dir, "a", S_IFREG | 0644);
	EXPECT_EQ(tree_link(dir, "b", inode), 0);
	EXPECT_EQ(tree_link(dir, "c", inode), 0);
	EXPECT_EQ(tree_nr_links(inode), 3);
	EXPECT(entry_inode(tree_find(dir, "b", 1)) == inode);

	tree_remove(tree_find(dir, "a", 1)); /* the inode's first name */
	EXPECT(!tree_find(dir, "a", 1));
	EXPECT(entry_inode(tree_find(dir, "b", 1)) == inode);
	EXPECT(entry_inode(tree_find(dir, "c", 1)) == inode);
	EXPECT_EQ(tree_nr_links(inode), 2);
	EXPECT_EQ(tree_move(tree_find(dir, "b", 1), root_inode, "fstest2"), 0);
	EXPECT(entry_inode(tree_find(root_inode, "fstest2", 7)) == inode);
	tree_remove(tree_find(root_inode, "fstest2", 7));
	EXPECT_EQ(tree_nr_links(inode), 1);
	tree_remove(tree_find(dir, "c", 1));
	EXPECT(list_empty(&dir->children));
	tree_unlock();
	clean_up();
	EXPECT_EQ(slab_bytes_live(), live_bytes);
}

/* Unmounts what is mounted at path, as umount2() does. */
static int unmount(const char *path, bool lazily)
{
	LIST_HEAD(detached);
	struct path at;
	int error = path_find(&root_path, path, 0, &at);

	if (error)
		return error;
	tree_lock_write();
	error = mount_detach(at.mount, lazily, &detached);
	tree_unlock();
	path_put(&at);
	mount_drop_detached(&detached);
	return error;
}

static int mount(const char *type, const char *path)
{
	struct path at;
	int error = path_find(&root_path, path, 0, &at);

	if (error)
		return error;
	tree_lock_write();
	error = mount_attach(type, &at, "test", 0);
	tree_unlock();
	path_put(&at);
	return error;
}

/*
 * A mount covers the directory below it, is busy while a file in it is open, and frees all its
 * memory.
 */
SELFTEST(fs, mounts)
{
	struct leak_counts before;
	struct file *file;

	begin_archive();
	put_record("fstest/dir/below", S_IFREG | 0644, "covered");
	end_archive();
	ASSERT(!unpack());
	leak_snapshot(&before);

	EXPECT_EQ(mount("nosuchfs", "/fstest/dir"), -ENODEV);
	EXPECT_EQ(mount("tmpfs", "/fstest/dir/below"), -ENOTDIR);
	EXPECT_EQ(unmount("/", false), -EINVAL);
	EXPECT_EQ(mount("tmpfs", "/fstest/dir"), 0);
	EXPECT_EQ(error_of("/fstest/dir/below", O_RDONLY), -ENOENT);
	EXPECT_EQ(error_of("/fstest/dir/../dir/new", O_RDWR | O_CREAT), 0);
	EXPECT_EQ(mount("tmpfs", "/fstest/dir"), 0); /* on top of the first mount */
	EXPECT_EQ(error_of("/fstest/dir/new", O_RDONLY), -ENOENT);
	EXPECT_EQ(unmount("/fstest/dir", false), 0);

	file = file_open("/fstest/dir/new", O_RDWR, 0);
	ASSERT(!IS_ERR(file));
	mutex_lock(&file->inode->write_lock);
	EXPECT_EQ(inode_write(file->inode, "hello", 5, 100000, false), 5);
	mutex_unlock(&file->inode->write_lock);
	EXPECT_EQ(unmount("/fstest/dir", false), -EBUSY);
	EXPECT_EQ(unmount("/fstest/dir", true), 0);
	EXPECT(has("/fstest/dir/below", "covered"));
	EXPECT_EQ(file_size_bytes(file), 100005);
	file_put(file); /* the last reference to the mount */
	EXPECT(leak_check(&before));
	clean_up();
}

static struct file *opened;

static int open_root(void *unused)
{
	WRITE_ONCE(opened, file_open("/", O_RDONLY, 0));
	return 0;
}

SELFTEST(fs, lookups_run_beside_each_other)
{
	struct task *task = kthread_create(open_root, NULL, "opener");

	ASSERT(!IS_ERR(task));
	opened = NULL;
	tree_lock_read();
	task_wake(task);
	EXPECT(becomes(READ_ONCE(opened)));
	tree_unlock();
	ASSERT(becomes(READ_ONCE(opened)) && !IS_ERR(opened));
	file_put(opened);
	leak_wait_steady(); /* until the task is free: other tests count memory */
}
