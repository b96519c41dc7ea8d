/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The decisions of ksm_dirty, as functions of what they are told and of nothing
 * else: verdict_kunit.c calls them without a page table in sight.
 */
#ifndef _KSM_DIRTY_VERDICT_H
#define _KSM_DIRTY_VERDICT_H

#include <linux/find.h>
#include <linux/ksm_scan.h>
#include <linux/math.h>
#include <linux/mm.h>
#include <linux/mmu_dirty.h>

/*
 * What harvesting costs, in pages of pages_to_scan.  ksmd's scan of a volatile
 * page (checksum, page reference, rmap_item) takes as long as harvesting about
 * this many page table entries, or one huge page and more; Documentation/ has
 * the measurement.
 */
#define KSM_DIRTY_ENTRIES_PER_PAGE	64

/*
 * How many pages' worth of harvesting ksmd does at most before it lets go of
 * mmap_lock: well below a millisecond, where a page's scan takes 1 to 2 us.
 */
#define KSM_DIRTY_HOLD_PAGES		256

/**
 * struct ksm_dirty_window - what the harvest of one page table page found
 * @range: the addresses, never beyond one pmd entry; their dirty and unknown
 *	bits
 * @present: a bit per page: mapped, anonymous, for ksmd to look at
 */
struct ksm_dirty_window {
	struct mmu_dirty_range range;
	DECLARE_BITMAP(present, MMU_DIRTY_MAX_PAGES);
};

/**
 * ksm_dirty_vma_eligible() - may the dirty bits of a vma be looked at?
 * @vm_flags: the flags of the vma, one that KSM finds mergeable
 *
 * In a shadow stack the dirty bit is what makes it one.
 */
static inline bool ksm_dirty_vma_eligible(vm_flags_t vm_flags)
{
	return !(vm_flags & VM_SHADOW_STACK);
}

/**
 * ksm_dirty_cost() - what a harvest costs against pages_to_scan
 * @entries: page table entries read; 1 for a huge page
 *
 * Return: pages, at least 1.
 */
static inline unsigned int ksm_dirty_cost(unsigned int entries)
{
	return DIV_ROUND_UP(entries, KSM_DIRTY_ENTRIES_PER_PAGE);
}

/**
 * ksm_dirty_window_covers() - was the page at an address harvested?
 * @window: the last harvest
 * @addr: the address
 */
static inline bool ksm_dirty_window_covers(const struct ksm_dirty_window *window,
					   unsigned long addr)
{
	return addr >= window->range.start && addr < window->range.end;
}

/**
 * ksm_dirty_window_next() - find the next page of a window that is worth a look
 * @window: the harvest
 * @address: an address that the window covers; moved to the page found, else
 *	to the end of the window
 *
 * DIRTY pages, and what is not there, are passed over.
 *
 * Return: the verdict on the page found, KSM_SCAN_CLEAN or KSM_SCAN_UNKNOWN;
 * KSM_SCAN_NONE where there is none.
 */
static inline enum ksm_scan_verdict
ksm_dirty_window_next(const struct ksm_dirty_window *window,
		      unsigned long *address)
{
	const struct mmu_dirty_range *range = &window->range;
	unsigned long size = (range->end - range->start) >> PAGE_SHIFT;
	unsigned long i = (*address - range->start) >> PAGE_SHIFT;

	i = find_next_andnot_bit(window->present, range->dirty, size, i);
	*address = range->start + (min(i, size) << PAGE_SHIFT);
	if (i >= size)
		return KSM_SCAN_NONE;
	return test_bit(i, range->unknown) ? KSM_SCAN_UNKNOWN : KSM_SCAN_CLEAN;
}

#endif /* _KSM_DIRTY_VERDICT_H */
