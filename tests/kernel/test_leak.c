// SPDX-License-Identifier: BSD-2-Clause
/*
 * The counts must change by exactly what is allocated. The broken_* suites leak on purpose and must
 * fail; they run only when named.
 */

#include <lego/selftest.h>

#include <lego/leak.h>
#include <lego/page.h>
#include <lego/sched.h>

SELFTEST(leak, memory_is_counted)
{
	struct leak_counts before, held, after;
	struct page *page;
	void *small, *large;

	leak_snapshot(&before);
	small = kmalloc(100);
	large = kmalloc(5 * PAGE_SIZE);
	page = page_alloc(2, 0);
	leak_snapshot(&held);
	ASSERT(small && large && page);
	EXPECT_EQ(held.pages - before.pages, 8 + 4);
	EXPECT(held.slab_bytes - before.slab_bytes >= 8 * PAGE_SIZE + 100);
	EXPECT(held.slab_bytes - before.slab_bytes <= 8 * PAGE_SIZE + 256);
	EXPECT_EQ(held.stacks, before.stacks);
	kfree(small);
	kfree(large);
	page_put(page);
	leak_snapshot(&after);
	EXPECT_EQ(after.pages, before.pages);
	EXPECT_EQ(after.slab_bytes, before.slab_bytes);
}

/* Pages of slabs do not count as allocated pages, and freed objects are not a leak. */
SELFTEST(leak, slabs_are_no_leak)
{
	struct leak_counts before, held;
	void **list = NULL;

	leak_snapshot(&before);
	for (int i = 0; i < 3000; i++) {
		void **object = kmalloc(200);

		ASSERT(object);
		*object = list;
		list = object;
	}
	leak_snapshot(&held);
	EXPECT_EQ(held.pages, before.pages);
	while (list) {
		void **object = list;

		list = *object;
		kfree(object);
	}
	EXPECT(leak_check(&before));
}

static int nothing(void *unused)
{
	return 0;
}

SELFTEST(leak, threads_are_counted)
{
	struct leak_counts before, held;
	struct task *tasks[20];

	leak_snapshot(&before);
	for (int i = 0; i < ARRAY_SIZE(tasks); i++)
		tasks[i] = kthread_create(nothing, NULL, "leak");
	leak_snapshot(&held);
	EXPECT_EQ(held.kinds[LEAK_TASKS] - before.kinds[LEAK_TASKS], ARRAY_SIZE(tasks));
	EXPECT_EQ(held.stacks - before.stacks, ARRAY_SIZE(tasks));
	EXPECT_EQ(held.pages, before.pages);
	for (int i = 0; i < ARRAY_SIZE(tasks); i++)
		task_wake(tasks[i]);
	EXPECT(leak_check(&before));
}

SELFTEST(broken_leak, object)
{
	EXPECT(kmalloc(1000));
}

SELFTEST(broken_leak_page, page)
{
	EXPECT(page_alloc(0, 0));
}

SELFTEST(broken_leak_task, task)
{
	EXPECT(kthread_create(nothing, NULL, "leaked"));
}
