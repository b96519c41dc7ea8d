// SPDX-License-Identifier: GPL-2.0
/*
 * Where ksmd's time goes: samples of its instruction pointer by CPU time, put to
 * the functions of /proc/kallsyms. A small part of what perf does, which would not
 * fit into the virtual machine's memory file system with all that it needs.
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"
#include "measure.h"
#include "writer.h"

/* CPU time between two samples; samples to take, and passes for it at most */
#define SAMPLE_NS 500000
#define SAMPLES 600
#define MOST_PASSES 200

/* Functions below this share of a variant's time are not reported. */
#define LEAST_SHARE 0.02

#define RING_PAGES 64 /* a power of 2 */

struct function {
	uint64_t address;
	char name[64];
	unsigned int count[VARIANTS];
};

static struct function *functions;
static size_t function_count;

static int by_address(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static void read_functions(void)
{
	size_t room = 0;
	char line[512];
	FILE *file;

	file = fopen("/proc/kallsyms", "r");
	if (!file)
		fail(EXIT_FAILURE, "/proc/kallsyms: %s", strerror(errno));
	while (fgets(line, sizeof(line), file)) {
		struct function f = {};
		char type;

		if (sscanf(line, "%" SCNx64 " %c %63s", &f.address, &type,
			   f.name) != 3 ||
		    !strchr("tTwW", type))
			continue;
		if (function_count == room) {
			room = room ? 2 * room : 4096;
			functions =
				realloc(functions, room * sizeof(*functions));
			if (!functions)
				fail(EXIT_FAILURE,
				     "no memory for /proc/kallsyms");
		}
		functions[function_count++] = f;
	}
	fclose(file);
	if (!function_count || !functions[function_count - 1].address)
		fail(EXIT_FAILURE,
		     "/proc/kallsyms has no addresses: boot with CONFIG_KALLSYMS");
	qsort(functions, function_count, sizeof(*functions), by_address);
}

static void count_sample(enum variant v, uint64_t ip)
{
	size_t low = 0, high = function_count, middle;

	while (high - low > 1) {
		middle = (low + high) / 2;
		if (functions[middle].address <= ip)
			low = middle;
		else
			high = middle;
	}
	functions[low].count[v]++;
}

/* Samples ksmd; stopped. */
static int open_samples(struct perf_event_mmap_page **ring)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = SAMPLE_NS,
		.sample_type = PERF_SAMPLE_IP,
		.disabled = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, ksmd_pid(), -1, -1, 0);

	if (fd < 0)
		fail(EXIT_FAILURE, "perf_event_open: %s", strerror(errno));
	*ring = mmap(NULL, (RING_PAGES + 1) * PAGE_BYTES,
		     PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*ring == MAP_FAILED)
		fail(EXIT_FAILURE, "perf_event_open: mmap: %s",
		     strerror(errno));
	return fd;
}

/* Takes what is there; returns how many. */
static unsigned int take_samples(enum variant v,
				 struct perf_event_mmap_page *ring)
{
	const char *data = (char *)ring + PAGE_BYTES;
	uint64_t size = RING_PAGES * PAGE_BYTES, tail = ring->data_tail, head;
	struct perf_event_header header;
	unsigned int count = 0;
	uint64_t ip;

	head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
	while (tail < head) {
		/* All sizes are multiples of 8, so none of these wraps. */
		memcpy(&header, data + tail % size, sizeof(header));
		if (header.type == PERF_RECORD_SAMPLE) {
			memcpy(&ip, data + (tail + sizeof(header)) % size,
			       sizeof(ip));
			count_sample(v, ip);
			count++;
		}
		tail += header.size;
	}
	__atomic_store_n(&ring->data_tail, tail, __ATOMIC_RELEASE);
	return count;
}

static void sample_variant(enum variant v)
{
	struct perf_event_mmap_page *ring;
	unsigned int passes, taken = 0;
	uint64_t ns, total = 0;
	int fd;

	writer_setup(v);
	if (looks_seldom(v))
		look_every(0, 0);
	warm_up(variants[v].warm_up);
	fd = open_samples(&ring);
	for (passes = 0; passes < MOST_PASSES && taken < SAMPLES; passes++) {
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		ksmd_pass(&ns);
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		taken += take_samples(v, ring);
		total += ns;
		/* smart_scan's passes differ: whole cycles only */
		if (v == SMART && taken >= SAMPLES &&
		    (passes + 1) % variants[v].cycle)
			taken = SAMPLES - 1;
	}
	munmap(ring, (RING_PAGES + 1) * PAGE_BYTES);
	close(fd);
	add(v, KSMD_NS_PER_PAGE, (double)total / passes / writer.pages);
}

static void report_functions(const char *workload, enum place place, bool huge)
{
	uint64_t all[VARIANTS] = {};
	char suffix[80];
	unsigned int v;
	size_t i;

	for (v = STOCK; v < VARIANTS; v++)
		for (i = 0; i < function_count; i++)
			all[v] += functions[i].count[v];
	for (i = 0; i < function_count; i++) {
		bool shown = false;

		for (v = STOCK; v < VARIANTS; v++)
			shown |= all[v] &&
				 functions[i].count[v] >= LEAST_SHARE * all[v];
		for (v = STOCK; shown && v < VARIANTS; v++) {
			struct series *cost = &results[v][KSMD_NS_PER_PAGE];

			if (!all[v])
				continue;
			results[v][FUNCTION_NS_PER_PAGE].count = 0;
			add(v, FUNCTION_NS_PER_PAGE,
			    cost->value[0] * functions[i].count[v] / all[v]);
			snprintf(suffix, sizeof(suffix), "_%s",
				 functions[i].name);
			report(workload, place, huge, v, FUNCTION_NS_PER_PAGE,
			       suffix);
		}
	}
	for (v = STOCK; v < VARIANTS; v++)
		report(workload, place, huge, v, KSMD_NS_PER_PAGE, "");
}

/* Which of ksmd's functions cost less? Of volatile memory, without probes. */
void impact(uint64_t mib, bool huge, enum place place)
{
	unsigned int v;
	size_t i;

	if (!functions)
		read_functions();
	for (i = 0; i < function_count; i++)
		memset(functions[i].count, 0, sizeof(functions[i].count));
	forget_results();
	writer_start(huge, mib, WRITES, place);
	for (v = STOCK; v < VARIANTS; v++) {
		if (!settings.variant[v])
			continue;
		sample_variant(v);
		say("impact", place, huge, 0, v, KSMD_NS_PER_PAGE);
	}
	writer_stop();
	report_functions("impact", place, huge);
}
