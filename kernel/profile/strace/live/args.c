// SPDX-License-Identifier: BSD-2-Clause
/*
 * Captures the user memory that the arguments of a call point to: what the call reads at its entry,
 * what it has written at its exit. Each argument is copied into a chunk of bounded size. If the
 * memory cannot be read, or there is no room for another chunk, the line shows the address instead.
 */

#include "live.h"

const struct live_chunk *live_chunk_of(const struct live_call *call, unsigned int arg)
{
	for (unsigned int i = 0; i < call->nr_chunks && i < LIVE_MAX_CHUNKS; i++)
		if (call->chunks[i].arg == arg)
			return &call->chunks[i];
	return NULL;
}

/*
 * Returns the next free chunk if there is room for size bytes, else NULL. keep_chunk() allocates
 * it.
 */
static struct live_chunk *new_chunk(struct live_call *call, unsigned int arg, size_t size)
{
	struct live_chunk *chunk = &call->chunks[call->nr_chunks];

	if (!call->args[arg] || call->nr_chunks == LIVE_MAX_CHUNKS ||
	    size > sizeof(call->bytes) - call->nr_bytes)
		return NULL;
	*chunk = (struct live_chunk){ .arg = arg, .at = call->nr_bytes };
	return chunk;
}

static void keep_chunk(struct live_call *call, struct live_chunk *chunk, size_t len, bool truncated)
{
	chunk->len = len;
	chunk->truncated = truncated;
	call->nr_bytes += len;
	call->nr_chunks++;
}

static void capture_bytes(struct live_call *call, unsigned int arg, u64 nr_bytes)
{
	size_t len = pf_min(nr_bytes, (u64)LIVE_STRING_BYTES);
	struct live_chunk *chunk = new_chunk(call, arg, len);

	if (chunk && !os_copy_from_user(call->bytes + chunk->at, call->args[arg], len))
		keep_chunk(call, chunk, len, nr_bytes > len);
}

static void capture_string(struct live_call *call, unsigned int arg, size_t size)
{
	struct live_chunk *chunk = new_chunk(call, arg, size);
	long len;

	if (!chunk)
		return;
	len = os_copy_string_from_user(call->bytes + chunk->at, call->args[arg], size);
	if (len >= 0)
		keep_chunk(call, chunk, len, false);
	else if (len == -OS_ENAMETOOLONG)
		keep_chunk(call, chunk, size, true);
}

void live_capture_entry(struct live_call *call)
{
	const struct live_arg *args = live_syscall(call->nr)->args;

	for (unsigned int i = 0; i < LIVE_MAX_ARGS; i++) {
		switch (args[i].type) {
		case LIVE_ARG_path:
			capture_string(call, i, LIVE_PATH_BYTES);
			break;
		case LIVE_ARG_str:
			capture_string(call, i, LIVE_STRING_BYTES);
			break;
		case LIVE_ARG_prctl:
			if ((u32)call->args[i] == LIVE_PR_SET_NAME)
				capture_string(call, i + 1, LIVE_COMM_BYTES);
			break;
		case LIVE_ARG_in:
			capture_bytes(call, i, call->args[args[i].with % LIVE_MAX_ARGS]);
			break;
		}
	}
}

void live_capture_exit(struct live_call *call)
{
	const struct live_arg *args = live_syscall(call->nr)->args;

	if (call->ret < 0)
		return;
	for (unsigned int i = 0; i < LIVE_MAX_ARGS; i++) {
		switch (args[i].type) {
		case LIVE_ARG_out:
		case LIVE_ARG_outhex:
			capture_bytes(call, i, call->ret);
			break;
		case LIVE_ARG_cwd:
			capture_string(call, i, LIVE_PATH_BYTES);
			break;
		case LIVE_ARG_prctl:
			if ((u32)call->args[i] == LIVE_PR_GET_NAME)
				capture_string(call, i + 1, LIVE_COMM_BYTES);
			break;
		}
	}
}
