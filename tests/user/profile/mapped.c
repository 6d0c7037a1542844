// SPDX-License-Identifier: BSD-2-Clause
/*
 * Maps memory, drops and moves parts of it, and forks, so that a test knows which pages each
 * function's chain has left. Makes /tmp/ready when that is done, and stays. On SIGUSR1, touches
 * more pages, and makes /tmp/more.
 */
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	 4096ul
#define NOINLINE __attribute__((noinline))

static NOINLINE char *make_pages(size_t nr, int flags)
{
	char *pages = mmap(NULL, nr * PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		err(1, "mmap");
	return pages;
}

static NOINLINE void touch_pages(volatile char *pages, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		pages[i * PAGE] = 1;
}

static NOINLINE void share_pages(volatile char *pages, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		pages[i * PAGE] = 2;
}

static NOINLINE void change_pages(volatile char *pages, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		pages[i * PAGE] = 3;
}

static NOINLINE void touch_later(volatile char *pages, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		pages[i * PAGE] = 4;
}

static void tell(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	if (fd < 0)
		err(1, "%s", path);
	close(fd);
}

static void run_child(char *pages, int ready)
{
	change_pages(pages + 60 * PAGE, 7);
	if (write(ready, "", 1) != 1)
		err(1, "write");
	for (;;)
		pause();
}

int main(void)
{
	char *pages = make_pages(100, MAP_PRIVATE), *moved, byte;
	sigset_t usr1;
	int ready[2], signal;

	touch_pages(pages, 100);
	munmap(pages, 10 * PAGE);
	madvise(pages + 10 * PAGE, 20 * PAGE, MADV_DONTNEED);
	mprotect(pages + 30 * PAGE, 5 * PAGE, PROT_NONE);
	moved = mremap(pages + 35 * PAGE, 15 * PAGE, 30 * PAGE, MREMAP_MAYMOVE);
	if (moved == MAP_FAILED || moved == pages + 35 * PAGE || pipe(ready))
		err(1, "mremap or pipe");
	share_pages(make_pages(8, MAP_SHARED), 8);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	if (!fork())
		run_child(pages, ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		err(1, "read");
	change_pages(pages + 70 * PAGE, 3);
	if (!fork())
		execl("/bin/sleep", "sleep", "1000", NULL);
	tell("/tmp/ready");
	sigwait(&usr1, &signal);
	touch_later(make_pages(12, MAP_PRIVATE), 12);
	tell("/tmp/more");
	for (;;)
		pause();
}
