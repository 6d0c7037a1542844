// SPDX-License-Identifier: BSD-2-Clause
#include <lego/exec.h>

#include "exec.h"
#include "process.h"
#include <asm/irqflags.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/printk.h>
#include <lego/process.h>
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

/* The path as /proc/self/exe gives it. */
static char *absolute_path(struct file *file)
{
	char *buf = kmalloc(MAX_PATH_BYTES), *path = NULL;

	if (buf)
		path = kstrdup(file_path(file, buf, MAX_PATH_BYTES));
	kfree(buf);
	return path;
}

static int open_program(const char *path, struct file **ret)
{
	struct file *file;

	if (!*path)
		return -ENOENT;
	/* As a path only: to open a FIFO or a terminal has effects. */
	file = file_open(path, O_PATH, 0);
	if (IS_ERR(file))
		return (int)PTR_ERR(file);
	if (!file_is_regular(file) || !(file_mode(file) & 0111)) {
		file_put(file);
		return -EACCES;
	}
	*ret = file;
	return 0;
}

/* What execve is about to run: of a script, its interpreter. */
struct program {
	struct file *file;
	const char *path;
	const char *const *argv;
	struct exec_script *scripts;
	struct exec_image image;
	char *exe_path;
};

/* Open the file, follow scripts to their interpreters. */
static int find_program(struct program *prog)
{
	int ret;

	for (int nr_scripts = 0;; nr_scripts++) {
		ret = open_program(prog->path, &prog->file);
		if (ret)
			return ret;
		ret = exec_read_script(prog->file, prog->path, prog->argv, &prog->scripts);
		if (ret <= 0)
			return ret;
		file_put(prog->file);
		prog->file = NULL;
		if (nr_scripts == EXEC_MAX_SCRIPTS)
			return -ELOOP;
		prog->path = prog->scripts->interpreter;
		prog->argv = prog->scripts->argv;
	}
}

/* As the limit says, but what an execve needs at least, and no more than there is room for. */
static u64 stack_bytes(void)
{
	u64 bytes = min(process_limit(RLIMIT_STACK), EXEC_MAX_STACK_BYTES);

	return ALIGN_DOWN(max(bytes, EXEC_MIN_STACK_BYTES), PAGE_SIZE);
}

static int map_program(struct program *prog, struct mm *mm)
{
	int error = elf_load(prog->file, mm, &prog->image);
	u32 prot = PROT_READ | PROT_WRITE;
	long ret;

	if (error)
		return error;
	if (prog->image.exec_stack)
		prot |= PROT_EXEC;
	prog->image.stack_bytes = stack_bytes();
	ret = mm_map(mm, EXEC_STACK_TOP - prog->image.stack_bytes, prog->image.stack_bytes, prot,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE | MAP_STACK, NULL, 0);
	return IS_ERR_VALUE(ret) ? (int)ret : 0;
}

/* The first thread has gone; its number is still the process's. */
static void take_process_number(struct task *task)
{
	pid_t old = task->pid;

	if (old == task->proc->pid)
		return;
	pid_get(task->proc->pid);
	task->pid = task->proc->pid;
	pid_set_process(old, NULL);
	pid_put(old);
}

/* Nothing of the old program's is left in the only thread, which takes the process's number. */
static void reset_task(struct task *task, const char *path)
{
	take_process_number(task);
	strscpy(task->comm, base_name(path), sizeof(task->comm));
	profile_task_changed(task);
	task->clear_child_tid = NULL;
	task->robust_list = NULL;
	task->altstack = (struct kernel_sigaltstack){ .flags = SS_DISABLE };
	task->rseq_area = NULL;
	task->rseq_len = 0;
	task->rseq_sig = 0;
}

/* A table that is another process's, too, is left to it. NULL: it is not. */
static struct files *unshare_files(struct process *proc)
{
	struct files *files;

	if (!READ_ONCE(proc->shares_files))
		return NULL;
	files = files_copy(proc->files);
	return files ? files : ERR_PTR(-ENOMEM);
}

static void replace_files(struct process *proc, struct files *files)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	struct files *old = proc->files;

	proc->files = files;
	proc->shares_files = false;
	spin_unlock_irqrestore(&proc->lock, flags);
	files_put(old);
}

/* The old one is freed with prog. */
static void replace_exe_path(struct process *proc, struct program *prog)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	char *old = proc->exe_path;

	proc->exe_path = prog->exe_path;
	prog->exe_path = old;
	spin_unlock_irqrestore(&proc->lock, flags);
}

/* The new program is complete and the current thread alone: this cannot fail. */
static void commit(struct program *prog, const char *path, struct mm *mm, struct files *files)
{
	struct process *proc = current->proc;

	process_drop_mm(proc);
	process_set_mm(proc, mm);
	if (files)
		replace_files(proc, files);
	replace_exe_path(proc, prog);
	WRITE_ONCE(proc->has_execed, true);
	WRITE_ONCE(proc->nr_execs, proc->nr_execs + 1);
	reset_task(current, path);
	strscpy(proc->comm, current->comm, sizeof(proc->comm));
	signal_reset_actions(proc);
	files_close_on_exec(proc->files);
	profile_process_exec(proc);
}

/* Move into the new address space, write its stack, be alone. Else back again. */
static int enter_program(struct program *prog, const char *path, const char *const *envp,
			 struct mm *mm, struct pt_regs *regs)
{
	struct files *files = unshare_files(current->proc);
	struct mm *old = current->mm;
	u64 sp = 0;
	int error;

	if (IS_ERR(files))
		return (int)PTR_ERR(files);
	use_mm(mm);
	error = exec_build_stack(&prog->image, path, prog->argv, envp, &sp);
	if (!error)
		error = process_kill_others(current->proc);
	if (error) {
		use_mm(old);
		if (files)
			files_put(files);
		return error;
	}
	commit(prog, path, mm, files);
	thread_start_user(regs, prog->image.entry, sp);
	return 0;
}

int do_execve(const char *path, const char *const *argv, const char *const *envp,
	      struct pt_regs *regs)
{
	/* A program may rely on argv[0]. */
	static const char *const no_args[] = { "", NULL };
	struct program prog = { .path = path, .argv = argv[0] ? argv : no_args };
	struct mm *mm = NULL;
	int error;
	PROFILE_SCOPE(exec);

	error = find_program(&prog);
	if (error)
		goto out_free;
	error = -ENOMEM;
	prog.exe_path = absolute_path(prog.file);
	mm = mm_alloc();
	if (!mm || !prog.exe_path)
		goto out_free;
	error = map_program(&prog, mm);
	if (!error)
		error = enter_program(&prog, path, envp, mm, regs);
out_free:
	if (error && mm)
		mm_put(mm);
	if (prog.file)
		file_put(prog.file);
	exec_free_scripts(prog.scripts);
	kfree(prog.exe_path);
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
