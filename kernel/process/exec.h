/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROCESS_EXEC_H
#define PROCESS_EXEC_H

/* The parts of execve: reading the file, copying strings, the new program's stack. */

#include <lego/fs.h>
#include <lego/mm.h>
#include <lego/sched.h>

#define EXEC_STACK_TOP	     TASK_SIZE
#define EXEC_STACK_BYTES     (8ULL << 20) /* the limit at first: RLIMIT_STACK */
#define EXEC_MIN_STACK_BYTES (128ULL << 10)
#define EXEC_MAX_STACK_BYTES (120ULL << 20)
#define EXEC_MMAP_BASE	     (TASK_SIZE - (128ULL << 20)) /* what Linux leaves for stacks */
#define EXEC_PIE_BASE	     0x555555554000ULL		  /* Linux's without randomization */

#define EXEC_MAX_PATH_BYTES 4096 /* with the NUL */

/* Limits of argv and envp together, as Linux's for an 8 MiB stack; pointers count. */
#define EXEC_MAX_STRING_BYTES (128U << 10)
#define EXEC_MAX_TOTAL_BYTES  (2U << 20)

/* What the new program is told about its image. */
struct exec_image {
	u64 start;	      /* the first instruction: of the interpreter, if there is one */
	u64 entry;	      /* of the program itself */
	u64 interpreter_base; /* where the interpreter's address 0 is; 0: there is none */
	u64 phdr_addr;	      /* 0: not mapped */
	u64 nr_phdrs;
	bool exec_stack;
	u64 stack_bytes;
	struct credentials creds; /* that it runs with */
};

/*
 * Opens a file to execute it, and keeps others from writing to it until exec_close(). 0; -ENOENT,
 * -EACCES or any other error of a path; -EACCES for what is no regular file; -ETXTBSY.
 */
int exec_open(const char *path, struct file **file);
void exec_close(struct file *file);

/*
 * Checks the file and maps its segments into an empty mm, and those of its interpreter. 0, or
 * -ENOEXEC for anything that is not an x86-64 program; -ENOMEM; of an interpreter the errors of
 * exec_open(), -EIO when it is shorter than a header, and -ELIBBAD when it is no x86-64 program.
 */
int elf_load(struct file *file, struct mm *mm, struct exec_image *image);

/* As Linux's: what is looked at of a script's first line, and how many may be interpreters. */
#define EXEC_LINE_BYTES	 256
#define EXEC_MAX_SCRIPTS 5

struct exec_script {
	struct exec_script *outer; /* the script whose interpreter this one is, or NULL */
	char *interpreter;	   /* these two point to line, path and the outer argv */
	const char **argv;
	char line[EXEC_LINE_BYTES + 1];
};

/*
 * If the file is a script: 1, and *script is it, the old value being the outer one. 0: it is none.
 * -ENOEXEC when it names no interpreter, -ENOMEM, -EIO. path and argv are used until the scripts
 * are freed, which takes the innermost one.
 */
int exec_read_script(struct file *file, const char *path, const char *const *argv,
		     struct exec_script **script);
void exec_free_scripts(struct exec_script *script);

/*
 * Lay out argc, argv, envp and the auxiliary vector (System V ABI for AMD64, 3.4.1) below
 * EXEC_STACK_TOP of the current mm. *sp is the new stack pointer. 0, -E2BIG or -EFAULT.
 */
int exec_build_stack(const struct exec_image *image, const char *path, const char *const *argv,
		     const char *const *envp, u64 *sp);

/* True if the program was given rights that its user does not have. */
static inline bool exec_is_secure(const struct credentials *creds)
{
	return creds->uid != creds->euid || creds->gid != creds->egid;
}

/* An array of strings copied from user memory. */
struct exec_strings {
	const char **array; /* ended by NULL */
	char *bytes;
	size_t used, size;
};

/* *budget bytes are left for these strings and their pointers. 0, -EFAULT, -E2BIG or -ENOMEM. */
int exec_copy_strings(struct exec_strings *strings, const char __user *const __user *user,
		      size_t *budget);
void exec_free_strings(struct exec_strings *strings);

#endif
