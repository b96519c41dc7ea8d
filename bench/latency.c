// SPDX-License-Identifier: GPL-2.0
/* What a guest feels: the time its writes take, its exits, and KVM's mmu_lock. */
#define _GNU_SOURCE
#include "bench.h"
#include "measure.h"
#include "trace.h"
#include "writer.h"

#define LOCK_FUNCTION "kvm_arch_test_clear_dirty"

/* Short turns, many of them: the machine's speed drifts. */
#define SLICES 3

static uint64_t vcpu_exits(void)
{
	const char *path = "/sys/kernel/debug/kvm/exits";
	char text[64];

	if (!slurp(path, text, sizeof(text)))
		fail(EXIT_FAILURE, "%s: %s: mount debugfs", path,
		     strerror(errno));
	return strtoull(text, NULL, 10);
}

/* Beside a ksmd that makes a pass now and then. */
static void sample_latency(enum variant v)
{
	static uint64_t before[LATENCY_BUCKETS], after[LATENCY_BUCKETS];
	uint64_t exits, khz = writer.progress->tsc_khz;
	unsigned int i;
	double time;

	ksm_write("sleep_millisecs", PACED_SLEEP_MS);
	for (i = 0; i < 15; i++)
		nap(0.02);
	time = seconds_now();
	exits = vcpu_exits();
	read_histogram(before, writer.progress->latency);
	nap(settings.window / SLICES);
	read_histogram(after, writer.progress->latency);
	exits = vcpu_exits() - exits;
	add(v, VCPU_EXITS_PER_S, exits / (seconds_now() - time));

	for (i = 0; i < LATENCY_BUCKETS; i++)
		after[i] -= before[i];
	add(v, WRITE_P50_NS, percentile(after, khz, 0.5));
	add(v, WRITE_P99_NS, percentile(after, khz, 0.99));
	add(v, WRITE_P999_NS, percentile(after, khz, 0.999));
}

/* The time mmu_lock is held for a window, and what tracing adds to it. */
static void sample_mmu_lock(enum variant v)
{
	unsigned int i, calls;
	double *ticks;
	uint64_t ns;

	writer_setup(v);
	ksmd_pass(&ns);
	trace_function(LOCK_FUNCTION);
	for (i = 0; i < 8; i++)
		ksmd_pass(&ns);
	/* The median: an emulated CPU may lose milliseconds in any call. */
	ticks = trace_spans("entry", "exit", &calls);
	add(v, MMU_LOCK_READ_NS,
	    ticks[calls / 2] * 1e6 / writer.progress->tsc_khz);
	free(ticks);
	trace_stop();
}

static double last(enum variant v, enum metric m)
{
	struct series *s = &results[v][m];

	return s->count ? s->value[s->count - 1] : 0;
}

static void latency_slice(void)
{
	unsigned int v;

	for (v = 0; v < VARIANTS; v++) {
		if (!beside_off(v))
			continue;
		writer_setup(v);
		look_every(0, 0);
		warm_up(variants[v].warm_up);
		sample_latency(v);
		if (last(OFF, WRITE_P999_NS))
			add(v, WRITE_P999_PERCENT_OF_OFF,
			    100 * last(v, WRITE_P999_NS) /
				    last(OFF, WRITE_P999_NS));
	}
}

/* Does the guest notice? */
void latency(const char *workload, uint64_t mib, bool huge)
{
	unsigned int round, slice, v;

	forget_results();
	writer_start(huge, mib, WRITES | STAMPS, GUEST);
	for (round = 0; round < settings.rounds; round++) {
		for (slice = 0; slice < SLICES; slice++)
			latency_slice();
		if (settings.variant[DIRTY])
			sample_mmu_lock(DIRTY);
		for (v = 0; v < VARIANTS; v++)
			if (beside_off(v))
				say(workload, writer.place, huge, round, v,
				    WRITE_P999_NS);
	}
	report_all(workload, writer.place, huge, "");
	writer_stop();
}
