// SPDX-License-Identifier: GPL-2.0
/*
 * Secondary MMUs have their say: a page that one of them cannot vouch for takes
 * the checksum path, one that it saw written is skipped, and CLEAN takes the
 * word of all of them.  By the pages of one window, half of it elsewhere for the
 * vma boundary, and by a module that plays secondary MMU.
 *
 * Seen to fail with: ksm_dirty_judge() calling UNKNOWN pages CLEAN; harvest.c
 * without mmu_notifier_test_clear_dirty(); UNKNOWN pages not searched in the settled
 * tree (mm/ksm.c).
 */
#include "ksm_dirty_util.h"

#include <fcntl.h>

#define PAGES HUGE_PAGES

struct verdicts {
	uint64_t dirty, clean, unknown, checksums;
};

static int fake_open(void)
{
	int fd = open("/dev/ksm_dirty_fake_mmu", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		ksft_exit_fail_perror("/dev/ksm_dirty_fake_mmu");
	return fd;
}

static void fake(int fd, const char *verb, const char *addr, size_t first,
		 size_t end)
{
	char text[80];
	int len = snprintf(text, sizeof(text), "%s %lx %lx", verb,
			   (unsigned long)(addr + first * PAGE),
			   (unsigned long)(addr + end * PAGE));

	if (write(fd, text, len) != len)
		ksft_exit_fail_msg("fake MMU: '%s': %s\n", text,
				   strerror(errno));
}

static void fake_capable(int fd, bool capable)
{
	if (write(fd, capable ? "capable 1" : "capable 0", 9) != 9)
		ksft_exit_fail_perror("fake MMU");
}

/* The verdicts on all of this program's memory in one pass. */
static struct verdicts pass(void)
{
	struct verdicts v = {
		.dirty = ksm_get("pages_dirty"),
		.clean = ksm_get("pages_clean"),
		.unknown = ksm_get("pages_unknown"),
		.checksums = checksums(),
	};

	ksm_pass(1);
	v.dirty = ksm_get("pages_dirty") - v.dirty;
	v.clean = ksm_get("pages_clean") - v.clean;
	v.unknown = ksm_get("pages_unknown") - v.unknown;
	v.checksums = checksums() - v.checksums;
	return v;
}

/*
 * A checksum is taken of each UNKNOWN page, and of the CLEAN ones that were not in
 * the settled tree before, @settling.
 */
static bool is(struct verdicts v, uint64_t dirty, uint64_t clean,
	       uint64_t unknown, uint64_t settling)
{
	bool ok = v.dirty == dirty && v.clean == clean &&
		  v.unknown == unknown && v.checksums == unknown + settling;

	if (!ok)
		ksft_print_msg("%lu dirty, %lu clean, %lu unknown, %lu "
			       "checksums; want %lu, %lu, %lu, %lu\n",
			       v.dirty, v.clean, v.unknown, v.checksums, dirty,
			       clean, unknown, unknown + settling);
	return ok;
}

/* Pages of which nobody knows any write any more */
static char *settled_pages(bool huge)
{
	static uint64_t seed = 100;
	char *mem = map_pages(PAGES, huge);

	fill_pages(mem, PAGES, ++seed);
	if (huge)
		need_huge(mem, PAGES);
	ksm_pass(1);
	return mem;
}

static void test_verdicts(bool huge)
{
	const char *what = huge ? "huge" : "regular";
	char *mem = settled_pages(huge);
	int one, two;

	check(is(pass(), 0, PAGES, 0, PAGES), "%s: no subscriber: CLEAN\n",
	      what);
	one = fake_open();
	check(is(pass(), 0, PAGES, 0, 0),
	      "%s: capable, nothing written: CLEAN\n", what);
	fake(one, "dirty", mem, 10, 30);
	check(is(pass(), 20, PAGES - 20, 0, 0),
	      "%s: what it reports as written is DIRTY\n", what);
	check(is(pass(), 0, PAGES, 0, 20), "%s: and CLEAN in the next pass\n",
	      what);
	fake(one, "unknown", mem, 100, 164);
	check(is(pass(), 0, PAGES - 64, 64, 0),
	      "%s: what it cannot tell is UNKNOWN, the rest CLEAN\n", what);
	fake(one, "dirty", mem, 90, 110);
	check(is(pass(), 20, PAGES - 74, 54, 0), "%s: DIRTY beats UNKNOWN\n",
	      what);
	fake_capable(one, false);
	check(is(pass(), 0, 0, PAGES, 0), "%s: not capable: UNKNOWN\n", what);
	rewrite_pages(mem, 7, 1);
	check(is(pass(), huge ? PAGES : 7, 0, huge ? 0 : PAGES - 7, 0),
	      "%s: a write that the host saw beats UNKNOWN\n", what);

	fake_capable(one, true);
	fake(one, "unknown", mem, 100, 101);
	two = fake_open();
	fake(two, "unknown", mem, 200, 202);
	fake(one, "dirty", mem, 200, 201);
	check(is(pass(), 1, PAGES - 3, 2, PAGES - 3),
	      "%s: two subscribers combine\n", what);
	fake_capable(two, false);
	check(is(pass(), 0, 0, PAGES, 0), "%s: one of two is not capable\n",
	      what);
	fake_capable(two, true);
	fake(two, "interval", mem, 300, 310);
	check(is(pass(), 0, PAGES - 13, 13, PAGES - 13),
	      "%s: an interval subscriber's pages are UNKNOWN\n", what);
	close(two);
	close(one);
	check(is(pass(), 0, PAGES, 0, 13), "%s: subscribers gone: CLEAN\n",
	      what);
	munmap(mem, PAGES * PAGE);
}

static void test_merge(void)
{
	char *a = map_pages(PAGES, false), *b = map_pages(PAGES, false);
	uint64_t before = checksums();
	int fd = fake_open();

	fill_pages(a, PAGES, 7);
	fill_pages(b, PAGES, 7);
	fake_capable(fd, false);
	ksm_pass(3);
	check(checksums() - before >= 2 * PAGES &&
		      ksm_stat("ksm_merging_pages") == 2 * PAGES,
	      "UNKNOWN pages merge, by their checksums\n");
	check(!wrong_pages(a, PAGES, 7) && !wrong_pages(b, PAGES, 7),
	      "UNKNOWN pages keep their contents\n");
	close(fd);
	munmap(a, PAGES * PAGE);
	munmap(b, PAGES * PAGE);
}

/*
 * Pages that nobody vouches for, and pages that settled, find each other, whichever
 * came first.  ksmd comes to the unknown ones first in each pass.
 */
static void test_merge_with_settled(bool unknown_first)
{
	const char *what = unknown_first ?
				   "those that settle find UNKNOWN ones" :
				   "UNKNOWN pages find settled ones";
	char *a = map_pages(PAGES, false), *b = map_pages(PAGES, false);
	char *settling = a > b ? a : b, *unknown = a > b ? b : a;
	int fd = fake_open();

	fake(fd, "unknown", unknown, 0, PAGES);
	fill_pages(unknown_first ? unknown : settling, PAGES, 9);
	ksm_pass(4);
	check(ksm_get("pages_settled") == (unknown_first ? 0 : PAGES),
	      "%s: only those that are vouched for settle\n", what);
	fill_pages(unknown_first ? settling : unknown, PAGES, 9);
	ksm_pass(3);
	check(ksm_stat("ksm_merging_pages") == 2 * PAGES &&
		      !ksm_get("pages_settled"),
	      "%s: and merge\n", what);
	check(!wrong_pages(a, PAGES, 9) && !wrong_pages(b, PAGES, 9),
	      "%s: contents\n", what);
	close(fd);
	munmap(a, PAGES * PAGE);
	munmap(b, PAGES * PAGE);
	ksm_pass(1);
}

static void test_boundary(void)
{
	char *mem = map_pages(PAGES, false);
	int fd;

	/* Two vmas in the window, one of them not for ksmd to look at */
	fill_pages(mem, PAGES, 8);
	advise(mem + 300 * PAGE, PAGES - 300, MADV_UNMERGEABLE);
	check(is(pass(), 300, 0, 0, 0), "a harvest ends where the vma does\n");
	check(is(pass(), 0, 300, 0, 300), "likewise in the next pass\n");
	advise(mem + 300 * PAGE, PAGES - 300, MADV_MERGEABLE);
	check(is(pass(), PAGES - 300, 300, 0, 0),
	      "it left the dirty bits behind the end alone\n");

	/* Both for ksmd, the secondary MMU's report across the boundary */
	if (mprotect(mem, 300 * PAGE, PROT_READ))
		ksft_exit_fail_perror("mprotect");
	fd = fake_open();
	fake(fd, "dirty", mem, 290, 310);
	check(is(pass(), 20, PAGES - 20, 0, PAGES - 310),
	      "two vmas in a window: each has its part of the answer\n");
	close(fd);
	munmap(mem, PAGES * PAGE);
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(36);
	ksm_setup();
	need_module("ksm_dirty_fake_mmu");
	count_checksums();
	test_verdicts(false);
	test_verdicts(true);
	test_merge();
	test_merge_with_settled(false);
	test_merge_with_settled(true);
	test_boundary();
	ksft_finished();
}
