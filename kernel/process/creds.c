// SPDX-License-Identifier: BSD-2-Clause
/*
 * User and group IDs: the calls that change them by Linux's rules, and return them. With effective
 * user 0, a process may become any user; other processes may only switch between the IDs that they
 * have. kernel/fs/permission.c checks access to files, by the fs IDs.
 *
 * A process that inspects another one (/proc) holds no lock meanwhile, but checks its right before
 * and after. The other one raises its rights_version before it holds anything that the first must
 * not see.
 */

#include <lego/process.h>

#include "process.h"
#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define ID_UNCHANGED (~0U)

#define CAPABILITY_VERSION_1 0x19980330
#define CAPABILITY_VERSION_2 0x20071026
#define CAPABILITY_VERSION_3 0x20080522
#define NR_CAPABILITIES	     41

/* The IDs of one kind, user or group. */
struct ids {
	u32 real, effective, saved, fs;
};

enum kind {
	USER,
	GROUP
};

static void get_ids(const struct credentials *creds, enum kind kind, struct ids *ids)
{
	if (kind == USER)
		*ids = (struct ids){ creds->uid, creds->euid, creds->suid, creds->fsuid };
	else
		*ids = (struct ids){ creds->gid, creds->egid, creds->sgid, creds->fsgid };
}

void process_close_locked(struct process *proc)
{
	ASSERT_HELD(&proc->lock);
	WRITE_ONCE(proc->not_dumpable, true);
	proc->rights_version++;
}

/*
 * Sets the IDs. If the effective ID changes, the process may hold secrets of its former user. So
 * other processes cannot inspect it, and it gets no signal when its parent ends. Returns 0, or
 * -EAGAIN: no memory.
 */
static int put_ids(struct process *proc, enum kind kind, const struct ids *ids)
{
	struct credentials *creds = &proc->creds;
	struct ids old;
	int error = 0;

	ASSERT_HELD(&proc->lock);
	get_ids(creds, kind, &old);
	if (kind == USER)
		error = user_change(proc, ids->real);
	if (error)
		return error;
	proc->rights_version++;
	if (old.effective != ids->effective || old.fs != ids->fs) {
		process_close_locked(proc);
		WRITE_ONCE(proc->death_signal, 0);
	}
	if (kind == USER) {
		creds->euid = ids->effective;
		creds->suid = ids->saved;
		creds->fsuid = ids->fs;
	} else {
		creds->gid = ids->real;
		creds->egid = ids->effective;
		creds->sgid = ids->saved;
		creds->fsgid = ids->fs;
	}
	return 0;
}

static bool is_one_of(const struct ids *ids, u32 id, bool saved_too)
{
	return id == ids->real || id == ids->effective || (saved_too && id == ids->saved);
}

bool process_is_root(struct process *proc)
{
	return READ_ONCE(proc->creds.euid) == 0;
}

/*
 * Returns true if the process can become root again: Linux lets it keep its permitted capabilities.
 */
static bool keeps_root(const struct credentials *creds)
{
	return !creds->uid || !creds->euid || !creds->suid;
}

bool process_may_schedule(struct process *proc)
{
	const struct credentials *mine = &current->proc->creds, *theirs = &proc->creds;

	if (!mine->euid)
		return true;
	if (mine->euid != theirs->euid && mine->euid != theirs->uid)
		return false;
	return !keeps_root(theirs) || keeps_root(mine);
}

static bool may_inspect_always(const struct process *proc)
{
	return proc == current->proc || process_is_root(current->proc);
}

static bool may_inspect_locked(const struct process *proc)
{
	const struct credentials *mine = &current->proc->creds, *theirs = &proc->creds;
	u32 user = mine->fsuid, group = mine->fsgid;

	ASSERT_HELD(&proc->lock);
	return user == theirs->uid && user == theirs->euid && user == theirs->suid &&
	       group == theirs->gid && group == theirs->egid && group == theirs->sgid &&
	       !proc->not_dumpable;
}

bool process_may_inspect(struct process *proc, u32 *version)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	bool allowed = may_inspect_always(proc) || may_inspect_locked(proc);

	*version = proc->rights_version;
	spin_unlock_irqrestore(&proc->lock, flags);
	return allowed;
}

bool process_was_inspected(struct process *proc, u32 version)
{
	/* The lock orders all that was read before the version. */
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	bool allowed = may_inspect_always(proc) || proc->rights_version == version;

	spin_unlock_irqrestore(&proc->lock, flags);
	return allowed;
}

static int set_one(struct ids *ids, const u32 *args, bool root)
{
	u32 id = args[0];

	if (id == ID_UNCHANGED)
		return -EINVAL;
	if (root)
		ids->real = ids->saved = id;
	else if (id != ids->real && id != ids->saved)
		return -EPERM;
	ids->effective = id;
	return 0;
}

static int set_two(struct ids *ids, const u32 *args, bool root)
{
	u32 real = args[0], effective = args[1];
	struct ids old = *ids;

	if (real != ID_UNCHANGED) {
		if (!root && !is_one_of(&old, real, false))
			return -EPERM;
		ids->real = real;
	}
	if (effective != ID_UNCHANGED) {
		if (!root && !is_one_of(&old, effective, true))
			return -EPERM;
		ids->effective = effective;
	}
	if (real != ID_UNCHANGED || (effective != ID_UNCHANGED && effective != old.real))
		ids->saved = ids->effective;
	return 0;
}

static int set_three(struct ids *ids, const u32 *args, bool root)
{
	u32 *const fields[] = { &ids->real, &ids->effective, &ids->saved };
	struct ids old = *ids;

	for (int i = 0; i < 3; i++) {
		if (args[i] == ID_UNCHANGED)
			continue;
		if (!root && !is_one_of(&old, args[i], true))
			return -EPERM;
		*fields[i] = args[i];
	}
	return 0;
}

static int change_ids(enum kind kind, int (*set)(struct ids *ids, const u32 *args, bool root),
		      const u32 *args)
{
	struct process *proc = current->proc;
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct ids ids;
	int error;

	get_ids(&proc->creds, kind, &ids);
	error = set(&ids, args, process_is_root(proc));
	if (!error) {
		ids.fs = ids.effective;
		error = put_ids(proc, kind, &ids);
	}
	spin_unlock_irqrestore(&proc->lock, flags);
	return error;
}

/* Returns the old ID, whether or not it is changed. */
static long change_fs(enum kind kind, u32 id)
{
	struct process *proc = current->proc;
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct ids ids;
	u32 old;

	get_ids(&proc->creds, kind, &ids);
	old = ids.fs;
	if (id != ID_UNCHANGED && (process_is_root(proc) || is_one_of(&ids, id, true))) {
		ids.fs = id;
		/* Cannot fail, because the real user does not change. */
		BUG_ON(put_ids(proc, kind, &ids));
	}
	spin_unlock_irqrestore(&proc->lock, flags);
	return old;
}

static long copy_ids(enum kind kind, u32 __user *real, u32 __user *effective, u32 __user *saved)
{
	struct ids ids;

	get_ids(&current->proc->creds, kind, &ids);
	if (put_user(ids.real, real) || put_user(ids.effective, effective) ||
	    put_user(ids.saved, saved))
		return -EFAULT;
	return 0;
}

SYSCALL_DEFINE0(getuid)
{
	return current->proc->creds.uid;
}

SYSCALL_DEFINE0(geteuid)
{
	return current->proc->creds.euid;
}

SYSCALL_DEFINE0(getgid)
{
	return current->proc->creds.gid;
}

SYSCALL_DEFINE0(getegid)
{
	return current->proc->creds.egid;
}

SYSCALL_DEFINE1(setuid, u32, id)
{
	return change_ids(USER, set_one, &id);
}

SYSCALL_DEFINE1(setgid, u32, id)
{
	return change_ids(GROUP, set_one, &id);
}

SYSCALL_DEFINE2(setreuid, u32, real, u32, effective)
{
	return change_ids(USER, set_two, (u32[]){ real, effective });
}

SYSCALL_DEFINE2(setregid, u32, real, u32, effective)
{
	return change_ids(GROUP, set_two, (u32[]){ real, effective });
}

SYSCALL_DEFINE3(setresuid, u32, real, u32, effective, u32, saved)
{
	return change_ids(USER, set_three, (u32[]){ real, effective, saved });
}

SYSCALL_DEFINE3(setresgid, u32, real, u32, effective, u32, saved)
{
	return change_ids(GROUP, set_three, (u32[]){ real, effective, saved });
}

SYSCALL_DEFINE3(getresuid, u32 __user *, real, u32 __user *, effective, u32 __user *, saved)
{
	return copy_ids(USER, real, effective, saved);
}

SYSCALL_DEFINE3(getresgid, u32 __user *, real, u32 __user *, effective, u32 __user *, saved)
{
	return copy_ids(GROUP, real, effective, saved);
}

SYSCALL_DEFINE1(setfsuid, u32, id)
{
	return change_fs(USER, id);
}

SYSCALL_DEFINE1(setfsgid, u32, id)
{
	return change_fs(GROUP, id);
}

SYSCALL_DEFINE2(getgroups, int, size, u32 __user *, list)
{
	struct process *proc = current->proc;
	u32 groups[NR_GROUPS];
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	int nr = (int)proc->creds.nr_groups;

	memcpy(groups, proc->creds.groups, sizeof(groups));
	spin_unlock_irqrestore(&proc->lock, flags);
	if (size < 0 || (size && nr > size))
		return -EINVAL;
	if (size && copy_to_user(list, groups, nr * sizeof(groups[0])))
		return -EFAULT;
	return nr;
}

SYSCALL_DEFINE2(setgroups, u32, nr, const u32 __user *, list)
{
	struct process *proc = current->proc;
	u32 groups[NR_GROUPS];
	unsigned long flags;

	if (!process_is_root(proc))
		return -EPERM;
	if (nr > NR_GROUPS)
		return -EINVAL;
	if (copy_from_user(groups, list, nr * sizeof(groups[0])))
		return -EFAULT;
	flags = spin_lock_irqsave(&proc->lock);
	memcpy(proc->creds.groups, groups, nr * sizeof(groups[0]));
	proc->creds.nr_groups = nr;
	spin_unlock_irqrestore(&proc->lock, flags);
	return 0;
}

struct capability_header {
	u32 version;
	pid_t pid;
};

/* Effective, permitted and inheritable capabilities. Two of these structs have 64 bits of each. */
struct capability_data {
	u32 effective, permitted, inheritable;
};

/* Root has all capabilities, other users have none. There is nothing in between. */
SYSCALL_DEFINE2(capget, struct capability_header __user *, uheader, struct capability_data __user *,
		udata)
{
	struct capability_header header;
	struct capability_data data[2] = { 0 };
	struct process *proc;
	size_t nr = 2;

	if (copy_from_user(&header, uheader, sizeof(header)))
		return -EFAULT;
	if (header.version == CAPABILITY_VERSION_1) {
		nr = 1;
	} else if (header.version != CAPABILITY_VERSION_2 &&
		   header.version != CAPABILITY_VERSION_3) {
		if (put_user(CAPABILITY_VERSION_3, &uheader->version))
			return -EFAULT;
		/* A NULL pointer asks only for the version. */
		return udata ? -EINVAL : 0;
	}
	if (header.pid < 0)
		return -EINVAL;
	proc = process_find(header.pid ? header.pid : current->proc->pid);
	if (!proc)
		return -ESRCH;
	if (process_is_root(proc)) {
		data[0].effective = data[0].permitted = ~0U;
		data[1].effective = data[1].permitted = (1U << (NR_CAPABILITIES - 32)) - 1;
	}
	process_put(proc);
	return udata ? copy_to_user(udata, data, nr * sizeof(data[0])) : 0;
}
