// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that nobody writes costs nothing: from the third pass on its pages are
 * passed over in the settled tree (and merged ones where they are), with no look,
 * no checksum, no search.  What is written, unmapped, moved, swapped, split or
 * collapsed leaves the tree and no more, pages_settled is exact, and a copy that
 * comes later merges as soon as it does with dirty_scan=0.
 *
 * Seen to fail with: ksm_dirty_judge() leaving @clean empty, and @merged; harvest.c
 * clearing no dirty bit; no window rechecked, and ksm_dirty_due() always choosing
 * the same ones; use_zero_pages_store() not emptying the tree; searches
 * that end at a page that is gone; merged pages looked at (the last three in
 * mm/ksm.c).
 */
#include "ksm_dirty_util.h"

#include <sys/wait.h>

#define PAGES (2 * HUGE_PAGES)
#define HALF (PAGES / 2)
#define STEADY 3
#define LIMIT 12

static uint64_t seed;

static uint64_t settled(void)
{
	return ksm_get("pages_settled");
}

/* How many of the pages have a frame */
static size_t resident(const char *mem, size_t pages)
{
	size_t i, count = 0;

	for (i = 0; i < pages; i++)
		count += pagemap_entry(mem, i) >> 63;
	return count;
}

/* New memory, each page with contents of its own */
static char *map_unique(bool huge)
{
	char *mem = map_pages(PAGES, huge);

	fill_pages(mem, PAGES, ++seed);
	if (huge)
		need_huge(mem, PAGES);
	return mem;
}

/* Unmaps all there is; true where ksmd keeps nothing of it */
static bool gone(char *mem, size_t pages)
{
	munmap(mem, pages * PAGE);
	ksm_pass(1);
	return !settled() && !ksm_stat("ksm_rmap_items") &&
	       !ksm_get("pages_shared") && !ksm_get("pages_sharing");
}

/* What some passes cost, by the counters */
struct cost {
	uint64_t scanned, checksums, searches, passed_over, pruned, stale;
};

static struct cost cost_so_far(void)
{
	return (struct cost){
		.scanned = ksm_get("pages_scanned"),
		.checksums = checksums(),
		.searches = ksm_get("settled_searches"),
		.passed_over = ksm_get("settled_passed_over"),
		.pruned = ksm_get("settled_pruned"),
		.stale = ksm_get("settled_stale"),
	};
}

static struct cost cost_of_passes(unsigned int passes)
{
	struct cost before = cost_so_far(), cost;

	ksm_pass(passes);
	cost = cost_so_far();
	cost.scanned -= before.scanned;
	cost.checksums -= before.checksums;
	cost.searches -= before.searches;
	cost.passed_over -= before.passed_over;
	cost.pruned -= before.pruned;
	cost.stale -= before.stale;
	ksft_print_msg(
		"%lu scanned, %lu checksums, %lu searches, %lu passed over, %lu pruned, %lu stale, %lu settled\n",
		cost.scanned, cost.checksums, cost.searches, cost.passed_over,
		cost.pruned, cost.stale, settled());
	return cost;
}

/* Passed over in each pass, and nothing else */
static bool rests(size_t pages)
{
	struct cost cost = cost_of_passes(STEADY);

	return !cost.scanned && !cost.checksums && !cost.searches &&
	       !cost.pruned && cost.passed_over == STEADY * pages;
}

static void test_quiet(bool huge)
{
	const char *what = huge ? "huge" : "regular";
	char *mem = map_unique(huge);
	struct cost cost = cost_of_passes(2);

	check(settled() == PAGES && ksm_get("pages_unshared") == PAGES &&
		      ksm_stat("ksm_rmap_items") == PAGES,
	      "%s: each page is settled after two passes\n", what);
	check(cost.scanned == PAGES && cost.searches == PAGES &&
		      cost.checksums == PAGES,
	      "%s: by one look, one checksum, one search each\n", what);
	check(rests(PAGES), "%s: from then on it is passed over\n", what);
	check(settled() == PAGES && ksm_get("pages_unshared") == PAGES,
	      "%s: and stays settled\n", what);
	check(!wrong_pages(mem, PAGES, seed), "%s: contents\n", what);
	check(gone(mem, PAGES), "%s: nothing is left of it\n", what);
}

/* Hot pages among settled ones, in the same windows */
static void test_beside_hot(void)
{
	const size_t step = 4, hot = PAGES / step;
	char *mem = map_unique(false);
	struct cost cost = {};
	uint64_t value;
	size_t i;

	for (value = 1; value <= 3 + STEADY; value++) {
		for (i = 0; i < PAGES; i += step)
			set_word(mem, i, value << 32 | i);
		if (value == 4)
			cost = cost_so_far();
		ksm_pass(1);
	}
	check(ksm_get("pages_scanned") == cost.scanned &&
		      ksm_get("settled_passed_over") - cost.passed_over ==
			      STEADY * (PAGES - hot),
	      "beside hot pages: passed over\n");
	check(settled() == PAGES - hot &&
		      ksm_stat("ksm_rmap_items") == PAGES - hot,
	      "beside hot pages: settled, and the hot ones are not\n");
	check(gone(mem, PAGES), "beside hot pages: nothing is left of it\n");
}

/*
 * What can happen to settled memory.  Each returns how many pages are left,
 * from the first on; *after is how many of them should be settled after one
 * pass.  *mem may move.
 */
struct change {
	const char *what;
	size_t (*make)(char **mem, size_t *after);
	bool huge;
};

/* With the same contents: what counts is that it is written */
static size_t change_write(char **mem, size_t *after)
{
	set_word(*mem, 3, get_word(*mem, 3));
	*after = PAGES - 1;
	return PAGES;
}

static size_t change_write_huge(char **mem, size_t *after)
{
	set_word(*mem, 3, get_word(*mem, 3));
	*after = PAGES - HUGE_PAGES;
	return PAGES;
}

static size_t change_munmap(char **mem, size_t *after)
{
	munmap(*mem + HALF * PAGE, HALF * PAGE);
	*after = HALF;
	return HALF;
}

/* Within a huge page, which is split */
static size_t change_munmap_part(char **mem, size_t *after)
{
	munmap(*mem + (PAGES - 100) * PAGE, 100 * PAGE);
	*after = PAGES - 100;
	return PAGES - 100;
}

static size_t change_dontneed(char **mem, size_t *after)
{
	advise(*mem + HALF * PAGE, HALF, MADV_DONTNEED);
	*after = HALF;
	return HALF;
}

static size_t change_unmergeable(char **mem, size_t *after)
{
	advise(*mem, PAGES, MADV_UNMERGEABLE);
	ksm_pass(1);
	if (settled())
		ksft_exit_fail_msg("%lu settled, none is mergeable\n",
				   settled());
	advise(*mem, PAGES, MADV_MERGEABLE);
	*after = PAGES;
	return PAGES;
}

static size_t change_mprotect_part(char **mem, size_t *after)
{
	if (mprotect(*mem + 100 * PAGE, 50 * PAGE, PROT_READ))
		ksft_exit_fail_perror("mprotect");
	*after = PAGES;
	return PAGES;
}

/* The first huge page is split and collapsed: that counts as written once */
static size_t change_collapse(char **mem, size_t *after)
{
	change_mprotect_part(mem, after);
	ksm_pass(1);
	if (mprotect(*mem, PAGES * PAGE, PROT_READ | PROT_WRITE))
		ksft_exit_fail_perror("mprotect");
	advise(*mem, PAGES, MADV_COLLAPSE);
	need_huge(*mem, PAGES);
	*after = PAGES - HUGE_PAGES;
	return PAGES;
}

/* Swapped in by reading, which leaves the pages clean */
static size_t change_pageout(char **mem, size_t *after)
{
	advise(*mem, PAGES, MADV_PAGEOUT);
	*after = resident(*mem, PAGES);
	if (*after > HALF)
		ksft_exit_fail_msg("%zu of %lu pages are not swapped out\n",
				   *after, PAGES);
	ksm_pass(1);
	if (settled() != *after)
		ksft_exit_fail_msg("%lu settled, %zu are there\n", settled(),
				   *after);
	if (wrong_pages(*mem, PAGES, seed))
		ksft_exit_fail_msg("wrong contents out of swap\n");
	*after = PAGES;
	return PAGES;
}

static size_t change_mremap(char **mem, size_t *after)
{
	char *to = map_pages(PAGES, false);

	if (mremap(*mem, PAGES * PAGE, PAGES * PAGE,
		   MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		ksft_exit_fail_perror("mremap");
	*mem = to;
	*after = PAGES;
	return PAGES;
}

/* The halves change places */
static size_t change_mremap_swap(char **mem, size_t *after)
{
	const int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
	char *a = *mem, *b = *mem + HALF * PAGE;
	char *away = map_pages(HALF, false);
	size_t size = HALF * PAGE;

	if (mremap(a, size, size, flags, away) != away ||
	    mremap(b, size, size, flags, a) != a ||
	    mremap(away, size, size, flags, b) != b)
		ksft_exit_fail_perror("mremap");
	ksm_pass(1);
	if (settled() != PAGES)
		ksft_exit_fail_msg("%lu of %lu settled when moved\n", settled(),
				   PAGES);
	/* And back, for the contents */
	if (mremap(a, size, size, flags, away) != away ||
	    mremap(b, size, size, flags, a) != a ||
	    mremap(away, size, size, flags, b) != b)
		ksft_exit_fail_perror("mremap");
	*after = PAGES;
	return PAGES;
}

/* The child's pages are the parent's, which stay what is in the tree */
static size_t change_fork(char **mem, size_t *after)
{
	int go[2], status;
	char byte;
	pid_t pid;

	if (pipe(go))
		ksft_exit_fail_perror("pipe");
	pid = fork();
	if (pid < 0)
		ksft_exit_fail_perror("fork");
	if (!pid) {
		close(go[1]);
		_exit(read(go[0], &byte, 1) || wrong_pages(*mem, PAGES, seed));
	}
	close(go[0]);
	ksm_pass(2);
	if (settled() != PAGES)
		ksft_exit_fail_msg("%lu of %lu settled, with a child\n",
				   settled(), PAGES);
	close(go[1]);
	if (waitpid(pid, &status, 0) != pid || status)
		ksft_exit_fail_msg("the child saw wrong contents\n");
	*after = PAGES;
	return PAGES;
}

static size_t change_run_2(char **mem, size_t *after)
{
	(void)mem;
	ksm_set("run", 2);
	if (settled())
		ksft_exit_fail_msg("run=2 left %lu settled\n", settled());
	ksm_set("run", 0);
	*after = PAGES;
	return PAGES;
}

static size_t change_off_and_on(char **mem, size_t *after)
{
	(void)mem;
	ksm_set("dirty_scan", 0);
	ksm_pass(1);
	if (settled())
		ksft_exit_fail_msg("%lu settled with dirty_scan=0\n",
				   settled());
	ksm_pass(2);
	ksm_set("dirty_scan", 1);
	*after = PAGES;
	return PAGES;
}

/* Before a pass came by */
static size_t change_off_and_on_at_once(char **mem, size_t *after)
{
	(void)mem;
	ksm_set("dirty_scan", 0);
	ksm_set("dirty_scan", 1);
	*after = PAGES;
	return PAGES;
}

static size_t change_reload(char **mem, size_t *after)
{
	(void)mem;
	if (module_unload("ksm_dirty"))
		ksft_exit_fail_msg("cannot unload ksm_dirty\n");
	ksm_pass(2);
	need_module("ksm_dirty");
	ksm_set("dirty_scan_probe_passes", 0);
	ksm_set("dirty_scan_recheck_passes", 0);
	if (settled())
		ksft_exit_fail_msg("%lu settled when loaded\n", settled());
	*after = PAGES;
	return PAGES;
}

/* How many passes it takes to merge a copy of memory that is scanned already */
static unsigned int passes_to_merge(const char *mem, size_t pages)
{
	char *copy = map_pages(pages, false);
	unsigned int passes;

	memcpy(copy, mem, pages * PAGE);
	for (passes = 0; passes < LIMIT; passes++) {
		if (ksm_stat("ksm_merging_pages") == 2 * pages)
			break;
		if (passes > 1)
			ksft_print_msg("%lu of %lu merged after %u passes\n",
				       ksm_stat("ksm_merging_pages"), 2 * pages,
				       passes);
		ksm_pass(1);
	}
	if (memcmp(copy, mem, pages * PAGE))
		ksft_exit_fail_msg("the copy is none any more\n");
	munmap(copy, pages * PAGE);
	return passes;
}

static unsigned int passes_of_stock(void)
{
	char *mem = map_unique(false);
	unsigned int passes;

	ksm_set("dirty_scan", 0);
	ksm_pass(4);
	passes = passes_to_merge(mem, PAGES);
	munmap(mem, PAGES * PAGE);
	ksm_pass(1);
	ksm_set("dirty_scan", 1);
	ksft_print_msg("dirty_scan=0: a copy merges in %u passes\n", passes);
	if (passes >= LIMIT)
		ksft_exit_fail_msg("it does not merge at all\n");
	return passes;
}

static const struct change changes[] = {
	{ "nothing", NULL, false },
	{ "write", change_write, false },
	{ "write to a huge page", change_write_huge, true },
	{ "munmap", change_munmap, false },
	{ "munmap of a part of a huge page", change_munmap_part, true },
	{ "MADV_DONTNEED", change_dontneed, false },
	{ "MADV_UNMERGEABLE", change_unmergeable, true },
	{ "mprotect", change_mprotect_part, false },
	{ "mprotect of a part of a huge page", change_mprotect_part, true },
	{ "MADV_COLLAPSE", change_collapse, true },
	{ "swap", change_pageout, false },
	{ "mremap", change_mremap, false },
	{ "mremap of huge pages", change_mremap, true },
	{ "mremap to and fro", change_mremap_swap, false },
	{ "fork and exit", change_fork, false },
	{ "run=2", change_run_2, true },
	{ "dirty_scan=0 and 1", change_off_and_on, false },
	{ "dirty_scan=0 and 1 at once", change_off_and_on_at_once, false },
	{ "another module", change_reload, false },
};

static void test_change(const struct change *change, unsigned int stock,
			bool smart)
{
	char *mem = map_unique(change->huge);
	size_t left = PAGES, after = PAGES, one, two, wrong;
	unsigned int passes;
	bool rest, clear;

	ksm_pass(2);
	if (settled() != PAGES)
		ksft_exit_fail_msg("%lu of %lu settled before %s\n", settled(),
				   PAGES, change->what);
	if (change->make)
		left = change->make(&mem, &after);
	ksm_pass(1);
	one = settled();
	ksm_pass(1);
	two = settled();
	rest = rests(left);
	wrong = wrong_pages(mem, left, seed);
	ksm_set("smart_scan", smart);
	passes = passes_to_merge(mem, left);
	ksm_set("smart_scan", 0);
	wrong += wrong_pages(mem, left, seed);
	ksft_print_msg(
		"%zu and %zu settled, %zu wrong; a copy merges in %u passes\n",
		one, two, wrong, passes);
	clear = gone(mem, PAGES);
	check(one == after && two == left && rest && !wrong &&
		      passes <= stock && clear,
	      "%s%s: what is left settles, and merges\n", change->what,
	      smart ? " (smart_scan)" : "");
}

/* Settled pages of a process that ends */
static void test_exit(void)
{
	char *mem = map_unique(false);
	size_t with_child, without;
	int up[2], down[2], status;
	pid_t pid;
	char byte;

	ksm_pass(2);
	if (pipe(up) || pipe(down))
		ksft_exit_fail_perror("pipe");
	pid = fork();
	if (pid < 0)
		ksft_exit_fail_perror("fork");
	if (!pid) {
		close(down[1]);
		munmap(mem, PAGES * PAGE);
		mem = map_unique(false);
		if (write(up[1], "x", 1) != 1)
			_exit(1);
		_exit(read(down[0], &byte, 1));
	}
	close(down[0]);
	if (read(up[0], &byte, 1) != 1)
		ksft_exit_fail_msg("the child had nothing to say\n");
	ksm_pass(2);
	with_child = settled();
	close(down[1]);
	close(up[0]);
	close(up[1]);
	waitpid(pid, &status, 0);
	ksm_pass(1);
	without = settled();
	check(with_child == 2 * PAGES && without == PAGES && !status,
	      "exit: %zu settled with the child, %zu without\n", with_child,
	      without);
	check(!wrong_pages(mem, PAGES, seed) && rests(PAGES),
	      "exit: what is left rests\n");
	check(gone(mem, PAGES), "exit: nothing is left of it\n");
}

static void test_merged(bool huge)
{
	const char *what = huge ? "merged huge pages" : "merged pages";
	char *a = map_unique(huge), *b = map_pages(PAGES, huge);
	uint64_t sharing[2], shared, unique;

	fill_pages(b, PAGES, seed);
	ksm_pass(3);
	check(ksm_get("pages_sharing") == PAGES &&
		      ksm_get("pages_shared") == PAGES && !settled(),
	      "%s: shared, and not settled\n", what);
	check(rests(2 * PAGES), "%s: are passed over\n", what);
	check(ksm_get("pages_sharing") == PAGES &&
		      ksm_get("pages_shared") == PAGES,
	      "%s: and stay shared\n", what);

	/* One page of each pair is written, then as it was */
	rewrite_pages(a, HALF, ~0U);
	ksm_pass(1);
	sharing[0] = ksm_get("pages_sharing");
	ksm_pass(1);
	unique = settled();
	fill_pages(a, HALF, seed);
	ksm_pass(2);
	sharing[1] = ksm_get("pages_sharing");
	shared = ksm_get("pages_shared");
	ksft_print_msg(
		"sharing %lu, settled %lu, then sharing %lu, shared %lu\n",
		sharing[0], unique, sharing[1], shared);
	check(sharing[0] == HALF && unique == HALF,
	      "%s: what is written is shared no more, and settles\n", what);
	check(sharing[1] == PAGES && shared == PAGES && !settled(),
	      "%s: written as it was, it merges again\n", what);
	check(!wrong_pages(a, PAGES, seed) && !wrong_pages(b, PAGES, seed) &&
		      rests(2 * PAGES),
	      "%s: hold what they held, and rest\n", what);
	munmap(b, PAGES * PAGE);
	ksm_pass(1);
	check(!ksm_get("pages_sharing") && ksm_get("pages_shared") == PAGES,
	      "%s: one of each is left\n", what);
	check(gone(a, PAGES), "%s: nothing is left of them\n", what);
}

/* A page of zeros that settled as one like any other */
static void test_zero_page(void)
{
	char *mem = map_unique(false);
	unsigned int passes;

	fill_page(mem, 77, 0);
	ksm_pass(4);
	check(settled() == PAGES && !ksm_get("ksm_zero_pages"),
	      "a page of zeros settles with use_zero_pages=0\n");
	ksm_set("use_zero_pages", 1);
	for (passes = 0; passes < LIMIT && !ksm_get("ksm_zero_pages"); passes++)
		ksm_pass(1);
	check(passes <= 2 && ksm_get("ksm_zero_pages") == 1 &&
		      page_holds(mem, 77, 0),
	      "and becomes a zero page %u passes after use_zero_pages=1\n",
	      passes);
	ksm_pass(2);
	check(settled() == PAGES - 1 && rests(PAGES - 1),
	      "and leaves the tree, where the others rest again\n");
	ksm_set("use_zero_pages", 0);
	munmap(mem, PAGES * PAGE);
	ksm_pass(1);
}

static void test_recheck(bool huge)
{
	const char *what = huge ? "huge" : "regular";
	char *a = map_unique(huge), *b = map_unique(huge);
	const size_t pages = 2 * PAGES;
	struct cost cost;

	ksm_pass(2);
	ksm_set("dirty_scan_recheck_passes", 1);
	cost = cost_of_passes(STEADY);
	check(cost.searches == STEADY * pages &&
		      cost.scanned == STEADY * pages && !cost.passed_over,
	      "%s, recheck_passes=1: each is searched in each pass\n", what);
	check(!cost.stale && !cost.pruned && cost.checksums == STEADY * pages &&
		      settled() == pages,
	      "%s, recheck_passes=1: and is what it was\n", what);

	ksm_set("dirty_scan_recheck_passes", 4);
	cost = cost_of_passes(4);
	check(cost.searches == pages && cost.scanned == pages &&
		      cost.passed_over == 3 * pages && !cost.stale,
	      "%s, recheck_passes=4: each is searched once in four passes\n",
	      what);
	ksm_set("dirty_scan_recheck_passes", 0);
	check(rests(pages), "%s, recheck_passes=0: none is\n", what);
	munmap(a, PAGES * PAGE);
	check(gone(b, PAGES), "%s: nothing is left of it\n", what);
}

/*
 * Pages that come to rest as what others held, which ksmd has not come to yet in
 * this pass: those are gone, or were written.  They are in nobody's way.
 */
static void test_pruned(bool written)
{
	const char *what = written ? "written" : "gone";
	char *mem = map_unique(false), *high = mem + HALF * PAGE;
	struct cost cost;
	size_t i;

	ksm_pass(2);
	for (i = 0; i < HALF; i++)
		memcpy(mem + i * PAGE, high + i * PAGE, PAGE);
	ksm_pass(1);
	check(settled() == PAGES - HALF, "%s: the others are settled\n", what);
	if (written)
		rewrite_pages(high, PAGES - HALF, ++seed);
	else
		advise(high, PAGES - HALF, MADV_DONTNEED);
	cost = cost_of_passes(1);
	check(cost.pruned == (written ? 0 : HALF),
	      "%s: those that were met left, if gone\n", what);
	check(settled() == HALF && !ksm_stat("ksm_merging_pages"),
	      "%s: who met them is settled\n", what);
	check(gone(mem, PAGES), "%s: nothing is left of it\n", what);
}

int main(void)
{
	unsigned int stock;
	size_t i;

	ksft_print_header();
	ksft_set_plan(2 * 6 + 3 + ARRAY_SIZE(changes) + 1 + 3 + 2 * 8 + 3 +
		      2 * 5 + 2 * 4);
	ksm_setup();
	count_checksums();
	test_quiet(false);
	test_quiet(true);
	test_beside_hot();
	stock = passes_of_stock();
	for (i = 0; i < ARRAY_SIZE(changes); i++)
		test_change(&changes[i], stock, false);
	test_change(&changes[0], stock, true);
	test_exit();
	test_merged(false);
	test_merged(true);
	test_zero_page();
	test_recheck(false);
	test_recheck(true);
	test_pruned(true);
	test_pruned(false);
	ksft_finished();
}
