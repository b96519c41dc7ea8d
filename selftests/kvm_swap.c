// SPDX-License-Identifier: GPL-2.0
/*
 * What a guest wrote is what it reads after reclaim, though the SPTE's dirty bit was
 * cleared in between.
 *
 *  - Mapped from the swap cache, written by the guest alone, harvested, and
 *    reclaimed: the folio has to be dirty, since neither the page table entry
 *    nor the SPTE is.
 *    Seen to fail with: KVM not answering, for the harvest; the TDP MMU clearing
 *    the dirty bit without marking the page dirty, for the contents, here and
 *    in the race below.  Not yet with the shadow MMU doing so.
 *  - The guest counts up in all of its memory while reclaim takes it, and ksmd
 *    harvests without a pause.
 */
#include "vmm.h"

#include <pthread.h>

#define KPF_SWAPCACHE 13

#define PAGES HUGE_PAGES
#define RACE_PAGES 128
#define CHUNK 16 /* pages that reclaim takes at a time */
#define ROUNDS 100 /* of everybody in the race */
#define SECONDS 20 /* at most, until they have done that */

static size_t in_swap(const char *addr, size_t pages)
{
	size_t i, count = 0;

	for (i = 0; i < pages; i++)
		count += pagemap_entry(addr, i) >> 62 & 1;
	return count;
}

static void test_swap_cache(bool tdp)
{
	const char *mmu = vmm_mmu_name(tdp);
	char *mem = map_pages(PAGES, false);
	size_t i, cached = 0, swapped, wrong;
	uint64_t dirty;
	struct vmm vm;

	vmm_create(&vm, 0);
	vmm_map(&vm, 0, VMM_GPA, mem, PAGES, 0);
	guest_fill(&vm, 0, PAGES, 1);
	advise(mem, PAGES, MADV_PAGEOUT);
	swapped = in_swap(mem, PAGES);
	/* Into the swap cache; a fault alone would take it past that */
	advise(mem, PAGES, MADV_WILLNEED);
	/* The guest reads: the page is mapped clean by both */
	wrong = guest_wrong(&vm, 0, PAGES, 1);
	for (i = 0; i < PAGES; i++)
		cached += page_flag(mem, i, KPF_SWAPCACHE);
	ksft_print_msg("%zu pages swapped, %zu in the swap cache, %zu wrong\n",
		       swapped, cached, wrong);
	check(swapped > PAGES / 2 && cached > PAGES / 2 && !wrong,
	      "%s: guest memory is mapped from the swap cache\n", mmu);

	guest_fill(&vm, 0, PAGES, 2);
	dirty = ksm_get("pages_dirty");
	ksm_pass(1);
	check(ksm_get("pages_dirty") - dirty == PAGES,
	      "%s: its dirty bits are harvested\n", mmu);
	advise(mem, PAGES, MADV_PAGEOUT);
	check(in_swap(mem, PAGES) > PAGES / 2, "%s: it is reclaimed again\n",
	      mmu);
	wrong = guest_wrong(&vm, 0, PAGES, 2);
	ksft_print_msg("%zu pages with stale contents\n", wrong);
	check(!wrong, "%s: the guest reads what it wrote last\n", mmu);
	vmm_destroy(&vm);
	munmap(mem, PAGES * PAGE);
}

static void *sweep(void *vm)
{
	pin_to_cpu(1);
	return (void *)guest_sweep(vm, 0, RACE_PAGES, 0);
}

static void test_race(bool tdp)
{
	const char *mmu = vmm_mmu_name(tdp);
	char *mem = map_pages(RACE_PAGES, false);
	unsigned long pageouts = 0;
	uint64_t harvested, sweeps;
	pthread_t thread;
	struct vmm vm;
	double end;
	void *wrong;

	memset(mem, 0, RACE_PAGES * PAGE);
	pin_to_cpu(0);
	ksmd_pin(0);
	vmm_create(&vm, 0);
	vmm_map(&vm, 0, VMM_GPA, mem, RACE_PAGES, 0);
	pthread_create(&thread, NULL, sweep, &vm);
	harvested = ksm_get("pages_dirty");
	ksm_full_speed(100000);
	for (end = now() + SECONDS; now() < end; pageouts++) {
		if (pageouts >= ROUNDS &&
		    vmm_control(&vm, 0)->value >= ROUNDS &&
		    ksm_get("pages_dirty") - harvested >= 10 * RACE_PAGES)
			break;
		char *chunk =
			mem + pageouts % (RACE_PAGES / CHUNK) * CHUNK * PAGE;

		madvise(chunk, CHUNK * PAGE, MADV_PAGEOUT);
		if (pageouts % 3)
			madvise(chunk, CHUNK * PAGE, MADV_WILLNEED);
		/* Let the guest get somewhere */
		usleep(2000);
	}
	vmm_control(&vm, 0)->stop = 1;
	pthread_join(thread, &wrong);
	ksm_stop();
	harvested = ksm_get("pages_dirty") - harvested;
	sweeps = vmm_control(&vm, 0)->value;
	ksft_print_msg("%lu pageouts, %lu sweeps, %lu harvested, %lu lost\n",
		       pageouts, sweeps, harvested, (unsigned long)wrong);
	check(pageouts >= ROUNDS / 4 && sweeps >= ROUNDS / 4 &&
		      harvested >= 10 * RACE_PAGES,
	      "%s: reclaim, guest and ksmd raced\n", mmu);
	check(!wrong, "%s: no write of the guest was lost on the way to swap\n",
	      mmu);
	vmm_destroy(&vm);
	munmap(mem, RACE_PAGES * PAGE);
}

int main(void)
{
	char swaps[256];
	int tdp;

	ksft_print_header();
	ksm_setup();
	read_file("/proc/swaps", swaps, sizeof(swaps));
	if (!strchr(swaps, '/'))
		ksft_exit_skip("no swap\n");
	ksft_set_plan(12);
	for (tdp = 1; tdp >= 0; tdp--) {
		vmm_load_kvm(tdp);
		test_swap_cache(tdp);
		test_race(tdp);
	}
	ksft_finished();
}
