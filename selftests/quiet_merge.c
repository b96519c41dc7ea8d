// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that have been written in every pass, and then no more, merge in no
 * more passes than with dirty_scan=0, and hold what they held.  Alone in their
 * windows, and beside pages that go on being written.
 *
 * Seen to fail with: ksm_dirty_judge() calling every page UNKNOWN.
 */
#include "ksm_dirty_util.h"

#define PAGES (2 * HUGE_PAGES)
#define LIMIT 20

/*
 * Returns how many passes it took until all pages were merged; beyond LIMIT,
 * where they were not.  Every @step th page stays hot, none where it is 0.
 */
static unsigned int passes_to_merge(bool dirty_scan, bool huge,
				    unsigned int step, size_t *wrong)
{
	static uint64_t seed;
	char *a = map_pages(PAGES, huge), *b = map_pages(PAGES, huge);
	uint64_t want = 2 * (PAGES - (step ? PAGES / step : 0));
	unsigned int passes;
	size_t i;

	ksm_set("dirty_scan", dirty_scan);
	for (i = 0; i < 3; i++) {
		fill_pages(a, PAGES, ++seed);
		fill_pages(b, PAGES, seed);
		if (huge && !i) {
			need_huge(a, PAGES);
			need_huge(b, PAGES);
		}
		ksm_pass(1);
	}
	fill_pages(a, PAGES, ++seed);
	fill_pages(b, PAGES, seed);

	for (passes = 1; passes <= LIMIT; passes++) {
		for (i = 0; step && i < PAGES; i += step) {
			fill_page(a, i, 1ULL << 63 | passes << 24 | i);
			fill_page(b, i, 3ULL << 62 | passes << 24 | i);
		}
		ksm_pass(1);
		if (ksm_stat("ksm_merging_pages") >= want)
			break;
	}
	for (i = 0, *wrong = 0; i < PAGES; i++)
		if (!step || i % step)
			*wrong += !page_holds(a, i, (seed << 32) + i + 1) +
				  !page_holds(b, i, (seed << 32) + i + 1);
	ksft_print_msg("dirty_scan=%d: %u passes, %lu of %lu pages merged\n",
		       dirty_scan, passes, ksm_stat("ksm_merging_pages"), want);
	munmap(a, PAGES * PAGE);
	munmap(b, PAGES * PAGE);
	return passes;
}

static void test(bool huge, unsigned int step, const char *what)
{
	size_t wrong_stock, wrong_dirty;
	unsigned int stock = passes_to_merge(false, huge, step, &wrong_stock);
	unsigned int dirty = passes_to_merge(true, huge, step, &wrong_dirty);

	check(stock <= LIMIT && dirty <= stock,
	      "%s merge no later than with dirty_scan=0\n", what);
	check(!wrong_stock && !wrong_dirty, "%s keep their contents\n", what);
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(6);
	ksm_setup();
	test(false, 0, "regular pages");
	test(false, 4, "regular pages beside hot ones");
	test(true, 0, "huge pages");
	ksft_finished();
}
