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

/* One file per counter of struct ksm_dirty_stats */
#define KSM_DIRTY_COUNTER(_file, _member)				\
static ssize_t _file##_show(struct kobject *kobj,			\
			    struct kobj_attribute *attr, char *buf)	\
{									\
	return sysfs_emit(buf, "%lu\n",					\
			  READ_ONCE(ksm_dirty_stats._member));		\
}									\
static struct kobj_attribute _file##_attr = __ATTR_RO(_file)

KSM_DIRTY_COUNTER(pages_dirty, pages_dirty);
KSM_DIRTY_COUNTER(pages_clean, pages_clean);
KSM_DIRTY_COUNTER(pages_unknown, pages_unknown);
KSM_DIRTY_COUNTER(dirty_scan_windows, windows);
KSM_DIRTY_COUNTER(dirty_scan_flushes, flushes);

static struct attribute *ksm_dirty_attrs[] = {
	&dirty_scan_attr.attr,
	&pages_dirty_attr.attr,
	&pages_clean_attr.attr,
	&pages_unknown_attr.attr,
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
