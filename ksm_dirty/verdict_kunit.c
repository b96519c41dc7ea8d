// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of the decisions in verdict.h, pte.h and linux/mmu_dirty.h. */
#include <kunit/test.h>
#include <linux/module.h>

#include "pte.h"
#include "verdict.h"

#define BASE	0x7f0000200000UL

static struct ksm_dirty_window *new_window(struct kunit *test, unsigned long pages)
{
	struct ksm_dirty_window *window;

	window = kunit_kzalloc(test, sizeof(*window), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, window);
	window->range.start = BASE;
	window->range.end = BASE + pages * PAGE_SIZE;
	return window;
}

static void window_verdict_test(struct kunit *test)
{
	struct ksm_dirty_window *window = new_window(test, 512);
	unsigned long addr = BASE;

	/* 0 not there; 1 DIRTY; 2 DIRTY and UNKNOWN; 3 UNKNOWN; 4 CLEAN */
	bitmap_set(window->present, 1, 4);
	bitmap_set(window->range.dirty, 1, 2);
	bitmap_set(window->range.unknown, 2, 2);

	KUNIT_EXPECT_EQ(test, ksm_dirty_window_next(window, &addr), KSM_SCAN_UNKNOWN);
	KUNIT_EXPECT_EQ(test, addr, BASE + 3 * PAGE_SIZE);
	addr += PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, ksm_dirty_window_next(window, &addr), KSM_SCAN_CLEAN);
	KUNIT_EXPECT_EQ(test, addr, BASE + 4 * PAGE_SIZE);
	addr += PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, ksm_dirty_window_next(window, &addr), KSM_SCAN_NONE);
	KUNIT_EXPECT_EQ(test, addr, window->range.end);
}

static void window_edge_test(struct kunit *test)
{
	struct ksm_dirty_window *window = new_window(test, 3);
	unsigned long addr = BASE;

	/* Bits behind the end of a short window are nobody's */
	bitmap_set(window->present, 2, 10);
	KUNIT_EXPECT_EQ(test, ksm_dirty_window_next(window, &addr), KSM_SCAN_CLEAN);
	KUNIT_EXPECT_EQ(test, addr, BASE + 2 * PAGE_SIZE);
	set_bit(2, window->range.dirty);
	addr = BASE;
	KUNIT_EXPECT_EQ(test, ksm_dirty_window_next(window, &addr), KSM_SCAN_NONE);
	KUNIT_EXPECT_EQ(test, addr, window->range.end);

	KUNIT_EXPECT_TRUE(test, ksm_dirty_window_covers(window, BASE));
	KUNIT_EXPECT_FALSE(test, ksm_dirty_window_covers(window, BASE - PAGE_SIZE));
	KUNIT_EXPECT_FALSE(test, ksm_dirty_window_covers(window, window->range.end));
}

static void range_set_test(struct kunit *test)
{
	struct ksm_dirty_window *window = new_window(test, 8);
	struct mmu_dirty_range *range = &window->range;

	mmu_dirty_set(range, range->dirty, BASE + PAGE_SIZE, BASE + 3 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, range->dirty[0], 0x6);
	mmu_dirty_set(range, range->dirty, 0, BASE);
	mmu_dirty_set(range, range->dirty, range->end, ULONG_MAX);
	KUNIT_EXPECT_EQ(test, range->dirty[0], 0x6);
	mmu_dirty_set(range, range->unknown, 0, ULONG_MAX);
	KUNIT_EXPECT_EQ(test, range->unknown[0], 0xff);
	KUNIT_EXPECT_EQ(test, range->unknown[1], 0);
}

static void vma_test(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, ksm_dirty_vma_eligible(VM_READ | VM_WRITE | VM_MERGEABLE));
	if (VM_SHADOW_STACK == VM_NONE)
		kunit_skip(test, "kernel without shadow stacks");
	KUNIT_EXPECT_FALSE(test, ksm_dirty_vma_eligible(VM_READ | VM_SHADOW_STACK));
}

static void cost_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ksm_dirty_cost(1), 1);
	KUNIT_EXPECT_EQ(test, ksm_dirty_cost(KSM_DIRTY_ENTRIES_PER_PAGE), 1);
	KUNIT_EXPECT_EQ(test, ksm_dirty_cost(KSM_DIRTY_ENTRIES_PER_PAGE + 1), 2);
	KUNIT_EXPECT_EQ(test, ksm_dirty_cost(512), 512 / KSM_DIRTY_ENTRIES_PER_PAGE);
}

static pte_t pte_of(pteval_t flags)
{
	return pfn_pte(1, __pgprot(flags));
}

static void pte_eligible_test(struct kunit *test)
{
	const pteval_t rw = _PAGE_PRESENT | _PAGE_USER | _PAGE_RW;
	const pteval_t ro = _PAGE_PRESENT | _PAGE_USER;

	KUNIT_EXPECT_TRUE(test, ksm_dirty_pte_eligible(pte_of(rw)));
	KUNIT_EXPECT_TRUE(test, ksm_dirty_pte_eligible(pte_of(rw | _PAGE_DIRTY)));
	KUNIT_EXPECT_TRUE(test, ksm_dirty_pte_eligible(pte_of(ro)));
	KUNIT_EXPECT_TRUE(test, ksm_dirty_pte_eligible(pte_of(ro | _PAGE_SAVED_DIRTY)));
	/* A zero page that KSM mapped, nothing */
	KUNIT_EXPECT_FALSE(test, ksm_dirty_pte_eligible(pte_mkdirty(pte_mkspecial(pte_of(ro)))));
	KUNIT_EXPECT_FALSE(test, ksm_dirty_pte_eligible(pte_of(_PAGE_DIRTY)));
}

static void shstk_test(struct kunit *test)
{
	const pteval_t ro = _PAGE_PRESENT | _PAGE_USER | _PAGE_ACCESSED;

	KUNIT_EXPECT_TRUE(test, ksm_dirty_pte_shstk(pte_of(ro | _PAGE_DIRTY)));
	KUNIT_EXPECT_FALSE(test, ksm_dirty_pte_shstk(pte_of(ro | _PAGE_SAVED_DIRTY)));
	KUNIT_EXPECT_FALSE(test, ksm_dirty_pte_shstk(pte_of(ro | _PAGE_RW | _PAGE_DIRTY)));
	KUNIT_EXPECT_TRUE(test, ksm_dirty_pmd_shstk(native_make_pmd(ro | _PAGE_PSE |
								    _PAGE_DIRTY)));
	KUNIT_EXPECT_FALSE(test, ksm_dirty_pmd_shstk(native_make_pmd(ro | _PAGE_PSE |
								     _PAGE_RW | _PAGE_DIRTY)));
}

static void pte_mkclean_test(struct kunit *test)
{
	const pteval_t keep = _PAGE_PRESENT | _PAGE_USER | _PAGE_RW |
			      _PAGE_ACCESSED | _PAGE_SOFT_DIRTY | _PAGE_UFFD_WP;
	pte_t pte = pte_of(keep | _PAGE_DIRTY_BITS);
	pte_t seen = pte_of(keep & ~_PAGE_ACCESSED);

	/* What was read is old: the hardware has set bits since */
	ksm_dirty_pte_mkclean(&pte, seen);
	KUNIT_EXPECT_EQ(test, pte_val(pte), pte_val(pte_of(keep)));
}

static void pmd_mkclean_test(struct kunit *test)
{
	const pmdval_t keep = _PAGE_PRESENT | _PAGE_USER | _PAGE_RW | _PAGE_PSE |
			      _PAGE_ACCESSED | _PAGE_SOFT_DIRTY | _PAGE_UFFD_WP;
	pmd_t pmd = native_make_pmd(keep | _PAGE_DIRTY_BITS);

	KUNIT_EXPECT_TRUE(test, ksm_dirty_pmd_eligible(pmd));
	ksm_dirty_pmd_mkclean(&pmd, native_make_pmd(keep));
	KUNIT_EXPECT_EQ(test, pmd_val(pmd), keep);
	KUNIT_EXPECT_FALSE(test, ksm_dirty_pmd_eligible(native_make_pmd(keep & ~_PAGE_PSE)));
}

static struct kunit_case ksm_dirty_cases[] = {
	KUNIT_CASE(window_verdict_test),
	KUNIT_CASE(window_edge_test),
	KUNIT_CASE(range_set_test),
	KUNIT_CASE(vma_test),
	KUNIT_CASE(cost_test),
	KUNIT_CASE(pte_eligible_test),
	KUNIT_CASE(shstk_test),
	KUNIT_CASE(pte_mkclean_test),
	KUNIT_CASE(pmd_mkclean_test),
	{}
};

static struct kunit_suite ksm_dirty_suite = {
	.name = "ksm_dirty",
	.test_cases = ksm_dirty_cases,
};

kunit_test_suite(ksm_dirty_suite);

MODULE_DESCRIPTION("KUnit tests of ksm_dirty's decisions");
MODULE_LICENSE("GPL");
