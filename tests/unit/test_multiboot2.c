// SPDX-License-Identifier: BSD-2-Clause
/* Tests arch/x86/boot/multiboot2.c with good and bad tags. See lego_names.h. */

#include <stdlib.h>

#include "unit_test.h"

#include <lego/boot.h>
#include <lego/bug.h>
#include <lego/printk.h>
#include <lego/string.h>

#include "../../arch/x86/boot/info.h"

#define INFO_PHYS  0x10000ULL
#define MAX_MEMORY 8

struct boot_info boot_info;

/*
 * The boot information, in a block of exactly its size, so that the sanitizer detects reads beyond
 * it.
 */
static u8 *block;
static u32 block_bytes, build_bytes;
static u8 build[1024];
static jmp_buf at_panic;

static char cmdline[64];
static struct boot_region memory[MAX_MEMORY];
static unsigned int nr_memory, nr_rsdp, nr_warnings;
static u64 initrd_start, initrd_bytes;
static u8 first_of_rsdp;

const void *boot_data(u64 phys, u64 size_bytes)
{
	return phys == INFO_PHYS && size_bytes <= block_bytes ? block : NULL;
}

void boot_set_cmdline(const char *text)
{
	strscpy(cmdline, text, sizeof(cmdline));
}

void boot_add_memory(u64 start, u64 size_bytes, bool usable)
{
	if (nr_memory < MAX_MEMORY)
		memory[nr_memory] = (struct boot_region){ start, size_bytes, usable };
	nr_memory++;
}

void boot_set_initrd(u64 start, u64 size_bytes)
{
	initrd_start = start;
	initrd_bytes = size_bytes;
}

void boot_set_rsdp(const void *rsdp, u32 size_bytes)
{
	first_of_rsdp = size_bytes ? *(const u8 *)rsdp : 0;
	boot_info.rsdp = 1;
	nr_rsdp++;
}

int printk(const char *fmt, ...)
{
	nr_warnings += !strncmp(fmt, "boot:", 5);
	return 0;
}

void panic(const char *fmt, ...)
{
	longjmp(at_panic, 1);
}

static void put(const void *data, u32 nr_bytes)
{
	memcpy(build + build_bytes, data, nr_bytes);
	build_bytes += nr_bytes;
}

static void put_u32(u32 value)
{
	put(&value, sizeof(value));
}

static void put_u64(u64 value)
{
	put(&value, sizeof(value));
}

static void start_info(void)
{
	memset(build, 0xa5, sizeof(build));
	build_bytes = 0;
	put_u32(0);
	put_u32(0);
}

static void start_tag(u32 type, u32 size_bytes)
{
	build_bytes = ALIGN_UP(build_bytes, 8);
	put_u32(type);
	put_u32(size_bytes);
}

static void put_tag(u32 type, const void *content, u32 nr_bytes)
{
	start_tag(type, 8 + nr_bytes);
	put(content, nr_bytes);
}

/* Returns false if the kernel panics. */
static bool read_block(void)
{
	bool survived = false;

	memset(cmdline, 0, sizeof(cmdline));
	nr_memory = nr_rsdp = nr_warnings = 0;
	initrd_start = initrd_bytes = boot_info.rsdp = 0;
	if (!setjmp(at_panic)) {
		multiboot2_read(INFO_PHYS);
		survived = true;
	}
	return survived;
}

/* Reads the first total_bytes of what start_info() and put_*() have built. */
static bool read_info(u32 total_bytes)
{
	bool survived;

	memcpy(build, &total_bytes, sizeof(total_bytes));
	block_bytes = total_bytes;
	block = malloc(total_bytes);
	memcpy(block, build, total_bytes);
	survived = read_block();
	free(block);
	return survived;
}

static void make_good(void)
{
	start_info();
	put_tag(2, "a loader", 9);
	put_tag(1, "init=/x -- y", 13);
	start_tag(3, 8 + 8 + 2);
	put_u32(0x200000);
	put_u32(0x234567);
	put("m", 2);
	start_tag(3, 8 + 8 + 1);
	put_u32(0x300000);
	put_u32(0x300001);
	put("", 1);
	start_tag(6, 8 + 8 + 2 * 32);
	put_u32(32); /* later versions may use larger entries */
	put_u32(0);
	put_u64(0x1000);
	put_u64(0x2000);
	put_u32(1);
	put_u32(0);
	put_u64(~0ULL);
	put_u64(0x100000000);
	put_u64(0x200000000);
	put_u32(4);
	put_u32(0);
	put_u64(~0ULL);
	put_tag(14, "1SD PTR 1234567890AB", 20);
	put_tag(15, "2SD PTR 1234567890AB1234567890ABCDEF", 36);
	put_tag(999, "unknown", 8);
	start_tag(0, 8);
}

HOST_TEST(good)
{
	make_good();
	assert_true(read_info(build_bytes));
	assert_string_equal(cmdline, "init=/x -- y");
	assert_int_equal(initrd_start, 0x200000);
	assert_int_equal(initrd_bytes, 0x34567);
	assert_int_equal(nr_memory, 2);
	assert_int_equal(memory[0].start, 0x1000);
	assert_int_equal(memory[0].size_bytes, 0x2000);
	assert_true(memory[0].usable);
	assert_int_equal(memory[1].start, 0x100000000);
	assert_int_equal(memory[1].size_bytes, 0x200000000);
	assert_false(memory[1].usable);
	assert_int_equal(first_of_rsdp, '2');
	assert_int_equal(nr_warnings, 0);
}

HOST_TEST(newer_rsdp_first)
{
	start_info();
	put_tag(15, "2SD PTR 1234567890AB1234567890ABCDEF", 36);
	put_tag(14, "1SD PTR 1234567890AB", 20);
	start_tag(0, 8);
	assert_true(read_info(build_bytes));
	assert_int_equal(nr_rsdp, 1);
	assert_int_equal(first_of_rsdp, '2');
}

/*
 * Truncates the information at every length. Nothing beyond the end may be read, and each
 * truncation warns.
 */
HOST_TEST(truncated)
{
	make_good();
	for (u32 total = 8; total < build_bytes; total++) {
		assert_true(read_info(total));
		assert_int_equal(nr_warnings, 1);
	}
}

HOST_TEST(not_mapped)
{
	make_good();
	block_bytes = 0;
	assert_false(read_block());
	/* The size is larger than what can be mapped. */
	block_bytes = 8;
	block = build;
	memset(build, 0xff, 4);
	assert_false(read_block());
}

HOST_TEST(bad_tags)
{
	static const u32 sizes[] = { 0, 7, 1000, 0x7fffffff, 0xfffffff9, 0xffffffff };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		start_info();
		start_tag(1, sizes[i]);
		put("x", 2);
		start_tag(0, 8);
		assert_true(read_info(build_bytes));
		assert_string_equal(cmdline, "");
		assert_int_equal(nr_warnings, 1);
	}
}

HOST_TEST(bad_content)
{
	start_info();
	put_tag(1, "no end", 6);
	put_tag(3, "\1\0\0", 4);
	start_tag(6, 8 + 8 + 24);
	put_u32(8); /* smaller than an entry */
	put_u32(0);
	put_u64(0);
	put_u64(0x1000);
	put_u64(1);
	start_tag(0, 8);
	assert_true(read_info(build_bytes));
	assert_string_equal(cmdline, "");
	assert_int_equal(initrd_bytes, 0);
	assert_int_equal(nr_memory, 0);

	start_info();
	start_tag(3, 16);
	put_u32(0x2000);
	put_u32(0x1000);
	start_tag(6, 8 + 8 + 30);
	put_u32(24);
	put_u32(0);
	put_u64(0);
	put_u64(0x1000);
	put_u64(1);
	put("cut it", 6);
	start_tag(0, 8);
	assert_true(read_info(build_bytes));
	assert_int_equal(initrd_bytes, 0);
	assert_int_equal(nr_memory, 1);
}

/* Changes each byte. The sanitizer stops the test if anything beyond the end is read. */
HOST_TEST(noise)
{
	u32 total;

	make_good();
	total = build_bytes;
	for (u32 at = 8; at < total; at++) {
		u8 good = build[at];

		for (unsigned int bit = 0; bit < 8; bit++) {
			build[at] = good ^ 1 << bit;
			assert_true(read_info(total));
		}
		build[at] = 0xff;
		assert_true(read_info(total));
		build[at] = good;
	}
}
