// SPDX-License-Identifier: BSD-2-Clause
/*
 * Builds the stack of a new program. From low to high addresses: argc, argv[], NULL, envp[], NULL,
 * the auxiliary vector, AT_NULL; above them the strings and bytes that these point to. rsp points
 * to argc and is a multiple of 16.
 */

#include "exec.h"

#include "process.h"
#include <asm/cpufeature.h>
#include <lego/errno.h>
#include <lego/random.h>
#include <lego/string.h>
#include <lego/uaccess.h>

#define AT_NULL	    0
#define AT_PHDR	    3
#define AT_PHENT    4
#define AT_PHNUM    5
#define AT_PAGESZ   6
#define AT_BASE	    7
#define AT_FLAGS    8
#define AT_ENTRY    9
#define AT_UID	    11
#define AT_EUID	    12
#define AT_GID	    13
#define AT_EGID	    14
#define AT_PLATFORM 15
#define AT_HWCAP    16
#define AT_CLKTCK   17
#define AT_SECURE   23
#define AT_RANDOM   25
#define AT_HWCAP2   26
#define AT_EXECFN   31

#define PHDR_BYTES   56
#define RANDOM_BYTES 16

/* Where the next words and bytes go in the new stack, upwards. */
struct cursor {
	u64 pointers; /* next word of the vectors */
	u64 bytes;    /* next byte of the strings that they point to */
	int error;
};

static void put_word(struct cursor *at, u64 word)
{
	if (!at->error)
		at->error = put_user(word, (u64 __user *)at->pointers);
	at->pointers += sizeof(word);
}

/* Copies bytes to the stack. Returns the user address of the copy. */
static u64 put_bytes(struct cursor *at, const void *bytes, size_t n)
{
	u64 addr = at->bytes;

	if (!at->error)
		at->error = copy_to_user((void __user *)addr, bytes, n);
	at->bytes += n;
	return addr;
}

static u64 put_string(struct cursor *at, const char *str)
{
	return put_bytes(at, str, strlen(str) + 1);
}

static void put_strings(struct cursor *at, const char *const *strings)
{
	for (; *strings; strings++)
		put_word(at, put_string(at, *strings));
	put_word(at, 0);
}

static void put_aux(struct cursor *at, u64 type, u64 value)
{
	put_word(at, type);
	put_word(at, value);
}

#define NR_AUX_WORDS (2 * 19)

static void put_auxv(struct cursor *at, const struct exec_image *image, const char *path)
{
	const struct credentials *creds = &image->creds;
	u8 random[RANDOM_BYTES];

	random_bytes(random, sizeof(random));
	put_aux(at, AT_HWCAP, cpuid(1).edx);
	put_aux(at, AT_HWCAP2, 0);
	put_aux(at, AT_PAGESZ, PAGE_SIZE);
	put_aux(at, AT_CLKTCK, USER_HZ);
	put_aux(at, AT_PHDR, image->phdr_addr);
	put_aux(at, AT_PHENT, PHDR_BYTES);
	put_aux(at, AT_PHNUM, image->nr_phdrs);
	put_aux(at, AT_BASE, image->interpreter_base);
	put_aux(at, AT_FLAGS, 0);
	put_aux(at, AT_ENTRY, image->entry);
	put_aux(at, AT_UID, creds->uid);
	put_aux(at, AT_EUID, creds->euid);
	put_aux(at, AT_GID, creds->gid);
	put_aux(at, AT_EGID, creds->egid);
	put_aux(at, AT_SECURE, exec_is_secure(creds));
	put_aux(at, AT_RANDOM, put_bytes(at, random, sizeof(random)));
	put_aux(at, AT_EXECFN, put_string(at, path));
	put_aux(at, AT_PLATFORM, put_string(at, "x86_64"));
	put_aux(at, AT_NULL, 0);
}

/* Counts strings, and adds their lengths to *nr_bytes. */
static u64 measure_strings(const char *const *strings, u64 *nr_bytes)
{
	u64 nr = 0;

	for (; strings[nr]; nr++)
		*nr_bytes += strlen(strings[nr]) + 1;
	return nr;
}

int exec_build_stack(const struct exec_image *image, const char *path, const char *const *argv,
		     const char *const *envp, u64 *sp)
{
	u64 nr_bytes = RANDOM_BYTES + strlen(path) + 1 + sizeof("x86_64");
	u64 argc = measure_strings(argv, &nr_bytes);
	u64 nr_words = 1 + argc + 1 + measure_strings(envp, &nr_bytes) + 1 + NR_AUX_WORDS;
	struct cursor at = { 0 };
	struct mm *mm = current->mm;

	if (nr_bytes + nr_words * sizeof(u64) > image->stack_bytes / 2)
		return -E2BIG;
	/* Linux leaves the last word of the stack zero; so do we. */
	at.bytes = EXEC_STACK_TOP - sizeof(u64) - nr_bytes;
	at.pointers = ALIGN_DOWN(at.bytes - nr_words * sizeof(u64), 16);
	*sp = at.pointers;
	put_word(&at, argc);
	mm->layout.start_stack = *sp;
	mm->layout.arg_start = at.bytes;
	put_strings(&at, argv);
	mm->layout.arg_end = at.bytes;
	mm->layout.env_start = at.bytes;
	put_strings(&at, envp);
	mm->layout.env_end = at.bytes;
	put_auxv(&at, image, path);
	return at.error;
}
