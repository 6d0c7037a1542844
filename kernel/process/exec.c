// SPDX-License-Identifier: BSD-2-Clause
#include <lego/exec.h>

#include "exec.h"
#include "process.h"
#include <asm/irqflags.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/printk.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

/*
 * execve builds the new address space beside the old one. For the stack's content the thread
 * moves into the new one; until the other threads are gone it can still move back, so a failure
 * leaves the old program as it was.
 */

#define MAX_PATH_BYTES 4096

/* A whole execve, successful or not. */
DEFINE_PROFILE_POINT_SLEEPS(exec)

static void use_mm(struct mm *mm)
{
	unsigned long flags = local_irq_save();
	struct mm *old = current->mm;

	current->mm = mm;
	mm_switch(old, mm);
	local_irq_restore(flags);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The path as /proc/self/exe gives it. The working directory is always the root. */
static char *absolute_path(const char *path)
{
	size_t size = strlen(path) + 2;
	char *copy = kmalloc(size);

	while (path[0] == '.' && path[1] == '/')
		path += 2;
	if (copy)
		snprintf(copy, size, "%s%s", path[0] == '/' ? "" : "/", path);
	return copy;
}

static int open_program(const char *path, struct file **file)
{
	if (!*path)
		return -ENOENT;
	*file = file_open(path, 0, 0);
	if (IS_ERR(*file))
		return (int)PTR_ERR(*file);
	if (file_is_regular(*file) && file_mode(*file) & 0111)
		return 0;
	file_put(*file);
	return -EACCES;
}

static int map_program(const char *path, struct mm *mm, struct exec_image *image)
{
	struct file *file;
	int error = open_program(path, &file);
	u32 prot = PROT_READ | PROT_WRITE;
	long ret;

	if (error)
		return error;
	error = elf_load(file, mm, image);
	file_put(file);
	if (error)
		return error;
	if (image->exec_stack)
		prot |= PROT_EXEC;
	ret = mm_map(mm, EXEC_STACK_TOP - EXEC_STACK_BYTES, EXEC_STACK_BYTES, prot,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_STACK, NULL, 0);
	return IS_ERR_VALUE(ret) ? (int)ret : 0;
}

/* Nothing of the old program's is left in the only thread, which takes the process's number. */
static void reset_task(struct task *task, const char *path)
{
	task->pid = task->proc->pid;
	strscpy(task->comm, base_name(path), sizeof(task->comm));
	task->clear_child_tid = NULL;
	task->robust_list = NULL;
	task->rseq_area = NULL;
	task->rseq_len = 0;
	task->rseq_sig = 0;
}

/* The new program is complete and the current thread alone: this cannot fail. */
static void commit(struct mm *old, char *exe_path)
{
	struct process *proc = current->proc;

	proc->mm = current->mm;
	if (old)
		mm_put(old);
	kfree(proc->exe_path);
	proc->exe_path = exe_path;
	reset_task(current, exe_path);
	strscpy(proc->comm, current->comm, sizeof(proc->comm));
	process_reset_signals(proc);
	files_close_on_exec(proc->files);
	profile_process_exec(proc);
}

int do_execve(const char *path, const char *const *argv, const char *const *envp,
	      struct pt_regs *regs)
{
	/* A program may rely on argv[0]. */
	static const char *const no_args[] = { "", NULL };
	struct mm *old = current->mm, *mm;
	struct exec_image image = { 0 };
	char *exe_path;
	u64 sp = 0;
	int error = -ENOMEM;
	PROFILE_SCOPE(exec);

	exe_path = absolute_path(path);
	mm = mm_alloc();
	if (!mm || !exe_path)
		goto out_free;
	error = map_program(path, mm, &image);
	if (error)
		goto out_free;
	use_mm(mm);
	error = exec_build_stack(&image, path, argv[0] ? argv : no_args, envp, &sp);
	if (!error)
		error = process_kill_others(current->proc);
	if (error) {
		use_mm(old);
		goto out_free;
	}
	commit(old, exe_path);
	thread_start_user(regs, image.entry, sp);
	return 0;
out_free:
	if (mm)
		mm_put(mm);
	kfree(exe_path);
	return error;
}

static int copy_path(char **path, const char __user *user)
{
	ssize_t len;

	*path = kmalloc(MAX_PATH_BYTES);
	if (!*path)
		return -ENOMEM;
	len = strncpy_from_user(*path, user, MAX_PATH_BYTES);
	return len < 0 ? (int)len : 0;
}

SYSCALL_DEFINE3(execve, const char __user *, user_path, const char __user *const __user *,
		user_argv, const char __user *const __user *, user_envp)
{
	struct exec_strings argv = { 0 }, envp = { 0 };
	size_t budget = EXEC_MAX_TOTAL_BYTES;
	char *path;
	int error = copy_path(&path, user_path);

	if (!error)
		error = exec_copy_strings(&argv, user_argv, &budget);
	if (!error)
		error = exec_copy_strings(&envp, user_envp, &budget);
	if (!error)
		error = do_execve(path, argv.array, envp.array, task_pt_regs(current));
	exec_free_strings(&argv);
	exec_free_strings(&envp);
	kfree(path);
	return error;
}
