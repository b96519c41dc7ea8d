// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that a guest rewrites between passes is skipped: no checksum, not counted
 * as scanned.  By 4 KiB and by 2 MiB SPTEs, of the TDP and of the shadow MMU.
 * Writes of the host to the guest's memory count as well, and what neither
 * writes is clean.
 *
 * Seen to fail with: KVM not answering (its two operations not
 * registered), for each result about dirty pages.
 */
#include "vmm.h"

#include <fcntl.h>

#define PAGES (2 * HUGE_PAGES)
#define PASSES 5

static void test_volatile(struct vmm *vm, char *mem, bool tdp, bool huge)
{
	const char *what = huge ? "2 MiB" : "4 KiB";
	const char *mmu = vmm_mmu_name(tdp);
	const uint64_t all = PASSES * PAGES;
	uint64_t full_scans, dirty, scanned, sums;
	int i;

	guest_fill(vm, 0, PAGES, 1);
	if (huge)
		need_huge(mem, PAGES);
	for (i = 0; i < 2; i++) {
		guest_write(vm, 0, PAGES, 1, 2 + i);
		ksm_pass(1);
	}
	check(huge == (kvm_stat("pages_2m") >= PAGES / HUGE_PAGES),
	      "%s, %s pages: SPTEs are of that size\n", mmu, what);

	full_scans = ksm_get("full_scans");
	dirty = ksm_get("pages_dirty");
	scanned = ksm_get("pages_scanned");
	sums = checksums();
	for (i = 0; i < PASSES; i++) {
		guest_write(vm, 0, PAGES, 1, 10 + i);
		ksm_pass(1);
	}
	if (ksm_get("full_scans") - full_scans != PASSES)
		ksft_exit_fail_msg("ksmd did a pass that nobody asked for\n");
	dirty = ksm_get("pages_dirty") - dirty;
	scanned = ksm_get("pages_scanned") - scanned;
	sums = checksums() - sums;
	ksft_print_msg("%lu dirty, %lu scanned, %lu checksums\n", dirty,
		       scanned, sums);
	check(dirty == all, "%s, %s pages: each counted as dirty\n", mmu, what);
	check(!scanned && !sums, "%s, %s pages: none scanned, no checksum\n",
	      mmu, what);
}

/* Of five pages in a row, each has another writer. */
enum { NOBODY, GUEST, HOST, BOTH, KERNEL, WRITERS };

static void test_writers(struct vmm *vm, char *mem, bool tdp)
{
	const size_t each = PAGES / WRITERS;
	uint64_t dirty, clean;
	size_t pass, i;
	int fd = memfd_create("writers", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, PAGE))
		ksft_exit_fail_perror("memfd_create");
	guest_fill(vm, 0, PAGES, 3);
	advise(mem + each * WRITERS * PAGE, PAGES - each * WRITERS,
	       MADV_UNMERGEABLE);
	ksm_pass(2);

	dirty = ksm_get("pages_dirty");
	clean = ksm_get("pages_clean");
	for (pass = 0; pass < PASSES; pass++) {
		guest_write(vm, GUEST, each, WRITERS, 20 + pass);
		guest_write(vm, BOTH, each, WRITERS, 30 + pass);
		for (i = 0; i < each * WRITERS; i += WRITERS) {
			set_word(mem, i + HOST, pass << 20 | i);
			set_word(mem, i + BOTH, pass << 20 | i);
			/* As a device model's read(2) from a disk does */
			if (pread(fd, mem + (i + KERNEL) * PAGE, 8, 0) != 8)
				ksft_exit_fail_perror("pread");
		}
		ksm_pass(1);
	}
	dirty = ksm_get("pages_dirty") - dirty;
	clean = ksm_get("pages_clean") - clean;
	ksft_print_msg("%lu dirty, %lu clean\n", dirty, clean);
	/*
	 * The shadow MMU maps pages ahead of a guest's writes, with the dirty bit
	 * set: what nobody wrote may be dirty, but once.
	 */
	check(dirty >= PASSES * 4 * each &&
		      dirty <= PASSES * 4 * each + (tdp ? 0 : each) &&
		      dirty + clean == PASSES * WRITERS * each,
	      "%s: written by guest, host, both, kernel: dirty, others clean\n",
	      vmm_mmu_name(tdp));
	close(fd);
}

static void test(bool tdp, bool huge)
{
	char *mem = map_pages(PAGES, huge);
	struct vmm vm;

	vmm_create(&vm, 0);
	vmm_map(&vm, 0, VMM_GPA, mem, PAGES, 0);
	test_volatile(&vm, mem, tdp, huge);
	if (!huge)
		test_writers(&vm, mem, tdp);
	vmm_destroy(&vm);
	munmap(mem, PAGES * PAGE);
}

int main(void)
{
	int tdp;

	ksft_print_header();
	ksft_set_plan(14);
	ksm_setup();
	count_checksums();
	for (tdp = 1; tdp >= 0; tdp--) {
		vmm_load_kvm(tdp);
		test(tdp, false);
		test(tdp, true);
	}
	ksft_finished();
}
