// SPDX-License-Identifier: GPL-2.0
/*
 * ksmd is stepped. It sleeps an hour after each batch, a batch is large enough
 * for a whole pass, and a write to sleep_millisecs wakes it for the next. What
 * /proc/<ksmd>/schedstat gained meanwhile is that pass's cost.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "bench.h"
#include "ksmd.h"

const struct variant_info variants[VARIANTS] = {
	[OFF] = { "off", 0, 0, 0, 0, 0 },
	[STOCK] = { "stock", 1, 0, 0, 2, 1 },
	[SMART] = { "smart", 1, 1, 0, 20, 9 },
	[DIRTY] = { "dirty", 1, 0, 1, 4, 32 },
};

static pid_t ksmd;

volatile sig_atomic_t interrupted;

void nap(double seconds)
{
	struct timespec t = { .tv_sec = seconds,
			      .tv_nsec = (seconds - (time_t)seconds) * 1e9 };

	nanosleep(&t, NULL);
	if (interrupted)
		fail(EXIT_FAILURE, "interrupted by signal %d", interrupted);
}

/* --- /proc and /sys --- */

bool slurp(const char *path, char *buffer, size_t size)
{
	FILE *file = fopen(path, "r");
	size_t n;

	if (!file)
		return false;
	n = fread(buffer, 1, size - 1, file);
	fclose(file);
	buffer[n] = '\0';
	return n > 0;
}

bool ksm_has(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), KSM "%s", name);
	return access(path, F_OK) == 0;
}

uint64_t ksm_read(const char *name)
{
	char path[128], text[64];

	snprintf(path, sizeof(path), KSM "%s", name);
	if (!slurp(path, text, sizeof(text)))
		fail(EXIT_FAILURE, "%s: %s", path, strerror(errno));
	return strtoull(text, NULL, 10);
}

bool put(const char *path, const char *text)
{
	bool done;
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return false;
	done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return done;
}

bool ksm_put(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), KSM "%s", name);
	return put(path, text);
}

void ksm_write(const char *name, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	if (!ksm_put(name, text))
		fail(EXIT_FAILURE, KSM "%s: cannot write %s: %s", name, text,
		     strerror(errno));
}

void ksm_write_if(const char *name, uint64_t value)
{
	if (ksm_has(name))
		ksm_write(name, value);
}

/* Counters that a kernel has or has not; absent counts nothing. */
uint64_t ksm_count(const char *name)
{
	return ksm_has(name) ? ksm_read(name) : 0;
}

/* A number of a process's /proc/<pid>/ksm_stat. */
uint64_t process_stat(pid_t pid, const char *name)
{
	char path[64], text[512], *at;

	snprintf(path, sizeof(path), "/proc/%d/ksm_stat", pid);
	if (!slurp(path, text, sizeof(text)))
		fail(EXIT_FAILURE, "%s: %s", path, strerror(errno));
	at = strstr(text, name);
	if (!at)
		fail(EXIT_FAILURE, "%s: no %s", path, name);
	return strtoull(at + strlen(name), NULL, 10);
}

static pid_t find_ksmd(void)
{
	char path[300], name[32];
	struct dirent *entry;
	pid_t found = 0;
	DIR *proc = opendir("/proc");

	while (proc && !found && (entry = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		if (!slurp(path, name, sizeof(name)) || strcmp(name, "ksmd\n"))
			continue;
		found = atoi(entry->d_name);
	}
	if (proc)
		closedir(proc);
	if (!found)
		fail(EXIT_FAILURE,
		     "no ksmd in /proc: boot a kernel with CONFIG_KSM");
	return found;
}

pid_t ksmd_pid(void)
{
	return ksmd;
}

/* ksmd's CPU time */
uint64_t ksmd_runtime(void)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", ksmd);
	if (!slurp(path, text, sizeof(text)))
		fail(EXIT_FAILURE,
		     "%s: %s (needs a kernel with CONFIG_SCHED_INFO)", path,
		     strerror(errno));
	return strtoull(text, NULL, 10);
}

static bool ksmd_asleep(void)
{
	char path[64], text[512], *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", ksmd);
	if (!slurp(path, text, sizeof(text)))
		fail(EXIT_FAILURE, "%s: %s", path, strerror(errno));
	state = strrchr(text, ')');
	return state && state[1] && state[2] == 'S';
}

uint64_t rmap_item_bytes(void)
{
	char line[512];
	uint64_t size;
	FILE *file = fopen("/proc/slabinfo", "r");

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "ksm_rmap_item %*u %*u %" SCNu64, &size) != 1)
			continue;
		fclose(file);
		return size;
	}
	fail(EXIT_FAILURE,
	     "no ksm_rmap_item in /proc/slabinfo: boot with slab_nomerge");
}

/* --- leave everything as it was found --- */

static struct {
	const char *name;
	char value[128];
} knobs[] = {
	/* In the order of putting them back: the advisor owns pages_to_scan. */
	{ "dirty_scan", "" },	  { "smart_scan", "" },
	{ "pages_to_scan", "" },  { "sleep_millisecs", "" },
	{ "advisor_mode", "" },	  { "run", "" },
	{ "use_zero_pages", "" }, { PROBE_PASSES, "" },
	{ RECHECK_PASSES, "" },
};

static cpu_set_t ksmd_cpus;

static void save_settings(void)
{
	char path[128], text[128], *word;
	unsigned int i;

	for (i = 0; i < sizeof(knobs) / sizeof(*knobs); i++) {
		snprintf(path, sizeof(path), KSM "%s", knobs[i].name);
		if (!slurp(path, text, sizeof(text)))
			continue;
		/* A choice reads "one [two]", the one in force in brackets. */
		word = strchr(text, '[');
		word = word ? word + 1 : text;
		word[strcspn(word, "]\n")] = '\0';
		strcpy(knobs[i].value, word);
	}
	sched_getaffinity(ksmd, sizeof(ksmd_cpus), &ksmd_cpus);
}

/* What a file held when this program started; 0 where there is no such file. */
uint64_t saved(const char *name)
{
	unsigned int i;

	for (i = 0; i < sizeof(knobs) / sizeof(*knobs); i++)
		if (!strcmp(knobs[i].name, name))
			return strtoull(knobs[i].value, NULL, 10);
	return 0;
}

/* Puts everything back as ksmd_take() found it. */
void ksmd_give_back(void)
{
	unsigned int i;

	for (i = 0; i < sizeof(knobs) / sizeof(*knobs); i++)
		if (*knobs[i].value)
			ksm_put(knobs[i].name, knobs[i].value);
	sched_setaffinity(ksmd, sizeof(ksmd_cpus), &ksmd_cpus);
}

/* Finds ksmd, gives it its CPU, and has it do whole passes. */
void ksmd_take(void)
{
	ksmd = find_ksmd();
	save_settings();
	atexit(ksmd_give_back);
	pin(ksmd, KSMD_CPU);
	if (ksm_has("advisor_mode") && !ksm_put("advisor_mode", "none"))
		fail(EXIT_FAILURE, KSM "advisor_mode: %s", strerror(errno));
	ksm_write("pages_to_scan", UINT32_MAX);
}

/* --- ksmd --- */

/*
 * A value that it has not had: ksmd goes by whether it differs from the one that it
 * went to sleep with.
 */
void ksmd_wake(void)
{
	static unsigned int turn;

	ksm_write("sleep_millisecs", STEP_SLEEP_MS + ++turn % 1000000);
}

void ksmd_settle(void)
{
	double limit = seconds_now() + STUCK_SECONDS;

	while (!ksmd_asleep()) {
		if (seconds_now() > limit)
			fail(EXIT_FAILURE,
			     "ksmd did not go to sleep in %d s; its pass is stuck",
			     STUCK_SECONDS);
		nap(0.001);
	}
}

/* How often dirty_scan looks at pages that it passes over else; 0: never. */
void look_every(uint64_t probe_passes, uint64_t recheck_passes)
{
	ksm_write_if(PROBE_PASSES, probe_passes);
	ksm_write_if(RECHECK_PASSES, recheck_passes);
}

/* From any state into @v, asleep before its next pass. */
void ksmd_setup(const struct variant_info *v)
{
	ksm_write("sleep_millisecs", STEP_SLEEP_MS);
	ksm_write("run", 0);
	ksmd_wake();
	ksmd_settle();
	ksm_write_if("smart_scan", v->smart_scan);
	ksm_write_if("dirty_scan", v->dirty_scan);
	look_every(saved(PROBE_PASSES), saved(RECHECK_PASSES));
	ksm_write("run", v->run);
	ksmd_settle();
}

/**
 * ksmd_step() - one pass of ksmd
 * @ns: the CPU time it took
 *
 * Returns false if ksmd made more than one pass meanwhile: not what was asked
 * for, and to be thrown away.
 */
bool ksmd_step(uint64_t *ns)
{
	uint64_t scans, ran;
	double limit = seconds_now() + STUCK_SECONDS;

	scans = ksm_read("full_scans");
	ran = ksmd_runtime();
	do {
		/* A pass may take more than one batch. */
		ksmd_wake();
		ksmd_settle();
		if (seconds_now() > limit)
			fail(EXIT_FAILURE,
			     "ksmd finished no pass in %d s: use less --size",
			     STUCK_SECONDS);
	} while (ksm_read("full_scans") == scans);
	*ns = ksmd_runtime() - ran;
	return ksm_read("full_scans") == scans + 1;
}

/* Has ksmd drop what it keeps of processes that are gone, and then stop. */
void ksmd_reap(void)
{
	unsigned int i;

	ksm_write("run", 1);
	for (i = 0; i < 3; i++) {
		ksmd_wake();
		ksmd_settle();
	}
	/* Else it would start by itself with the next process. */
	ksm_write("run", 0);
	ksmd_wake();
	ksmd_settle();
}
