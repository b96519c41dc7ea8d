// SPDX-License-Identifier: GPL-2.0
/*
 * A harvest does not interrupt a vCPU: a guest that writes all the time leaves for
 * no more than the host's timer, and once a pass for the host's TLB flush.  And
 * yet its writes are seen: one that has not left since the pass before is made
 * to, so that no page looks quiet for long.
 *
 * Seen to fail with: KVM not answering, for the guest being harvested and
 * being seen; KVM flushing by IPI in every window, for the exits (on a host that
 * is not busy) and for the remote TLBs.
 */
#include "vmm.h"

#include <pthread.h>

#define WINDOWS 16
#define PAGES (WINDOWS * HUGE_PAGES)
#define SECONDS 3
#define FAST_PAGES 64
#define FAST_PASSES 100

static size_t sweep_pages;

static void *sweep(void *vm)
{
	pin_to_cpu(1);
	return (void *)guest_sweep(vm, 0, sweep_pages, 0);
}

/*
 * Whenever ksmd is faster than the guest, pages are clean: none may be like another,
 * or merging them makes the guest exit. The guest counts in the first word.
 */
static char *map_unlike(size_t pages)
{
	char *mem = map_pages(pages, false);
	size_t i;

	fill_pages(mem, pages, 7);
	for (i = 0; i < pages; i++)
		set_word(mem, i, 0);
	return mem;
}

/* Returns how many passes there were. */
static unsigned int exits_while(bool harvest, double *per_second)
{
	double start = now(), end = start + SECONDS;
	uint64_t exits = kvm_stat("exits");
	unsigned int passes = 0;

	while (now() < end) {
		if (harvest) {
			ksm_pass(1);
			passes++;
		}
		usleep(20000);
	}
	*per_second = (kvm_stat("exits") - exits) / (now() - start);
	return passes;
}

static void test_exits(bool tdp)
{
	char *mem = map_unlike(PAGES);
	double without, with, again, rate;
	unsigned int passes;
	pthread_t thread;
	struct vmm vm;
	uint64_t dirty, flushes;

	vmm_create(&vm, 0);
	vmm_map(&vm, 0, VMM_GPA, mem, PAGES, 0);
	sweep_pages = PAGES;
	pthread_create(&thread, NULL, sweep, &vm);
	while (vmm_control(&vm, 0)->value < 3)
		usleep(1000);
	ksm_pass(2);
	exits_while(false, &without);
	dirty = ksm_get("pages_dirty");
	flushes = kvm_stat("remote_tlb_flush_requests");
	passes = exits_while(true, &with);
	flushes = kvm_stat("remote_tlb_flush_requests") - flushes;
	dirty = ksm_get("pages_dirty") - dirty;
	exits_while(false, &again);
	rate = passes / (double)SECONDS;
	ksft_print_msg(
		"exits per second: %.0f, %.0f with %.0f passes of %d windows, %.0f\n",
		without, with, rate, WINDOWS, again);
	if (again > without)
		without = again;
	check(passes > 5 && dirty > passes * PAGES / 2,
	      "%s: a guest that writes all the time is harvested\n",
	      vmm_mmu_name(tdp));
	check(with < without * 1.1 + 3 * rate,
	      "%s: no window of a harvest makes it leave\n", vmm_mmu_name(tdp));
	ksft_print_msg("%lu flushes of remote TLBs in %u passes\n", flushes,
		       passes);
	/* Merging, or reclaim, may flush; a harvest in each window would show */
	check(flushes < passes, "%s: a harvest flushes no remote TLB\n",
	      vmm_mmu_name(tdp));
	vmm_control(&vm, 0)->stop = 1;
	pthread_join(thread, NULL);
	vmm_destroy(&vm);
	munmap(mem, PAGES * PAGE);
}

/* Passes closer together than the host's timer, which makes a vCPU flush too */
static void test_seen(bool tdp)
{
	unsigned int run = 0, longest = 0, quiet = 0, i;
	char *mem = map_unlike(FAST_PAGES);
	pthread_t thread;
	struct vmm vm;
	double start;

	vmm_create(&vm, 0);
	vmm_map(&vm, 0, VMM_GPA, mem, FAST_PAGES, 0);
	sweep_pages = FAST_PAGES;
	pthread_create(&thread, NULL, sweep, &vm);
	ksm_pass(2);
	start = now();
	for (i = 0; i < FAST_PASSES; i++) {
		uint64_t dirty = ksm_get("pages_dirty");

		ksm_pass(1);
		if (ksm_get("pages_dirty") != dirty) {
			run = 0;
			continue;
		}
		quiet++;
		if (++run > longest)
			longest = run;
	}
	ksft_print_msg("%u passes of %.2f ms: %u saw no write, %u in a row\n",
		       i, (now() - start) * 1000 / i, quiet, longest);
	check(longest <= 2, "%s: no write goes unseen for three passes\n",
	      vmm_mmu_name(tdp));
	vmm_control(&vm, 0)->stop = 1;
	pthread_join(thread, NULL);
	vmm_destroy(&vm);
	munmap(mem, FAST_PAGES * PAGE);
}

int main(void)
{
	int tdp;

	ksft_print_header();
	ksft_set_plan(8);
	ksm_setup();
	pin_to_cpu(0);
	ksmd_pin(0);
	for (tdp = 1; tdp >= 0; tdp--) {
		vmm_load_kvm(tdp);
		test_exits(tdp);
		test_seen(tdp);
	}
	ksft_finished();
}
