// SPDX-License-Identifier: BSD-2-Clause
/*
 * Handles page faults of user memory. The first access to a page makes it. A page with other users
 * is *borrowed*: mapped read-only, and copied by the first write (copy on write). Borrowed are the
 * pages of a private file mapping until they are written to and, after a fork, all private pages.
 * Pages of a shared area belong to the file and are written in place. All other entries have the
 * access rights of their area.
 */

#include <lego/mm.h>

#include <asm/pgtable.h>
#include <asm/tlb.h>
#include <lego/assert.h>
#include <lego/errno.h>
#include <lego/fs.h>
#include <lego/page.h>
#include <lego/sched.h>
#include <lego/string.h>

#include "internal.h"

/*
 * Returns true if the area allows the access. Reads are allowed with any right, because x86 has no
 * page that cannot be read but otherwise used.
 */
static bool access_allowed(const struct vma *vma, u32 access)
{
	return vma->prot & (access == PROT_READ ? PROT_MASK : access);
}

/* Returns how many bytes of the file the area maps in this page. */
static u64 file_bytes_in_page(const struct vma *vma, u64 addr)
{
	u64 before = addr - vma->start;

	if (!vma->file || before >= vma->file_bytes)
		return 0;
	return min(vma->file_bytes - before, PAGE_SIZE);
}

/*
 * Allocates a user page, but not from the reserve, so that the kernel still works when memory is
 * out.
 */
static struct page *user_page_alloc(unsigned int flags)
{
	return page_is_scarce() ? NULL : page_alloc_user(flags);
}

/*
 * Returns a new page for addr: the file's page (shared or *borrowed), a copy of it, or zeros.
 * Returns NULL and sets *error if that fails. bytes: how many of the file are in the page.
 */
static struct page *make_page(const struct vma *vma, u64 addr, u64 bytes, u32 access,
			      bool *borrowed, int *error)
{
	u64 position = vma->file_offset + (addr - vma->start);
	struct page *page, *source = NULL;

	*error = -ENOMEM;
	*borrowed = false;
	if (bytes) {
		source = file_get_page(vma->file, position >> PAGE_SHIFT);
		if (IS_ERR(source)) {
			/* For a mapping, a full file system is like the end of the file. */
			*error = PTR_ERR(source) == -ENOMEM ? -ENOMEM : -ENXIO;
			return NULL;
		}
		if (vma->flags & MAP_SHARED)
			return source;
		if (bytes == PAGE_SIZE && access != PROT_WRITE) {
			*borrowed = true;
			return source;
		}
	}
	page = user_page_alloc(bytes == PAGE_SIZE ? 0 : PAGE_ZERO);
	if (source) {
		if (page)
			memcpy(page_address(page), page_address(source), bytes);
		page_put(source);
	}
	return page;
}

/*
 * Copies a borrowed page at the first write. No thread may write to the copy while another CPU can
 * still read the old page through its TLB. So the entry first loses all access, until all TLBs are
 * flushed. Other threads that fault on the entry meanwhile make a copy, too; the first one to
 * finish installs its copy. If pages were discarded meanwhile, the entry may be one that others can
 * read again, so the access faults once more. The last user of a page keeps it without a copy,
 * because no one else can reach it.
 */
static int copy_borrowed(struct mm *mm, const struct vma *vma, u64 addr, u64 *pte)
{
	struct page *old = NULL, *copy;
	u64 nr_discards;

	ASSERT_HELD(&mm->lock);
	spin_lock(&mm->pt_lock);
	if (!(*pte & PTE_BORROWED)) {
		spin_unlock(&mm->pt_lock);
		return FAULT_NOTHING;
	}
	old = pte_page(*pte);
	if (atomic_read(&old->refs) == 1) {
		/*
		 * Other CPUs whose TLB has the entry read-only fault once more, and find nothing to
		 * do.
		 */
		WRITE_ONCE(*pte, (*pte & PTE_PAGE_MASK) | pte_user_bits(vma->prot, false));
		spin_unlock(&mm->pt_lock);
		invlpg(addr);
		return FAULT_COPY;
	}
	page_get(old);
	nr_discards = mm->nr_discards;
	spin_unlock(&mm->pt_lock);

	copy = user_page_alloc(0);
	if (!copy) {
		page_put(old);
		return -ENOMEM;
	}
	memcpy(page_address(copy), page_address(old), PAGE_SIZE);
	spin_lock(&mm->pt_lock);
	if (*pte & PTE_BORROWED && mm->nr_discards == nr_discards)
		WRITE_ONCE(*pte, (*pte & PTE_PAGE_MASK) | pte_user_bits(0, true));
	spin_unlock(&mm->pt_lock);
	flush_tlb_mm_range(mm, addr, addr + PAGE_SIZE);
	spin_lock(&mm->pt_lock);
	if (*pte & PTE_BORROWED && mm->nr_discards == nr_discards) {
		u64 entry = page_to_phys(copy) | pte_user_bits(vma->prot, false);

		profile_memory_mapped(vma_kind(vma), true, &entry);
		WRITE_ONCE(*pte, entry);
		copy = old; /* drop the reference that the entry had */
	}
	spin_unlock(&mm->pt_lock);
	page_put(copy);
	page_put(old);
	return FAULT_COPY;
}

/* Maps a page that was made for addr. Returns false if another thread was faster. */
static __always_inline bool install(struct mm *mm, const struct vma *vma, u64 *pte,
				    struct page *page, bool borrowed)
{
	u64 entry = page_to_phys(page) | pte_user_bits(vma->prot, borrowed);

	ASSERT_HELD(&mm->pt_lock);
	DEBUG_ASSERT(atomic_read(&page->refs) > 0);
	if (pte_has_page(*pte))
		return false;
	profile_memory_mapped(vma_kind(vma), false, &entry);
	WRITE_ONCE(*pte, entry);
	mm->nr_pages++;
	mm->nr_of_kind[vma_kind(vma)]++;
	mm->max_pages = max(mm->max_pages, mm->nr_pages);
	return true;
}

/* Returns true if the access, which the area allows, has to copy the page of the entry. */
static bool must_copy(u64 entry, u32 access)
{
	return entry & PTE_BORROWED && (access == PROT_WRITE || !(entry & PTE_PRESENT));
}

static int fault_in(struct mm *mm, const struct vma *vma, u64 addr, u32 access)
{
	struct page *page;
	bool borrowed, installed;
	u64 *pte, entry, bytes;
	int error;

	ASSERT_HELD(&mm->lock);
	/* A table that is there stays until the address space ends. */
	pte = pgtable_find(mm->pgd, addr);
	if (unlikely(!pte)) {
		spin_lock(&mm->pt_lock);
		pte = pages_alloc_entry(mm, addr);
		spin_unlock(&mm->pt_lock);
	}
	if (!pte)
		return -ENOMEM;
	entry = READ_ONCE(*pte);
	if (must_copy(entry, access))
		return copy_borrowed(mm, vma, addr, pte);
	if (pte_has_page(entry))
		return FAULT_NOTHING;
	bytes = file_bytes_in_page(vma, addr);
	page = make_page(vma, addr, bytes, access, &borrowed, &error);
	if (!page)
		return error;
	spin_lock(&mm->pt_lock);
	installed = install(mm, vma, pte, page, borrowed);
	spin_unlock(&mm->pt_lock);
	if (!installed)
		page_put(page);
	return bytes ? FAULT_FILE : FAULT_ANONYMOUS;
}

/* Returns the private anonymous area that contains addr and allows the access, or NULL. */
static const struct vma *anonymous_area(const struct mm *mm, u64 addr, u32 access)
{
	const struct vma *vma;

	ASSERT_HELD(&mm->pt_lock);
	if (smp_load_acquire(&mm->faults_wait) || mm->gets_no_pages)
		return NULL;
	vma = vma_tree_find(&mm->areas, addr);
	return vma && vma->start <= addr && !vma->file && access_allowed(vma, access) ? vma : NULL;
}

/*
 * Maps a page of zeros while others hold mm->lock or wait for it. If areas have changed while the
 * page was made, looks for the area again: any one without a file will do. Returns the kind of the
 * fault, or -EAGAIN: only with the lock can the access be allowed or denied.
 */
static noinline int fault_anonymous(struct mm *mm, u64 addr, u32 access)
{
	u64 *pte = pgtable_find(mm->pgd, addr);
	const struct vma *vma;
	struct page *page;
	int ret = -EAGAIN;
	u64 nr_changes;

	if (pte && pte_has_page(READ_ONCE(*pte)))
		return -EAGAIN;
	spin_lock(&mm->pt_lock);
	vma = anonymous_area(mm, addr, access);
	nr_changes = mm->nr_changes;
	spin_unlock(&mm->pt_lock);
	page = vma ? user_page_alloc(PAGE_ZERO) : NULL;
	if (!page)
		return -EAGAIN;
	spin_lock(&mm->pt_lock);
	if (mm->nr_changes != nr_changes)
		vma = anonymous_area(mm, addr, access);
	if (!pte && vma)
		pte = pages_alloc_entry(mm, addr);
	if (pte && vma)
		ret = install(mm, vma, pte, page, false) ? FAULT_ANONYMOUS : FAULT_NOTHING;
	spin_unlock(&mm->pt_lock);
	if (ret != FAULT_ANONYMOUS)
		page_put(page);
	return ret;
}

/* Takes mm->lock for reading and returns -EAGAIN, or handles a fault without it. */
static int lock_or_fault(struct mm *mm, u64 addr, u32 access, bool killable)
{
	int ret;

	if (likely(rw_mutex_trylock_read(&mm->lock)))
		return -EAGAIN;
	ret = fault_anonymous(mm, addr, access);
	if (ret != -EAGAIN)
		return ret;
	if (!killable)
		rw_mutex_lock_read(&mm->lock);
	else if (rw_mutex_lock_read_killable(&mm->lock))
		return -EINTR;
	return -EAGAIN;
}

static int fault_once(struct mm *mm, u64 addr, u32 access, bool killable)
{
	u64 page_addr = ALIGN_DOWN(addr, PAGE_SIZE);
	int ret = lock_or_fault(mm, page_addr, access, killable);
	struct vma *vma;

	if (ret != -EAGAIN)
		return ret;
	ret = -EFAULT;
	vma = mm->gets_no_pages ? NULL : vma_find(mm, addr);
	if (vma && access_allowed(vma, access))
		ret = fault_in(mm, vma, page_addr, access);
	else if (vma)
		ret = -EACCES;
	rw_mutex_unlock_read(&mm->lock);
	return ret;
}

int mm_fault(struct mm *mm, u64 addr, u32 access, bool killable)
{
	int ret;

	might_sleep();
	ASSERT_NOT_HELD(&mm->lock);
	do {
		ret = fault_once(mm, addr, access, killable);
	} while (ret == -ENOMEM && oom_wait());
	return ret;
}
