// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of the decisions in verdict.h, pte.h and linux/mmu_dirty.h. */
#include <kunit/test.h>
#include <linux/module.h>

#include "pte.h"
#include "verdict.h"

#define BASE	0x7f0000200000UL

static struct ksm_dirty_harvest *new_harvest(struct kunit *test, unsigned long pages)
{
	struct ksm_dirty_harvest *harvest;

	harvest = kunit_kzalloc(test, sizeof(*harvest), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, harvest);
	harvest->range.start = BASE;
	harvest->range.end = BASE + pages * PAGE_SIZE;
	return harvest;
}

static void judge_test(struct kunit *test)
{
	struct ksm_dirty_harvest *harvest = new_harvest(test, 512);
	struct ksm_scan_window *window;

	window = kunit_kzalloc(test, sizeof(*window), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, window);
	KUNIT_EXPECT_FALSE(test, ksm_dirty_judge(harvest, window));

	/*
	 * 0 not there; 1 DIRTY; 2 DIRTY and UNKNOWN; 3 UNKNOWN; 4 CLEAN;
	 * 5 a KSM page, CLEAN; 6 a KSM page, UNKNOWN; 7 a KSM page, DIRTY
	 */
	bitmap_set(harvest->present, 1, 7);
	bitmap_set(harvest->range.dirty, 1, 2);
	bitmap_set(harvest->range.dirty, 7, 1);
	bitmap_set(harvest->range.unknown, 2, 2);
	bitmap_set(harvest->range.unknown, 6, 1);
	bitmap_set(harvest->ksm, 5, 3);
	KUNIT_EXPECT_TRUE(test, ksm_dirty_judge(harvest, window));
	KUNIT_EXPECT_EQ(test, window->look[0], 0x78);
	KUNIT_EXPECT_EQ(test, window->clean[0], 0x10);
	KUNIT_EXPECT_EQ(test, window->merged[0], 0x20);

	/* Nothing but what was written */
	bitmap_fill(harvest->range.dirty, 512);
	KUNIT_EXPECT_FALSE(test, ksm_dirty_judge(harvest, window));
}

static void due_test(struct kunit *test)
{
	unsigned int pass, turns = 0;

	for (pass = 1000; pass < 1032; pass++)
		turns += ksm_dirty_due(7, pass, 8);
	KUNIT_EXPECT_EQ(test, turns, 4);
	KUNIT_EXPECT_TRUE(test, ksm_dirty_due(7, 1007, 1000));
	KUNIT_EXPECT_TRUE(test, ksm_dirty_due(7, 12345, 1));
	KUNIT_EXPECT_FALSE(test, ksm_dirty_due(0, 0, 0));
}

/* Pages that turned hot in different passes, asked in each pass from then on */
static void probe_test(struct kunit *test)
{
	unsigned int stage[4] = {}, probes[4] = {}, together = 0, early = 0;
	unsigned int pass, i, due;

	for (pass = 0; pass < 4096; pass++) {
		for (i = 0, due = 0; i < 4; i++) {
			if (pass < i * 3)
				continue;
			if (!ksm_dirty_probe_due(&stage[i], pass, 1023))
				continue;
			due++;
			probes[i]++;
			/* Not in the first pass, at once in the next two */
			if (pass == i * 3)
				KUNIT_FAIL(test, "probed at first sight");
			if (pass == i * 3 + 1 || pass == i * 3 + 2)
				early++;
		}
		/* In the end all are probed in the same passes */
		if (pass >= 2048 && due) {
			KUNIT_EXPECT_EQ(test, due, 4);
			KUNIT_EXPECT_LT(test, pass % 512, 2);
			together++;
		}
	}
	KUNIT_EXPECT_EQ(test, early, 8);
	/* Twice in each 512 passes, which 1023 is rounded down to */
	KUNIT_EXPECT_EQ(test, together, 8);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_LT(test, probes[i], 32);

	KUNIT_EXPECT_FALSE(test, ksm_dirty_probe_due(&stage[0], 0, 0));
	KUNIT_EXPECT_FALSE(test, ksm_dirty_probe_due(&stage[0], 0, 1));
}

static void range_set_test(struct kunit *test)
{
	struct mmu_dirty_range *range = &new_harvest(test, 8)->range;

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
	KUNIT_EXPECT_FALSE(test, ksm_dirty_vma_eligible(VM_READ | VM_PFNMAP));
	KUNIT_EXPECT_FALSE(test, ksm_dirty_vma_eligible(VM_READ | VM_MIXEDMAP));
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
	KUNIT_CASE(judge_test),
	KUNIT_CASE(due_test),
	KUNIT_CASE(probe_test),
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
