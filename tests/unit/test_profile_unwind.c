// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests the tables for stack walks: all rows of real files beside what readelf finds in them, and
 * files whose bytes were changed.
 */

#include "unit.h"

#include "../../kernel/profile/images/images.h"

#include <lego/user_unwind.h>

#include <elf.h>

#define BASE 0x555000000000ull /* where a program's lowest address is mapped */

static os_file_t file;
static struct user_unwind_place place;

static void read_host_file(const char *path)
{
	FILE *from = fopen(path, "rb");

	assert_non_null(from);
	fseek(from, 0, SEEK_END);
	file = (os_file_t){ path, NULL, ftell(from) };
	file.data = malloc(file.bytes);
	rewind(from);
	assert_int_equal(fread((void *)file.data, 1, file.bytes, from), file.bytes);
	fclose(from);
}

/* Maps the code of the file as the kernel does: whole pages. */
static void map_file(void)
{
	const Elf64_Ehdr *head = file.data;
	struct profile_mm mm = { 0 };

	for (u32 i = 0; i < head->e_phnum; i++) {
		const Elf64_Phdr *p =
			(const Elf64_Phdr *)((const char *)file.data + head->e_phoff) + i;
		u64 start = BASE + (p->p_vaddr & ~4095ull);
		struct vma area = { start, BASE + ((p->p_vaddr + p->p_filesz + 4095) & ~4095ull),
				    &file, p->p_offset & ~4095ull, .is_code = true };

		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			profile_area_changed(&mm, &area);
	}
	place = user_unwind_begin(&mm);
}

/* A row as readelf prints it. */
struct truth {
	unsigned long at;
	char cfa[16], fp[16], ret[16];
};

static bool is_right(const struct truth *truth)
{
	struct user_unwind rule = user_unwind(&place, BASE + truth->at);
	char reg[4] = "";
	int distance = 0, fp = 0;

	if (!strcmp(truth->ret, "u"))
		return rule.kind == UNWIND_OUTERMOST;
	if (!strcmp(truth->cfa, "exp") || strcmp(truth->ret, "c-8") || strstr(truth->fp, "exp"))
		return rule.kind == UNWIND_PLT || rule.kind == UNWIND_SIGNAL ||
		       rule.kind == UNWIND_UNKNOWN;
	assert_int_equal(sscanf(truth->cfa, "%3[a-z0-9]+%d", reg, &distance), 2);
	sscanf(truth->fp, "c-%d", &fp);
	if (strcmp(reg, "rsp") && strcmp(reg, "rbp"))
		return rule.kind == UNWIND_UNKNOWN;
	return rule.kind == (strcmp(reg, "rsp") ? UNWIND_FP : UNWIND_SP) &&
	       rule.cfa == (u32)distance && rule.fp == (u32)fp;
}

/* Reads a table row of readelf into columns, by the names in its heading. */
static bool read_truth(const char *heading, const char *line, struct truth *truth)
{
	char names[256], cells[256], *name, *cell, *name_at, *cell_at;

	*truth = (struct truth){ .fp = "u" };
	strcpy(names, heading);
	strcpy(cells, line);
	name = strtok_r(names, " \n", &name_at);
	cell = strtok_r(cells, " \n", &cell_at);
	for (; name && cell; name = strtok_r(NULL, " \n", &name_at)) {
		char *to = !strcmp(name, "CFA") ? truth->cfa :
			   !strcmp(name, "rbp") ? truth->fp :
			   !strcmp(name, "ra")	? truth->ret :
						  NULL;

		if (!strcmp(name, "LOC"))
			truth->at = strtoul(cell, NULL, 16);
		else if (to)
			snprintf(to, sizeof(truth->cfa), "%s", cell);
		do
			cell = strtok_r(NULL, " \n", &cell_at);
		while (cell && *cell == '('); /* "r10 (r10)" is one cell */
	}
	return truth->ret[0];
}

/* Compares all rows of functions. Returns their number. */
static u32 compare_rows(const char *path)
{
	char command[256], line[256], heading[256] = "";
	struct truth truth;
	bool of_function = false;
	u32 nr = 0;
	FILE *from;

	snprintf(command, sizeof(command), "readelf --debug-dump=frames-interp %s 2>/dev/null",
		 path);
	from = popen(command, "r");
	assert_non_null(from);
	while (fgets(line, sizeof(line), from)) {
		unsigned long begin, end;

		if (strstr(line, " CIE "))
			of_function = false;
		if (sscanf(line, "%*x %*x %*x FDE cie=%*x pc=%lx..%lx", &begin, &end) == 2)
			of_function = begin < end;
		if (strstr(line, " LOC ")) {
			strcpy(heading, line);
		} else if (of_function && strspn(line, "0123456789abcdef") == 16 &&
			   !strstr(line, "FDE") && read_truth(heading, line, &truth)) {
			if (!is_right(&truth))
				fail_msg("%s: %s", path, line);
			nr++;
		}
	}
	pclose(from);
	return nr;
}

static void test_real_files(void **state)
{
	static const char *const paths[] = { "/lib/x86_64-linux-gnu/libc.so.6",
					     "/lib64/ld-linux-x86-64.so.2",
					     "/usr/bin/python3.11",
					     "/usr/bin/readelf",
					     "build/user/chain-nofp",
					     "build/user/chain" };

	for (u32 i = 0; i < ARRAY_SIZE(paths); i++) {
		read_host_file(paths[i]);
		map_file();
		assert_true(compare_rows(paths[i]) > 1000);
		free((void *)file.data);
	}
}

/* Changed bytes make wrong rows, and nothing worse. The sanitizers look. */
static void test_damaged_files(void **state)
{
	static const char path[] = "/lib64/ld-linux-x86-64.so.2";
	u64 random = 1;

	for (int round = 0; round < 40; round++) {
		const Elf64_Ehdr *head;
		const Elf64_Phdr *p;
		char *bytes, name[32];
		u64 frames;

		read_host_file(path);
		bytes = (char *)file.data;
		head = file.data;
		p = (const Elf64_Phdr *)(bytes + head->e_phoff);
		while (p->p_type != PT_GNU_EH_FRAME)
			p++;
		frames = p->p_offset;
		for (int i = 0; i < 400; i++) {
			u64 at;

			random = random * 6364136223846793005ull + 1442695040888963407ull;
			at = random >> 33;
			at = i % 20 ? frames + at % (file.bytes - frames) : 64 + at % 700;
			bytes[at] = random >> 20;
		}
		snprintf(name, sizeof(name), "/bin/%d", round); /* another image each time */
		file.path = name;
		map_file();
		for (u64 at = 0; at < 0x40000; at += 7)
			user_unwind(&place, BASE + at);
		free(bytes);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_files),
		cmocka_unit_test(test_damaged_files),
	};

	assert_int_equal(host_set_param("profile.unwind", "on"), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
