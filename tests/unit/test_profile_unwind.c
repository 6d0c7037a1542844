// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests the rules for stack walks: those of real files beside what readelf finds in them, and files
 * whose bytes were changed.
 */

#include "unit.h"

#include "../../kernel/profile/images/go_frames.h"
#include "../../kernel/profile/images/images.h"

#include <profile/user_unwind.h>

#include <elf.h>

#define BASE 0x555000000000ull /* where a program's lowest address is mapped */

static os_file_t file;
static struct profile_user_unwind_place begin;

static void read_host_file(const char *path)
{
	FILE *from = fopen(path, "rb");

	assert_non_null(from);
	fseek(from, 0, SEEK_END);
	file = (os_file_t){ path, NULL, ftell(from), 0 };
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
	begin = profile_user_unwind_begin(&mm);
}

/* Returns the rule as a walk finds it that begins here. */
static struct profile_user_unwind rule_at(u64 addr)
{
	struct profile_user_unwind_place place = begin;

	return profile_user_unwind(&place, BASE + addr);
}

/* A row as readelf prints it. */
struct truth {
	unsigned long at;
	char cfa[16], fp[16], ret[16];
};

static bool is_right(const struct truth *truth)
{
	struct profile_user_unwind rule = rule_at(truth->at);
	char reg[4] = "";
	int distance = 0, fp = 0;

	if (!strcmp(truth->ret, "u"))
		return rule.kind == PROFILE_UNWIND_OUTERMOST;
	if (!strcmp(truth->cfa, "exp") || strcmp(truth->ret, "c-8") || strstr(truth->fp, "exp"))
		return rule.kind == PROFILE_UNWIND_PLT || rule.kind == PROFILE_UNWIND_SIGNAL ||
		       rule.kind == PROFILE_UNWIND_UNKNOWN;
	assert_int_equal(sscanf(truth->cfa, "%3[a-z0-9]+%d", reg, &distance), 2);
	sscanf(truth->fp, "c-%d", &fp);
	if (strcmp(reg, "rsp") && strcmp(reg, "rbp"))
		return rule.kind == PROFILE_UNWIND_UNKNOWN;
	return rule.kind == (strcmp(reg, "rsp") ? PROFILE_UNWIND_FP : PROFILE_UNWIND_SP) &&
	       rule.cfa * 8 == (u32)distance && rule.fp * 8 == (u32)fp;
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

HOST_TEST(real_files)
{
	static const char *const paths[] = { "/lib/x86_64-linux-gnu/libc.so.6",
					     "/lib64/ld-linux-x86-64.so.2",
					     "/usr/bin/python3.11",
					     "/usr/bin/readelf",
					     "build/user/chain-nofp",
					     "build/user/wordcount",
					     "build/user/chain" };

	for (u32 i = 0; i < ARRAY_SIZE(paths); i++) {
		read_host_file(paths[i]);
		map_file();
		assert_true(compare_rows(paths[i]) > 1000);
		free((void *)file.data);
	}
}

/* Returns where .eh_frame_hdr or, without it, .eh_frame is in the file. */
static u64 frames_offset(void)
{
	const char *bytes = file.data;
	const Elf64_Ehdr *head = file.data;
	const Elf64_Phdr *p = (const Elf64_Phdr *)(bytes + head->e_phoff);
	const Elf64_Shdr *s = (const Elf64_Shdr *)(bytes + head->e_shoff);
	const char *names = bytes + s[head->e_shstrndx].sh_offset;

	for (u32 i = 0; i < head->e_phnum; i++) {
		if (p[i].p_type == PT_GNU_EH_FRAME)
			return p[i].p_offset;
	}
	while (strcmp(names + s->sh_name, ".eh_frame"))
		s++;
	return s->sh_offset;
}

/* Changed bytes make wrong rules, and nothing worse. The sanitizers look. */
HOST_TEST(damaged_files)
{
	static const char *const paths[] = { "/lib64/ld-linux-x86-64.so.2",
					     "build/user/wordcount" };
	u64 random = 1;

	for (int round = 0; round < 80; round++) {
		const Elf64_Ehdr *head;
		const Elf64_Phdr *p;
		u64 frames, code = 0;
		char *bytes, name[32];

		read_host_file(paths[round % 2]);
		bytes = (char *)file.data;
		head = file.data;
		p = (const Elf64_Phdr *)(bytes + head->e_phoff);
		for (u32 i = 0; i < head->e_phnum; i++) {
			if (p[i].p_type == PT_LOAD && p[i].p_flags & PF_X)
				code = p[i].p_vaddr;
		}
		frames = frames_offset();
		for (int i = 0; i < 400; i++) {
			u64 at;

			random = random * 6364136223846793005ull + 1442695040888963407ull;
			at = random >> 33;
			at = i % 20 ? frames + at % 0x10000 % (file.bytes - frames) : 64 + at % 700;
			bytes[at] = random >> 20;
		}
		snprintf(name, sizeof(name), "/bin/%d", round); /* another image each time */
		file.path = name;
		map_file();
		for (u64 at = 0; at < 0x40000; at += 7)
			rule_at(code + at);
		free(bytes);
	}
}

/*
 * A .gopclntab with three functions at 0x401000, as Go 1.19 writes it: `leaf` without a frame,
 * `caller` with one of 24 bytes from its fifth instruction to its return, and `goexit`, which has
 * no caller. The text ends at 0x401050.
 */
#define GO_TEXT	      0x401000ull
#define GO_PCS	      80
#define GO_FUNCTIONS  (GO_PCS + 16)
#define GO_NR	      3
#define GO_TOP_FRAME  1
#define GO_WRITES_SP  2
#define GO_DESCRIBED  (GO_NR * 8 + 8)
#define GO_BYTES      (GO_FUNCTIONS + GO_DESCRIBED + GO_NR * 40)
#define GO_MAGIC_1_19 0xfffffff0u
#define GO_MAGIC_1_20 0xfffffff1u

static u8 go_bytes[GO_BYTES + 8];

static void make_go_table(u32 magic)
{
	static const u8 pcs[16] = { 2, 0x10, 0,	 0,		    /* at 0: size 0 for 16 bytes */
				    2, 5,    48, 0x20, 47, 11, 0 }; /* at 4: 0, 24, 0 */
	static const u32 begins[] = { 0, 0x10, 0x40, 0x50 }, at[] = { 0, 4, 0 };
	const u64 words[] = { GO_NR, 1, GO_TEXT, 72, 72, 72, GO_PCS, GO_FUNCTIONS };
	const u8 kind[] = { 0, 0, 1, 8 };

	memset(go_bytes, 0, sizeof(go_bytes));
	memcpy(go_bytes, &magic, 4);
	memcpy(go_bytes + 4, kind, 4);
	memcpy(go_bytes + 8, words, sizeof(words));
	memcpy(go_bytes + GO_PCS, pcs, sizeof(pcs));
	for (u32 i = 0; i <= GO_NR; i++) {
		u32 pair[] = { begins[i], GO_DESCRIBED + i * 40 };
		u8 *described = go_bytes + GO_FUNCTIONS + pair[1];

		memcpy(go_bytes + GO_FUNCTIONS + i * 8, pair, i < GO_NR ? 8 : 4);
		if (i == GO_NR)
			break;
		memcpy(described, &begins[i], 4);
		memcpy(described + 16, &at[i], 4);
	}
	go_bytes[GO_FUNCTIONS + GO_DESCRIBED + 2 * 40 + (magic == GO_MAGIC_1_19 ? 37 : 41)] =
		GO_TOP_FRAME;
	file = (os_file_t){ "/bin/go", go_bytes, GO_BYTES + 8, 0 };
}

static struct go_frames go;
static u32 go_steps;

static bool begin_go(u64 bytes)
{
	const struct section_header section = { .size = bytes };
	u64 at = go_frames_begin(&go, &file, &section);

	if (!at)
		return false;
	assert_int_equal(at, GO_PCS);
	go.bytes = malloc(go.nr_bytes); /* the sanitizer sees what is read beyond it */
	memcpy((void *)go.bytes, go_bytes + at, go.nr_bytes);
	go_steps = PROFILE_UNWIND_STEPS;
	return true;
}

static void end_go(void)
{
	free((void *)go.bytes);
}

static struct call_frames_rule go_rule_at(u64 addr)
{
	struct call_frames_rule rule;

	assert_true(go_frames_rule(&go, GO_TEXT + addr, &go_steps, &rule));
	return rule;
}

static void assert_go_rule(u64 addr, u32 cfa, u32 fp, u64 begins, u64 ends)
{
	struct call_frames_rule rule = go_rule_at(addr);

	assert_int_equal(rule.rule.kind, PROFILE_UNWIND_SP);
	assert_int_equal(rule.rule.cfa, cfa);
	assert_int_equal(rule.rule.fp, fp);
	assert_int_equal(rule.begin, GO_TEXT + begins);
	assert_int_equal(rule.end, GO_TEXT + ends);
}

HOST_TEST(go_rules)
{
	static const u32 magics[] = { GO_MAGIC_1_19, GO_MAGIC_1_20 };

	for (u32 i = 0; i < ARRAY_SIZE(magics); i++) {
		make_go_table(magics[i]);
		assert_true(begin_go(GO_BYTES + 8));
		assert_go_rule(0, 1, 0, 0, 0x10);
		assert_go_rule(0xf, 1, 0, 0, 0x10);
		assert_go_rule(0x14, 1, 0, 0x10, 0x15);
		assert_go_rule(0x15, 4, 2, 0x15, 0x35);
		assert_go_rule(0x34, 4, 2, 0x15, 0x35);
		assert_go_rule(0x35, 1, 0, 0x35, 0x40);
		assert_int_equal(go_rule_at(0x40).rule.kind, PROFILE_UNWIND_OUTERMOST);
		assert_int_equal(go_rule_at(0x50).rule.kind, PROFILE_UNWIND_UNKNOWN);
		assert_int_equal(go_rule_at(-1ull).rule.kind, PROFILE_UNWIND_UNKNOWN);
		end_go();
	}
}

HOST_TEST(go_functions_that_change_stacks)
{
	make_go_table(GO_MAGIC_1_19);
	go_bytes[GO_FUNCTIONS + GO_DESCRIBED + 40 + 37] = GO_WRITES_SP;
	assert_true(begin_go(GO_BYTES));
	assert_int_equal(go_rule_at(0x15).rule.kind, PROFILE_UNWIND_UNKNOWN);
	end_go();
	for (u8 kind = 0; kind < 30; kind++) { /* 11: runtime.mcall */
		go_bytes[GO_FUNCTIONS + GO_DESCRIBED + 40 + 36] = kind;
		assert_true(begin_go(GO_BYTES));
		assert_int_equal(go_rule_at(0x15).rule.kind,
				 kind == 11 ? PROFILE_UNWIND_OTHER_STACK : PROFILE_UNWIND_UNKNOWN);
		end_go();
	}
}

HOST_TEST(go_steps)
{
	struct call_frames_rule rule;

	make_go_table(GO_MAGIC_1_19);
	assert_true(begin_go(GO_BYTES));
	go_steps = 1;
	assert_false(go_frames_rule(&go, GO_TEXT + 0x15, &go_steps, &rule));
	assert_int_equal(rule.rule.kind, PROFILE_UNWIND_UNKNOWN);
	end_go();
}

HOST_TEST(other_go_tables)
{
	make_go_table(0xfffffffbu); /* Go 1.2 to 1.15 */
	assert_false(begin_go(GO_BYTES));
	make_go_table(GO_MAGIC_1_19);
	assert_false(begin_go(GO_FUNCTIONS + GO_NR * 8)); /* no room for the end mark */
	assert_true(begin_go(GO_FUNCTIONS + GO_NR * 8 + 8));
	for (u32 addr = 0; addr < 0x60; addr++)
		assert_int_equal(go_rule_at(addr).rule.kind, PROFILE_UNWIND_UNKNOWN);
	end_go();
}

HOST_TEST(damaged_go_tables)
{
	u64 random = 1;

	for (int round = 0; round < 20000; round++) {
		make_go_table(GO_MAGIC_1_19);
		for (int i = 0; i < 4; i++) {
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			go_bytes[8 + (random >> 33) % (GO_BYTES - 8)] = random >> 20;
		}
		if (go_frames_begin(&go, &file, &(struct section_header){ .size = GO_BYTES }) !=
			    GO_PCS ||
		    !begin_go(GO_BYTES))
			continue;
		for (u32 addr = 0; addr < 0x60; addr++) {
			struct call_frames_rule rule;

			go_steps = PROFILE_UNWIND_STEPS;
			go_frames_rule(&go, go.text + addr, &go_steps, &rule);
		}
		end_go();
	}
}

int unit_tests_begin(void **state)
{
	assert_int_equal(host_set_param("profile.unwind", "on"), 0);
	return 0;
}
