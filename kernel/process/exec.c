// SPDX-License-Identifier: BSD-2-Clause
/*
 * execve builds the new address space while the old one still exists. To write the stack, the
 * thread switches to the new one. Until the other threads have exited, it can still switch back, so
 * a failure leaves the old program unchanged.
 */

#include <lego/exec.h>

#include "exec.h"
#include "process.h"
#include <asm/irqflags.h>
#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/process.h>
#include <lego/slab.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

/* Measures a whole execve, successful or not. */
DEFINE_PROFILE_POINT_SLEEPS(exec)

static void use_mm(struct mm *mm)
{
	unsigned long flags = local_irq_save();
	struct mm *old = current->mm;

	/* In this order: an NMI walks no user stack while the loaded mm is not the task's. */
	mm_switch(old, mm);
	current->mm = mm;
	local_irq_restore(flags);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Returns the path for /proc/self/exe. */
static char *absolute_path(struct file *file)
{
	char *buf = kmalloc(EXEC_MAX_PATH_BYTES), *path = NULL;

	if (buf)
		path = kstrdup(file_path(file, buf, EXEC_MAX_PATH_BYTES));
	kfree(buf);
	return path;
}

int exec_open(const char *path, struct file **ret)
{
	struct file *file;
	int error;

	if (!*path)
		return -ENOENT;
	/* Opened as a path only, because opening a FIFO or a terminal has side effects. */
	file = file_open(path, O_PATH, 0);
	if (IS_ERR(file))
		return (int)PTR_ERR(file);
	error = file_may_execute(file) ?: file_deny_writing(file);
	if (error)
		file_put(file);
	else
		*ret = file;
	return error;
}

void exec_close(struct file *file)
{
	file_allow_writing(file);
	file_put(file);
}

/* The program that execve is about to run. For a script, that is its interpreter. */
struct program {
	struct file *file;
	const char *path;
	const char *const *argv;
	struct exec_script *scripts;
	struct exec_image image;
	char *exe_path;
};

/* Opens the file, and follows scripts to their interpreters. */
static int find_program(struct program *prog)
{
	int ret;

	for (int nr_scripts = 0;; nr_scripts++) {
		ret = exec_open(prog->path, &prog->file);
		if (ret)
			return ret;
		ret = exec_read_script(prog->file, prog->path, prog->argv, &prog->scripts);
		if (ret <= 0)
			return ret;
		exec_close(prog->file);
		prog->file = NULL;
		if (nr_scripts == EXEC_MAX_SCRIPTS)
			return -ELOOP;
		prog->path = prog->scripts->interpreter;
		prog->argv = prog->scripts->argv;
	}
}

/*
 * Returns the size of the stack: the limit, but at least what execve needs, and at most what has
 * room.
 */
static u64 stack_bytes(void)
{
	u64 bytes = min(process_limit(RLIMIT_STACK), EXEC_MAX_STACK_BYTES);

	return ALIGN_DOWN(max(bytes, EXEC_MIN_STACK_BYTES), PAGE_SIZE);
}

/*
 * Gets the credentials for the program: those of the process, changed if it is set-user-ID or
 * set-group-ID. Its user must not read the memory of a program whose file is unreadable, either.
 */
static void get_credentials(struct program *prog)
{
	struct credentials *creds = &prog->image.creds;
	struct process *proc = current->proc;
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	*creds = proc->creds;
	spin_unlock_irqrestore(&proc->lock, flags);
	if (!READ_ONCE(proc->no_new_privs))
		file_apply_set_ids(prog->file, creds);
	creds->suid = creds->fsuid = creds->euid;
	creds->sgid = creds->fsgid = creds->egid;
	prog->image.not_dumpable |= exec_is_secure(creds) || !file_is_readable(prog->file);
}

static int map_program(struct program *prog, struct mm *mm)
{
	u32 prot = PROT_READ | PROT_WRITE;
	int error;
	long ret;

	mm_set_exe_file(mm, prog->file);
	error = elf_load(prog->file, mm, &prog->image);
	if (error)
		return error;
	if (prog->image.exec_stack)
		prot |= PROT_EXEC;
	prog->image.stack_bytes = stack_bytes();
	get_credentials(prog);
	ret = mm_map(mm, EXEC_STACK_TOP - prog->image.stack_bytes, prog->image.stack_bytes, prot,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE | MAP_STACK, NULL, 0);
	return IS_ERR_VALUE(ret) ? (int)ret : 0;
}

/* Gives the process's number to the calling thread: the first thread has exited. */
static void take_process_number(struct task *task)
{
	pid_t old = task->pid;

	DEBUG_ASSERT(task == current && task->proc->nr_threads == 1);
	if (old == task->proc->pid)
		return;
	pid_get(task->proc->pid);
	task->pid = task->proc->pid;
	pid_set_owner(old, NULL, NULL);
	pid_set_owner(task->pid, task->proc, task);
	pid_put(old);
}

/* Resets all state of the old program in the only thread, which takes the process's number. */
static void reset_task(struct task *task, const char *path)
{
	profile_trace(sched_process_exec, task, path);
	take_process_number(task);
	strscpy_pad(task->comm, base_name(path), sizeof(task->comm));
	profile_task_changed(task);
	task->clear_child_tid = NULL;
	task->robust_list = NULL;
	task->altstack = (struct kernel_sigaltstack){ .flags = SS_DISABLE };
	task->rseq_area = NULL;
	task->rseq_len = 0;
	task->rseq_sig = 0;
}

/* Copies of objects that the process shares with others. NULL: not shared, so no copy is needed. */
struct copies {
	struct files *files;
	struct fs_info *fs;
};

static void drop_copies(struct copies *copies)
{
	if (copies->files)
		files_put(copies->files);
	if (copies->fs)
		fs_info_put(copies->fs);
}

/*
 * Copies shared objects. No other process may change the working directory or the umask of a
 * set-user-ID program, so such a program always gets a copy. Returns 0 or -ENOMEM.
 */
static int unshare(struct process *proc, const struct exec_image *image, struct copies *copies)
{
	bool with_files = READ_ONCE(proc->shares_files) || current->has_own_files;
	bool with_fs = exec_is_secure(&image->creds);

	*copies = (struct copies){ 0 };
	if (with_files)
		copies->files = files_copy(current->files);
	if (with_fs)
		copies->fs = fs_info_copy(proc->fs);
	if ((copies->files || !with_files) && (copies->fs || !with_fs))
		return 0;
	drop_copies(copies);
	return -ENOMEM;
}

/* Gives the copies to the process. Stores the shared objects in *copies. */
static void replace_shared(struct process *proc, struct copies *copies)
{
	struct fs_info *fs = copies->fs;
	unsigned long flags;

	if (copies->files)
		process_replace_files(proc, copies->files);
	copies->files = NULL;
	if (!fs)
		return;
	flags = spin_lock_irqsave(&proc->lock);
	copies->fs = proc->fs;
	proc->fs = fs;
	spin_unlock_irqrestore(&proc->lock, flags);
}

/*
 * Sets the credentials before the process gets anything of the new program, and while it still has
 * all of the old one. If other rights to inspect come with them, nobody may inspect it in between.
 */
static void replace_credentials(struct process *proc, const struct exec_image *image)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	if (image->not_dumpable || memcmp(&proc->creds, &image->creds, sizeof(proc->creds)))
		process_close_locked(proc);
	proc->creds = image->creds;
	WRITE_ONCE(proc->keeps_caps, false);
	if (exec_is_secure(&image->creds)) {
		WRITE_ONCE(proc->death_signal, 0);
		current->personality = 0;
	}
	spin_unlock_irqrestore(&proc->lock, flags);
}

/* Lets others inspect the new program if they may, when nothing of the old one is left. */
static void replace_dumpable(struct process *proc, const struct exec_image *image)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	WRITE_ONCE(proc->not_dumpable, image->not_dumpable);
	spin_unlock_irqrestore(&proc->lock, flags);
}

/* Sets the path of /proc/self/exe. The old path is freed with prog. */
static void replace_exe_path(struct process *proc, struct program *prog)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	char *old = proc->exe_path;

	proc->exe_path = prog->exe_path;
	prog->exe_path = old;
	spin_unlock_irqrestore(&proc->lock, flags);
}

/* Replaces the old program by the new one, which is complete. Cannot fail. */
static void commit(struct program *prog, const char *path, struct mm *mm, struct copies *copies)
{
	struct process *proc = current->proc;

	DEBUG_ASSERT(proc->nr_threads == 1 && current->mm == mm);
	replace_credentials(proc, &prog->image);
	process_drop_mm(proc);
	process_set_mm(proc, mm);
	replace_shared(proc, copies);
	replace_exe_path(proc, prog);
	WRITE_ONCE(proc->has_execed, true);
	WRITE_ONCE(proc->nr_execs, proc->nr_execs + 1);
	reset_task(current, path);
	strscpy_pad(proc->comm, current->comm, sizeof(proc->comm));
	signal_reset_actions(proc);
	posix_timers_delete(proc);
	files_close_on_exec(current->files);
	profile_process_exec(proc);
	replace_dumpable(proc, &prog->image);
}

/*
 * Switches to the new address space, writes the stack, and ends the other threads. Switches back if
 * that fails.
 */
static int enter_program(struct program *prog, const char *path, const char *const *envp,
			 struct mm *mm, struct pt_regs *regs)
{
	struct mm *old = current->mm;
	struct copies copies;
	u64 sp = 0;
	int error = unshare(current->proc, &prog->image, &copies);

	if (error)
		return error;
	use_mm(mm);
	error = exec_build_stack(&prog->image, path, prog->argv, envp, &sp);
	if (!error)
		error = process_kill_others(current->proc);
	if (error) {
		use_mm(old);
		drop_copies(&copies);
		return error;
	}
	commit(prog, path, mm, &copies);
	drop_copies(&copies);
	thread_start_user(regs, prog->image.start, sp);
	current->has_new_frame = true;
	return 0;
}

int do_execve(const char *path, const char *const *argv, const char *const *envp,
	      struct pt_regs *regs)
{
	/* Used for an empty argv, because programs rely on argv[0]. */
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
		exec_close(prog.file);
	exec_free_scripts(prog.scripts);
	kfree(prog.exe_path);
	return error;
}

static int copy_path(char **path, const char __user *user)
{
	ssize_t len;

	*path = kmalloc(EXEC_MAX_PATH_BYTES);
	if (!*path)
		return -ENOMEM;
	len = strncpy_from_user(*path, user, EXEC_MAX_PATH_BYTES);
	if (len < 0)
		return (int)len;
	profile_path(*path, len);
	return 0;
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
