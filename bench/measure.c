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
 *
 *	measure.c	which workloads there are, options
 *	results.c	samples, and how they are reported
 *	ksmd.c		KSM's files, ksmd's passes
 *	writer.c	the writer; actor.c: writers in lockstep with ksmd
 *	trace.c		traces of the kernel
 *	cost.c		volatile, static, merged, scale
 *	merge.c		late, parity, mixed, and the many processes of scale
 *	accuracy.c, latency.c, profile.c (impact)
 *	pressure.c	fault, hold, pagein
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <libgen.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "bench.h"
#include "measure.h"
#include "trace.h"
#include "writer.h"

struct settings settings = {
	.mib = 256,
	.rounds = 3,
	.samples = 2,
	.window = 2,
	.variant = { true, true, true, true },
	.mapping = { true, true },
	.place = { true, true },
};

static void on_signal(int sig)
{
	interrupted = sig;
}

/* At exit, for whatever reason. */
static void clean_up(void)
{
	trace_stop();
	if (writer.pid > 0)
		kill(writer.pid, SIGKILL);
	if (*writer.path)
		unlink(writer.path);
}

/* --- workloads --- */

static void run_volatile(bool huge, enum place place)
{
	/* A guest's sweep takes longer. */
	compare("volatile", place == GUEST ? settings.mib / 2 : settings.mib,
		WRITES, huge, place);
}

/* An unchanging page takes ten times as long as a volatile one. */
static void run_static(bool huge, enum place place)
{
	compare("static", settings.mib / 4, 0, huge, place);
}

static void run_merged(bool huge, enum place place)
{
	compare("merged", settings.mib / 4, PAIRS, huge, place);
}

static void run_late(bool huge, enum place place)
{
	late(settings.mib / 4, huge, place);
}

static void run_parity(bool huge, enum place place)
{
	(void)place;
	parity(huge);
}

static void run_mixed(bool huge, enum place place)
{
	mixed(settings.mib / (place == GUEST ? 4 : 2), huge, place);
}

static void run_scale(bool huge, enum place place)
{
	(void)place;
	scale(huge);
}

static void run_accuracy(bool huge, enum place place)
{
	accuracy(settings.mib / 4, huge, place);
}

static void run_latency(bool huge, enum place place)
{
	(void)place;
	latency("latency", settings.mib / 2, huge);
}

static void run_hold(bool huge, enum place place)
{
	(void)place;
	hold(settings.mib / 4, huge);
}

static void run_pagein(bool huge, enum place place)
{
	(void)place;
	pagein(settings.mib / 2, huge);
}

static void run_impact(bool huge, enum place place)
{
	impact(place == GUEST ? settings.mib / 2 : settings.mib, huge, place);
}

/* How often a workload has a variant's turn, for one mapping in one place. */
static unsigned int turns_rounds(enum variant v, bool huge, enum place place)
{
	(void)v;
	(void)huge;
	(void)place;
	return settings.rounds;
}

static unsigned int turns_once(enum variant v, bool huge, enum place place)
{
	(void)huge;
	(void)place;
	return v != OFF;
}

static unsigned int turns_late(enum variant v, bool huge, enum place place)
{
	(void)huge;
	return v == OFF ? 0 : late_rounds(v, place);
}

static unsigned int turns_parity(enum variant v, bool huge, enum place place)
{
	(void)place;
	return v == OFF ? 0 : parity_steps(huge);
}

static unsigned int turns_scale(enum variant v, bool huge, enum place place)
{
	unsigned int turns = v == OFF || v == SMART || huge ? 0 : EMPTY_SPACES;

	(void)place;
	if (v == DIRTY)
		turns += SCALE_ROUNDS * 2 * (SCALE_SIZES + CROWD_SIZES);
	return turns;
}

static unsigned int turns_accuracy(enum variant v, bool huge, enum place place)
{
	(void)huge;
	/* Two rates, and how fast what has fallen quiet merges in each */
	return (v == DIRTY ? 2 : 0) + (place == HOST && v != OFF);
}

static unsigned int turns_fault(enum variant v, bool huge, enum place place)
{
	(void)huge;
	return beside_off(v) ? settings.rounds * FAULT_THREADS(place) : 0;
}

static unsigned int turns_beside_off(enum variant v, bool huge,
				     enum place place)
{
	(void)huge;
	(void)place;
	return beside_off(v) ? settings.rounds : 0;
}

static unsigned int turns_pagein(enum variant v, bool huge, enum place place)
{
	(void)huge;
	(void)place;
	return beside_off(v);
}

static const struct workload {
	const char *name;
	bool place[PLACES];
	void (*run)(bool huge, enum place place);
	unsigned int (*turns)(enum variant v, bool huge, enum place place);
} workloads[] = {
	{ "volatile", { true, true }, run_volatile, turns_rounds },
	{ "static", { true, true }, run_static, turns_rounds },
	{ "merged", { true, false }, run_merged, turns_rounds },
	{ "late", { true, true }, run_late, turns_late },
	{ "parity", { true, false }, run_parity, turns_parity },
	{ "mixed", { true, true }, run_mixed, turns_once },
	{ "scale", { true, false }, run_scale, turns_scale },
	{ "accuracy", { true, true }, run_accuracy, turns_accuracy },
	{ "latency", { false, true }, run_latency, turns_beside_off },
	{ "fault", { true, true }, fault, turns_fault },
	{ "hold", { true, false }, run_hold, turns_beside_off },
	{ "pagein", { true, false }, run_pagein, turns_pagein },
	{ "impact", { true, true }, run_impact, turns_once },
};

#define WORKLOADS (sizeof(workloads) / sizeof(*workloads))

static const struct workload *find_workload(const char *name)
{
	unsigned int w;

	for (w = 0; w < WORKLOADS; w++)
		if (!strcmp(name, workloads[w].name))
			return &workloads[w];
	fail(EXIT_USAGE, "unknown workload '%s'; see --help", name);
}

static bool wanted(const struct workload *w, enum place place)
{
	return w->place[place] && settings.place[place];
}

static void run_workload(const struct workload *w)
{
	enum place place;
	unsigned int huge;

	for (place = HOST; place < PLACES; place++)
		for (huge = 0; huge < 2; huge++)
			if (wanted(w, place) && settings.mapping[huge])
				w->run(huge, place);
}

static unsigned int steps_of(const struct workload *w)
{
	unsigned int count = 0, v, huge, place;

	for (place = HOST; place < PLACES; place++)
		for (v = 0; v < VARIANTS; v++)
			for (huge = 0; huge < 2; huge++)
				if (wanted(w, place) && settings.variant[v] &&
				    settings.mapping[huge])
					count += w->turns(v, huge, place);
	return count;
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
	     "                      of 1 to 256 processes, dirty_scan only; 32 TiB that are all\n"
	     "                      but empty, and 20,000 vmas\n"
	     "  accuracy            written pages taken for clean, and the other way round, and\n"
	     "                      how soon what has fallen quiet merges, a quarter of --size\n"
	     "  latency             a guest's writes, one after the other, half of "
	     "--size\n"
	     "  fault               page faults per second of 1 and 2 threads or a vCPU, 16 MiB\n"
	     "                      each, beside a ksmd that sleeps 20 ms between passes\n"
	     "  hold                how long ksmd holds mmap_lock, and how long mmap() and page\n"
	     "                      faults take of a process with a quarter of --size\n"
	     "  pagein              out to swap and back in, beside ksmd at full speed, half\n"
	     "                      of --size\n"
	     "  impact              in which functions ksmd's time goes\n"
	     "\n"
	     "  --size MIB          memory scanned, MiB, a multiple of 8 (default "
	     "256; not for\n"
	     "                      scale)\n"
	     "  --where LIST        of host,guest: whose memory it is in volatile, static,\n"
	     "                      late, accuracy, fault and impact (default both); latency is a guest's,\n"
	     "                      all else the host's\n"
	     "  --mappings LIST     of 4k,thp (default both)\n"
	     "  --variants LIST     of off,stock,smart,dirty (default all)\n"
	     "  --rounds N          times that all variants take turns (default 3)\n"
	     "  --samples N         samples of ksmd's cost per round (default 2)\n"
	     "  --window MS         milliseconds for each rate (default 2000)\n"
	     "  --programs DIR      where the programs volatile and faults are (default: where\n"
	     "                      this one is)\n"
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
		{ "programs", required_argument, NULL, 'w' },
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
			settings.programs = optarg;
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
	static const char *const programs[] = { "volatile", "faults" };
	static char beside[4096], path[4200];
	unsigned int i;
	ssize_t n;

	if (!settings.programs) {
		n = readlink("/proc/self/exe", beside, sizeof(beside) - 1);
		beside[n < 0 ? 0 : n] = '\0';
		settings.programs = dirname(beside);
	}
	for (i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		snprintf(path, sizeof(path), "%s/%s", settings.programs,
			 programs[i]);
		if (access(path, X_OK))
			fail(EXIT_FAILURE,
			     "%s: %s; tell where it is by --programs", path,
			     strerror(errno));
	}
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

	for (i = first; i < argc; i++)
		steps += steps_of(find_workload(argv[i]));
	set_up();
	for (i = first; i < argc; i++)
		run_workload(find_workload(argv[i]));
	if (passes_thrown_away)
		fprintf(stderr, "# %u passes thrown away\n",
			passes_thrown_away);
	return EXIT_SUCCESS;
}
