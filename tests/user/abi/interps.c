// SPDX-License-Identifier: BSD-2-Clause
/*
 * Programs that name an interpreter (PT_INTERP), as dynamic ones do: what the program and the
 * interpreter are passed, and how execve() fails for bad interpreters. The test writes the files
 * itself: each has one segment with its headers, the interpreter's path and a few instructions.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#include "run.h"

#define PATH_OFFSET 0x200
#define CODE_OFFSET 0x1200
#define FILE_BYTES  0x1400
#define MAX_PATH    4096

/* The program exits with the number that the interpreter left in rbx. */
asm(".pushsection .rodata\n"
    "program_code:\n"
    "	mov	%ebx, %edi\n"
    "	mov	$231, %eax\n"
    "	syscall\n"
    "program_end:\n"
    /*
     * The interpreter counts in rbx how many entries of the auxiliary vector are right, and jumps
     * to AT_ENTRY. Its base is the address of this code minus CODE_OFFSET.
     */
    "interp_code:\n"
    "	lea	interp_code - 0x1200(%rip), %r12\n"
    "	mov	%rsp, %rsi\n"
    "	xor	%ebx, %ebx\n"
    "	mov	(%rsi), %rcx\n"
    "	lea	16(%rsi,%rcx,8), %rsi\n"
    "1:	lodsq\n"
    "	test	%rax, %rax\n"
    "	jnz	1b\n"
    "2:	lodsq\n"
    "	mov	%rax, %rdx\n"
    "	lodsq\n"
    "	cmp	$7, %edx\n" /* AT_BASE: the interpreter's base */
    "	jne	3f\n"
    "	cmp	%rax, %r12\n"
    "	jne	3f\n"
    "	add	$1, %ebx\n"
    "3:	cmp	$3, %edx\n" /* AT_PHDR: the program's, which is of type PT_INTERP */
    "	jne	4f\n"
    "	mov	%rax, %r13\n"
    "	cmpl	$3, (%rax)\n"
    "	jne	4f\n"
    "	add	$2, %ebx\n"
    "4:	cmp	$5, %edx\n" /* AT_PHNUM */
    "	jne	5f\n"
    "	cmp	$2, %eax\n"
    "	jne	5f\n"
    "	add	$4, %ebx\n"
    "5:	cmp	$9, %edx\n" /* AT_ENTRY: as far from AT_PHDR as in the file */
    "	jne	6f\n"
    "	mov	%rax, %r14\n"
    "6:	test	%edx, %edx\n"
    "	jnz	2b\n"
    "	lea	0x1200 - 64(%r13), %rax\n"
    "	cmp	%rax, %r14\n"
    "	jne	7f\n"
    "	add	$8, %ebx\n"
    "7:	jmp	*%r14\n"
    "interp_end:\n"
    ".popsection\n");

#define ALL_RIGHT 15

extern const char program_code[], program_end[], interp_code[], interp_end[];

static struct image {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdrs[2];
	char rest[FILE_BYTES - sizeof(Elf64_Ehdr) - 2 * sizeof(Elf64_Phdr)];
} program, interp;

static char program_name[80], interp_name[80];

static void make_image(struct image *image, int type, uint64_t base, const char *path,
		       const char *code, size_t code_bytes)
{
	*image = (struct image){
		.ehdr = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = type,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_entry = base + CODE_OFFSET,
			  .e_phoff = sizeof(Elf64_Ehdr),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 2 },
		.phdrs = { { .p_type = path ? PT_INTERP : PT_NULL,
			     .p_offset = PATH_OFFSET,
			     .p_filesz = path ? strlen(path) + 1 : 0 },
			   { .p_type = PT_LOAD,
			     .p_flags = PF_R | PF_X,
			     .p_vaddr = base,
			     .p_filesz = FILE_BYTES,
			     .p_memsz = FILE_BYTES,
			     .p_align = 4096 } },
	};
	if (path)
		strcpy((char *)image + PATH_OFFSET, path);
	memcpy((char *)image + CODE_OFFSET, code, code_bytes);
}

static void make_program(int type, uint64_t base, const char *path)
{
	make_image(&program, type, base, path, program_code, program_end - program_code);
}

static void make_interp(int type, uint64_t base)
{
	make_image(&interp, type, base, NULL, interp_code, interp_end - interp_code);
}

static void write_file(const char *name, const void *content, size_t bytes, mode_t mode)
{
	int fd;

	unlink(name);
	fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, mode);
	CHECK(fd >= 0 && write(fd, content, bytes) == (ssize_t)bytes);
	close(fd);
}

/* Executes the program in a child. Returns its status, or 0x1000 plus the errno of execve(). */
static int run_program(void)
{
	char *const argv[] = { "program", "argument", NULL }, *const envp[] = { "A=b", NULL };
	int *error = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	write_file(program_name, &program, sizeof(program), 0755);
	pid = fork_child();
	if (!pid) {
		execve(program_name, argv, envp);
		*error = errno;
		_exit(1);
	}
	status = child_status(pid);
	if (*error)
		status = 0x1000 + *error;
	munmap(error, 4096);
	return status;
}

#define REFUSED(error) (0x1000 + (error))

/* Runs the program with its interpreter, and expects this result. */
#define EXPECT(result)                                                       \
	do {                                                                 \
		int got = run_program();                                     \
                                                                             \
		if (!CHECK(got == (result)))                                 \
			printf("FAIL: %#x instead of %#x\n", got, (result)); \
	} while (0)

/* Makes two valid images. Each test then breaks something. */
static void make_both(void)
{
	make_program(ET_DYN, 0, interp_name);
	make_interp(ET_DYN, 0);
	write_file(interp_name, &interp, sizeof(interp), 0755);
}

TEST(kinds)
{
	static const uint64_t fixed = 0x400000, other = 0x10000000;

	make_both();
	EXPECT(EXITED(ALL_RIGHT));
	make_program(ET_EXEC, fixed, interp_name);
	EXPECT(EXITED(ALL_RIGHT));
	/* An interpreter with fixed addresses: AT_BASE is what was added to them. */
	make_interp(ET_EXEC, other);
	write_file(interp_name, &interp, sizeof(interp), 0755);
	EXPECT(EXITED(ALL_RIGHT - 1));
	make_program(ET_DYN, 0, interp_name);
	EXPECT(EXITED(ALL_RIGHT - 1));
	/* PT_INTERP of an interpreter is ignored. */
	make_both();
	interp.phdrs[0] = program.phdrs[0];
	strcpy((char *)&interp + PATH_OFFSET, "/no/such");
	write_file(interp_name, &interp, sizeof(interp), 0755);
	EXPECT(EXITED(ALL_RIGHT));
	/* A path ends at its first NUL. What follows is ignored. */
	make_both();
	program.phdrs[0].p_filesz += 10;
	EXPECT(EXITED(ALL_RIGHT));
}

TEST(paths)
{
	char *path = (char *)&program + PATH_OFFSET;
	char text[128] = "#!/bin/sh\n";

	make_both();
	unlink(interp_name);
	EXPECT(REFUSED(ENOENT));
	CHECK(!mkdir(interp_name, 0755));
	EXPECT(REFUSED(EACCES));
	CHECK(!rmdir(interp_name) && !mkfifo(interp_name, 0755));
	EXPECT(REFUSED(EACCES));
	unlink(interp_name);
	CHECK(!symlink(interp_name, interp_name));
	EXPECT(REFUSED(ELOOP));
	write_file(interp_name, &interp, sizeof(interp), 0644);
	EXPECT(REFUSED(EACCES));
	write_file(interp_name, text, sizeof(text), 0755);
	EXPECT(REFUSED(ELIBBAD));
	make_program(ET_DYN, 0, "/dev/null");
	EXPECT(REFUSED(EACCES));
	/* Invalid paths. */
	make_program(ET_DYN, 0, "");
	EXPECT(REFUSED(ENOEXEC));
	program.phdrs[0].p_filesz = 0;
	EXPECT(REFUSED(ENOEXEC));
	program.phdrs[0].p_filesz = 2;
	EXPECT(REFUSED(EACCES)); /* an empty path means the working directory */
	memset(path, 'x', MAX_PATH - 1);
	program.phdrs[0].p_filesz = MAX_PATH;
	EXPECT(REFUSED(ENAMETOOLONG));
	program.phdrs[0].p_filesz = MAX_PATH + 1;
	EXPECT(REFUSED(ENOEXEC));
	program.phdrs[0].p_filesz = 100; /* the path has no NUL */
	EXPECT(REFUSED(ENOEXEC));
	for (int shift = 20; shift < 64; shift++) {
		make_program(ET_DYN, 0, interp_name);
		program.phdrs[0].p_filesz = 1ul << shift;
		EXPECT(REFUSED(ENOEXEC));
	}
}

/* The path is not, or not all of it, in the file. */
TEST(offsets)
{
	static const uint64_t offsets[] = { FILE_BYTES, FILE_BYTES - 1, 1ul << 32, 1ul << 62 };

	for (unsigned int i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		make_program(ET_DYN, 0, interp_name);
		program.phdrs[0].p_offset = offsets[i];
		EXPECT(REFUSED(EIO));
	}
	program.phdrs[0].p_offset = -1ul; /* negative, to Linux */
	CHECK(run_program() > REFUSED(0));
}

TEST(headers)
{
	static const size_t lengths[] = { 0, 1, 4, 63 };

	make_both();
	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		write_file(interp_name, &interp, lengths[i], 0755);
		EXPECT(REFUSED(EIO));
	}
	/* The program headers are cut off. */
	write_file(interp_name, &interp, sizeof(Elf64_Ehdr) + 50, 0755);
	EXPECT(REFUSED(ELIBBAD));
#define BREAK(field, value)                                             \
	do {                                                            \
		struct image kept = interp;                             \
                                                                        \
		interp.field = (value);                                 \
		write_file(interp_name, &interp, sizeof(interp), 0755); \
		EXPECT(REFUSED(ELIBBAD));                               \
		interp = kept;                                          \
	} while (0)
	BREAK(ehdr.e_ident[1], 'e');
	BREAK(ehdr.e_machine, EM_AARCH64);
	BREAK(ehdr.e_phentsize, sizeof(Elf32_Phdr));
	BREAK(ehdr.e_phnum, 0);
	BREAK(ehdr.e_phnum, 0xffff);
	BREAK(ehdr.e_phoff, 1ul << 32);
	BREAK(ehdr.e_phoff, -1ul);
	if (!check_on_lego())
		return;
	/* Linux finds these errors after the point of no return, and kills the process. */
	BREAK(ehdr.e_type, ET_REL);
	BREAK(ehdr.e_ident[EI_CLASS], ELFCLASS32);
	BREAK(ehdr.e_entry, 1ul << 46);
	BREAK(phdrs[1].p_type, PT_NULL);
	BREAK(phdrs[1].p_vaddr, 0xffffffff81000000);
	BREAK(phdrs[1].p_vaddr, 0x00007fffffff0000);
	BREAK(phdrs[1].p_memsz, 1ul << 47);
	BREAK(phdrs[1].p_filesz, FILE_BYTES + 1);
	BREAK(phdrs[1].p_offset, 1);
	BREAK(phdrs[1].p_align, 3);
	/* Fixed addresses that are in use, or not in user space. */
	make_program(ET_EXEC, 0x400000, interp_name);
	for (uint64_t base = 0; base < 0x800000; base += 0x400000) {
		make_interp(ET_EXEC, base);
		BREAK(ehdr.e_version, EV_CURRENT);
	}
	make_interp(ET_EXEC, 0x7ffffff00000);
	BREAK(ehdr.e_version, EV_CURRENT);
}

/*
 * A running program cannot be opened for writing, and a file open for writing cannot be run. A
 * running interpreter can be written to.
 */
TEST(rights)
{
	int fd;
	pid_t pid;

	make_both();
	fd = open(interp_name, O_WRONLY);
	EXPECT(REFUSED(ETXTBSY));
	close(fd);
	EXPECT(EXITED(ALL_RIGHT));
	fd = open(interp_name, O_WRONLY); /* an interpreter is not busy after execve() */
	CHECK(fd >= 0 && !close(fd));
	if (geteuid())
		return;
	/* Another user needs the right to execute it, but not to read it. */
	CHECK(!chmod(interp_name, 0711));
	write_file(program_name, &program, sizeof(program), 0755);
	pid = fork_child();
	if (!pid) {
		CHECK(!setgid(1000) && !setuid(1000));
		if (!fork_child())
			execl(program_name, "program", NULL);
		CHECK(wait(&fd) > 0 && fd == EXITED(ALL_RIGHT));
		child_exit(0);
	}
	CHECK(child_status(pid) == 0 && !chmod(interp_name, 0700));
	pid = fork_child();
	if (!pid) {
		CHECK(!setgid(1000) && !setuid(1000));
		CHECK(execl(program_name, "program", NULL) == -1 && errno == EACCES);
		child_exit(0);
	}
	CHECK(child_status(pid) == 0);
}

/* Runs so many bad interpreters that a leak would use up the memory. */
TEST(again)
{
	make_both();
	interp.ehdr.e_phnum = 0;
	write_file(interp_name, &interp, sizeof(interp), 0755);
	for (int i = 0; i < 200; i++)
		EXPECT(REFUSED(ELIBBAD));
	make_both();
	EXPECT(EXITED(ALL_RIGHT));
	unlink(program_name);
	unlink(interp_name);
}

int main(int argc, char **argv)
{
	mkdir("/tmp", 0777);
	snprintf(program_name, sizeof(program_name), "%s.program", check_file_name());
	snprintf(interp_name, sizeof(interp_name), "%s.interp", check_file_name());
	return run_tests("interps", argc, argv);
}
