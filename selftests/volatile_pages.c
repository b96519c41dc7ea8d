// SPDX-License-Identifier: GPL-2.0
/*
 * Pages rewritten between passes are skipped: no checksum, no rmap_item, not
 * counted as scanned; regular and huge pages.  The same with dirty_scan=0, to
 * see that this memory does cost all of it otherwise.
 *
 * Seen to fail with: harvest.c and ksm_dirty_judge() passing over no DIRTY
 * page; harvest.c leaving the cursor before the window that it found (mixed test).
 */
#include "ksm_dirty_util.h"

#define PAGES (2 * HUGE_PAGES)
#define PASSES 5

struct cost {
	uint64_t dirty;
	uint64_t scanned;
	uint64_t checksums;
};

static struct cost measure(char *mem)
{
	struct cost cost = {
		.dirty = ksm_get("pages_dirty"),
		.scanned = ksm_get("pages_scanned"),
		.checksums = checksums(),
	};
	static uint64_t generation;
	int i;

	for (i = 0; i < PASSES; i++) {
		rewrite_pages(mem, PAGES, ++generation);
		ksm_pass(1);
	}
	cost.dirty = ksm_get("pages_dirty") - cost.dirty;
	cost.scanned = ksm_get("pages_scanned") - cost.scanned;
	cost.checksums = checksums() - cost.checksums;
	ksft_print_msg(
		"%lu dirty, %lu scanned, %lu checksums, %lu rmap_items\n",
		cost.dirty, cost.scanned, cost.checksums,
		ksm_stat("ksm_rmap_items"));
	return cost;
}

static void test(bool huge)
{
	const char *what = huge ? "huge" : "regular";
	const uint64_t all = PASSES * PAGES;
	char *mem = map_pages(PAGES, huge);
	struct cost cost;
	uint64_t windows;

	fill_pages(mem, PAGES, 1);
	if (huge)
		need_huge(mem, PAGES);
	ksm_pass(2);

	trace_harvests();
	cost = measure(mem);
	check(cost.dirty == all, "%s pages: each counted as dirty\n", what);
	check(!cost.scanned, "%s pages: none scanned\n", what);
	check(!cost.checksums, "%s pages: no checksum\n", what);
	check(!ksm_stat("ksm_rmap_items"), "%s pages: no rmap_item\n", what);
	windows = all / HUGE_PAGES;
	check(traced_harvests(mem, PAGES, "dirty") == all &&
		      traced_harvests(mem, PAGES, "present") == all &&
		      traced_harvests(mem, PAGES, "huge") ==
			      (huge ? windows : 0),
	      "%s pages: each in the trace\n", what);

	ksm_set("dirty_scan", 0);
	cost = measure(mem);
	check(!cost.dirty && cost.scanned == all && cost.checksums >= all &&
		      ksm_stat("ksm_rmap_items") == PAGES,
	      "%s pages: each is scanned with dirty_scan=0\n", what);

	ksm_set("dirty_scan", 1);
	rewrite_pages(mem, PAGES, 99);
	ksm_pass(1);
	check(!ksm_stat("ksm_rmap_items"),
	      "%s pages: rmap_items go with dirty_scan=1\n", what);
	munmap(mem, PAGES * PAGE);
}

/* Volatile windows with a hole, then a quiet one, then a volatile one behind it */
static void test_mixed(bool huge)
{
	const char *what = huge ? "huge" : "regular";
	const size_t pages = 5 * HUGE_PAGES;
	char *mem = map_pages(pages, huge);
	/* Of the last window every other page, where that makes a difference */
	const size_t step = huge ? 1 : 2;
	const size_t hot = 2 * HUGE_PAGES + HUGE_PAGES / step;
	uint64_t dirty, clean;
	size_t page;
	int i;

	fill_pages(mem, pages, 3);
	if (huge)
		need_huge(mem, pages);
	ksm_pass(2);
	advise(mem + HUGE, HUGE_PAGES, MADV_DONTNEED);
	dirty = ksm_get("pages_dirty");
	clean = ksm_get("pages_clean");
	for (i = 0; i < PASSES; i++) {
		rewrite_pages(mem, HUGE_PAGES, 100 + i);
		rewrite_pages(mem + 2 * HUGE, HUGE_PAGES, 200 + i);
		for (page = 0; page < HUGE_PAGES; page += step)
			set_word(mem + 4 * HUGE, page, i << 16 | page);
		ksm_pass(1);
	}
	dirty = ksm_get("pages_dirty") - dirty;
	clean = ksm_get("pages_clean") - clean;
	ksft_print_msg("%lu dirty, %lu clean\n", dirty, clean);
	check(dirty == PASSES * hot &&
		      clean == PASSES * (pages - HUGE_PAGES - hot),
	      "%s pages: skipped before, beside and behind quiet ones\n", what);
	munmap(mem, pages * PAGE);
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(16);
	ksm_setup();
	count_checksums();
	test(false);
	test(true);
	test_mixed(false);
	test_mixed(true);
	ksft_finished();
}
