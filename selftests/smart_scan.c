// SPDX-License-Identifier: GPL-2.0
/*
 * smart_scan and the advisor with dirty_scan.  Pages that are passed over as dirty
 * do not age as pages that did not merge, and pages_skipped does not count them, so
 * what falls quiet merges at once.  Pages that nobody vouches for age as ever.  The
 * advisor gets a pass down to the time it is given, by pages_to_scan within its
 * limits.
 *
 * Seen to fail with: harvest.c calling every page UNKNOWN (smart_scan), and
 * ksm_dirty_cost() charging nothing (advisor).
 */
#include "ksm_dirty_util.h"

#define PAGES (2 * HUGE_PAGES)
#define HOT_PASSES 24
#define LIMIT 20

/* Passes until two mappings are merged that were rewritten in so many passes */
static unsigned int passes_to_merge(bool huge, unsigned int hot_passes)
{
	static uint64_t seed;
	char *a = map_pages(PAGES, huge), *b = map_pages(PAGES, huge);
	unsigned int passes;

	for (passes = 0; passes <= hot_passes; passes++) {
		if (passes)
			ksm_pass(1);
		fill_pages(a, PAGES, ++seed);
		fill_pages(b, PAGES, seed);
	}
	if (huge) {
		need_huge(a, PAGES);
		need_huge(b, PAGES);
	}
	for (passes = 1; passes <= LIMIT; passes++) {
		ksm_pass(1);
		if (ksm_stat("ksm_merging_pages") == 2 * PAGES)
			break;
	}
	munmap(a, PAGES * PAGE);
	munmap(b, PAGES * PAGE);
	return passes;
}

static void test_smart_scan(bool huge)
{
	const char *what = huge ? "huge" : "regular";
	uint64_t skipped = ksm_get("pages_skipped");
	unsigned int fresh, hot;

	fresh = passes_to_merge(huge, 1);
	hot = passes_to_merge(huge, HOT_PASSES);
	skipped = ksm_get("pages_skipped") - skipped;
	ksft_print_msg("merged in pass %u, after %d hot passes in pass %u\n",
		       fresh, HOT_PASSES, hot);
	check(hot <= fresh && fresh <= LIMIT,
	      "%s pages: passed over as dirty, they do not age\n", what);
	check(!skipped, "%s pages: %lu counted as skipped\n", what, skipped);
}

/* The same pages with nobody to vouch for them */
static void test_unknown(void)
{
	uint64_t skipped = ksm_get("pages_skipped");
	unsigned int hot;

	ksm_set("dirty_scan", 0);
	hot = passes_to_merge(false, HOT_PASSES);
	ksm_set("dirty_scan", 1);
	skipped = ksm_get("pages_skipped") - skipped;
	ksft_print_msg("dirty_scan=0: merged in pass %u, %lu skipped\n", hot,
		       skipped);
	check(skipped > PAGES, "dirty_scan=0: pages that change age\n");
}

#define TARGET 3 /* seconds, the advisor's unit */
#define BATCH_MS 500 /* so that few pages make a long pass */
#define FIRST_PAGES 8
#define MOST_PAGES 1000
#define ADVISED_PAGES (16 * HUGE_PAGES)

/* Seconds from the end of a pass to the end of the next */
static double pass_time(char *mem)
{
	uint64_t scans = ksm_get("full_scans");
	double start = now();

	while (ksm_get("full_scans") == scans) {
		rewrite_pages(mem, ADVISED_PAGES, now() * 1000);
		usleep(20000);
		if (now() - start > 40)
			ksft_exit_fail_msg("no pass in 40 s\n");
	}
	return now() - start;
}

static void test_advisor(void)
{
	char *mem = map_pages(ADVISED_PAGES, false);
	double first, last = 0;
	unsigned int passes;
	uint64_t pages;

	fill_pages(mem, ADVISED_PAGES, 1);
	ksm_pass(3);
	ksm_stop();
	ksm_set("advisor_max_pages_to_scan", MOST_PAGES);
	ksm_set("advisor_min_pages_to_scan", FIRST_PAGES);
	ksm_set("advisor_target_scan_time", TARGET);
	/* Which starts with advisor_min_pages_to_scan */
	write_file(KSM_DIR "/advisor_mode", "scan-time");
	ksm_set("sleep_millisecs", BATCH_MS);
	ksm_set("run", 1);
	first = pass_time(mem);
	for (passes = 0; passes < 4; passes++)
		last = pass_time(mem);
	pages = ksm_get("pages_to_scan");
	ksm_stop();
	write_file(KSM_DIR "/advisor_mode", "none");
	ksft_print_msg(
		"first pass %.1f s, last one %.1f s, pages_to_scan %lu\n",
		first, last, pages);
	check(first > TARGET + 1 && last <= TARGET,
	      "the advisor gets a pass down to its target\n");
	check(pages > FIRST_PAGES && pages <= MOST_PAGES,
	      "by pages_to_scan within its limits\n");
	munmap(mem, ADVISED_PAGES * PAGE);
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(7);
	ksm_setup();
	ksm_set("smart_scan", 1);
	test_smart_scan(false);
	test_smart_scan(true);
	test_unknown();
	test_advisor();
	ksft_finished();
}
