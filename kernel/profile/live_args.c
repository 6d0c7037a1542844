// SPDX-License-Identifier: BSD-2-Clause
/*
 * Catches what the arguments of a call point to: strings and buffers that go in at entry, what
 * came out at exit. All of it is copied with the checked functions, up to a bound for each and for
 * all; an argument that cannot be read, or for which there is no room, has no piece, and the
 * line shows its address instead.
 */

#include "live.h"

const struct live_piece *live_piece_of(const struct live_call *call, unsigned int arg)
{
	for (unsigned int i = 0; i < call->nr_pieces && i < LIVE_MAX_PIECES; i++)
		if (call->pieces[i].arg == arg)
			return &call->pieces[i];
	return NULL;
}

/* Room for a piece of at most size bytes, not yet taken. */
static struct live_piece *new_piece(struct live_call *call, unsigned int arg, size_t size)
{
	struct live_piece *piece = &call->pieces[call->nr_pieces];

	if (!call->args[arg] || call->nr_pieces == LIVE_MAX_PIECES ||
	    size > sizeof(call->bytes) - call->nr_bytes)
		return NULL;
	*piece = (struct live_piece){ .arg = arg, .at = call->nr_bytes };
	return piece;
}

static void keep_piece(struct live_call *call, struct live_piece *piece, size_t len, bool cut)
{
	piece->len = len;
	piece->cut = cut;
	call->nr_bytes += len;
	call->nr_pieces++;
}

static void catch_bytes(struct live_call *call, unsigned int arg, u64 nr_bytes)
{
	size_t len = min(nr_bytes, (u64)LIVE_STRING_BYTES);
	struct live_piece *piece = new_piece(call, arg, len);

	if (piece && !os_copy_from_user(call->bytes + piece->at, call->args[arg], len))
		keep_piece(call, piece, len, nr_bytes > len);
}

static void catch_string(struct live_call *call, unsigned int arg, size_t size)
{
	struct live_piece *piece = new_piece(call, arg, size);
	long len;

	if (!piece)
		return;
	len = os_copy_string_from_user(call->bytes + piece->at, call->args[arg], size);
	if (len >= 0)
		keep_piece(call, piece, len, false);
	else if (len == -ENAMETOOLONG)
		keep_piece(call, piece, size, true);
}

void live_capture_entry(struct live_call *call)
{
	const struct live_arg *args = live_syscall(call->nr)->args;

	for (unsigned int i = 0; i < LIVE_MAX_ARGS; i++) {
		switch (args[i].type) {
		case LIVE_ARG_path:
			catch_string(call, i, LIVE_PATH_BYTES);
			break;
		case LIVE_ARG_str:
			catch_string(call, i, LIVE_STRING_BYTES);
			break;
		case LIVE_ARG_prctl:
			if ((u32)call->args[i] == LIVE_PR_SET_NAME)
				catch_string(call, i + 1, LIVE_COMM_BYTES);
			break;
		case LIVE_ARG_in:
			catch_bytes(call, i, call->args[args[i].with % LIVE_MAX_ARGS]);
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
			catch_bytes(call, i, call->ret);
			break;
		case LIVE_ARG_cwd:
			catch_string(call, i, LIVE_PATH_BYTES);
			break;
		case LIVE_ARG_prctl:
			if ((u32)call->args[i] == LIVE_PR_GET_NAME)
				catch_string(call, i + 1, LIVE_COMM_BYTES);
			break;
		}
	}
}
