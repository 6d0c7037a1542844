// SPDX-License-Identifier: BSD-2-Clause
/*
 * Files in flight (SCM_RIGHTS): sent to a socket and not received yet.
 *
 * Two sockets that are in flight to each other would keep each other alive forever. Linux looks for
 * such cycles and frees them. Here they cannot arise: a socket that sockets are in flight to cannot
 * be sent, and a socket that is in flight cannot be sent sockets, so there are no chains. A flight
 * ends when the receiver has the files, or when they are dropped. A connection in a backlog, which
 * its listening socket keeps alive, gets files only after accept(): see may_send().
 */

#include "fd.h"
#include "socket.h"

#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/slab.h>

static DEFINE_SPINLOCK(flight_lock); /* innermost */

/* Returns the i-th file's socket; NULL if it is another kind of file, or open as a path only. */
static struct socket *socket_among(const struct rights *rights, unsigned int i)
{
	const struct file *file = rights->files[i];

	return S_ISSOCK(file->inode->mode) ? file->private : NULL;
}

static bool may_fly(const struct rights *rights, const struct socket *to)
{
	const struct socket *socket;

	ASSERT_HELD(&flight_lock);
	for (unsigned int i = 0; i < rights->nr; i++) {
		socket = socket_among(rights, i);
		if (socket && (socket == to || socket->nr_carried || to->nr_flights))
			return false;
	}
	return true;
}

static void count_flights(struct rights *rights, int sign)
{
	struct socket *socket;

	ASSERT_HELD(&flight_lock);
	for (unsigned int i = 0; i < rights->nr; i++) {
		socket = socket_among(rights, i);
		if (!socket)
			continue;
		socket->nr_flights += sign;
		rights->carrier->nr_carried += sign;
	}
}

int rights_begin_flight(struct rights *rights, struct socket *to)
{
	bool may;

	spin_lock(&flight_lock);
	may = may_fly(rights, to);
	if (may) {
		rights->carrier = socket_get(to);
		count_flights(rights, 1);
	}
	spin_unlock(&flight_lock);
	return may ? 0 : -ETOOMANYREFS;
}

static void end_flight(struct rights *rights)
{
	spin_lock(&flight_lock);
	count_flights(rights, -1);
	spin_unlock(&flight_lock);
	socket_put(rights->carrier);
}

struct rights *rights_get(struct rights *rights)
{
	if (rights)
		atomic_inc(&rights->refs);
	return rights;
}

void rights_drop(struct rights *rights)
{
	if (!rights || !atomic_dec_and_test(&rights->refs))
		return;
	if (rights->carrier)
		end_flight(rights);
	for (unsigned int i = 0; i < rights->nr; i++)
		file_put(rights->files[i]);
	kfree(rights);
}

/* Returns the memory of the files in flight; 0 if the socket is locked. Any lock may be held. */
u64 socket_rights_bytes(struct socket *socket)
{
	struct chunk *chunk;
	u64 bytes = 0;

	if (!mutex_trylock(&socket->lock))
		return 0;
	list_for_each_entry(chunk, &socket->chunks, node) {
		bytes += chunk->rights ? sizeof(*chunk->rights) : 0;
		for (unsigned int i = 0; chunk->rights && i < chunk->rights->nr; i++)
			bytes += file_own_bytes(chunk->rights->files[i]);
	}
	mutex_unlock(&socket->lock);
	return bytes;
}
