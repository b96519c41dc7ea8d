// SPDX-License-Identifier: GPL-2.0
/*
 * What is written after a harvest is what is read: to pages that were clean, that
 * have merged, that are shared with a child.
 *
 * Seen to fail with: harvest.c putting back an entry with a neighbour's frame.
 */
#include "ksm_dirty_util.h"

#include <sys/wait.h>

#define PAGES HUGE_PAGES

static void test(bool huge)
{
	const char *what = huge ? "huge" : "regular";
	char *a = map_pages(PAGES, huge), *b = map_pages(PAGES, huge);
	size_t wrong = 0;
	uint64_t seed;
	int status, i;
	pid_t pid;

	fill_pages(a, PAGES, 1);
	if (huge)
		need_huge(a, PAGES);
	for (seed = 2; seed < 10; seed++) {
		ksm_pass(1 + seed % 3);
		wrong += wrong_pages(a, PAGES, seed - 1);
		fill_pages(a, PAGES, seed);
	}
	check(!wrong, "%s: written after harvests\n", what);

	/* One side is written after the merge, the other stays */
	fill_pages(b, PAGES, seed - 1);
	ksm_pass(4);
	check(ksm_stat("ksm_merging_pages") == 2 * PAGES, "%s: pages merge\n",
	      what);
	fill_pages(a, PAGES, seed);
	check(!wrong_pages(a, PAGES, seed) && !wrong_pages(b, PAGES, seed - 1),
	      "%s: written after the merge\n", what);
	ksm_pass(2);
	check(!wrong_pages(a, PAGES, seed) && !wrong_pages(b, PAGES, seed - 1),
	      "%s: and after another harvest\n", what);

	/* And a child's writes are its own */
	for (i = 0, wrong = 0; i < 4; i++) {
		pid = fork();
		if (!pid) {
			wrong = wrong_pages(a, PAGES, seed);
			if (i & 1)
				fill_pages(a, PAGES, 77);
			_exit(!!wrong);
		}
		if (!(i & 1))
			fill_pages(a, PAGES / 2, seed);
		ksm_pass(1);
		if (waitpid(pid, &status, 0) != pid || status)
			wrong++;
		wrong += wrong_pages(a, PAGES, seed);
		ksm_pass(1);
	}
	check(!wrong, "%s: written after fork\n", what);
	munmap(a, PAGES * PAGE);
	munmap(b, PAGES * PAGE);
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(10);
	ksm_setup();
	test(false);
	test(true);
	ksft_finished();
}
