// SPDX-License-Identifier: BSD-2-Clause
/* Tests images: build ids of good and bad ELF files, and the map of code in an address space. */

#include "unit.h"

#include "../../kernel/profile/images/images.h"

#include <elf.h>

#define ID "0123456789abcdefghij"

/* A file with two segments of notes; the second one has another note before the build id. */
struct elf_file {
	Elf64_Ehdr head;
	Elf64_Phdr segments[3];
	Elf64_Nhdr other;
	char other_name[8];
	char other_desc[4];
	Elf64_Nhdr note;
	char name[4];
	char desc[20];
} __packed;

static struct elf_file good_elf(void)
{
	struct elf_file elf = {
		.head = { .e_ident = "\177ELF\2\1\1", .e_phoff = sizeof(Elf64_Ehdr), .e_phnum = 3 },
		.segments = { { .p_type = PT_LOAD, .p_filesz = 100 },
			      { .p_type = PT_NOTE,
				.p_offset = offsetof(struct elf_file, other),
				.p_filesz = offsetof(struct elf_file, note) -
					    offsetof(struct elf_file, other) },
			      { .p_type = PT_NOTE,
				.p_offset = offsetof(struct elf_file, other),
				.p_filesz = sizeof(struct elf_file) -
					    offsetof(struct elf_file, other) } },
		.other = { .n_namesz = 6, .n_descsz = 3, .n_type = NT_GNU_BUILD_ID },
		.other_name = "other",
		.note = { .n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID },
		.name = "GNU",
	};

	memcpy(elf.desc, ID, 20);
	return elf;
}

static u32 read_id(const struct elf_file *elf, u64 bytes, u8 *id)
{
	os_file_t file = { "/bin/test", elf, bytes, 0 };

	return image_read_build_id(&file, id);
}

static struct profile_mm mm;

static int setup(void **state)
{
	mm = (struct profile_mm){ 0 };
	host_nr_key_changes = 0;
	host_file_version = 0;
	return 0;
}

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

TEST(build_id)
{
	struct elf_file elf = good_elf();
	u8 id[IMAGE_BUILD_ID_BYTES];

	assert_int_equal(read_id(&elf, sizeof(elf), id), 20);
	assert_memory_equal(id, ID, 20);
	assert_int_equal(read_id(&elf, sizeof(elf) - 1, id), 0);
	elf.note.n_descsz = 8;
	assert_int_equal(read_id(&elf, sizeof(elf), id), 8);
	assert_memory_equal(id, "01234567\0\0\0\0\0\0\0\0\0\0\0\0", 20);
	elf.note.n_descsz = 21;
	assert_int_equal(read_id(&elf, sizeof(elf), id), 0);
	elf = good_elf();
	elf.head.e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(read_id(&elf, sizeof(elf), id), 0);
	elf = good_elf();
	elf.head.e_phnum = 2;
	assert_int_equal(read_id(&elf, sizeof(elf), id), 0);
}

/* Reading a damaged file ends, and stays inside the buffers. */
TEST(build_id_of_damaged_files)
{
	unsigned int seed = 1, nr_found = 0;

	for (int round = 0; round < 20000; round++) {
		struct elf_file elf = good_elf();
		u8 id[IMAGE_BUILD_ID_BYTES], *bytes = (u8 *)&elf;

		for (int i = rand_r(&seed) % 4; i >= 0; i--)
			bytes[rand_r(&seed) % sizeof(elf)] = rand_r(&seed) % 3 ? rand_r(&seed) :
										 255;
		nr_found += read_id(&elf,
				    rand_r(&seed) % 4 ? sizeof(elf) : rand_r(&seed) % sizeof(elf),
				    id) > 0;
	}
	assert_in_range(nr_found, 1000, 19000);
}

static os_file_t program = { "/bin/program", "no ELF file", 12, 0 };
static os_file_t library = { "/lib/library", "no ELF file", 12, 0 };

static u32 map(u64 start, u64 end, os_file_t *file, u64 offset)
{
	struct vma area = { start, end, file, offset, .is_code = true };

	profile_area_changed(&mm, &area);
	return mm.code_map;
}

static const char *path_at(u32 number, u64 addr)
{
	const struct code_map *area;

	for (; number; number = area->parent) {
		area = code_map_get(number);
		if (addr >= area->start && addr < area->end)
			return area->image ? image_get(area->image)->path : "";
	}
	return "";
}

TEST(equal_code_has_one_number)
{
	struct vma data = { 0x9000, 0xa000, &library, 0, .is_code = false };
	struct profile_mm child;
	u32 first = map(0x1000, 0x2000, &program, 0x1000), both = map(0x7000, 0x8000, &library, 0);
	u32 nr = code_maps_nr(), nr_images = images_nr();

	assert_string_equal(path_at(both, 0x1fff), "/bin/program");
	assert_string_equal(path_at(both, 0x7000), "/lib/library");
	assert_string_equal(path_at(first, 0x7000), "");
	profile_mm_copy(&child, &mm);
	assert_int_equal(child.code_map, both);
	profile_area_changed(&mm, &data);
	assert_int_equal(mm.code_map, both);
	/* After an execve the same program gets the same numbers. */
	mm.code_map = 0;
	assert_int_equal(map(0x1000, 0x2000, &program, 0x1000), first);
	assert_int_equal(map(0x7000, 0x8000, &library, 0), both);
	/* Maps the same code again, whole and in part. */
	assert_int_equal(map(0x7800, 0x8000, &library, 0x800), both);
	assert_int_equal(map(0x1000, 0x2000, &program, 0x1000), both);
	assert_int_equal(code_maps_nr(), nr);
	assert_int_equal(images_nr(), nr_images);
	assert_int_equal(host_nr_key_changes, 0);
	/* Another file with the same path. */
	mm.code_map = 0;
	assert_int_not_equal(map(0x1000, 0x2000, &(os_file_t){ "/bin/program", "", 0, 0 }, 0x1000),
			     first);
	assert_int_equal(images_nr(), nr_images + 1);
	/* A changed file without a build id, of the same size. */
	mm.code_map = 0;
	assert_int_not_equal(map(0x1000, 0x2000,
				 &(os_file_t){ "/bin/program", program.data, 12, 1 }, 0x1000),
			     first);
	assert_int_equal(images_nr(), nr_images + 2);
}

/* New code replaces old code at the same addresses, and samples of both are kept apart. */
TEST(replaced_code)
{
	u32 one, other, nr;

	map(0x1000, 0x2000, &program, 0);
	one = map(0x7000, 0x8000, &library, 0);
	other = map(0x7000, 0x8000, &library, 0x1000);
	assert_int_equal(host_nr_key_changes, 1);
	nr = code_maps_nr();
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(map(0x7000, 0x8000, &library, 0), one);
		assert_int_equal(map(0x7000, 0x8000, &library, 0x1000), other);
	}
	assert_int_equal(code_maps_nr(), nr);
	assert_int_equal(host_nr_key_changes, 2001);
	/* Code without a file hides part of the library, and has no name. */
	map(0x7800, 0x7900, NULL, 0);
	assert_string_equal(path_at(mm.code_map, 0x77ff), "/lib/library");
	assert_string_equal(path_at(mm.code_map, 0x7800), "");
	assert_string_equal(path_at(mm.code_map, 0x7900), "/lib/library");
	assert_string_equal(path_at(mm.code_map, 0x1000), "/bin/program");
	nr = mm.code_map;
	assert_int_equal(map(0x20000, 0x30000, NULL, 0), nr);
}

TEST(long_path)
{
	char path[250];
	os_file_t file = { path, "", 0, 0 };
	const char *found;

	memset(path, 'x', sizeof(path));
	strcpy(path + sizeof(path) - 5, "/end");
	found = path_at(map(0x1000, 0x2000, &file, 0), 0x1000);
	assert_int_equal(strlen(found), IMAGE_PATH_BYTES - 1);
	assert_string_equal(found + strlen(found) - 4, "/end");
}

/* A file's build id is read again when its version has changed, or when it has no version. */
TEST(build_id_is_read_once)
{
	struct elf_file elf = good_elf();
	os_file_t file = { "/bin/once", &elf, sizeof(elf), 0 };
	u64 versions[] = { 1, 1, 2, 2 + 64, 2, 0, 0, 2 };
	u32 news[] = { 1, 0, 1, 1, 1, 1, 1, 0 }, nr;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		nr = images_nr();
		host_file_version = versions[i];
		elf.desc[0] = 'a' + i;
		map(0x1000 * i, 0x1000 * (i + 1), &file, 0);
		assert_int_equal(images_nr() - nr, news[i]);
	}
	nr = images_nr();
	file.path = "/bin/renamed";
	map(0x10000, 0x11000, &file, 0);
	assert_int_equal(images_nr() - nr, 1);
	assert_string_equal(path_at(mm.code_map, 0x10000), "/bin/renamed");
}

/* Without a build id, the time of the last change is compared, too. */
TEST(files_without_build_id_are_known)
{
	os_file_t file = { "/bin/none", "", 0, 5 };
	u32 nr = images_nr();

	host_file_version = 99;
	map(0x1000, 0x2000, &file, 0);
	map(0x3000, 0x4000, &file, 0);
	assert_int_equal(images_nr() - nr, 1);
	file.changed_ns = 6;
	map(0x5000, 0x6000, &file, 0);
	assert_int_equal(images_nr() - nr, 2);
}

TEST(json)
{
	os_file_t file = { "/bin/\"\033[2J", "no ELF file", 7, 0 };
	struct elf_file elf = good_elf();
	os_file_t with_id = { "/bin/id", &elf, sizeof(elf), 0 };
	char line[256];

	map(0x1000, 0x2000, &file, 0);
	map(0x3000, 0x5000, &with_id, 0x2000);
	profile_init();
	snprintf(line, sizeof(line),
		 "{\"image\":%u,\"path\":\"/bin/\\\"\\u001b[2J\",\"bytes\":7,\"build_id\":null}\n",
		 images_nr() - 1);
	assert_non_null(strstr(host_file_read("profile/images.json"), line));
	snprintf(line, sizeof(line),
		 "{\"image\":%u,\"path\":\"/bin/id\",\"bytes\":%zu,\"build_id\":"
		 "\"303132333435363738396162636465666768696a\"}\n",
		 images_nr(), sizeof(elf));
	assert_non_null(strstr(host_file_read("profile/images.json"), line));
	snprintf(line, sizeof(line),
		 "{\"code_map\":%u,\"parent\":%u,\"image\":%u,\"start\":\"0x0000000000003000\","
		 "\"end\":\"0x0000000000005000\",\"offset\":\"0x0000000000002000\"}\n",
		 code_maps_nr(), code_maps_nr() - 1, images_nr());
	assert_non_null(strstr(host_file_read("profile/code_maps.json"), line));
	assert_null(strstr(host_file_read("profile/images.json"), "without room"));
}

static void map_code_of(int pid)
{
	host_pid = pid;
	map(0x1000, 0x2000, NULL, 0);
	map(0x3000, 0x4000, NULL, 0);
}

TEST(maps_of_jit_compilers)
{
	char text[1200] = "1000 20 first\n2000 8 \"\xc3\xa4\n\n";
	os_file_t file = { "/tmp/perf-77.map", text, 0, 0 };
	const char *json;

	profile_init();
	assert_null(strstr(host_file_read("profile/jit_maps.json"), "pid"));
	memset(text + strlen(text), 'x', 900);
	strcat(text, "\n3000 1 last");
	file.bytes = strlen(text);
	host_file_to_open = &file;
	assert_null(strstr(host_file_read("profile/jit_maps.json"), "pid")); /* not known yet */
	map_code_of(77);
	json = host_file_read("profile/jit_maps.json");
	assert_non_null(strstr(json, "{\"pid\":77,\"line\":\"1000 20 first\"}\n"
				     "{\"pid\":77,\"line\":\"2000 8 \\\"\\u00c3\\u00a4\"}\n"
				     "{\"pid\":77,\"line\":\"\"}\n"
				     "{\"pid\":77,\"line\":\"xxxx"));
	assert_non_null(strstr(json, "xxx\"}\n{\"pid\":77,\"line\":\"3000 1 last\"}\n"));
	assert_null(strstr(json, "is cut"));
	for (int pid = 100; pid < 200; pid++)
		map_code_of(pid);
	json = host_file_read("profile/jit_maps.json");
	assert_non_null(strstr(json, "only the first 64 processes"));
	assert_non_null(strstr(json, "3000 1 last"));
	host_file_to_open = NULL;
}

/* A full table must not lead to wrong names. Everything without a name is counted. */
TEST(full_tables)
{
	static const char zeros[MAX_IMAGES];
	struct images_lost lost;
	u32 before;

	for (u32 i = 0; i < MAX_CODE_MAP_DEPTH + 10; i++)
		map(0x10000 + i * 0x1000, 0x11000 + i * 0x1000, &program, i);
	lost = images_lost();
	assert_int_equal(lost.nr_too_deep, 10);
	assert_string_equal(path_at(mm.code_map, 0x10000), "/bin/program");
	assert_string_equal(path_at(mm.code_map, 0x10000 + MAX_CODE_MAP_DEPTH * 0x1000), "");

	for (u32 i = 0; i < MAX_CODE_MAPS; i++) {
		setup(NULL);
		map(0x1000, 0x2000, &program, i * 0x10000);
	}
	assert_int_equal(code_maps_nr(), MAX_CODE_MAPS);
	assert_in_range(images_lost().nr_maps, 1, MAX_CODE_MAPS - 1);
	setup(NULL);
	before = map(0x1000, 0x2000, &program, 0);
	assert_int_not_equal(before, 0);
	assert_int_equal(map(0x5000, 0x6000, &program, 0x12345000), before);
	assert_int_equal(map(0x1800, 0x1900, &program, 0x12345000), 0);
	assert_int_equal(host_nr_key_changes, 1);

	for (u32 i = 0; i < MAX_IMAGES; i++)
		map(0x1000, 0x2000, &(os_file_t){ "/bin/many", zeros, i, 0 }, 0);
	assert_int_equal(images_nr(), MAX_IMAGES);
	lost = images_lost();
	assert_in_range(lost.nr_images, 1, 20);
	host_log_clear();
	profile_report("test");
	assert_non_null(strstr(host_log, "mappings of code without room"));
	assert_non_null(strstr(host_file_read("profile/images.json"), "without room"));
}
