// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copies argv and envp from user memory. The strings are stored one after the other in a growing
 * block. The array of pointers is made at the end, when the block no longer moves.
 */

#include "exec.h"

#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/uaccess.h>

#define FIRST_BLOCK_BYTES 8192

static int grow_block(struct exec_strings *strings)
{
	size_t size = strings->size ? strings->size * 2 : FIRST_BLOCK_BYTES;
	char *bytes = kmalloc(size);

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, strings->bytes, strings->used);
	kfree(strings->bytes);
	current->call_bytes += size - strings->size;
	strings->bytes = bytes;
	strings->size = size;
	return 0;
}

/* Appends one string. Doubles the block until the string fits or is too long. */
static int copy_string(struct exec_strings *strings, const char __user *str, size_t *budget)
{
	for (;;) {
		size_t most = min(*budget, (size_t)EXEC_MAX_STRING_BYTES);
		size_t room = min(strings->size - strings->used, most);
		ssize_t len = -ENAMETOOLONG;
		int error;

		if (room)
			len = strncpy_from_user(strings->bytes + strings->used, str, room);
		if (len >= 0) {
			strings->used += len + 1;
			*budget -= len + 1;
			return 0;
		}
		if (len != -ENAMETOOLONG)
			return (int)len;
		if (room == most)
			return -E2BIG;
		error = grow_block(strings);
		if (error)
			return error;
	}
}

static int make_array(struct exec_strings *strings, size_t nr)
{
	const char *str = strings->bytes;

	strings->array = kmalloc((nr + 1) * sizeof(*strings->array));
	if (!strings->array)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		strings->array[i] = str;
		str += strlen(str) + 1;
	}
	strings->array[nr] = NULL;
	return 0;
}

int exec_copy_strings(struct exec_strings *strings, const char __user *const __user *user,
		      size_t *budget)
{
	const char __user *str;
	size_t nr;
	int error;

	for (nr = 0; user; nr++) {
		if (get_user(str, user + nr))
			return -EFAULT;
		if (!str)
			break;
		if (*budget <= sizeof(str))
			return -E2BIG;
		*budget -= sizeof(str);
		error = copy_string(strings, str, budget);
		if (error)
			return error;
		if (task_killed(current))
			return -EINTR;
		cond_resched();
	}
	return make_array(strings, nr);
}

void exec_free_strings(struct exec_strings *strings)
{
	kfree(strings->array);
	kfree(strings->bytes);
	current->call_bytes -= strings->size;
}
