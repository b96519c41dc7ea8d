// SPDX-License-Identifier: GPL-2.0
/*
 * A page that is written just when ksmd is about to merge it: write protection
 * clears its dirty bit, and the comparison finds that it differs.  It must not stay
 * among the settled pages then, where nothing would show that it was written, and
 * nobody would find it for what it holds now.
 *
 * ksmd waits for the process's mmap_lock between its search and write protection, so
 * a thread holds that most of the time, and another one writes.
 *
 * Seen to fail with: try_to_merge_with_ksm_page() not removing the page from the
 * settled tree (mm/ksm.c).
 */
#include "ksm_dirty_util.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PAGES 64UL
/* What mprotect() goes over while it holds mmap_lock */
#define AWAY_PAGES (16UL << 20 >> 12)
/* Tries until so many merges have failed; one in three tries has one */
#define WANT 5
#define TRIES 200
#define MERGE_EVENT "/sys/kernel/tracing/events/ksm/ksm_merge_with_ksm_page"

static char *mem;
static atomic_bool storm, stop, go;
static useconds_t delay;
static uint64_t seed;

static void *hold_mmap_lock(void *arg)
{
	char *away = arg;

	while (!stop) {
		if (!storm) {
			usleep(500);
			continue;
		}
		if (mprotect(away, AWAY_PAGES * PAGE, PROT_READ) ||
		    mprotect(away, AWAY_PAGES * PAGE, PROT_READ | PROT_WRITE))
			ksft_exit_fail_perror("mprotect");
		usleep(100);
	}
	return NULL;
}

static void *write_once(void *arg)
{
	(void)arg;
	while (!stop) {
		if (!go) {
			usleep(500);
			continue;
		}
		usleep(delay);
		rewrite_pages(mem, PAGES, ~seed);
		go = false;
	}
	return NULL;
}

/* A process that has copies of the pages; told the seed, it fills them */
static int to_child[2], from_child[2];

static void copies(void)
{
	char *copy = map_pages(PAGES, false), done = 1;
	uint64_t value;

	while (read(to_child[0], &value, sizeof(value)) == sizeof(value)) {
		fill_pages(copy, PAGES, value);
		if (write(from_child[1], &done, 1) != 1)
			break;
	}
}

static void make_copies(void)
{
	char done;

	if (write(to_child[1], &seed, sizeof(seed)) != sizeof(seed) ||
	    read(from_child[0], &done, 1) != 1)
		ksft_exit_fail_msg("the process with the copies is gone\n");
}

static unsigned int failed_merges(void)
{
	FILE *trace = fopen("/sys/kernel/tracing/trace", "re");
	unsigned int count = 0;
	char line[512];

	if (!trace)
		ksft_exit_fail_perror("/sys/kernel/tracing/trace");
	while (fgets(line, sizeof(line), trace))
		count += !!strstr(line, "ksm_merge_with_ksm_page: ");
	fclose(trace);
	return count;
}

int main(void)
{
	unsigned int tries, failed = 0;
	pthread_t holder, writer;
	double start, seconds = 0;
	uint64_t stale;
	char *away;
	pid_t pid;

	ksft_print_header();
	ksft_set_plan(2);
	ksm_setup();
	if (pipe(to_child) || pipe(from_child))
		ksft_exit_fail_perror("pipe");
	pid = fork();
	if (pid < 0)
		ksft_exit_fail_perror("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(to_child[1]);
		copies();
		_exit(0);
	}
	mem = map_pages(PAGES, false);
	away = mmap(NULL, AWAY_PAGES * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (away == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	advise(away, AWAY_PAGES, MADV_NOHUGEPAGE);
	rewrite_pages(away, AWAY_PAGES, 1);
	write_file(MERGE_EVENT "/filter", "err != 0");
	write_file(MERGE_EVENT "/enable", "1");
	if (pthread_create(&holder, NULL, hold_mmap_lock, away) ||
	    pthread_create(&writer, NULL, write_once, NULL))
		ksft_exit_fail_msg("no threads\n");

	for (tries = 0; tries < TRIES && failed < WANT; tries++) {
		seed++;
		fill_pages(mem, PAGES, seed);
		ksm_pass(2);
		make_copies();
		ksm_pass(1);
		/* In which they are merged */
		delay = rand() % (useconds_t)(1e6 * seconds + 1);
		storm = true;
		go = true;
		start = now();
		ksm_pass(1);
		seconds = now() - start;
		storm = false;
		while (go)
			usleep(500);
		failed = failed_merges();
		/* All that is settled now is looked at again, at rest */
		ksm_pass(2);
		ksm_set("dirty_scan_recheck_passes", 1);
		ksm_pass(1);
		ksm_set("dirty_scan_recheck_passes", 0);
	}
	stop = true;
	pthread_join(holder, NULL);
	pthread_join(writer, NULL);
	stale = ksm_get("settled_stale");
	write_file(MERGE_EVENT "/enable", "0");
	write_file(MERGE_EVENT "/filter", "0");
	check(failed >= WANT, "%u merges failed in %u tries\n", failed, tries);

	check(!stale,
	      "%lu pages stayed in the settled tree as what they were\n",
	      stale);
	ksft_finished();
}
