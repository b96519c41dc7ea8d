// SPDX-License-Identifier: GPL-2.0
/*
 * A pass costs what there is to scan, not what is mapped: a sparse mapping of up
 * to 32 TiB, and 20,000 vmas, cost ksmd about as much as with dirty_scan=0.  And
 * pages_to_scan holds where each vma is but a page.
 *
 * Seen to fail with: harvest.c leaving the cursor before the window that it found,
 * behind a hole; ksm_scan_steer() going on to the next vma with nothing left.
 */
#include "ksm_dirty_util.h"

#include <unistd.h>

#define TIB (1UL << 40)
#define SPOTS 64
#define VMAS 20000
#define PASSES 3
#define BATCH 100 /* pages_to_scan, and the time between */
#define BATCH_MS 20

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Nanoseconds of ksmd for a pass, the median */
static uint64_t pass_ns(bool dirty_scan)
{
	uint64_t ns[PASSES], before;
	int i;

	ksm_set("dirty_scan", dirty_scan);
	ksm_pass(2);
	for (i = 0; i < PASSES; i++) {
		before = ksmd_ns();
		ksm_pass(1);
		ns[i] = ksmd_ns() - before;
	}
	qsort(ns, PASSES, sizeof(*ns), compare);
	return ns[PASSES / 2];
}

static void compare_passes(const char *what, double limit)
{
	uint64_t stock = pass_ns(false), dirty = pass_ns(true);

	ksft_print_msg("%s: a pass takes %lu us, with dirty_scan=0 %lu us\n",
		       what, dirty / 1000, stock / 1000);
	/* A millisecond for what is not the pass itself */
	check(dirty <= stock * limit + 1000000,
	      "%s: a pass costs at most %.1f times as with dirty_scan=0\n",
	      what, limit);
}

static void test_sparse(void)
{
	uint64_t size = 32 * TIB, i, windows;
	char *mem;

	do {
		mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	} while (mem == MAP_FAILED && (size /= 2) >= TIB);
	if (mem == MAP_FAILED)
		ksft_exit_fail_perror("mmap of 1 TiB");
	ksft_print_msg("%lu TiB\n", size / TIB);
	advise(mem, size / PAGE, MADV_NOHUGEPAGE);
	advise(mem, size / PAGE, MADV_MERGEABLE);
	for (i = 0; i < SPOTS; i++)
		mem[size / SPOTS * i] = i + 1;
	compare_passes("sparse mapping", 2);

	windows = ksm_get("dirty_scan_windows");
	ksm_pass(1);
	windows = ksm_get("dirty_scan_windows") - windows;
	check(windows >= SPOTS && windows <= 2 * SPOTS,
	      "sparse mapping: %lu windows for %d pages\n", windows, SPOTS);
	munmap(mem, size);
}

/* Each vma is a window of one page, written or not, and that is charged. */
static void test_batches(char *mem)
{
	double start, seconds, batches;
	uint64_t windows;
	size_t i;

	for (i = 1; i < VMAS; i += 2)
		set_word(mem, i, i);
	windows = ksm_get("dirty_scan_windows");
	start = now();
	ksm_set("pages_to_scan", BATCH);
	ksm_set("sleep_millisecs", BATCH_MS);
	ksm_set("run", 1);
	usleep(50 * BATCH_MS * 1000);
	windows = ksm_get("dirty_scan_windows") - windows;
	seconds = now() - start;
	ksm_stop();
	batches = seconds * 1000 / BATCH_MS + 2;
	check(windows > BATCH && windows <= batches * BATCH,
	      "20,000 vmas: %lu windows in %.2f s, no more than pages_to_scan allows\n",
	      windows, seconds);
}

static void test_vmas(void)
{
	char *mem = map_pages(VMAS, false);
	size_t i;

	fill_pages(mem, VMAS, 1);
	for (i = 0; i < VMAS; i += 2)
		if (mprotect(mem + i * PAGE, PAGE, PROT_READ))
			ksft_exit_fail_perror("mprotect");
	compare_passes("20,000 vmas", 3);
	test_batches(mem);
	munmap(mem, VMAS * PAGE);
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(4);
	ksm_setup();
	test_sparse();
	test_vmas();
	ksft_finished();
}
