// SPDX-License-Identifier: BSD-2-Clause
/*
 * forkbomb [seconds [limit]]: a child forks, its children fork, and so on, as fast as they can;
 * with a limit, they run as a user other than root, whose number of processes is limited. After the
 * seconds the first process kills them all, and must be able to go on.
 */
#include <sys/mman.h>
#include <sys/resource.h>

#include "run.h"

struct bomb {
	int nr_made, nr_refused, nr_odd, end;
};

static void explode(struct bomb *bomb)
{
	while (!bomb->end) {
		pid_t pid = fork();

		if (pid > 0) {
			__atomic_add_fetch(&bomb->nr_made, 1, __ATOMIC_RELAXED);
		} else if (pid < 0) {
			__atomic_add_fetch(&bomb->nr_refused, 1, __ATOMIC_RELAXED);
			if (errno != EAGAIN && errno != ENOMEM)
				bomb->nr_odd = errno;
			sleep_ms(1);
		}
	}
	_exit(0);
}

static void reap_what_is_there(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

int main(int argc, char **argv)
{
	long seconds = argc > 1 ? atoi(argv[1]) : 2, limit = argc > 2 ? atoi(argv[2]) : 0, end_ms;
	struct bomb *bomb = mmap(NULL, sizeof(*bomb), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct rlimit processes = { limit, limit };
	int nr_made;
	pid_t pid;

	if (!CHECK(bomb != MAP_FAILED))
		return 1;
	pid = fork_child();
	if (!pid) {
		setpgid(0, 0);
		if (limit)
			CHECK(!setrlimit(RLIMIT_NPROC, &processes) && !setuid(4711));
		explode(bomb);
	}
	setpgid(pid, pid);
	end_ms = now_ms() + seconds * 1000;
	while (now_ms() < end_ms) {
		sleep_ms(10);
		reap_what_is_there();
	}
	nr_made = bomb->nr_made; /* read now: later, some end while others still fork */
	bomb->end = 1;
	end_ms = now_ms() + 60000;
	while (!kill(-pid, SIGKILL) && now_ms() < end_ms) {
		reap_what_is_there();
		sleep_ms(1);
	}
	reap_what_is_there();
	CHECK(kill(-pid, 0) == -1 && errno == ESRCH);
	CHECK(nr_made > 0 && bomb->nr_odd == 0);
	/* Processes that fork at the same time may exceed the limit together. */
	CHECK(!limit || (bomb->nr_refused > 0 && nr_made < limit + 16));
	pid = fork_child();
	if (!pid)
		child_exit(3);
	CHECK(child_status(pid) == EXITED(3));
	printf("forkbomb: %d made, %d refused\n", nr_made, bomb->nr_refused);
	return check_finish("forkbomb");
}
