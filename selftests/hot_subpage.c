// SPDX-License-Identifier: GPL-2.0
/*
 * Huge pages with one page that is written in every pass, and 511 that are quiet
 * and equal to those of another huge page: the dirty bit speaks for all 512, so
 * they have to be probed.  All that merges with dirty_scan=0 merges, within a few
 * passes; what turns equal later, in the next pass in which such huge pages are
 * probed.  In between they cost no checksum.
 *
 * Seen to fail with: ksm_dirty_probe_due() without early probes, without later ones,
 * with all two passes late, with no period longer than 4, and without the knob as
 * the longest period.
 */
#include "ksm_dirty_util.h"

#define NR_HUGE 2UL
#define PAGES (NR_HUGE * HUGE_PAGES)
/* Less the hot one, and that which is like the neighbour's hot one was */
#define QUIET (NR_HUGE * (HUGE_PAGES - 2))
#define EARLY 5
#define LIMIT 12
#define PROBE_DEFAULT 4096

static uint64_t seed;
static char *mem;

/* The page that is written, another one in each huge page */
static size_t hot(size_t nr)
{
	return nr * HUGE_PAGES + nr * 37 % HUGE_PAGES;
}

static bool is_hot(size_t page)
{
	return page == hot(page / HUGE_PAGES);
}

/* Each huge page is like its neighbour, or none like another */
static uint64_t contents(size_t page, bool equal)
{
	if (equal)
		page = page / (2 * HUGE_PAGES) * HUGE_PAGES + page % HUGE_PAGES;
	return (seed << 32) + page + 1;
}

static void fill(bool equal)
{
	size_t i;

	seed++;
	for (i = 0; i < PAGES; i++)
		fill_page(mem, i, contents(i, equal));
}

static size_t wrong(void)
{
	size_t i, count = 0;

	for (i = 0; i < PAGES; i++)
		count += !is_hot(i) && !page_holds(mem, i, contents(i, true));
	return count;
}

static void start(bool equal)
{
	mem = map_pages(PAGES, true);
	fill(equal);
	need_huge(mem, PAGES);
}

static void end(void)
{
	munmap(mem, PAGES * PAGE);
	mem = NULL;
	ksm_pass(1);
}

/* A pass, and before it a write to each huge page */
static void hot_pass(void)
{
	static uint64_t value;
	size_t i;

	value++;
	for (i = 0; i < NR_HUGE; i++)
		set_word(mem, hot(i), ~(value << 16 | i));
	ksm_pass(1);
}

/* Passes until so many are merged */
static unsigned int passes_to_merge(uint64_t want, unsigned int limit)
{
	unsigned int passes;

	for (passes = 0; passes < limit; passes++) {
		if (ksm_stat("ksm_merging_pages") >= want)
			break;
		hot_pass();
	}
	ksft_print_msg("%u passes, %lu merged, %lu probed\n", passes,
		       ksm_stat("ksm_merging_pages"), ksm_get("pages_probed"));
	return passes;
}

/* What stock KSM merges of it in the end */
static uint64_t merged_by_stock(void)
{
	uint64_t merged;

	ksm_set("dirty_scan", 0);
	start(true);
	passes_to_merge(~0ULL, LIMIT);
	merged = ksm_stat("ksm_merging_pages");
	end();
	ksm_set("dirty_scan", 1);
	return merged;
}

static void test_early(uint64_t stock)
{
	uint64_t probed = ksm_get("pages_probed");
	unsigned int passes;

	start(true);
	passes = passes_to_merge(stock, LIMIT);
	probed = ksm_get("pages_probed") - probed;
	check(passes <= EARLY,
	      "all is merged that stock KSM merges, in %u passes\n", passes);
	/* The second probe splits those at whose turn there is something to merge */
	check(probed >= PAGES && probed <= 2 * PAGES,
	      "by one probe of each, in two passes: pages_probed %lu\n",
	      probed);
	check(!wrong(), "contents\n");
	hot_pass();
	hot_pass();
	check(ksm_stat("ksm_merging_pages") >= stock &&
		      ksm_get("pages_settled") <= NR_HUGE,
	      "and stays merged, with the hot pages hot\n");
	end();
	check(!ksm_get("pages_sharing") && !ksm_get("pages_settled"),
	      "nothing is left of it\n");
}

/* Until the pass that comes is the given one of @period */
static void wait_for_pass(unsigned int period, unsigned int number)
{
	while (ksm_get("full_scans") % period != number) {
		if (mem)
			hot_pass();
		else
			ksm_pass(1);
	}
}

/*
 * Unlike when they are probed early, equal later: @skip probes go by before that.
 * The probe that is to find it is in passes that are multiples of @period.
 */
static void test_late(uint64_t stock, unsigned int skip, unsigned int period)
{
	uint64_t probed, sums, merged;
	unsigned int passes, due;
	size_t i;

	wait_for_pass(16, 0);
	start(false);
	probed = ksm_get("pages_probed");
	for (i = 0; i < 3; i++)
		hot_pass();
	/* Dirty, its checksum taken, its checksum compared */
	check(ksm_get("pages_probed") - probed == 2 * PAGES &&
		      !ksm_stat("ksm_merging_pages"),
	      "unlike: probed at once, in vain\n");

	for (i = 4; skip--; i *= 4) {
		wait_for_pass(i, 0);
		hot_pass();
		hot_pass();
	}
	fill(true);
	hot_pass();
	due = (period - ksm_get("full_scans") % period) % period;
	probed = ksm_get("pages_probed");
	sums = checksums();
	for (i = 0; i < due; i++)
		hot_pass();
	merged = ksm_stat("ksm_merging_pages");
	check(ksm_get("pages_probed") == probed && checksums() == sums &&
		      !merged,
	      "period %u: %u passes without a probe, nor a checksum\n", period,
	      due);
	passes = passes_to_merge(stock, 4);
	check(passes <= 2,
	      "period %u: %u passes from the probe on, all is merged\n", period,
	      passes);
	check(!wrong(), "period %u: contents\n", period);
	end();
}

/* The counter-check: nobody looks */
static void test_never(uint64_t stock)
{
	uint64_t probed = ksm_get("pages_probed"), sums;

	ksm_set("dirty_scan_probe_passes", 0);
	start(true);
	hot_pass();
	sums = checksums();
	passes_to_merge(stock, 20);
	check(!ksm_stat("ksm_merging_pages") && checksums() == sums &&
		      ksm_get("pages_probed") == probed,
	      "dirty_scan_probe_passes=0: no probe, no checksum, none merged\n");
	ksm_set("dirty_scan_probe_passes", PROBE_DEFAULT);
	/* Where they begin to be probed now, it is from the first stage on */
	check(passes_to_merge(stock, LIMIT) <= EARLY + 4,
	      "turned on again, they merge\n");
	check(!wrong(), "contents\n");
	end();
}

/* The longest period is the knob, rounded down to a power of two */
static void test_longest(void)
{
	uint64_t probed;
	unsigned int i;

	ksm_set("dirty_scan_probe_passes", 7);
	start(false);
	for (i = 0; i < 3; i++)
		hot_pass();
	wait_for_pass(4, 2);
	for (i = 0; i < 8; i++)
		hot_pass();
	probed = ksm_get("pages_probed");
	for (i = 0; i < 16; i++)
		hot_pass();
	probed = ksm_get("pages_probed") - probed;
	check(probed == 16 / 4 * 2 * PAGES,
	      "dirty_scan_probe_passes=7: every four passes, pages_probed %lu\n",
	      probed);
	ksm_set("dirty_scan_probe_passes", PROBE_DEFAULT);
	end();
}

/* A process that ends, and a module that goes, while they are probed */
static void test_unload(void)
{
	int err;

	start(false);
	hot_pass();
	hot_pass();
	err = module_unload("ksm_dirty");
	check(!err, "the module can be unloaded between two probes\n");
	hot_pass();
	need_module("ksm_dirty");
	hot_pass();
	check(!ksm_get("pages_probed"), "and starts over when it is loaded\n");
	end();
}

int main(void)
{
	uint64_t stock;

	ksft_print_header();
	ksft_set_plan(1 + 5 + 2 * 4 + 3 + 1 + 2);
	ksm_setup();
	count_checksums();
	/* ksmd makes no pass where there is nothing mergeable at all */
	map_pages(1, false);
	stock = merged_by_stock();
	check(stock == QUIET, "stock KSM merges %lu of %lu quiet pages\n",
	      stock, QUIET);
	ksm_set("dirty_scan_probe_passes", PROBE_DEFAULT);
	test_early(stock);
	test_late(stock, 0, 4);
	test_late(stock, 1, 16);
	test_never(stock);
	test_longest();
	test_unload();
	ksft_finished();
}
