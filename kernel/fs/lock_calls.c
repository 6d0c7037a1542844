// SPDX-License-Identifier: BSD-2-Clause
/* flock(2), and the commands of fcntl(2) for record locks. */

#include "lock.h"

#include "fd.h"
#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define F_GETLK	     5
#define F_SETLK	     6
#define F_SETLKW     7
#define F_OFD_GETLK  36
#define F_OFD_SETLK  37
#define F_OFD_SETLKW 38

/* struct flock of 64-bit programs. */
struct user_lock {
	s16 type;
	s16 whence;
	s64 start;
	s64 len;
	s32 pid;
};

/*
 * Sets the range of lock to the bytes that the user's lock means. Returns 0, -EINVAL or -EOVERFLOW.
 */
static int get_range(struct file *file, const struct user_lock *user, struct file_lock *lock)
{
	s64 base = 0, start;

	if (user->whence == SEEK_CUR)
		base = READ_ONCE(file->pos);
	else if (user->whence == SEEK_END)
		base = file_size_bytes(file);
	else if (user->whence != SEEK_SET)
		return -EINVAL;
	if (user->start > INT64_MAX - base)
		return -EOVERFLOW;
	start = base + user->start;
	if (start < 0)
		return -EINVAL;
	lock->start = start;
	lock->last = LOCK_LAST_BYTE;
	if (user->len > 0) {
		if (user->len - 1 > INT64_MAX - start)
			return -EOVERFLOW;
		lock->last = start + user->len - 1;
	} else if (user->len < 0) {
		/* A negative length means the bytes before start. */
		if (start + user->len < 0)
			return -EINVAL;
		lock->start = start + user->len;
		lock->last = start - 1;
	}
	return 0;
}

static int get_lock(struct file *file, const struct user_lock *user, bool of_file,
		    struct file_lock *lock)
{
	*lock = (struct file_lock){
		.owner = of_file ? (void *)file : current->files,
		.file = file,
		.pid = of_file ? -1 : current->proc->pid,
		.kind = LOCK_RECORD,
		.type = user->type,
	};
	if (user->type < F_RDLCK || user->type > F_UNLCK || (of_file && user->pid))
		return -EINVAL;
	return get_range(file, user, lock);
}

static long fcntl_get(struct file *file, bool of_file, struct user_lock __user *arg)
{
	struct user_lock user;
	struct file_lock lock;
	long error;

	if (copy_from_user(&user, arg, sizeof(user)))
		return -EFAULT;
	if (user.type == F_UNLCK)
		return -EINVAL;
	error = get_lock(file, &user, of_file, &lock);
	if (error)
		return error;
	if (lock_find_conflict(&lock)) {
		user.whence = SEEK_SET;
		user.start = lock.start;
		user.len = lock.last == LOCK_LAST_BYTE ? 0 : lock.last - lock.start + 1;
		user.pid = lock.pid;
		user.type = lock.type;
	} else {
		user.type = F_UNLCK;
	}
	return copy_to_user(arg, &user, sizeof(user)) ? -EFAULT : 0;
}

static bool fd_is_file(int fd, const struct file *file)
{
	struct file *now = fd_get_any(fd);

	if (now)
		file_put(now);
	return now == file;
}

static long fcntl_set(int fd, struct file *file, bool of_file, bool wait,
		      const struct user_lock __user *arg)
{
	struct user_lock user;
	struct file_lock lock;
	long error;

	if (copy_from_user(&user, arg, sizeof(user)))
		return -EFAULT;
	error = get_lock(file, &user, of_file, &lock);
	if (error)
		return error;
	if ((lock.type == F_RDLCK && !file_may_read(file)) ||
	    (lock.type == F_WRLCK && !file_may_write(file)))
		return -EBADF;
	error = lock_set(&lock, wait);
	/*
	 * Another thread may have closed the file before the lock was set. Then nothing would
	 * release it.
	 */
	if (!error && lock.type != F_UNLCK && !fd_is_file(fd, file)) {
		lock.type = F_UNLCK;
		lock_set(&lock, false);
		error = -EBADF;
	}
	return error;
}

long lock_fcntl(int fd, struct file *file, int command, void __user *arg)
{
	switch (command) {
	case F_GETLK:
	case F_OFD_GETLK:
		return fcntl_get(file, command == F_OFD_GETLK, arg);
	case F_SETLK:
	case F_SETLKW:
		return fcntl_set(fd, file, false, command == F_SETLKW, arg);
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		return fcntl_set(fd, file, true, command == F_OFD_SETLKW, arg);
	default:
		return -EINVAL;
	}
}

#define LOCK_SH 1
#define LOCK_EX 2
#define LOCK_NB 4
#define LOCK_UN 8

SYSCALL_DEFINE2(flock, int, fd, u32, operation)
{
	static const u8 types[] = {
		[LOCK_SH] = F_RDLCK,
		[LOCK_EX] = F_WRLCK,
		[LOCK_UN] = F_UNLCK,
	};
	struct file_lock lock = {
		.kind = LOCK_WHOLE,
		.pid = current->proc->pid,
		.last = LOCK_LAST_BYTE,
	};
	u32 how = operation & ~LOCK_NB;
	long error = -EBADF;

	if (how != LOCK_SH && how != LOCK_EX && how != LOCK_UN)
		return -EINVAL;
	lock.file = fd_get(fd);
	if (!lock.file)
		return -EBADF;
	lock.owner = lock.file;
	lock.type = types[how];
	if (how == LOCK_UN || file_may_read(lock.file) || file_may_write(lock.file))
		error = lock_set(&lock, !(operation & LOCK_NB));
	file_put(lock.file);
	return error;
}
