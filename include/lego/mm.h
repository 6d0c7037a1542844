/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_MM_H
#define LEGO_MM_H

/*
 * A user address space: sorted array of areas (struct vma) over a page table filled on demand. User
 * memory is never touched with mm->lock held: a fault would take it again.
 */

#include <asm/page.h>
#include <lego/atomic.h>
#include <lego/rw_mutex.h>
#include <lego/spinlock.h>

struct file;

/* Linux's values, as user programs pass them. */
#define PROT_READ	    0x1
#define PROT_WRITE	    0x2
#define PROT_EXEC	    0x4
#define PROT_MASK	    0x7
#define MAP_SHARED	    0x01
#define MAP_PRIVATE	    0x02
#define MAP_FIXED	    0x10
#define MAP_ANONYMOUS	    0x20
#define MAP_GROWSDOWN	    0x0100
#define MAP_DENYWRITE	    0x0800
#define MAP_LOCKED	    0x2000
#define MAP_NORESERVE	    0x4000
#define MAP_POPULATE	    0x8000
#define MAP_STACK	    0x20000
#define MAP_FIXED_NOREPLACE 0x100000

/* [start, end), page aligned; private pages only, from a file or zero. */
struct vma {
	u64 start;
	u64 end;
	u32 prot;	   /* PROT_* */
	u32 flags;	   /* MAP_* */
	struct file *file; /* NULL: anonymous; holds a reference */
	u64 file_offset;   /* of start, page aligned */
	u64 file_bytes;	   /* from start; what lies behind reads as zero */
};

struct mm {
	u64 *pgd;	/* top page table, direct map address */
	cpumask_t cpus; /* CPUs that may hold TLB entries of it; atomic */
	atomic_t refs;

	struct rw_mutex lock; /* read: areas and brk stay; write: they, and pages, may go */
	struct vma **vmas;    /* sorted by start, no overlaps */
	unsigned int nr_vmas;
	unsigned int max_vmas;
	u64 brk_start, brk;
	u64 mmap_base; /* areas without a wish are placed downwards from here */

	spinlock_t pt_lock; /* of those with a read lock, who changes the page table */
	u64 nr_pages;	    /* user pages mapped */
};

struct mm *mm_alloc(void);  /* refs 1, kernel half shared; NULL when out of memory */
void mm_put(struct mm *mm); /* process context; the last reference frees all. */
static inline void mm_get(struct mm *mm)
{
	atomic_inc(&mm->refs);
}

/*
 * All of these take mm->lock, sleep, and return 0, an address or a negative errno as Linux's
 * calls do.
 */
long mm_map(struct mm *mm, u64 addr, u64 len, u32 prot, u32 flags, struct file *file, u64 offset);
/* As mm_map with MAP_FIXED, the file's content ending file_bytes behind addr: for ELF segments. */
long mm_map_segment(struct mm *mm, u64 addr, u64 len, u32 prot, struct file *file, u64 offset,
		    u64 file_bytes);
long mm_unmap(struct mm *mm, u64 addr, u64 len);
long mm_protect(struct mm *mm, u64 addr, u64 len, u32 prot);
long mm_set_brk(struct mm *mm, u64 addr); /* returns the new or, on failure, the old break */

/*
 * Make the page at addr present for an access (PROT_READ, PROT_WRITE or PROT_EXEC). 0, -EFAULT
 * when no area allows it, -ENOMEM. Process context, interrupts on.
 */
int mm_fault(struct mm *mm, u64 addr, u32 access);

/* Load mm's page table on this CPU (NULL: the kernel's own). Interrupts off; from the scheduler. */
void mm_switch(struct mm *prev, struct mm *next);

/*
 * Page faults by user or by checked copies arrive here from the trap; defined in
 * kernel/mm/fault.c.
 */
struct pt_regs;
void mm_init(void);

#endif
