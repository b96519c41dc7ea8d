// SPDX-License-Identifier: GPL-2.0
/*
 * The interface: files beside KSM's own in /sys/kernel/mm/ksm, which come and go
 * with the module.  Documentation/ABI/sysfs-kernel-mm-ksm-dirty describes each.
 */
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/sysfs.h>

#include "ksm_dirty.h"

static ssize_t dirty_scan_show(struct kobject *kobj,
			       struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", ksm_dirty_enabled());
}

static ssize_t dirty_scan_store(struct kobject *kobj,
				struct kobj_attribute *attr, const char *buf,
				size_t count)
{
	unsigned int on;
	int err;

	err = kstrtouint(buf, 10, &on);
	if (err)
		return err;
	if (on > 1)
		return -EINVAL;
	err = ksm_dirty_enable(on);
	return err ? err : count;
}

static struct kobj_attribute dirty_scan_attr = __ATTR_RW(dirty_scan);

static ssize_t ksmd_runtime_ns_show(struct kobject *kobj,
				    struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", ksm_dirty_ksmd_runtime());
}

static struct kobj_attribute ksmd_runtime_ns_attr = __ATTR_RO(ksmd_runtime_ns);

/* A file that takes a number of passes */
struct passes_attribute {
	struct kobj_attribute attr;
	unsigned int *passes;
};

static unsigned int *passes_of(struct kobj_attribute *attr)
{
	return container_of(attr, struct passes_attribute, attr)->passes;
}

static ssize_t passes_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(*passes_of(attr)));
}

static ssize_t passes_store(struct kobject *kobj, struct kobj_attribute *attr,
			    const char *buf, size_t count)
{
	unsigned int passes;
	int err;

	err = kstrtouint(buf, 10, &passes);
	if (err)
		return err;
	WRITE_ONCE(*passes_of(attr), passes);
	return count;
}

static struct passes_attribute probe_passes_attr = {
	.attr = __ATTR(dirty_scan_probe_passes, 0644, passes_show, passes_store),
	.passes = &ksm_dirty_probe_passes,
};

static struct passes_attribute recheck_passes_attr = {
	.attr = __ATTR(dirty_scan_recheck_passes, 0644, passes_show, passes_store),
	.passes = &ksm_dirty_recheck_passes,
};

/* The kernel's counters go on over a reload; the files start at 0 */
static struct ksm_scan_stats scan_base;

/* One file per counter */
#define KSM_DIRTY_COUNTER(_file, _counter, _base)			\
static ssize_t _file##_show(struct kobject *kobj,			\
			    struct kobj_attribute *attr, char *buf)	\
{									\
	return sysfs_emit(buf, "%lu\n", READ_ONCE(_counter) - (_base));	\
}									\
static struct kobj_attribute _file##_attr = __ATTR_RO(_file)

KSM_DIRTY_COUNTER(pages_dirty, ksm_dirty_stats.pages_dirty, 0);
KSM_DIRTY_COUNTER(pages_clean, ksm_dirty_stats.pages_clean, 0);
KSM_DIRTY_COUNTER(pages_unknown, ksm_dirty_stats.pages_unknown, 0);
KSM_DIRTY_COUNTER(pages_probed, ksm_dirty_stats.pages_probed, 0);
KSM_DIRTY_COUNTER(pages_settled, ksm_scan_stats.settled, 0);
KSM_DIRTY_COUNTER(settled_passed_over, ksm_scan_stats.passed_over, scan_base.passed_over);
KSM_DIRTY_COUNTER(settled_searches, ksm_scan_stats.searches, scan_base.searches);
KSM_DIRTY_COUNTER(settled_pruned, ksm_scan_stats.pruned, scan_base.pruned);
KSM_DIRTY_COUNTER(settled_stale, ksm_scan_stats.stale, scan_base.stale);
KSM_DIRTY_COUNTER(dirty_scan_windows, ksm_dirty_stats.windows, 0);
KSM_DIRTY_COUNTER(dirty_scan_flushes, ksm_dirty_stats.flushes, 0);

static struct attribute *ksm_dirty_attrs[] = {
	&dirty_scan_attr.attr,
	&probe_passes_attr.attr.attr,
	&recheck_passes_attr.attr.attr,
	&pages_dirty_attr.attr,
	&pages_clean_attr.attr,
	&pages_unknown_attr.attr,
	&pages_probed_attr.attr,
	&pages_settled_attr.attr,
	&settled_passed_over_attr.attr,
	&settled_searches_attr.attr,
	&settled_pruned_attr.attr,
	&settled_stale_attr.attr,
	&dirty_scan_windows_attr.attr,
	&dirty_scan_flushes_attr.attr,
	&ksmd_runtime_ns_attr.attr,
	NULL,
};

/* Named as KSM's own group, which it is merged into */
static const struct attribute_group ksm_dirty_attr_group = {
	.name = "ksm",
	.attrs = ksm_dirty_attrs,
};

/**
 * ksm_dirty_sysfs_init() - add the files
 *
 * Context: may sleep.
 * Return: 0 or a negative error number, with no file added.
 */
int ksm_dirty_sysfs_init(void)
{
	scan_base = ksm_scan_stats;
	return sysfs_merge_group(mm_kobj, &ksm_dirty_attr_group);
}

/**
 * ksm_dirty_sysfs_exit() - take the files away
 *
 * Context: may sleep, until nobody reads or writes them any more.
 */
void ksm_dirty_sysfs_exit(void)
{
	sysfs_unmerge_group(mm_kobj, &ksm_dirty_attr_group);
}
