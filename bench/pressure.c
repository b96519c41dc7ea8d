// SPDX-License-Identifier: GPL-2.0
/*
 * What ksmd at full speed, or nearly so, does to the rest of the machine: to those
 * who fault memory in, to those who map it, and to reclaim.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor.h"
#include "bench.h"
#include "measure.h"
#include "trace.h"
#include "writer.h"

/*
 * ksmd makes one pass after the other, with so much sleep in between; without those
 * passes that probe or recheck.
 */
static void start_passes(enum variant v, unsigned int sleep_ms)
{
	ksmd_setup(&variants[v]);
	look_every(0, 0);
	if (!variants[v].run)
		return;
	ksm_write("sleep_millisecs", sleep_ms);
	wait_for_scan(ksm_read("full_scans"));
}

static void faults_start(bool huge, uint64_t mib, enum place place,
			 unsigned int threads, bool churn)
{
	char size[24], cpu[8], count[8];
	const char *argv[16] = {
		"faults",
		"--size",
		size,
		"--mapping",
		huge ? "thp" : "4k",
		"--threads",
		count,
		"--cpu",
		cpu,
	};
	unsigned int argc = 9;

	snprintf(size, sizeof(size), "%" PRIu64, mib);
	snprintf(cpu, sizeof(cpu), "%d", WRITER_CPU);
	snprintf(count, sizeof(count), "%u", threads);
	if (place == GUEST)
		argv[argc++] = "--guest";
	if (churn)
		argv[argc++] = "--churn";
	writer.place = place;
	writer.writes = true;
	writer.pages = threads * mib * MIB / PAGE_BYTES;
	writer_spawn(argv, true);
}

/* --- fault: page faults, while ksmd scans what is faulted in --- */

/* sleep_millisecs as the kernel has it, but for a whole pass */
#define FAULT_SLEEP_MS 20

#define FAULT_MIB 16
/* Short turns, many of them: the machine's speed drifts. */
#define FAULT_SLICES 3

static double fault_rate(void)
{
	uint64_t faults = writer.progress->writes;
	double time = seconds_now();

	nap(settings.window / FAULT_SLICES);
	writer_check();
	return (writer.progress->writes - faults) / (seconds_now() - time);
}

void fault(bool huge, enum place place)
{
	unsigned int threads, round, slice, v;
	char suffix[24];

	for (threads = 1; threads <= FAULT_THREADS(place); threads++) {
		forget_results();
		faults_start(huge, FAULT_MIB, place, threads, false);
		for (round = 0; round < settings.rounds; round++) {
			for (slice = 0; slice < FAULT_SLICES; slice++) {
				double off = 0, rate;

				for (v = 0; v < VARIANTS; v++) {
					if (!beside_off(v))
						continue;
					start_passes(v, FAULT_SLEEP_MS);
					rate = fault_rate();
					add(v, FAULTS_PER_S, rate);
					if (v == OFF)
						off = rate;
					else if (off)
						add(v, FAULTS_PERCENT_OF_OFF,
						    100 * rate / off);
				}
			}
			for (v = 0; v < VARIANTS; v++)
				if (beside_off(v))
					say("fault", place, huge, round, v,
					    FAULTS_PER_S);
		}
		snprintf(suffix, sizeof(suffix), "_%u_threads", threads);
		report_all("fault", place, huge, suffix);
		writer_stop();
	}
}

/* --- hold: how long ksmd holds mmap_lock, and who feels it --- */

static void sample_times(enum variant v)
{
	static uint64_t maps[2][LATENCY_BUCKETS], faults[2][LATENCY_BUCKETS];
	uint64_t khz = writer.progress->tsc_khz;
	unsigned int i;

	read_histogram(maps[0], writer.progress->latency);
	read_histogram(faults[0], writer.progress->faults);
	nap(settings.window);
	writer_check();
	read_histogram(maps[1], writer.progress->latency);
	read_histogram(faults[1], writer.progress->faults);
	for (i = 0; i < LATENCY_BUCKETS; i++) {
		maps[1][i] -= maps[0][i];
		faults[1][i] -= faults[0][i];
	}
	add(v, MMAP_P50_US, percentile(maps[1], khz, 0.5) / 1e3);
	add(v, MMAP_P999_US, percentile(maps[1], khz, 0.999) / 1e3);
	add(v, FAULT_P50_US, percentile(faults[1], khz, 0.5) / 1e3);
	add(v, FAULT_P999_US, percentile(faults[1], khz, 0.999) / 1e3);
}

/**
 * struct hold_trace - a stretch of what ksmd does
 * @function: from the call of this one to its end; NULL: mmap_lock, by its tracepoints
 * @share: how many in a thousand are no longer than @metric says
 * @metric: of @share
 * @max: of the longest
 */
struct hold_trace {
	const char *function;
	unsigned int share;
	enum metric metric;
	enum metric max;
};

static const struct hold_trace lock_trace = {
	NULL,
	999,
	MMAP_LOCK_P999_US,
	MMAP_LOCK_MAX_US,
};

/* Takes the page table lock once, for all but counting what it found. */
static const struct hold_trace window_trace = {
	"ksm_dirty:harvest_pmd_entry",
	500,
	WINDOW_P50_US,
	WINDOW_MAX_US,
};

/*
 * Traces are turned on and off while nobody comes by: patching code that the other
 * CPU runs at that moment is more than some emulators bear.
 */
static void sample_holds(enum variant v, double khz,
			 const struct hold_trace *trace)
{
	unsigned int holds;
	double *ticks;

	ksm_write("sleep_millisecs", STEP_SLEEP_MS);
	ksmd_settle();
	kill(writer.pid, SIGSTOP);
	if (trace->function)
		trace_function(trace->function);
	else
		trace_events("mmap_lock", ksmd_pid());
	kill(writer.pid, SIGCONT);
	ksm_write("sleep_millisecs", 0);
	nap(0.2);
	ksm_write("sleep_millisecs", STEP_SLEEP_MS);
	ksmd_settle();
	kill(writer.pid, SIGSTOP);
	ticks = trace->function ? trace_spans("entry", "exit", &holds) :
				  trace_spans("mmap_lock_acquire_returned",
					      "mmap_lock_released", &holds);
	trace_stop();
	kill(writer.pid, SIGCONT);
	add(v, trace->metric,
	    ticks[(uint64_t)holds * trace->share / 1000] * 1e3 / khz);
	add(v, trace->max, ticks[holds - 1] * 1e3 / khz);
	free(ticks);
}

void hold(uint64_t mib, bool huge)
{
	double khz = tsc_khz();
	unsigned int round, v;

	forget_results();
	faults_start(huge, mib, HOST, 1, true);
	for (round = 0; round < settings.rounds; round++) {
		for (v = 0; v < VARIANTS; v++) {
			if (!beside_off(v))
				continue;
			start_passes(v, 0);
			sample_times(v);
			if (variants[v].run)
				sample_holds(v, khz, &lock_trace);
			if (v == DIRTY)
				sample_holds(v, khz, &window_trace);
			say("hold", HOST, huge, round, v, MMAP_P999_US);
		}
	}
	report_all("hold", HOST, huge, "");
	writer_stop();
}

/* --- pagein: out to swap and back in, while ksmd scans it --- */

enum { PAGE_OUT = 1, READ_ALL };

/* Pages like no other, of which half the bytes are zero: zram halves them. */
static void write_app(char *memory, uint64_t pages, uint64_t pass, uint64_t who)
{
	uint64_t words = PAGE_BYTES / sizeof(uint64_t), i, w, sum = 0, value;

	(void)who;
	if (pass == PAGE_OUT &&
	    madvise(memory, pages * PAGE_BYTES, MADV_PAGEOUT))
		fail(EXIT_FAILURE, "MADV_PAGEOUT: %s", strerror(errno));
	for (i = 0; pass == READ_ALL && i < pages; i++)
		sum += *(volatile uint64_t *)page_at(memory, i);
	for (i = 0; !pass && i < pages; i++) {
		value = i + 1;
		for (w = 0; w < words / 2; w++) {
			value = value * 6364136223846793005ULL + 1;
			page_at(memory, i)[w] = value;
		}
	}
	if (pass == READ_ALL && !sum)
		fail(EXIT_FAILURE, "memory is empty after it was in swap");
}

static double timed(struct actor *actor, uint64_t what)
{
	double time = seconds_now();

	actor_act(actor, what);
	return 1e3 * (seconds_now() - time);
}

static uint64_t available_bytes(void)
{
	char text[4096], *at;

	if (!slurp("/proc/meminfo", text, sizeof(text)))
		fail(EXIT_FAILURE, "/proc/meminfo: %s", strerror(errno));
	at = strstr(text, "MemAvailable:");
	return at ? strtoull(at + strlen("MemAvailable:"), NULL, 10) * 1024 : 0;
}

/* Somebody else wants all the memory that is left, and half of the actor's. */
static void push_out(struct actor *actor)
{
	uint64_t bytes = available_bytes() + actor->pages * PAGE_BYTES / 2;
	pid_t pid = fork();
	int status;
	char *memory;

	if (pid < 0)
		fail(EXIT_FAILURE, "fork: %s", strerror(errno));
	if (!pid) {
		bytes -= bytes % HUGE_BYTES;
		memory = map_memory(bytes, false);
		for (; bytes; bytes -= PAGE_BYTES, memory += PAGE_BYTES)
			*(volatile uint64_t *)memory = bytes;
		_exit(EXIT_SUCCESS);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		fail(EXIT_FAILURE,
		     "not enough memory and swap to push 1/2 of %" PRIu64
		     " MiB out: use less --size",
		     actor->pages * PAGE_BYTES / MIB);
}

static void pagein_variant(enum variant v, uint64_t bytes, bool huge)
{
	struct actor actor;
	uint64_t out;
	double ms;

	actor_start(&actor, write_app, bytes, huge, 0);
	start_passes(v, 0);
	ms = timed(&actor, PAGE_OUT);
	out = swapped_now(&actor);
	/* Pages that ksmd has a reference to at the moment stay. */
	if (out < actor.pages / 2)
		fail(EXIT_FAILURE,
		     "%" PRIu64 " of %" PRIu64
		     " pages are in swap: no measurement of paging",
		     out, actor.pages);
	add(v, PAGED_OUT_PERCENT, 100.0 * out / actor.pages);
	add(v, PAGEOUT_US_PER_PAGE, ms * 1e3 / out);
	add(v, PAGEIN_US_PER_PAGE, timed(&actor, READ_ALL) * 1e3 / out);
	push_out(&actor);
	out = swapped_now(&actor);
	add(v, PUSHED_OUT_PERCENT, 100.0 * out / actor.pages);
	if (out)
		add(v, REREAD_US_PER_PAGE, timed(&actor, READ_ALL) * 1e3 / out);
	ksm_write("sleep_millisecs", STEP_SLEEP_MS);
	actor_stop(&actor);
	ksmd_reap();
}

void pagein(uint64_t mib, bool huge)
{
	unsigned int v;

	forget_results();
	for (v = 0; v < VARIANTS; v++) {
		if (!beside_off(v))
			continue;
		pagein_variant(v, mib * MIB, huge);
		say("pagein", HOST, huge, 0, v, PAGEIN_US_PER_PAGE);
	}
	report_all("pagein", HOST, huge, "");
}
