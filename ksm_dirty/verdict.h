/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The decisions of ksm_dirty, as functions of what they are told and of nothing
 * else: verdict_kunit.c calls them without a page table in sight.
 */
#ifndef _KSM_DIRTY_VERDICT_H
#define _KSM_DIRTY_VERDICT_H

#include <linux/bitmap.h>
#include <linux/ksm_scan.h>
#include <linux/log2.h>
#include <linux/math.h>
#include <linux/mm.h>
#include <linux/mmu_dirty.h>

/*
 * What harvesting costs, in pages of pages_to_scan.  ksmd's scan of a volatile
 * page (checksum, page reference, rmap_item) takes as long as harvesting about
 * this many page table entries, or one huge page and more; Documentation/hooks.rst has
 * the measurement.
 */
#define KSM_DIRTY_ENTRIES_PER_PAGE	64

/**
 * struct ksm_dirty_harvest - what the MMUs say about one page table page
 * @range: the addresses, never beyond one pmd entry; their dirty and unknown
 *	bits
 * @present: a bit per page: mapped, anonymous, for ksmd to look at
 * @ksm: of those: a KSM page
 */
struct ksm_dirty_harvest {
	struct mmu_dirty_range range;
	DECLARE_BITMAP(present, MMU_DIRTY_MAX_PAGES);
	DECLARE_BITMAP(ksm, MMU_DIRTY_MAX_PAGES);
};

/**
 * ksm_dirty_vma_eligible() - may the dirty bits of a vma be looked at?
 * @vm_flags: the flags of the vma, one that KSM finds mergeable
 *
 * In a shadow stack the dirty bit is what makes it one. Secondary MMUs are asked
 * about ordinary pages only, which is all that KSM finds mergeable.
 */
static inline bool ksm_dirty_vma_eligible(vm_flags_t vm_flags)
{
	return !(vm_flags & (VM_SHADOW_STACK | VM_PFNMAP | VM_MIXEDMAP));
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
 * ksm_dirty_judge() - what ksmd is to do with the pages of a harvest
 * @harvest: the harvest
 * @window: where the bitmaps go
 *
 * DIRTY pages, and what is not there, are not worth a look.
 *
 * Return: whether any page is.
 */
static inline bool ksm_dirty_judge(const struct ksm_dirty_harvest *harvest,
				   struct ksm_scan_window *window)
{
	const struct mmu_dirty_range *range = &harvest->range;
	const unsigned int nr = MMU_DIRTY_MAX_PAGES;

	if (!bitmap_andnot(window->look, harvest->present, range->dirty, nr))
		return false;
	bitmap_andnot(window->clean, window->look, range->unknown, nr);
	bitmap_and(window->merged, window->clean, harvest->ksm, nr);
	bitmap_andnot(window->clean, window->clean, harvest->ksm, nr);
	return true;
}

/**
 * ksm_dirty_due() - is it the turn of a page, or of a window?
 * @number: its number
 * @pass: the number of the pass
 * @interval: in how many passes each gets its turn once; 0: never
 */
static inline bool ksm_dirty_due(unsigned long number, unsigned long pass,
				 unsigned int interval)
{
	return interval && number % interval == pass % interval;
}

/* Stages of probing a window that has dirty pages in every pass */
enum {
	KSM_DIRTY_PROBE_SEEN,	/* dirty for the first time */
	KSM_DIRTY_PROBE_FIRST,	/* now its checksums are taken */
	KSM_DIRTY_PROBE_SECOND,	/* now they are compared */
	KSM_DIRTY_PROBE_BACKOFF,	/* and from here on, ever more rarely */
};

/**
 * ksm_dirty_probe_due() - are the dirty pages of a window to be looked at?
 * @stage: how far probing it has come; moved on
 * @pass: the number of the pass
 * @interval: the longest time between two probes, in passes; 0: no probes
 *
 * A probe takes two passes in a row, as a checksum has to be compared with an
 * earlier one.  The first follows at once where there are dirty pages again.
 * Those behind it are 4, 16, 64, ... passes apart, up to @interval rounded down
 * to a power of 2, and start in passes that are multiples of that: pages that
 * are probed in different passes would not meet.
 */
static inline bool ksm_dirty_probe_due(unsigned int *stage, unsigned long pass,
				       unsigned int interval)
{
	unsigned int order, max_order;
	unsigned long phase;

	if (interval < 2)
		return false;
	if (*stage < KSM_DIRTY_PROBE_BACKOFF)
		return (*stage)++ != KSM_DIRTY_PROBE_SEEN;

	max_order = ilog2(interval);
	order = 2 * (*stage - KSM_DIRTY_PROBE_BACKOFF + 1);
	phase = pass & ((1UL << min(order, max_order)) - 1);
	if (phase == 1 && order < max_order)
		(*stage)++;
	return phase < 2;
}

#endif /* _KSM_DIRTY_VERDICT_H */
