// SPDX-License-Identifier: BSD-2-Clause
/*
 * setitimer() and alarm(). ITIMER_REAL is a kernel timer of the process. As in Linux, it stops
 * while its SIGALRM is pending; when the signal is taken, it continues with the first period that
 * ends after that. So a short period costs interrupts only for the signals that the program takes.
 * proc->real.expires_ns is the next expiry; if it is 0, a handler that is about to run does
 * nothing. A thread that changes the timer stops it first; change_lock keeps others away meanwhile.
 *
 * The two timers of CPU time are counted down by whole ticks. ITIMER_VIRTUAL counts the ticks that
 * interrupt user code; ITIMER_PROF counts all ticks that interrupt the process.
 */

#include <lego/signal.h>

#include "process.h"
#include "signal.h"
#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/mutex.h>
#include <lego/sched.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define ITIMER_REAL    0
#define ITIMER_VIRTUAL 1
#define ITIMER_PROF    2

#define USEC_PER_SEC 1000000
#define TICK_NS	     (NSEC_PER_SEC / tick_hz)

struct itimerval {
	struct timeval interval;
	struct timeval value;
};

static DEFINE_MUTEX(change_lock);

/* Starts the kernel timer for the end of the first period that ends after now. */
static void go_on(struct process *proc, u64 not_before_ns)
{
	ASSERT_HELD(&proc->lock);
	timer_setting_advance(&proc->real, clock_monotonic_ns());
	if (proc->real.expires_ns)
		timer_start(&proc->real_timer, max(proc->real.expires_ns, not_before_ns));
}

/* Called when SIGALRM has been taken or dropped. */
static void alarm_gone(struct signal_owner *owner, struct siginfo *info)
{
	go_on(container_of(owner, struct process, alarm), 0);
}

static void expire_itimer(struct timer *timer)
{
	static const struct siginfo info = { .si_signo = SIGALRM, .si_code = SI_KERNEL };
	struct process *proc = container_of(timer, struct process, real_timer);
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	bool fatal = false;

	if (proc->real.expires_ns) {
		fatal = signal_send_owned(proc, NULL, SIGALRM, &info, &proc->alarm);
		if (!proc->alarm.entry)
			go_on(proc, time_after_ns(SIGNAL_MIN_UNSEEN_NS));
	}
	spin_unlock_irqrestore(&proc->lock, flags);
	if (fatal)
		process_kill(proc, SIGALRM);
}

/* As in Linux, nothing is left while SIGALRM is pending. */
static u64 real_left_ns(const struct process *proc)
{
	u64 now = clock_monotonic_ns();

	ASSERT_HELD(&proc->lock);
	if (!proc->real.expires_ns || proc->alarm.entry)
		return 0;
	return proc->real.expires_ns > now ? proc->real.expires_ns - now : NSEC_PER_USEC;
}

/* Stops the timer: afterwards no handler runs. Stores the remaining time in *left_ns. */
static void stop_itimer(struct process *proc, u64 *left_ns, u64 *interval_ns)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	ASSERT_HELD(&change_lock);
	*interval_ns = proc->real.interval_ns;
	*left_ns = real_left_ns(proc);
	proc->real.expires_ns = 0;
	signal_disown(&proc->alarm);
	spin_unlock_irqrestore(&proc->lock, flags);
	if (proc->real_timer.fn)
		timer_cancel_everywhere(&proc->real_timer);
}

static void start(struct process *proc, u64 value_ns, u64 interval_ns)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);

	ASSERT_HELD(&change_lock);
	DEBUG_ASSERT(!proc->real.expires_ns);
	proc->real.interval_ns = interval_ns;
	proc->alarm.gone = alarm_gone;
	timer_setup(&proc->real_timer, expire_itimer);
	if (value_ns) {
		proc->real.expires_ns = time_after_ns(value_ns);
		timer_start(&proc->real_timer, proc->real.expires_ns);
	}
	spin_unlock_irqrestore(&proc->lock, flags);
}

void signal_stop_timers(struct process *proc)
{
	u64 left_ns, interval_ns;

	mutex_lock(&change_lock);
	stop_itimer(proc, &left_ns, &interval_ns);
	mutex_unlock(&change_lock);
}

static void set_timer(u64 value_ns, u64 interval_ns, u64 *left_ns, u64 *old_interval_ns)
{
	struct process *proc = current->proc;

	mutex_lock(&change_lock);
	stop_itimer(proc, left_ns, old_interval_ns);
	start(proc, value_ns, interval_ns);
	mutex_unlock(&change_lock);
}

static void set_cpu_timer(struct cpu_itimer *timer, u64 value_ns, u64 interval_ns, u64 *left_ns,
			  u64 *old_interval_ns)
{
	ASSERT_HELD(&current->proc->lock);
	*left_ns = timer->left_ns;
	*old_interval_ns = timer->interval_ns;
	WRITE_ONCE(timer->left_ns, value_ns);
	timer->interval_ns = interval_ns;
}

/* Charges a tick. Returns true if the timer has expired. proc->lock is held. */
static bool charge_tick(struct cpu_itimer *timer)
{
	if (!timer->left_ns)
		return false;
	if (timer->left_ns > TICK_NS) {
		WRITE_ONCE(timer->left_ns, timer->left_ns - TICK_NS);
		return false;
	}
	WRITE_ONCE(timer->left_ns, timer->interval_ns);
	return true;
}

void signal_charge_tick(struct process *proc, bool user)
{
	struct cpu_itimer *virt = &proc->cpu_timers[ITIMER_VIRTUAL - 1];
	struct cpu_itimer *prof = &proc->cpu_timers[ITIMER_PROF - 1];
	bool virt_over, prof_over;
	unsigned long flags;

	ASSERT_IRQS_OFF();
	if (unlikely(READ_ONCE(proc->nr_cpu_timers)))
		posix_timers_tick(proc);
	if (likely(!READ_ONCE(virt->left_ns) && !READ_ONCE(prof->left_ns)))
		return;
	flags = spin_lock_irqsave(&proc->lock);
	virt_over = user && charge_tick(virt);
	prof_over = charge_tick(prof);
	spin_unlock_irqrestore(&proc->lock, flags);
	if (virt_over)
		signal_send(proc, SIGVTALRM, NULL);
	if (prof_over)
		signal_send(proc, SIGPROF, NULL);
}

static int to_ns(const struct timeval *tv, u64 *ns)
{
	struct timespec64 ts = { tv->tv_sec, tv->tv_usec * (s64)NSEC_PER_USEC };

	if (tv->tv_usec < 0 || tv->tv_usec >= USEC_PER_SEC)
		return -EINVAL;
	return timespec_to_ns(&ts, ns);
}

static struct timeval from_ns(u64 ns)
{
	u64 usec = ns / NSEC_PER_USEC + (ns % NSEC_PER_USEC != 0);

	return (struct timeval){ usec / USEC_PER_SEC, usec % USEC_PER_SEC };
}

static int put_timer(struct itimerval __user *user, u64 left_ns, u64 interval_ns)
{
	struct itimerval value = { .interval = from_ns(interval_ns), .value = from_ns(left_ns) };

	return user ? copy_to_user(user, &value, sizeof(value)) : 0;
}

SYSCALL_DEFINE3(setitimer, int, which, const struct itimerval __user *, unew,
		struct itimerval __user *, uold)
{
	u64 value_ns, interval_ns, left_ns, old_interval_ns;
	struct process *proc = current->proc;
	struct itimerval new = { 0 };
	unsigned long flags;

	if (unew && get_user(new, unew))
		return -EFAULT;
	if (to_ns(&new.value, &value_ns) || to_ns(&new.interval, &interval_ns))
		return -EINVAL;
	if (which == ITIMER_REAL) {
		set_timer(value_ns, interval_ns, &left_ns, &old_interval_ns);
	} else if (which == ITIMER_VIRTUAL || which == ITIMER_PROF) {
		flags = spin_lock_irqsave(&proc->lock);
		set_cpu_timer(&proc->cpu_timers[which - 1], value_ns, interval_ns, &left_ns,
			      &old_interval_ns);
		spin_unlock_irqrestore(&proc->lock, flags);
	} else {
		return -EINVAL;
	}
	profile_timer_set(value_ns);
	return put_timer(uold, left_ns, old_interval_ns);
}

SYSCALL_DEFINE2(getitimer, int, which, struct itimerval __user *, user)
{
	struct process *proc = current->proc;
	u64 left_ns, interval_ns;
	unsigned long flags;

	if (which != ITIMER_REAL && which != ITIMER_VIRTUAL && which != ITIMER_PROF)
		return -EINVAL;
	flags = spin_lock_irqsave(&proc->lock);
	if (which == ITIMER_REAL) {
		left_ns = real_left_ns(proc);
		interval_ns = proc->real.interval_ns;
	} else {
		left_ns = proc->cpu_timers[which - 1].left_ns;
		interval_ns = proc->cpu_timers[which - 1].interval_ns;
	}
	spin_unlock_irqrestore(&proc->lock, flags);
	return put_timer(user, left_ns, interval_ns);
}

/* Returns the seconds left of the previous alarm, rounded, but never to 0. */
SYSCALL_DEFINE1(alarm, unsigned int, seconds)
{
	u64 left_ns, interval_ns, rounded;

	set_timer(seconds * NSEC_PER_SEC, 0, &left_ns, &interval_ns);
	profile_timer_set(seconds);
	rounded = (left_ns + NSEC_PER_SEC / 2) / NSEC_PER_SEC;
	return left_ns && !rounded ? 1 : (long)rounded;
}
