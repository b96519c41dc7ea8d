// SPDX-License-Identifier: GPL-2.0
/*
 * Harvest: test and clear the dirty bits of one window, the addresses that one
 * page table page maps (2 MiB), in every MMU that maps them.
 *
 * The host's page table is read under one hold of its lock, and all secondary
 * MMUs are asked with one call.  ksmd's cursor then moves over the window by what
 * was found, without a look at the page tables again, nor a call from here.
 * Windows that hold nothing but written pages are passed in one walk; a written
 * huge page is one entry of it.
 *
 * A set dirty bit means that the page was written since the last harvest, that
 * is, since the last pass.  Clearing it loses nothing: the folio is marked
 * dirty first, as unmapping it would, so that reclaim does not take it for a
 * copy of what is in swap, nor for lazily freed.  No TLB is flushed here; until
 * ksmd does that (ksm_scan_defer_flush()), a CPU may write through an entry that
 * is cached as dirty, and the page looks clean in the next pass.  That costs a
 * search; merging decides by write protection and comparison, and reclaim flushes
 * where such a flush is pending.
 *
 * Locking: all state here belongs to ksmd, under ksm_thread_mutex.  mmap_lock is
 * held for read; the window's verdicts outlive it, as hints.
 */
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/pagewalk.h>
#include <linux/sched.h>

#include "ksm_dirty.h"
#include "pte.h"
#include "trace.h"
#include "verdict.h"

/* The last window harvested, and what it means for ksmd */
static struct ksm_dirty_harvest harvest;
struct ksm_scan_window ksm_dirty_window;

/*
 * In how many passes each settled page is searched again once: see Documentation/hooks.rst
 * for what that costs.
 */
unsigned int ksm_dirty_recheck_passes = 1024;

/*
 * struct harvest_walk - one walk over windows
 * @next: where the walk stopped
 * @spent: what it cost so far, in pages of pages_to_scan
 * @limit: what it may cost
 */
struct harvest_walk {
	unsigned long next;
	unsigned int spent;
	unsigned int limit;
};

/* Why a walk stopped before the end of the vma */
enum {
	HARVEST_FOUND = 1,	/* the window has a page to look at */
	HARVEST_LIMIT = 2,	/* the limit is reached, or mmap_lock is wanted */
};

static void clear_notice(struct mm_struct *mm)
{
	if (ksm_scan_defer_flush(mm))
		ksm_dirty_stats.flushes++;
}

/* The one thing that must happen before a set dirty bit is cleared. */
static void folio_take_dirty(struct folio *folio)
{
	if (unlikely(!folio_test_dirty(folio)))
		folio_mark_dirty(folio);
}

static void *folio_stable_node(struct folio *folio)
{
	return (void *)((unsigned long)folio->mapping & ~PAGE_MAPPING_FLAGS);
}

static bool folio_eligible(struct folio *folio)
{
	return folio_test_anon(folio) && !folio_is_zone_device(folio);
}

static void harvest_init(struct mm_struct *mm, unsigned long start,
			 unsigned long end)
{
	memset(&harvest, 0, sizeof(harvest));
	harvest.range.mm = mm;
	harvest.range.start = start;
	harvest.range.end = end;
}

/*
 * Returns false where the entry is not that of a huge page: it may have been
 * split, or a huge page may be on its way. *all_dirty tells that it was written,
 * and that nobody else is to be asked: then there are no bitmaps.
 */
static bool harvest_huge(struct vm_area_struct *vma, pmd_t *pmdp,
			 unsigned long start, unsigned long end, bool *all_dirty)
{
	struct mm_struct *mm = vma->vm_mm;
	unsigned int nr = (end - start) >> PAGE_SHIFT;
	bool dirty = false, unknown = false, present = false;
	struct folio *folio;
	spinlock_t *ptl;	/* the lock of the page table */
	pmd_t pmd;

	ptl = pmd_lock(mm, pmdp);
	pmd = pmdp_get(pmdp);
	if (!pmd_present(pmd) || !pmd_leaf(pmd)) {
		spin_unlock(ptl);
		return false;
	}
	if (ksm_dirty_pmd_eligible(pmd) && !ksm_dirty_pmd_shstk(pmd)) {
		folio = page_folio(pmd_page(pmd));
		present = folio_eligible(folio);
	}
	if (present) {
		dirty = pmd_dirty(pmd);
		if (dirty) {
			clear_notice(mm);
			folio_take_dirty(folio);
			ksm_dirty_pmd_mkclean(pmdp, pmd);
		} else {
			unknown = folio_maybe_dma_pinned(folio);
		}
	}
	spin_unlock(ptl);

	*all_dirty = dirty && !mm_has_notifiers(mm);
	if (*all_dirty)
		return true;

	harvest_init(mm, start, end);
	if (present)
		bitmap_fill(harvest.present, nr);
	if (dirty)
		bitmap_fill(harvest.range.dirty, nr);
	if (unknown)
		bitmap_fill(harvest.range.unknown, nr);
	return true;
}

static void harvest_ptes(struct vm_area_struct *vma, pmd_t *pmdp,
			 unsigned long start, unsigned long end)
{
	unsigned int i, left = (end - start) >> PAGE_SHIFT;
	struct mm_struct *mm = vma->vm_mm;
	bool noticed = false;
	pte_t *first, *ptep;
	spinlock_t *ptl;	/* the lock of the page table */

	harvest_init(mm, start, end);
	first = pte_offset_map_lock(mm, pmdp, start, &ptl);
	if (!first)
		return;
	/* For sparse, which does not see what that locks if it succeeds */
	__acquire(ptl);

	/* A word of the bitmaps at a time: this loop is what a pass costs */
	ptep = first;
	for (i = 0; left; i++) {
		unsigned int nr = min(left, BITS_PER_LONG);
		unsigned long present = 0, dirty = 0, unknown = 0, ksm = 0;
		unsigned long bit = 1;

		for (left -= nr; nr; nr--, bit <<= 1, ptep++) {
			pte_t pte = ptep_get(ptep);
			struct folio *folio;

			if (!ksm_dirty_pte_eligible(pte))
				continue;
			folio = page_folio(pte_page(pte));
			if (!folio_eligible(folio))
				continue;

			if (pte_dirty(pte)) {
				if (unlikely(ksm_dirty_pte_shstk(pte)))
					continue;
				if (unlikely(!noticed))
					clear_notice(mm);
				noticed = true;
				folio_take_dirty(folio);
				ksm_dirty_pte_mkclean(ptep, pte);
				dirty |= bit;
			} else if (unlikely(folio_maybe_dma_pinned(folio))) {
				unknown |= bit;
			} else if (folio_test_ksm(folio)) {
				ksm |= bit;
				ksm_dirty_window.stable_node[ptep - first] =
					folio_stable_node(folio);
			}
			present |= bit;
		}
		harvest.present[i] = present;
		harvest.range.dirty[i] = dirty;
		harvest.range.unknown[i] = unknown;
		harvest.ksm[i] = ksm;
	}
	pte_unmap_unlock(first, ptl);
}

static int harvest_pmd_entry(pmd_t *pmdp, unsigned long addr, unsigned long end,
			     struct mm_walk *walk)
{
	struct ksm_scan_window *window = &ksm_dirty_window;
	struct harvest_walk *hwalk = walk->private;
	struct mmu_dirty_range *range = &harvest.range;
	unsigned int nr = (end - addr) >> PAGE_SHIFT;
	unsigned int dirty, look = 0, unknown = 0;
	pmd_t pmd = pmdp_get_lockless(pmdp);
	bool all_dirty = false, huge, probe, found;

	cond_resched();
	hwalk->next = end;
	if (!pmd_present(pmd))
		return 0;

	huge = pmd_leaf(pmd) &&
	       harvest_huge(walk->vma, pmdp, addr, end, &all_dirty);
	if (!huge)
		harvest_ptes(walk->vma, pmdp, addr, end);
	ksm_dirty_stats.windows++;
	hwalk->spent += ksm_dirty_cost(huge ? 1 : nr);

	if (all_dirty) {
		probe = ksm_dirty_probe(walk->mm, addr, window->pass);
		if (!probe) {
			ksm_dirty_stats.pages_dirty += nr;
			trace_ksm_dirty_harvest(walk->mm, addr, nr, huge, nr, nr, 0);
			goto next;
		}
		harvest_init(walk->mm, addr, end);
		bitmap_fill(harvest.present, nr);
		bitmap_fill(range->dirty, nr);
		dirty = nr;
	} else {
		mmu_notifier_test_clear_dirty(range);
		/*
		 * A secondary MMU may know of pages that are not here for us to
		 * judge; and of writes to KSM pages from before they were merged.
		 */
		bitmap_and(range->dirty, range->dirty, harvest.present, nr);
		bitmap_andnot(range->dirty, range->dirty, harvest.ksm, nr);
		dirty = bitmap_weight(range->dirty, nr);
		probe = dirty && ksm_dirty_probe(walk->mm, addr, window->pass);
	}
	if (probe) {
		/* As if nothing were known of those that were written */
		bitmap_or(range->unknown, range->unknown, range->dirty, nr);
		bitmap_zero(range->dirty, nr);
		ksm_dirty_stats.pages_probed += dirty;
		dirty = 0;
	}
	ksm_dirty_stats.pages_dirty += dirty;
	found = ksm_dirty_judge(&harvest, window);
	if (found) {
		look = bitmap_weight(window->look, nr);
		unknown = bitmap_weight_and(window->look, range->unknown, nr);
	}
	trace_ksm_dirty_harvest(walk->mm, addr, nr, huge, dirty + look, dirty,
				unknown);
	if (found) {
		ksm_dirty_stats.pages_clean += look - unknown;
		ksm_dirty_stats.pages_unknown += unknown;
		window->start = addr;
		window->end = end;
		window->recheck = ksm_dirty_due(addr >> PMD_SHIFT, window->pass,
						READ_ONCE(ksm_dirty_recheck_passes));
		return HARVEST_FOUND;
	}
next:
	if (hwalk->spent < hwalk->limit && !mmap_lock_is_contended(walk->mm))
		return 0;
	return HARVEST_LIMIT;
}

static const struct mm_walk_ops harvest_ops = {
	.pmd_entry = harvest_pmd_entry,
	.walk_lock = PGWALK_RDLOCK,
};

/**
 * ksm_dirty_harvest() - move ksmd's cursor to the next page worth a look
 * @vma: the vma the cursor is in
 * @address: the cursor
 * @budget: pages of pages_to_scan left
 *
 * struct ksm_scan_ops::next: see there for the arguments, the result and the
 * context.
 */
enum ksm_scan_verdict ksm_dirty_harvest(struct vm_area_struct *vma,
					unsigned long *address,
					unsigned int *budget)
{
	struct harvest_walk hwalk = {
		.limit = *budget,
	};
	int stopped;

	if (!ksm_dirty_vma_eligible(vma->vm_flags))
		return KSM_SCAN_UNKNOWN;

	stopped = walk_page_range_vma(vma, *address, vma->vm_end,
				      &harvest_ops, &hwalk);
	*budget -= min(*budget, hwalk.spent);
	switch (stopped) {
	case HARVEST_FOUND:
		*address = ksm_dirty_window.start;
		return KSM_SCAN_WINDOW;
	case HARVEST_LIMIT:
		*address = hwalk.next;
		return KSM_SCAN_AGAIN;
	default:
		*address = vma->vm_end;
		return KSM_SCAN_NONE;
	}
}
