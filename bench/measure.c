// SPDX-License-Identifier: GPL-2.0
/*
 * measure: what ksmd costs, by ksmd's own CPU time.
 *
 * One writer (see volatile.c), a process or a guest of KVM, at a time has its
 * memory scanned in each variant of KSM in turn, A B C A B C, in one boot. ksmd
 * has a CPU to itself; the writer has another, and so has this program, which
 * only ever sleeps there while something is being timed.
 *
 * ksmd is stepped (ksmd.c), so a pass can wait until the writer has rewritten all
 * memory since the last one.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <libgen.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "measure.h"

static const struct {
	const char *name;
	const char *unit;
} metrics[METRICS] = {
	[KSMD_NS_PER_PAGE] = { "ksmd_ns_per_page", "ns" },
	[KSMD_BETWEEN_NS_PER_PAGE] = { "ksmd_between_ns_per_page", "ns" },
	[KSMD_LOOK_NS_PER_PAGE] = { "ksmd_look_ns_per_page", "ns" },
	[PASSES_TO_99_PERCENT] = { "passes_to_99_percent", "passes" },
	[KSMD_MS_TO_99_PERCENT] = { "ksmd_ms_to_99_percent", "ms" },
	[MERGED_PERCENT] = { "merged_percent", "percent" },
	[PAGES_SHARING] = { "pages_sharing", "pages" },
	[MERGED_PAGES] = { "merged_pages", "pages" },
	[MERGED_PAGES_HELD] = { "merged_pages_held", "pages" },
	[SKIPPED_PERCENT] = { "skipped_percent", "percent" },
	[RMAP_BYTES_PER_PAGE] = { "rmap_bytes_per_page", "bytes" },
	[FULL_SCANS_PER_S] = { "full_scans_per_s", "1/s" },
	[WRITER_SWEEPS_PER_S] = { "writer_sweeps_per_s", "1/s" },
	[WRITER_PAGES_PER_S] = { "writer_pages_per_s", "1/s" },
	[WRITER_PERCENT_OF_OFF] = { "writer_percent_of_off", "percent" },
	[PAGEMAP_SCAN_NS_PER_PAGE] = { "pagemap_scan_ns_per_page", "ns" },
	[WRITE_P50_NS] = { "write_p50_ns", "ns" },
	[WRITE_P99_NS] = { "write_p99_ns", "ns" },
	[WRITE_P999_NS] = { "write_p999_ns", "ns" },
	[VCPU_EXITS_PER_S] = { "vcpu_exits_per_s", "1/s" },
	[MMU_LOCK_READ_NS] = { "mmu_lock_read_ns", "ns" },
};

static const char *const places[PLACES] = { "host", "guest" };

struct settings settings = {
	.mib = 256,
	.rounds = 3,
	.samples = 2,
	.window = 2,
	.variant = { true, true, true, true },
	.mapping = { true, true },
	.place = { true, true },
};

struct series results[VARIANTS][METRICS];

static struct {
	pid_t pid;
	enum place place;
	bool writes; /* all the time */
	uint64_t pages;
	uint64_t mark; /* its writes when the last pass ended */
	struct progress *progress;
	char path[32];
} writer;

static unsigned int thrown_away;

static void on_signal(int sig)
{
	interrupted = sig;
}

/* --- a trace of the calls that hold KVM's mmu_lock for a harvest --- */

#define TRACEFS "/sys/kernel/tracing/"
#define LOCK_TRACE TRACEFS "instances/ksm_dirty_bench/"
#define LOCK_FUNCTION "kvm_arch_test_clear_dirty"

static void lock_trace_stop(void)
{
	if (rmdir(LOCK_TRACE))
		return;
	put(TRACEFS "kprobe_events", "-:ksm_dirty_bench/entry");
	put(TRACEFS "kprobe_events", "-:ksm_dirty_bench/exit");
}

static void lock_trace_write(const char *path, const char *text)
{
	if (!put(path, text))
		fail(EXIT_FAILURE, "%s: cannot write %s: %s", path, text,
		     strerror(errno));
}

static void lock_trace_start(void)
{
	lock_trace_write(TRACEFS "kprobe_events",
			 "p:ksm_dirty_bench/entry " LOCK_FUNCTION);
	lock_trace_write(TRACEFS "kprobe_events",
			 "r:ksm_dirty_bench/exit " LOCK_FUNCTION);
	if (mkdir(LOCK_TRACE, 0755))
		fail(EXIT_FAILURE, LOCK_TRACE ": %s", strerror(errno));
	lock_trace_write(LOCK_TRACE "trace_clock", "x86-tsc");
	lock_trace_write(LOCK_TRACE "events/ksm_dirty_bench/enable", "1");
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * The time in the function, in ticks of the TSC: the median of the calls
 * traced, since an emulated CPU may lose milliseconds in any of them.
 */
static double lock_trace_ticks(void)
{
	static double ticks[4096];
	unsigned int calls = 0;
	uint64_t entered = 0;
	char line[512], *at;
	bool entry;
	FILE *file;

	file = fopen(LOCK_TRACE "trace", "r");
	if (!file)
		fail(EXIT_FAILURE, LOCK_TRACE "trace: %s", strerror(errno));
	while (fgets(line, sizeof(line), file) &&
	       calls < sizeof(ticks) / sizeof(*ticks)) {
		at = strstr(line, ": entry: ");
		entry = at;
		if (!at)
			at = strstr(line, ": exit: ");
		if (!at)
			continue;
		/* The time is the word before. */
		while (at > line && at[-1] != ' ')
			at--;
		if (entry) {
			entered = strtoull(at, NULL, 10);
		} else if (entered) {
			ticks[calls++] = strtoull(at, NULL, 10) - entered;
			entered = 0;
		}
	}
	fclose(file);
	if (!calls)
		fail(EXIT_FAILURE, "no harvest asked KVM: " LOCK_FUNCTION
				   "() was not called");
	qsort(ticks, calls, sizeof(*ticks), ascending);
	return ticks[calls / 2];
}

/* At exit, for whatever reason. */
static void clean_up(void)
{
	lock_trace_stop();
	if (writer.pid > 0)
		kill(writer.pid, SIGKILL);
	if (*writer.path)
		unlink(writer.path);
}

/* --- the writer --- */

static void writer_check(void)
{
	int status;

	if (waitpid(writer.pid, &status, WNOHANG) == writer.pid) {
		writer.pid = 0;
		fail(EXIT_FAILURE, "the writer ended early");
	}
}

/* What the writer does, besides being there. */
enum {
	WRITES = 1, /* rewrites its memory all the time */
	STAMPS = 2, /* and tells the time from each write to the next */
	PAIRS = 4, /* has every page twice */
};

static void writer_start(bool huge, uint64_t mib, unsigned int what,
			 enum place place)
{
	bool writes = what & WRITES;
	double limit = seconds_now() + STUCK_SECONDS;
	char size[24], cpu[8];
	const char *argv[16] = {
		"volatile",	     "--size", size, "--mapping",
		huge ? "thp" : "4k", "--cpu",  cpu,  "--progress",
		writer.path,
	};
	unsigned int argc = 9;
	int fd;

	strcpy(writer.path, "/tmp/ksm_dirty.XXXXXX");
	fd = mkstemp(writer.path);
	if (fd < 0 || ftruncate(fd, sizeof(*writer.progress)))
		fail(EXIT_FAILURE, "%s: %s", writer.path, strerror(errno));
	writer.progress = mmap(NULL, sizeof(*writer.progress), PROT_READ,
			       MAP_SHARED, fd, 0);
	if (writer.progress == MAP_FAILED)
		fail(EXIT_FAILURE, "%s: %s", writer.path, strerror(errno));
	close(fd);

	snprintf(size, sizeof(size), "%" PRIu64, mib);
	snprintf(cpu, sizeof(cpu), "%d", WRITER_CPU);
	if (!writes) {
		argv[argc++] = "--sweeps";
		/* A guest's memory is mapped as the guest writes it. */
		argv[argc++] = place == GUEST ? "1" : "0";
	}
	if (place == GUEST)
		argv[argc++] = "--guest";
	if (what & STAMPS)
		argv[argc++] = "--stamp";
	if (what & PAIRS)
		argv[argc++] = "--pairs";
	writer.place = place;
	writer.writes = writes;
	writer.pages = mib * MIB / PAGE_BYTES;
	fflush(NULL);
	writer.pid = fork();
	if (writer.pid < 0)
		fail(EXIT_FAILURE, "fork: %s", strerror(errno));
	if (!writer.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* stdout is for results */
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execv(settings.writer, (char **)argv);
		fprintf(stderr, "measure: cannot run %s: %s\n", settings.writer,
			strerror(errno));
		_exit(127);
	}
	while (!writer.progress->ready ||
	       ((writes || place == GUEST) && !writer.progress->sweeps)) {
		writer_check();
		if (seconds_now() > limit)
			fail(EXIT_FAILURE, "the writer got nowhere in %d s",
			     STUCK_SECONDS);
		nap(0.01);
	}
	writer.mark = writer.progress->writes;
}

/* Ends the writer, which then checks that its mapping is still as asked. */
static void writer_stop(void)
{
	pid_t pid = writer.pid;
	int status;

	kill(pid, SIGTERM);
	if (waitpid(pid, &status, 0) != pid || status)
		fail(EXIT_FAILURE, "the writer failed, see above");
	writer.pid = 0;
	munmap(writer.progress, sizeof(*writer.progress));
	unlink(writer.path);
	*writer.path = '\0';
	ksmd_reap();
}

/* Until everything has been rewritten since the last pass. */
static void wait_for_writer(void)
{
	uint64_t goal =
		writer.mark + writer.progress->per_sweep + PROGRESS_EVERY;
	double limit = seconds_now() + STUCK_SECONDS;

	while (writer.writes && writer.progress->writes < goal) {
		writer_check();
		if (seconds_now() > limit)
			fail(EXIT_FAILURE,
			     "the writer made no sweep in %d s: use less --size",
			     STUCK_SECONDS);
		nap(0.001);
	}
}

/* From any state into @v, asleep before its next pass. */
static void setup(enum variant v)
{
	ksmd_setup(&variants[v]);
	writer.mark = writer.progress->writes;
}

/* One pass of ksmd over memory that was rewritten since the last: ksmd_step(). */
static bool ksmd_pass(uint64_t *ns)
{
	bool one;

	wait_for_writer();
	one = ksmd_step(ns);
	writer.mark = writer.progress->writes;
	return one;
}

/* --- samples --- */

void add(enum variant v, enum metric m, double value)
{
	struct series *s = &results[v][m];

	if (s->count == MAX_SAMPLES)
		fail(EXIT_FAILURE, "more than %d samples: use less --rounds",
		     MAX_SAMPLES);
	s->value[s->count++] = value;
}

double median(struct series *s)
{
	if (!s->count)
		return NAN;
	qsort(s->value, s->count, sizeof(*s->value), ascending);
	return (s->value[(s->count - 1) / 2] + s->value[s->count / 2]) / 2;
}

/* (largest - smallest) / median, in percent. */
static double spread(struct series *s)
{
	double middle = median(s);

	if (!middle)
		return 0;
	return 100 * (s->value[s->count - 1] - s->value[0]) / middle;
}

/**
 * measure_passes() - what a pass costs
 * @passes: how many to take
 * @alike: they all do the same: take the median, since a short pass is easily
 *         disturbed; else the mean
 * @tries: how many it took
 *
 * Returns nanoseconds per page.
 */
static double measure_passes(unsigned int passes, bool alike,
			     unsigned int *tries)
{
	struct series cost = {};
	double total = 0;
	uint64_t ns;

	*tries = 0;
	while (cost.count < passes) {
		if (++*tries > 2 * passes + 4)
			fail(EXIT_FAILURE,
			     "ksmd runs passes nobody asked for; is anything else setting up KSM?");
		if (!ksmd_pass(&ns)) {
			thrown_away++;
			continue;
		}
		total += ns;
		cost.value[cost.count++] = ns;
	}
	return (alike ? median(&cost) : total / passes) / writer.pages;
}

static void warm_up(unsigned int passes)
{
	uint64_t ns;

	while (passes--)
		ksmd_pass(&ns);
}

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

static uint64_t wait_for_scan(uint64_t scans)
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

/* The writer's speed beside a ksmd that makes a pass now and then. */
static void sample_writer(enum variant v)
{
	ksm_write("sleep_millisecs", PACED_SLEEP_MS);
	add(v, WRITER_PAGES_PER_S,
	    writer_speed() / writer.progress->per_sweep * writer.pages);
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

/* --- comparisons --- */

static unsigned int step, steps;

/* Tells of the progress, and the last sample of @m, where there is one. */
void say(const char *workload, enum place place, bool huge, unsigned int round,
	 enum variant v, enum metric m)
{
	struct series *s = &results[v][m],
		      *fast = &results[v][FULL_SCANS_PER_S];

	fprintf(stderr, "# [%u/%u] %s %s %s round %u/%u %s", ++step, steps,
		workload, places[place], huge ? "thp" : "4k", round + 1,
		settings.rounds, variants[v].name);
	if (s->count)
		fprintf(stderr, ": %s %.1f", metrics[m].name,
			s->value[s->count - 1]);
	if (fast->count)
		fprintf(stderr, ", %.1f passes/s at full speed",
			fast->value[fast->count - 1]);
	fputc('\n', stderr);
}

/**
 * report() - print a row of results.csv
 * @suffix: more to the name of the metric
 */
void report(const char *workload, enum place place, bool huge, enum variant v,
	    enum metric m, const char *suffix)
{
	struct series *s = &results[v][m];

	if (!s->count)
		return;
	printf("%s,%s,%s,%s,%s%s,%.6g,%s,%.3g\n", workload, places[place],
	       huge ? "thp" : "4k", variants[v].name, metrics[m].name, suffix,
	       median(s), metrics[m].unit, spread(s));
	fflush(stdout);
}

/* All that there is of a workload */
void report_all(const char *workload, enum place place, bool huge,
		const char *suffix)
{
	unsigned int v, m;

	for (m = 0; m < METRICS; m++)
		for (v = 0; v < VARIANTS; v++)
			report(workload, place, huge, v, m, suffix);
}

void forget_results(void)
{
	memset(results, 0, sizeof(results));
}

static void measure_variant(enum variant v, bool full)
{
	const struct variant_info *info = &variants[v];
	unsigned int i;

	setup(v);
	if (info->run) {
		if (looks_seldom(v))
			look_every(2, 1);
		warm_up(info->warm_up);
		if (looks_seldom(v))
			sample_look(v);
		for (i = 0; i < settings.samples; i++)
			sample_cost(v);
		add(v, RMAP_BYTES_PER_PAGE,
		    (double)ksm_stat(writer.pid, "ksm_rmap_items") *
			    rmap_item_bytes() / writer.pages);
		if (full)
			sample_saturated(v);
	} else if (full && writer.place == HOST) {
		sample_pagemap_scan();
	}
	if (full && writer.writes)
		sample_writer(v);
}

static void percent_of_off(enum variant v)
{
	struct series *off = &results[OFF][WRITER_PAGES_PER_S];
	struct series *on = &results[v][WRITER_PAGES_PER_S];
	unsigned int i;

	/* Both still in the order of the rounds. */
	for (i = 0; i < off->count && i < on->count; i++)
		add(v, WRITER_PERCENT_OF_OFF,
		    100 * on->value[i] / off->value[i]);
}

static void compare(const char *workload, uint64_t mib, unsigned int what,
		    bool huge, enum place place)
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
	for (v = STOCK; writer.writes && v < VARIANTS; v++)
		percent_of_off(v);
	report_all(workload, writer.place, huge, "");
	writer_stop();
}

static const unsigned int scale_mib[] = { 128, 512, 2048 };

#define SCALE_SIZES (sizeof(scale_mib) / sizeof(*scale_mib))

/* Does the cost of a page grow with the number of pages, or of processes? */
static void scale(bool huge)
{
	unsigned int i, round, what, tries;
	char suffix[24];

	for (what = 0; what <= WRITES; what += WRITES) {
		for (i = 0; i < SCALE_SIZES; i++) {
			forget_results();
			writer_start(huge, scale_mib[i], what, HOST);
			setup(DIRTY);
			look_every(0, 0);
			warm_up(variants[DIRTY].warm_up);
			for (round = 0; round < settings.rounds; round++) {
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
}

/* --- what a guest feels --- */

static uint64_t vcpu_exits(void)
{
	const char *path = "/sys/kernel/debug/kvm/exits";
	char text[64];

	if (!slurp(path, text, sizeof(text)))
		fail(EXIT_FAILURE, "%s: %s: mount debugfs", path,
		     strerror(errno));
	return strtoull(text, NULL, 10);
}

/* Below how many ns this share of the writes of a histogram were made. */
static double percentile(const uint64_t *histogram, double share)
{
	uint64_t total = 0, below = 0;
	double ticks = 0, part;
	unsigned int i;

	for (i = 0; i < LATENCY_BUCKETS; i++)
		total += histogram[i];
	for (i = 0; i < LATENCY_BUCKETS - 1; i++) {
		if (histogram[i] && below + histogram[i] >= share * total) {
			part = (share * total - below) / histogram[i];
			ticks = latency_ticks(i) +
				part * (latency_ticks(i + 1) -
					latency_ticks(i));
			break;
		}
		below += histogram[i];
	}
	return ticks * 1e6 / writer.progress->tsc_khz;
}

static void latency_read(uint64_t *histogram)
{
	unsigned int i;

	for (i = 0; i < LATENCY_BUCKETS; i++)
		histogram[i] = writer.progress->latency[i];
}

/* Beside a ksmd that makes a pass now and then, as sample_writer(). */
static void sample_latency(enum variant v)
{
	static uint64_t before[LATENCY_BUCKETS], after[LATENCY_BUCKETS];
	uint64_t exits;
	unsigned int i;
	double time;

	ksm_write("sleep_millisecs", PACED_SLEEP_MS);
	for (i = 0; i < 15; i++)
		nap(0.02);
	time = seconds_now();
	exits = vcpu_exits();
	latency_read(before);
	nap(settings.window);
	latency_read(after);
	exits = vcpu_exits() - exits;
	add(v, VCPU_EXITS_PER_S, exits / (seconds_now() - time));

	for (i = 0; i < LATENCY_BUCKETS; i++)
		after[i] -= before[i];
	add(v, WRITE_P50_NS, percentile(after, 0.5));
	add(v, WRITE_P99_NS, percentile(after, 0.99));
	add(v, WRITE_P999_NS, percentile(after, 0.999));
}

/* The time mmu_lock is held for a window, and what tracing adds to it. */
static void sample_mmu_lock(enum variant v)
{
	unsigned int i;
	uint64_t ns;

	setup(v);
	ksmd_pass(&ns);
	lock_trace_start();
	for (i = 0; i < 8; i++)
		ksmd_pass(&ns);
	add(v, MMU_LOCK_READ_NS,
	    lock_trace_ticks() * 1e6 / writer.progress->tsc_khz);
	lock_trace_stop();
}

static bool latency_variant(enum variant v)
{
	return settings.variant[v] && v != SMART;
}

/* Does the guest notice? */
static void latency(const char *workload, uint64_t mib, bool huge)
{
	unsigned int round, v;

	forget_results();
	writer_start(huge, mib, WRITES | STAMPS, GUEST);
	for (round = 0; round < settings.rounds; round++) {
		for (v = 0; v < VARIANTS; v++) {
			if (!latency_variant(v))
				continue;
			setup(v);
			look_every(0, 0);
			warm_up(variants[v].warm_up);
			sample_latency(v);
			if (v == DIRTY)
				sample_mmu_lock(v);
			say(workload, writer.place, huge, round, v,
			    KSMD_NS_PER_PAGE);
		}
	}
	report_all(workload, writer.place, huge, "");
	writer_stop();
}

/* --- workloads --- */

#define WORKLOADS 8

static const struct workload {
	const char *name;
	bool place[PLACES];
	bool merges; /* nothing to see with KSM off */
} workloads[WORKLOADS] = {
	{ "volatile", { true, true }, false },
	{ "static", { true, true }, false },
	{ "merged", { true, false }, false },
	{ "late", { true, false }, true },
	{ "parity", { true, false }, true },
	{ "mixed", { true, false }, true },
	{ "scale", { true, false }, false },
	{ "latency", { false, true }, false },
};

static const struct workload *find_workload(const char *name)
{
	unsigned int w;

	for (w = 0; w < WORKLOADS; w++)
		if (!strcmp(name, workloads[w].name))
			return &workloads[w];
	fail(EXIT_USAGE, "unknown workload '%s'; see --help", name);
}

static void run_workload(const struct workload *w, enum place place)
{
	const char *name = w->name;
	/* A guest's sweep takes longer, an unchanging page ten times as long. */
	uint64_t half = settings.mib / 2, quarter = settings.mib / 4;
	unsigned int huge;

	for (huge = 0; huge < 2; huge++) {
		if (!settings.mapping[huge])
			continue;
		if (!strcmp(name, "scale"))
			scale(huge);
		else if (!strcmp(name, "latency"))
			latency(name, half, huge);
		else if (!strcmp(name, "static"))
			compare(name, quarter, 0, huge, place);
		else if (!strcmp(name, "late"))
			late(quarter, huge);
		else if (!strcmp(name, "parity"))
			parity(huge);
		else if (!strcmp(name, "mixed"))
			mixed(half, huge);
		else if (!strcmp(name, "merged"))
			compare(name, quarter, PAIRS, huge, place);
		else
			compare(name, place == GUEST ? half : settings.mib,
				WRITES, huge, place);
	}
}

static bool wanted(const struct workload *w, enum place place)
{
	return w->place[place] && settings.place[place];
}

/* How often a workload has a variant's turn, for one mapping. */
static unsigned int turns(const struct workload *w, enum variant v, bool huge)
{
	if (!settings.variant[v] || (w->merges && v == OFF))
		return 0;
	if (!strcmp(w->name, "parity"))
		return parity_steps(huge);
	if (!strcmp(w->name, "mixed"))
		return 1;
	if (!strcmp(w->name, "late") && v == SMART)
		return 1;
	if (!strcmp(w->name, "latency") && !latency_variant(v))
		return 0;
	if (!strcmp(w->name, "scale"))
		return v != DIRTY ? 0 :
				    settings.rounds * 2 *
					    (SCALE_SIZES + CROWD_SIZES);
	return settings.rounds;
}

static unsigned int steps_of(const struct workload *w)
{
	unsigned int count = 0, v, huge;

	for (v = 0; v < VARIANTS; v++)
		for (huge = 0; huge < 2; huge++)
			if (settings.mapping[huge])
				count += turns(w, v, huge);
	return count * (wanted(w, HOST) + wanted(w, GUEST));
}

/* --- options --- */

static void help(void)
{
	puts("usage: measure [OPTION]... WORKLOAD...\n"
	     "Measures what KSM costs for memory that KSM cannot merge. Needs root "
	     "and two\n"
	     "CPUs; changes KSM's settings and puts them back. Results go to stdout "
	     "as lines\n"
	     "  workload,where,mapping,variant,metric,value,unit,spread\n"
	     "(value: median; spread: largest minus smallest, in percent of it), "
	     "progress\n"
	     "and errors to stderr.\n"
	     "\n"
	     "  volatile            memory rewritten in a loop\n"
	     "  static              memory that does not change, a quarter of --size\n"
	     "  merged              memory that is merged already, a quarter of --size\n"
	     "  late                a process with the contents of another that has settled, a\n"
	     "                      quarter of --size each\n"
	     "  parity              what merges in the end where pages are hot, in 16 or 64 MiB\n"
	     "  mixed               quiet pages with some hot ones and a few that become equal,\n"
	     "                      half of --size\n"
	     "  scale               volatile and static memory from 128 to 2048 MiB, and 128 MiB\n"
	     "                      of 1 to 256 processes, dirty_scan only\n"
	     "  latency             a guest's writes, one after the other, half of "
	     "--size\n"
	     "\n"
	     "  --size MIB          memory scanned, MiB, a multiple of 8 (default "
	     "256; not for\n"
	     "                      scale)\n"
	     "  --where LIST        of host,guest: who rewrites volatile memory, the "
	     "guest half\n"
	     "                      of --size (default both); latency is a guest's, "
	     "all else\n"
	     "                      the host's\n"
	     "  --mappings LIST     of 4k,thp (default both)\n"
	     "  --variants LIST     of off,stock,smart,dirty (default all)\n"
	     "  --rounds N          times that all variants take turns (default 3)\n"
	     "  --samples N         samples of ksmd's cost per round (default 2)\n"
	     "  --window MS         milliseconds for each rate (default 2000)\n"
	     "  --writer PATH       the volatile program (default: beside this one)\n"
	     "  --help              show this\n"
	     "\n"
	     "Exit status: 0 measured, 1 failed, 2 bad usage.");
}

static void choose(const char *option, char *list, bool *chosen,
		   const char *const names[], unsigned int count)
{
	unsigned int i;
	char *word;

	memset(chosen, 0, count * sizeof(*chosen));
	for (word = strtok(list, ","); word; word = strtok(NULL, ",")) {
		for (i = 0; i < count && strcmp(word, names[i]); i++)
			;
		if (i == count)
			fail(EXIT_USAGE, "--%s: '%s' is unknown; see --help",
			     option, word);
		chosen[i] = true;
	}
}

/* Returns the index in @argv of the first workload. */
static int parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "size", required_argument, NULL, 's' },
		{ "where", required_argument, NULL, 'p' },
		{ "mappings", required_argument, NULL, 'm' },
		{ "variants", required_argument, NULL, 'v' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "samples", required_argument, NULL, 'n' },
		{ "window", required_argument, NULL, 't' },
		{ "writer", required_argument, NULL, 'w' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	static const char *const mappings[] = { "4k", "thp" };
	const char *names[VARIANTS];
	unsigned int v;
	int c, i;

	for (v = 0; v < VARIANTS; v++)
		names[v] = variants[v].name;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			settings.mib = number("size", optarg, 8, 1 << 24);
			if (settings.mib % 8)
				fail(EXIT_USAGE,
				     "--size: %s is not a multiple of 8",
				     optarg);
			break;
		case 'p':
			choose("where", optarg, settings.place, places, PLACES);
			break;
		case 'm':
			choose("mappings", optarg, settings.mapping, mappings,
			       2);
			break;
		case 'v':
			choose("variants", optarg, settings.variant, names,
			       VARIANTS);
			break;
		case 'r':
			settings.rounds = number("rounds", optarg, 1, 10);
			break;
		case 'n':
			settings.samples = number("samples", optarg, 1, 10);
			break;
		case 't':
			settings.window =
				number("window", optarg, 10, 600000) / 1000.0;
			break;
		case 'w':
			settings.writer = optarg;
			break;
		case 'h':
			help();
			exit(EXIT_SUCCESS);
		default:
			exit(EXIT_USAGE);
		}
	}
	if (optind == argc)
		fail(EXIT_USAGE, "no workload given; see --help");
	for (i = optind; i < argc; i++)
		if (!steps_of(find_workload(argv[i])))
			fail(EXIT_USAGE,
			     "%s: nothing to measure with this --where and --variants",
			     argv[i]);
	return optind;
}

static void set_up(void)
{
	struct sched_param priority = { .sched_priority = 1 };
	struct sigaction action = { .sa_handler = on_signal };
	static char beside[4096];
	ssize_t n;

	if (!settings.writer) {
		n = readlink("/proc/self/exe", beside, sizeof(beside) - 10);
		beside[n < 0 ? 0 : n] = '\0';
		dirname(beside);
		settings.writer = strcat(beside, "/volatile");
	}
	if (access(settings.writer, X_OK))
		fail(EXIT_FAILURE,
		     "%s: %s; name the volatile program by --writer",
		     settings.writer, strerror(errno));
	if (geteuid())
		fail(EXIT_FAILURE, "not root: KSM's settings need it");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		fail(EXIT_FAILURE,
		     "one CPU: the writer and ksmd need one each");
	if (!ksm_has("run"))
		fail(EXIT_FAILURE, KSM ": %s: boot a kernel with CONFIG_KSM",
		     strerror(errno));
	if (settings.variant[SMART] && !ksm_has("smart_scan"))
		fail(EXIT_FAILURE, KSM
		     "smart_scan is missing: leave smart out of --variants on this kernel");
	if (settings.variant[DIRTY] && !ksm_has("dirty_scan"))
		fail(EXIT_FAILURE,
		     KSM "dirty_scan is missing: load ksm_dirty, or leave "
			 "dirty out of --variants");

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	ksmd_take();
	atexit(clean_up);

	/* Wakes at once beside a busy writer; the writer does not inherit it. */
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority))
		fail(EXIT_FAILURE, "cannot become a real-time process: %s",
		     strerror(errno));
	pin(0, WRITER_CPU);
}

int main(int argc, char **argv)
{
	int first = parse(argc, argv), i;
	const struct workload *w;
	enum place place;

	for (i = first; i < argc; i++)
		steps += steps_of(find_workload(argv[i]));
	set_up();
	for (i = first; i < argc; i++) {
		w = find_workload(argv[i]);
		for (place = HOST; place < PLACES; place++)
			if (wanted(w, place))
				run_workload(w, place);
	}
	if (thrown_away)
		fprintf(stderr, "# %u passes thrown away\n", thrown_away);
	return EXIT_SUCCESS;
}
