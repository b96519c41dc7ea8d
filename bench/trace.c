// SPDX-License-Identifier: GPL-2.0
/*
 * A trace of our own, beside whatever else is traced: how long things take that
 * the kernel does.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "measure.h"
#include "trace.h"

#define TRACEFS "/sys/kernel/tracing/"
#define INSTANCE TRACEFS "instances/ksm_dirty_bench/"
#define PROBES "ksm_dirty_bench"

static void write_or_fail(const char *path, const char *text)
{
	if (!put(path, text))
		fail(EXIT_FAILURE, "%s: cannot write %s: %s", path, text,
		     strerror(errno));
}

/* Ends the trace, where there is one. */
void trace_stop(void)
{
	if (rmdir(INSTANCE))
		return;
	put(TRACEFS "kprobe_events", "-:" PROBES "/entry");
	put(TRACEFS "kprobe_events", "-:" PROBES "/exit");
}

/** trace_events() - trace the events of a system that a task causes; 0: anybody */
void trace_events(const char *system, pid_t task)
{
	char path[256], filter[32];

	if (mkdir(INSTANCE, 0755))
		fail(EXIT_FAILURE, INSTANCE ": %s", strerror(errno));
	write_or_fail(INSTANCE "trace_clock", "x86-tsc");
	write_or_fail(INSTANCE "buffer_size_kb", "16384");
	if (task) {
		/* Not set_event_pid, which traces the scheduler as well */
		snprintf(path, sizeof(path), INSTANCE "events/%s/filter",
			 system);
		snprintf(filter, sizeof(filter), "common_pid == %d", task);
		write_or_fail(path, filter);
	}
	snprintf(path, sizeof(path), INSTANCE "events/%s/enable", system);
	write_or_fail(path, "1");
}

/** trace_function() - trace a function's calls, as "entry" and "exit" */
void trace_function(const char *function)
{
	char probe[128];

	snprintf(probe, sizeof(probe), "p:" PROBES "/entry %s", function);
	write_or_fail(TRACEFS "kprobe_events", probe);
	snprintf(probe, sizeof(probe), "r:" PROBES "/exit %s", function);
	write_or_fail(TRACEFS "kprobe_events", probe);
	trace_events(PROBES, 0);
}

/* Where the line has the time of an event of that name; NULL if it is another. */
static const char *time_of(const char *line, const char *event)
{
	char word[64];
	const char *at;

	snprintf(word, sizeof(word), ": %s: ", event);
	at = strstr(line, word);
	while (at && at > line && at[-1] != ' ')
		at--;
	return at;
}

/* Ticks of the TSC in a millisecond */
double tsc_khz(void)
{
	double time = seconds_now();
	uint64_t ticks = __builtin_ia32_rdtsc();

	nap(0.1);
	return (__builtin_ia32_rdtsc() - ticks) /
	       ((seconds_now() - time) * 1e3);
}

/**
 * trace_spans() - the times from one event to the next of another
 * @from: the first event
 * @to: the other one
 * @count: how many there are
 *
 * Returns the times in ticks of the TSC, in ascending order; to be freed.
 */
double *trace_spans(const char *from, const char *to, unsigned int *count)
{
	unsigned int room = 0;
	double *ticks = NULL;
	uint64_t entered = 0;
	const char *at;
	char line[512];
	FILE *file;

	*count = 0;
	file = fopen(INSTANCE "trace", "r");
	if (!file)
		fail(EXIT_FAILURE, INSTANCE "trace: %s", strerror(errno));
	while (fgets(line, sizeof(line), file)) {
		at = time_of(line, from);
		if (at) {
			entered = strtoull(at, NULL, 10);
			continue;
		}
		at = entered ? time_of(line, to) : NULL;
		if (!at)
			continue;
		if (*count == room) {
			room = room ? 2 * room : 1024;
			ticks = realloc(ticks, room * sizeof(*ticks));
			if (!ticks)
				fail(EXIT_FAILURE, "no memory for a trace");
		}
		ticks[(*count)++] = strtoull(at, NULL, 10) - entered;
		entered = 0;
	}
	fclose(file);
	if (!*count)
		fail(EXIT_FAILURE, "no %s was followed by %s in a trace", from,
		     to);
	qsort(ticks, *count, sizeof(*ticks), ascending);
	return ticks;
}
