// SPDX-License-Identifier: GPL-2.0
/*
 * A pinned page is never CLEAN: whoever pinned it may write it, and no dirty bit
 * says so.  It takes the checksum path, and is not merged, as in stock KSM.
 * Pinned by registering it as a buffer of io_uring.
 *
 * Seen to fail with: harvest.c without folio_maybe_dma_pinned(); ksm_dirty_judge()
 * calling every page UNKNOWN.
 */
#include "ksm_dirty_util.h"

#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define PAGES HUGE_PAGES

static void test(bool huge)
{
	const char *what = huge ? "huge" : "regular";
	char *a = map_pages(PAGES, huge), *b = map_pages(PAGES, huge);
	struct iovec buffer = { a, PAGES * PAGE };
	struct io_uring_params params = {};
	int ring = syscall(SYS_io_uring_setup, 4, &params);
	uint64_t unknown, sums;

	fill_pages(a, PAGES, 1);
	fill_pages(b, PAGES, 2);
	if (huge)
		need_huge(a, PAGES);
	if (ring < 0 || syscall(SYS_io_uring_register, ring,
				IORING_REGISTER_BUFFERS, &buffer, 1))
		ksft_exit_fail_perror("io_uring");
	ksm_pass(2);

	unknown = ksm_get("pages_unknown");
	sums = checksums();
	ksm_pass(4);
	unknown = ksm_get("pages_unknown") - unknown;
	sums = checksums() - sums;
	ksft_print_msg("%s: %lu unknown, %lu checksums\n", what, unknown, sums);
	check(unknown == 4 * PAGES && sums == 4 * PAGES,
	      "%s: pinned pages, and they alone, take the checksum path\n",
	      what);

	fill_pages(b, PAGES, 1);
	ksm_pass(5);
	check(!ksm_stat("ksm_merging_pages"),
	      "%s: pinned pages are not merged\n", what);
	ksm_set("dirty_scan", 0);
	ksm_pass(5);
	check(!ksm_stat("ksm_merging_pages"), "%s: nor with dirty_scan=0\n",
	      what);
	ksm_set("dirty_scan", 1);

	if (syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS,
		    NULL, 0))
		ksft_exit_fail_perror("io_uring");
	close(ring);
	ksm_pass(3);
	check(ksm_stat("ksm_merging_pages") == 2 * PAGES,
	      "%s: no longer pinned, they are\n", what);
	check(!wrong_pages(a, PAGES, 1) && !wrong_pages(b, PAGES, 1),
	      "%s: contents\n", what);
	munmap(a, PAGES * PAGE);
	munmap(b, PAGES * PAGE);
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(10);
	ksm_setup();
	count_checksums();
	test(false);
	test(true);
	ksft_finished();
}
