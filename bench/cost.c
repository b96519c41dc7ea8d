// SPDX-License-Identifier: GPL-2.0
/*
 * What a pass costs, per page: memory that is rewritten, that does not change, that
 * is merged, and more and more of it. Each variant of KSM has its turn, A B C A B C,
 * over the same memory.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bench.h"
#include "measure.h"
#include "writer.h"

/*
 * dirty_scan looks at what it passes over in a few passes out of thousands, too
 * rarely to wait for: volatile pages in two out of PROBE_PASSES in a row,
 * settled pages in one out of RECHECK_PASSES.  So it is made to look at all of
 * them in each pass, and in none, and the cost is put together from both.
 */
bool looks_seldom(enum variant v)
{
	return v == DIRTY && ksm_has(PROBE_PASSES) && ksm_has(RECHECK_PASSES);
}

/* In what share of the passes a page is looked at, by either. */
double look_share(bool probes, bool rechecks)
{
	uint64_t probe = saved(PROBE_PASSES), recheck = saved(RECHECK_PASSES);
	double share = probes && probe > 1 ? 2.0 / probe : 0;

	if (rechecks && recheck && share * recheck < 1)
		share = 1.0 / recheck;
	return share;
}

/* After a warm-up with looks: from the third pass on, all is under way. */
static void sample_look(enum variant v)
{
	unsigned int tries;

	add(v, KSMD_LOOK_NS_PER_PAGE, measure_passes(2, false, &tries));
	look_every(0, 0);
	warm_up(2);
}

/* One sample: the mean over a whole cycle of the variant. */
static void sample_cost(enum variant v)
{
	unsigned int passes = variants[v].cycle;
	struct series *look = &results[v][KSMD_LOOK_NS_PER_PAGE];
	uint64_t scanned, skipped;
	double visits, cost;
	unsigned int tries;

	scanned = ksm_count("pages_scanned");
	skipped = v == SMART ? ksm_count("pages_skipped") :
		  v == DIRTY ? ksm_count("pages_dirty") :
			       0;
	cost = measure_passes(passes, looks_seldom(v), &tries);
	visits = (double)tries * writer.pages;
	scanned = ksm_count("pages_scanned") - scanned;
	skipped = v == SMART ? ksm_count("pages_skipped") - skipped :
		  v == DIRTY ? ksm_count("pages_dirty") - skipped :
			       0;
	if (v != DIRTY && ksm_has("pages_scanned") &&
	    scanned + skipped < 0.99 * visits)
		fail(EXIT_FAILURE,
		     "ksmd looked at %.0f pages in %u passes over %" PRIu64
		     ": not a measurement of these pages",
		     (double)scanned + skipped, tries, writer.pages);
	if (looks_seldom(v)) {
		add(v, KSMD_BETWEEN_NS_PER_PAGE, cost);
		cost += look_share(writer.writes, !writer.writes) *
			look->value[look->count - 1];
	}
	add(v, KSMD_NS_PER_PAGE, cost);
	if (writer.writes)
		add(v, SKIPPED_PERCENT, 100 * skipped / visits);
}

uint64_t wait_for_scan(uint64_t scans)
{
	double limit = seconds_now() + STUCK_SECONDS;
	uint64_t now;

	while ((now = ksm_read("full_scans")) == scans) {
		writer_check();
		if (seconds_now() > limit)
			fail(EXIT_FAILURE, "ksmd finished no pass in %d s",
			     STUCK_SECONDS);
		nap(0.001);
	}
	return now;
}

/*
 * Words per second that the writer rewrites.
 *
 * An emulated TLB changes its size when it is flushed, and only then, by how
 * much of it was in use: disturbed often, a writer gets a small one and keeps
 * it, ten times slower. So disturb it now and then, the same in every variant,
 * and then not at all.
 */
static double writer_speed(void)
{
	uint64_t writes;
	unsigned int i;
	double time;

	for (i = 0; i < 15; i++)
		nap(0.02);
	time = seconds_now();
	writes = writer.progress->writes;
	nap(settings.window);
	writes = writer.progress->writes - writes;
	return writes / (seconds_now() - time);
}

/*
 * ksmd without sleep, from the end of one pass to the end of another.  dirty_scan
 * still passes over all that it can; the passes that look are added.
 */
static void sample_saturated(enum variant v)
{
	struct series *look = &results[v][KSMD_LOOK_NS_PER_PAGE];
	double time, pass;
	uint64_t scans;

	ksm_write("sleep_millisecs", 0);
	scans = wait_for_scan(ksm_read("full_scans"));
	time = seconds_now();
	if (writer.writes)
		add(v, WRITER_SWEEPS_PER_S,
		    writer_speed() / writer.progress->per_sweep);
	else
		nap(settings.window);
	scans = wait_for_scan(ksm_read("full_scans")) - scans;
	pass = (seconds_now() - time) / scans;
	if (looks_seldom(v))
		pass += look_share(writer.writes, !writer.writes) *
			look->value[look->count - 1] * writer.pages / 1e9;
	add(v, FULL_SCANS_PER_S, 1 / pass);
}

/* How often, and for how long, the writer is looked at without a pass and with one */
#define WRITER_PAIRS 4
#define WRITER_WINDOW 0.2

static double writer_pages(void)
{
	uint64_t writes = writer.progress->writes;
	double time = seconds_now();

	nap(WRITER_WINDOW);
	writes = writer.progress->writes - writes;
	return writes / (seconds_now() - time) / writer.progress->per_sweep *
	       writer.pages;
}

/*
 * What a pass costs the writer: pages rewritten while ksmd makes one, against as
 * long a time just before in which it sleeps, as it does with KSM off.
 */
static void sample_writer(enum variant v)
{
	double alone, beside;
	unsigned int i;

	ksm_write("sleep_millisecs", STEP_SLEEP_MS);
	ksmd_settle();
	for (i = 0; i < WRITER_PAIRS; i++) {
		alone = writer_pages();
		if (variants[v].run)
			ksmd_wake();
		beside = writer_pages();
		ksmd_settle();
		add(v, WRITER_PAGES_PER_S, beside);
		add(v, WRITER_PERCENT_OF_OFF, 100 * beside / alone);
		add(v, WRITER_NS_PER_PAGE,
		    (1 - beside / alone) * WRITER_WINDOW * 1e9 / writer.pages);
	}
}

#ifndef PAGEMAP_SCAN
struct page_region {
	uint64_t start, end, categories;
};

struct pm_scan_arg {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask;
	uint64_t return_mask;
};

#define PAGEMAP_SCAN _IOWR('f', 16, struct pm_scan_arg)
#define PAGE_IS_WRITTEN (1 << 1)
#endif

/* What the kernel's own fastest walk over the memory takes, on ksmd's CPU. */
static void sample_pagemap_scan(void)
{
	struct page_region regions[64];
	struct pm_scan_arg arg;
	struct timespec from, to;
	char path[64];
	int fd, i, n;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", writer.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail(EXIT_FAILURE, "%s: %s", path, strerror(errno));
	pin(0, KSMD_CPU);
	for (i = 0; i < 12; i++) {
		arg = (struct pm_scan_arg){
			.size = sizeof(arg),
			.start = writer.progress->start,
			.end = writer.progress->start + writer.progress->bytes,
			.vec = (uintptr_t)regions,
			.vec_len = sizeof(regions) / sizeof(*regions),
			.category_mask = PAGE_IS_WRITTEN,
			.return_mask = PAGE_IS_WRITTEN,
		};
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
		n = ioctl(fd, PAGEMAP_SCAN, &arg);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
		if (n < 0)
			fail(EXIT_FAILURE,
			     "PAGEMAP_SCAN: %s (needs Linux 6.7 or later)",
			     strerror(errno));
		if (arg.walk_end != arg.end)
			fail(EXIT_FAILURE,
			     "PAGEMAP_SCAN stopped before the end");
		/* The first two warm up. */
		if (i >= 2)
			add(OFF, PAGEMAP_SCAN_NS_PER_PAGE,
			    ((to.tv_sec - from.tv_sec) * 1e9 + to.tv_nsec -
			     from.tv_nsec) /
				    writer.pages);
	}
	pin(0, WRITER_CPU);
	close(fd);
}

static void measure_variant(enum variant v, bool full)
{
	const struct variant_info *info = &variants[v];
	unsigned int i;

	writer_setup(v);
	if (info->run) {
		if (looks_seldom(v))
			look_every(2, 1);
		warm_up(info->warm_up);
		if (looks_seldom(v))
			sample_look(v);
		for (i = 0; i < settings.samples; i++)
			sample_cost(v);
		add(v, RMAP_BYTES_PER_PAGE,
		    (double)process_stat(writer.pid, "ksm_rmap_items") *
			    rmap_item_bytes() / writer.pages);
		if (full)
			sample_saturated(v);
	} else if (full && writer.place == HOST) {
		sample_pagemap_scan();
	}
	if (full && writer.writes)
		sample_writer(v);
}

void compare(const char *workload, uint64_t mib, unsigned int what, bool huge,
	     enum place place)
{
	/* They take time, and are of interest where somebody writes. */
	bool rates = what & WRITES || (place == HOST && !(what & PAIRS));
	unsigned int round, v;
	uint64_t shared, merged;

	forget_results();
	writer_start(huge, mib, what, place);
	shared = ksm_read("pages_shared") + ksm_read("pages_sharing");
	for (round = 0; round < settings.rounds; round++) {
		for (v = 0; v < VARIANTS; v++) {
			if (!settings.variant[v])
				continue;
			measure_variant(v, rates);
			say(workload, writer.place, huge, round, v,
			    KSMD_NS_PER_PAGE);
		}
	}
	merged = ksm_read("pages_shared") + ksm_read("pages_sharing") - shared;
	if (what & PAIRS ? merged < 0.99 * writer.pages : merged)
		fail(EXIT_FAILURE,
		     "%" PRIu64 " of %" PRIu64
		     " pages are merged where %s are alike: not a measurement",
		     merged, writer.pages, what & PAIRS ? "all" : "none");
	report_all(workload, writer.place, huge, "");
	writer_stop();
}

static const unsigned int scale_mib[SCALE_SIZES] = { 128, 512, 2048 };

/* Does the cost of a page grow with the number of pages, or of processes? */
void scale(bool huge)
{
	unsigned int i, round, what, tries;
	char suffix[24];

	for (what = 0; what <= WRITES; what += WRITES) {
		for (i = 0; i < SCALE_SIZES; i++) {
			forget_results();
			writer_start(huge, scale_mib[i], what, HOST);
			writer_setup(DIRTY);
			look_every(0, 0);
			warm_up(variants[DIRTY].warm_up);
			for (round = 0; round < SCALE_ROUNDS; round++) {
				add(DIRTY, KSMD_BETWEEN_NS_PER_PAGE,
				    measure_passes(16, true, &tries));
				say(what ? "scale: volatile," :
					   "scale: static,",
				    HOST, huge, round, DIRTY,
				    KSMD_BETWEEN_NS_PER_PAGE);
			}
			writer_stop();
			snprintf(suffix, sizeof(suffix), "_%s_%u_mib",
				 what ? "volatile" : "static", scale_mib[i]);
			report("scale", HOST, huge, DIRTY,
			       KSMD_BETWEEN_NS_PER_PAGE, suffix);
		}
	}
	crowd(huge);
	if (!huge)
		empty_space();
}
