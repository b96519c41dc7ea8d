// SPDX-License-Identifier: GPL-2.0
/*
 * ksm_zero_pages stays exact: a page table entry of KSM's zero page has its dirty
 * bit set, which says that KSM mapped it and not that somebody wrote.  And a zero
 * page that is vouched for merges without a checksum.
 *
 * Seen to fail with: pte.h and harvest.c taking special entries, entries dirty but
 * not writable, and pages that are not anonymous; huge pages: with harvest.c taking
 * all of them for dirty.
 */
#include "ksm_dirty_util.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#define PAGES (2 * HUGE_PAGES)

/* ksm_zero_pages, of the system; the process's own has to agree with it. */
static uint64_t zero_pages(void)
{
	uint64_t all = ksm_get("ksm_zero_pages");
	uint64_t own = ksm_stat("ksm_zero_pages");

	if (all != own) {
		ksft_print_msg("ksm_zero_pages %ld, own %ld\n", (long)all,
			       (long)own);
		return -1;
	}
	return all;
}

/* Pages that are mapped as a zero page, KSM's or the kernel's own */
static uint64_t mapped_zero_pages(char *mem)
{
	static struct page_region regions[PAGES];
	struct pm_scan_arg arg = {
		.size = sizeof(arg),
		.start = (uintptr_t)mem,
		.end = (uintptr_t)mem + PAGES * PAGE,
		.vec = (uintptr_t)regions,
		.vec_len = PAGES,
		.category_mask = PAGE_IS_PFNZERO,
		.return_mask = PAGE_IS_PFNZERO,
	};
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	long i, count = ioctl(fd, PAGEMAP_SCAN, &arg);
	uint64_t pages = 0;

	if (count < 0)
		ksft_exit_fail_perror("PAGEMAP_SCAN");
	close(fd);
	for (i = 0; i < count; i++)
		pages += (regions[i].end - regions[i].start) / PAGE;
	return pages;
}

static const char *const steps[] = {
	"before ksmd came",	"when ksmd has come",	 "after more harvests",
	"when half is written", "after harvesting that", "after munmap",
};

/*
 * Where the kernel splits a huge page of zeros, it maps zero pages by itself, which
 * ksm_zero_pages does not count.
 */
static bool run(bool huge, uint64_t counts[ARRAY_SIZE(steps)])
{
	char *mem = map_pages(PAGES, huge);
	size_t i, wrong = 0;

	rewrite_pages(mem, PAGES, 1);
	if (huge)
		need_huge(mem, PAGES);
	for (i = 0; i < PAGES; i++)
		set_word(mem, i, 0);
	counts[0] = huge ? mapped_zero_pages(mem) : zero_pages();
	ksm_pass(4);
	counts[1] = huge ? mapped_zero_pages(mem) : zero_pages();
	ksm_pass(5);
	counts[2] = huge ? mapped_zero_pages(mem) : zero_pages();

	/* Every other page is written, all of them read */
	for (i = 0; i < PAGES; i++) {
		if (i & 1)
			set_word(mem, i, i);
		wrong += page_holds(mem, i, 0) == (i & 1);
	}
	counts[3] = huge ? mapped_zero_pages(mem) : zero_pages();
	ksm_pass(4);
	counts[4] = huge ? mapped_zero_pages(mem) : zero_pages();
	for (i = 0; i < PAGES; i++)
		wrong += get_word(mem, i) != (i & 1 ? i : 0);
	munmap(mem, PAGES * PAGE);
	counts[5] = zero_pages();
	return !wrong;
}

static void test_regular(void)
{
	const uint64_t want[] = { 0, PAGES, PAGES, PAGES / 2, PAGES / 2, 0 };
	uint64_t counts[ARRAY_SIZE(steps)], before = checksums();
	bool contents = run(false, counts);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(steps); i++)
		check(counts[i] == want[i], "regular: %ld zero pages %s\n",
		      (long)counts[i], steps[i]);
	check(checksums() - before == PAGES + PAGES / 2,
	      "regular: by one checksum whenever a page came to rest\n");
	check(contents, "regular: contents\n");
}

static void test_huge(void)
{
	uint64_t stock[ARRAY_SIZE(steps)], counts[ARRAY_SIZE(steps)];
	bool contents;
	size_t i;

	ksm_set("dirty_scan", 0);
	contents = run(true, stock);
	ksm_set("dirty_scan", 1);
	contents &= run(true, counts);
	for (i = 0; i < ARRAY_SIZE(steps); i++)
		check(counts[i] == stock[i],
		      "huge: %ld zero pages %s, with dirty_scan=0 %ld\n",
		      (long)counts[i], steps[i], (long)stock[i]);
	check(contents, "huge: contents\n");
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(2 * ARRAY_SIZE(steps) + 3);
	ksm_setup();
	count_checksums();
	ksm_set("use_zero_pages", 1);
	test_regular();
	test_huge();
	ksft_finished();
}
