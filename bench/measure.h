/* SPDX-License-Identifier: GPL-2.0 */
/* What the workloads share: settings, samples and how they are reported. */
#ifndef KSM_DIRTY_BENCH_MEASURE_H
#define KSM_DIRTY_BENCH_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "ksmd.h"

enum metric {
	KSMD_NS_PER_PAGE,
	KSMD_BETWEEN_NS_PER_PAGE,
	KSMD_LOOK_NS_PER_PAGE,
	KSMD_MS_PER_PASS,
	PASSES_TO_99_PERCENT,
	KSMD_MS_TO_99_PERCENT,
	MERGED_PERCENT,
	PAGES_SHARING,
	GENERAL_PROFIT_KIB,
	MERGED_PAGES,
	MERGED_PAGES_HELD,
	SKIPPED_PERCENT,
	RMAP_BYTES_PER_PAGE,
	FULL_SCANS_PER_S,
	WRITER_SWEEPS_PER_S,
	WRITER_PAGES_PER_S,
	WRITER_NS_PER_PAGE,
	WRITER_PERCENT_OF_OFF,
	PAGEMAP_SCAN_NS_PER_PAGE,
	WRITE_P50_NS,
	WRITE_P99_NS,
	WRITE_P999_NS,
	WRITE_P999_PERCENT_OF_OFF,
	VCPU_EXITS_PER_S,
	MMU_LOCK_READ_NS,
	MMAP_LOCK_P999_US,
	MMAP_LOCK_MAX_US,
	WINDOW_P50_US,
	WINDOW_MAX_US,
	MMAP_P50_US,
	MMAP_P999_US,
	FAULT_P50_US,
	FAULT_P999_US,
	FAULTS_PER_S,
	FAULTS_PERCENT_OF_OFF,
	PAGED_OUT_PERCENT,
	PAGEOUT_US_PER_PAGE,
	PAGEIN_US_PER_PAGE,
	PUSHED_OUT_PERCENT,
	REREAD_US_PER_PAGE,
	FALSE_CLEAN_PERCENT,
	FALSE_DIRTY_PERCENT,
	FUNCTION_NS_PER_PAGE,
	METRICS
};

#define MAX_SAMPLES 128

struct series {
	double value[MAX_SAMPLES];
	unsigned int count;
};

enum place { HOST, GUEST, PLACES };

struct settings {
	uint64_t mib;
	unsigned int rounds;
	unsigned int samples;
	double window;
	bool variant[VARIANTS];
	bool mapping[2];
	bool place[PLACES];
	const char *programs; /* where those that it runs are */
};

extern struct settings settings;
extern struct series results[VARIANTS][METRICS];
extern const char *const places[PLACES];
extern unsigned int steps;

void add(enum variant v, enum metric m, double value);
double median(struct series *s);
bool beside_off(enum variant v);
void read_histogram(uint64_t *to, const volatile uint64_t *from);
double percentile(const uint64_t *histogram, uint64_t khz, double share);
int ascending(const void *a, const void *b);
void forget_results(void);
bool looks_seldom(enum variant v);
double look_share(bool probes, bool rechecks);
void say(const char *workload, enum place place, bool huge, unsigned int round,
	 enum variant v, enum metric m);
void report(const char *workload, enum place place, bool huge, enum variant v,
	    enum metric m, const char *suffix);
void report_all(const char *workload, enum place place, bool huge,
		const char *suffix);

/* The workloads, and the files they are in */

/* cost.c */
#define SCALE_SIZES 3
/* Each takes the median of many passes. */
#define SCALE_ROUNDS 1
void compare(const char *workload, uint64_t mib, unsigned int what, bool huge,
	     enum place place);
void scale(bool huge);
uint64_t wait_for_scan(uint64_t scans);

/* merge.c */
#define CROWD_SIZES 3
#define EMPTY_SPACES 2
void crowd(bool huge);
void empty_space(void);
unsigned int late_rounds(enum variant v, enum place place);
void late(uint64_t mib, bool huge, enum place place);
void mixed(uint64_t mib, bool huge, enum place place);
void parity(bool huge);
unsigned int parity_steps(bool huge);
void fallen_quiet(bool huge);

/* latency.c */
void latency(const char *workload, uint64_t mib, bool huge);

/* accuracy.c */
void accuracy(uint64_t mib, bool huge, enum place place);

/* pressure.c */
/*
 * Threads, and vCPUs. With two of those, QEMU's TCG (7.2) brings the kernel down or
 * to a halt every few minutes, the unpatched one too (WARN in hrtimer_forward()).
 */
#define FAULT_THREADS(place) ((place) == GUEST ? 1U : 2U)
void pagein(uint64_t mib, bool huge);
void fault(bool huge, enum place place);
void hold(uint64_t mib, bool huge);

/* profile.c */
void impact(uint64_t mib, bool huge, enum place place);

#endif
