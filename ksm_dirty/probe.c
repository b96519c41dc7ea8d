// SPDX-License-Identifier: GPL-2.0
/*
 * Probing: a dirty bit says that a page was written, or one of the 512 of a huge
 * page; not that it is another page now.  Passed over for ever, the quiet pages
 * beside a hot one in a huge page would never merge, nor would those that are
 * written with what they hold already; stock KSM merges both.  So the dirty pages
 * of a window that has some in each pass are looked at from time to time, as
 * verdict.h decides, and go on being looked at as long as that merges any.
 *
 * What has to be remembered is how often it was in vain: 8 bytes per window that
 * has dirty pages, in an xarray per mm, which goes when the mm had none for a pass.
 *
 * Locking: all of it belongs to ksmd, under ksm_thread_mutex.
 */
#include <linux/hashtable.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "ksm_dirty.h"
#include "verdict.h"

#define PROBE_GFP	(GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN)

/* An entry of probe_mm::windows: the stage, and the pass it was last asked for */
#define STAGE_BITS	5
#define STAGE_MASK	((1UL << STAGE_BITS) - 1)
#define PASS_MASK	(LONG_MAX >> STAGE_BITS)

/*
 * struct probe_mm - the windows of an mm that have dirty pages
 * @node: in probe_mms
 * @mm: the mm, only ever compared: it may be gone, and another in its place, whose
 *	windows may then be probed early or late
 * @pass: the last pass in which there was one
 * @windows: by the number of the pmd entry
 */
struct probe_mm {
	struct hlist_node node;
	struct mm_struct *mm;
	unsigned long pass;
	struct xarray windows;
};

static DEFINE_HASHTABLE(probe_mms, 8);
static struct probe_mm *probe_last;

unsigned int ksm_dirty_probe_passes = 4096;

static void probe_mm_free(struct probe_mm *pmm)
{
	hash_del(&pmm->node);
	xa_destroy(&pmm->windows);
	kfree(pmm);
}

/**
 * ksm_dirty_probe_forget() - drop what is known of dirty windows
 * @pass: of mms that had no dirty one since the pass before this; ULONG_MAX: of
 *	all mms
 *
 * Context: nobody steers ksmd, or ksm_thread_mutex held.  May sleep.
 */
void ksm_dirty_probe_forget(unsigned long pass)
{
	struct hlist_node *next;
	struct probe_mm *pmm;
	int bucket;

	probe_last = NULL;
	hash_for_each_safe(probe_mms, bucket, next, pmm, node) {
		if (pass == ULONG_MAX || pass - pmm->pass > 1)
			probe_mm_free(pmm);
	}
}

static struct probe_mm *probe_mm_find(struct mm_struct *mm)
{
	struct probe_mm *pmm;

	if (probe_last && probe_last->mm == mm)
		return probe_last;
	hash_for_each_possible(probe_mms, pmm, node, (unsigned long)mm) {
		if (pmm->mm == mm) {
			probe_last = pmm;
			return pmm;
		}
	}
	return NULL;
}

static struct probe_mm *probe_mm_get(struct mm_struct *mm)
{
	struct probe_mm *pmm = probe_mm_find(mm);

	if (pmm)
		return pmm;
	pmm = kzalloc(sizeof(*pmm), PROBE_GFP);
	if (!pmm)
		return NULL;
	pmm->mm = mm;
	xa_init(&pmm->windows);
	hash_add(probe_mms, &pmm->node, (unsigned long)mm);
	probe_last = pmm;
	return pmm;
}

/**
 * ksm_dirty_probe() - are the dirty pages of a window to be looked at?
 * @mm: the mm
 * @addr: an address in the window
 * @pass: the number of the pass; each window is asked for once in it
 *
 * Where memory is short the answer is no, and the next pass starts over.
 *
 * Context: ksm_thread_mutex held, no spinlock.  May sleep.
 */
bool ksm_dirty_probe(struct mm_struct *mm, unsigned long addr, unsigned long pass)
{
	unsigned int interval = READ_ONCE(ksm_dirty_probe_passes);
	unsigned int stage = KSM_DIRTY_PROBE_SEEN;
	unsigned long index = addr >> PMD_SHIFT;
	struct probe_mm *pmm;
	unsigned long value;
	void *entry;
	bool due;

	if (interval < 2)
		return false;
	pmm = probe_mm_get(mm);
	if (!pmm)
		return false;
	pmm->pass = pass;

	entry = xa_load(&pmm->windows, index);
	if (entry) {
		value = xa_to_value(entry);
		/* It was quiet in between, or is another one: start over */
		if (value >> STAGE_BITS == ((pass - 1) & PASS_MASK))
			stage = value & STAGE_MASK;
	}
	due = ksm_dirty_probe_due(&stage, pass, interval);
	value = (pass & PASS_MASK) << STAGE_BITS | stage;
	xa_store(&pmm->windows, index, xa_mk_value(value), PROBE_GFP);
	return due;
}

/**
 * ksm_dirty_probe_merged() - a page was merged
 * @mm: its mm
 * @addr: its address
 *
 * Where there may be more of its kind, the next pass probes again.
 *
 * Context: struct ksm_scan_ops::merged.  Does not sleep.
 */
void ksm_dirty_probe_merged(struct mm_struct *mm, unsigned long addr)
{
	struct probe_mm *pmm = probe_mm_find(mm);
	unsigned long index = addr >> PMD_SHIFT;
	unsigned long value;
	void *entry;

	entry = pmm ? xa_load(&pmm->windows, index) : NULL;
	if (!entry)
		return;
	value = (xa_to_value(entry) & ~STAGE_MASK) | KSM_DIRTY_PROBE_FIRST;
	/* In the place of another value: allocates nothing */
	xa_store(&pmm->windows, index, xa_mk_value(value), GFP_NOWAIT);
}
