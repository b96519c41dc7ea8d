// SPDX-License-Identifier: GPL-2.0
/*
 * A page that is written after MADV_FREE is kept by reclaim, though the dirty bit
 * that says so was harvested before.  One that is not may read as old or as zero.
 *
 * Seen to fail with: harvest.c without folio_mark_dirty().
 */
#include "ksm_dirty_util.h"

#define PAGES (2 * HUGE_PAGES)

static void test(bool huge)
{
	const char *what = huge ? "huge" : "regular";
	char *mem = map_pages(PAGES, huge);
	size_t i, lost = 0, wrong = 0, freed = 0;
	uint64_t harvested;

	fill_pages(mem, PAGES, 1);
	if (huge)
		need_huge(mem, PAGES);
	advise(mem, PAGES, MADV_FREE);
	/* Every other of the first half; the second half stays free to go */
	for (i = 0; i < PAGES / 2; i += 2)
		fill_page(mem, i, i | 1ULL << 63);
	harvested = ksm_get("pages_dirty");
	ksm_pass(2);
	harvested = ksm_get("pages_dirty") - harvested;
	check(harvested == (huge ? PAGES / 2 : PAGES / 4),
	      "%s: pages written after MADV_FREE are harvested\n", what);
	advise(mem, PAGES, MADV_PAGEOUT);

	for (i = 0; i < PAGES; i++) {
		if (i < PAGES / 2 && i % 2 == 0)
			lost += !page_holds(mem, i, i | 1ULL << 63);
		else if (page_holds(mem, i, 0))
			freed++;
		else
			wrong += !page_holds(mem, i, (1ULL << 32) + i + 1);
	}
	ksft_print_msg("%s: %zu lost, %zu freed, %zu wrong\n", what, lost,
		       freed, wrong);
	check(freed >= PAGES / 4, "%s: reclaim frees what was not written\n",
	      what);
	check(!lost, "%s: what was written survives\n", what);
	check(!wrong, "%s: the rest is as it was, or zero\n", what);
	munmap(mem, PAGES * PAGE);
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(8);
	ksm_setup();
	test(false);
	test(true);
	ksft_finished();
}
