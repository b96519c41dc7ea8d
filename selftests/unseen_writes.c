// SPDX-License-Identifier: GPL-2.0
/*
 * Writes that show in no dirty bit: through /proc/<pid>/mem, by another process,
 * a debugger, DMA; and those to a page that went through swap since.  Settled
 * pages that are written so are found by no search.  Nothing is merged for it that
 * differs, and what has become equal merges when it is searched again
 * (dirty_scan_recheck_passes).
 *
 * Seen to fail with: no window rechecked (harvest.c); a page that changed keeping
 * its place when it is searched again (mm/ksm.c).
 */
#include "ksm_dirty_util.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define PAGES (2 * HUGE_PAGES)
#define RECHECK 4
#define LIMIT (10 * RECHECK)

static uint64_t seed;

/* Contents of a page, in no order, the same in two mappings */
static uint64_t contents(size_t page)
{
	return ((seed << 32) + page + 1) * 0x9e3779b97f4a7c15ULL;
}

/*
 * Each gives the first word of every @step th page the page's contents, and leaves
 * no dirty bit that shows it.
 */
typedef void (*write_fn)(char *mem, size_t step);

static void write_proc_mem(char *mem, size_t step)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	uint64_t value;
	size_t i;

	if (fd < 0)
		ksft_exit_fail_perror("/proc/self/mem");
	for (i = 0; i < PAGES; i += step) {
		value = contents(i);
		if (pwrite(fd, &value, sizeof(value),
			   (uintptr_t)mem + i * PAGE) != sizeof(value))
			ksft_exit_fail_perror("/proc/self/mem");
	}
	close(fd);
}

static void write_vm_writev(char *mem, size_t step)
{
	uint64_t value;
	struct iovec from = { &value, sizeof(value) };
	struct iovec to = { NULL, sizeof(value) };
	size_t i;

	for (i = 0; i < PAGES; i += step) {
		value = contents(i);
		to.iov_base = mem + i * PAGE;
		if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) !=
		    sizeof(value))
			ksft_exit_fail_perror("process_vm_writev");
	}
}

/* A debugger, forked before there is memory, as that would write protect it */
static int to_debugger[2], from_debugger[2];

struct poke {
	char *mem;
	size_t step;
	uint64_t seed;
};

static void debugger(pid_t pid)
{
	struct poke poke;
	char ok = 1;
	size_t i;

	while (read(to_debugger[0], &poke, sizeof(poke)) == sizeof(poke)) {
		seed = poke.seed;
		if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) ||
		    waitpid(pid, NULL, __WALL) != pid)
			ok = 0;
		for (i = 0; ok && i < PAGES; i += poke.step)
			if (ptrace(PTRACE_POKEDATA, pid, poke.mem + i * PAGE,
				   contents(i)))
				ok = 0;
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
		if (write(from_debugger[1], &ok, 1) != 1)
			break;
	}
}

static void start_debugger(void)
{
	pid_t pid = getpid();

	if (pipe(to_debugger) || pipe(from_debugger))
		ksft_exit_fail_perror("pipe");
	switch (fork()) {
	case -1:
		ksft_exit_fail_perror("fork");
	case 0:
		close(to_debugger[1]);
		debugger(pid);
		_exit(0);
	}
	close(to_debugger[0]);
	close(from_debugger[1]);
}

static void write_poke(char *mem, size_t step)
{
	struct poke poke = { mem, step, seed };
	char ok = 0;

	if (write(to_debugger[1], &poke, sizeof(poke)) != sizeof(poke))
		ksft_exit_fail_perror("the debugger is gone");
	if (read(from_debugger[0], &ok, 1) != 1 || !ok)
		ksft_exit_fail_msg("the debugger failed\n");
}

/* Pinned, written by the kernel as a device would, and let go, between passes */
static void write_pinned(char *mem, size_t step)
{
	struct iovec buffer = { mem, PAGES * PAGE };
	struct io_uring_params params = {};
	int ring = syscall(SYS_io_uring_setup, 1, &params);
	int file = memfd_create("unseen_writes", MFD_CLOEXEC);
	struct io_uring_sqe *sqes;
	char *sq, *cq;
	size_t i;

	if (ring < 0 || file < 0 ||
	    syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS,
		    &buffer, 1))
		ksft_exit_fail_perror("io_uring");
	sq = mmap(NULL, params.sq_off.array + params.sq_entries * 4,
		  PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	cq = mmap(NULL, params.cq_off.cqes + params.cq_entries * 16,
		  PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
	sqes = mmap(NULL, params.sq_entries * sizeof(*sqes),
		    PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || sqes == MAP_FAILED)
		ksft_exit_fail_perror("io_uring's memory");

	for (i = 0; i < PAGES; i += step) {
		atomic_uint *head = (void *)(cq + params.cq_off.head);
		atomic_uint *tail = (void *)(sq + params.sq_off.tail);
		struct io_uring_cqe *cqes = (void *)(cq + params.cq_off.cqes);
		unsigned int mask =
			*(unsigned int *)(cq + params.cq_off.ring_mask);
		uint64_t value = contents(i);

		if (pwrite(file, &value, sizeof(value), 0) != sizeof(value))
			ksft_exit_fail_perror("memfd");
		sqes[0] = (struct io_uring_sqe){
			.opcode = IORING_OP_READ_FIXED,
			.fd = file,
			.addr = (uintptr_t)(mem + i * PAGE),
			.len = sizeof(value),
		};
		*(unsigned int *)(sq + params.sq_off.array) = 0;
		atomic_fetch_add(tail, 1);
		if (syscall(SYS_io_uring_enter, ring, 1, 1,
			    IORING_ENTER_GETEVENTS, NULL, 0) != 1 ||
		    cqes[*head & mask].res != sizeof(value))
			ksft_exit_fail_msg("io_uring did not read\n");
		atomic_fetch_add(head, 1);
	}
	munmap(sq, params.sq_off.array + params.sq_entries * 4);
	munmap(cq, params.cq_off.cqes + params.cq_entries * 16);
	munmap(sqes, params.sq_entries * sizeof(*sqes));
	if (syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS,
		    NULL, 0))
		ksft_exit_fail_perror("io_uring");
	close(ring);
	close(file);
}

/* A dirty bit shows it, but the page table entry is a new one, after swap */
static void write_and_swap(char *mem, size_t step)
{
	size_t i, swapped = 0;

	for (i = 0; i < PAGES; i += step) {
		set_word(mem, i, contents(i));
		advise(mem + i * PAGE, 1, MADV_PAGEOUT);
	}
	for (i = 0; i < PAGES; i += step) {
		swapped += pagemap_entry(mem, i) >> 62 & 1;
		get_word(mem, i);
	}
	ksft_print_msg("%zu pages came back from swap\n", swapped);
}

/* Waits until so many pages are merged; a page is searched once in RECHECK passes. */
static void check_merges(const char *what, uint64_t want)
{
	uint64_t stale = ksm_get("settled_stale"), most = 0, now;
	unsigned int passes;

	ksm_set("dirty_scan_recheck_passes", RECHECK);
	for (passes = 0; passes < LIMIT; passes++) {
		now = ksm_get("pages_settled");
		most = now > most ? now : most;
		if (ksm_stat("ksm_merging_pages") == want)
			break;
		ksm_pass(1);
	}
	ksm_set("dirty_scan_recheck_passes", 0);
	stale = ksm_get("settled_stale") - stale;
	ksft_print_msg("%lu of %lu merged, at most %lu settled, %lu stale\n",
		       ksm_stat("ksm_merging_pages"), want, most, stale);
	check(passes <= RECHECK && most <= 2 * PAGES,
	      "%s: all merged in %u passes, with recheck_passes=%d\n", what,
	      passes, RECHECK);
}

static char *map_settled(bool huge, uint64_t first_word)
{
	char *mem = map_pages(PAGES, huge);
	size_t i;

	for (i = 0; i < PAGES; i++) {
		fill_page(mem, i, contents(i));
		/* Like no other page's, and in no order */
		if (first_word)
			set_word(mem, i, contents(i) * first_word);
	}
	if (huge)
		need_huge(mem, PAGES);
	return mem;
}

static size_t count_wrong(const char *mem, size_t step, uint64_t first_word)
{
	size_t i, wrong = 0;

	for (i = 0; i < PAGES; i++)
		wrong += get_word(mem, i) !=
				 contents(i) * (i % step ? first_word : 1) ||
			 get_word(mem + PAGE - sizeof(uint64_t), i) !=
				 contents(i);
	return wrong;
}

#define FIRST_A 0x1234567
#define FIRST_B 0x7654321

/* Settled pages become equal to settled pages */
static void test(const char *what, write_fn unseen, bool huge, size_t step)
{
	const size_t pairs = (PAGES + step - 1) / step;
	char *a, *b;

	seed++;
	a = map_settled(huge, FIRST_A);
	b = map_settled(huge, FIRST_B);
	ksm_pass(2);
	if (ksm_get("pages_settled") != 2 * PAGES)
		ksft_exit_fail_msg("%lu of %lu pages settled\n",
				   ksm_get("pages_settled"), 2 * PAGES);
	unseen(a, step);
	unseen(b, step);
	ksm_pass(3);
	ksft_print_msg("%s: %lu of %lu pages are merged as it is\n", what,
		       ksm_stat("ksm_merging_pages"), 2 * pairs);

	check_merges(what, 2 * pairs);
	check(!count_wrong(a, step, FIRST_A) && !count_wrong(b, step, FIRST_B),
	      "%s: contents\n", what);
	munmap(a, PAGES * PAGE);
	munmap(b, PAGES * PAGE);
	ksm_pass(1);
	check(!ksm_get("pages_settled"), "%s: nothing stays in the tree\n",
	      what);
}

/* A copy of them comes later */
static void test_late_copy(void)
{
	char *a, *copy;

	seed++;
	a = map_settled(false, FIRST_A);
	ksm_pass(2);
	write_proc_mem(a, 1);
	copy = map_settled(false, 0);
	ksm_pass(2);
	ksft_print_msg("late copy: %lu of %lu pages are merged as it is\n",
		       ksm_stat("ksm_merging_pages"), 2 * PAGES);
	check_merges("late copy", 2 * PAGES);
	check(!count_wrong(a, 1, 0) && !count_wrong(copy, 1, 0),
	      "late copy: contents\n");
	munmap(a, PAGES * PAGE);
	munmap(copy, PAGES * PAGE);
	ksm_pass(1);
}

int main(void)
{
	static const struct {
		const char *what;
		write_fn unseen;
		bool huge;
		size_t step;
	} tests[] = {
		{ "/proc/self/mem", write_proc_mem, false, 16 },
		{ "process_vm_writev", write_vm_writev, false, 16 },
		{ "ptrace", write_poke, false, 16 },
		{ "pinned", write_pinned, false, 16 },
		{ "swap", write_and_swap, false, 16 },
		{ "/proc/self/mem, all", write_proc_mem, false, 1 },
		{ "swap, all", write_and_swap, false, 1 },
		/* Where this one sets the dirty bit */
		{ "/proc/self/mem, huge", write_proc_mem, true, 1 },
		{ "pinned, huge", write_pinned, true, 16 },
	};
	size_t i;

	ksft_print_header();
	ksft_set_plan(3 * ARRAY_SIZE(tests) + 2);
	ksm_setup();
	start_debugger();
	for (i = 0; i < ARRAY_SIZE(tests); i++)
		test(tests[i].what, tests[i].unseen, tests[i].huge,
		     tests[i].step);
	test_late_copy();
	ksft_finished();
}
