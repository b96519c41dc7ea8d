// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of the Linux guest that kvm_qemu.sh runs, linked statically.
 *
 * One part of its memory holds the same in every guest, and is looked at at the
 * end; all pages of another part are counted up over and over, each looked at
 * before it is written.  After SECONDS it says on the console what it found, and stops.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
#define VOLATILE_PAGES 4096UL
#define EQUAL_PAGES 2048UL

static uint64_t *map(size_t pages)
{
	uint64_t *mem = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED) {
		perror("guest: mmap");
		reboot(RB_AUTOBOOT);
	}
	return mem;
}

int main(int argc, char **argv)
{
	/* What the kernel does not know of its command line is PID 1's */
	const char *text = getenv("SECONDS");
	time_t end = time(NULL) + (text ? atoi(text) : 10);
	uint64_t *hot = map(VOLATILE_PAGES), *equal = map(EQUAL_PAGES);
	const size_t words = PAGE / sizeof(*hot);
	unsigned long wrong = 0;
	uint64_t sweep = 0;
	size_t i;

	(void)argc;
	(void)argv;
	for (i = 0; i < EQUAL_PAGES * words; i++)
		equal[i] = 0x9e3779b97f4a7c15UL * (i + 1);
	memset(hot, 0, VOLATILE_PAGES * PAGE);
	printf("guest: ready\n");
	fflush(stdout);

	while (time(NULL) < end) {
		for (i = 0; i < VOLATILE_PAGES; i++) {
			volatile uint64_t *word = hot + i * words + i % words;

			wrong += *word != sweep;
			*word = sweep + 1;
		}
		sweep++;
	}
	for (i = 0; i < EQUAL_PAGES * words; i++)
		wrong += equal[i] != 0x9e3779b97f4a7c15UL * (i + 1);
	printf("guest: %s, %lu sweeps, %lu wrong\n",
	       wrong ? "CORRUPT" : "verified", (unsigned long)sweep, wrong);
	fflush(stdout);
	sync();
	usleep(200000);
	/* There is no ACPI; QEMU ends at a reset. */
	reboot(RB_AUTOBOOT);
	return 1;
}
