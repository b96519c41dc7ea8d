// SPDX-License-Identifier: GPL-2.0
/*
 * What is written to memory is what is read back after reclaim, though the dirty
 * bit was cleared in between.
 *
 *  - Written, harvested, then reclaimed while a copy is in swap already: the
 *    folio has to be dirty, since its page table entry is not.
 *    Seen to fail with: harvest.c without folio_mark_dirty().
 *  - Written through a TLB entry that is still cached as dirty when reclaim
 *    takes the page: reclaim has to flush first (kvm_patches/, pending flush).
 *    By a memory cgroup, since MADV_PAGEOUT has a flush pending of its own.
 *    Seen to fail with: the series without the patch of mm/rmap.c, which lost 13
 *    writes in 40 reclaims.
 *  - Under the pressure of a memory cgroup.
 */
#include "ksm_dirty_util.h"

#include <pthread.h>
#include <sys/stat.h>

#define KPF_SWAPCACHE 13

#define PAGES HUGE_PAGES
#define CHUNK 64 /* pages that reclaim takes at a time */
#define RECLAIM "256K" /* the same, for memory.reclaim */
#define BALLAST (4 * HUGE_PAGES)
#define RACE_SECONDS 5
#define RECLAIMS 40
#define PRESSURE_SECONDS 6

static atomic_bool stop;
static atomic_ulong wrong, writes;
static char *race_mem;

static size_t in_swap(const char *addr, size_t pages)
{
	size_t i, count = 0;

	for (i = 0; i < pages; i++)
		count += pagemap_entry(addr, i) >> 62 & 1;
	return count;
}

/* A clean copy in the swap cache, mapped writable: only the D bit tells. */
static void test_swap_cache(void)
{
	char *mem = map_pages(PAGES, false);
	size_t i, cached = 0, swapped;
	uint64_t skipped;

	fill_pages(mem, PAGES, 1);
	advise(mem, PAGES, MADV_PAGEOUT);
	swapped = in_swap(mem, PAGES);
	/* Into the swap cache; a fault alone would take it past that */
	advise(mem, PAGES, MADV_WILLNEED);
	for (i = 0; i < PAGES; i++) {
		get_word(mem, i);
		cached += page_flag(mem, i, KPF_SWAPCACHE);
	}
	ksft_print_msg("%zu pages swapped, %zu of them in the swap cache\n",
		       swapped, cached);
	check(swapped > PAGES / 2 && cached > PAGES / 2,
	      "pages are mapped from the swap cache\n");

	fill_pages(mem, PAGES, 2);
	skipped = ksm_get("pages_dirty");
	ksm_pass(1);
	check(ksm_get("pages_dirty") - skipped == PAGES,
	      "their dirty bits are harvested\n");
	advise(mem, PAGES, MADV_PAGEOUT);
	check(in_swap(mem, PAGES) > PAGES / 2, "they are reclaimed again\n");
	check(!wrong_pages(mem, PAGES, 2), "and hold what was written last\n");
	munmap(mem, PAGES * PAGE);
}

/* Counts up in all pages, as fast as it goes, and looks at what it left there. */
static void *race_writer(void *unused)
{
	static uint64_t last[PAGES];
	uint64_t value;
	size_t i;

	(void)unused;
	pin_to_cpu(1);
	for (value = 1; !stop; value++) {
		for (i = 0; i < PAGES; i++) {
			wrong += get_word(race_mem, i) != last[i];
			last[i] = value;
			set_word(race_mem, i, value);
		}
		writes += PAGES;
	}
	return NULL;
}

/* A memory cgroup, for pages that are to be reclaimed on demand */
static void group_make(const char *group)
{
	try_write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	if (mkdir(group, 0755) && errno != EEXIST)
		ksft_exit_fail_perror(group);
}

/* What this process touches first from now on is charged to the group */
static void group_enter(const char *group)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	snprintf(text, sizeof(text), "%d", getpid());
	write_file(path, text);
}

/*
 * ksmd harvests the pages under race, then spends long in memory behind them,
 * until it flushes: time for reclaim, which has the same CPU.
 */
static void test_pending_flush(void)
{
	const char *group = "/sys/fs/cgroup/ksm_dirty_race";
	uint64_t harvested, count, swapouts;
	unsigned long reclaims = 0;
	pthread_t thread;
	char path[128];
	char *ballast;
	double start;

	/* Addresses go down from one mmap to the next: ballast is behind */
	ballast = map_pages(BALLAST, false);
	race_mem = map_pages(PAGES, false);
	if (race_mem > ballast)
		ksft_exit_fail_msg("mmap went upwards\n");
	fill_pages(ballast, BALLAST, 3);
	group_make(group);
	group_enter(group);
	memset(race_mem, 0, PAGES * PAGE);
	group_enter("/sys/fs/cgroup");
	snprintf(path, sizeof(path), "%s/memory.reclaim", group);
	pin_to_cpu(0);
	ksmd_pin(0);

	wrong = 0;
	pthread_create(&thread, NULL, race_writer, NULL);
	harvested = ksm_get("pages_dirty");
	swapouts = file_value("/proc/vmstat", "pswpout ");
	ksm_full_speed(100000000);
	for (start = now();
	     now() < start + RACE_SECONDS ||
	     (reclaims < RECLAIMS && now() < start + 4 * RACE_SECONDS);
	     reclaims++) {
		/* Until the pages have been harvested, and not yet flushed */
		count = ksm_get("pages_dirty");
		while (ksm_get("pages_dirty") == count && now() < start + 60)
			usleep(500);
		/* What it cannot get in one go is no failure */
		try_write_file(path, RECLAIM);
	}
	stop = true;
	pthread_join(thread, NULL);
	ksm_stop();
	harvested = ksm_get("pages_dirty") - harvested;
	swapouts = file_value("/proc/vmstat", "pswpout ") - swapouts;
	ksft_print_msg(
		"%lu reclaims, %lu swapped out, %lu writes, %lu harvested, %lu lost\n",
		reclaims, swapouts, (unsigned long)writes, harvested,
		(unsigned long)wrong);
	check(swapouts >= 4 * CHUNK && writes > 20 * PAGES &&
		      harvested > BALLAST + PAGES,
	      "reclaim, writer and ksmd raced\n");
	check(!wrong, "no write was lost on the way to swap\n");
	munmap(race_mem, PAGES * PAGE);
	munmap(ballast, BALLAST * PAGE);
	rmdir(group);
}

#define PRESSURE_PAGES (8 * HUGE_PAGES)

static void *pressure_writer(void *arg)
{
	bool huge = arg;
	char *mem = map_pages(PRESSURE_PAGES, huge);
	uint64_t seed;
	size_t i;

	pin_to_cpu(huge);
	fill_pages(mem, PRESSURE_PAGES, 1);
	for (seed = 2; !stop; seed++) {
		/* The address and the generation, page by page */
		for (i = 0; i < PRESSURE_PAGES && !stop; i++) {
			uint64_t value = ((seed - 1) << 32) + i + 1;

			wrong += !page_holds(mem, i, value);
			fill_page(mem, i, value + (1ULL << 32));
			writes++;
		}
	}
	return mem;
}

static void test_pressure(void)
{
	const char *group = "/sys/fs/cgroup/ksm_dirty_test";
	pthread_t threads[2];
	char path[128], text[32];
	uint64_t harvested, swapouts = file_value("/proc/vmstat", "pswpout ");
	int i;

	group_make(group);
	snprintf(path, sizeof(path), "%s/memory.high", group);
	/* Half of what the writers want */
	snprintf(text, sizeof(text), "%lu", PRESSURE_PAGES * PAGE);
	write_file(path, text);
	group_enter(group);

	stop = false;
	wrong = 0;
	writes = 0;
	harvested = ksm_get("pages_dirty");
	ksm_full_speed(2000);
	for (i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, pressure_writer,
			       i ? (void *)1 : NULL);
	sleep(PRESSURE_SECONDS);
	stop = true;
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ksm_stop();
	swapouts = file_value("/proc/vmstat", "pswpout ") - swapouts;
	harvested = ksm_get("pages_dirty") - harvested;
	ksft_print_msg(
		"%lu pages written, %lu swapped out, %lu harvested, %lu wrong\n",
		(unsigned long)writes, swapouts, harvested,
		(unsigned long)wrong);
	check(swapouts > 1000 && harvested > 1000,
	      "memory was short, and harvested\n");
	check(!wrong, "no page had stale contents under pressure\n");
	group_enter("/sys/fs/cgroup");
	rmdir(group);
}

int main(void)
{
	char swaps[256];

	ksft_print_header();
	ksm_setup();
	read_file("/proc/swaps", swaps, sizeof(swaps));
	if (!strchr(swaps, '/'))
		ksft_exit_skip("no swap\n");
	ksft_set_plan(8);
	test_swap_cache();
	test_pending_flush();
	test_pressure();
	ksft_finished();
}
