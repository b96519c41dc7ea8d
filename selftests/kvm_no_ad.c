// SPDX-License-Identifier: GPL-2.0
/*
 * Guests whose page tables have no dirty bits: what they map is UNKNOWN, as nobody
 * can vouch for it, and takes KSM's own path, checksum first.  Whether there are dirty
 * bits is a matter of each SPTE: one guest can have them and another one not, and
 * what both map is DIRTY if the one writes, and else UNKNOWN.
 *
 * Seen to fail with: spte_report_dirty() going by the level alone (all but 4 KiB of the
 * TDP MMU); tdp_mmu_test_clear_dirty_pt() going by shadow_dirty_mask (those); reports
 * of writes to KSM pages taken at their word (quiet pages merge).
 */
#include "vmm.h"

#define PAGES HUGE_PAGES

struct guest {
	struct vmm vm;
	char *mem;
};

static void start(struct guest *guest, char *mem)
{
	guest->mem = mem;
	vmm_create(&guest->vm, 0);
	vmm_map(&guest->vm, 0, VMM_GPA, mem, PAGES, 0);
}

static void no_ad(bool accessed)
{
	char params[128];
	int err;

	snprintf(params, sizeof(params), "accessed=%#lx dirty=%#lx",
		 accessed ? kernel_symbol("shadow_accessed_mask") : 0,
		 kernel_symbol("shadow_dirty_mask"));
	err = module_load("kvm_no_ad", params);
	if (err)
		ksft_exit_fail_msg("kvm_no_ad.ko: %s\n", strerror(err));
}

static void no_ad_end(void)
{
	int err = module_unload("kvm_no_ad");

	if (err)
		ksft_exit_fail_msg("kvm_no_ad.ko: %s\n", strerror(err));
}

/* Guests write what they have, in turn, and ksmd looks at it */
static bool verdicts(struct guest *a, struct guest *b, uint64_t want_dirty,
		     uint64_t want_clean, uint64_t want_unknown)
{
	static uint64_t value = 100;
	uint64_t dirty, clean, unknown;

	value++;
	if (a)
		guest_write(&a->vm, 0, PAGES, 1, value);
	if (b)
		guest_write(&b->vm, 0, PAGES, 1, value);
	dirty = ksm_get("pages_dirty");
	clean = ksm_get("pages_clean");
	unknown = ksm_get("pages_unknown");
	ksm_pass(1);
	dirty = ksm_get("pages_dirty") - dirty;
	clean = ksm_get("pages_clean") - clean;
	unknown = ksm_get("pages_unknown") - unknown;
	ksft_print_msg("%lu dirty, %lu clean, %lu unknown\n", dirty, clean,
		       unknown);
	return dirty == want_dirty && clean == want_clean &&
	       unknown == want_unknown;
}

static void test_merge(struct guest *guest, const char *what)
{
	char *copy = map_pages(PAGES, false);

	guest_fill(&guest->vm, 0, PAGES, 7);
	fill_pages(copy, PAGES, 7);
	ksm_pass(3);
	check(ksm_get("pages_sharing") == PAGES &&
		      !guest_wrong(&guest->vm, 0, PAGES, 7) &&
		      !wrong_pages(copy, PAGES, 7),
	      "%s: quiet pages merge\n", what);
	munmap(copy, PAGES * PAGE);
}

static void test_tdp(bool huge)
{
	const char *what = huge ? "TDP MMU, 2 MiB" : "TDP MMU, 4 KiB";
	struct guest without, with, shared;

	/* KVM as a whole has none */
	no_ad(true);
	start(&without, map_pages(PAGES, huge));
	guest_fill(&without.vm, 0, PAGES, 1);
	if (huge)
		need_huge(without.mem, PAGES);
	ksm_pass(1);
	check(verdicts(&without, NULL, 0, 0, PAGES) &&
		      verdicts(NULL, NULL, 0, 0, PAGES),
	      "%s: nobody has dirty bits: written or not, UNKNOWN\n", what);
	no_ad_end();

	/* KVM has, but these SPTEs do not */
	check(verdicts(&without, NULL, 0, 0, PAGES) &&
		      verdicts(NULL, NULL, 0, 0, PAGES),
	      "%s: SPTEs without: UNKNOWN\n", what);
	start(&with, map_pages(PAGES, huge));
	guest_fill(&with.vm, 0, PAGES, 2);
	ksm_pass(1);
	check(verdicts(&without, &with, PAGES, 0, PAGES) &&
		      verdicts(&without, NULL, 0, PAGES, PAGES),
	      "%s: another guest's: DIRTY, then CLEAN\n", what);

	/* Both map the same memory */
	start(&shared, without.mem);
	guest_write(&shared.vm, 0, PAGES, 1, 3);
	ksm_pass(1);
	check(verdicts(&without, &shared, PAGES, PAGES, 0) &&
		      verdicts(&without, NULL, 0, PAGES, PAGES),
	      "%s: of both: DIRTY if the one with them writes, else UNKNOWN\n",
	      what);
	vmm_destroy(&shared.vm);
	test_merge(&without, what);
	vmm_destroy(&with.vm);
	vmm_destroy(&without.vm);
	munmap(with.mem, PAGES * PAGE);
	munmap(without.mem, PAGES * PAGE);
	ksm_pass(1);
}

/* Which has no mark for it in its SPTEs, so it is for all of them */
static void test_shadow(bool huge)
{
	const char *what = huge ? "shadow MMU, 2 MiB" : "shadow MMU, 4 KiB";
	struct guest without;

	no_ad(false);
	start(&without, map_pages(PAGES, huge));
	guest_fill(&without.vm, 0, PAGES, 1);
	ksm_pass(1);
	check(verdicts(&without, NULL, 0, 0, PAGES) &&
		      verdicts(NULL, NULL, 0, 0, PAGES),
	      "%s: SPTEs without: UNKNOWN\n", what);
	test_merge(&without, what);
	vmm_destroy(&without.vm);
	munmap(without.mem, PAGES * PAGE);
	no_ad_end();
	ksm_pass(1);
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(2 * 5 + 2 * 2);
	ksm_setup();
	vmm_load_kvm(true);
	test_tdp(false);
	test_tdp(true);
	vmm_load_kvm(false);
	test_shadow(false);
	test_shadow(true);
	ksft_finished();
}
