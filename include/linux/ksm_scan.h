/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_KSM_SCAN_H
#define _LINUX_KSM_SCAN_H

#include <linux/mmu_dirty.h>
#include <linux/types.h>

struct mm_struct;
struct vm_area_struct;

/*
 * How many pages' worth of work, by pages_to_scan, ksmd does at most before it
 * lets go of mmap_lock where it scans no page: well below a millisecond, where
 * a page's scan takes 1 to 2 us.
 */
#define KSM_SCAN_HOLD_PAGES		256U

/*
 * Passing over this many settled pages, or freeing the items of as many pages,
 * takes no longer than scanning a volatile page does (checksum, page reference,
 * rmap_item); Documentation/hooks.rst has the measurement.
 */
#define KSM_SCAN_ITEMS_PER_PAGE		32

/* How many items ksmd frees at most before it lets go of mmap_lock: likewise */
#define KSM_SCAN_HOLD_ITEMS		2048

/*
 * How long ksmd sleeps, in microseconds, where it has let go of an mmap_lock that
 * somebody waits for: some times what it takes to wake up.
 */
#define KSM_SCAN_YIELD_US		50

/**
 * enum ksm_scan_verdict - what ksmd is to do with the cursor
 * @KSM_SCAN_UNKNOWN: nothing is known from the address on: the stock path,
 *	checksum first
 * @KSM_SCAN_WINDOW: the window starts at the address and has pages to look at
 * @KSM_SCAN_NONE: nothing to look at up to the end of the vma
 * @KSM_SCAN_AGAIN: let go of mmap_lock, then ask again from the address on
 */
enum ksm_scan_verdict {
	KSM_SCAN_UNKNOWN,
	KSM_SCAN_WINDOW,
	KSM_SCAN_NONE,
	KSM_SCAN_AGAIN,
};

/**
 * struct ksm_scan_window - what is known of a run of pages
 * @pass: number of the pass; set by ksmd
 * @start: first address
 * @end: first address behind, at most MMU_DIRTY_MAX_PAGES pages from @start;
 *	ksmd empties the window (@end = @start) at the end of an mm
 * @recheck: search settled pages again as well
 * @look: a bit per page from @start on: mapped, and worth a look
 * @clean: of those in @look: every MMU vouches that the page was not written
 *	since the last pass: to the trees, without waiting for two equal checksums
 * @merged: of those in @look, none of @clean: likewise, and a KSM page is mapped
 * @stable_node: of each page in @merged: what its KSM page belongs to, that is
 *	its mapping without the flags; only ever compared
 *
 * Pages in @look that are in neither @clean nor @merged take the stock path.
 * Pages not in @look lose their rmap_item, and cost nothing else.
 */
struct ksm_scan_window {
	unsigned long pass;
	unsigned long start;
	unsigned long end;
	bool recheck;
	DECLARE_BITMAP(look, MMU_DIRTY_MAX_PAGES);
	DECLARE_BITMAP(clean, MMU_DIRTY_MAX_PAGES);
	DECLARE_BITMAP(merged, MMU_DIRTY_MAX_PAGES);
	void *stable_node[MMU_DIRTY_MAX_PAGES];
};

/**
 * struct ksm_scan_ops - steers ksmd past pages that need no look
 * @window: where @next leaves what it found.  ksmd moves its cursor over it
 *	without asking again.
 * @next: called where the cursor is in no window.  Moves *@address forward, to
 *	vma->vm_end at most, over what is not worth looking at, and says how to
 *	treat what it points to then.  Takes from *@budget, never below 0, what
 *	that cost, in pages of pages_to_scan; where nothing is left, or
 *	mmap_lock is contended, it should return (KSM_SCAN_AGAIN).  Called with
 *	ksm_thread_mutex held and mmap_lock held for read; may sleep.
 * @merged: the page at an address was merged.  Called with ksm_thread_mutex
 *	held, possibly a folio lock; must not sleep.
 *
 * Where a page's writes cannot be told, or the page is not @next's to judge,
 * the answer is KSM_SCAN_UNKNOWN, or a bit in none but @look.  A wrong answer
 * costs time, or delays a merge; it cannot merge what differs, since that takes
 * a write-protected page and a comparison.
 */
struct ksm_scan_ops {
	struct ksm_scan_window *window;
	enum ksm_scan_verdict (*next)(struct vm_area_struct *vma,
				      unsigned long *address,
				      unsigned int *budget);
	void (*merged)(struct mm_struct *mm, unsigned long address);
};

/**
 * struct ksm_scan_stats - what became of pages that were vouched for
 * @settled: pages in the settled tree now
 * @passed_over: settled and merged pages that were not looked at
 * @searches: searches of the settled tree
 * @pruned: pages that a search found gone, and removed
 * @stale: pages that had changed when they were searched again, and no MMU knew
 *
 * All but @settled only grow.  Written under ksm_thread_mutex, read at any time.
 */
struct ksm_scan_stats {
	unsigned long settled;
	unsigned long passed_over;
	unsigned long searches;
	unsigned long pruned;
	unsigned long stale;
};

extern struct ksm_scan_stats ksm_scan_stats;

int ksm_register_scan_ops(const struct ksm_scan_ops *ops);
void ksm_unregister_scan_ops(const struct ksm_scan_ops *ops);
bool ksm_scan_defer_flush(struct mm_struct *mm);

#endif /* _LINUX_KSM_SCAN_H */
