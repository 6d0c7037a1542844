/* SPDX-License-Identifier: BSD-2-Clause */
/* Needed by strace/live/, besides strace.h. */
#define os_task_tid(task)			  ((u32)(task)->id)
#define os_syscall_args(args)			  (memcpy(args, this_thread()->registers, 48), true)
#define os_copy_from_user(dst, addr, n)		  user_read(dst, addr, n)
#define os_copy_string_from_user(dst, addr, size) user_read_string(dst, addr, size)
#define OS_SYSCALL_DECODE_LIST(X)                                                      \
	X(0, read, LIVE_CLASS_desc, LIVE_RET_dec, LIVE_ARG(fd, 0), LIVE_ARG(out, 0),   \
	  LIVE_ARG(size, 0))                                                           \
	X(2, open, LIVE_CLASS_desc | LIVE_CLASS_file, LIVE_RET_dec, LIVE_ARG(path, 0), \
	  LIVE_ARG(open, 0), LIVE_ARG(openmode, 0))
