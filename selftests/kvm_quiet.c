// SPDX-License-Identifier: GPL-2.0
/*
 * Two guests wrote the same to their memory, in every pass, and stop: it merges,
 * in no more passes than with dirty_scan=0.  Then one writes, and each sees its own, as
 * does the host.
 *
 * Seen to fail with: tdp_mmu_test_clear_dirty_pt() reporting dirty bits and not clearing
 * them.
 */
#include "vmm.h"

#define PAGES HUGE_PAGES
#define LIMIT 20

struct guest {
	struct vmm vm;
	char *mem;
};

static uint64_t seed;

static void start(struct guest *guest, bool huge)
{
	guest->mem = map_pages(PAGES, huge);
	vmm_create(&guest->vm, 0);
	vmm_map(&guest->vm, 0, VMM_GPA, guest->mem, PAGES, 0);
}

static void end(struct guest *guest)
{
	vmm_destroy(&guest->vm);
	munmap(guest->mem, PAGES * PAGE);
}

/* As guest and host see it */
static size_t wrong(struct guest *guest, size_t first, size_t pages, uint64_t s)
{
	size_t i, count = guest_wrong(&guest->vm, first, pages, s);

	for (i = first; i < first + pages; i++)
		count += !page_holds(guest->mem, i, (s << 32) + i + 1);
	return count;
}

/* Returns how many passes it took, beyond LIMIT where it did not happen. */
static unsigned int passes_to_merge(struct guest *a, struct guest *b, bool huge)
{
	unsigned int passes;
	int i;

	for (i = 0; i < 4; i++) {
		if (i)
			ksm_pass(1);
		seed++;
		guest_fill(&a->vm, 0, PAGES, seed);
		guest_fill(&b->vm, 0, PAGES, seed);
		if (huge && !i) {
			need_huge(a->mem, PAGES);
			need_huge(b->mem, PAGES);
		}
	}
	for (passes = 1; passes <= LIMIT; passes++) {
		ksm_pass(1);
		if (ksm_get("pages_sharing") >= PAGES)
			break;
	}
	return passes;
}

static void test(bool tdp, bool huge)
{
	const char *what = huge ? "2 MiB pages" : "4 KiB pages";
	const char *mmu = vmm_mmu_name(tdp);
	unsigned int passes[2] = {};
	size_t bad = 0;
	struct guest a, b;
	uint64_t shared = 0;
	int dirty_scan;

	for (dirty_scan = 0; dirty_scan <= 1; dirty_scan++) {
		ksm_set("dirty_scan", dirty_scan);
		start(&a, huge);
		start(&b, huge);
		passes[dirty_scan] = passes_to_merge(&a, &b, huge);
		shared = ksm_get("pages_shared");
		ksft_print_msg("dirty_scan=%d: %u passes, %lu pages shared\n",
			       dirty_scan, passes[dirty_scan], shared);
		bad += wrong(&a, 0, PAGES, seed) + wrong(&b, 0, PAGES, seed);
		if (dirty_scan)
			break;
		end(&a);
		end(&b);
	}
	check(passes[0] <= LIMIT && passes[1] <= passes[0] && shared == PAGES,
	      "%s, %s: quiet guests merge no later than with dirty_scan=0\n",
	      mmu, what);
	check(!bad, "%s, %s: merged memory holds what it held\n", mmu, what);

	/* The guest parts from a page, the host parts from another */
	guest_fill(&a.vm, 0, PAGES / 4, seed + 1);
	fill_page(b.mem, PAGES / 2, (seed + 2) << 32 | (PAGES / 2 + 1));
	ksm_pass(1);
	guest_fill(&b.vm, PAGES / 4, PAGES / 4, seed + 3);
	bad = wrong(&a, 0, PAGES / 4, seed + 1) +
	      wrong(&a, PAGES / 4, PAGES * 3 / 4, seed) +
	      wrong(&b, 0, PAGES / 4, seed) +
	      wrong(&b, PAGES / 4, PAGES / 4, seed + 3) +
	      wrong(&b, PAGES / 2, 1, seed + 2) +
	      wrong(&b, PAGES / 2 + 1, PAGES / 2 - 1, seed);
	/* ksmd notices when it comes by */
	ksm_pass(2);
	ksft_print_msg("%lu of %lu pages still shared\n",
		       ksm_get("pages_sharing"), PAGES);
	check(!bad && ksm_get("pages_sharing") == PAGES / 2 - 1,
	      "%s, %s: written pages part, and only they\n", mmu, what);
	seed += 4;
	end(&a);
	end(&b);
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(9);
	ksm_setup();
	vmm_load_kvm(true);
	test(true, false);
	test(true, true);
	vmm_load_kvm(false);
	test(false, false);
	ksft_finished();
}
