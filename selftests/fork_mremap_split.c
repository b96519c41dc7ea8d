// SPDX-License-Identifier: GPL-2.0
/*
 * Memory holds what was written while it is harvested without a pause and, from
 * several threads, forked, moved, protected, split, collapsed and unmapped.
 *
 * Seen to fail with: harvest.c putting back an entry with a neighbour's frame.
 */
#include "ksm_dirty_util.h"

#include <pthread.h>
#include <sys/wait.h>

#define PAGES (2 * HUGE_PAGES)
#define SECONDS 5

static atomic_bool stop;

struct storm {
	const char *name;
	bool (*round)(struct storm *storm, uint64_t seed);
	char *mem;
	pthread_t thread;
	unsigned long rounds, wrong;
};

/* The child sees what was there, and what it writes is its own. */
static bool storm_fork(struct storm *s, uint64_t seed)
{
	int status = 1;
	pid_t pid;

	fill_pages(s->mem, PAGES, seed);
	pid = fork();
	if (!pid) {
		if (wrong_pages(s->mem, PAGES, seed))
			_exit(1);
		rewrite_pages(s->mem, PAGES, ~0U);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	return !status && !wrong_pages(s->mem, PAGES, seed);
}

static bool storm_mremap(struct storm *s, uint64_t seed)
{
	char *to = map_pages(PAGES, false);

	fill_pages(s->mem, PAGES, seed);
	/* At times by page tables, at times by entries */
	if (mremap(s->mem, PAGES * PAGE, PAGES * PAGE,
		   MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		return false;
	s->mem = to;
	if (seed % 2) {
		char *odd = mremap(s->mem + PAGE, PAGE, PAGE,
				   MREMAP_MAYMOVE | MREMAP_FIXED,
				   s->mem + PAGES * PAGE);

		if (odd == MAP_FAILED ||
		    mremap(odd, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			   s->mem + PAGE) == MAP_FAILED)
			return false;
	}
	return !wrong_pages(s->mem, PAGES, seed);
}

static bool storm_mprotect(struct storm *s, uint64_t seed)
{
	size_t i;

	fill_pages(s->mem, PAGES, seed);
	for (i = 0; i < 16; i++) {
		size_t first = (seed * 31 + i * 97) % (PAGES - 64);

		if (mprotect(s->mem + first * PAGE, 64 * PAGE, PROT_READ) ||
		    mprotect(s->mem + first * PAGE, 64 * PAGE,
			     PROT_READ | PROT_WRITE))
			return false;
	}
	return !wrong_pages(s->mem, PAGES, seed);
}

/* One page of each huge page goes and comes back, then all are one again. */
static bool storm_split(struct storm *s, uint64_t seed)
{
	size_t i;

	fill_pages(s->mem, PAGES, seed);
	for (i = seed % HUGE_PAGES; i < PAGES; i += HUGE_PAGES) {
		advise(s->mem + i * PAGE, 1, MADV_DONTNEED);
		if (!page_holds(s->mem, i, 0))
			return false;
		fill_page(s->mem, i, (seed << 32) + i + 1);
	}
	if (wrong_pages(s->mem, PAGES, seed))
		return false;
	/* May fail for want of a huge page; then it stays as it is */
	madvise(s->mem, PAGES * PAGE, MADV_COLLAPSE);
	return !wrong_pages(s->mem, PAGES, seed);
}

static bool storm_munmap(struct storm *s, uint64_t seed)
{
	char *mem = map_pages(HUGE_PAGES, seed & 1);
	bool ok;

	(void)s;
	fill_pages(mem, HUGE_PAGES, seed);
	ok = !wrong_pages(mem, HUGE_PAGES, seed);
	munmap(mem + 100 * PAGE, 50 * PAGE);
	munmap(mem, HUGE_PAGES * PAGE);
	return ok;
}

static void *run(void *arg)
{
	struct storm *s = arg;

	for (; !stop; s->rounds++)
		s->wrong += !s->round(s, s->rounds + 1);
	return NULL;
}

int main(void)
{
	static struct storm storms[] = {
		{ .name = "fork", .round = storm_fork },
		{ .name = "mremap", .round = storm_mremap },
		{ .name = "mprotect", .round = storm_mprotect },
		{ .name = "split and collapse", .round = storm_split },
		{ .name = "munmap", .round = storm_munmap },
	};
	uint64_t passes, harvested;
	size_t i;

	ksft_print_header();
	ksft_set_plan(ARRAY_SIZE(storms) + 1);
	ksm_setup();
	passes = ksm_get("full_scans");
	harvested = ksm_get("pages_dirty");
	ksm_full_speed(2000);
	for (i = 0; i < ARRAY_SIZE(storms); i++) {
		storms[i].mem =
			map_pages(PAGES, storms[i].round == storm_split);
		pthread_create(&storms[i].thread, NULL, run, &storms[i]);
	}
	sleep(SECONDS);
	stop = true;
	for (i = 0; i < ARRAY_SIZE(storms); i++)
		pthread_join(storms[i].thread, NULL);
	ksm_stop();

	for (i = 0; i < ARRAY_SIZE(storms); i++)
		check(!storms[i].wrong && storms[i].rounds > 2,
		      "%s while being harvested: %lu rounds, %lu wrong\n",
		      storms[i].name, storms[i].rounds, storms[i].wrong);
	passes = ksm_get("full_scans") - passes;
	harvested = ksm_get("pages_dirty") - harvested;
	check(passes > 5 && harvested > 5 * PAGES,
	      "ksmd was at it: %lu passes, %lu pages harvested\n", passes,
	      harvested);
	ksft_finished();
}
