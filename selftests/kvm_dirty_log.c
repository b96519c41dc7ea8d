// SPDX-License-Identifier: GPL-2.0
/*
 * While a memslot's writes are logged, its pages are unknown and their dirty bits
 * stay; and while ksmd scans without a pause and logging goes on and off, each
 * page that the guest wrote is in the log, whichever kind of log.
 *
 * Seen to fail with: KVM clearing the bits of a slot that logs, for unknown pages
 * and bits left alone.  Not so for missed writes: where logging goes by write
 * protection, as with SVM, a lost dirty bit cannot show in the log.
 */
#include "vmm.h"

#include <pthread.h>
#include <sys/ioctl.h>

#define PAGES (2 * HUGE_PAGES)
#define SLOT 3
#define RING 4096
#define CYCLES 6
#define SECONDS 20 /* until it is as many passes as cycles, at most */
#define ROUNDS 3 /* of writes and a look at the log, in a cycle */

enum log { BITMAP, MANUAL, INITIALLY_SET, DIRTY_RING, LOGS };

static const char *const log_names[] = {
	"bitmap",
	"bitmap cleared by hand",
	"bitmap initially set",
	"ring",
};

static void create(struct vmm *vm, enum log log, char *mem)
{
	struct kvm_enable_cap cap = {
		.cap = KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2,
		.args[0] = KVM_DIRTY_LOG_MANUAL_PROTECT_ENABLE,
	};

	vmm_create(vm, log == DIRTY_RING ? RING : 0);
	if (log == INITIALLY_SET)
		cap.args[0] |= KVM_DIRTY_LOG_INITIALLY_SET;
	if (log == MANUAL || log == INITIALLY_SET)
		if (ioctl(vm->fd, KVM_ENABLE_CAP, &cap))
			ksft_exit_fail_perror("manual dirty log");
	vmm_map(vm, SLOT, VMM_GPA, mem, PAGES, 0);
}

static void logging(struct vmm *vm, char *mem, bool on)
{
	vmm_map(vm, SLOT, VMM_GPA, mem, PAGES,
		on ? KVM_MEM_LOG_DIRTY_PAGES : 0);
}

static void get_log(struct vmm *vm, enum log log, void *bitmap)
{
	memset(bitmap, 0, PAGES / 8);
	if (log == DIRTY_RING)
		vmm_drain_ring(vm, SLOT, bitmap);
	else
		vmm_dirty_log(vm, SLOT, bitmap);
	if (log == MANUAL || log == INITIALLY_SET)
		vmm_clear_log(vm, SLOT, PAGES, bitmap);
}

static void test_untouched(enum log log, bool tdp)
{
	char *mem = map_pages(PAGES, false);
	uint64_t dirty, unknown;
	struct vmm vm;

	create(&vm, log, mem);
	guest_fill(&vm, 0, PAGES, 1);
	ksm_pass(2);
	logging(&vm, mem, true);
	guest_write(&vm, 0, PAGES, 1, 2);

	dirty = ksm_get("pages_dirty");
	unknown = ksm_get("pages_unknown");
	ksm_pass(2);
	dirty = ksm_get("pages_dirty") - dirty;
	unknown = ksm_get("pages_unknown") - unknown;
	ksft_print_msg("%lu dirty, %lu unknown\n", dirty, unknown);
	check(!dirty && unknown == 2 * PAGES,
	      "%s, %s: pages are unknown while they are logged\n",
	      vmm_mmu_name(tdp), log_names[log]);

	logging(&vm, mem, false);
	dirty = ksm_get("pages_dirty");
	ksm_pass(1);
	dirty = ksm_get("pages_dirty") - dirty;
	check(dirty == PAGES, "%s, %s: their dirty bits were left alone\n",
	      vmm_mmu_name(tdp), log_names[log]);
	vmm_destroy(&vm);
	munmap(mem, PAGES * PAGE);
}

static void test_complete(enum log log, bool tdp, bool huge)
{
	static uint8_t bitmap[PAGES / 8];
	char *mem = map_pages(PAGES, huge);
	uint64_t passes = ksm_get("full_scans");
	unsigned long missed = 0, written = 0, seen = 0;
	struct vmm vm;
	size_t i, round, cycle;
	double end;

	create(&vm, log, mem);
	guest_fill(&vm, 0, PAGES, 1);
	ksm_full_speed(100000);
	end = now() + SECONDS;
	for (cycle = 1;
	     cycle <= CYCLES ||
	     (ksm_get("full_scans") - passes < CYCLES && now() < end);
	     cycle++) {
		/* Dirty bits that no log is to hear of */
		guest_write(&vm, 0, PAGES, 1, cycle);
		logging(&vm, mem, true);
		for (round = 0; round < ROUNDS; round++) {
			size_t step = 1 + (cycle * 7 + round * 3) % 11;
			size_t first = (cycle + round) % step;
			size_t count = (PAGES - first) / step;

			guest_write(&vm, first, count, step,
				    1000 + cycle * ROUNDS + round);
			get_log(&vm, log, bitmap);
			for (i = first; i < first + count * step; i += step)
				missed += !(bitmap[i / 8] >> i % 8 & 1);
			written += count;
			for (i = 0; i < PAGES; i++)
				seen += bitmap[i / 8] >> i % 8 & 1;
		}
		logging(&vm, mem, false);
	}
	ksm_stop();
	passes = ksm_get("full_scans") - passes;
	ksft_print_msg(
		"%lu passes; %lu pages written, %lu reported, %lu missed\n",
		passes, written, seen, missed);
	check(!missed && passes >= CYCLES,
	      "%s, %s pages, %s: every write is reported\n", vmm_mmu_name(tdp),
	      huge ? "2 MiB" : "4 KiB", log_names[log]);
	vmm_destroy(&vm);
	munmap(mem, PAGES * PAGE);
}

int main(void)
{
	int tdp;
	enum log log;

	ksft_print_header();
	ksft_set_plan(2 * (2 * LOGS + 2 * LOGS));
	ksm_setup();
	for (tdp = 1; tdp >= 0; tdp--) {
		vmm_load_kvm(tdp);
		for (log = 0; log < LOGS; log++) {
			test_untouched(log, tdp);
			test_complete(log, tdp, false);
			test_complete(log, tdp, true);
		}
	}
	ksft_finished();
}
