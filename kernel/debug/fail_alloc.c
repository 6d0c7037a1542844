// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lets allocations fail, or copies to and from user memory, to test how the kernel handles that.
 * Writing n to /proc/fail_alloc makes each call path to an allocation fail once, at its n-th use,
 * for any process but init. Writing 0 ends that, waits until the kernel's use of memory is back at
 * its earlier value, and logs any leak. /proc/fail_usercopy does the same for the functions of
 * <lego/uaccess.h>. A call path is identified by its last few return addresses.
 */
#include <lego/fail_alloc.h>

#include <lego/assert.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/leak.h>
#include <lego/params.h>
#include <lego/printk.h>
#include <lego/process.h>
#include <lego/procfs.h>
#include <lego/spinlock.h>
#include <lego/string.h>

#define NR_PATHS 8192 /* a power of two */
#define DEPTH	 4

struct call_path {
	u64 hash; /* 0: free */
	u64 nr;	  /* number of uses */
};

enum fail_kind {
	FAIL_ALLOC,
	FAIL_USERCOPY,
	NR_FAILS
};

static const char *const files[] = {
	[FAIL_ALLOC] = "fail_alloc",
	[FAIL_USERCOPY] = "fail_usercopy",
};

static DEFINE_SPINLOCK(lock); /* guards the paths and their numbers; taken with interrupts off */
static struct call_path paths[NR_PATHS];
static unsigned int nr_paths, nr_failed;

static u64 failing_use[NR_FAILS]; /* 0: nothing fails. At most one of them is not 0. */
static struct leak_counts before;

/*
 * Returns a hash of the last return addresses on the thread's stack. On other stacks it finds none.
 */
static noinline u64 hash_callers(void)
{
	const u64 *frame = __builtin_frame_address(0);
	u64 start = (u64)current->kernel_stack, hash = 14695981039346656037ULL;

	/* Two frames more: that of fail_alloc() or fail_usercopy(), and of its caller. */
	for (int i = 0; i < DEPTH + 2; i++) {
		if ((u64)frame - start >= KERNEL_STACK_SIZE - 2 * sizeof(u64) || (u64)frame % 8)
			break;
		hash = (hash ^ frame[1]) * 1099511628211ULL;
		frame = (const u64 *)frame[0];
	}
	return hash ?: 1;
}

/* Finds or adds a path. NULL: the table is full; a path without an entry never fails. */
static struct call_path *find_call_path(u64 hash)
{
	unsigned int i = hash % NR_PATHS;

	ASSERT_HELD(&lock);
	while (paths[i].hash && paths[i].hash != hash)
		i = (i + 1) % NR_PATHS;
	if (!paths[i].hash) {
		if (nr_paths == NR_PATHS - 1)
			return NULL;
		paths[i].hash = hash;
		nr_paths++;
	}
	return &paths[i];
}

static __always_inline bool fails_here(enum fail_kind kind)
{
	u64 failing = READ_ONCE(failing_use[kind]);
	struct call_path *path;
	unsigned long flags;
	bool fails;

	if (likely(!failing) || !current->proc || current->proc->pid == INIT_PID)
		return false;
	flags = spin_lock_irqsave(&lock);
	path = find_call_path(hash_callers());
	fails = path && ++path->nr == failing;
	nr_failed += fails;
	spin_unlock_irqrestore(&lock, flags);
	return fails;
}

bool fail_alloc(void)
{
	return fails_here(FAIL_ALLOC);
}

bool fail_usercopy(void)
{
	return fails_here(FAIL_USERCOPY);
}

static void begin_failure(enum fail_kind kind, u64 use)
{
	unsigned long flags;

	leak_wait_steady();
	leak_snapshot(&before);
	flags = spin_lock_irqsave(&lock);
	memset(paths, 0, sizeof(paths));
	nr_paths = nr_failed = 0;
	spin_unlock_irqrestore(&lock, flags);
	WRITE_ONCE(failing_use[kind], use);
}

static void end_failing(enum fail_kind kind)
{
	u64 use = failing_use[kind];

	WRITE_ONCE(failing_use[kind], 0);
	printk("%s: use %llu failed on %u of %u paths, %s\n", files[kind], (unsigned long long)use,
	       nr_failed, nr_paths, leak_check(&before) ? "nothing leaked" : "memory leaked");
}

static int write_kind(enum fail_kind kind, const char *text)
{
	u64 use;

	if (parse_u64(text, &use) || !use == !failing_use[kind] || failing_use[!kind])
		return -EINVAL;
	if (use)
		begin_failure(kind, use);
	else
		end_failing(kind);
	return 0;
}

static int write_alloc(const char *text)
{
	return write_kind(FAIL_ALLOC, text);
}

static int write_usercopy(const char *text)
{
	return write_kind(FAIL_USERCOPY, text);
}

void fail_alloc_init(void)
{
	const char *accepts = "<use of each path>|0";

	BUG_ON(proc_add_file(files[FAIL_ALLOC], accepts, NULL, NULL, write_alloc));
	BUG_ON(proc_add_file(files[FAIL_USERCOPY], accepts, NULL, NULL, write_usercopy));
}
