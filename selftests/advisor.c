// SPDX-License-Identifier: GPL-2.0
/*
 * KSM's advisor sets pages_to_scan so that a pass takes as long as it was told.
 * It gets there as well where nearly all pages are passed over, written ones and
 * settled ones, since those are charged against pages_to_scan too.
 *
 * Seen to fail with: harvest.c and ksm_dirty_cost() charging nothing.
 */
#include "ksm_dirty_util.h"

#include <pthread.h>

#define PAGES (64 * HUGE_PAGES)
#define TARGET_SECONDS 1
#define SETTLE_SECONDS 10
#define SECONDS 8

static const char *const knobs[] = {
	"advisor_min_pages_to_scan",
	"advisor_max_pages_to_scan",
	"advisor_target_scan_time",
};

static atomic_bool stop;

static void *writer(void *mem)
{
	uint64_t value = 0;

	while (!stop)
		rewrite_pages(mem, PAGES / 2, ++value);
	return NULL;
}

int main(void)
{
	uint64_t saved[ARRAY_SIZE(knobs)], scans, skipped, looked, pages;
	pthread_t thread;
	double start;
	size_t i;
	char *mem;

	ksft_print_header();
	ksft_set_plan(3);
	ksm_setup();
	for (i = 0; i < ARRAY_SIZE(knobs); i++)
		saved[i] = ksm_get(knobs[i]);

	mem = map_pages(PAGES, false);
	fill_pages(mem, PAGES, 1);

	ksm_pass(2);
	pthread_create(&thread, NULL, writer, mem + PAGES / 2 * PAGE);

	ksm_stop();
	ksm_set("advisor_min_pages_to_scan", 1);
	ksm_set("advisor_max_pages_to_scan", 30000);
	ksm_set("advisor_target_scan_time", TARGET_SECONDS);
	ksm_set("pages_to_scan", 1000);
	write_file(KSM_DIR "/advisor_mode", "scan-time");
	ksm_set("sleep_millisecs", 20);
	ksm_set("run", 1);
	for (start = now(); now() < start + SETTLE_SECONDS;)
		usleep(100000);

	scans = ksm_get("full_scans");
	looked = ksm_get("pages_scanned");
	skipped = ksm_get("pages_dirty") + ksm_get("settled_passed_over");
	for (start = now(); now() < start + SECONDS;)
		usleep(10000);
	scans = ksm_get("full_scans") - scans;
	looked = ksm_get("pages_scanned") - looked;
	skipped = ksm_get("pages_dirty") + ksm_get("settled_passed_over") -
		  skipped;
	pages = ksm_get("pages_to_scan");
	stop = true;
	pthread_join(thread, NULL);
	ksm_stop();
	write_file(KSM_DIR "/advisor_mode", "none");
	for (i = 0; i < ARRAY_SIZE(knobs); i++)
		ksm_set(knobs[i], saved[i]);

	ksft_print_msg(
		"%lu passes in %d s, pages_to_scan %lu, %lu pages passed over, %lu looked at\n",
		scans, SECONDS, pages, skipped, looked);
	check(skipped > 20 * looked, "nearly all pages are passed over\n");
	check(scans >= SECONDS / 4 / TARGET_SECONDS &&
		      scans <= 2 * SECONDS / TARGET_SECONDS,
	      "a pass takes about as long as the advisor was told\n");
	check(pages > 1 && pages < 1000, "by what it made of pages_to_scan\n");
	ksft_finished();
}
