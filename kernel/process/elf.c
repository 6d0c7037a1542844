// SPDX-License-Identifier: BSD-2-Clause
#include "exec.h"

#include <lego/errno.h>
#include <lego/kernel.h>
#include <lego/printk.h>
#include <lego/slab.h>
#include <lego/string.h>

/*
 * ELF64 program files (System V ABI, chapters 4 and 5). No field is believed: each is checked
 * against the file's size, the user address range and the segment before it, without sums that
 * can overflow.
 */

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

static int read_exact(struct file *file, void *buf, size_t n, u64 pos)
{
	ssize_t nr = file_read_at(file, buf, n, pos);

	if (nr < 0)
		return (int)nr;
	return nr == n ? 0 : -ENOEXEC;
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
 * *end: of the segments so far, page aligned; this one must lie behind. Addresses are the
 * file's.
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

/* Check all headers; *bias is what to add to the file's addresses. */
static int check_phdrs(const struct elf64_ehdr *ehdr, const struct elf64_phdr *phdrs,
		       u64 file_bytes, u64 *bias)
{
	u64 end = 0, first = 0, align = PAGE_SIZE, limit = EXEC_MMAP_BASE;
	bool found = false;
	int error;

	for (unsigned int i = 0; i < ehdr->phnum; i++) {
		const struct elf64_phdr *phdr = &phdrs[i];

		if (phdr->type == PT_INTERP) {
			printk("exec: a program needs a dynamic linker; link it statically\n");
			return -ENOENT;
		}
		if (phdr->type != PT_LOAD || !phdr->memsz)
			continue;
		error = check_load(phdr, file_bytes, &end);
		if (error)
			return error;
		align = max(align, phdr->align);
		if (!found)
			first = ALIGN_DOWN(phdr->vaddr, PAGE_SIZE);
		found = true;
	}
	if (!found || align > (1ULL << 30))
		return -ENOEXEC;
	*bias = 0;
	if (ehdr->type == ET_DYN)
		*bias = ALIGN_UP(EXEC_PIE_BASE, align) - ALIGN_DOWN(first, align);
	/* The bias may be "negative"; both ends must come out in range. */
	if (end - first > limit || first + *bias < MIN_USER_ADDR ||
	    first + *bias > limit - (end - first))
		return -ENOEXEC;
	if (ehdr->entry < first || ehdr->entry >= end)
		return -ENOEXEC;
	return 0;
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

/* From the first to the last byte of code in the file. */
static void note_code(struct mm *mm, const struct elf64_phdr *phdr, u64 bias)
{
	u64 start = phdr->vaddr + bias;

	if (!(phdr->flags & PF_X))
		return;
	if (!mm->layout.start_code)
		mm->layout.start_code = start;
	mm->layout.end_code = start + phdr->filesz;
}

static int map_image(struct file *file, struct mm *mm, const struct elf64_ehdr *ehdr,
		     const struct elf64_phdr *phdrs, u64 bias, struct exec_image *image)
{
	u64 end = 0;

	for (unsigned int i = 0; i < ehdr->phnum; i++) {
		const struct elf64_phdr *phdr = &phdrs[i];
		int error;

		if (phdr->type == PT_GNU_STACK)
			image->exec_stack = phdr->flags & PF_X;
		if (phdr->type != PT_LOAD || !phdr->memsz)
			continue;
		error = map_segment(file, mm, phdr, bias);
		if (error)
			return error;
		note_code(mm, phdr, bias);
		if (ehdr->phoff >= phdr->offset && ehdr->phoff - phdr->offset < phdr->filesz)
			image->phdr_addr = ehdr->phoff - phdr->offset + phdr->vaddr + bias;
		end = ALIGN_UP(phdr->vaddr + phdr->memsz, PAGE_SIZE) + bias;
	}
	image->entry = ehdr->entry + bias;
	image->nr_phdrs = ehdr->phnum;
	mm->brk_start = end;
	mm->brk = end;
	mm->mmap_base = EXEC_MMAP_BASE;
	return 0;
}

int elf_load(struct file *file, struct mm *mm, struct exec_image *image)
{
	u64 file_bytes = file_size_bytes(file), bias;
	struct elf64_phdr *phdrs;
	struct elf64_ehdr ehdr;
	int error;

	error = read_exact(file, &ehdr, sizeof(ehdr), 0);
	if (!error)
		error = check_ehdr(&ehdr, file_bytes);
	if (error)
		return error;
	phdrs = kmalloc(ehdr.phnum * sizeof(*phdrs));
	if (!phdrs)
		return -ENOMEM;
	error = read_exact(file, phdrs, ehdr.phnum * sizeof(*phdrs), ehdr.phoff);
	if (!error)
		error = check_phdrs(&ehdr, phdrs, file_bytes, &bias);
	if (!error)
		error = map_image(file, mm, &ehdr, phdrs, bias, image);
	kfree(phdrs);
	return error;
}
