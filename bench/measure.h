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
	PASSES_TO_99_PERCENT,
	KSMD_MS_TO_99_PERCENT,
	MERGED_PERCENT,
	PAGES_SHARING,
	MERGED_PAGES,
	MERGED_PAGES_HELD,
	SKIPPED_PERCENT,
	RMAP_BYTES_PER_PAGE,
	FULL_SCANS_PER_S,
	WRITER_SWEEPS_PER_S,
	WRITER_PAGES_PER_S,
	WRITER_PERCENT_OF_OFF,
	PAGEMAP_SCAN_NS_PER_PAGE,
	WRITE_P50_NS,
	WRITE_P99_NS,
	WRITE_P999_NS,
	VCPU_EXITS_PER_S,
	MMU_LOCK_READ_NS,
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
	const char *writer;
};

extern struct settings settings;
extern struct series results[VARIANTS][METRICS];

void add(enum variant v, enum metric m, double value);
double median(struct series *s);
void forget_results(void);
bool looks_seldom(enum variant v);
double look_share(bool probes, bool rechecks);
void say(const char *workload, enum place place, bool huge, unsigned int round,
	 enum variant v, enum metric m);
void report(const char *workload, enum place place, bool huge, enum variant v,
	    enum metric m, const char *suffix);
void report_all(const char *workload, enum place place, bool huge,
		const char *suffix);

/* merge.c */
#define CROWD_SIZES 3
void crowd(bool huge);
void late(uint64_t mib, bool huge);
void mixed(uint64_t mib, bool huge);
void parity(bool huge);
unsigned int parity_steps(bool huge);

#endif
