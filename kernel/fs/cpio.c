// SPDX-License-Identifier: BSD-2-Clause
/*
 * Unpacks cpio archives in the newc format: records of "070701" (or "070702", with a checksum),
 * thirteen fields of eight hex digits, a name with a NUL, padding to 4 bytes, data, padding to 4
 * bytes. "TRAILER!!!" ends an archive; zeros and further archives may follow. Every field is
 * checked before use. Files unpacked before an error stay.
 */

#include "inode.h"
#include "path.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/printk.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/time.h>

#define MAGIC_BYTES  6
#define FIELD_DIGITS 8
#define HEADER_BYTES (MAGIC_BYTES + NR_FIELDS * FIELD_DIGITS)

enum field {
	FIELD_INO,
	FIELD_MODE,
	FIELD_UID,
	FIELD_GID,
	FIELD_NLINK,
	FIELD_MTIME,
	FIELD_SIZE,
	FIELD_DEV_MAJOR,
	FIELD_DEV_MINOR,
	FIELD_RDEV_MAJOR,
	FIELD_RDEV_MINOR,
	FIELD_NAME_BYTES,
	FIELD_CHECK,
	NR_FIELDS,
};

struct archive {
	const char *data;
	size_t size_bytes;
	size_t at; /* offset of the record being read */
};

struct record {
	u32 fields[NR_FIELDS];
	bool has_checksum;
	const char *name;
	const char *data;
	size_t bytes; /* length of the record, including padding */
};

static int bad(const struct archive *archive, const char *why)
{
	printk("initramfs: bad archive at byte %zu of %zu: %s\n", archive->at, archive->size_bytes,
	       why);
	return -EINVAL;
}

static bool read_field(const char *digits, u32 *value)
{
	*value = 0;
	for (int i = 0; i < FIELD_DIGITS; i++) {
		char c = digits[i];

		*value <<= 4;
		if (c >= '0' && c <= '9')
			*value |= c - '0';
		else if (c >= 'a' && c <= 'f')
			*value |= c - 'a' + 10;
		else if (c >= 'A' && c <= 'F')
			*value |= c - 'A' + 10;
		else
			return false;
	}
	return true;
}

/* Fields are 32 bits, so these sums cannot overflow. */
static int read_record(const struct archive *archive, struct record *record)
{
	const char *start = archive->data + archive->at;
	size_t left = archive->size_bytes - archive->at, name_bytes, data_at;

	if (left < HEADER_BYTES)
		return bad(archive, "cut in a header");
	if (memcmp(start, "070701", MAGIC_BYTES) && memcmp(start, "070702", MAGIC_BYTES))
		return bad(archive, "no newc magic (a compressed archive must be unpacked first)");
	record->has_checksum = start[MAGIC_BYTES - 1] == '2';
	for (int i = 0; i < NR_FIELDS; i++) {
		if (!read_field(start + MAGIC_BYTES + i * FIELD_DIGITS, &record->fields[i]))
			return bad(archive, "a header field is not hexadecimal");
	}

	name_bytes = record->fields[FIELD_NAME_BYTES];
	record->name = start + HEADER_BYTES;
	if (!name_bytes || name_bytes > PATH_MAX)
		return bad(archive, "a name that is empty or too long");
	if (name_bytes > left - HEADER_BYTES)
		return bad(archive, "cut in a name");
	if (strnlen(record->name, name_bytes) != name_bytes - 1)
		return bad(archive, "a name that does not end where its header says");

	data_at = ALIGN_UP(HEADER_BYTES + name_bytes, 4);
	record->data = start + data_at;
	if (data_at > left || record->fields[FIELD_SIZE] > left - data_at)
		return bad(archive, "cut in the data of a file");
	record->bytes = ALIGN_UP(data_at + record->fields[FIELD_SIZE], 4);
	return 0;
}

static bool checksum_is_right(const struct record *record)
{
	u32 sum = 0;

	for (u32 i = 0; i < record->fields[FIELD_SIZE]; i++)
		sum += (u8)record->data[i];
	return sum == record->fields[FIELD_CHECK];
}

/*
 * Returns the directory for a name, and makes missing directories on the way. Stores the last
 * component in `last`; it is empty for the root. "." components are skipped. Returns ERR_PTR on
 * failure.
 */
static struct inode *find_place(const char *name, char *last)
{
	struct inode *dir = root_inode, *child;

	ASSERT_HELD(&tree_lock);
	*last = '\0';
	for (;;) {
		size_t len = 0;

		while (*name == '/')
			name++;
		while (name[len] && name[len] != '/')
			len++;
		if (!len)
			break;
		if (len == 1 && name[0] == '.') {
			name++;
			continue;
		}
		if (len > NAME_MAX || (len == 2 && name[0] == '.' && name[1] == '.'))
			return ERR_PTR(-EINVAL);
		if (*last) {
			child = entry_inode(tree_find(dir, last, strlen(last)));
			if (!child)
				child = tree_create(dir, last, S_IFDIR | 0755);
			if (IS_ERR(child))
				return child;
			if (!S_ISDIR(child->mode))
				return ERR_PTR(-ENOTDIR);
			dir = child;
		}
		memcpy(last, name, len);
		last[len] = '\0';
		name += len;
	}
	return dir;
}

/*
 * Returns an inode for a record, with a reference: a new one, or an existing one of the same type.
 */
static struct inode *make_inode(const char *name, u32 mode)
{
	struct inode *parent, *inode;
	char last[NAME_MAX + 1];

	tree_lock_write();
	parent = find_place(name, last);
	inode = parent;
	if (IS_ERR(parent))
		goto out_unlock;
	inode = *last ? entry_inode(tree_find(parent, last, strlen(last))) : root_inode;
	if (inode && (inode->mode & S_IFMT) != (mode & S_IFMT)) {
		if (!list_empty(&inode->children) || inode == root_inode) {
			inode = ERR_PTR(-EISDIR);
			goto out_unlock;
		}
		tree_remove(inode);
		inode = NULL;
	}
	if (!inode)
		inode = tree_create(parent, last, mode);
	if (!IS_ERR(inode)) {
		inode->mode = mode & (S_IFMT | 07777);
		inode_get(inode);
	}
out_unlock:
	tree_unlock();
	return inode;
}

static int fill_regular(struct inode *inode, const struct record *record)
{
	u32 size = record->fields[FIELD_SIZE];
	ssize_t done;

	mutex_lock(&inode->write_lock);
	inode_truncate(inode, 0);
	done = inode_write(inode, record->data, size, 0, false);
	mutex_unlock(&inode->write_lock);
	if (done < 0)
		return done;
	return done == size ? 0 : -ENOMEM;
}

static int fill(struct inode *inode, const struct record *record, char *target)
{
	const u32 *fields = record->fields;
	int error = 0;

	if (S_ISREG(inode->mode)) {
		error = fill_regular(inode, record);
	} else if (S_ISLNK(inode->mode)) {
		kfree(inode->target);
		inode->target = target;
		inode->size_bytes = strlen(target);
	} else if (S_ISCHR(inode->mode)) {
		inode->rdev = MAKE_DEVICE(fields[FIELD_RDEV_MAJOR], fields[FIELD_RDEV_MINOR]);
		inode->device = device_find(inode->rdev);
	}
	inode->uid = fields[FIELD_UID];
	inode->gid = fields[FIELD_GID];
	inode->mtime_ns = fields[FIELD_MTIME] * NSEC_PER_SEC;
	return error;
}

/* Copies the target of a symbolic link first, because a link in the tree must have a target. */
static char *copy_target(const struct record *record)
{
	u32 size = record->fields[FIELD_SIZE];
	char *target;

	if (!size || size >= PATH_MAX || strnlen(record->data, size) != size)
		return ERR_PTR(-EINVAL);
	target = kmalloc(size + 1);
	if (!target)
		return ERR_PTR(-ENOMEM);
	memcpy(target, record->data, size);
	target[size] = '\0';
	return target;
}

static int unpack_inode(const struct record *record)
{
	u32 mode = record->fields[FIELD_MODE];
	struct inode *inode;
	char *target = NULL;
	int error;

	if (S_ISLNK(mode))
		target = copy_target(record);
	if (IS_ERR(target))
		return PTR_ERR(target);
	inode = make_inode(record->name, mode);
	if (IS_ERR(inode)) {
		kfree(target);
		return PTR_ERR(inode);
	}
	error = fill(inode, record, target);
	inode_put(inode);
	return error;
}

static bool type_is_known(u32 mode)
{
	return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode) || S_ISCHR(mode);
}

static int unpack_record(const struct archive *archive, const struct record *record)
{
	const u32 *fields = record->fields;
	int error;

	if (!type_is_known(fields[FIELD_MODE])) {
		printk("initramfs: %pE: left out, mode %o is not a type we have\n", record->name,
		       fields[FIELD_MODE]);
		return 0;
	}
	/* The first names of a hard link have no data of their own. */
	if (S_ISREG(fields[FIELD_MODE]) && fields[FIELD_NLINK] > 1 && !fields[FIELD_SIZE])
		return bad(archive, "a hard link, which there is no support for");
	if (record->has_checksum && S_ISREG(fields[FIELD_MODE]) && !checksum_is_right(record))
		return bad(archive, "a wrong checksum");
	error = unpack_inode(record);
	if (error == -ENOMEM || error == -ENOSPC) {
		printk("initramfs: %pE: out of memory\n", record->name);
		return -ENOMEM;
	}
	if (error)
		return bad(archive, "a name or link that cannot be made");
	return 0;
}

/* Skips zeros between archives. Returns false at the end of the last one. */
static bool find_next_archive(struct archive *archive)
{
	while (archive->at < archive->size_bytes && !archive->data[archive->at])
		archive->at++;
	return archive->at < archive->size_bytes;
}

int initramfs_unpack(const void *data, size_t size_bytes, void (*used)(size_t bytes))
{
	struct archive archive = { .data = data, .size_bytes = size_bytes };
	struct record record;
	int error;

	while (find_next_archive(&archive)) {
		bool end = false;

		while (!end) {
			error = read_record(&archive, &record);
			if (error)
				return error;
			end = !strcmp(record.name, "TRAILER!!!");
			error = end ? 0 : unpack_record(&archive, &record);
			if (error)
				return error;
			/* The padding of the last record may be missing. */
			archive.at = min(archive.at + record.bytes, size_bytes);
			if (used)
				used(archive.at);
			cond_resched();
		}
	}
	return 0;
}
