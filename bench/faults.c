// SPDX-License-Identifier: GPL-2.0
/*
 * faults: page faults in mergeable memory, in a loop.
 *
 * Each thread touches all pages of its memory and drops them again; or a vCPU of a
 * guest of KVM does the touching, so that each is a fault of the guest's page
 * tables and one of the host's. Or, with --churn, the time is taken that mmap() and
 * a fault take while other memory of the process is rewritten.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmm.h"

#include "bench.h"

static struct settings {
	uint64_t bytes;
	unsigned int threads;
	bool huge;
	bool guest;
	bool churn;
	int cpu;
	const char *progress;
} settings = {
	.bytes = 16 * MIB,
	.threads = 1,
	.cpu = -1,
};

/* A guest has so many vCPUs. */
#define MAX_THREADS VMM_VCPUS

static volatile sig_atomic_t stop;
static struct progress *progress;
static struct vmm vm;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static void help(void)
{
	puts("usage: faults [OPTION]...\n"
	     "Touches mergeable memory and drops it again, in a loop: each touch is a\n"
	     "page fault. Until SIGINT or SIGTERM.\n"
	     "\n"
	     "  --size MIB        memory of each thread, MiB, even (default 16)\n"
	     "  --mapping 4k|thp  regular or huge pages (default 4k)\n"
	     "  --threads N       1 or 2 (default 1)\n"
	     "  --guest           the vCPUs of a guest of KVM touch the memory\n"
	     "  --churn           rewrite the memory, 64 pages at a time, and publish how\n"
	     "                    long it takes in between to map a page and to fault it in;\n"
	     "                    one thread, not with --guest\n"
	     "  --cpu N           run on CPU N, and a second thread on the one before\n"
	     "  --progress PATH   publish the progress in this file (struct progress)\n"
	     "  --help            show this\n"
	     "\n"
	     "Prints the page faults taken per second.\n"
	     "Exit status: 0 done, 1 failed, 2 bad usage.");
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "size", required_argument, NULL, 's' },
		{ "mapping", required_argument, NULL, 'm' },
		{ "threads", required_argument, NULL, 't' },
		{ "guest", no_argument, NULL, 'g' },
		{ "churn", no_argument, NULL, 'n' },
		{ "cpu", required_argument, NULL, 'c' },
		{ "progress", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			settings.bytes = size_option(optarg);
			break;
		case 'm':
			settings.huge = mapping_option(optarg);
			break;
		case 't':
			settings.threads =
				number("threads", optarg, 1, MAX_THREADS);
			break;
		case 'g':
			settings.guest = true;
			break;
		case 'n':
			settings.churn = true;
			break;
		case 'c':
			settings.cpu =
				number("cpu", optarg, 0, CPU_SETSIZE - 1);
			break;
		case 'p':
			settings.progress = optarg;
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
	if (settings.churn && (settings.guest || settings.threads > 1))
		fail(EXIT_USAGE,
		     "--churn goes with neither --guest nor --threads");
	if (settings.cpu >= 0 && settings.cpu + 1 < (int)settings.threads)
		fail(EXIT_USAGE, "--cpu: there is no CPU before %d",
		     settings.cpu);
}

static char *allocate(void)
{
	char *memory = map_memory(settings.bytes, settings.huge);

	if (madvise(memory, settings.bytes, MADV_MERGEABLE))
		fail(EXIT_FAILURE, "MADV_MERGEABLE: %s (kernel without KSM?)",
		     strerror(errno));
	return memory;
}

/* Memory touched at a time: by a guest in one call, before it is counted */
#define CHUNK_BYTES (settings.huge ? HUGE_BYTES : 256 * PAGE_BYTES)

static void touch(unsigned int thread, char *memory, uint64_t gpa)
{
	uint64_t step = settings.huge ? HUGE_BYTES : PAGE_BYTES, offset;

	if (settings.guest)
		guest_touch(&vm, thread, gpa, CHUNK_BYTES / PAGE_BYTES);
	else
		for (offset = 0; offset < CHUNK_BYTES; offset += step)
			*(volatile uint64_t *)(memory + offset) = 1;
	__atomic_fetch_add(&progress->writes, CHUNK_BYTES / step,
			   __ATOMIC_RELAXED);
}

/* Thread @number, whose memory the guest has that much behind VMM_GPA. */
static void *fault_loop(void *number)
{
	unsigned int thread = (uintptr_t)number;
	uint64_t gpa = VMM_GPA + thread * settings.bytes, offset;
	char *memory = allocate();
	bool checked = false;

	if (settings.cpu >= 0)
		pin(0, settings.cpu - thread);
	if (settings.guest)
		vmm_map(&vm, thread, gpa, memory, settings.bytes / PAGE_BYTES,
			0);
	while (!stop) {
		for (offset = 0; offset < settings.bytes && !stop;
		     offset += CHUNK_BYTES)
			touch(thread, memory + offset, gpa + offset);
		if (!checked && !stop)
			check_mapping(memory, settings.bytes, settings.huge);
		checked = true;
		if (madvise(memory, settings.bytes, MADV_DONTNEED))
			fail(EXIT_FAILURE, "MADV_DONTNEED: %s",
			     strerror(errno));
		if (!thread)
			progress->sweeps++;
	}
	return NULL;
}

static uint64_t nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void churn_loop(void)
{
	char *memory = allocate(), *end = memory + settings.bytes, *at = memory;
	uint64_t start, mapped, faulted;
	unsigned int i;
	char *page;

	for (at = memory; at < end; at += PAGE_BYTES)
		seed_page((uint64_t *)at, (uintptr_t)at);
	at = memory;
	while (!stop) {
		for (i = 0; i < 64; i++) {
			++*(volatile uint64_t *)at;
			at = at + PAGE_BYTES < end ? at + PAGE_BYTES : memory;
			progress->sweeps += at == memory;
		}
		start = nanoseconds();
		page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED)
			fail(EXIT_FAILURE, "cannot map a page: %s",
			     strerror(errno));
		mapped = nanoseconds();
		*(volatile uint64_t *)page = 1;
		faulted = nanoseconds();
		if (munmap(page, PAGE_BYTES))
			fail(EXIT_FAILURE, "munmap: %s", strerror(errno));
		progress->latency[latency_bucket(mapped - start)]++;
		progress->faults[latency_bucket(faulted - mapped)]++;
		progress->writes++;
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	pthread_t threads[MAX_THREADS];
	uintptr_t i;
	double start;

	parse(argc, argv);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	progress = publish(settings.progress);
	progress->tsc_khz = 1000000;
	if (settings.guest)
		vmm_create(&vm, 0);
	progress->ready = 1;
	start = seconds_now();
	if (settings.churn) {
		if (settings.cpu >= 0)
			pin(0, settings.cpu);
		churn_loop();
	} else {
		for (i = 0; i < settings.threads; i++)
			if (pthread_create(&threads[i], NULL, fault_loop,
					   (void *)i))
				fail(EXIT_FAILURE, "cannot start a thread");
		for (i = 0; i < settings.threads; i++)
			pthread_join(threads[i], NULL);
	}
	printf("faults: %.0f page faults/s\n",
	       progress->writes / (seconds_now() - start));
	if (settings.guest)
		vmm_destroy(&vm);
	return EXIT_SUCCESS;
}
