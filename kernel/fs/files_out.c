// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lists the files that leave the guest with its memory (<lego/files_out.h>). Their pages stay where
 * they are, with a reference, so the list costs 30 bytes for each run of adjacent pages, and any
 * file can leave that fits into memory. The list of a running machine takes no references: a page
 * that gets other content no longer has the file's checksum. Without get= and host=, nothing is
 * done.
 */

#include <lego/files_out.h>

#include "fd.h"
#include "inode.h"
#include "mount.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/page.h>
#include <lego/params.h>
#include <lego/printk.h>
#include <lego/sched.h>
#include <lego/string.h>

#define MAX_WANTED 1024 /* bytes of get= */
#define PAGE_ROOM  (PAGE_SIZE - sizeof(u64))

/* Read by the host. */
struct files_out files_out __used = {
	.magic = FILES_OUT_MAGIC,
	.version = FILES_OUT_VERSION,
};

static char wanted[MAX_WANTED]; /* get= */

static int set_path(char *to, size_t size, const char *value)
{
	if (*value != '/' || strlen(value) >= size)
		return -EINVAL;
	strscpy(to, value, size);
	return 0;
}

static int set_get(const char *value)
{
	return set_path(wanted, sizeof(wanted), value);
}
/* Files and directories that `make run GET=` copies to the host after the run. %XX is a byte. */
BOOT_PARAM(get, "get", "/<path>[,/<path>...]", set_get);

static char host[256]; /* host= */

static int set_host(const char *value)
{
	return set_path(host, sizeof(host), value);
}
/* A directory whose files are copied to the host when they are closed, and after the run. */
BOOT_PARAM(host, "host", "/<path>", set_host);

static struct path host_dir; /* with references; inode NULL: none */

/* The state of the list that is being written; guarded by tree_lock. */
static struct {
	struct page *page; /* the last one; NULL: none */
	u32 room;	   /* in it */
	u64 bytes;
	u32 crc;
	bool failed;
	char path[PATH_MAX];
} list;

/* A table for add_to_crc(): the CRC-32 of gzip, of each byte. */
static u32 crc_of_byte[256];

static void make_crc_table(void)
{
	for (u32 byte = 0; byte < 256; byte++) {
		u32 crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
		crc_of_byte[byte] = crc;
	}
}

/* Begin with ~0; the result is ~crc. */
static u32 add_to_crc(u32 crc, const void *bytes, size_t n)
{
	for (const u8 *at = bytes; n--; at++)
		crc = crc >> 8 ^ crc_of_byte[(u8)crc ^ *at];
	return crc;
}

/* Goes on to the next page, which an earlier list may have left. Returns false if there is none. */
static bool add_page(void)
{
	u64 *next = list.page ? (u64 *)page_address(list.page) : &files_out.first;
	struct page *page = *next ? phys_to_page(*next) : page_alloc(0, PAGE_ZERO);

	if (!page)
		return false;
	*next = page_to_phys(page);
	list.page = page;
	list.room = PAGE_ROOM;
	return true;
}

static void begin_list(void)
{
	list.page = NULL;
	list.room = list.bytes = 0;
	list.crc = ~0u;
	list.failed = false;
}

static void publish_list(enum files_out_state state)
{
	files_out.bytes = list.bytes;
	files_out.crc32 = ~list.crc;
	smp_store_release(&files_out.state, state);
}

static void files_out_put(const char *bytes, size_t n)
{
	list.crc = add_to_crc(list.crc, bytes, n);
	while (n && !list.failed) {
		u32 part;

		if (!list.room && !add_page()) {
			list.failed = true;
			return;
		}
		part = min((u32)n, list.room);
		memcpy((char *)page_address(list.page) + PAGE_SIZE - list.room, bytes, part);
		list.room -= part;
		list.bytes += part;
		bytes += part;
		n -= part;
	}
}

static void put_text(const char *fmt, ...) __printf(1, 2);
static void put_text(const char *fmt, ...)
{
	char text[80];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	files_out_put(text, strlen(text));
}

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr("/_.,:=@~+-", c);
}

static void put_name(const char *kind, const char *name)
{
	put_text("%s ", kind);
	for (; *name; name++) {
		if (is_plain(*name))
			files_out_put(name, 1);
		else
			put_text("%%%02X", (u8)*name);
	}
}

/* Returns a page of the file's content with a reference; NULL: a hole. */
static struct page *content_page(struct inode *inode, u64 index)
{
	struct page *page;

	spin_lock(&inode->data_lock);
	page = index < inode->max_pages ? inode->pages[index] : NULL;
	if (page)
		page_get(page);
	spin_unlock(&inode->data_lock);
	return page;
}

static void put_run(u64 end, u64 frame_end, u64 nr)
{
	if (nr)
		put_text("data %llu %llu %llu\n", (unsigned long long)(end - nr),
			 (unsigned long long)(frame_end - nr), (unsigned long long)nr);
}

static u64 nr_pages_of(const struct inode *inode, u64 bytes)
{
	return min(DIV_ROUND_UP(bytes, PAGE_SIZE), READ_ONCE(inode->max_pages));
}

/* Reads the content, with or without tree_lock. Returns its checksum. */
static u32 sum_data(struct inode *inode, u64 bytes)
{
	u64 nr_pages = nr_pages_of(inode, bytes);
	u32 crc = ~0u;

	for (u64 index = 0; index < nr_pages; index++) {
		struct page *page = content_page(inode, index);

		if (!page)
			continue;
		crc = add_to_crc(crc, page_address(page),
				 min(bytes - index * PAGE_SIZE, PAGE_SIZE));
		page_put(page);
		cond_resched();
	}
	return ~crc;
}

static void list_data(struct inode *inode, u64 bytes)
{
	u64 nr_pages = nr_pages_of(inode, bytes), frame_end = 0, nr = 0, index;
	bool keep = files_out.state == FILES_OUT_WRITING;

	for (index = 0; index < nr_pages && !list.failed; index++) {
		struct page *page = content_page(inode, index);
		u64 frame = page ? page_to_phys(page) >> PAGE_SHIFT : 0;

		if (!page || frame != frame_end) {
			put_run(index, frame_end, nr);
			nr = 0;
		}
		if (page) {
			frame_end = frame + 1;
			nr++;
			if (!keep)
				page_put(page);
		}
		cond_resched();
	}
	put_run(index, frame_end, nr);
}

static const char *why_left(const struct inode *inode)
{
	if (S_ISLNK(inode->mode))
		return "link";
	return S_ISREG(inode->mode) ? "made-when-read" : "no-file";
}

/*
 * Lists a file. A directory takes a line only if the kernel makes what is in it. sum: the checksum
 * of the file's content, or NULL to read it.
 */
static void list_inode(struct mount *mount, struct inode *entry, const u32 *sum)
{
	struct path place = { mount, entry };
	struct inode *inode = entry_inode(entry);
	const char *path = path_write(&place, list.path, sizeof(list.path));
	u64 bytes = READ_ONCE(inode->size_bytes);

	ASSERT_HELD(&tree_lock);
	if (!path || (S_ISDIR(inode->mode) && !inode->ops))
		return;
	if (!S_ISREG(inode->mode) || inode->file_ops) {
		put_name("left", path);
		put_text(" %s\n", why_left(inode));
		return;
	}
	put_name("file", path);
	put_text(" %o %llu\n", inode->mode & 0777, (unsigned long long)bytes);
	list_data(inode, bytes);
	if (!list.failed)
		put_text("sum %08x\n", sum ? *sum : sum_data(inode, bytes));
}

/* Lists what is at and below a place, but not in other mounts. */
static void list_tree(const struct path *top)
{
	struct inode *inode = top->inode;

	ASSERT_HELD(&tree_lock);
	while (inode && !list.failed) {
		list_inode(top->mount, inode, NULL);
		if (!list_empty(&inode->children)) {
			inode = list_first_entry(&inode->children, struct inode, sibling);
			continue;
		}
		while (inode != top->inode && inode->sibling.next == &inode->parent->children)
			inode = inode->parent;
		inode = inode == top->inode ?
				NULL :
				list_entry(inode->sibling.next, struct inode, sibling);
	}
}

static int hex_digit(char c)
{
	const char *digits = "0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Copies a path of get= up to its comma, and undoes %XX. Returns what is behind it. */
static const char *take_path(const char *at, char *path)
{
	while (*at && *at != ',') {
		int high = *at == '%' ? hex_digit(at[1]) : -1,
		    low = high < 0 ? -1 : hex_digit(at[2]);

		*path++ = low < 0 ? *at : (char)(high << 4 | low);
		at += low < 0 ? 1 : 3;
	}
	*path = '\0';
	return *at ? at + 1 : at;
}

static void list_path(const char *path)
{
	struct path found;
	int error = path_find(&root_path, path, 0, &found);

	if (error) {
		put_name("none", path);
		put_text(" %d\n", -error);
		return;
	}
	tree_lock_write();
	list_tree(&found);
	tree_unlock();
	path_put(&found);
}

void files_out_init(void)
{
	if (*host && path_find(&root_path, host, 0, &host_dir))
		host_dir.inode = NULL;
	make_crc_table();
}

/* Returns true if the machine is about to be switched off. */
static bool is_over(void)
{
	return files_out.state == FILES_OUT_WRITING || files_out.state == FILES_OUT_COMPLETE;
}

static bool is_wanted(const struct inode *entry)
{
	ASSERT_HELD(&tree_lock);
	return host_dir.inode && !is_over() && tree_is_at_or_below(entry, host_dir.inode);
}

static void list_change(struct mount *mount, struct inode *entry, const u32 *sum)
{
	if (!is_wanted(entry))
		return;
	if (!list.bytes || list.bytes >= FILES_OUT_LIVE_BYTES || list.failed)
		begin_list();
	if (sum)
		list_inode(mount, entry, sum);
	else
		list_tree(&(struct path){ mount, entry });
	if (!list.failed)
		publish_list(FILES_OUT_LIVE);
}

void files_out_add(struct mount *mount, struct inode *entry)
{
	list_change(mount, entry, NULL);
}

/*
 * Reads the file without tree_lock, which all paths need. If another thread changes the file
 * meanwhile, the entry has a wrong checksum. That thread's close() adds a right one, and
 * closers_lock makes sure that it comes later: the host takes the last entry of a file.
 */
static void add_closed(struct file *file)
{
	static DEFINE_MUTEX(closers_lock); /* taken before tree_lock */
	struct inode *inode = entry_inode(file->inode);
	bool wanted;
	u32 sum;

	tree_lock_write();
	wanted = is_wanted(file->inode);
	tree_unlock();
	if (!wanted)
		return;
	mutex_lock(&closers_lock);
	sum = sum_data(inode, READ_ONCE(inode->size_bytes));
	tree_lock_write();
	list_change(file->mount, file->inode, &sum);
	tree_unlock();
	mutex_unlock(&closers_lock);
}

void files_out_close(struct file *file)
{
	might_sleep();
	if (host_dir.inode) {
		if (file_put_unless_last(file))
			return;
		add_closed(file);
	}
	file_put(file);
}

void files_out_write(void)
{
	static char path[MAX_WANTED];
	const char *at = wanted;

	might_sleep();
	tree_lock_write();
	if ((!*wanted && !*host) || is_over()) {
		tree_unlock();
		return;
	}
	files_out.state = FILES_OUT_WRITING;
	begin_list();
	tree_unlock();
	while (*at) {
		at = take_path(at, path);
		list_path(path);
	}
	if (*host)
		list_path(host);
	if (list.failed) {
		printk("get: no memory for the list of files\n");
		return;
	}
	publish_list(FILES_OUT_COMPLETE);
}
