// SPDX-License-Identifier: GPL-2.0
/*
 * dirty_scan is toggled, and the module comes and goes, hundreds of times (on a
 * kernel that checks itself, tens) while ksmd scans memory that changes all the
 * time, without a pause.  Memory holds
 * what was written, the files come and go with the module, KSM's own stay.
 *
 * Seen to fail with: ksm_dirty_exit() without ksm_dirty_enable(false), and
 * without ksm_dirty_sysfs_exit().
 */
#include "ksm_dirty_util.h"

#include <dirent.h>
#include <pthread.h>

#define PAGES (4 * HUGE_PAGES)
#define TOGGLES 300
#define RELOADS 120
/* A kernel that checks everything gets less far, but so far in this time */
#define LEAST 20
#define SECONDS 25
#define WRITERS 2

static const char *const files[] = {
	"dirty_scan",
	"dirty_scan_probe_passes",
	"dirty_scan_recheck_passes",
	"pages_dirty",
	"pages_clean",
	"pages_unknown",
	"pages_probed",
	"pages_settled",
	"settled_passed_over",
	"settled_searches",
	"settled_pruned",
	"settled_stale",
	"dirty_scan_windows",
	"dirty_scan_flushes",
	"ksmd_runtime_ns",
};

static atomic_bool stop;
static atomic_ulong wrong, sweeps;

/* Pages in twos of a kind, so that some merge whenever they rest. */
static void *writer(void *arg)
{
	char *mem = map_pages(PAGES, arg);
	uint64_t sweep, last;
	size_t i;

	for (i = 0; i < PAGES; i++)
		fill_page(mem, i, i / 2);
	/* A page is written in every third sweep and rests in between */
	for (sweep = 1; !stop; sweep++, sweeps++) {
		for (i = sweep % 3; i < PAGES; i += 3) {
			last = sweep > 3 ? sweep - 3 : 0;
			wrong += !page_holds(mem, i, last << 32 | i / 2);
			fill_page(mem, i, sweep << 32 | i / 2);
		}
	}
	munmap(mem, PAGES * PAGE);
	return NULL;
}

/* Files come and go under whoever reads them. */
static void *reader(void *unused)
{
	char path[128], buf[64];
	size_t i;
	FILE *file;

	(void)unused;
	for (i = 0; !stop; i++) {
		snprintf(path, sizeof(path), KSM_DIR "/%s",
			 files[i % ARRAY_SIZE(files)]);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (!fgets(buf, sizeof(buf), file) && !ferror(file))
			wrong++;
		fclose(file);
	}
	return NULL;
}

static unsigned int count_files(bool ours)
{
	DIR *dir = opendir(KSM_DIR);
	struct dirent *entry;
	unsigned int count = 0;
	size_t i;

	if (!dir)
		ksft_exit_fail_perror(KSM_DIR);
	while ((entry = readdir(dir))) {
		for (i = 0; i < ARRAY_SIZE(files); i++)
			if (!strcmp(entry->d_name, files[i]))
				break;
		count += (i < ARRAY_SIZE(files)) == ours;
	}
	closedir(dir);
	return count;
}

static void unload(void)
{
	int err;

	/* A reader may have a file of it open */
	while ((err = module_unload("ksm_dirty")) == EAGAIN)
		;
	if (err)
		ksft_exit_fail_msg("cannot unload ksm_dirty: %s\n",
				   strerror(err));
}

int main(void)
{
	pthread_t threads[WRITERS + 1];
	unsigned int own, i, left = 0, missing = 0, not_again = 0;
	uint64_t full_scans;
	double end;

	ksft_print_header();
	ksft_set_plan(7);
	ksm_setup();
	own = count_files(false);
	check(module_load("ksm_dirty", "") == EEXIST,
	      "loading it twice: EEXIST\n");

	ksm_full_speed(2000);
	for (i = 0; i < WRITERS; i++)
		pthread_create(&threads[i], NULL, writer, i ? (void *)1 : NULL);
	pthread_create(&threads[WRITERS], NULL, reader, NULL);
	full_scans = ksm_get("full_scans");

	end = now() + SECONDS;
	for (i = 0; i < TOGGLES && (i < LEAST || now() < end); i++) {
		ksm_set("dirty_scan", i & 1);
		not_again += ksm_get("dirty_scan") != (i & 1);
	}
	ksft_print_msg("toggled %u times\n", i);
	check(!not_again, "dirty_scan was what it was set to\n");

	end = now() + SECONDS;
	for (i = 0; i < RELOADS && (i < LEAST || now() < end); i++) {
		unload();
		left += count_files(true);
		need_module("ksm_dirty");
		missing += ARRAY_SIZE(files) - count_files(true);
		missing += !ksm_get("dirty_scan");
	}
	ksft_print_msg("reloaded %u times\n", i);
	full_scans = ksm_get("full_scans") - full_scans;
	stop = true;
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	ksft_print_msg("%lu passes and %lu sweeps meanwhile\n", full_scans,
		       (unsigned long)sweeps);

	check(!left && !missing, "its files came and went with it\n");
	check(count_files(false) == own, "KSM's own files stayed\n");
	check(!wrong, "memory held what was written\n");
	check(full_scans > 2 && sweeps > 2, "ksmd and writers were at it\n");

	ksm_stop();
	unload();
	check(!count_files(true) && count_files(false) == own &&
		      !module_load("ksm_dirty", ""),
	      "unloaded while ksmd is stopped, and loaded again\n");
	ksft_finished();
}
