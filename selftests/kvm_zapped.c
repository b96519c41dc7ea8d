// SPDX-License-Identifier: GPL-2.0
/*
 * A dirty bit goes with its SPTE.  A settled page that a guest wrote just before the
 * page was taken from its page tables is seen as written all the same: it merges
 * with what it has become equal to in the next passes, not when it is searched again.
 * Merged pages stay merged, whatever is reported of the time before.
 *
 * Seen to fail with: kvm_mmu_keep_dirty() keeping nothing (mprotect()), or a memslot
 * starting with no bit set (memslot replaced); either, with reports of writes to KSM
 * pages taken at their word.
 */
#include "vmm.h"

#define PAGES HUGE_PAGES /* in each half */

/* Takes memory from the guest's page tables, and leaves it where it is */
typedef void (*zap_fn)(struct vmm *vm, char *mem, size_t pages);

static void zap_by_mprotect(struct vmm *vm, char *mem, size_t pages)
{
	(void)vm;
	if (mprotect(mem, pages * PAGE, PROT_READ) ||
	    mprotect(mem, pages * PAGE, PROT_READ | PROT_WRITE))
		ksft_exit_fail_perror("mprotect");
}

static void zap_by_memslot(struct vmm *vm, char *mem, size_t pages)
{
	vmm_unmap(vm, 0);
	vmm_map(vm, 0, VMM_GPA, mem, pages, 0);
}

static void test(const char *what, zap_fn zap, bool tdp, bool huge)
{
	static uint64_t seed;
	char *mem = map_pages(2 * PAGES, huge);
	uint64_t dirty, sharing, still;
	struct vmm vm;
	size_t wrong;

	seed++;
	vmm_create(&vm, 0);
	vmm_map(&vm, 0, VMM_GPA, mem, 2 * PAGES, 0);
	guest_fill(&vm, 0, 2 * PAGES, seed);
	if (huge)
		need_huge(mem, 2 * PAGES);
	/* Written; then clean, and settled; SPTEs map all of it */
	ksm_pass(4);
	guest_wrong(&vm, 0, 2 * PAGES, seed);
	ksm_pass(4);
	if (ksm_get("pages_settled") < 2 * PAGES)
		ksft_exit_fail_msg("%lu of %lu pages settled\n",
				   ksm_get("pages_settled"), 2 * PAGES);

	/* The second half becomes equal to the first */
	guest_fill_as(&vm, PAGES, PAGES, seed, 0);
	zap(&vm, mem, 2 * PAGES);
	dirty = ksm_get("pages_dirty");
	ksm_pass(1);
	dirty = ksm_get("pages_dirty") - dirty;
	ksm_pass(2);
	sharing = ksm_get("pages_sharing");
	zap(&vm, mem, 2 * PAGES);
	ksm_pass(1);
	still = ksm_get("pages_sharing");
	wrong = guest_wrong(&vm, 0, PAGES, seed);
	ksft_print_msg("%lu pages were seen as written, %lu merged\n", dirty,
		       sharing);
	check(dirty >= PAGES && sharing == PAGES && still == PAGES && !wrong,
	      "%s, %s pages, %s: what was written merges\n", vmm_mmu_name(tdp),
	      huge ? "2 MiB" : "4 KiB", what);
	vmm_destroy(&vm);
	munmap(mem, 2 * PAGES * PAGE);
	ksm_pass(1);
}

int main(void)
{
	int tdp, huge;

	ksft_print_header();
	ksft_set_plan(8);
	ksm_setup();
	ksm_set("dirty_scan_recheck_passes", 0);
	for (tdp = 1; tdp >= 0; tdp--) {
		vmm_load_kvm(tdp);
		for (huge = 0; huge <= 1; huge++) {
			test("mprotect()", zap_by_mprotect, tdp, huge);
			test("memslot replaced", zap_by_memslot, tdp, huge);
		}
	}
	ksft_finished();
}
