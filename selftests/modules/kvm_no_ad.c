// SPDX-License-Identifier: GPL-2.0
/*
 * Makes KVM work as on hardware whose nested page tables have no dirty bit, or
 * neither that nor an accessed bit: as long as this is loaded, new SPTEs have none.
 * For virtual machines that are created in the meantime; those that there are must
 * not run.  KVM must stay loaded for as long as this is.
 */
#include <linux/module.h>

static unsigned long accessed;
module_param(accessed, ulong, 0400);
MODULE_PARM_DESC(accessed, "address of KVM's shadow_accessed_mask; 0: leave it alone");

static unsigned long dirty;
module_param(dirty, ulong, 0400);
MODULE_PARM_DESC(dirty, "address of KVM's shadow_dirty_mask");

static u64 accessed_mask, dirty_mask;

static int __init kvm_no_ad_init(void)
{
	if (!dirty)
		return -EINVAL;
	if (accessed) {
		accessed_mask = *(u64 *)accessed;
		WRITE_ONCE(*(u64 *)accessed, 0);
	}
	dirty_mask = *(u64 *)dirty;
	WRITE_ONCE(*(u64 *)dirty, 0);
	return 0;
}
module_init(kvm_no_ad_init);

static void __exit kvm_no_ad_exit(void)
{
	if (accessed)
		WRITE_ONCE(*(u64 *)accessed, accessed_mask);
	WRITE_ONCE(*(u64 *)dirty, dirty_mask);
}
module_exit(kvm_no_ad_exit);

MODULE_DESCRIPTION("KVM without accessed and dirty bits, for tests");
MODULE_LICENSE("GPL");
