// SPDX-License-Identifier: GPL-2.0
/* Samples, and the rows and the progress that they are reported by. */
#define _GNU_SOURCE
#include <math.h>

#include "bench.h"
#include "measure.h"

static const struct {
	const char *name;
	const char *unit;
} metrics[METRICS] = {
	[KSMD_NS_PER_PAGE] = { "ksmd_ns_per_page", "ns" },
	[KSMD_BETWEEN_NS_PER_PAGE] = { "ksmd_between_ns_per_page", "ns" },
	[KSMD_LOOK_NS_PER_PAGE] = { "ksmd_look_ns_per_page", "ns" },
	[KSMD_MS_PER_PASS] = { "ksmd_ms_per_pass", "ms" },
	[PASSES_TO_99_PERCENT] = { "passes_to_99_percent", "passes" },
	[KSMD_MS_TO_99_PERCENT] = { "ksmd_ms_to_99_percent", "ms" },
	[MERGED_PERCENT] = { "merged_percent", "percent" },
	[PAGES_SHARING] = { "pages_sharing", "pages" },
	[GENERAL_PROFIT_KIB] = { "general_profit_kib", "KiB" },
	[MERGED_PAGES] = { "merged_pages", "pages" },
	[MERGED_PAGES_HELD] = { "merged_pages_held", "pages" },
	[SKIPPED_PERCENT] = { "skipped_percent", "percent" },
	[RMAP_BYTES_PER_PAGE] = { "rmap_bytes_per_page", "bytes" },
	[FULL_SCANS_PER_S] = { "full_scans_per_s", "1/s" },
	[WRITER_SWEEPS_PER_S] = { "writer_sweeps_per_s", "1/s" },
	[WRITER_PAGES_PER_S] = { "writer_pages_per_s", "1/s" },
	[WRITER_NS_PER_PAGE] = { "writer_ns_per_page", "ns" },
	[WRITER_PERCENT_OF_OFF] = { "writer_percent_of_off", "percent" },
	[PAGEMAP_SCAN_NS_PER_PAGE] = { "pagemap_scan_ns_per_page", "ns" },
	[WRITE_P50_NS] = { "write_p50_ns", "ns" },
	[WRITE_P99_NS] = { "write_p99_ns", "ns" },
	[WRITE_P999_NS] = { "write_p999_ns", "ns" },
	[WRITE_P999_PERCENT_OF_OFF] = { "write_p999_percent_of_off",
					"percent" },
	[VCPU_EXITS_PER_S] = { "vcpu_exits_per_s", "1/s" },
	[MMU_LOCK_READ_NS] = { "mmu_lock_read_ns", "ns" },
	[MMAP_LOCK_P999_US] = { "mmap_lock_p999_us", "us" },
	[MMAP_LOCK_MAX_US] = { "mmap_lock_max_us", "us" },
	[WINDOW_P50_US] = { "window_p50_us", "us" },
	[WINDOW_MAX_US] = { "window_max_us", "us" },
	[MMAP_P50_US] = { "mmap_p50_us", "us" },
	[MMAP_P999_US] = { "mmap_p999_us", "us" },
	[FAULT_P50_US] = { "fault_p50_us", "us" },
	[FAULT_P999_US] = { "fault_p999_us", "us" },
	[FAULTS_PER_S] = { "faults_per_s", "1/s" },
	[FAULTS_PERCENT_OF_OFF] = { "faults_percent_of_off", "percent" },
	[PAGED_OUT_PERCENT] = { "paged_out_percent", "percent" },
	[PAGEOUT_US_PER_PAGE] = { "pageout_us_per_page", "us" },
	[PAGEIN_US_PER_PAGE] = { "pagein_us_per_page", "us" },
	[PUSHED_OUT_PERCENT] = { "pushed_out_percent", "percent" },
	[REREAD_US_PER_PAGE] = { "reread_us_per_page", "us" },
	[FALSE_CLEAN_PERCENT] = { "false_clean_percent", "percent" },
	[FALSE_DIRTY_PERCENT] = { "false_dirty_percent", "percent" },
	[FUNCTION_NS_PER_PAGE] = { "ns_per_page_in", "ns" },
};

const char *const places[PLACES] = { "host", "guest" };

struct series results[VARIANTS][METRICS];

int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

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

/* Of what others than ksmd notice: smart_scan is stock with fewer checksums. */
bool beside_off(enum variant v)
{
	return settings.variant[v] && v != SMART;
}

/* Copies one that somebody is adding to. */
void read_histogram(uint64_t *to, const volatile uint64_t *from)
{
	unsigned int i;

	for (i = 0; i < LATENCY_BUCKETS; i++)
		to[i] = from[i];
}

/**
 * percentile() - of a histogram of times
 * @histogram: LATENCY_BUCKETS of them
 * @khz: ticks in a millisecond
 * @share: of the entries
 *
 * Returns below how many ns that share is.
 */
double percentile(const uint64_t *histogram, uint64_t khz, double share)
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
	return ticks * 1e6 / khz;
}

/* How far all is, in turns of a variant */
static unsigned int step;
unsigned int steps;

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
