/* SPDX-License-Identifier: GPL-2.0 */
/* The writer, whose memory ksmd scans: one at a time. */
#ifndef KSM_DIRTY_BENCH_WRITER_H
#define KSM_DIRTY_BENCH_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "measure.h"

struct progress;

/**
 * struct writer - the one that there is
 * @pid: 0: none
 * @place: who rewrites the memory
 * @writes: all the time
 * @pages: of its memory
 * @mark: its writes when the last pass ended
 * @progress: what it publishes
 * @path: of the file for that
 */
struct writer {
	pid_t pid;
	enum place place;
	bool writes;
	uint64_t pages;
	uint64_t mark;
	struct progress *progress;
	char path[32];
};

extern struct writer writer;

/* Since ksmd made more than one */
extern unsigned int passes_thrown_away;

/* What the writer does, besides being there. */
enum {
	WRITES = 1, /* rewrites its memory all the time */
	STAMPS = 2, /* and tells the time from each write to the next */
	PAIRS = 4, /* has every page twice */
	TWIN = 8, /* has the contents of every other one with this */
};

void writer_start(bool huge, uint64_t mib, unsigned int what, enum place place);
void writer_spawn(const char **argv, bool sweep);
void writer_check(void);
void writer_stop(void);
void writer_setup(enum variant v);
bool ksmd_pass(uint64_t *ns);
void warm_up(unsigned int passes);
double measure_passes(unsigned int passes, bool alike, unsigned int *tries);

#endif
