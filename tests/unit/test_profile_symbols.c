// SPDX-License-Identifier: BSD-2-Clause
/* Tests names of user addresses: of a good ELF file, of damaged ones, and of none. */

#include "unit.h"

#include "../../kernel/profile/images/images.h"
#include "../../kernel/profile/user_symbols.h"

#include <elf.h>

#define BASE 0x555000000000ull /* a position-independent program is moved by this */
#define CODE 0x1000
#define DATA 0x3000

enum {
	START,
	LABEL,
	MAIN,
	READ,
	UNDERSCORES,
	BLANK,
	LOCK,
	UNDEFINED,
	NR_SYMBOLS,
};

struct elf_file {
	Elf64_Ehdr head;
	Elf64_Phdr segments[3];
	Elf64_Shdr sections[4];
	Elf64_Sym symbols[NR_SYMBOLS];
	char names[512];
	u8 encodings[4];
	s32 frame, nr_frames;
	struct {
		s32 start, frame;
	} frames[3];
} __packed;

static struct elf_file elf;
static os_file_t program = { "/bin/program", &elf, sizeof(elf), 0 };
static struct profile_mm mm;

static void add_symbol(u32 i, const char *name, u32 type, u64 at, u64 bytes)
{
	static size_t len;

	if (!i)
		len = 1;
	strcpy(elf.names + len, name);
	elf.symbols[i] = (Elf64_Sym){
		.st_name = len,
		.st_info = type,
		.st_shndx = i != UNDEFINED,
		.st_value = at,
		.st_size = bytes,
	};
	len += strlen(name) + 1;
	assert_true(len <= sizeof(elf.names));
}

static void make_elf(void)
{
	u64 frames = offsetof(struct elf_file, encodings);

	elf = (struct elf_file){
		.head = { .e_ident = "\177ELF\2\1\1",
			  .e_phoff = offsetof(struct elf_file, segments),
			  .e_phnum = 3,
			  .e_shoff = offsetof(struct elf_file, sections),
			  .e_shnum = 4 },
		.segments = { { PT_LOAD, PF_R | PF_X, CODE, CODE, CODE, 0x1000, 0x1000 },
			      { PT_LOAD, PF_R | PF_W, 0x2000, DATA, DATA, 0x100, 0x300 },
			      { PT_GNU_EH_FRAME, PF_R, frames, 0x2800, 0x2800, sizeof(elf) - frames,
				sizeof(elf) - frames } },
		.sections = { { .sh_type = SHT_NULL },
			      { .sh_type = SHT_SYMTAB,
				.sh_offset = offsetof(struct elf_file, symbols),
				.sh_size = sizeof(elf.symbols),
				.sh_link = 2 },
			      { .sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct elf_file, names),
				.sh_size = sizeof(elf.names) },
			      { .sh_type = SHT_PROGBITS,
				.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				.sh_addr = CODE + 0x80 } },
		.encodings = { 1, 0x1b, 3, 0x3b },
		.nr_frames = 3,
		.frames = { { CODE + 0x100 - 0x2800 },
			    { CODE + 0x110 - 0x2800 },
			    { CODE + 0x400 - 0x2800 } },
	};
	add_symbol(START, "_start", STT_NOTYPE, CODE, 0);
	add_symbol(LABEL, ".L1", STT_NOTYPE, CODE + 0x110, 0);
	add_symbol(MAIN, "main", STT_FUNC, CODE + 0x100, 0x50);
	add_symbol(READ, "read", STT_FUNC, CODE + 0x200, 0x20);
	add_symbol(UNDERSCORES, "__read", STT_FUNC, CODE + 0x200, 0x20);
	add_symbol(BLANK, "a b\n", STT_FUNC, CODE + 0x300, 0x10);
	add_symbol(LOCK, "lock", STT_OBJECT, DATA + 0x210, 0x28); /* in .bss */
	add_symbol(UNDEFINED, "puts", STT_FUNC, CODE + 0x500, 0x10);
}

static int setup(void **state)
{
	struct vma area = { BASE + CODE, BASE + CODE + 0x1000, &program, CODE, .is_code = true };

	host_panicking = false;
	make_elf();
	image_symbols_init();
	mm = (struct profile_mm){ 0 };
	profile_area_changed(&mm, &area);
	host_file_to_open = &program;
	return 0;
}

static int teardown(void **state)
{
	image_symbols_free();
	return 0;
}

static const char *name_at(u64 at)
{
	static char text[64];
	size_t len = user_symbol_print(text, sizeof(text), mm.code_map, BASE + at);

	assert_int_equal(len, strlen(text));
	return text;
}

#define TEST(name) HOST_TEST_WITH(name, setup, teardown)

TEST(functions)
{
	struct user_symbol symbol;

	assert_string_equal(name_at(CODE), "_start");
	assert_string_equal(name_at(CODE + 0x7f), "_start");	     /* it has no size */
	assert_string_equal(name_at(CODE + 0xff), "program+0x10ff"); /* in the next section */
	assert_string_equal(name_at(CODE + 0x100), "main");
	assert_string_equal(name_at(CODE + 0x14f), "main"); /* neither its label nor its frame */
	assert_string_equal(name_at(CODE + 0x150), "program+0x1150");
	assert_string_equal(name_at(CODE + 0x200), "read");
	assert_string_equal(name_at(CODE + 0x300), "a?b?");
	assert_string_equal(name_at(CODE + 0x1000), "0x555000002000");
	assert_string_equal(name_at(0), "0x555000000000");
	/* A function without a symbol is known by its frame. */
	user_symbol_of_code(mm.code_map, BASE + CODE + 0x512, &symbol);
	assert_true(symbol.is_known && !symbol.name);
	assert_int_equal(symbol.start, CODE + 0x400);
	assert_int_equal(symbol.distance, 0x112);
	assert_int_equal(symbol.offset, CODE + 0x512);
	assert_string_equal(user_symbol_path(symbol.image), "/bin/program");
}

TEST(objects)
{
	struct user_symbol symbol;

	assert_true(user_symbol_of_data(mm.code_map, BASE + DATA + 0x218, &symbol));
	assert_string_equal(symbol.name, "lock");
	assert_int_equal(symbol.distance, 8);
	assert_false(user_symbol_of_data(mm.code_map, BASE + DATA + 0x238, &symbol));
	assert_false(user_symbol_of_data(mm.code_map, BASE + DATA + 0x300, &symbol));
	assert_false(user_symbol_of_data(mm.code_map, BASE + CODE + 0x100, &symbol));
	assert_false(user_symbol_of_data(0, BASE + DATA + 0x218, &symbol));
}

/* A frame of folded stacks has no blank and no semicolon, even if its file has some. */
TEST(frames)
{
	char text[USER_FRAME_BYTES];

	program.path = "/bin/pro gram;1";
	setup(state);
	strcpy(elf.names + elf.symbols[READ].st_name, "re;d");
	assert_string_equal(user_symbol_frame(text, mm.code_map, BASE + CODE + 0x100), "main");
	assert_string_equal(user_symbol_frame(text, mm.code_map, BASE + CODE + 0x200), "re?d");
	assert_string_equal(user_symbol_frame(text, mm.code_map, BASE + CODE + 0x150),
			    "pro?gram?1+0x1150");
	assert_string_equal(user_symbol_frame(text, 0, BASE), "0x555000000000");
	program.path = "/bin/program";
}

/* A reader with several turns reads a file once. Turns in between do not see its tables. */
TEST(several_turns)
{
	struct user_symbols symbols = { 0 };

	user_symbols_swap(&symbols);
	assert_string_equal(name_at(CODE + 0x100), "main");
	user_symbols_swap(&symbols);
	image_symbols_free();
	host_file_to_open = NULL;
	assert_string_equal(name_at(CODE + 0x100), "program+0x1100");
	image_symbols_free();
	user_symbols_swap(&symbols);
	assert_string_equal(name_at(CODE + 0x100), "main");
	user_symbols_swap(&symbols);
	assert_non_null(symbols.tables);
	user_symbols_free(&symbols);
	assert_null(symbols.tables);
	assert_int_equal(symbols.nr_bytes, 0);
}

/* Without .symtab, the symbols are those of .dynsym. */
TEST(dynamic_symbols)
{
	elf.sections[1].sh_type = SHT_DYNSYM;
	assert_string_equal(name_at(CODE + 0x100), "main");
	image_symbols_free();
	elf.sections[1].sh_type = SHT_NULL;
	assert_string_equal(name_at(CODE + 0x100), "program+0x1100");
}

/* No name is better than one of another file, or one that is half read. */
TEST(other_files)
{
	os_file_t other = { "/bin/program", &elf, sizeof(elf) - 1, 0 };
	os_file_t changed = { "/bin/program", &elf, sizeof(elf), 1 };

	host_file_to_open = &other;
	assert_string_equal(name_at(CODE + 0x100), "program+0x1100");
	image_symbols_free();
	host_file_to_open = &changed;
	assert_string_equal(name_at(CODE + 0x100), "program+0x1100");
	image_symbols_free();
	host_file_to_open = NULL;
	assert_string_equal(name_at(CODE + 0x100), "program+0x1100");
	image_symbols_free();
	host_file_to_open = &program;
	assert_string_equal(name_at(CODE + 0x100), "main");
	host_panicking = true;
	assert_string_equal(name_at(CODE + 0x100), "program+0x1100");
}

TEST(short_memory)
{
	u64 bytes = host_memory_bytes;

	host_memory_bytes = 4096;
	assert_string_equal(name_at(CODE + 0x100), "program+0x1100");
	image_symbols_free();
	host_memory_bytes = bytes;
	assert_string_equal(name_at(CODE + 0x100), "main");
}

/* What compilers append is cut off, and nothing else. */
TEST(suffixes)
{
	static const char *const names[][2] = {
		{ "send.constprop.0", "send" },
		{ "send.part.12.cold", "send" },
		{ "send.isra.0.isra.1", "send" },
		{ "main.part", "main.part" },
		{ "main.part.f", "main.part.f" },
		{ "send.cold", "send.cold" },
		{ "x.llvm.123", "x" },
	};

	for (u32 i = 0; i < PF_ARRAY_SIZE(names); i++) {
		char *name = elf.names + elf.symbols[MAIN].st_name;

		memset(name, 0, 32);
		strcpy(name, names[i][0]);
		assert_string_equal(name_at(CODE + 0x100), names[i][1]);
		image_symbols_free();
	}
}

/* Whatever the name of a function is, it is printable, and one column and frame. */
TEST(hostile_names)
{
	static const char *const names[] = {
		"a;b",	"a b 9", "9",	"(1) x", "\033[2Jx", "a\nb 7",	 "\r",
		"\t",	"[x]",	 "--",	"%s%n",	 "a\"b",     "\\",	 "a,b",
		"{}",	"<b>&",	 "a'2", "fn=x",	 "\x7f",     "\xc3\xa9", "\xe2\x80\xae",
		"\x80", "_Z",	 "_R",	"f@plt", "@@V1",     ".text",	 "$x",
		"a\rb", "a\vb",	 "/x",	"?",	 "x+0x1",    "a\x01",
	};

	for (u32 i = 0; i < PF_ARRAY_SIZE(names); i++) {
		char expected[16], frame[USER_FRAME_BYTES];
		char *name = elf.names + elf.symbols[MAIN].st_name;
		size_t len = strlen(names[i]);

		memset(name, 0, 16);
		memcpy(name, names[i], len);
		for (size_t k = 0; k <= len; k++)
			expected[k] = names[i][k] && (names[i][k] <= ' ' || names[i][k] > '~') ?
					      '?' :
					      names[i][k];
		assert_string_equal(name_at(CODE + 0x100), expected);
		for (size_t k = 0; k < len; k++)
			expected[k] = expected[k] == ';' ? '?' : expected[k];
		assert_string_equal(user_symbol_frame(frame, mm.code_map, BASE + CODE + 0x100),
				    expected);
		image_symbols_free();
	}
	memset(elf.names + elf.symbols[MAIN].st_name, 'x', 400);
	assert_in_range(strlen(name_at(CODE + 0x100)), 1, 63); /* the buffer has 64 bytes */
}

/* Reading a damaged file ends, and stays inside the buffers. */
TEST(damaged_files)
{
	unsigned int seed = 1, nr_named = 0;

	for (int round = 0; round < 20000; round++) {
		u8 *bytes = (u8 *)&elf;

		make_elf();
		for (int i = rand_r(&seed) % 6; i >= 0; i--)
			bytes[rand_r(&seed) % sizeof(elf)] = rand_r(&seed) % 3 ? rand_r(&seed) :
										 255;
		for (u64 at = CODE - 0x100; at < CODE + 0x600; at += 0x40) {
			struct user_symbol symbol;

			nr_named += name_at(at)[0] >= 'a';
			user_symbol_of_data(mm.code_map, BASE + DATA + at - CODE, &symbol);
		}
		image_symbols_free();
	}
	assert_in_range(nr_named, 100000, 500000);
}
