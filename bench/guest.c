// SPDX-License-Identifier: GPL-2.0
/*
 * The writer as a guest: one vCPU rewrites the memory, and publishes its
 * progress, in a loop that does not leave the guest by itself before all is done.
 * The host's side touches neither the memory nor the progress meanwhile.
 */
#define _GNU_SOURCE
#include <sys/ioctl.h>

#include "vmm.h"

#include "bench.h"

/* Memory slots, and guest physical addresses between the VMM's own and VMM_GPA */
enum { MEMORY_SLOT, CODE_SLOT, PROGRESS_SLOT };
#define CODE_GPA (1UL << 20)
#define CODE_BYTES (4 * PAGE_BYTES) /* the stack is at its end */
#define PROGRESS_GPA (2UL << 20)

static struct kvm_run *volatile running;

/* For a signal handler: the guest stops, or does not start. */
void guest_interrupt(void)
{
	if (running)
		running->immediate_exit = 1;
}

/*
 * What the guest runs, copied there: it may use nothing but its arguments, and
 * no registers but the general ones.
 */
#define GUEST_CODE \
	__attribute__((section("guest_code"), target("general-regs-only")))

GUEST_CODE __attribute__((noinline, noreturn)) static void
guest_main(char *memory, uint64_t bytes, uint64_t stride,
	   struct progress *progress, uint64_t stamp, uint64_t limit)
{
	uint64_t writes = 0, sweeps = 0, then, now;
	char *end = memory + bytes, *at;

	then = __builtin_ia32_rdtsc();
	while (sweeps < limit) {
		for (at = memory; at < end; at += stride) {
			*(volatile uint64_t *)at = ++writes;
			if (stamp) {
				now = __builtin_ia32_rdtsc();
				progress->latency[latency_bucket(now - then)]++;
				then = now;
			}
			if (writes % PROGRESS_EVERY == 0)
				progress->writes = writes;
		}
		progress->writes = writes;
		progress->sweeps = ++sweeps;
	}
	for (;;)
		asm volatile("hlt");
}

extern const char __start_guest_code[], __stop_guest_code[];

static void load_code(struct vmm *vm)
{
	size_t bytes = __stop_guest_code - __start_guest_code;
	char *code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		fail(EXIT_FAILURE, "cannot map the guest's code: %s",
		     strerror(errno));
	memcpy(code, __start_guest_code, bytes);
	vmm_map(vm, CODE_SLOT, CODE_GPA, code, CODE_BYTES / PAGE_BYTES, 0);
}

static void check_sptes(uint64_t bytes, bool huge)
{
	uint64_t small = kvm_stat("pages_4k"), large = kvm_stat("pages_2m");

	if (huge ? large < bytes / HUGE_BYTES :
		   large || small < bytes / PAGE_BYTES)
		fail(EXIT_FAILURE,
		     "KVM maps the guest's %" PRIu64 " MiB by %" PRIu64
		     " entries of 4 KiB and %" PRIu64
		     " of 2 MiB where --mapping %s was asked for",
		     bytes / MIB, small, large, huge ? "thp" : "4k");
}

/**
 * guest_write_loop() - have a guest rewrite memory until *@stop is set
 * @memory: the memory, @progress->bytes of it, aligned to 2 MiB
 * @stride: one long word is rewritten every @stride bytes
 * @progress: where the guest publishes its progress
 * @huge: whether KVM is to have mapped the memory by 2 MiB or by 4 KiB
 * @merges: it need not be so in the end
 * @stamp: fill in @progress->latency
 * @sweeps: halt after so many
 * @stop: set by a signal handler, which then calls guest_interrupt()
 */
void guest_write_loop(char *memory, uint64_t stride, struct progress *progress,
		      bool huge, bool merges, bool stamp, uint64_t sweeps,
		      const volatile sig_atomic_t *stop)
{
	struct kvm_regs regs = {
		.rip = CODE_GPA + ((char *)guest_main - __start_guest_code),
		/* As after a call: 16 bytes aligned but for a return address */
		.rsp = CODE_GPA + CODE_BYTES - 8,
		.rflags = 2,
		.rdi = VMM_GPA,
		.rsi = progress->bytes,
		.rdx = stride,
		.rcx = PROGRESS_GPA,
		.r8 = stamp,
		.r9 = sweeps,
	};
	struct timespec nap = { .tv_nsec = 50000000 };
	struct vmm vm;
	int khz;

	vmm_create(&vm, 0);
	load_code(&vm);
	vmm_map(&vm, MEMORY_SLOT, VMM_GPA, memory, progress->bytes / PAGE_BYTES,
		0);
	vmm_map(&vm, PROGRESS_SLOT, PROGRESS_GPA, (char *)progress,
		sizeof(*progress) / PAGE_BYTES, 0);
	khz = ioctl(vm.vcpu_fd[0], KVM_GET_TSC_KHZ);
	if (khz <= 0 || ioctl(vm.vcpu_fd[0], KVM_SET_REGS, &regs))
		fail(EXIT_FAILURE, "cannot set up the guest: %s",
		     khz ? strerror(errno) : "its TSC has no frequency");
	progress->tsc_khz = khz;

	running = vm.run[0];
	while (!*stop) {
		if (!ioctl(vm.vcpu_fd[0], KVM_RUN, 0)) {
			/* Short naps: a signal may come just before one. */
			if (running->exit_reason == KVM_EXIT_HLT) {
				nanosleep(&nap, NULL);
				continue;
			}
			fail(EXIT_FAILURE,
			     "the guest ended with exit reason %u",
			     running->exit_reason);
		}
		if (errno != EINTR && errno != EAGAIN)
			fail(EXIT_FAILURE, "KVM_RUN: %s", strerror(errno));
	}
	running = NULL;
	if (progress->sweeps && !merges)
		check_sptes(progress->bytes, huge);
	vmm_destroy(&vm);
}
