// SPDX-License-Identifier: GPL-2.0
/*
 * Probing: one dirty bit speaks for the 512 pages of a huge page.  If one of
 * them is written all the time, the others would be passed over for ever, though
 * stock KSM merges them (and splits the huge page).  So a huge page that stays
 * dirty is looked at from time to time; verdict.h decides when.
 *
 * What has to be remembered is how often that was in vain: 8 bytes per huge page
 * that is dirty, in an xarray per mm, which goes when the mm had none for a pass.
 *
 * Locking: all of it belongs to ksmd, under ksm_thread_mutex.
 */
#include <linux/hashtable.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "ksm_dirty.h"
#include "verdict.h"

#define PROBE_GFP	(GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN)

/* An entry of probe_mm::pages: the stage, and the pass it was last asked for */
#define STAGE_BITS	4
#define STAGE_MASK	((1UL << STAGE_BITS) - 1)

/*
 * struct probe_mm - the dirty huge pages of an mm
 * @node: in probe_mms
 * @mm: the mm, which is kept from being freed so that its address stays its own
 * @pass: the last pass in which there was one
 * @pages: by the number of the huge page
 */
struct probe_mm {
	struct hlist_node node;
	struct mm_struct *mm;
	unsigned long pass;
	struct xarray pages;
};

static DEFINE_HASHTABLE(probe_mms, 8);
static struct probe_mm *probe_last;
static unsigned long probe_pass;

unsigned int ksm_dirty_probe_passes = 4096;

static void probe_mm_free(struct probe_mm *pmm)
{
	hash_del(&pmm->node);
	xa_destroy(&pmm->pages);
	mmdrop(pmm->mm);
	kfree(pmm);
}

/**
 * ksm_dirty_probe_forget() - drop what is known of huge pages
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

static struct probe_mm *probe_mm_get(struct mm_struct *mm)
{
	struct probe_mm *pmm;

	if (probe_last && probe_last->mm == mm)
		return probe_last;
	hash_for_each_possible(probe_mms, pmm, node, (unsigned long)mm) {
		if (pmm->mm == mm)
			goto out;
	}
	pmm = kzalloc(sizeof(*pmm), PROBE_GFP);
	if (!pmm)
		return NULL;
	mmgrab(mm);
	pmm->mm = mm;
	xa_init(&pmm->pages);
	hash_add(probe_mms, &pmm->node, (unsigned long)mm);
out:
	probe_last = pmm;
	return pmm;
}

/**
 * ksm_dirty_probe() - is a huge page to be looked at though it is dirty?
 * @mm: the mm
 * @addr: an address in the huge page
 * @pass: the number of the pass; each huge page is asked for once in it
 *
 * Where memory is short the answer is no, and the next pass starts over.
 *
 * Context: ksm_thread_mutex held, no spinlock.  May sleep.
 */
bool ksm_dirty_probe(struct mm_struct *mm, unsigned long addr, unsigned long pass)
{
	unsigned int interval = READ_ONCE(ksm_dirty_probe_passes);
	unsigned long index = addr >> PMD_SHIFT;
	unsigned int stage = KSM_DIRTY_PROBE_SEEN;
	struct probe_mm *pmm;
	unsigned long value;
	void *entry;
	bool due;

	if (pass != probe_pass) {
		ksm_dirty_probe_forget(pass);
		probe_pass = pass;
	}
	pmm = probe_mm_get(mm);
	if (!pmm)
		return false;
	pmm->pass = pass;

	entry = xa_load(&pmm->pages, index);
	if (entry) {
		value = xa_to_value(entry);
		/* It was quiet in between, or another one: start over */
		if (value >> STAGE_BITS == ((pass - 1) & (LONG_MAX >> STAGE_BITS)))
			stage = value & STAGE_MASK;
	}
	due = ksm_dirty_probe_due(&stage, pass, interval);
	value = (pass & (LONG_MAX >> STAGE_BITS)) << STAGE_BITS | stage;
	xa_store(&pmm->pages, index, xa_mk_value(value), PROBE_GFP);
	return due;
}
