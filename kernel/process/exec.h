/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROCESS_EXEC_H
#define PROCESS_EXEC_H

/* The parts of execve: reading the file, copying strings, the new program's stack. */

#include <lego/fs.h>
#include <lego/mm.h>
#include <lego/sched.h>

#define EXEC_STACK_TOP	     TASK_SIZE
#define EXEC_STACK_BYTES     (8ULL << 20) /* the first value of RLIMIT_STACK */
#define EXEC_MIN_STACK_BYTES (128ULL << 10)
#define EXEC_MAX_STACK_BYTES (120ULL << 20)
#define EXEC_MMAP_BASE	     (TASK_SIZE - (128ULL << 20)) /* what Linux leaves for stacks */
#define EXEC_PIE_BASE	     0x555555554000ULL		  /* Linux's without randomization */

#define EXEC_MAX_PATH_BYTES 4096 /* with the NUL */

/*
 * Limits of one string, and of argv and envp together, pointers included; as in Linux with an 8 MiB
 * stack.
 */
#define EXEC_MAX_STRING_BYTES (128U << 10)
#define EXEC_MAX_TOTAL_BYTES  (2U << 20)

/* Facts about the image, for the auxiliary vector of the new program. */
struct exec_image {
	u64 start;	      /* the first instruction: of the interpreter, if there is one */
	u64 entry;	      /* the first instruction of the program itself */
	u64 interpreter_base; /* where the interpreter's address 0 is; 0: there is none */
	u64 phdr_addr;	      /* 0: not mapped */
	u64 nr_phdrs;
	bool exec_stack;
	u64 stack_bytes;
	struct credentials creds; /* credentials of the new program */
	bool not_dumpable;	  /* others may not inspect it, by these credentials or by a file */
};

/*
 * Opens a file for execution, and prevents writes to it until exec_close(). Returns 0; -ENOENT,
 * -EACCES or any other error of a path; -EACCES if it is no regular file; or -ETXTBSY.
 */
int exec_open(const char *path, struct file **file);
void exec_close(struct file *file);

/*
 * Checks a program and its interpreter, and maps their segments into an empty mm. Returns 0,
 * -ENOMEM, or -ENOEXEC if the file is no x86-64 program. For the interpreter, returns the errors of
 * exec_open(), -EIO if it is shorter than a header, or -ELIBBAD if it is no x86-64 program.
 */
int elf_load(struct file *file, struct mm *mm, struct exec_image *image);

/*
 * Linux's limits: how many bytes of a script's first line are read, and how many interpreters of
 * interpreters there can be.
 */
#define EXEC_LINE_BYTES	 256
#define EXEC_MAX_SCRIPTS 5

struct exec_script {
	struct exec_script *outer; /* the script whose interpreter this one is, or NULL */
	char *interpreter;	   /* these two point to line, path and the outer argv */
	const char **argv;
	char line[EXEC_LINE_BYTES + 1];
};

/*
 * Reads a script. Returns 1 and sets *script, whose old value becomes its outer script; 0 if the
 * file is no script; -ENOEXEC if it names no interpreter; -ENOMEM or -EIO. path and argv are used
 * until the scripts are freed by the innermost one.
 */
int exec_read_script(struct file *file, const char *path, const char *const *argv,
		     struct exec_script **script);
void exec_free_scripts(struct exec_script *script);

/*
 * Writes argc, argv, envp and the auxiliary vector (System V ABI for AMD64, 3.4.1) below
 * EXEC_STACK_TOP of the current mm. Sets *sp to the new stack pointer. Returns 0, -E2BIG or
 * -EFAULT.
 */
int exec_build_stack(const struct exec_image *image, const char *path, const char *const *argv,
		     const char *const *envp, u64 *sp);

/* Returns true if the program has rights that its user does not have. */
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

/*
 * Copies strings. *budget bytes are left for them and their pointers. Returns 0, -EFAULT, -E2BIG or
 * -ENOMEM.
 */
int exec_copy_strings(struct exec_strings *strings, const char __user *const __user *user,
		      size_t *budget);
void exec_free_strings(struct exec_strings *strings);

#endif
