// SPDX-License-Identifier: BSD-2-Clause
/*
 * The tree of processes. A process is in process_list and in its parent's list of children until it
 * has been waited for. When the parent ends first, the process gets a new parent: its nearest
 * ancestor that is a subreaper (PR_SET_CHILD_SUBREAPER), or init. Everything here is guarded by
 * process_tree_lock. Signals may be sent while it is held: proc->lock is taken inside it.
 */

#include <lego/process.h>

#include "process.h"
#include "signal.h"
#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/procfs.h>
#include <lego/string.h>
#include <lego/wait.h>

DEFINE_SPINLOCK(process_tree_lock);
LIST_HEAD(process_list);

static struct process *init_process;

static LIST_HEAD(walks); /* through process_list, the members of groups, and children */

void process_leave_list(struct list_head *node)
{
	ASSERT_HELD(&process_tree_lock);
	list_del_walked(node, &walks);
}

#define MAX_STEPS 32 /* with interrupts off: a signal takes up to 1,000 instructions */

/*
 * Calls fn for the processes from walk->next on, `offset` bytes before their nodes, but for no more
 * than MAX_STEPS. Returns true if there are more.
 */
static bool walk_some(struct list_walk *walk, const struct list_head *end, size_t offset,
		      bool (*fn)(struct process *proc, void *arg), void *arg)
{
	ASSERT_HELD(&process_tree_lock);
	for (unsigned int i = 0; i < MAX_STEPS; i++) {
		struct process *proc = (void *)walk->next - offset;

		if (walk->next == end)
			return false;
		walk->next = walk->next->next;
		if (!fn(proc, arg))
			return false;
	}
	return walk->next != end;
}

void process_walk(struct list_head *list, size_t offset,
		  bool (*fn)(struct process *proc, void *arg), void *arg, unsigned long flags)
{
	struct list_walk walk = { .next = list->next };

	ASSERT_HELD(&process_tree_lock);
	list_add(&walk.node, &walks);
	while (walk_some(&walk, list, offset, fn, arg)) {
		spin_unlock_irqrestore(&process_tree_lock, flags);
		flags = spin_lock_irqsave(&process_tree_lock);
	}
	list_del(&walk.node);
}

void process_for_each(bool (*fn)(struct process *proc, void *arg), void *arg)
{
	unsigned long flags = spin_lock_irqsave(&process_tree_lock);

	process_walk(&process_list, offsetof(struct process, all_node), fn, arg, flags);
	spin_unlock_irqrestore(&process_tree_lock, flags);
}

void process_for_each_member(pid_t pgid, bool (*fn)(struct process *proc, void *arg), void *arg)
{
	unsigned long flags = spin_lock_irqsave(&process_tree_lock);
	struct list_head *members = process_group(pgid);
	bool any = !list_empty(members);

	if (any) {
		pid_get(pgid); /* keeps the list, even if all members leave */
		process_walk(members, offsetof(struct process, group_node), fn, arg, flags);
	}
	spin_unlock_irqrestore(&process_tree_lock, flags);
	if (any)
		pid_put(pgid);
}

static u64 waitable_nr(const struct list_head *node)
{
	return list_entry(node, struct process, wait_node)->child_nr;
}

/*
 * Returns the node in parent->waitable after which proc must be inserted. Searches from both ends
 * of the list and among the older siblings at the same time, so that the search is short in the
 * common cases: if children end in the order of their creation or the reverse, the first step finds
 * the place; if few of them are in the list, the list is short.
 */
static struct list_head *find_wait_place(struct process *parent, struct process *proc)
{
	struct list_head *front = parent->waitable.next, *back = parent->waitable.prev;
	struct list_head *older = proc->sibling.prev;

	ASSERT_HELD(&process_tree_lock);
	for (;; front = front->next, back = back->prev, older = older->prev) {
		struct process *sibling = list_entry(older, struct process, sibling);

		if (back == &parent->waitable || waitable_nr(back) < proc->child_nr)
			return back;
		/* Not the list's head: a node further back has a higher number. */
		if (waitable_nr(front) > proc->child_nr)
			return front->prev;
		if (older == &parent->children)
			return &parent->waitable;
		if (!list_empty(&sibling->wait_node))
			return &sibling->wait_node;
	}
}

/* Keeps the oldest child first, because Linux looks at children in this order. */
void family_set_waitable(struct process *proc)
{
	struct process *parent = proc->parent;

	ASSERT_HELD(&process_tree_lock);
	if (parent && list_empty(&proc->wait_node))
		list_add(&proc->wait_node, find_wait_place(parent, proc));
}

static void set_parent(struct process *proc, struct process *parent)
{
	static u64 last_child_nr;

	ASSERT_HELD(&process_tree_lock);
	DEBUG_ASSERT(proc != parent);
	process_leave_list(&proc->sibling);
	process_leave_list(&proc->wait_node);
	proc->parent = parent;
	if (!parent)
		return;
	list_add_tail(&proc->sibling, &parent->children);
	proc->child_nr = ++last_child_nr;
	if (proc->zombie || proc->wait_event)
		family_set_waitable(proc);
}

int family_add(struct process *proc, struct task *task, struct process *creator, bool as_sibling)
{
	unsigned long flags = spin_lock_irqsave(&process_tree_lock);

	if (creator && task_interrupted(current)) {
		spin_unlock_irqrestore(&process_tree_lock, flags);
		return -ERESTARTNOINTR;
	}
	DEBUG_ASSERT(list_empty(&proc->all_node) && list_empty(&proc->threads));
	proc->pid = task->pid;
	if (creator) {
		set_parent(proc, as_sibling ? creator->parent : creator);
		proc->sid = creator->sid;
		proc->tty = creator->tty;
	} else {
		init_process = proc;
	}
	pid_get(proc->pid);
	pid_join_group(proc, creator ? creator->pgid : 0);
	pid_get(proc->sid);
	process_get(proc);
	list_add_tail(&task->thread_node, &proc->threads);
	proc->nr_threads = proc->nr_staying = 1;
	if (proc->mm)
		mm_add_threads(proc->mm, 1);
	pid_set_owner(proc->pid, proc, task);
	list_add_tail(&proc->all_node, &process_list);
	spin_unlock_irqrestore(&process_tree_lock, flags);
	return 0;
}

void family_detach(struct process *proc)
{
	ASSERT_HELD(&process_tree_lock);
	DEBUG_ASSERT(proc->zombie && !proc->nr_threads && list_empty(&proc->children));
	process_leave_list(&proc->all_node);
	set_parent(proc, NULL);
	user_uncharge_process(proc);
	pid_set_owner(proc->pid, NULL, NULL);
	pid_leave_group(proc);
	pid_put(proc->sid);
	pid_put(proc->pid);
	proc->zombie = false;
}

void family_release(struct process *proc)
{
	ASSERT_NOT_HELD(&process_tree_lock);
	profile_process_release(proc);
	if (proc->in_procfs)
		proc_forget_process(proc);
	process_put(proc);
}

static void fill_child_info(struct process *proc, struct siginfo *info, int code, int status)
{
	u64 events[NR_CPU_EVENTS];
	struct cpu_times times;

	process_cpu_times(proc, &times, events);
	memset(info, 0, sizeof(*info)); /* including padding, because users see it */
	info->si_signo = SIGCHLD;
	info->si_code = code;
	info->child.pid = proc->pid;
	info->child.uid = proc->creds.uid;
	info->child.status = status;
	info->child.utime = (s64)(times.user_ns / NSEC_PER_TICK);
	info->child.stime = (s64)(times.system_ns / NSEC_PER_TICK);
}

/* Returns true if children of the parent become zombies when they end. */
static bool wants_zombies(struct process *parent, bool *ignores)
{
	unsigned long flags = spin_lock_irqsave(&parent->lock);
	const struct kernel_sigaction *action = &parent->sigactions[SIGCHLD - 1];
	bool wants = action->handler != SIG_IGN && !(action->flags & SA_NOCLDWAIT);

	*ignores = action->handler == SIG_IGN;
	spin_unlock_irqrestore(&parent->lock, flags);
	return wants;
}

/*
 * Tells the parent of a zombie, which has just ended or has a new parent, except those of its
 * threads that wait: see wake_parent(). Returns false if the parent does not want zombies.
 */
static bool notify_parent(struct process *proc)
{
	struct process *parent = proc->parent;
	int signal = proc->exit_status & 0x7f;
	struct siginfo info;
	bool ignores = false, wants = true;

	ASSERT_HELD(&process_tree_lock);
	DEBUG_ASSERT(proc->zombie && parent);
	if (proc->exit_signal == SIGCHLD)
		wants = wants_zombies(parent, &ignores);
	/* clone() accepts any number as exit signal. A number that is no signal sends nothing. */
	if (proc->exit_signal && proc->exit_signal <= NR_SIGNALS && !ignores) {
		fill_child_info(proc, &info, signal ? CLD_KILLED : CLD_EXITED,
				signal ? signal : proc->exit_status >> 8 & 0xff);
		info.si_signo = proc->exit_signal;
		signal_send(parent, proc->exit_signal, &info);
	}
	return wants;
}

static bool find_connection(struct process *proc, void *found)
{
	const struct process *parent = proc->parent;

	ASSERT_HELD(&process_tree_lock);
	if (!proc->zombie && parent && parent != init_process && parent->pgid != proc->pgid &&
	    parent->sid == proc->sid)
		*(bool *)found = true;
	return !*(bool *)found;
}

bool process_group_is_orphaned(pid_t pgid)
{
	bool connected = false;

	process_for_each_member(pgid, find_connection, &connected);
	return !connected;
}

static bool find_stopped(struct process *proc, void *found)
{
	*(bool *)found = READ_ONCE(proc->stopped);
	return !*(bool *)found;
}

static bool hang_up(struct process *proc, void *unused)
{
	signal_send(proc, SIGHUP, NULL);
	signal_send(proc, SIGCONT, NULL);
	return true;
}

/*
 * Until now, proc's parent has connected its group to the rest of the session. If it was the last
 * such parent, the group is orphaned, and no shell can continue its stopped processes. Returns the
 * group, with a reference to its number, for hang_up_orphaned(); 0: there is nothing to do.
 */
static pid_t group_to_check(struct process *proc, struct process *parent)
{
	ASSERT_HELD(&process_tree_lock);
	if (!parent || parent->pgid == proc->pgid || parent->sid != proc->sid ||
	    !signal_any_stopped())
		return 0;
	pid_get(proc->pgid);
	return proc->pgid;
}

/* Sends SIGHUP and SIGCONT to a group that is orphaned and has a stopped member. */
static void hang_up_orphaned(pid_t pgid)
{
	bool stopped = false;

	ASSERT_NOT_HELD(&process_tree_lock);
	if (!pgid)
		return;
	if (process_group_is_orphaned(pgid))
		process_for_each_member(pgid, find_stopped, &stopped);
	if (stopped)
		process_for_each_member(pgid, hang_up, NULL);
	pid_put(pgid);
}

/* Returns the new parent for the children of a process that ends. */
static struct process *find_reaper(const struct process *proc)
{
	struct process *at = proc->parent;

	ASSERT_HELD(&process_tree_lock);
	while (at && at != init_process && (!READ_ONCE(at->is_subreaper) || at->zombie))
		at = at->parent;
	return at ? at : init_process;
}

/* Releases the lock, and wakes the threads of the parent that wait for children. */
static void wake_parent(struct process *parent, unsigned long flags)
{
	ASSERT_HELD(&process_tree_lock);
	process_get(parent);
	spin_unlock_irqrestore(&process_tree_lock, flags);
	wake_up_all(&parent->child_wait);
	process_put(parent);
}

/* Returns true if the parent has a child left in the child's group, which connects that, too. */
static bool next_is_of_group(struct process *parent, const struct process *child)
{
	return !list_empty(&parent->children) &&
	       list_first_entry(&parent->children, struct process, sibling)->pgid == child->pgid;
}

/*
 * Gives a number of children a new parent, up to one whose group may be orphaned by that: sets
 * *pgid to that group, or to 0. Adds to `gone` those zombies that the new parent does not want,
 * either.
 */
static void give_children_away(struct process *proc, struct process *reaper, struct list_head *gone,
			       pid_t *pgid)
{
	ASSERT_HELD(&process_tree_lock);
	DEBUG_ASSERT(proc != init_process);
	*pgid = 0;
	for (unsigned int i = 0; i < MAX_STEPS && !*pgid && !list_empty(&proc->children); i++) {
		struct process *child = list_first_entry(&proc->children, struct process, sibling);

		set_parent(child, reaper);
		child->exit_signal = SIGCHLD;
		if (child->death_signal && !child->zombie)
			signal_send(child, child->death_signal, NULL);
		if (!next_is_of_group(proc, child))
			*pgid = group_to_check(child, proc);
		if (child->zombie && !notify_parent(child)) {
			family_detach(child);
			list_add_tail(&child->sibling, gone);
		}
	}
}

void family_exit(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&process_tree_lock);
	struct process *child, *next, *parent;
	pid_t pgid;
	LIST_HEAD(gone);

	DEBUG_ASSERT(!proc->zombie && !proc->nr_threads && !proc->mm && !proc->files);
	while (!list_empty(&proc->children)) {
		struct process *reaper = find_reaper(proc);

		give_children_away(proc, reaper, &gone, &pgid);
		wake_parent(reaper, flags);
		hang_up_orphaned(pgid);
		flags = spin_lock_irqsave(&process_tree_lock);
	}
	proc->zombie = true;
	family_set_waitable(proc);
	parent = proc->parent;
	pgid = group_to_check(proc, parent);
	if (!notify_parent(proc)) {
		family_detach(proc);
		list_add_tail(&proc->sibling, &gone);
	}
	wake_parent(parent, flags);
	hang_up_orphaned(pgid);
	list_for_each_entry_safe(child, next, &gone, sibling) {
		list_del(&child->sibling);
		family_release(child);
	}
}

void process_notify_stopped(struct process *proc, bool continued)
{
	unsigned long flags = spin_lock_irqsave(&process_tree_lock);
	struct process *parent = proc->parent;
	struct siginfo info;

	if (parent && !proc->zombie) {
		unsigned long lock_flags = spin_lock_irqsave(&parent->lock);
		const struct kernel_sigaction *action = &parent->sigactions[SIGCHLD - 1];
		bool silent = action->handler == SIG_IGN || (action->flags & SA_NOCLDSTOP);

		spin_unlock_irqrestore(&parent->lock, lock_flags);
		fill_child_info(proc, &info, continued ? CLD_CONTINUED : CLD_STOPPED,
				continued ? SIGCONT : READ_ONCE(proc->stop_signal));
		if (!silent)
			signal_send(parent, SIGCHLD, &info);
		wake_parent(parent, flags);
	} else {
		spin_unlock_irqrestore(&process_tree_lock, flags);
	}
}
