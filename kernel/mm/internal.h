/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MM_INTERNAL_H
#define MM_INTERNAL_H

/* Declarations that the files of kernel/mm share. */

#include <asm/pgtable.h>
#include <lego/assert.h>
#include <lego/mm.h>

#include "vma_tree.h"

struct process;

#define TABLE_BYTES (PTRS_PER_TABLE * PAGE_SIZE) /* of memory, by a page table of the last level */

/* Early memory (early.c): a range that is still free, for page_init() to take over. */
struct early_range {
	phys_addr_t start, end;
};

/*
 * Like page_alloc_early(), but returns contiguous pages anywhere in RAM, not zeroed. So the final
 * direct map must be there.
 */
phys_addr_t early_alloc_pages(u64 nr_pages);

/* Return the free ranges, and the end of RAM. No early allocation may follow. */
const struct early_range *early_ranges(unsigned int *nr);
phys_addr_t early_ram_end(void);

/*
 * Most functions here need mm->lock. An address space that is not in the list yet needs no lock,
 * because no other thread can find it.
 */
#define ASSERT_MM_HELD(mm)                                                        \
	ASSERT_NAMED(list_empty(&(mm)->node) || lock_check_held(&(mm)->lock.map), \
		     #mm "->lock is held")
#define ASSERT_MM_HELD_WRITE(mm)                                                         \
	ASSERT_NAMED(list_empty(&(mm)->node) || (lock_check_held(&(mm)->lock.map) &&     \
						 (mm)->lock.holders == RW_MUTEX_WRITER), \
		     #mm "->lock is held for writing")

static inline void mm_stop_faults(struct mm *mm)
{
	spin_lock(&mm->pt_lock);
	mm->faults_wait = true;
	mm->nr_changes++;
	spin_unlock(&mm->pt_lock);
}

/*
 * Locks for writing, and makes page faults wait. Who only adds areas in free places, or removes
 * areas, need not do that: a page fault looks again, with pt_lock held, when it maps its page.
 */
static inline void mm_lock_write(struct mm *mm)
{
	rw_mutex_lock_write(&mm->lock);
	mm_stop_faults(mm);
}

/* Returns 0 or -EINTR, as rw_mutex_lock_write_killable() does. */
static inline int mm_lock_write_killable(struct mm *mm)
{
	int error = rw_mutex_lock_write_killable(&mm->lock);

	if (!error)
		mm_stop_faults(mm);
	return error;
}

/* Lets page faults go on that do not take the lock. */
static inline void mm_allow_faults(struct mm *mm)
{
	/* Pairs with the acquire in anonymous_area(), which sees all changes. */
	smp_store_release(&mm->faults_wait, false);
}

static inline void mm_unlock_write(struct mm *mm)
{
	mm_allow_faults(mm);
	rw_mutex_unlock_write(&mm->lock);
}

#define ASSERT_FAULTS_WAIT(mm)                                                                   \
	do {                                                                                     \
		ASSERT_MM_HELD_WRITE(mm);                                                        \
		ASSERT_NAMED(list_empty(&(mm)->node) || (mm)->faults_wait, #mm "->faults_wait"); \
	} while (0)
/* An area may be changed: no page fault looks at it meanwhile. */
#define ASSERT_MAY_CHANGE_AREAS(mm)                                  \
	ASSERT_NAMED(list_empty(&(mm)->node) || (mm)->faults_wait || \
			     lock_check_held(&(mm)->pt_lock.map),    \
		     #mm "->faults_wait or pt_lock")

/*
 * The areas (vma.c), guarded by mm->lock. Page faults that do not take it look them up with
 * pt_lock: see mm_lock_write(). Except mm_unmap(), these functions do not change page tables.
 */

/*
 * Returns the first area that ends after addr (the area that contains addr, if there is one), or
 * NULL.
 */
static inline struct vma *vma_find_from(const struct mm *mm, u64 addr)
{
	ASSERT_MM_HELD(mm);
	return vma_tree_find(&mm->areas, addr);
}

/*
 * Iterates over the areas that overlap [from, to), in the order of addresses. The body may change
 * the area, but must not add or remove areas.
 */
#define for_each_vma_in(vma, mm, from, to) \
	for ((vma) = vma_find_from(mm, from); (vma) && (vma)->start < (to); (vma) = (vma)->next)

#define for_each_vma(vma, mm) for ((vma) = (mm)->areas.first; (vma); (vma) = (vma)->next)

/* Returns true if a program can write through the area to a file or to shared memory. */
static inline bool vma_writes_file(const struct vma *vma)
{
	return vma->flags & MAP_SHARED && vma->prot & PROT_WRITE;
}

/* Returns what the pages of an area are for. It is the same during the area's life. */
static inline enum mm_kind vma_kind(const struct vma *vma)
{
	if (vma->file)
		return vma->flags & MAP_SHARED ? MM_SHARED : MM_FILE;
	if (vma->flags & VMA_HEAP)
		return MM_HEAP;
	return vma->flags & MAP_STACK ? MM_STACK : MM_ANONYMOUS;
}

/* Returns the area that contains addr, or NULL. */
static inline struct vma *vma_find(const struct mm *mm, u64 addr)
{
	struct vma *vma = vma_find_from(mm, addr);

	return vma && vma->start <= addr ? vma : NULL;
}

/* Return true if no area overlaps [start, end), or if areas cover all of it. */
bool vma_range_free(const struct mm *mm, u64 start, u64 end);
bool vma_range_mapped(const struct mm *mm, u64 start, u64 end);

/* Splits the areas that contain start or end there. Returns 0, or -ENOMEM with nothing changed. */
int vma_split_range(struct mm *mm, u64 start, u64 end);

/* Areas that were removed, linked by next. They may begin and end with parts of areas. */
struct vma_removed {
	struct vma *first;
	/* For the kernel's part of the peak: pages_at_peak() and areas before; 0: it is kept. */
	u64 peak_pages;
	unsigned int nr_vmas;
	struct vma parts[2];
};

/*
 * Removes the parts of areas in [start, end). An area that extends beyond both ends is split first,
 * because only that can fail. Returns 0, or -ENOMEM with nothing changed; removed->first may be
 * NULL. The caller unmaps the pages of what was removed before another thread can map the range
 * again, and calls vma_free_removed(), which needs no lock.
 */
int vma_remove_range(struct mm *mm, u64 start, u64 end, struct vma_removed *removed);
void vma_free_removed(struct vma_removed *removed);

/* Removes and frees an area that has no pages. */
void vma_remove(struct mm *mm, struct vma *vma);

/*
 * Inserts an area (from kmalloc) in a free place, directly before next (NULL: after all), after
 * profile_area_changed(). Returns false if equal neighbours have become larger instead: the caller
 * frees the area.
 */
bool vma_insert(struct mm *mm, struct vma *vma, struct vma *next);

/* Merges equal neighbours that meet in [start, end]. */
void vma_merge_range(struct mm *mm, u64 start, u64 end);

void vma_free(struct vma *vma);
void vma_free_all(struct mm *mm);

/* Copies all areas into an empty address space. Returns 0, or -ENOMEM with some areas copied. */
int vma_copy_all(struct mm *to, struct mm *from);

/* Pages (pages.c), changed with mm->lock held, for writing if not said otherwise. */

/*
 * Returns the page table entry of addr, and makes the tables if necessary. NULL: out of memory.
 * pt_lock is held, or mm_lock_write().
 */
u64 *pages_alloc_entry(struct mm *mm, u64 addr);

/*
 * Unmaps and frees all pages in [start, end) of an address space that no CPU has loaded or will
 * load.
 */
void pages_free(struct mm *mm, u64 start, u64 end);

/*
 * Unmap the pages in [start, end) of an area, or of areas that were removed and are linked by next;
 * flush all TLBs, once, and free the pages. If the areas have been removed, a reader may call this.
 */
void pages_unmap(struct mm *mm, const struct vma *vma, u64 start, u64 end);
void pages_unmap_areas(struct mm *mm, const struct vma_removed *removed);

/*
 * For MADV_DONTNEED. pages_take() unmaps the first pages of an area in [*addr, end), and moves
 * *addr behind them, to end if there are no more. mm->lock is held for reading; page faults may map
 * other pages at once. The caller drops the lock, so that no writer waits for the TLB flush, and
 * calls pages_free_taken(). A call that unmaps, protects, moves or copies pages in the same place
 * flushes that place, too. Another discard may find no page there: it calls
 * pages_flush_unflushed(), without mm->lock.
 */
#define MAX_PAGES_TAKEN 128
struct pages_taken {
	unsigned int nr;
	u64 start, end; /* to be flushed */
	struct page *pages[MAX_PAGES_TAKEN];
};
void pages_take(struct mm *mm, const struct vma *vma, u64 *addr, u64 end,
		struct pages_taken *taken);
void pages_free_taken(struct mm *mm, const struct pages_taken *taken);
void pages_flush_unflushed(struct mm *mm, u64 start, u64 end);

/* Returns the number of mapped pages if it is at its maximum, or 0. */
static inline u64 pages_at_peak(const struct mm *mm)
{
	/* In this order: page faults raise nr_pages first. */
	u64 max_pages = READ_ONCE(mm->max_pages), nr_pages = READ_ONCE(mm->nr_pages);

	return nr_pages >= max_pages ? nr_pages : 0;
}

/*
 * Called before the number of areas or threads falls, which are a part of the peak. For
 * vma_remove_range(), pages_unmap_areas() does it afterwards.
 */
void pages_keep_peak_kernel(struct mm *mm);

/* Gives the pages in [start, end) the access rights prot. */
void pages_protect(struct mm *mm, u64 start, u64 end, u32 prot);

/*
 * Maps the private pages of an area in the empty area of `to` as well, borrowed in both. Sets
 * *changed if `from` has lost a right to write; then the caller flushes the TLBs, even after a
 * failure. Returns 0, or -ENOMEM with some pages copied.
 */
int pages_copy(struct mm *to, struct mm *from, const struct vma *vma, bool *changed);

/*
 * Move the pages of an area to an empty place. pages_prepare_move() makes the page tables first,
 * because only that can fail. Returns 0, or -ENOMEM with no page moved; new page tables may remain.
 */
int pages_prepare_move(struct mm *mm, u64 start, u64 len, u64 to);
void pages_move(struct mm *mm, const struct vma *vma, u64 to);

/* The list of all address spaces (file_mappings.c). The caller needs no lock. */
void mm_list_add(struct mm *mm);
void mm_list_remove(struct mm *mm);

/* Areas (mm.c). */

/*
 * Chooses the address for a mapping: *addr is a hint, or with MAP_FIXED the place itself. len is a
 * multiple of pages, neither 0 nor more than TASK_SIZE. Sets *addr to the place, and *next to the
 * area after it, or NULL; with MAP_FIXED, it need not be free. Returns 0 or a negative errno.
 */
int mm_choose_place(struct mm *mm, u64 *addr, u64 len, u32 flags, struct vma **next);

/* Unmaps [start, end). Returns 0, or -ENOMEM with nothing changed. */
int mm_unmap_locked(struct mm *mm, u64 start, u64 end);

/*
 * For callers that need the lock no longer after vma_remove_range(). Makes the caller a reader,
 * unmaps and frees the pages of what was removed, and unlocks. removed->first may be NULL. Inline,
 * so that the profiler of waits names the system call that held the lock.
 */
static __always_inline void mm_unlock_write_and_unmap(struct mm *mm, struct vma_removed *removed)
{
	if (!removed->first) {
		mm_unlock_write(mm);
		return;
	}
	mm_allow_faults(mm);
	/* No page fault can map pages there, and no other call can map areas. */
	rw_mutex_downgrade(&mm->lock);
	pages_unmap_areas(mm, removed);
	rw_mutex_unlock_read(&mm->lock);
	vma_free_removed(removed);
}

/*
 * Returns true if this much private writable memory is more than the machine has. There is no other
 * limit, because most programs use a small part of the memory that they map.
 */
bool mm_too_large(u64 bytes, u32 prot, u32 flags);

/*
 * Returns true if RLIMIT_AS and RLIMIT_DATA allow the current process to replace [start, end) by a
 * mapping of `bytes` with these rights.
 */
bool mm_fits(const struct mm *mm, u64 start, u64 end, u64 bytes, u32 prot, u32 flags);

/* Returns false if mm_fits() is true for everything. Needs no lock. */
bool mm_is_limited(void);

/* Returns true if RLIMIT_DATA allows to make [start, end) writable. */
bool mm_fits_writable(const struct mm *mm, u64 start, u64 end);

/*
 * Estimates how much memory the end of a process would free (oom_count.c). Process context, no
 * mm->lock held; one caller at a time.
 */
struct oom_size {
	u64 user_bytes, kernel_bytes;
};
void oom_count(struct process *proc, struct oom_size *size);

#endif
