// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts the threads of each user, for RLIMIT_NPROC. A process stores how many threads its real
 * user is charged for, and gives back exactly these, so the counts cannot drift. The charge is one
 * for each thread, and one for a zombie until it is reaped. The inodes that a user has made are
 * counted, too, with their bytes: see kernel/fs/space.c. A user is in a hash table while a count is
 * above 0. The lines that each user causes in the log are limited here, too.
 */

#include "process.h"

#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/printk.h>
#include <lego/slab.h>
#include <lego/time.h>

#define NR_BUCKETS 1024

struct user {
	struct user *next;
	u32 uid;
	unsigned int nr_threads;
	u64 nr_inodes;
	struct user_files files;

	/* user_printk() */
	u64 log_start_ns;      /* of the present period */
	unsigned int nr_lines; /* in it */
	u64 nr_left_out;       /* since the last line */
};

/* Guards everything here; taken with interrupts off, inside proc->lock. */
static DEFINE_SPINLOCK(users_lock);
static struct user *buckets[NR_BUCKETS];

static struct user **find_link(u32 uid)
{
	struct user **link = &buckets[uid % NR_BUCKETS];

	ASSERT_HELD(&users_lock);
	while (*link && (*link)->uid != uid)
		link = &(*link)->next;
	return link;
}

/* Returns a user, to be counted for. NULL: no memory. */
static struct user *get_user(u32 uid)
{
	struct user **link = find_link(uid);

	if (!*link) {
		*link = kzalloc(sizeof(**link));
		if (*link)
			(*link)->uid = uid;
	}
	return *link;
}

/* Takes a user out that is no longer counted for. Returns what to free. */
static struct user *drop_user(struct user *user)
{
	struct user **link = find_link(user->uid);

	if (user->nr_threads || user->nr_inodes)
		return NULL;
	DEBUG_ASSERT(!user->files.nr_bytes);
	*link = user->next;
	return user;
}

static int charge_locked(u32 uid, unsigned int nr, u64 limit)
{
	struct user *user = *find_link(uid);

	if ((user ? user->nr_threads : 0) + (u64)nr > limit)
		return -EAGAIN;
	user = get_user(uid);
	if (!user)
		return -ENOMEM;
	user->nr_threads += nr;
	return 0;
}

static int charge_user(u32 uid, unsigned int nr, u64 limit)
{
	unsigned long flags = spin_lock_irqsave(&users_lock);
	int error = charge_locked(uid, nr, limit);

	spin_unlock_irqrestore(&users_lock, flags);
	return error;
}

static void uncharge_user(u32 uid, unsigned int nr)
{
	unsigned long flags = spin_lock_irqsave(&users_lock);
	struct user *user = *find_link(uid);

	BUG_ON(!user || user->nr_threads < nr);
	user->nr_threads -= nr;
	user = drop_user(user);
	spin_unlock_irqrestore(&users_lock, flags);
	kfree(user);
}

/* Returns a process's limit. Root has only the limit of all threads: see task.c. */
static u64 limit_of(struct process *proc)
{
	return !proc->creds.uid || process_is_root(proc) ? RLIM_INFINITY :
							   proc->rlimits[RLIMIT_NPROC].cur;
}

int user_charge_process(struct process *proc, struct process *parent)
{
	unsigned long flags = spin_lock_irqsave(&parent->lock);
	int error = charge_user(parent->creds.uid, 1, limit_of(parent));

	proc->creds = parent->creds;
	proc->nr_charged = !error;
	spin_unlock_irqrestore(&parent->lock, flags);
	return error;
}

void user_charge_init(struct process *init)
{
	BUG_ON(charge_user(init->creds.uid, 1, RLIM_INFINITY));
	init->nr_charged = 1;
}

int user_charge_thread(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	int error = charge_user(proc->creds.uid, 1, limit_of(proc));

	proc->nr_charged += !error;
	spin_unlock_irqrestore(&proc->lock, flags);
	return error;
}

void user_uncharge_locked(struct process *proc, unsigned int nr)
{
	ASSERT_HELD(&proc->lock);
	DEBUG_ASSERT(proc->nr_charged >= nr);
	if (nr)
		uncharge_user(proc->creds.uid, nr);
	proc->nr_charged -= nr;
}

void user_uncharge_thread(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	user_uncharge_locked(proc, 1);
	spin_unlock_irqrestore(&proc->lock, flags);
}

void user_uncharge_process(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	user_uncharge_locked(proc, proc->nr_charged);
	spin_unlock_irqrestore(&proc->lock, flags);
}

int user_change(struct process *proc, u32 uid)
{
	ASSERT_HELD(&proc->lock);
	if (uid == proc->creds.uid)
		return 0;
	if (charge_user(uid, proc->nr_charged, RLIM_INFINITY))
		return -EAGAIN;
	uncharge_user(proc->creds.uid, proc->nr_charged);
	proc->creds.uid = uid;
	return 0;
}

struct user_files *user_charge_inode(u32 uid, u64 max)
{
	unsigned long flags = spin_lock_irqsave(&users_lock);
	struct user *user = get_user(uid);

	if (user && user->nr_inodes < max)
		user->nr_inodes++;
	else
		user = NULL;
	spin_unlock_irqrestore(&users_lock, flags);
	return user ? &user->files : NULL;
}

void user_uncharge_inode(struct user_files *files)
{
	unsigned long flags = spin_lock_irqsave(&users_lock);
	struct user *user = container_of(files, struct user, files);

	BUG_ON(!user->nr_inodes);
	user->nr_inodes--;
	user = drop_user(user);
	spin_unlock_irqrestore(&users_lock, flags);
	kfree(user);
}

u64 user_file_bytes(u32 uid)
{
	unsigned long flags = spin_lock_irqsave(&users_lock);
	struct user *user = *find_link(uid);
	u64 nr = user ? READ_ONCE(user->files.nr_bytes) : 0;

	spin_unlock_irqrestore(&users_lock, flags);
	return nr;
}

#define LOG_PERIOD_NS (5 * NSEC_PER_SEC)

/*
 * Returns true if the user gets a line in the log. Then stores how many were left out before, and
 * whether this is the last one for now.
 */
static bool take_line_locked(struct user *user, u32 burst, u64 *nr_left_out, bool *last)
{
	u64 now_ns = clock_monotonic_ns();

	ASSERT_HELD(&users_lock);
	if (now_ns - user->log_start_ns >= LOG_PERIOD_NS) {
		user->log_start_ns = now_ns;
		user->nr_lines = 0;
	}
	if ((burst && user->nr_lines >= burst) || !log_take_user_line()) {
		user->nr_left_out++;
		return false;
	}
	*nr_left_out = user->nr_left_out;
	user->nr_left_out = 0;
	user->nr_lines += burst != 0;
	*last = (burst && user->nr_lines == burst) || !log_has_user_room();
	return true;
}

static bool take_line(u32 uid, u32 burst, u64 *nr_left_out, bool *last)
{
	unsigned long flags = spin_lock_irqsave(&users_lock);
	struct user *user = *find_link(uid);
	bool taken = user ? take_line_locked(user, burst, nr_left_out, last) : log_take_user_line();

	spin_unlock_irqrestore(&users_lock, flags);
	return taken;
}

void user_printk(u32 uid, u32 burst, const char *fmt, ...)
{
	u64 nr_left_out = 0;
	bool last = false;
	va_list args;

	if (uid && !take_line(uid, burst, &nr_left_out, &last))
		return;
	if (nr_left_out)
		printk("user %u: %llu lines were left out\n", uid, (unsigned long long)nr_left_out);
	va_start(args, fmt);
	vprintk(fmt, args);
	va_end(args);
	if (last)
		printk("user %u: lines like this are only counted for a while\n", uid);
}
