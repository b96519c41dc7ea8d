// SPDX-License-Identifier: GPL-2.0
/*
 * volatile: mergeable memory that is rewritten in a loop.
 *
 * Every page is different from every other, so KSM can merge none of them; one
 * long word per stride is rewritten in address order, so KSM finds every page
 * changed. Allocates after exec: no other process shares a page of it. A
 * guest of KVM can do the rewriting (guest.c).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

struct settings {
	uint64_t bytes;
	uint64_t stride;
	uint64_t rate;
	uint64_t seconds;
	uint64_t sweeps;
	bool sweeps_limited;
	bool huge;
	bool guest;
	bool stamp;
	bool pairs;
	bool twin;
	int cpu;
	const char *progress;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
	guest_interrupt();
}

static void help(void)
{
	puts("usage: volatile [OPTION]...\n"
	     "Rewrites mergeable memory of all-different pages in a loop.\n"
	     "\n"
	     "  --size MIB        memory to use, MiB, even (default 256)\n"
	     "  --mapping 4k|thp  regular or huge pages (default 4k); fails when the\n"
	     "                    kernel maps the memory in any other way\n"
	     "  --stride BYTES    one long word is rewritten every BYTES, a multiple of 8\n"
	     "                    (default 4096: one per page)\n"
	     "  --rate N          sweeps over the memory per second, 0 = as fast as\n"
	     "                    possible (default 0)\n"
	     "  --seconds N       stop after N seconds, 0 = at SIGINT or SIGTERM (default 0)\n"
	     "  --sweeps N        rewrite nothing after N sweeps; 0 leaves the memory as it\n"
	     "                    was filled (default: no limit)\n"
	     "  --pairs           fill the second half with what the first half holds\n"
	     "  --twin            fill it with what every other process with --twin holds\n"
	     "  --guest           a guest of KVM rewrites the memory, which is its own; not\n"
	     "                    with --rate or --seconds\n"
	     "  --stamp           with --guest, and publish the time from each write to the\n"
	     "                    next, which slows it down\n"
	     "  --cpu N           run on CPU N only\n"
	     "  --progress PATH   publish the progress in this file (struct progress)\n"
	     "  --help            show this\n"
	     "\n"
	     "Prints the sweeps made, the seconds they took and the pages rewritten per\n"
	     "second.\n"
	     "Exit status: 0 done, 1 failed, 2 bad usage.");
}

static void parse(int argc, char **argv, struct settings *s)
{
	static const struct option options[] = {
		{ "size", required_argument, NULL, 's' },
		{ "mapping", required_argument, NULL, 'm' },
		{ "stride", required_argument, NULL, 'd' },
		{ "rate", required_argument, NULL, 'r' },
		{ "seconds", required_argument, NULL, 't' },
		{ "sweeps", required_argument, NULL, 'n' },
		{ "pairs", no_argument, NULL, 'q' },
		{ "twin", no_argument, NULL, 'w' },
		{ "guest", no_argument, NULL, 'g' },
		{ "stamp", no_argument, NULL, 'l' },
		{ "cpu", required_argument, NULL, 'c' },
		{ "progress", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			s->bytes = size_option(optarg);
			break;
		case 'm':
			s->huge = mapping_option(optarg);
			break;
		case 'd':
			s->stride = number("stride", optarg, sizeof(long),
					   1UL << 40);
			if (s->stride % sizeof(long))
				fail(EXIT_USAGE,
				     "--stride: %s is not a multiple of %zu",
				     optarg, sizeof(long));
			break;
		case 'r':
			s->rate = number("rate", optarg, 0, 1000000);
			break;
		case 't':
			s->seconds = number("seconds", optarg, 0, 1 << 30);
			break;
		case 'n':
			s->sweeps = number("sweeps", optarg, 0, UINT64_MAX);
			s->sweeps_limited = true;
			break;
		case 'q':
			s->pairs = true;
			break;
		case 'w':
			s->twin = true;
			break;
		case 'g':
			s->guest = true;
			break;
		case 'l':
			s->stamp = true;
			break;
		case 'c':
			s->cpu = number("cpu", optarg, 0, CPU_SETSIZE - 1);
			break;
		case 'p':
			s->progress = optarg;
			break;
		case 'h':
			help();
			exit(EXIT_SUCCESS);
		default:
			exit(EXIT_USAGE);
		}
	}
	if (optind < argc)
		fail(EXIT_USAGE, "unexpected argument '%s'; see --help",
		     argv[optind]);
	if (s->stride > s->bytes)
		fail(EXIT_USAGE, "--stride is larger than --size");
	if (s->guest && (s->rate || s->seconds))
		fail(EXIT_USAGE,
		     "--guest goes with neither --rate nor --seconds");
	if (s->stamp && !s->guest)
		fail(EXIT_USAGE, "--stamp needs --guest");
}

/*
 * Fills every page with numbers no other page, nor process, has; but for its
 * partner in the other half, and in the twin, where there are any.
 */
static void fill(char *memory, const struct settings *s)
{
	uint64_t pages = s->bytes / PAGE_BYTES, page;
	uint64_t process = s->twin ? 0 : getpid();

	for (page = 0; page < pages; page++)
		seed_page((uint64_t *)(memory + page * PAGE_BYTES),
			  process << 32 |
				  (s->pairs ? page % (pages / 2) : page));
}

static char *allocate(const struct settings *s)
{
	char *memory = map_memory(s->bytes, s->huge);

	fill(memory, s);
	if (madvise(memory, s->bytes, MADV_MERGEABLE))
		fail(EXIT_FAILURE, "MADV_MERGEABLE: %s (kernel without KSM?)",
		     strerror(errno));
	return memory;
}

/* Sleeps until @when (seconds_now()'s clock) or a signal. */
static void sleep_until(double when)
{
	struct timespec t = { .tv_sec = when,
			      .tv_nsec = (when - (time_t)when) * 1e9 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Rewrites the memory once; returns early when told to stop. */
static uint64_t sweep(const struct settings *s, char *memory, uint64_t writes,
		      struct progress *progress)
{
	char *end = memory + s->bytes, *at;

	for (at = memory; at < end; at += s->stride) {
		*(volatile uint64_t *)at = ++writes;
		if (writes % PROGRESS_EVERY == 0) {
			progress->writes = writes;
			if (stop)
				break;
		}
	}
	progress->writes = writes;
	return writes;
}

/* Rewrites the memory until told to stop; returns the seconds of whole sweeps. */
static double host_write_loop(const struct settings *s, char *memory,
			      struct progress *progress)
{
	double start = seconds_now(), busy = 0;
	double end = s->seconds ? start + s->seconds : 0;
	uint64_t writes = 0, sweeps = 0;

	while (!stop && (!end || seconds_now() < end)) {
		if (s->sweeps_limited && sweeps == s->sweeps) {
			/* Short naps: a signal may come just before one. */
			sleep_until(seconds_now() + 0.05);
			continue;
		}
		writes = sweep(s, memory, writes, progress);
		if (stop)
			break;
		progress->sweeps = ++sweeps;
		busy = seconds_now() - start;
		if (s->rate)
			sleep_until(start + (double)sweeps / s->rate);
	}
	return busy;
}

int main(int argc, char **argv)
{
	struct settings s = {
		.bytes = 256 * MIB,
		.stride = PAGE_BYTES,
		.cpu = -1,
	};
	struct sigaction action = { .sa_handler = on_signal };
	struct progress *progress;
	double start, busy;
	uint64_t pages;
	char *memory;

	parse(argc, argv, &s);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (s.cpu >= 0)
		pin(0, s.cpu);
	progress = publish(s.progress);
	memory = allocate(&s);
	check_mapping(memory, s.bytes, s.huge);
	progress->start = (uintptr_t)memory;
	progress->bytes = s.bytes;
	progress->per_sweep = (s.bytes + s.stride - 1) / s.stride;
	progress->ready = 1;

	if (s.guest) {
		start = seconds_now();
		guest_write_loop(memory, s.stride, progress, s.huge,
				 s.pairs || s.twin, s.stamp,
				 s.sweeps_limited ? s.sweeps : UINT64_MAX,
				 &stop);
		busy = seconds_now() - start;
	} else {
		busy = host_write_loop(&s, memory, progress);
	}
	/* Huge pages that were merged are none any more. */
	if (!s.pairs && !s.twin)
		check_mapping(memory, s.bytes, s.huge);
	pages = s.stride > PAGE_BYTES ? progress->per_sweep :
					s.bytes / PAGE_BYTES;
	printf("volatile: %" PRIu64 " sweeps in %.3f s, %.0f pages/s\n",
	       progress->sweeps, busy,
	       busy ? progress->sweeps * pages / busy : 0);
	return EXIT_SUCCESS;
}
