/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_SAMPLES_OS_H
#define PROFILE_SAMPLES_OS_H

/* What samples need from the kernel besides ../os_stacks.h: the timers that take them. */

#include "../os_stacks.h"

/*
 * The rate of the tick, if the timer is periodic; 0: the timer can be set for deadlines. Then
 * os_timer_deadline() returns the time for which the CPU's timer is set, in os_cycles(): the
 * earliest of profile_deadline and the kernel's own deadlines. os_timer_rearm() sets the timer
 * again after a change of profile_deadline; interrupts are off.
 */
#ifndef os_timer_deadline
#ifndef OS_TICK_HZ
#error "profile: define OS_TICK_HZ: rate of the periodic tick; or os_timer_deadline()"
#endif
#define os_timer_deadline() os_cycles()
#endif
#ifndef os_timer_rearm
#ifndef OS_TICK_HZ
#error "profile: define os_timer_rearm(): sets the timer for profile_next_deadline()"
#endif
#define os_timer_rearm() ((void)0)
#endif
/*
 * Waits with interrupts on: a moment or, with halt, until an interrupt has come. Does not switch to
 * another task. Process context.
 */
#ifndef os_wait_for_interrupt
#ifndef OS_TICK_HZ
#error "profile: define os_wait_for_interrupt(halt): waits a moment, or until an interrupt"
#endif
#define os_wait_for_interrupt(halt) os_cpu_relax()
#endif
#ifndef OS_TICK_HZ
#define OS_TICK_HZ 0
#endif

/*
 * NMIs at a rate. os_nmi_start() returns the name of their timer; NULL: there is none. It stores
 * whether their times are random anyway, and whether os_nmi_move() works, which moves the next NMI
 * by a random part of a period. os_nmi_slots() is the number of NMIs due so far, and os_nmi_send()
 * sends one to this CPU.
 */
#ifndef OS_HAS_NMIS
#define OS_HAS_NMIS 0
#endif
#ifndef os_nmi_start
#if OS_HAS_NMIS
#error "profile: define os_nmi_start(hz, jitter, moves): starts NMIs; their name, or NULL"
#endif
static inline const char *os_nmi_start(u32 hz, bool *jitter, bool *moves)
{
	return NULL;
}
#endif
#ifndef os_nmi_slots
#if OS_HAS_NMIS
#error "profile: define os_nmi_slots(): number of NMIs due so far"
#endif
#define os_nmi_slots() ((u64)0)
#endif
#ifndef os_nmi_move
#if OS_HAS_NMIS
#error "profile: define os_nmi_move(random): moves the next NMI"
#endif
#define os_nmi_move(random) ((void)(random))
#endif
#ifndef os_nmi_stop
#if OS_HAS_NMIS
#error "profile: define os_nmi_stop(): stops them"
#endif
#define os_nmi_stop() ((void)0)
#endif
#ifndef os_nmi_send
#if OS_HAS_NMIS
#error "profile: define os_nmi_send(): sends an NMI to this CPU"
#endif
#define os_nmi_send() ((void)0)
#endif

/* Returns a number that changes with each program of a process: the low byte is used. */
#ifndef os_process_program
#define os_process_program(proc) ((void)(proc), 0u)
#endif
#endif
