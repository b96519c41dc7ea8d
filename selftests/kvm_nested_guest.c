// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of the Linux guest that kvm_qemu.sh runs for kvm_nested, linked statically: a
 * guest that has a guest of its own (L2), by the kernel's KVM.  L2 counts up in all
 * pages of one part of its memory, over and over, and looks at each before; another
 * part holds the same in every L2, and is looked at at the end.  After SECONDS this
 * says on the console what L2 found, and stops.
 */
#include "vmm.h"

#include <pthread.h>
#include <sys/mount.h>
#include <sys/reboot.h>

#define VOLATILE_PAGES 4096UL
#define EQUAL_PAGES 2048UL

static struct vmm vm;

static void *stop_after(void *seconds)
{
	sleep(*(int *)seconds);
	vmm_control(&vm, 0)->stop = 1;
	return NULL;
}

int main(void)
{
	/* What the kernel does not know of its command line is PID 1's */
	const char *text = getenv("SECONDS");
	int seconds = text ? atoi(text) : 10;
	/* Another one for each guest */
	uint64_t id = __builtin_ia32_rdtsc() | 2;
	unsigned long wrong;
	pthread_t thread;
	char *mem;
	size_t i;

	if (mount("proc", "/proc", "proc", 0, NULL) ||
	    mount("sysfs", "/sys", "sysfs", 0, NULL) ||
	    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL))
		ksft_exit_fail_perror("mount");
	need_module("irqbypass");
	need_module("kvm");
	vmm_load_kvm(true);
	vmm_create(&vm, 0);
	/* Huge pages: each fault of L2 is a long way here */
	mem = map_pages(VOLATILE_PAGES + EQUAL_PAGES, true);
	vmm_map(&vm, 0, VMM_GPA, mem, VOLATILE_PAGES + EQUAL_PAGES, 0);
	guest_fill(&vm, VOLATILE_PAGES, EQUAL_PAGES, 1);
	/* No page like another one: what tells them apart is not rewritten */
	guest_fill(&vm, 0, VOLATILE_PAGES, id);
	for (i = 0; i < VOLATILE_PAGES; i++)
		set_word(mem, i, 0);
	if (pthread_create(&thread, NULL, stop_after, &seconds))
		ksft_exit_fail_msg("cannot start a thread\n");
	printf("guest: ready\n");
	fflush(stdout);

	wrong = guest_sweep(&vm, 0, VOLATILE_PAGES, 0);
	wrong += guest_wrong(&vm, VOLATILE_PAGES, EQUAL_PAGES, 1);
	printf("guest: %s, %lu sweeps, %lu wrong\n",
	       wrong ? "CORRUPT" : "verified",
	       (unsigned long)vmm_control(&vm, 0)->value, wrong);
	fflush(stdout);
	sync();
	usleep(200000);
	/* There is no ACPI; QEMU ends at a reset. */
	reboot(RB_AUTOBOOT);
	return 1;
}
