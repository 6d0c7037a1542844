// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts how much memory a process uses. Nothing is accounted in advance: in the rare case that
 * memory is out, the process's areas, threads and open files are added up. So hot paths pay
 * nothing, and no counter can drift.
 *
 * Memory that several processes share counts in full for each of them, as in Linux. Otherwise each
 * of many processes would look small. The content of a file with a name counts only if it is
 * mapped, also as in Linux, because the end of a process does not free it. space.c limits it.
 */

#include "internal.h"

#include <asm/pgtable.h>
#include <lego/fs.h>
#include <lego/page.h>
#include <lego/process.h>
#include <lego/procfs.h>

/* A kernel stack, the task, the FPU state, and the profiler's table. */
#define THREAD_BYTES	(KERNEL_STACK_SIZE + sizeof(struct task) + 2 * PAGE_SIZE)
#define NR_UPPER_TABLES 3 /* of page tables, at least */

/* Counts the mapped pages of a shared area. They are in mm->nr_pages, too. */
static u64 count_mapped(const struct mm *mm, const struct vma *vma)
{
	u64 addr = vma->start, nr = 0;
	u64 *pte;

	ASSERT_MM_HELD(mm);
	for_each_page_entry(pte, mm->pgd, addr, vma->end)
		nr++;
	return nr;
}

/*
 * Returns the bytes of mapped files without a name, minus their pages that are in mm->nr_pages. The
 * result is negative if a page is mapped twice.
 */
static s64 count_area_files(const struct mm *mm, u32 count)
{
	struct vma *vma;
	s64 bytes = 0;

	ASSERT_MM_HELD(mm);
	for_each_vma(vma, mm) {
		if (!vma->file)
			continue;
		bytes += file_held_bytes(vma->file, count);
		if (vma->flags & MAP_SHARED && file_has_no_name(vma->file))
			bytes -= count_mapped(mm, vma) * PAGE_SIZE;
	}
	return bytes;
}

static s64 count_mm(struct mm *mm, u32 count, u64 *user_bytes)
{
	s64 bytes = sizeof(*mm) + NR_UPPER_TABLES * PAGE_SIZE;

	rw_mutex_lock_read(&mm->lock);
	*user_bytes = mm->nr_pages * PAGE_SIZE;
	bytes += mm->nr_tables * PAGE_SIZE + mm->nr_vmas * sizeof(struct vma) +
		 count_area_files(mm, count);
	rw_mutex_unlock_read(&mm->lock);
	return bytes;
}

/* Returns the memory of the threads, and of the system calls in which they are. */
static s64 count_threads(struct process *proc)
{
	unsigned long flags = spin_lock_irqsave(&proc->lock);
	s64 bytes = proc->nr_threads * THREAD_BYTES;
	const struct task *task;

	list_for_each_entry(task, &proc->threads, thread_node)
		bytes += READ_ONCE(task->call_bytes);
	spin_unlock_irqrestore(&proc->lock, flags);
	return bytes;
}

void oom_count(struct process *proc, struct oom_size *size)
{
	static u32 last_count; /* number of the last count; never 0, the number in a new file */
	s64 bytes = sizeof(*proc) + count_threads(proc) + posix_timers_held_bytes(proc) +
		    proc_process_held_bytes(proc);
	struct mm *mm = process_get_mm(proc);

	might_sleep();
	last_count = last_count + 1 ?: 1;
	size->user_bytes = 0;
	bytes += process_files_held_bytes(proc, last_count);
	if (mm) {
		bytes += count_mm(mm, last_count, &size->user_bytes);
		mm_put(mm);
	}
	size->kernel_bytes = max(bytes, (s64)0);
}
