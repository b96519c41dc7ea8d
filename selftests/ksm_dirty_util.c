// SPDX-License-Identifier: GPL-2.0
#include "ksm_dirty_util.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

#define TRACING "/sys/kernel/tracing"
#define HARVEST TRACING "/events/ksm_dirty/ksm_dirty_harvest/enable"

/*
 * ksmd sleeps an hour, if it is not told another time to sleep meanwhile.  Each
 * pass has a time of its own: told twice, which happens where this program loses
 * its CPU in between, it does not wake ksmd again.
 */
#define STEP_MS 3600000
#define STEPS 1000000
#define PASS_SECONDS 120
#define WHOLE_PASS 100000000

static const char *const settings[] = {
	"dirty_scan",
	"dirty_scan_probe_passes",
	"dirty_scan_recheck_passes",
	"smart_scan",
	"pages_to_scan",
	"sleep_millisecs",
	"use_zero_pages",
	"advisor_mode",
	"max_page_sharing",
	"run",
};
static char saved[ARRAY_SIZE(settings)][64];
static pid_t owner;
static pid_t ksmd;
static int checksum_fd = -1;
static bool tracing;

bool exists(const char *path)
{
	return !access(path, F_OK);
}

/** try_write_file() - write to a file; returns 0 or an error number */
int try_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

void write_file(const char *path, const char *text)
{
	int err = try_write_file(path, text);

	if (err)
		ksft_exit_fail_msg("cannot write '%s' to %s: %s\n", text, path,
				   strerror(err));
}

/** read_file() - read a file as a string, of at most @size - 1 bytes */
size_t read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got;

	if (fd < 0)
		ksft_exit_fail_msg("cannot open %s: %s\n", path,
				   strerror(errno));
	while (len < size - 1) {
		got = read(fd, buf + len, size - 1 - len);
		if (got < 0)
			ksft_exit_fail_msg("cannot read %s: %s\n", path,
					   strerror(errno));
		if (!got)
			break;
		len += got;
	}
	close(fd);
	buf[len] = '\0';
	return len;
}

/** file_value() - the number behind @key in a file; the file's, without @key */
uint64_t file_value(const char *path, const char *key)
{
	char buf[16384];
	char *at = buf;

	read_file(path, buf, sizeof(buf));
	if (key) {
		at = strstr(buf, key);
		if (!at)
			ksft_exit_fail_msg("%s has no %s\n", path, key);
		at += strlen(key);
	}
	return strtoull(at, NULL, 10);
}

static const char *ksm_path(const char *name)
{
	static _Thread_local char path[128];

	snprintf(path, sizeof(path), KSM_DIR "/%s", name);
	return path;
}

uint64_t ksm_get(const char *name)
{
	return file_value(ksm_path(name), NULL);
}

void ksm_set(const char *name, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	write_file(ksm_path(name), text);
}

/** ksm_stat() - a number of this process's /proc/<pid>/ksm_stat */
uint64_t ksm_stat(const char *name)
{
	return file_value("/proc/self/ksm_stat", name);
}

static pid_t find_ksmd(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	char path[300], comm[32];
	pid_t pid = 0;

	while (proc && !pid && (entry = readdir(proc))) {
		if (atoi(entry->d_name) <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		if (!exists(path))
			continue;
		read_file(path, comm, sizeof(comm));
		if (!strcmp(comm, "ksmd\n"))
			pid = atoi(entry->d_name);
	}
	if (proc)
		closedir(proc);
	if (!pid)
		ksft_exit_fail_msg("no ksmd: the kernel lacks CONFIG_KSM\n");
	return pid;
}

static void restore(void)
{
	size_t i;

	if (getpid() != owner)
		return;
	if (tracing)
		try_write_file(HARVEST, "0");
	for (i = 0; i < ARRAY_SIZE(settings); i++)
		if (*saved[i])
			try_write_file(ksm_path(settings[i]), saved[i]);
}

void ksm_setup_without_module(void)
{
	char *line;
	size_t i;

	/* What a test had to say when it hung, or the kernel died */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!exists(KSM_DIR "/run"))
		ksft_exit_fail_msg("no " KSM_DIR
				   ": the kernel lacks CONFIG_KSM\n");
	for (i = 0; i < ARRAY_SIZE(settings); i++) {
		if (!exists(ksm_path(settings[i])))
			continue;
		read_file(ksm_path(settings[i]), saved[i], sizeof(saved[i]));
		/* A file that offers a choice has the chosen one in brackets */
		line = strchr(saved[i], '[');
		if (line) {
			memmove(saved[i], line + 1, strlen(line));
			saved[i][strcspn(saved[i], "]")] = '\0';
		}
	}
	owner = getpid();
	atexit(restore);

	ksmd = find_ksmd();
	ksm_set("run", 0);
	write_file(ksm_path("advisor_mode"), "none");
	ksm_set("smart_scan", 0);
	ksm_set("use_zero_pages", 0);
}

void ksm_setup(void)
{
	if (!exists(KSM_DIR "/dirty_scan"))
		ksft_exit_fail_msg("no " KSM_DIR
				   "/dirty_scan: load ksm_dirty.ko first\n");
	ksm_setup_without_module();
	ksm_set("dirty_scan", 1);
	/* Both depend on the number of the pass; their tests turn them on */
	ksm_set("dirty_scan_probe_passes", 0);
	ksm_set("dirty_scan_recheck_passes", 0);
}

/* Asleep until somebody wakes it, which only this program does. */
static bool ksmd_sleeps(void)
{
	char path[64], buf[512];
	char *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", ksmd);
	read_file(path, buf, sizeof(buf));
	state = strrchr(buf, ')');
	return state && state[2] == 'S';
}

static void nap(void)
{
	struct timespec t = { .tv_nsec = 300000 };

	nanosleep(&t, NULL);
}

/*
 * Waits until ksmd is done with what it does, where it makes single passes.  It is
 * woken by the first mergeable memory of all, too, and then makes a pass that
 * nobody asked for.  Asleep twice, as it looks asleep just before it finds that
 * it has been woken.
 */
static void ksmd_settle(void)
{
	double start = now();
	unsigned int asleep = 0;

	if (ksm_get("sleep_millisecs") < STEP_MS)
		return;
	while (asleep < 2) {
		asleep = ksmd_sleeps() ? asleep + 1 : 0;
		nap();
		if (now() - start > PASS_SECONDS)
			ksft_exit_fail_msg("ksmd does not rest in %d s\n",
					   PASS_SECONDS);
	}
}

/**
 * ksm_pass() - have ksmd do whole passes, and wait until they are done
 * @passes: how many; memory rests in between
 *
 * A batch of ksmd is a whole pass here, and ends with ksmd asleep for an hour,
 * so the counters hold still when this returns.
 */
void ksm_pass(unsigned int passes)
{
	static unsigned int step;
	uint64_t before, sleep_ms;
	double start;

	ksm_set("pages_to_scan", WHOLE_PASS);
	while (passes--) {
		ksmd_settle();
		before = ksm_get("full_scans");
		sleep_ms = STEP_MS + (getpid() * 1000 + ++step) % STEPS;
		start = now();
		if (!ksm_get("run")) {
			/*
			 * Not the time below: ksmd looks at run twice, and goes to
			 * sleep without a pass where it changes between.
			 */
			ksm_set("sleep_millisecs", STEP_MS + STEPS);
			ksm_set("run", 1);
		}
		while (!ksmd_sleeps() || ksm_get("full_scans") == before) {
			if (ksmd_sleeps() && ksm_get("full_scans") == before)
				ksm_set("sleep_millisecs", sleep_ms);
			nap();
			if (now() - start > PASS_SECONDS)
				ksft_exit_fail_msg("ksmd did no pass in %d s\n",
						   PASS_SECONDS);
		}
	}
}

/** ksm_full_speed() - have ksmd scan without a pause until ksm_stop() */
void ksm_full_speed(unsigned int pages_to_scan)
{
	ksm_set("pages_to_scan", pages_to_scan);
	ksm_set("sleep_millisecs", 0);
	ksm_set("run", 1);
}

/** ksm_stop() - stop ksmd; returns when its batch is done */
void ksm_stop(void)
{
	ksm_set("run", 0);
	ksm_set("sleep_millisecs", STEP_MS);
}

/** ksmd_ns() - CPU time that ksmd has used, in nanoseconds */
uint64_t ksmd_ns(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", ksmd);
	return file_value(path, NULL);
}

static void pin(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(pid, sizeof(set), &set))
		ksft_exit_fail_msg("cannot pin %d to CPU %d: %s\n", pid, cpu,
				   strerror(errno));
}

void ksmd_pin(int cpu)
{
	pin(ksmd, cpu);
}

/** pin_to_cpu() - bind the calling thread to a CPU */
void pin_to_cpu(int cpu)
{
	pin(0, cpu);
}

/**
 * map_pages() - map memory that KSM may merge
 * @pages: how many pages of 4 KiB
 * @huge: by huge pages; @pages should be whole ones then
 *
 * Starts at a 2 MiB boundary, with unmapped memory on both sides.
 */
char *map_pages(size_t pages, bool huge)
{
	size_t size = pages * PAGE;
	size_t span = (size + HUGE - 1) / HUGE * HUGE + 2 * HUGE;
	char *area = mmap(NULL, span, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *addr;

	if (area == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	addr = (char *)(((uintptr_t)area + 2 * HUGE - 1) / HUGE * HUGE);
	if (mmap(addr, size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	advise(addr, pages, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	advise(addr, pages, MADV_MERGEABLE);
	if (ksmd)
		ksmd_settle();
	return addr;
}

/** need_huge() - fail unless huge pages map all of a range */
void need_huge(const char *addr, size_t pages)
{
	size_t i;

	/* A huge page's frames are in a row, from a 2 MiB boundary on */
	for (i = 0; i < pages; i += HUGE_PAGES)
		if (!page_flag(addr, i, 22 /* KPF_THP */) ||
		    (pagemap_entry(addr, i) & 511))
			ksft_exit_fail_msg("no huge page at %p\n",
					   addr + i * PAGE);
}

void set_word(char *addr, size_t page, uint64_t value)
{
	*(volatile uint64_t *)(addr + page * PAGE) = value;
}

uint64_t get_word(const char *addr, size_t page)
{
	return *(const volatile uint64_t *)(addr + page * PAGE);
}

void fill_page(char *addr, size_t page, uint64_t value)
{
	uint64_t *word = (uint64_t *)(addr + page * PAGE);
	size_t i;

	for (i = 0; i < PAGE / sizeof(*word); i++)
		word[i] = value;
}

bool page_holds(const char *addr, size_t page, uint64_t value)
{
	const uint64_t *word = (const uint64_t *)(addr + page * PAGE);
	size_t i;

	for (i = 0; i < PAGE / sizeof(*word); i++)
		if (word[i] != value)
			return false;
	return true;
}

/** fill_pages() - give each page contents of its own, by its number and @seed */
void fill_pages(char *addr, size_t pages, uint64_t seed)
{
	size_t i;

	for (i = 0; i < pages; i++)
		fill_page(addr, i, (seed << 32) + i + 1);
}

/** wrong_pages() - how many pages do not hold what fill_pages() gave them */
size_t wrong_pages(const char *addr, size_t pages, uint64_t seed)
{
	size_t i, wrong = 0;

	for (i = 0; i < pages; i++)
		wrong += !page_holds(addr, i, (seed << 32) + i + 1);
	return wrong;
}

/** rewrite_pages() - write one word of each page, another one for each page */
void rewrite_pages(char *addr, size_t pages, uint64_t value)
{
	size_t i;

	for (i = 0; i < pages; i++)
		set_word(addr, i, (value << 32) + i + 1);
}

void advise(char *addr, size_t pages, int advice)
{
	if (madvise(addr, pages * PAGE, advice))
		ksft_exit_fail_msg("madvise %d of %zu pages: %s\n", advice,
				   pages, strerror(errno));
}

static uint64_t read_u64(const char *path, uint64_t index)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t value;

	if (fd < 0 || pread(fd, &value, sizeof(value), index * sizeof(value)) !=
			      sizeof(value))
		ksft_exit_fail_msg("cannot read %s: %s\n", path,
				   strerror(errno));
	close(fd);
	return value;
}

/** pagemap_entry() - a page's entry of /proc/self/pagemap */
uint64_t pagemap_entry(const char *addr, size_t page)
{
	return read_u64("/proc/self/pagemap", (uintptr_t)addr / PAGE + page);
}

/** page_flag() - a flag of /proc/kpageflags; false where nothing is mapped */
bool page_flag(const char *addr, size_t page, unsigned int flag)
{
	uint64_t entry = pagemap_entry(addr, page);
	uint64_t pfn = entry & ((1ULL << 55) - 1);

	if (!(entry >> 63))
		return false;
	return read_u64("/proc/kpageflags", pfn) >> flag & 1;
}

/** module_load() - with parameters as insmod(8) takes them; 0 or an error number */
int module_load(const char *name, const char *params)
{
	const char *dir = getenv("KSM_DIRTY_MODULES");
	char path[256];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/%s.ko", dir ? dir : "/lib/modules",
		 name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		ksft_exit_fail_msg("cannot open %s: %s\n", path,
				   strerror(errno));
	if (syscall(SYS_finit_module, fd, params, 0))
		err = errno;
	close(fd);
	return err;
}

/** module_unload() - returns 0 or an error number */
int module_unload(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? errno : 0;
}

/** need_module() - load a module that only tests need */
void need_module(const char *name)
{
	int err = module_load(name, "");

	if (err)
		ksft_exit_fail_msg("cannot load %s.ko: %s\n", name,
				   strerror(err));
}

/** kernel_symbol() - the address of a function or a variable of the kernel */
uint64_t kernel_symbol(const char *name)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char line[256], found[128];
	unsigned long long addr;

	if (!file)
		ksft_exit_fail_perror("/proc/kallsyms");
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx %*c %127s", &addr, found) == 2 &&
		    !strcmp(found, name)) {
			fclose(file);
			return addr;
		}
	}
	ksft_exit_fail_msg("/proc/kallsyms has no %s\n", name);
}

/**
 * count_checksums() - start counting the checksums that ksmd makes
 *
 * By a hardware breakpoint on xxh64(), for ksmd alone. A kprobe would do, but
 * the kernel's lib/ is closed to the tracer.
 */
void count_checksums(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_X,
		.bp_addr = kernel_symbol("xxh64"),
		.bp_len = sizeof(long),
	};

	checksum_fd = syscall(SYS_perf_event_open, &attr, ksmd, -1, -1,
			      PERF_FLAG_FD_CLOEXEC);
	if (checksum_fd < 0)
		ksft_exit_fail_perror("cannot count calls of xxh64()");
}

/** checksums() - how many it made since count_checksums() */
uint64_t checksums(void)
{
	uint64_t count;

	if (read(checksum_fd, &count, sizeof(count)) != sizeof(count))
		ksft_exit_fail_perror("cannot read the count of checksums");
	return count;
}

/** trace_harvests() - start a trace of harvests, with nothing in it */
void trace_harvests(void)
{
	tracing = true;
	write_file(HARVEST, "1");
	/* Opening for writing with O_TRUNC is what empties it */
	close(open(TRACING "/trace", O_WRONLY | O_TRUNC | O_CLOEXEC));
}

/**
 * traced_harvests() - sum up a field of the harvests since trace_harvests()
 * @addr: first address
 * @pages: of the windows that start in so many pages from there
 * @field: its name
 */
uint64_t traced_harvests(const char *addr, size_t pages, const char *field)
{
	FILE *trace = fopen(TRACING "/trace", "re");
	uint64_t sum = 0;
	char line[512], key[32];

	if (!trace)
		ksft_exit_fail_perror(TRACING "/trace");
	snprintf(key, sizeof(key), " %s ", field);
	while (fgets(line, sizeof(line), trace)) {
		char *at = strstr(line, "ksm_dirty_harvest: ");
		char *start = at ? strstr(at, " start ") : NULL;
		char *value = at ? strstr(at, key) : NULL;
		uintptr_t window;

		if (!start || !value)
			continue;
		window = strtoul(start + strlen(" start "), NULL, 16);
		if (window - (uintptr_t)addr < pages * PAGE)
			sum += strtoull(value + strlen(key), NULL, 10);
	}
	fclose(trace);
	return sum;
}

/** now() - monotonic time, in seconds */
double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
