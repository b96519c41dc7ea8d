/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of the module share. */
#ifndef _KSM_DIRTY_H
#define _KSM_DIRTY_H

#include <linux/ksm_scan.h>
#include <linux/mm_types.h>

/**
 * struct ksm_dirty_stats - counters since the module was loaded
 * @pages_dirty: pages skipped since they were written, without a checksum
 * @pages_clean: pages that were vouched for
 * @pages_unknown: pages sent to the stock path, checksum first
 * @pages_probed: of those: pages that were written
 * @windows: page table pages (of a huge page: entries) harvested
 * @flushes: TLB flushes that clearing made necessary
 *
 * Written under ksm_thread_mutex only, read at any time.
 */
struct ksm_dirty_stats {
	unsigned long pages_dirty;
	unsigned long pages_clean;
	unsigned long pages_unknown;
	unsigned long pages_probed;
	unsigned long windows;
	unsigned long flushes;
};

extern struct ksm_dirty_stats ksm_dirty_stats;

/* harvest.c */
extern struct ksm_scan_window ksm_dirty_window;
extern unsigned int ksm_dirty_recheck_passes;
enum ksm_scan_verdict ksm_dirty_harvest(struct vm_area_struct *vma,
					unsigned long *address,
					unsigned int *budget);

/* probe.c */
extern unsigned int ksm_dirty_probe_passes;
void ksm_dirty_probe_forget(unsigned long pass);
bool ksm_dirty_probe(struct mm_struct *mm, unsigned long addr, unsigned long pass);
void ksm_dirty_probe_merged(struct mm_struct *mm, unsigned long addr);

/* main.c */
bool ksm_dirty_enabled(void);
int ksm_dirty_enable(bool on);
u64 ksm_dirty_ksmd_runtime(void);

/* sysfs.c */
int ksm_dirty_sysfs_init(void);
void ksm_dirty_sysfs_exit(void);

#endif /* _KSM_DIRTY_H */
