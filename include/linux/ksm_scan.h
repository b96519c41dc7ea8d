/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_KSM_SCAN_H
#define _LINUX_KSM_SCAN_H

#include <linux/types.h>

struct mm_struct;
struct vm_area_struct;

/**
 * enum ksm_scan_verdict - what ksmd is to do with the cursor
 * @KSM_SCAN_UNKNOWN: nothing is known from the address on: the stock path,
 *	checksum first
 * @KSM_SCAN_CLEAN: the page at the address was not written since the last
 *	pass: to the trees without a checksum
 * @KSM_SCAN_NONE: nothing to look at up to the end of the vma
 * @KSM_SCAN_AGAIN: let go of mmap_lock, then ask again from the address on
 */
enum ksm_scan_verdict {
	KSM_SCAN_UNKNOWN,
	KSM_SCAN_CLEAN,
	KSM_SCAN_NONE,
	KSM_SCAN_AGAIN,
};

/**
 * struct ksm_scan_ops - steers ksmd past pages that cannot be merged
 * @start_mm: ksmd starts on an mm; forget what was known of the one before.
 *	Called with ksm_thread_mutex held.
 * @next: called before ksmd looks for the next page of @vma.  Moves *@address
 *	forward, to vma->vm_end at most, over what is not worth looking at, and
 *	says how to treat what it points to then.  Takes from *@budget, never
 *	below 0, what the way there cost, in pages of pages_to_scan.  Called
 *	with ksm_thread_mutex held and mmap_lock held for read; may sleep, but
 *	should return within about a millisecond (KSM_SCAN_AGAIN).
 *
 * Where a page's writes cannot be told, or the page is not @next's to judge,
 * the answer is KSM_SCAN_UNKNOWN.  A wrong answer costs time, or delays a
 * merge; it cannot merge what differs, since that takes a write-protected
 * page and a comparison.
 */
struct ksm_scan_ops {
	void (*start_mm)(struct mm_struct *mm);
	enum ksm_scan_verdict (*next)(struct vm_area_struct *vma,
				      unsigned long *address,
				      unsigned int *budget);
};

int ksm_register_scan_ops(const struct ksm_scan_ops *ops);
void ksm_unregister_scan_ops(const struct ksm_scan_ops *ops);
bool ksm_scan_defer_flush(struct mm_struct *mm);

#endif /* _LINUX_KSM_SCAN_H */
