// SPDX-License-Identifier: BSD-2-Clause
/* Tests system call tables: system calls that signals interrupt. */

#include "strace_unit.h"

#define TEST(name) HOST_TEST_WITH(name, setup, teardown)

TEST(eintr_is_an_error)
{
	interrupt_call(0, 10);
	expect(0, 1, 0, 10, 1);
	profile_syscall_interrupted();
	expect(0, 1, 1, 10, 0);
	assert_int_equal(nr_errors_of(0, EINTR), 1);
	profile_syscall_interrupted(); /* no call is interrupted: no effect */
	expect(0, 1, 1, 10, 0);
}

TEST(restart_is_one_call)
{
	host_call(0, 1, 0);
	interrupt_call(0, 10);
	profile_syscall_again(0x400, 0x7000);
	host_now += 1000;
	profile_syscall_enter(0);
	host_now += 5;
	expect(0, 2, 0, 16, 1);
	assert_int_equal(find_entry(0)->max_ns, 15);
	profile_syscall_exit(3);
	expect(0, 2, 0, 16, 0);
	assert_int_equal(find_entry(0)->max_ns, 15);
	/* The thread takes the fast path again. */
	assert_ptr_equal(task.profile.strace.index, task.profile.strace.calls.table->index);
	assert_false(task.profile.strace.event);
	host_call(0, 1, 0);
	expect(0, 3, 0, 17, 0);
}

TEST(restart_syscall_goes_on_with_the_call)
{
	interrupt_call(35, 10);
	profile_syscall_again(0x400, 0x7000);
	host_call(219, 5, 0);
	expect(35, 1, 0, 15, 0);
	assert_int_equal(find_entry(219)->nr_calls, 0);
}

TEST(calls_of_a_handler_are_calls)
{
	interrupt_call(0, 10);
	profile_syscall_again(0x400, 0x7000);
	profile_syscall_handler();
	host_call(1, 100, 0);
	host_call(0, 100, 0); /* the same number, but a new call */
	expect(0, 2, 0, 110, 1);
	profile_syscall_enter(15);
	profile_syscall_sigreturn(0x400, 0x7000);
	profile_syscall_exit(0);
	host_call(0, 7, 0);
	expect(0, 2, 0, 117, 0);
	expect(1, 1, 0, 100, 0);
	expect(15, 1, 0, 0, 0);
}

TEST(handlers_in_handlers)
{
	interrupt_call(0, 1);
	profile_syscall_again(0x400, 0x7000);
	profile_syscall_handler();
	interrupt_call(7, 10);
	profile_syscall_again(0x500, 0x6000);
	profile_syscall_handler();
	host_call(1, 5, 0);
	profile_syscall_sigreturn(0x500, 0x6000);
	/* Another signal arrives before the call is restarted. */
	profile_syscall_handler();
	host_call(7, 100, 0);
	profile_syscall_sigreturn(0x500, 0x6000);
	host_call(7, 20, 0);
	profile_syscall_sigreturn(0x400, 0x7000);
	host_call(0, 2, -9);
	expect(0, 1, 1, 3, 0);
	expect(7, 2, 0, 130, 0);
	expect(1, 1, 0, 5, 0);
	assert_int_equal(snap.nr_unfollowed, 0);
}

/* The handler leaves by longjmp(): the call never returns, and the next one is a new call. */
TEST(handler_that_does_not_return)
{
	interrupt_call(0, 10);
	profile_syscall_again(0x400, 0x7000);
	profile_syscall_handler();
	host_call(0, 1, 0);
	expect(0, 2, 0, 11, 1);
	for (int i = 0; i < 10; i++) {
		interrupt_call(0, 10);
		profile_syscall_again(0x400, 0x7000);
		profile_syscall_handler();
	}
	expect(0, 12, 0, 111, PROFILE_MAX_RESTARTS);
	assert_int_equal(snap.nr_unfollowed, 11 - PROFILE_MAX_RESTARTS);
	/* The last call can resume; earlier ones no longer can. */
	profile_syscall_sigreturn(0x400, 0x7000);
	host_call(0, 5, 0);
	expect(0, 12, 0, 116, PROFILE_MAX_RESTARTS - 1);
	exit_task(&task);
	expect(0, 12, 0, 116, 0);
}

TEST(another_call_instead_of_a_restart)
{
	interrupt_call(0, 10);
	profile_syscall_again(0x400, 0x7000);
	host_call(1, 5, 0);
	expect(0, 1, 0, 10, 0);
	expect(1, 1, 0, 5, 0);
	/* A call returned -512, but the next call comes before a restart or EINTR was chosen. */
	host_call(15, 1, -512);
	interrupt_call(0, 10);
	profile_syscall_interrupted();
	expect(0, 2, 1, 20, 0);
	expect(15, 1, 0, 1, 0);
}

TEST(killed_in_an_interrupted_call)
{
	host_dying = true;
	host_call(0, 10, -512);
	host_dying = false;
	expect(0, 1, 0, 10, 0);
	interrupt_call(1, 10);
	exit_task(&task);
	expect(1, 1, 0, 10, 0);
}

TEST(exec_in_a_handler)
{
	interrupt_call(0, 10);
	profile_syscall_again(0x400, 0x7000);
	profile_syscall_handler();
	profile_syscall_enter(59);
	host_now += 3;
	profile_process_exec(&proc);
	profile_syscall_exit(0);
	profile_syscall_sigreturn(0x400, 0x7000);
	host_call(0, 1, 0);
	expect(0, 1, 0, 1, 0);
	expect(59, 1, 0, 3, 0);
	assert_int_equal(snap.before.nr_calls, 1);
	assert_int_equal(snap.before.ns, 10);
}

TEST(reset_of_an_interrupted_call)
{
	interrupt_call(0, 10);
	profile_syscall_again(0x400, 0x7000);
	profile_syscall_handler();
	strace_reset();
	expect(0, 1, 0, 0, 1);
	host_call(1, 2, 0);
	expect(0, 1, 0, 0, 1);
	profile_syscall_sigreturn(0x400, 0x7000);
	host_call(0, 4, 0);
	expect(0, 1, 0, 4, 0);
	assert_int_equal(find_entry(0)->max_ns, 4);
}
