// SPDX-License-Identifier: BSD-2-Clause
/*
 * timer_create(2). A timer stops while its signal is pending. When the signal is taken, the
 * expiries missed since become its overrun, and the timer continues from now. So a short interval
 * costs interrupts only for the signals that the program takes.
 *
 * Timers on CPU time clocks have no kernel timer: each tick of a process that has some checks them,
 * as in Linux. A tick does not check timers of other processes. So a timer on another process's CPU
 * time has a kernel timer. It checks at the earliest time the clock can have reached the expiry,
 * and at most once per tick. The overrun of its signal is as of the last check.
 *
 * The timers of a process are in a tree by ID, and those that ticks check also in a list. A process
 * without timers has neither.
 *
 * proc->lock guards the timers of a process. change_lock prevents changing or deleting a timer
 * while it is looked up and stopped. Stopping it needs a lock other than proc->lock, because it
 * waits for the handler. A handler that finds expires_ns 0 does nothing.
 */

#include <lego/signal.h>

#include "process.h"
#include "signal.h"
#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/fd_tree.h>
#include <lego/mutex.h>
#include <lego/sched.h>
#include <lego/slab.h>
#include <lego/smp.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define SIGEV_SIGNAL	0
#define SIGEV_NONE	1
#define SIGEV_THREAD	2 /* only the C library makes threads: handled as SIGEV_SIGNAL */
#define SIGEV_THREAD_ID 4

/* Per process. Each tick looks at all of the latter, with interrupts off. */
#define MAX_TIMERS     SIGNAL_MAX_QUEUED /* RLIMIT_SIGPENDING may be lower */
#define MAX_CPU_TIMERS 256

/* Linux's layout. */
struct sigevent {
	u64 value;
	s32 signo;
	s32 notify;
	s32 tid;
	s32 room[11];
};

BUILD_BUG_ON(sizeof(struct sigevent) != 64);

/* Another process whose CPU time a timer measures. It may end, and its pid may be used again. */
struct other {
	pid_t pid; /* 0: none */
	u64 start_ns;
	u64 exec_ns; /* at the last check */
	bool ended;  /* so exec_ns is final */
};

struct posix_timers {
	struct fd_tree by_id;
	unsigned int nr;
	struct list_head ticked;
};

struct posix_timer {
	struct list_head ticked_node;
	struct process *proc;
	struct task *task; /* the signal's thread, with a reference; NULL: any of proc */
	s32 id;
	int clock, notify, sig;
	/* The thread whose CPU time it measures, with a reference; NULL: the process's. */
	struct task *of;
	struct other of_other;
	u64 value;
	struct timer timer;
	struct timer_setting setting;
	struct signal_owner owner;
	s32 overrun; /* of the last signal taken */
};

static DEFINE_MUTEX(change_lock);

static bool is_cpu_clock(int clock)
{
	return clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
}

/* Returns whether the ticks of its own process check the timer. */
static bool is_ticked(const struct posix_timer *timer)
{
	return is_cpu_clock(timer->clock) && !timer->of_other.pid;
}

/*
 * Reads the other process's CPU time. Returns false if it is gone. Called without proc->lock,
 * because it takes the other process's.
 */
static bool look_up_other(struct other *other)
{
	struct process *proc = process_find(other->pid);
	bool found = proc && (!other->start_ns || proc->start_ns == other->start_ns);

	if (found) {
		other->start_ns = proc->start_ns;
		other->ended = !READ_ONCE(proc->nr_threads);
		other->exec_ns = cycles_to_ns(process_exec_cycles(proc));
	}
	if (proc)
		process_put(proc);
	return found;
}

/* Returns the time to compare setting.expires_ns with. */
static u64 now_ns(const struct posix_timer *timer)
{
	ASSERT_HELD(&timer->proc->lock);
	if (timer->of_other.pid)
		return timer->of_other.exec_ns;
	if (timer->of)
		return cycles_to_ns(task_own_cycles(timer->of));
	return is_cpu_clock(timer->clock) ? cycles_to_ns(process_exec_cycles_locked(timer->proc)) :
					    clock_monotonic_ns();
}

/*
 * Returns the earliest time at which the other process can have used the remaining time; never, if
 * it has ended.
 */
static u64 next_look_ns(const struct posix_timer *timer)
{
	u64 left = timer->setting.expires_ns - min(now_ns(timer), timer->setting.expires_ns);

	if (timer->of_other.ended)
		return TIME_NEVER_NS;
	return time_after_ns(max(left / nr_cpus, NSEC_PER_SEC / tick_hz));
}

/* Starts the kernel timer, if the timer needs one. A SIGEV_NONE timer is only read. */
static void start_timer(struct posix_timer *timer, u64 not_before_ns)
{
	u64 expires_ns = timer->setting.expires_ns;

	ASSERT_HELD(&timer->proc->lock);
	if (is_ticked(timer) || !expires_ns || timer->notify == SIGEV_NONE)
		return;
	if (timer->of_other.pid)
		expires_ns = next_look_ns(timer);
	timer_start(&timer->timer, max(expires_ns, not_before_ns));
}

/* Called when the signal has been taken or dropped. */
static void signal_gone(struct signal_owner *owner, struct siginfo *info)
{
	struct posix_timer *timer = container_of(owner, struct posix_timer, owner);

	ASSERT_HELD(&timer->proc->lock);
	timer->overrun =
		(s32)min(timer_setting_advance(&timer->setting, now_ns(timer)) - 1, (u64)INT32_MAX);
	info->timer.overrun = timer->overrun;
	start_timer(timer, 0);
}

/* Sends the signal. Returns whether it ends the process. */
static bool send_timer_signal(struct posix_timer *timer)
{
	struct siginfo info = {
		.si_signo = timer->sig,
		.si_code = SI_TIMER,
		.timer = { .id = timer->id, .value = timer->value },
	};
	bool fatal;

	ASSERT_HELD(&timer->proc->lock);
	fatal = signal_send_owned(timer->proc, timer->task, timer->sig, &info, &timer->owner);
	if (!timer->owner.entry) {
		timer_setting_advance(&timer->setting, now_ns(timer));
		start_timer(timer, time_after_ns(SIGNAL_MIN_UNSEEN_NS));
	}
	return fatal;
}

/* After this drops the lock, another CPU may start the timer again. */
static void expire_timer(struct timer *kernel_timer)
{
	struct posix_timer *timer = container_of(kernel_timer, struct posix_timer, timer);
	struct process *proc = timer->proc;
	struct other other = timer->of_other;
	int sig = timer->sig;
	unsigned long flags;
	bool fatal = false;

	if (other.pid && !look_up_other(&other))
		return;
	flags = spin_lock_irqsave(&proc->lock);
	if (other.pid)
		timer->of_other = other;
	if (timer->setting.expires_ns && other.pid && now_ns(timer) < timer->setting.expires_ns)
		start_timer(timer, 0);
	else if (timer->setting.expires_ns)
		fatal = send_timer_signal(timer);
	spin_unlock_irqrestore(&proc->lock, flags);
	if (fatal)
		process_kill(proc, sig);
}

static bool is_due(const struct posix_timer *timer)
{
	return is_ticked(timer) && timer->setting.expires_ns && !timer->owner.entry &&
	       timer->notify != SIGEV_NONE && now_ns(timer) >= timer->setting.expires_ns;
}

void posix_timers_tick(struct process *proc)
{
	struct posix_timer *timer;
	unsigned long flags;
	int fatal_sig = 0;

	ASSERT_IRQS_OFF();
	flags = spin_lock_irqsave(&proc->lock);
	if (!proc->posix_timers)
		goto out_unlock;
	list_for_each_entry(timer, &proc->posix_timers->ticked, ticked_node) {
		if (is_due(timer) && send_timer_signal(timer))
			fatal_sig = timer->sig;
	}
out_unlock:
	spin_unlock_irqrestore(&proc->lock, flags);
	if (fatal_sig)
		process_kill(proc, fatal_sig);
}

static struct posix_timer *find_timer(s32 id)
{
	struct posix_timers *timers = current->proc->posix_timers;

	ASSERT_HELD(&current->proc->lock);
	return timers && id >= 0 ? fd_tree_get(&timers->by_id, id) : NULL;
}

/* Stops the timer: no handler runs any more, and a pending signal no longer belongs to it. */
static void stop_timer(struct posix_timer *timer, struct itimerspec64 *left)
{
	struct process *proc = timer->proc;
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	ASSERT_HELD(&change_lock);
	*left = timer_setting_left(&timer->setting, now_ns(timer));
	timer->setting.expires_ns = 0;
	signal_disown(&timer->owner);
	spin_unlock_irqrestore(&proc->lock, flags);
	timer_cancel_everywhere(&timer->timer);
}

static void free_timer(struct posix_timer *timer)
{
	if (timer->task)
		task_put(timer->task);
	if (timer->of)
		task_put(timer->of);
	kfree(timer);
}

static void delete_timer(struct posix_timer *timer)
{
	struct process *proc = timer->proc;
	struct posix_timers *timers = proc->posix_timers;
	struct itimerspec64 left;
	unsigned long flags;

	stop_timer(timer, &left);
	flags = spin_lock_irqsave(&proc->lock);
	fd_tree_set(&timers->by_id, fd_tree_leaf(&timers->by_id, timer->id), timer->id, NULL);
	timers->nr--;
	list_del(&timer->ticked_node);
	WRITE_ONCE(proc->nr_cpu_timers, proc->nr_cpu_timers - is_ticked(timer));
	spin_unlock_irqrestore(&proc->lock, flags);
	free_timer(timer);
}

void posix_timers_delete(struct process *proc)
{
	struct posix_timers *timers = READ_ONCE(proc->posix_timers);
	unsigned long flags;

	if (!timers)
		return;
	mutex_lock(&change_lock);
	for (int id = 0; (id = fd_tree_next(&timers->by_id, id)) >= 0; id++)
		delete_timer(fd_tree_get(&timers->by_id, id));
	flags = spin_lock_irqsave(&proc->lock);
	proc->posix_timers = NULL;
	spin_unlock_irqrestore(&proc->lock, flags);
	mutex_unlock(&change_lock);
	fd_tree_free(&timers->by_id);
	kfree(timers);
}

u64 posix_timers_held_bytes(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	const struct posix_timers *timers = proc->posix_timers;
	u64 bytes = 0;

	if (timers)
		bytes = sizeof(*timers) + timers->nr * sizeof(struct posix_timer) +
			timers->by_id.nr_nodes * sizeof(struct fd_node);
	spin_unlock_irqrestore(&proc->lock, flags);
	return bytes;
}

/* Makes the tree of the current process, unless it has one. Returns 0 or -ENOMEM. */
static int make_timers(void)
{
	struct process *proc = current->proc;
	struct posix_timers *timers;
	unsigned long flags;

	ASSERT_HELD(&change_lock);
	if (proc->posix_timers)
		return 0;
	timers = kzalloc(sizeof(*timers));
	if (!timers)
		return -ENOMEM;
	fd_tree_init(&timers->by_id);
	list_init(&timers->ticked);
	flags = spin_lock_irqsave(&proc->lock);
	proc->posix_timers = timers;
	spin_unlock_irqrestore(&proc->lock, flags);
	return 0;
}

static bool may_insert(const struct posix_timer *timer)
{
	const struct process *proc = timer->proc;
	u64 limit = min(proc->rlimits[RLIMIT_SIGPENDING].cur, (u64)MAX_TIMERS);

	ASSERT_HELD(&proc->lock);
	return proc->posix_timers->nr < limit &&
	       (!is_ticked(timer) || proc->nr_cpu_timers < MAX_CPU_TIMERS);
}

/* Inserts the timer at the first unused ID. Returns the ID, or -EAGAIN. */
static s32 insert_locked(struct posix_timer *timer, bool by_id)
{
	struct process *proc = timer->proc;
	struct posix_timers *timers = proc->posix_timers;
	struct fd_node *leaf;

	ASSERT_HELD(&proc->lock);
	if (!may_insert(timer))
		return -EAGAIN;
	timer->id = fd_tree_next_free(&timers->by_id, 0);
	leaf = fd_tree_make_leaf(&timers->by_id, timer->id);
	if (!leaf)
		return -EAGAIN;
	if (by_id)
		timer->value = (u32)timer->id;
	fd_tree_set(&timers->by_id, leaf, timer->id, timer);
	timers->nr++;
	if (is_ticked(timer))
		list_add_tail(&timer->ticked_node, &timers->ticked);
	WRITE_ONCE(proc->nr_cpu_timers, proc->nr_cpu_timers + is_ticked(timer));
	return timer->id;
}

/* The same, with the locks. Or returns -ENOMEM. */
static s32 insert(struct posix_timer *timer, bool by_id)
{
	struct process *proc = timer->proc;
	unsigned long flags;
	s32 id;

	mutex_lock(&change_lock);
	id = make_timers();
	if (!id) {
		flags = spin_lock_irqsave(&proc->lock);
		id = insert_locked(timer, by_id);
		spin_unlock_irqrestore(&proc->lock, flags);
	}
	mutex_unlock(&change_lock);
	return id;
}

/* Stores how the program is notified of an expiry. 0 or -EINVAL. */
static int set_event(struct posix_timer *timer, const struct sigevent *event)
{
	timer->notify = event->notify;
	timer->sig = event->signo;
	timer->value = event->value;
	if (event->notify == SIGEV_NONE)
		return 0;
	if (event->notify != SIGEV_SIGNAL && event->notify != SIGEV_THREAD &&
	    event->notify != (SIGEV_SIGNAL | SIGEV_THREAD_ID))
		return -EINVAL;
	if (event->signo < 1 || event->signo > NR_SIGNALS)
		return -EINVAL;
	if (event->notify == SIGEV_THREAD_ID)
		timer->task = process_find_thread(timer->proc, event->tid);
	return timer->task || event->notify != SIGEV_THREAD_ID ? 0 : -EINVAL;
}

/*
 * Stores the clock and its thread or process. 0, or -EINVAL for an unknown clock, thread or
 * process.
 */
static int set_clock(struct posix_timer *timer, int clock)
{
	timer->clock = clock_number(clock);
	if (timer->clock == CLOCK_THREAD_CPUTIME_ID) {
		task_get(current);
		timer->of = current;
	} else if (clock_is_by_number(timer->clock) && clock_is_of_thread(clock)) {
		timer->clock = CLOCK_THREAD_CPUTIME_ID;
		timer->of = process_find_thread(timer->proc, clock_pid(clock));
		return timer->of ? 0 : -EINVAL;
	} else if (clock_is_by_number(timer->clock)) {
		timer->clock = CLOCK_PROCESS_CPUTIME_ID;
		timer->of_other.pid = clock_pid(clock);
		return look_up_other(&timer->of_other) ? 0 : -EINVAL;
	}
	return clock_has_timers(timer->clock) || is_cpu_clock(timer->clock) ? 0 : -EINVAL;
}

static s32 create(int clock, const struct sigevent *event, bool by_id)
{
	struct posix_timer *timer = kzalloc(sizeof(*timer));
	s32 id;

	if (!timer)
		return -ENOMEM;
	timer->proc = current->proc;
	timer->owner.gone = signal_gone;
	list_init(&timer->ticked_node);
	timer_setup(&timer->timer, expire_timer);
	id = set_clock(timer, clock);
	if (!id)
		id = set_event(timer, event);
	if (!id)
		id = insert(timer, by_id);
	if (id < 0)
		free_timer(timer);
	return id;
}

/* Returns the timer with that ID. It is not changed or deleted until change_lock is dropped. */
static struct posix_timer *find_to_change(s32 id)
{
	struct process *proc = current->proc;
	struct posix_timer *timer;
	unsigned long flags;

	ASSERT_HELD(&change_lock);
	flags = spin_lock_irqsave(&proc->lock);
	timer = find_timer(id);
	spin_unlock_irqrestore(&proc->lock, flags);
	return timer;
}

static int delete_by_id(s32 id)
{
	struct posix_timer *timer;

	mutex_lock(&change_lock);
	timer = find_to_change(id);
	if (timer)
		delete_timer(timer);
	mutex_unlock(&change_lock);
	return timer ? 0 : -EINVAL;
}

SYSCALL_DEFINE1(timer_delete, s32, id)
{
	return delete_by_id(id);
}

/* Without an event, the signal is SIGALRM with the timer's ID. */
SYSCALL_DEFINE3(timer_create, int, clock, const struct sigevent __user *, user_event, s32 __user *,
		user_id)
{
	struct sigevent event = { .signo = SIGALRM, .notify = SIGEV_SIGNAL };
	s32 id;

	if (user_event && get_user(event, user_event))
		return -EFAULT;
	id = create(clock, &event, !user_event);
	if (id < 0)
		return id;
	if (put_user(id, user_id)) {
		delete_by_id(id);
		return -EFAULT;
	}
	return 0;
}

static int change(s32 id, bool absolute, const struct itimerspec64 *new, struct itimerspec64 *old)
{
	struct posix_timer *timer = find_to_change(id);
	struct timer_setting setting;
	unsigned long flags;
	struct other other;
	u64 now;

	if (!timer)
		return -EINVAL;
	other = timer->of_other;
	if (other.pid && !look_up_other(&other))
		return -ESRCH;
	flags = spin_lock_irqsave(&timer->proc->lock);
	timer->of_other = other;
	now = now_ns(timer);
	spin_unlock_irqrestore(&timer->proc->lock, flags);
	if (timer_setting_from(&setting, new, timer->clock, absolute, now))
		return -EINVAL;
	stop_timer(timer, old);
	flags = spin_lock_irqsave(&timer->proc->lock);
	timer->setting = setting;
	timer->overrun = 0;
	start_timer(timer, 0);
	spin_unlock_irqrestore(&timer->proc->lock, flags);
	return 0;
}

SYSCALL_DEFINE4(timer_settime, s32, id, int, flags, const struct itimerspec64 __user *, unew,
		struct itimerspec64 __user *, uold)
{
	struct itimerspec64 new, old;
	int error;

	if (!unew)
		return -EINVAL;
	if (get_user(new, unew))
		return -EFAULT;
	mutex_lock(&change_lock);
	error = change(id, flags & TIMER_ABSTIME, &new, &old);
	mutex_unlock(&change_lock);
	profile_timer_set(!error);
	return error || !uold ? error : put_user(old, uold);
}

/*
 * Returns the remaining time of a timer on another process's clock; zeros if that process is gone.
 */
static struct itimerspec64 left_of_other(s32 id)
{
	struct itimerspec64 left = { 0 };
	struct posix_timer *timer;
	struct other other;
	unsigned long flags;

	mutex_lock(&change_lock);
	timer = find_to_change(id);
	if (timer) {
		other = timer->of_other;
		if (look_up_other(&other)) {
			flags = spin_lock_irqsave(&timer->proc->lock);
			timer->of_other = other;
			left = timer_setting_left(&timer->setting, now_ns(timer));
			spin_unlock_irqrestore(&timer->proc->lock, flags);
		}
	}
	mutex_unlock(&change_lock);
	return left;
}

SYSCALL_DEFINE2(timer_gettime, s32, id, struct itimerspec64 __user *, user)
{
	struct process *proc = current->proc;
	struct posix_timer *timer;
	struct itimerspec64 left;
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	bool other;

	timer = find_timer(id);
	other = timer && timer->of_other.pid;
	if (timer)
		left = timer_setting_left(&timer->setting, now_ns(timer));
	spin_unlock_irqrestore(&proc->lock, flags);
	if (other)
		left = left_of_other(id);
	return timer ? put_user(left, user) : -EINVAL;
}

SYSCALL_DEFINE1(timer_getoverrun, s32, id)
{
	struct process *proc = current->proc;
	struct posix_timer *timer;
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	long ret = -EINVAL;

	timer = find_timer(id);
	if (timer)
		ret = timer->overrun;
	spin_unlock_irqrestore(&proc->lock, flags);
	return ret;
}
