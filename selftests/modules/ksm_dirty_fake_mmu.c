// SPDX-License-Identifier: GPL-2.0
/*
 * A secondary MMU that says what it is told to, for the selftests.
 *
 * Each open of /dev/ksm_dirty_fake_mmu subscribes to the opener's mm, as a
 * device or a hypervisor would, until it is closed.  Writes of one line steer it:
 *
 *	capable 0|1		its answer to dirty_capable (1 when opened)
 *	dirty START END		report these addresses as written, once
 *	unknown START END	report these addresses as unknown, always
 *	interval START END	subscribe an interval notifier to these addresses
 *
 * Addresses are in hexadecimal, END is exclusive. Reading gives the number of
 * calls of dirty_capable and of test_clear_dirty, "capable_calls N\ntest_calls N\n".
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mmu_dirty.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

/*
 * struct fake_mmu - one subscription
 * @notifier: the subscription
 * @interval: another one, to a part of the mm
 * @has_interval: whether that is inserted
 * @lock: protects the rest
 */
struct fake_mmu {
	struct mmu_notifier notifier;
	struct mmu_interval_notifier interval;
	bool has_interval;
	spinlock_t lock;	/* protects what follows */
	bool capable;
	unsigned long dirty_start, dirty_end;
	unsigned long unknown_start, unknown_end;
	unsigned long capable_calls, test_calls;
};

static bool fake_dirty_capable(struct mmu_notifier *notifier,
			       struct mm_struct *mm, unsigned long start,
			       unsigned long end)
{
	struct fake_mmu *fake = container_of(notifier, struct fake_mmu, notifier);
	bool capable;

	spin_lock(&fake->lock);
	fake->capable_calls++;
	capable = fake->capable;
	spin_unlock(&fake->lock);
	return capable;
}

static void fake_test_clear_dirty(struct mmu_notifier *notifier,
				  struct mmu_dirty_range *range)
{
	struct fake_mmu *fake = container_of(notifier, struct fake_mmu, notifier);

	spin_lock(&fake->lock);
	fake->test_calls++;
	mmu_dirty_set(range, range->dirty, fake->dirty_start, fake->dirty_end);
	/* Harvests go upwards: what this one reached the end of was reported */
	if (range->end >= fake->dirty_end)
		fake->dirty_end = fake->dirty_start;
	mmu_dirty_set(range, range->unknown, fake->unknown_start,
		      fake->unknown_end);
	spin_unlock(&fake->lock);
}

static const struct mmu_notifier_ops fake_ops = {
	.dirty_capable = fake_dirty_capable,
	.test_clear_dirty = fake_test_clear_dirty,
};

static bool fake_invalidate(struct mmu_interval_notifier *interval,
			    const struct mmu_notifier_range *range,
			    unsigned long seq)
{
	mmu_interval_set_seq(interval, seq);
	return true;
}

static const struct mmu_interval_notifier_ops fake_interval_ops = {
	.invalidate = fake_invalidate,
};

static int fake_open(struct inode *inode, struct file *file)
{
	struct fake_mmu *fake = kzalloc(sizeof(*fake), GFP_KERNEL);
	int err;

	if (!fake)
		return -ENOMEM;
	spin_lock_init(&fake->lock);
	fake->capable = true;
	fake->notifier.ops = &fake_ops;
	err = mmu_notifier_register(&fake->notifier, current->mm);
	if (err) {
		kfree(fake);
		return err;
	}
	file->private_data = fake;
	return 0;
}

static int fake_release(struct inode *inode, struct file *file)
{
	struct fake_mmu *fake = file->private_data;

	if (fake->has_interval)
		mmu_interval_notifier_remove(&fake->interval);
	mmu_notifier_unregister(&fake->notifier, fake->notifier.mm);
	kfree(fake);
	return 0;
}

static ssize_t fake_write(struct file *file, const char __user *ubuf,
			  size_t count, loff_t *pos)
{
	struct fake_mmu *fake = file->private_data;
	unsigned long start, end;
	unsigned int capable;
	char verb[10];
	ssize_t ret = count;
	char *buf;

	buf = memdup_user_nul(ubuf, min_t(size_t, count, 80));
	if (IS_ERR(buf))
		return PTR_ERR(buf);

	if (sscanf(buf, "capable %u", &capable) == 1) {
		spin_lock(&fake->lock);
		fake->capable = capable;
		spin_unlock(&fake->lock);
	} else if (sscanf(buf, "%9s %lx %lx", verb, &start, &end) != 3 ||
		   start >= end) {
		ret = -EINVAL;
	} else if (!strcmp(verb, "dirty")) {
		spin_lock(&fake->lock);
		fake->dirty_start = start;
		fake->dirty_end = end;
		spin_unlock(&fake->lock);
	} else if (!strcmp(verb, "unknown")) {
		spin_lock(&fake->lock);
		fake->unknown_start = start;
		fake->unknown_end = end;
		spin_unlock(&fake->lock);
	} else if (!strcmp(verb, "interval") && !fake->has_interval) {
		ret = mmu_interval_notifier_insert(&fake->interval,
						   fake->notifier.mm, start,
						   end - start,
						   &fake_interval_ops);
		fake->has_interval = !ret;
		if (!ret)
			ret = count;
	} else {
		ret = -EINVAL;
	}
	kfree(buf);
	return ret;
}

static ssize_t fake_read(struct file *file, char __user *ubuf, size_t count,
			 loff_t *pos)
{
	struct fake_mmu *fake = file->private_data;
	char buf[80];
	int len;

	spin_lock(&fake->lock);
	len = scnprintf(buf, sizeof(buf), "capable_calls %lu\ntest_calls %lu\n",
			fake->capable_calls, fake->test_calls);
	spin_unlock(&fake->lock);
	return simple_read_from_buffer(ubuf, count, pos, buf, len);
}

static const struct file_operations fake_fops = {
	.owner = THIS_MODULE,
	.open = fake_open,
	.release = fake_release,
	.write = fake_write,
	.read = fake_read,
	.llseek = default_llseek,
};

static struct miscdevice fake_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "ksm_dirty_fake_mmu",
	.fops = &fake_fops,
};
module_misc_device(fake_device);

MODULE_DESCRIPTION("A secondary MMU under the control of ksm_dirty's selftests");
MODULE_LICENSE("GPL");
