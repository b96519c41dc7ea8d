// SPDX-License-Identifier: GPL-2.0
/*
 * ksm_dirty: keeps ksmd from spending a checksum on pages that are being written
 * to, by the dirty bits of the page tables.
 *
 *	main.c		steers ksmd: registration, on and off
 *	harvest.c	reads and clears the dirty bits of a window
 *	probe.c		remembers how often dirty pages were looked at in vain
 *	pte.h		what a bit of a host page table entry means
 *	verdict.h	decides what a bit means for ksmd; verdict_kunit.c tests it
 *	sysfs.c		the files under /sys/kernel/mm/ksm
 *	trace.h		the tracepoints
 *
 * The kernel's side of it: include/linux/ksm_scan.h, which mm/ksm.c calls, and
 * include/linux/mmu_dirty.h, which secondary MMUs answer.
 *
 * Locking: what is read and written while ksmd scans is under ksm_thread_mutex,
 * which ksmd holds; enable_lock serialises turning it on and off.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/task.h>

#include "ksm_dirty.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

struct ksm_dirty_stats ksm_dirty_stats;

static DEFINE_MUTEX(enable_lock);
static bool enabled;

/* ksmd, from the first time it calls here, and the CPU time it had by then */
static struct task_struct *ksmd;
static u64 ksmd_runtime_base;

/* The pass that ksmd is in, as far as is known here */
static unsigned long current_pass;

static enum ksm_scan_verdict scan_next(struct vm_area_struct *vma,
				       unsigned long *address,
				       unsigned int *budget)
{
	if (unlikely(!ksmd)) {
		ksmd_runtime_base = current->se.sum_exec_runtime;
		/* Pairs with the acquire in ksm_dirty_ksmd_runtime() */
		smp_store_release(&ksmd, get_task_struct(current));
	}
	if (ksm_dirty_window.pass != current_pass) {
		current_pass = ksm_dirty_window.pass;
		ksm_dirty_probe_forget(current_pass);
	}
	return ksm_dirty_harvest(vma, address, budget);
}

static const struct ksm_scan_ops scan_ops = {
	.window = &ksm_dirty_window,
	.next = scan_next,
	.merged = ksm_dirty_probe_merged,
};

/**
 * ksm_dirty_ksmd_runtime() - CPU time that ksmd used since the module was loaded
 *
 * Counts on while dirty_scan is 0, so that both can be compared. Starts with the
 * first page that ksmd looks at; up to a tick behind.
 *
 * Any context.
 * Return: nanoseconds.
 */
u64 ksm_dirty_ksmd_runtime(void)
{
	/* Pairs with the release in scan_next() */
	struct task_struct *task = smp_load_acquire(&ksmd);

	if (!task)
		return 0;
	return READ_ONCE(task->se.sum_exec_runtime) - ksmd_runtime_base;
}

/**
 * ksm_dirty_enabled() - is ksmd steered?
 *
 * Any context.
 */
bool ksm_dirty_enabled(void)
{
	return READ_ONCE(enabled);
}

/**
 * ksm_dirty_enable() - start or stop steering ksmd
 * @on: which
 *
 * Context: may sleep, until ksmd has finished its batch.
 * Return: 0, also where it was so already; -EBUSY where somebody else steers
 * ksmd.
 */
int ksm_dirty_enable(bool on)
{
	int err = 0;

	mutex_lock(&enable_lock);
	if (on != enabled) {
		if (on)
			err = ksm_register_scan_ops(&scan_ops);
		else
			ksm_unregister_scan_ops(&scan_ops);
		/* Nobody counts passes while ksmd is not steered */
		if (!on)
			ksm_dirty_probe_forget(ULONG_MAX);
		if (!err)
			WRITE_ONCE(enabled, on);
	}
	mutex_unlock(&enable_lock);
	return err;
}

static int __init ksm_dirty_init(void)
{
	int err;

	err = ksm_dirty_enable(true);
	if (err) {
		pr_err("ksm_dirty: ksmd is steered by another module: unload that first\n");
		return err;
	}
	err = ksm_dirty_sysfs_init();
	if (err) {
		pr_err("ksm_dirty: cannot create files in /sys/kernel/mm/ksm: %pe\n",
		       ERR_PTR(err));
		ksm_dirty_enable(false);
		if (ksmd)
			put_task_struct(ksmd);
	}
	return err;
}

static void __exit ksm_dirty_exit(void)
{
	ksm_dirty_sysfs_exit();
	ksm_dirty_enable(false);
	if (ksmd)
		put_task_struct(ksmd);
}

module_init(ksm_dirty_init);
module_exit(ksm_dirty_exit);

MODULE_DESCRIPTION("KSM: skip pages that are being written to, by their dirty bits");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS(KSM_DIRTY);
