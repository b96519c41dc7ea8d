/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of the module share. */
#ifndef _KSM_DIRTY_H
#define _KSM_DIRTY_H

#include <linux/ksm_scan.h>
#include <linux/mm_types.h>

/**
 * struct ksm_dirty_stats - counters since the module was loaded
 * @pages_dirty: pages skipped since they were written, without a checksum
 * @pages_clean: pages sent to the trees without a checksum
 * @pages_unknown: pages sent to the stock path, checksum first
 * @windows: page table pages (of a huge page: entries) harvested
 * @flushes: TLB flushes that clearing made necessary
 *
 * Written under ksm_thread_mutex only, read at any time.
 */
struct ksm_dirty_stats {
	unsigned long pages_dirty;
	unsigned long pages_clean;
	unsigned long pages_unknown;
	unsigned long windows;
	unsigned long flushes;
};

extern struct ksm_dirty_stats ksm_dirty_stats;

/* harvest.c */
void ksm_dirty_forget(void);
enum ksm_scan_verdict ksm_dirty_harvest(struct vm_area_struct *vma,
					unsigned long *address,
					unsigned int *budget);

/* main.c */
bool ksm_dirty_enabled(void);
int ksm_dirty_enable(bool on);
u64 ksm_dirty_ksmd_runtime(void);

/* sysfs.c */
int ksm_dirty_sysfs_init(void);
void ksm_dirty_sysfs_exit(void);

#endif /* _KSM_DIRTY_H */
