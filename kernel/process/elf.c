// SPDX-License-Identifier: BSD-2-Clause
/*
 * Loads ELF64 programs (System V ABI, chapters 4 and 5), and the interpreters that dynamic ones
 * name (PT_INTERP). The kernel maps both and starts the interpreter, which finds the program by the
 * auxiliary vector and loads its libraries. PT_INTERP of an interpreter is ignored.
 *
 * No field is trusted: each is checked against the file's size, the user address range and the
 * segment before it, without sums that can overflow. Linux finds some of the errors after the point
 * of no return of execve(), and kills the process; here execve() fails.
 */

#include "exec.h"

#include <lego/errno.h>
#include <lego/kernel.h>
#include <lego/slab.h>
#include <lego/string.h>

#define EI_CLASS   4
#define EI_DATA	   5
#define EI_VERSION 6

#define ELFCLASS64  2
#define ELFDATA2LSB 1
#define EV_CURRENT  1
#define ET_EXEC	    2
#define ET_DYN	    3
#define EM_X86_64   62

#define PT_LOAD	     1
#define PT_INTERP    3
#define PT_GNU_STACK 0x6474e551

#define PF_X 1
#define PF_W 2
#define PF_R 4

#define MAX_PHDRS 128

/* No program starts in the first 64 KiB, so that a NULL pointer with an offset faults. */
#define MIN_USER_ADDR 0x10000ULL

struct elf64_ehdr {
	u8 ident[16];
	u16 type;
	u16 machine;
	u32 version;
	u64 entry;
	u64 phoff;
	u64 shoff;
	u32 flags;
	u16 ehsize;
	u16 phentsize;
	u16 phnum;
	u16 shentsize;
	u16 shnum;
	u16 shstrndx;
};

struct elf64_phdr {
	u32 type;
	u32 flags;
	u64 offset;
	u64 vaddr;
	u64 paddr;
	u64 filesz;
	u64 memsz;
	u64 align;
};

/* An ELF file to be mapped. An address in the file plus bias is the address in the process. */
struct elf_file {
	struct file *file;
	struct elf64_ehdr ehdr;
	struct elf64_phdr *phdrs;
	u64 start, end; /* of all segments, page aligned, as the file has them */
	u64 align;	/* the largest alignment of a segment */
	u64 bias;
};

/* Returns 0, error_if_short if the file is too short, or the error of the read. */
static int read_exact(struct file *file, void *buf, size_t n, u64 pos, int error_if_short)
{
	ssize_t nr = file_read_at(file, buf, n, pos);

	if (nr < 0)
		return (int)nr;
	return nr == n ? 0 : error_if_short;
}

static int check_ehdr(const struct elf64_ehdr *ehdr, u64 file_bytes)
{
	u64 phdr_bytes = (u64)ehdr->phnum * sizeof(struct elf64_phdr);

	if (memcmp(ehdr->ident, "\177ELF", 4) || ehdr->ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr->ident[EI_DATA] != ELFDATA2LSB || ehdr->ident[EI_VERSION] != EV_CURRENT)
		return -ENOEXEC;
	if (ehdr->type != ET_EXEC && ehdr->type != ET_DYN)
		return -ENOEXEC;
	if (ehdr->machine != EM_X86_64 || ehdr->phentsize != sizeof(struct elf64_phdr))
		return -ENOEXEC;
	if (!ehdr->phnum || ehdr->phnum > MAX_PHDRS)
		return -ENOEXEC;
	if (phdr_bytes > file_bytes || ehdr->phoff > file_bytes - phdr_bytes)
		return -ENOEXEC;
	return 0;
}

/*
 * Checks a segment. It must come after *end, the page-aligned end of the segments so far. Addresses
 * are those in the file.
 */
static int check_load(const struct elf64_phdr *phdr, u64 file_bytes, u64 *end)
{
	u64 start = ALIGN_DOWN(phdr->vaddr, PAGE_SIZE);

	if (phdr->filesz > phdr->memsz || phdr->filesz > file_bytes ||
	    phdr->offset > file_bytes - phdr->filesz)
		return -ENOEXEC;
	if ((phdr->vaddr ^ phdr->offset) & (PAGE_SIZE - 1))
		return -ENOEXEC;
	if (phdr->align && (phdr->align & (phdr->align - 1)))
		return -ENOEXEC;
	if (phdr->memsz > TASK_SIZE || phdr->vaddr > TASK_SIZE - phdr->memsz || start < *end)
		return -ENOEXEC;
	*end = ALIGN_UP(phdr->vaddr + phdr->memsz, PAGE_SIZE);
	return 0;
}

/* Checks all segments, and fills in start, end and align. */
static int check_phdrs(struct elf_file *elf)
{
	u64 file_bytes = file_size_bytes(elf->file);
	bool found = false;

	elf->align = PAGE_SIZE;
	for (unsigned int i = 0; i < elf->ehdr.phnum; i++) {
		const struct elf64_phdr *phdr = &elf->phdrs[i];
		int error;

		if (phdr->type != PT_LOAD || !phdr->memsz)
			continue;
		error = check_load(phdr, file_bytes, &elf->end);
		if (error)
			return error;
		elf->align = max(elf->align, phdr->align);
		if (!found)
			elf->start = ALIGN_DOWN(phdr->vaddr, PAGE_SIZE);
		found = true;
	}
	if (!found || elf->align > (1ULL << 30))
		return -ENOEXEC;
	if (elf->ehdr.entry < elf->start || elf->ehdr.entry >= elf->end)
		return -ENOEXEC;
	return 0;
}

/* Reads and checks all headers after the first one, which the caller has read. */
static int read_headers(struct elf_file *elf)
{
	size_t bytes = elf->ehdr.phnum * sizeof(*elf->phdrs);
	int error = check_ehdr(&elf->ehdr, file_size_bytes(elf->file));

	if (error)
		return error;
	elf->phdrs = kmalloc(bytes);
	if (!elf->phdrs)
		return -ENOMEM;
	error = read_exact(elf->file, elf->phdrs, bytes, elf->ehdr.phoff, -ENOEXEC);
	return error ?: check_phdrs(elf);
}

/* Chooses the bias of a program; of one with fixed addresses it is 0. */
static int place_program(struct elf_file *elf)
{
	u64 limit = EXEC_MMAP_BASE, bytes = elf->end - elf->start;

	if (elf->ehdr.type == ET_DYN)
		elf->bias =
			ALIGN_UP(EXEC_PIE_BASE, elf->align) - ALIGN_DOWN(elf->start, elf->align);
	/* The bias may be "negative"; both ends must come out in range. */
	if (bytes > limit || elf->start + elf->bias < MIN_USER_ADDR ||
	    elf->start + elf->bias > limit - bytes)
		return -ENOEXEC;
	return 0;
}

/*
 * Chooses the bias of an interpreter: it goes where mmap() would put it, or to its fixed addresses
 * if nothing is there. 0, -ELIBBAD or -ENOMEM.
 */
static int place_interpreter(struct elf_file *elf, struct mm *mm)
{
	bool fixed = elf->ehdr.type == ET_EXEC;
	u64 bytes = elf->end - elf->start + (fixed ? 0 : elf->align - PAGE_SIZE);
	u32 flags = MAP_PRIVATE | MAP_ANONYMOUS | (fixed ? MAP_FIXED_NOREPLACE : 0);
	long place;

	if (fixed && (elf->start < MIN_USER_ADDR || elf->end > EXEC_MMAP_BASE))
		return -ELIBBAD;
	place = mm_map(mm, fixed ? elf->start : 0, bytes, PROT_NONE, flags, NULL, 0);
	if (IS_ERR_VALUE(place))
		return place == -ENOMEM ? -ENOMEM : -ELIBBAD;
	if (!fixed)
		elf->bias = ALIGN_UP(place, elf->align) - ALIGN_DOWN(elf->start, elf->align);
	/* Nothing must be mapped between segments. */
	return (int)mm_unmap(mm, place, bytes);
}

static int map_segment(struct file *file, struct mm *mm, const struct elf64_phdr *phdr, u64 bias)
{
	u64 lead = phdr->vaddr & (PAGE_SIZE - 1);
	u64 start = phdr->vaddr - lead + bias;
	u64 len = ALIGN_UP(lead + phdr->memsz, PAGE_SIZE);
	u32 prot = (phdr->flags & PF_R ? PROT_READ : 0) | (phdr->flags & PF_W ? PROT_WRITE : 0) |
		   (phdr->flags & PF_X ? PROT_EXEC : 0);
	long ret;

	if (phdr->filesz)
		ret = mm_map_segment(mm, start, len, prot, file, phdr->offset - lead,
				     lead + phdr->filesz);
	else
		ret = mm_map(mm, start, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL,
			     0);
	return IS_ERR_VALUE(ret) ? (int)ret : 0;
}

/* Extends the range from the first to the last byte of code in mm. */
static void note_code(struct mm *mm, const struct elf64_phdr *phdr, u64 bias)
{
	u64 start = phdr->vaddr + bias;

	if (!(phdr->flags & PF_X))
		return;
	if (!mm->layout.start_code)
		mm->layout.start_code = start;
	mm->layout.end_code = start + phdr->filesz;
}

/* Maps all segments. Fills in *program, which is NULL for an interpreter. */
static int map_segments(const struct elf_file *elf, struct mm *mm, struct exec_image *program)
{
	u64 phoff = elf->ehdr.phoff;

	for (unsigned int i = 0; i < elf->ehdr.phnum; i++) {
		const struct elf64_phdr *phdr = &elf->phdrs[i];
		int error;

		if (program && phdr->type == PT_GNU_STACK)
			program->exec_stack = phdr->flags & PF_X;
		if (phdr->type != PT_LOAD || !phdr->memsz)
			continue;
		error = map_segment(elf->file, mm, phdr, elf->bias);
		if (error)
			return error;
		if (!program)
			continue;
		note_code(mm, phdr, elf->bias);
		if (phoff >= phdr->offset && phoff - phdr->offset < phdr->filesz)
			program->phdr_addr = phoff - phdr->offset + phdr->vaddr + elf->bias;
	}
	return 0;
}

static int map_program(struct elf_file *elf, struct mm *mm, struct exec_image *image)
{
	int error = place_program(elf) ?: map_segments(elf, mm, image);

	image->start = image->entry = elf->ehdr.entry + elf->bias;
	image->nr_phdrs = elf->ehdr.phnum;
	mm->brk_start = mm->brk = elf->end + elf->bias;
	mm->mmap_base = EXEC_MMAP_BASE;
	return error;
}

static int map_interpreter(struct elf_file *elf, struct mm *mm, struct exec_image *image)
{
	int error = place_interpreter(elf, mm) ?: map_segments(elf, mm, NULL);

	image->start = elf->ehdr.entry + elf->bias;
	image->interpreter_base = elf->bias;
	return error;
}

/* Returns the path of the interpreter, to be freed; NULL if the program needs none; or ERR_PTR. */
static char *read_interpreter_path(const struct elf_file *elf)
{
	const struct elf64_phdr *phdr = elf->phdrs, *end = phdr + elf->ehdr.phnum;
	char *path;
	int error;

	while (phdr < end && phdr->type != PT_INTERP)
		phdr++;
	if (phdr == end)
		return NULL;
	if (phdr->filesz < 2 || phdr->filesz > EXEC_MAX_PATH_BYTES)
		return ERR_PTR(-ENOEXEC);
	path = kmalloc(phdr->filesz);
	if (!path)
		return ERR_PTR(-ENOMEM);
	error = read_exact(elf->file, path, phdr->filesz, phdr->offset, -EIO);
	if (!error && path[phdr->filesz - 1])
		error = -ENOEXEC;
	if (!error)
		return path;
	kfree(path);
	return ERR_PTR(error);
}

/* Opens the program's interpreter and checks it. Without one, interp->file stays NULL. */
static int open_interpreter(const struct elf_file *program, struct elf_file *interp)
{
	char *path = read_interpreter_path(program);
	int error;

	if (!path)
		return 0;
	if (IS_ERR(path))
		return (int)PTR_ERR(path);
	/* As in Linux, an empty path is the working directory. */
	error = *path ? exec_open(path, &interp->file) : -EACCES;
	kfree(path);
	if (error)
		return error;
	error = read_exact(interp->file, &interp->ehdr, sizeof(interp->ehdr), 0, -EIO);
	if (error)
		return error;
	error = read_headers(interp);
	return error == -ENOEXEC ? -ELIBBAD : error;
}

/*
 * Both files are checked completely before anything is mapped. Afterwards only the choice of their
 * places can fail.
 */
int elf_load(struct file *file, struct mm *mm, struct exec_image *image)
{
	struct elf_file program = { .file = file }, interp = { 0 };
	int error = read_exact(file, &program.ehdr, sizeof(program.ehdr), 0, -ENOEXEC);

	if (!error)
		error = read_headers(&program);
	if (!error)
		error = open_interpreter(&program, &interp);
	if (!error)
		error = map_program(&program, mm, image);
	if (!error && interp.file)
		error = map_interpreter(&interp, mm, image);
	image->not_dumpable = interp.file && !file_is_readable(interp.file);
	if (interp.file)
		exec_close(interp.file);
	kfree(interp.phdrs);
	kfree(program.phdrs);
	return error;
}
