// SPDX-License-Identifier: GPL-2.0
/*
 * Where it ends: what is merged in the steady state is not less than with
 * dirty_scan=0, by KSM's own counters, at most EXTRA passes later.  With all other
 * settings as they are by default, but for smart_scan.
 *
 * Seen to fail with: harvest.c probing only huge pages, and clearing no dirty bit;
 * probes not going on though they merge; no early probes.
 */
#include "ksm_dirty_util.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#define PAGES (4 * HUGE_PAGES)
#define PASSES 6
#define EXTRA 8
#define MTHP "/sys/kernel/mm/transparent_hugepage/hugepages-"

static char *mem;
static uint64_t value;

/* A page is like the one half of the memory away from it */
static uint64_t pair(size_t page)
{
	return (1ULL << 62) + page % (PAGES / 2);
}

static void fill_pairs(void)
{
	size_t i;

	for (i = 0; i < PAGES; i++)
		fill_page(mem, i, pair(i));
}

/* Hot pages among quiet ones, none like another */
static void write_every_other(unsigned int pass)
{
	size_t i;

	(void)pass;
	for (i = 0; i < PAGES; i += 2)
		set_word(mem, i, ++value);
}

/* All of a huge page, every other one */
static void write_every_other_huge(unsigned int pass)
{
	size_t i;

	(void)pass;
	for (i = 0; i < PAGES; i++)
		if (i / HUGE_PAGES % 2)
			set_word(mem, i, ++value);
}

static void write_in_odd_passes(unsigned int pass)
{
	size_t i;

	for (i = 0; pass % 2 && i < PAGES; i++)
		fill_page(mem, i, pair(i) + ((uint64_t)pass << 32));
}

static void write_the_same(unsigned int pass)
{
	size_t i;

	(void)pass;
	for (i = 0; i < PAGES; i++)
		set_word(mem, i, pair(i));
}

/* One page in sixteen, that is in each folio of 64 KiB */
static void write_one_in_sixteen(unsigned int pass)
{
	size_t i;

	(void)pass;
	for (i = 5; i < PAGES; i += 16)
		set_word(mem, i, ++value);
}

static void fill_with_zeros(void)
{
	size_t i;

	for (i = 0; i < PAGES; i++)
		fill_page(mem, i, i % 4 ? pair(i) : 0);
}

static void fill_with_one(void)
{
	size_t i;

	for (i = 0; i < PAGES; i++)
		fill_page(mem, i, 1 + i % 2);
}

static void out_and_in(unsigned int pass)
{
	size_t i;

	if (pass == 2 || pass == 3)
		advise(mem, PAGES, MADV_PAGEOUT);
	if (pass == 4)
		for (i = 0; i < PAGES; i++)
			if (get_word(mem, i) != pair(i))
				ksft_exit_fail_msg(
					"wrong contents out of swap\n");
}

#define CHILDREN 2

/* Each child writes a quarter of its own, as its siblings do, and then rests */
static pid_t children[CHILDREN];

static void fill_and_fork(void)
{
	int written[2];
	size_t i;
	char byte;
	int c;

	fill_pages(mem, PAGES, 1);
	if (pipe(written))
		ksft_exit_fail_perror("pipe");
	for (c = 0; c < CHILDREN; c++) {
		children[c] = fork();
		if (children[c] < 0)
			ksft_exit_fail_perror("fork");
		if (children[c])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (i = 0; i < PAGES / 4; i++)
			fill_page(mem, i, pair(i));
		if (write(written[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	for (c = 0; c < CHILDREN; c++)
		if (read(written[0], &byte, 1) != 1)
			ksft_exit_fail_msg("a child is gone\n");
	close(written[0]);
	close(written[1]);
}

static void end_children(void)
{
	int c;

	for (c = 0; c < CHILDREN; c++) {
		kill(children[c], SIGKILL);
		waitpid(children[c], NULL, 0);
	}
}

static void mthp(bool on)
{
	write_file(MTHP "64kB/enabled", on ? "always" : "never");
	write_file(MTHP "2048kB/enabled", on ? "never" : "inherit");
}

static void mthp_on(void)
{
	mthp(true);
	fill_pairs();
	/* KPF_THP is that of any large folio; frames in a row, from a boundary on */
	if (!page_flag(mem, 16, 22) || (pagemap_entry(mem, 16) & 15))
		ksft_exit_fail_msg("no folio of 64 KiB\n");
}

static void mthp_off(void)
{
	mthp(false);
}

static void zeros_on(void)
{
	ksm_set("use_zero_pages", 1);
	fill_with_zeros();
}

static void zeros_off(void)
{
	ksm_set("use_zero_pages", 0);
}

struct situation {
	const char *what;
	bool huge;
	void (*start)(void);
	void (*step)(unsigned int pass);
	void (*end)(void);
	const char *needs;
};

static const struct situation situations[] = {
	{ "quiet", false, fill_pairs, NULL, NULL, NULL },
	{ "quiet, huge", true, fill_pairs, NULL, NULL, NULL },
	{ "quiet among hot", false, fill_pairs, write_every_other, NULL, NULL },
	{ "quiet among hot, huge", true, fill_pairs, write_every_other_huge,
	  NULL, NULL },
	{ "written every other pass", false, fill_pairs, write_in_odd_passes,
	  NULL, NULL },
	{ "written every other pass, huge", true, fill_pairs,
	  write_in_odd_passes, NULL, NULL },
	{ "written with the same bytes", false, fill_pairs, write_the_same,
	  NULL, NULL },
	{ "written with the same bytes, huge", true, fill_pairs, write_the_same,
	  NULL, NULL },
	{ "hot subpages", true, fill_pairs, write_one_in_sixteen, NULL, NULL },
	{ "many alike", false, fill_with_one, NULL, NULL, NULL },
	{ "zeros, use_zero_pages=0", false, fill_with_zeros, NULL, NULL, NULL },
	{ "zeros, use_zero_pages=1", false, zeros_on, NULL, zeros_off, NULL },
	{ "zeros, use_zero_pages=1, huge", true, zeros_on, NULL, zeros_off,
	  NULL },
	{ "forked", false, fill_and_fork, NULL, end_children, NULL },
	{ "folios of 64 KiB", true, mthp_on, write_one_in_sixteen, mthp_off,
	  MTHP "64kB/enabled" },
	{ "swapped out and in", false, fill_pairs, out_and_in, NULL, NULL },
};

struct result {
	uint64_t sharing, shared, zero;
	int64_t profit;
};

static struct result result(void)
{
	return (struct result){
		.sharing = ksm_get("pages_sharing"),
		.shared = ksm_get("pages_shared"),
		.zero = ksm_get("ksm_zero_pages"),
		.profit = (int64_t)ksm_get("general_profit"),
	};
}

static bool not_below(struct result a, struct result b)
{
	return a.sharing >= b.sharing && a.shared >= b.shared &&
	       a.zero >= b.zero && a.profit >= b.profit;
}

static void print(const char *what, struct result r)
{
	ksft_print_msg(
		"%s: sharing %lu, shared %lu, zero pages %lu, profit %ld\n",
		what, r.sharing, r.shared, r.zero, r.profit);
}

/* Some passes; *@after is set to how many it took to get to @want, and stay there */
static struct result run(const struct situation *s, unsigned int passes,
			 const struct result *want, unsigned int *after)
{
	struct result r = {};
	unsigned int pass;

	value = 1ULL << 63;
	mem = map_pages(PAGES, s->huge);
	s->start();
	for (pass = 1; pass <= passes; pass++) {
		if (s->step)
			s->step(pass);
		ksm_pass(1);
		r = result();
		/* Those that are written every other pass rest in the even ones */
		if (want && pass % 2 == 0 && !not_below(r, *want))
			*after = pass + 2;
	}
	munmap(mem, PAGES * PAGE);
	if (s->end)
		s->end();
	ksm_pass(1);
	return r;
}

static void test(const struct situation *s)
{
	/* Where nothing changes, half of it will do */
	const unsigned int part = s->step ? 1 : 2;
	struct result stock, dirty;
	unsigned int after = 2;

	if (s->needs && !exists(s->needs)) {
		ksft_test_result_skip("%s: no %s\n", s->what, s->needs);
		return;
	}
	ksm_set("dirty_scan", 0);
	stock = run(s, PASSES / part, NULL, NULL);
	ksm_set("dirty_scan", 1);
	dirty = run(s, (PASSES + EXTRA) / part, &stock, &after);
	print("dirty_scan=0", stock);
	print("dirty_scan=1", dirty);
	check(not_below(dirty, stock) && stock.sharing + stock.zero,
	      "%s: not less than with dirty_scan=0 after %u passes\n", s->what,
	      after);
}

int main(void)
{
	size_t i;

	ksft_print_header();
	ksft_set_plan(ARRAY_SIZE(situations));
	ksm_setup();
	ksm_set("dirty_scan_probe_passes", 4096);
	ksm_set("dirty_scan_recheck_passes", 1024);
	/* ksmd makes no pass where there is nothing mergeable at all */
	map_pages(1, false);
	for (i = 0; i < ARRAY_SIZE(situations); i++)
		test(&situations[i]);
	ksft_finished();
}
