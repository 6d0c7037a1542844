// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fails on purpose: one check in each kind of child whose exit status does not show it, and one in
 * this process.
 */
#include "run.h"

TEST(children)
{
	pid_t pid;

	pid = fork_child();
	if (!pid) {
		CHECK(!"in a child that is killed");
		fflush(stdout);
		raise(SIGKILL);
	}
	CHECK(WTERMSIG(child_status(pid)) == SIGKILL);
	pid = fork_child();
	if (!pid) {
		CHECK(!"in a child that ends with status 0");
		fflush(stdout);
		_exit(0);
	}
	CHECK(child_status(pid) == EXITED(0));
	pid = fork_child();
	if (!pid) {
		pid = fork_child();
		if (!pid) {
			CHECK(!"in the child of a child");
			child_exit(0);
		}
		child_status(pid);
		child_exit(0);
	}
	CHECK(child_status(pid) == EXITED(0));
	CHECK(!"in this process");
}

int main(int argc, char **argv)
{
	return run_tests("checks", argc, argv);
}
