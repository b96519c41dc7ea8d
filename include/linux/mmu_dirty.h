/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_MMU_DIRTY_H
#define _LINUX_MMU_DIRTY_H

#include <linux/bitmap.h>
#include <linux/minmax.h>
#include <linux/mmu_notifier.h>

/* What one page table of 4 KiB pages maps: a caller harvests it in one go. */
#define MMU_DIRTY_MAX_PAGES	512

/**
 * struct mmu_dirty_range - what the MMUs know about writes to a range of pages
 * @mm: the address space
 * @start: first address, page aligned
 * @end: first address behind the range, page aligned, at most
 *	MMU_DIRTY_MAX_PAGES pages from @start
 * @dirty: a bit per page from @start on: written since this was last asked
 * @unknown: likewise: some MMU that maps the page cannot tell
 *
 * Several MMUs may map the same pages.  Each of them only ever sets bits, so
 * the order in which they are asked does not matter.  The verdict on a page is
 * DIRTY where @dirty is set, else UNKNOWN where @unknown is set, else CLEAN: a
 * write that was seen stays seen whoever else is blind, and CLEAN takes the
 * word of every one.  The caller zeroes both bitmaps.
 */
struct mmu_dirty_range {
	struct mm_struct *mm;
	unsigned long start;
	unsigned long end;
	DECLARE_BITMAP(dirty, MMU_DIRTY_MAX_PAGES);
	DECLARE_BITMAP(unknown, MMU_DIRTY_MAX_PAGES);
};

/**
 * mmu_dirty_set() - set the bits of a bitmap that cover a range of addresses
 * @range: the range that the bitmap belongs to
 * @bitmap: @range->dirty, or @range->unknown
 * @start: first address; may lie before the range
 * @end: first address behind; may lie behind the range
 *
 * What lies outside of @range is ignored, so that a subscriber can hand in a
 * huge mapping, or a whole memory slot, as it is.  Any context.
 */
static inline void mmu_dirty_set(const struct mmu_dirty_range *range,
				 unsigned long *bitmap, unsigned long start,
				 unsigned long end)
{
	start = max(start, range->start);
	end = min(end, range->end);
	if (start < end)
		bitmap_set(bitmap, (start - range->start) >> PAGE_SHIFT,
			   (end - start) >> PAGE_SHIFT);
}

#ifdef CONFIG_MMU_NOTIFIER
void __mmu_notifier_test_clear_dirty(struct mmu_dirty_range *range);

/**
 * mmu_notifier_test_clear_dirty() - collect the writes of all secondary MMUs
 * @range: what to ask about; the bits of pages written, or unknown, are set
 *
 * See __mmu_notifier_test_clear_dirty().  Costs one load where @range->mm has
 * no subscriber.
 *
 * Context: mmap_lock held, for read at least.  The range is part of one vma,
 * without VM_PFNMAP and VM_MIXEDMAP.  Does not sleep.
 */
static inline void mmu_notifier_test_clear_dirty(struct mmu_dirty_range *range)
{
	if (mm_has_notifiers(range->mm))
		__mmu_notifier_test_clear_dirty(range);
}
#else
static inline void mmu_notifier_test_clear_dirty(struct mmu_dirty_range *range)
{
}
#endif

#endif /* _LINUX_MMU_DIRTY_H */
