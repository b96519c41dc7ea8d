// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is mapped in odd ways, or changes hands while it is harvested: two
 * memslots on the same memory, one of them logging; slots that cover part of a
 * window; slots that come, move and go; userfaultfd; memory that cannot be merged;
 * vCPUs that do not run; virtual machines that are killed; KVM's module unloaded.
 *
 * Seen to fail with: KVM not answering, for the first, third, fourth, fifth and
 * seventh result.  The others watch for crashes and corruption; not yet seen to fail.
 */
#include "vmm.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PAGES HUGE_PAGES
#define ALIAS_GPA (VMM_GPA * 2)
#define UFFD_PAGES 64
#define ROUNDS 6 /* of slots, and passes of ksmd meanwhile */
#define SECONDS 30 /* until they have done that, at most */
#define KILLS 4

struct verdicts {
	uint64_t dirty, clean, unknown;
};

static struct verdicts verdicts(void)
{
	return (struct verdicts){
		.dirty = ksm_get("pages_dirty"),
		.clean = ksm_get("pages_clean"),
		.unknown = ksm_get("pages_unknown"),
	};
}

/* Does one pass find this many pages of each kind? */
static bool pass_finds(uint64_t dirty, uint64_t clean, uint64_t unknown)
{
	struct verdicts old = verdicts(), v;

	ksm_pass(1);
	v = verdicts();
	v.dirty -= old.dirty;
	v.clean -= old.clean;
	v.unknown -= old.unknown;
	if (v.dirty == dirty && v.clean == clean && v.unknown == unknown)
		return true;
	ksft_print_msg(
		"%lu dirty, %lu clean, %lu unknown instead of %lu, %lu, %lu\n",
		v.dirty, v.clean, v.unknown, dirty, clean, unknown);
	return false;
}

static void test_alias(void)
{
	char *mem = map_pages(PAGES, false);
	struct vmm vm;
	bool ok;

	vmm_create(&vm, 0);
	vmm_map(&vm, 0, VMM_GPA, mem, PAGES, 0);
	vmm_map(&vm, 1, ALIAS_GPA, mem, PAGES, 0);
	guest_fill(&vm, 0, PAGES, 1);
	guest_write_at(&vm, ALIAS_GPA, PAGES, 2);
	ksm_pass(1);
	ok = pass_finds(0, PAGES, 0);
	guest_write_at(&vm, ALIAS_GPA, PAGES, 3);
	ok &= pass_finds(PAGES, 0, 0);
	guest_write_at(&vm, VMM_GPA, PAGES, 4);
	ok &= pass_finds(PAGES, 0, 0);
	check(ok, "memory at two addresses: writes at either count\n");

	vmm_map(&vm, 1, ALIAS_GPA, mem, PAGES, KVM_MEM_LOG_DIRTY_PAGES);
	ok = pass_finds(0, 0, PAGES);
	guest_write_at(&vm, ALIAS_GPA, PAGES, 5);
	ok &= pass_finds(0, 0, PAGES);
	check(ok, "memory at two addresses: unknown while one is logged\n");
	guest_write_at(&vm, VMM_GPA, PAGES, 6);
	check(pass_finds(PAGES, 0, 0),
	      "memory at two addresses: dirty if the other was written\n");
	vmm_destroy(&vm);
	munmap(mem, PAGES * PAGE);
}

/* Two slots in one window, neither at an end of it, with a gap */
static void test_small(void)
{
	char *mem = map_pages(PAGES, false);
	struct vmm vm;
	bool ok;

	fill_pages(mem, PAGES, 1);
	vmm_create(&vm, 0);
	vmm_map(&vm, 0, VMM_GPA, mem + 7 * PAGE, 100, 0);
	vmm_map(&vm, 1, ALIAS_GPA, mem + 200 * PAGE, 33, 0);
	guest_write_at(&vm, VMM_GPA, 100, 2);
	guest_write_at(&vm, ALIAS_GPA, 33, 3);
	ksm_pass(1);
	ok = pass_finds(0, PAGES, 0);
	guest_write_at(&vm, VMM_GPA, 100, 4);
	ok &= pass_finds(100, PAGES - 100, 0);
	guest_write_at(&vm, ALIAS_GPA + 32 * PAGE, 1, 5);
	set_word(mem, 199, 6);
	set_word(mem, 200, 7);
	ok &= pass_finds(3, PAGES - 3, 0);
	vmm_map(&vm, 1, ALIAS_GPA, mem + 200 * PAGE, 33,
		KVM_MEM_LOG_DIRTY_PAGES);
	ok &= pass_finds(0, PAGES - 33, 33);
	vmm_unmap(&vm, 1);
	ok &= pass_finds(0, PAGES, 0);
	check(ok, "slots that cover part of a window: only their pages\n");
	vmm_destroy(&vm);
	munmap(mem, PAGES * PAGE);
}

/* The second vCPU ran once; what it may have cached then is not flushed since. */
static void test_idle_vcpu(void)
{
	char *mem = map_pages(PAGES, false);
	struct vmm vm;
	bool ok = true;
	int i;

	vmm_create(&vm, 0);
	vmm_map(&vm, 0, VMM_GPA, mem, PAGES, 0);
	vmm_control(&vm, 1)->stop = 1;
	guest_sweep(&vm, 1, PAGES, 0);
	guest_fill(&vm, 0, PAGES, 1);
	ksm_pass(1);
	for (i = 0; i < 5; i++) {
		guest_write(&vm, 0, PAGES, 1, 2 + i);
		ok &= pass_finds(PAGES, 0, 0);
		ok &= pass_finds(0, PAGES, 0);
	}
	/* Its turn: it writes through what it had */
	guest_sweep(&vm, 1, PAGES, 0);
	ok &= pass_finds(PAGES, 0, 0);
	check(ok, "a vCPU that stays in user space holds nothing up\n");
	vmm_destroy(&vm);
	munmap(mem, PAGES * PAGE);
}

static void *sweep(void *vm)
{
	return (void *)guest_sweep(vm, 1, PAGES, 0);
}

/* One vCPU counts up in a slot that stays, the other's slot does not. */
static void test_storm(void)
{
	char *mem = map_pages(2 * PAGES, false);
	unsigned long rounds = 0, bad = 0;
	uint64_t passes;
	pthread_t thread;
	struct vmm vm;
	double end;
	void *lost;

	memset(mem, 0, 2 * PAGES * PAGE);
	vmm_create(&vm, 0);
	vmm_map(&vm, 0, VMM_GPA, mem, PAGES, 0);
	pthread_create(&thread, NULL, sweep, &vm);
	passes = ksm_get("full_scans");
	ksm_full_speed(100000);
	for (end = now() + SECONDS; now() < end; rounds++) {
		if (rounds >= ROUNDS &&
		    ksm_get("full_scans") - passes >= ROUNDS)
			break;
		char *half = mem + PAGES * PAGE;
		uint64_t gpa = ALIAS_GPA + (rounds & 1) * HUGE;
		uint64_t value = rounds + 1;
		size_t i;

		/* As this round goes: new, written, moved, written, read-only */
		vmm_map(&vm, 1, gpa, half, PAGES, 0);
		guest_write_at(&vm, gpa, PAGES, value);
		gpa += 4 * HUGE;
		vmm_map(&vm, 1, gpa, half, PAGES, 0);
		guest_write_at(&vm, gpa, PAGES / 2, value + 1);
		vmm_unmap(&vm, 1);
		vmm_map(&vm, 1, VMM_GPA + PAGES * PAGE, half, PAGES,
			KVM_MEM_READONLY);
		/* No page holds one word all over; the guest has read them all */
		if (guest_wrong(&vm, PAGES, PAGES, value) != PAGES)
			bad++;
		vmm_unmap(&vm, 1);
		for (i = 0; i < PAGES; i++)
			bad += get_word(half, i) !=
			       ((value + (i < PAGES / 2)) << 32) + i + 1;
	}
	vmm_control(&vm, 1)->stop = 1;
	pthread_join(thread, &lost);
	ksm_stop();
	passes = ksm_get("full_scans") - passes;
	ksft_print_msg("%lu rounds, %lu passes, %lu wrong, %lu lost\n", rounds,
		       passes, bad, (unsigned long)lost);
	check(!bad && !lost && rounds >= ROUNDS && passes >= ROUNDS,
	      "slots come, move and go while ksmd harvests\n");
	vmm_destroy(&vm);
	munmap(mem, 2 * PAGES * PAGE);
}

/* Fills in what the guest touches, until it is told to stop. */
struct filler {
	int uffd;
	int stop[2];
	unsigned long filled;
};

static void *fill_missing(void *arg)
{
	struct filler *filler = arg;
	struct pollfd fds[2] = {
		{ .fd = filler->uffd, .events = POLLIN },
		{ .fd = filler->stop[0], .events = POLLIN },
	};
	char *page = aligned_alloc(PAGE, PAGE);

	memset(page, 0x5a, PAGE);
	while (poll(fds, 2, -1) > 0 && !fds[1].revents) {
		struct uffd_msg msg;
		struct uffdio_copy copy = {
			.src = (uintptr_t)page,
			.len = PAGE,
		};

		if (read(filler->uffd, &msg, sizeof(msg)) != sizeof(msg))
			continue;
		copy.dst = msg.arg.pagefault.address & ~(PAGE - 1);
		if (!ioctl(filler->uffd, UFFDIO_COPY, &copy))
			filler->filled++;
	}
	free(page);
	return NULL;
}

static void test_uffd(void)
{
	char *mem = map_pages(UFFD_PAGES, false);
	struct filler filler = {
		.uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK),
	};
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { (uintptr_t)mem, UFFD_PAGES * PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	pthread_t thread;
	struct vmm vm;
	size_t wrong;
	int i;

	if (filler.uffd < 0 || ioctl(filler.uffd, UFFDIO_API, &api) ||
	    ioctl(filler.uffd, UFFDIO_REGISTER, &reg) || pipe(filler.stop))
		ksft_exit_fail_perror("userfaultfd");
	vmm_create(&vm, 0);
	vmm_map(&vm, 0, VMM_GPA, mem, UFFD_PAGES, 0);
	pthread_create(&thread, NULL, fill_missing, &filler);
	ksm_full_speed(100000);
	for (i = 0; i < 3; i++) {
		guest_fill(&vm, 0, UFFD_PAGES, 10 + i);
		advise(mem, UFFD_PAGES / 2, MADV_DONTNEED);
	}
	guest_fill(&vm, 0, UFFD_PAGES, 20);
	ksm_stop();
	wrong = guest_wrong(&vm, 0, UFFD_PAGES, 20) +
		wrong_pages(mem, UFFD_PAGES, 20);
	close(filler.stop[1]);
	pthread_join(thread, NULL);
	ksft_print_msg("%lu pages filled in, %zu wrong\n", filler.filled,
		       wrong);
	check(!wrong && filler.filled >= 5 * UFFD_PAGES / 2,
	      "guest memory filled in by userfaultfd\n");
	guest_write(&vm, 0, UFFD_PAGES, 1, 21);
	ksm_pass(1);
	guest_write(&vm, 0, UFFD_PAGES, 1, 22);
	check(pass_finds(UFFD_PAGES, 0, 0), "and its writes count\n");
	vmm_destroy(&vm);
	close(filler.uffd);
	close(filler.stop[0]);
	munmap(mem, UFFD_PAGES * PAGE);
}

static void test_unmergeable(const char *what, int flags)
{
	char *mem =
		mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
	/* ksmd makes no pass where there is nothing at all to scan */
	char *anchor = map_pages(1, false);
	struct vmm vm;
	bool ok = true;
	int i;

	if (mem == MAP_FAILED)
		ksft_exit_fail_perror(what);
	fill_page(anchor, 0, 77);
	/* May be refused */
	madvise(mem, PAGES * PAGE, MADV_MERGEABLE);
	vmm_create(&vm, 0);
	vmm_map(&vm, 0, VMM_GPA, mem, PAGES, 0);
	ksm_pass(1);
	for (i = 0; i < 3; i++) {
		guest_fill(&vm, 0, PAGES, 1);
		ok &= pass_finds(0, 1, 0);
	}
	ok &= !guest_wrong(&vm, 0, PAGES, 1) && !wrong_pages(mem, PAGES, 1);
	check(ok, "%s: left alone\n", what);
	vmm_destroy(&vm);
	munmap(anchor, PAGE);
	munmap(mem, PAGES * PAGE);
}

static void be_killed(int ready)
{
	char *mem = map_pages(PAGES, ready & 1);
	struct vmm vm;

	memset(mem, 0, PAGES * PAGE);
	vmm_create(&vm, 0);
	vmm_map(&vm, 0, VMM_GPA, mem, PAGES, 0);
	if (write(ready, "", 1) == 1)
		guest_sweep(&vm, 0, PAGES, 0);
	_exit(1);
}

/* Needs a module that nobody uses, so it tells what the killed left behind. */
static void test_kill(void)
{
	uint64_t passes = ksm_get("full_scans");
	int i, err, killed = 0;
	double end;

	ksm_full_speed(100000);
	for (i = 0; i < KILLS; i++) {
		int ready[2], status;
		char byte;
		pid_t pid;

		if (pipe(ready))
			ksft_exit_fail_perror("pipe");
		pid = fork();
		if (!pid)
			be_killed(ready[1]);
		close(ready[1]);
		if (read(ready[0], &byte, 1) == 1)
			usleep(20000 + i * 7000);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		close(ready[0]);
	}
	end = now() + 5;
	while ((err = vmm_unload_kvm()) && now() < end)
		usleep(10000);
	ksm_stop();
	passes = ksm_get("full_scans") - passes;
	ksft_print_msg("%d killed, %lu passes, unloading KVM: %s\n", killed,
		       passes, strerror(err));
	check(killed == KILLS && passes >= KILLS / 2 && !err,
	      "virtual machines killed while ksmd harvests\n");
}

static void test_unload(void)
{
	char *mem = map_pages(PAGES, false);
	uint64_t passes = ksm_get("full_scans");
	size_t wrong = 0;
	int i;

	ksm_full_speed(100000);
	for (i = 0; i < 6; i++) {
		struct vmm vm;

		vmm_load_kvm(i & 1);
		vmm_create(&vm, 0);
		vmm_map(&vm, 0, VMM_GPA, mem, PAGES, 0);
		guest_fill(&vm, 0, PAGES, i + 1);
		usleep(50000);
		wrong += guest_wrong(&vm, 0, PAGES, i + 1);
		vmm_destroy(&vm);
	}
	ksm_stop();
	passes = ksm_get("full_scans") - passes;
	check(!wrong && passes >= 3, "KVM's module unloaded while ksmd runs\n");
	munmap(mem, PAGES * PAGE);
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(13);
	ksm_setup();
	vmm_load_kvm(true);
	test_alias();
	test_small();
	test_idle_vcpu();
	test_uffd();
	write_file("/proc/sys/vm/nr_hugepages", "2");
	test_unmergeable("hugetlb", MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB);
	write_file("/proc/sys/vm/nr_hugepages", "0");
	test_unmergeable("shmem", MAP_SHARED | MAP_ANONYMOUS);
	test_storm();
	vmm_load_kvm(false);
	test_storm();
	test_kill();
	test_unload();
	ksft_finished();
}
