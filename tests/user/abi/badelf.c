// SPDX-License-Identifier: BSD-2-Clause
/*
 * Programs that execve() must refuse: copies of this one with a broken header, and others with
 * random ones. A refusal must leave everything unchanged; thousands of them would show a leak. At
 * the end the unbroken copy is run, and prints PASS.
 *
 * Any kernel must return an error; the test checks which one where Linux has a rule.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "check.h"

#define NR_RANDOM 2000

static unsigned char *image; /* of this program */
static size_t image_bytes;
static Elf64_Ehdr good;
static Elf64_Phdr *loads[8];
static int nr_loads;

static Elf64_Ehdr *ehdr(void)
{
	return (Elf64_Ehdr *)image;
}

static Elf64_Phdr *phdrs(void)
{
	return (Elf64_Phdr *)(image + good.e_phoff);
}

static void read_self(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;

	CHECK(fd >= 0 && !fstat(fd, &st));
	image_bytes = st.st_size;
	image = malloc(image_bytes);
	CHECK(read(fd, image, image_bytes) == (ssize_t)image_bytes);
	close(fd);
	good = *ehdr();
	for (int i = 0; i < good.e_phnum; i++) {
		if (phdrs()[i].p_type == PT_LOAD)
			loads[nr_loads++] = &phdrs()[i];
	}
	CHECK(nr_loads >= 2);
}

/* Writes a file with the first bytes of the image, and zeros up to size. */
static void write_file(size_t bytes, size_t size, mode_t mode)
{
	int fd;

	unlink(check_file_name());
	fd = open(check_file_name(), O_CREAT | O_WRONLY | O_TRUNC, mode);
	CHECK(fd >= 0);
	CHECK(write(fd, image, bytes) == (ssize_t)bytes);
	CHECK(!ftruncate(fd, size));
	close(fd);
}

static int try_exec(void)
{
	static char *const argv[] = { "badelf", "broken", NULL };

	execve(check_file_name(), argv, NULL);
	return errno;
}

/*
 * Writes a file of the original's size, with only its first page, which has all headers. Executes
 * it.
 */
static int try_headers(void)
{
	write_file(4096, image_bytes, 0755);
	return try_exec();
}

/* Sets a field for one attempt, which must fail with this error. */
#define BREAK(error, field, value)                                                \
	do {                                                                      \
		__typeof__(field) old = (field);                                  \
		int got;                                                          \
                                                                                  \
		(field) = (value);                                                \
		got = try_headers();                                              \
		(field) = old;                                                    \
		if ((error) ? !CHECK(got == (error)) : !CHECK(got != 0))          \
			printf("FAIL: %s = %s: errno %d\n", #field, #value, got); \
	} while (0)

static void test_ehdr(void)
{
	static const uint16_t types[] = { ET_NONE, ET_REL, ET_CORE, 5, 0xffff };
	static const uint16_t machines[] = { EM_NONE, EM_386, EM_AARCH64, 0xffff };
	static const uint64_t offsets[] = { 1ul << 32, 1ul << 63, -1ul, -56ul, -4096ul };

	for (int i = 0; i < 4; i++)
		BREAK(ENOEXEC, ehdr()->e_ident[i], 0);
	for (unsigned int i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		BREAK(ENOEXEC, ehdr()->e_type, types[i]);
	for (unsigned int i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		BREAK(ENOEXEC, ehdr()->e_machine, machines[i]);
	for (unsigned int i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		BREAK(0, ehdr()->e_phoff, offsets[i]);
	BREAK(ENOEXEC, ehdr()->e_phentsize, 0);
	BREAK(ENOEXEC, ehdr()->e_phentsize, sizeof(Elf32_Phdr));
	BREAK(ENOEXEC, ehdr()->e_phnum, 0);
	BREAK(ENOEXEC, ehdr()->e_phnum, 0xffff);
}

static void test_length(void)
{
	static const size_t lengths[] = { 0, 1, 4, 16, 63, 64, 65, 119, 120 };

	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		write_file(lengths[i], lengths[i], 0755);
		CHECK(try_exec() == ENOEXEC || lengths[i] >= sizeof(good));
	}
}

static void test_mode(void)
{
	write_file(image_bytes, image_bytes, 0644);
	CHECK(try_exec() == EACCES);
	unlink(check_file_name());
	CHECK(try_exec() == ENOENT);
	CHECK(!mkdir(check_file_name(), 0755));
	CHECK(try_exec() == EACCES);
	CHECK(!rmdir(check_file_name()));
}

/*
 * Invalid segments. Linux finds most of these errors after the point of no return, and kills the
 * process. So this test is only for a kernel that checks everything before.
 */
static void test_phdrs(void)
{
	static const uint64_t huge[] = {
		0x00007fffffffe000,
		0x00007ffffffff000,
		0x0000800000000000,
		0xffff888000000000,
		0xffffffff81000000,
		-4096ul,
		-1ul,
		1ul << 63,
	};

	for (unsigned int i = 0; i < sizeof(huge) / sizeof(huge[0]); i++) {
		for (int j = 0; j < nr_loads; j++) {
			uint64_t low = loads[j]->p_vaddr & 4095;

			BREAK(ENOEXEC, loads[j]->p_vaddr, (huge[i] & -4096ul) | low);
			BREAK(ENOEXEC, loads[j]->p_memsz, huge[i]);
			BREAK(ENOEXEC, loads[j]->p_filesz, huge[i]);
			BREAK(ENOEXEC, loads[j]->p_offset, (huge[i] & -4096ul) | low);
		}
		BREAK(ENOEXEC, ehdr()->e_entry, huge[i]);
	}
	for (int j = 0; j < nr_loads; j++) {
		BREAK(ENOEXEC, loads[j]->p_vaddr, loads[j]->p_vaddr + 1);
		BREAK(ENOEXEC, loads[j]->p_offset, loads[j]->p_offset + 1);
		BREAK(ENOEXEC, loads[j]->p_align, 3);
		BREAK(ENOEXEC, loads[j]->p_align, 1ul << 63);
		BREAK(ENOEXEC, loads[j]->p_filesz, loads[j]->p_memsz + 1);
	}
	BREAK(ENOEXEC, loads[1]->p_vaddr, loads[0]->p_vaddr + (loads[1]->p_vaddr & 4095));
	BREAK(ENOEXEC, ehdr()->e_entry, 0);
	for (int j = 0; j < nr_loads; j++)
		loads[j]->p_type = PT_NULL;
	CHECK(try_headers() == ENOEXEC);
	for (int j = 0; j < nr_loads; j++)
		loads[j]->p_type = PT_LOAD;
}

/*
 * Headers of random bytes. No kernel can run them, because the last segment is beyond the end of
 * the file.
 */
static void test_random(void)
{
	unsigned char *kept = malloc(4096);
	uint64_t state = 88172645463325252ull;

	memcpy(kept, image, 4096);
	for (int i = 0; i < NR_RANDOM; i++) {
		int nr_bytes = 1 + i % 32;

		for (int j = 0; j < nr_bytes; j++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			image[state % (good.e_phoff + good.e_phnum * sizeof(Elf64_Phdr))] = state >>
											    32;
		}
		loads[nr_loads - 1]->p_type = PT_LOAD;
		loads[nr_loads - 1]->p_filesz |= 1ul << (20 + state % 44);
		CHECK(try_headers() != 0);
		memcpy(image, kept, 4096);
	}
	free(kept);
}

int main(int argc, char **argv)
{
	static char *const names[] = { "badelf", "copy", NULL };
	int on_lego = check_on_lego();

	if (argc > 1) {
		CHECK(!strcmp(argv[1], "copy"));
		CHECK(!unlink(check_file_name()));
		return check_finish("badelf");
	}
	mkdir("/tmp", 0777);
	read_self(on_lego ? argv[0] : "/proc/self/exe");
	test_ehdr();
	test_length();
	test_mode();
	if (on_lego) {
		test_phdrs();
		test_random();
	}
	if (check_nr_failed)
		return check_finish("badelf");
	write_file(image_bytes, image_bytes, 0755);
	execve(check_file_name(), names, NULL);
	CHECK(!"the good copy runs");
	return check_finish("badelf");
}
