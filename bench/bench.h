/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the benchmark programs share: one-line errors, option parsing, the
 * block a writer publishes its progress in, the check that memory is mapped
 * the way the run says it is, and the writer's part that runs in a guest.
 */
#ifndef KSM_DIRTY_BENCH_H
#define KSM_DIRTY_BENCH_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES 4096UL
#define HUGE_BYTES (2UL << 20)
#define MIB (1UL << 20)

#define EXIT_USAGE 2

/* Buckets of a histogram: 32 for each power of two, hence 3 % wide. */
#define LATENCY_STEPS 32
#define LATENCY_BUCKETS (60 * LATENCY_STEPS)

/**
 * struct progress - what a writer tells whoever measures it, in a shared file
 * @ready: 1 once the memory is filled, mapped as asked and mergeable
 * @start: address of the memory in the writer
 * @bytes: its length
 * @per_sweep: long words one sweep rewrites
 * @writes: long words rewritten so far, published every 512 of them
 * @sweeps: whole sweeps so far
 * @tsc_khz: ticks of @latency in a millisecond
 * @latency: of the writes so far, how many came how long after the one before;
 *           see latency_ticks(). Of the faults program: how long mmap() took
 * @faults: how long page faults took
 *
 * Words are rewritten in address order, round and round: any @per_sweep
 * consecutive writes have been everywhere once. Whole pages, since a guest has
 * them mapped.
 */
struct progress {
	volatile uint64_t ready;
	volatile uint64_t start;
	volatile uint64_t bytes;
	volatile uint64_t per_sweep;
	volatile uint64_t writes;
	volatile uint64_t sweeps;
	volatile uint64_t tsc_khz;
	volatile uint64_t latency[LATENCY_BUCKETS];
	volatile uint64_t faults[LATENCY_BUCKETS];
} __attribute__((aligned(PAGE_BYTES)));

#define PROGRESS_EVERY 512

/* The smallest number of ticks in a bucket. */
static inline uint64_t latency_ticks(unsigned int bucket)
{
	unsigned int octave = bucket / LATENCY_STEPS + 4;

	if (bucket < LATENCY_STEPS)
		return bucket;
	return (uint64_t)(LATENCY_STEPS + bucket % LATENCY_STEPS)
	       << (octave - 5);
}

/* Where @ticks count: the inverse of latency_ticks(). A guest runs it as well. */
__attribute__((always_inline,
	       target("general-regs-only"))) static inline unsigned int
latency_bucket(uint64_t ticks)
{
	unsigned int octave;

	if (ticks < LATENCY_STEPS)
		return ticks;
	octave = 63 - __builtin_clzll(ticks);
	return (octave - 4) * LATENCY_STEPS +
	       (ticks >> (octave - 5)) % LATENCY_STEPS;
}

/* guest.c */
void guest_write_loop(char *memory, uint64_t stride, struct progress *progress,
		      bool huge, bool merges, bool stamp, uint64_t sweeps,
		      const volatile sig_atomic_t *stop);
void guest_interrupt(void);

/* Prints "NAME: MESSAGE" on stderr and exits with @status. */
__attribute__((noreturn, format(printf, 2, 3))) static inline void
fail(int status, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(status);
}

/* Parses the whole of @text as a number in [@min, @max]. */
static inline uint64_t number(const char *option, const char *text,
			      uint64_t min, uint64_t max)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < min ||
	    value > max)
		fail(EXIT_USAGE,
		     "--%s: '%s' is not a whole number from %" PRIu64
		     " to %" PRIu64,
		     option, text, min, max);
	return value;
}

/* --size: MiB; returns bytes */
static inline uint64_t size_option(const char *text)
{
	uint64_t bytes = number("size", text, 2, 1 << 24) * MIB;

	if (bytes % HUGE_BYTES)
		fail(EXIT_USAGE,
		     "--size: %s MiB is not a whole number of 2 MiB pages",
		     text);
	return bytes;
}

/* --mapping: returns whether huge pages are wanted */
static inline bool mapping_option(const char *text)
{
	if (strcmp(text, "4k") && strcmp(text, "thp"))
		fail(EXIT_USAGE, "--mapping: '%s' is neither 4k nor thp", text);
	return !strcmp(text, "thp");
}

/* @pid: 0: whoever calls */
static inline void pin(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(pid, sizeof(set), &set))
		fail(EXIT_FAILURE, "cannot bind %s to CPU %d: %s",
		     pid ? "ksmd" : "this program", cpu, strerror(errno));
}

static inline double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Fills a page by @seed, which is also its first number. */
static inline void seed_page(uint64_t *word, uint64_t seed)
{
	unsigned int i;

	for (i = 0; i < PAGE_BYTES / sizeof(*word); i++) {
		*word++ = seed;
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	}
}

/* Memory to be written yet, which begins with a huge page, @huge or not. */
static inline char *map_memory(uint64_t bytes, bool huge)
{
	uint64_t length = bytes + 2 * HUGE_BYTES;
	char *start, *memory;

	start = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (start == MAP_FAILED)
		fail(EXIT_FAILURE, "cannot map %" PRIu64 " MiB: %s",
		     bytes / MIB, strerror(errno));
	/* A guard on either side: the kernel must not extend this mapping. */
	memory = (char *)(((uintptr_t)start + HUGE_BYTES) & ~(HUGE_BYTES - 1));
	if (mprotect(memory, bytes, PROT_READ | PROT_WRITE))
		fail(EXIT_FAILURE, "cannot use %" PRIu64 " MiB: %s",
		     bytes / MIB, strerror(errno));
	if (madvise(memory, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE))
		fail(EXIT_FAILURE, "%s: %s (kernel without huge pages?)",
		     huge ? "MADV_HUGEPAGE" : "MADV_NOHUGEPAGE",
		     strerror(errno));
	return memory;
}

/* Where a program publishes its progress: in a file, or nowhere. */
static inline struct progress *publish(const char *path)
{
	static struct progress unpublished;
	struct progress *progress;
	int fd;

	if (!path)
		return &unpublished;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, sizeof(*progress)))
		fail(EXIT_FAILURE, "%s: %s", path, strerror(errno));
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE,
			MAP_SHARED, fd, 0);
	if (progress == MAP_FAILED)
		fail(EXIT_FAILURE, "%s: %s", path, strerror(errno));
	close(fd);
	memset(progress, 0, sizeof(*progress));
	return progress;
}

/* Bytes of [@start, @end) that process @pid ("self" too) has in huge pages. */
static inline uint64_t huge_bytes(const char *pid, uint64_t start, uint64_t end)
{
	char path[64], line[512];
	uint64_t from, to, kib, sum = 0;
	bool inside = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/smaps", pid);
	file = fopen(path, "r");
	if (!file)
		fail(EXIT_FAILURE, "%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &from, &to) == 2)
			inside = from >= start && to <= end;
		else if (inside &&
			 sscanf(line, "AnonHugePages: %" SCNu64, &kib) == 1)
			sum += kib * 1024;
	}
	fclose(file);
	return sum;
}

/* Fails the program if its memory is mapped in another way than --mapping says. */
static inline void check_mapping(const char *memory, uint64_t bytes, bool huge)
{
	uint64_t want = huge ? bytes : 0;
	uint64_t got = huge_bytes("self", (uintptr_t)memory,
				  (uintptr_t)memory + bytes);

	if (got != want)
		fail(EXIT_FAILURE,
		     "%" PRIu64 " of %" PRIu64
		     " MiB are in huge pages where --mapping %s wants %" PRIu64
		     "; free memory or choose another --size",
		     got / MIB, bytes / MIB, huge ? "thp" : "4k", want / MIB);
}

#endif
