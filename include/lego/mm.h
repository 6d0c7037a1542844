/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_MM_H
#define LEGO_MM_H

/*
 * A user address space: sorted areas (struct vma), and a page table filled on demand. Code must not
 * access user memory with mm->lock held, because a page fault may take it, too.
 */

#include <asm/page.h>
#include <lego/assert.h>
#include <lego/atomic.h>
#include <lego/profile.h>
#include <lego/rw_mutex.h>
#include <lego/spinlock.h>
#include <lego/vma.h>

struct inode;

/* Linux's values, as user programs pass them. */
#define PROT_NONE	    0x0
#define PROT_READ	    0x1
#define PROT_WRITE	    0x2
#define PROT_EXEC	    0x4
#define PROT_MASK	    0x7
#define MAP_SHARED	    0x01
#define MAP_PRIVATE	    0x02
#define MAP_FIXED	    0x10
#define MAP_ANONYMOUS	    0x20
#define MAP_32BIT	    0x40 /* in the second GiB of the address space */
#define MAP_GROWSDOWN	    0x0100
#define MAP_DENYWRITE	    0x0800
#define MAP_LOCKED	    0x2000
#define MAP_NORESERVE	    0x4000
#define MAP_POPULATE	    0x8000
#define MAP_STACK	    0x20000
#define MAP_FIXED_NOREPLACE 0x100000

/* Flags of an area, besides MAP_*: set by madvise(), for the next fork. */
#define VMA_DONT_FORK	 BIT(30) /* the child does not get it */
#define VMA_WIPE_ON_FORK BIT(31) /* the child gets it empty */

/* Set by brk: the area is a part of the heap. MAP_STACK is kept, too. Neither ever changes. */
#define VMA_HEAP BIT(29)

/* What a process uses memory for: first the kinds of areas, then what lies in no area. */
enum mm_kind {
	MM_HEAP,
	MM_ANONYMOUS,
	MM_STACK,
	MM_FILE, /* private mappings, with the pages of them that were written to */
	MM_SHARED,
	NR_MM_AREA_KINDS,
	MM_TABLES = NR_MM_AREA_KINDS, /* page tables of the last level */
	MM_KERNEL, /* stacks and descriptors of threads, and descriptors of areas */
	NR_MM_KINDS,
};
#define MM_KIND_NAMES "heap", "anonymous", "stacks", "files", "shared", "page tables", "kernel"

/* Where execve put things, for /proc only. */
struct mm_layout {
	u64 start_code, end_code;
	u64 start_stack; /* stack pointer of the first instruction */
	u64 arg_start, arg_end;
	u64 env_start, env_end;
};

#define MM_MAX_AREAS 65530 /* of one address space; Linux's vm.max_map_count */

struct mm {
	u64 *pgd;	    /* top page table, direct map address */
	cpumask_t cpus;	    /* CPUs that may hold TLB entries of it; atomic */
	u64 tlb_generation; /* see <asm/tlb.h> */
	atomic_t refs;
	struct list_head node; /* in the list of all: file_mappings.c */

	/*
	 * Read: areas and brk do not change; pages are mapped, and those of areas discarded, with
	 * pt_lock; munmap(), brk() and mremap() unmap pages that are in no area any more. Write:
	 * areas may change, and pages are moved. If it is not free, first faults of anonymous
	 * memory only take pt_lock, so that they do not wait for mmap() and munmap(): see
	 * mm_lock_write().
	 */
	struct rw_mutex lock;
	struct vma_tree areas; /* changed with pt_lock held, too, if page faults need not wait */
	unsigned int nr_vmas;
	u64 brk_start, brk;
	u64 mmap_base; /* areas without a requested address are placed downwards from here */

	spinlock_t pt_lock; /* taken by holders of the read lock to change the page table */
	bool faults_wait;   /* for the lock; set with pt_lock */
	u64 nr_changes;	 /* of areas; raised with pt_lock before each, or once by mm_lock_write() */
	u64 nr_discards; /* raised with it when they unmap pages of a private file mapping */
	/*
	 * Calls that have unmapped pages, dropped the lock and not yet flushed the TLBs, and a
	 * range that has all these pages. Changed with pt_lock, but lowered without.
	 */
	atomic_t nr_unflushed;
	u64 unflushed_start, unflushed_end;
	u64 nr_pages;  /* user pages mapped: Linux's resident set */
	u64 max_pages; /* the maximum of nr_pages so far */
	u64 nr_tables; /* page tables of the last level */
	/* nr_pages by kind: now and, if pages were unmapped since then, at max_pages. */
	u64 nr_of_kind[NR_MM_AREA_KINDS];
	u64 peak_of_kind[NR_MM_KINDS]; /* without MM_KERNEL */
	atomic_t nr_threads;	       /* of the processes that have this as their mm */
	/* The most that MM_KERNEL was with max_pages pages mapped: see pages.c. */
	u64 peak_kernel;

	bool gets_no_pages; /* those that it had are freed: its process ends, or memory is out */

	struct mm_layout layout;
	struct file *exe_file; /* the program, which cannot be written to; NULL: not yet known */
	struct profile_mm profile;
};

/* Writing to the file is denied already. */
void mm_set_exe_file(struct mm *mm, struct file *file);
struct mm *mm_alloc(void);  /* refs 1, kernel half shared; NULL when out of memory */
void mm_put(struct mm *mm); /* process context; the last reference frees all. */

/*
 * Frees all pages, for the last thread of a process that ends, unless another process shares them.
 * The areas remain. Process context; no CPU uses mm.
 */
void mm_drop_pages(struct mm *mm);

static inline void mm_get(struct mm *mm)
{
	DEBUG_ASSERT(atomic_read(&mm->refs) > 0);
	atomic_inc(&mm->refs);
}

/*
 * Returns a copy of an address space for fork, refs 1, with the same areas. Private pages are in
 * both until one of them writes; shared pages stay shared. Threads of mm may run meanwhile; the
 * copy has what they wrote before the call. NULL: out of memory. Process context.
 */
struct mm *mm_copy(struct mm *mm);

/*
 * All of these take mm->lock, sleep, and return 0, an address or a negative errno as Linux's
 * calls do.
 */
long mm_map(struct mm *mm, u64 addr, u64 len, u32 prot, u32 flags, struct file *file, u64 offset);
/*
 * For ELF segments: like mm_map() with MAP_FIXED, but the file's content ends at addr + file_bytes.
 */
long mm_map_segment(struct mm *mm, u64 addr, u64 len, u32 prot, struct file *file, u64 offset,
		    u64 file_bytes);
long mm_unmap(struct mm *mm, u64 addr, u64 len);
long mm_protect(struct mm *mm, u64 addr, u64 len, u32 prot);
long mm_set_brk(struct mm *mm, u64 addr); /* returns the new or, on failure, the old break */
/* flags: Linux's MREMAP_*. Returns where the area is now. */
long mm_move(struct mm *mm, u64 addr, u64 len, u64 new_len, u32 flags, u64 new_addr);

/* The kinds of page faults, by the page that they make present. */
enum fault_kind {
	FAULT_NOTHING,	 /* nothing: another thread was faster, or only this CPU's TLB was old */
	FAULT_ANONYMOUS, /* a page of zeros */
	FAULT_FILE,	 /* a page of a file, or a copy of it */
	FAULT_COPY,	 /* a copy of a page that others have, too */
	NR_FAULT_KINDS,
};

/* Page faults by kind. */
struct fault_counts {
	u64 nr[NR_FAULT_KINDS];
};

static inline void fault_counts_add(struct fault_counts *to, const struct fault_counts *from)
{
	for (u32 i = 0; i < NR_FAULT_KINDS; i++)
		to->nr[i] += READ_ONCE(from->nr[i]);
}

static inline u64 fault_counts_sum(const struct fault_counts *counts)
{
	u64 sum = 0;

	for (u32 i = 0; i < NR_FAULT_KINDS; i++)
		sum += READ_ONCE(counts->nr[i]);
	return sum;
}

/*
 * Makes the page at addr present for an access (PROT_READ, PROT_WRITE or PROT_EXEC). Returns an
 * enum fault_kind; -EFAULT: no area there; -EACCES: the area forbids it; -ENXIO: beyond the end of
 * the file, or no room in its file system; -ENOMEM: the thread was killed, or there is no process
 * left to kill; -EINTR: killable, and the thread was killed while it waited for mm->lock. Waits for
 * memory, and kills a process if necessary (oom.c). Process context, interrupts on, no lock of an
 * address space held.
 */
int mm_fault(struct mm *mm, u64 addr, u32 access, bool killable);

/*
 * oom.c: waits for memory, and kills a process if nothing else helps. Returns false if the caller
 * should give up: it was killed itself, or there is no process to kill. Process context, no
 * mm->lock held.
 */
bool oom_wait(void);

/*
 * Called before user mode, interrupts on, if task->memory_short: waits until memory is not scarce.
 */
void oom_wait_before_user(void);

/*
 * Removes the pages of a truncated file from all mappings, from position (page aligned) on,
 * including private copies, so that accesses fail with -ENXIO. Process context, sleeps.
 */
void mm_cut_file(const struct inode *inode, u64 position);
/*
 * Returns true if there is a writable shared mapping of the file. If file_is_write_sealed() was
 * true before, there will be no new one. Process context, sleeps.
 */
bool mm_may_write_file(const struct inode *inode);

/* For /proc/<pid>/maps: a copy of an area. */
struct mm_area_info {
	u64 start, end;
	u32 prot, flags;
	struct file *file; /* with a reference, or NULL */
	u64 file_offset;
	bool anonymous_shared; /* the file has no name */
};

/*
 * Copies up to nr areas that end after addr, in order. Returns their number. To continue, call it
 * with the end of the last area. Sleeps.
 */
unsigned int mm_get_areas(struct mm *mm, u64 addr, struct mm_area_info *areas, unsigned int nr);
void mm_put_areas(struct mm_area_info *areas, unsigned int nr);

/*
 * Copies the pages by kind at max_pages. Exact unless threads of mm map or unmap pages meanwhile.
 * Any context.
 */
void mm_get_peak(const struct mm *mm, u64 nr[NR_MM_KINDS]);

/*
 * Copies the numbers of call chains (pte_chain()) of up to max pages from *addr on, and moves *addr
 * behind them; at the end, to TASK_SIZE or beyond. Looks at a bounded part of the page table, so
 * there may be none. Exact unless pages are mapped or unmapped meanwhile. The caller keeps mm. Any
 * context.
 */
u32 mm_read_chains(const struct mm *mm, u64 *addr, u16 *chains, u32 max);

/* Changes the number of threads. Any context but NMI. */
void mm_add_threads(struct mm *mm, int nr);

/*
 * The memory of an area, in bytes. A page is shared when other address spaces have it, too. It is
 * clean if it is a file's own page and cannot be written to here, and anonymous if it is not a
 * file's page. The proportional size is a page's bytes divided by the number of address spaces that
 * have it, shifted left by MM_USAGE_SHIFT.
 */
#define MM_USAGE_SHIFT 12
struct mm_usage {
	u64 shared_clean, shared_dirty, private_clean, private_dirty;
	u64 anonymous;
	u64 proportional, proportional_dirty;
};

/*
 * Computes the usage of an area. If it has changed since mm_get_areas(), uses what is there now.
 * Sleeps.
 */
void mm_get_usage(struct mm *mm, const struct mm_area_info *area, struct mm_usage *usage);

/*
 * Reads memory of any address space, as far as it is readable. Returns the bytes read, or -EFAULT
 * if there are none. Process context, sleeps.
 */
ssize_t mm_access(struct mm *mm, u64 addr, void *buf, size_t n);

/*
 * The identity of a word of memory, for futexes: two addresses have the same key if they are the
 * same memory. For shared memory, the key is the file's content and the offset, else mm and addr.
 * If object is NULL, nothing can be read there. mm_key_of() sleeps.
 */
struct mm_key {
	const void *object;
	u64 offset;
};
struct mm_key mm_key_of(struct mm *mm, u64 addr);

/*
 * accessed.c: which pages are used, as os.h of the profiler of used memory describes. Process
 * context, sleep. mm_clear_accessed() and mm_page_use() are called between mm_begin_accessed(), if
 * it returns true, and mm_end_accessed(), which hold mm->lock for reading.
 */
unsigned int mm_get_ranges(struct mm *mm, struct profile_user_range *ranges, unsigned int max);
u64 mm_count_pages(struct mm *mm, u64 start, u64 end);
unsigned int mm_copy_physical(struct mm *mm, u64 *addr, u64 end, u64 *pages, unsigned int max);
bool mm_begin_accessed(struct mm *mm);
void mm_end_accessed(struct mm *mm);
bool mm_clear_accessed(struct mm *mm, u64 *addr, u64 end, bool *flush);
enum profile_page_use mm_page_use(struct mm *mm, u64 addr);
unsigned int mm_flush_accessed(struct mm *mm);

/*
 * Finds the first range of RAM that ends after *start, and its node: the firmware's number, or ~0
 * if it has none (ram.c). Returns false if there is none. Any context.
 */
bool ram_next(phys_addr_t *start, phys_addr_t *end, u32 *node);

/*
 * Loads mm's page table on this CPU (NULL: the kernel's own). Called by the scheduler, interrupts
 * off.
 */
void mm_switch(struct mm *prev, struct mm *next);

/*
 * Page faults by user or by checked copies arrive here from the trap; defined in
 * kernel/mm/fault.c.
 */
struct pt_regs;
void mm_init(void);

#endif
