/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROC_INTERNAL_H
#define PROC_INTERNAL_H

/* Declarations that the files of kernel/fs/proc share. */

#include "../inode.h"
#include <lego/process.h>
#include <lego/procfs.h>

/*
 * A file of /proc, of the system or of a process. inode->private points to it. Its text is made
 * when it is read from position 0, and kept for the following reads.
 */
struct proc_file {
	const char *name;
	const char *root;    /* where the file system is, for the log; NULL: /proc */
	const char *path;    /* relative to that, or to the process's directory; for the log */
	const char *accepts; /* words that can be written; NULL: refused writes are not logged */
	int (*show)(struct text *text, const void *arg);
	const void *arg;
	u32 mode;     /* permission bits */
	bool private; /* of a process: only processes that may inspect it can open the file */
	int (*show_process)(struct text *text, struct process *proc);
	/*
	 * The same for a file that differs between threads; tid 0: in the process's own directory.
	 */
	int (*show_thread)(struct text *text, struct process *proc, pid_t tid);
	int (*write)(const char *text);
	int (*write_process)(const char *text, struct process *proc);
	int (*write_thread)(const char *text, struct process *proc, pid_t tid);
	/* For /sys/kernel/tracing: see struct tracefs_file. */
	int (*write_arg)(const char *text, const void *arg);
	int (*truncate)(const void *arg);
	void (*release_arg)(const void *arg);
	bool (*next)(struct text *text, const void *arg, bool waits);
	bool (*ready)(const void *arg);
	void (*close)(void); /* for a file that can be open once at a time; else NULL */
	bool is_open;	     /* only with close */
};

/*
 * refused.c: logs that these bytes, written to the file, are not valid. pid is the process whose
 * directory the file is in, or 0. Process context.
 */
void proc_log_refused(const struct proc_file *file, int pid, const char *bytes, size_t n);

/* Makes a file in a directory of /proc. Returns it, or ERR_PTR. tree_lock is held. */
struct inode *proc_create_file(struct inode *dir, const struct proc_file *file);

extern struct inode *proc_root;

/* process.c: update the directories of all processes, or the one with that name. */
void proc_populate_root(struct inode *root);
void proc_populate_root_name(struct inode *root, const char *name, size_t len);

/* Returns the process of an inode below its directory, with a reference; NULL: it is gone. */
struct process *proc_inode_process(const struct inode *inode);

/*
 * Returns the process of a link that the current process may follow, or ERR_PTR(-ENOENT, -EACCES).
 * proc_put_inspected() returns -EACCES if it lost that right meanwhile, and must forget the target.
 */
struct process *proc_get_inspected(const struct inode *inode, u32 *version);
int proc_put_inspected(struct process *proc, u32 version);

/* process_links.c: cwd, exe and root. Which one it is, is in inode->private. */
enum proc_link {
	PROC_LINK_CWD,
	PROC_LINK_EXE,
	PROC_LINK_ROOT,
};
extern const struct inode_ops proc_link_ops, proc_cwd_ops;

/* Copies the text of a link. Returns its length, or -ENAMETOOLONG. path may be in buf. */
ssize_t proc_copy_path(const char *path, char *buf, size_t size);

/*
 * Make the entries of the directory of a process or thread, or the one with that name, and set
 * their owner. Entries that are there stay. tree_lock is held, also for the next two.
 */
void proc_populate_process(struct inode *dir);
void proc_populate_process_name(struct inode *dir, const char *name, size_t len);
/* Sets the owner of all entries of the directory to that of its process. */
void proc_own_children(struct inode *dir);
void proc_own_child(struct inode *child, const struct process *proc); /* the same for one */

/* Returns the number that a name of that length stands for, or -1. */
int proc_number_of_name(const char *name, size_t len);

/* process_fd.c: the directory of a process's open files. */
extern const struct inode_ops proc_fd_dir_ops;

/* threads.c: returns the thread in whose directory the inode is; 0: in the process's own. */
pid_t proc_inode_tid(const struct inode *inode);
extern const struct inode_ops proc_task_dir_ops;

/* process_stat.c: tid 0 means the process. -ESRCH: the thread is gone. */
int proc_show_comm(struct text *text, struct process *proc, pid_t tid);
int proc_write_comm(const char *text, struct process *proc, pid_t tid);
int proc_show_stat(struct text *text, struct process *proc, pid_t tid);
int proc_show_statm(struct text *text, struct process *proc);
int proc_show_status(struct text *text, struct process *proc, pid_t tid);
int proc_show_limits(struct text *text, struct process *proc);
int proc_show_io(struct text *text, struct process *proc, pid_t tid);
int proc_show_schedstat(struct text *text, struct process *proc, pid_t tid);

/* maps.c */
int proc_show_maps(struct text *text, struct process *proc);
int proc_show_smaps(struct text *text, struct process *proc);
int proc_show_smaps_rollup(struct text *text, struct process *proc);

/*
 * system.c: makes the files of the system in /proc. tree_lock is held. Returns 0 or a negative
 * errno.
 */
int proc_create_system_files(struct inode *root);

/* sysctl.c: makes /proc/sys, in the same way. */
int proc_create_sysctls(void);

/* sysctl.c: who sees addresses of the kernel. 0: all users, 1: root, 2: nobody. */
extern unsigned int kptr_restrict;

/* root.c: makes a file at file->path below /proc, with missing directories; sets its name. */
int proc_create_at_path(struct proc_file *file);

/* statistics.c */
int proc_show_interrupts(struct text *text, const void *unused);
int proc_show_slabinfo(struct text *text, const void *unused);
int proc_show_vmstat(struct text *text, const void *unused);
/* Returns how many interrupts all CPUs have had, without NMIs. */
u64 proc_nr_interrupts(void);

/* cpuinfo.c */
int proc_show_cpuinfo(struct text *text, const void *unused);

static inline u64 proc_clock_ticks(u64 ns)
{
	return ns / NSEC_PER_TICK;
}

#endif
