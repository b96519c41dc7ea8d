// SPDX-License-Identifier: GPL-2.0
/*
 * Others who track writes get the same answers with harvests as without: soft
 * dirty (pagemap), userfaultfd write protection, asynchronous and by messages,
 * PAGEMAP_SCAN.
 *
 * Seen to fail with: pte.h clearing the soft-dirty bit as well; or the uffd-wp bit,
 * of regular or of huge pages.
 */
#include "ksm_dirty_util.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define PAGES (2 * HUGE_PAGES)
#define SOFT_DIRTY 55
#define UFFD_WP 57

typedef uint64_t answers_t[PAGES];

/* Three in ten pages, and none of the last quarter */
static bool is_written(size_t i)
{
	return i < PAGES * 3 / 4 && i * 7 % 10 < 3;
}

static char *new_pages(bool huge)
{
	char *mem = map_pages(PAGES, huge);

	fill_pages(mem, PAGES, 1);
	if (huge)
		need_huge(mem, PAGES);
	ksm_pass(2);
	return mem;
}

/* Written once, with passes before, between and after */
static void write_some(char *mem)
{
	size_t i;

	ksm_pass(1);
	for (i = 0; i < PAGES / 2; i++)
		if (is_written(i))
			set_word(mem, i, ~i);
	ksm_pass(1);
	for (; i < PAGES; i++)
		if (is_written(i))
			set_word(mem, i, ~i);
	ksm_pass(2);
}

static void pagemap_scan(char *mem, uint64_t flags, answers_t answers)
{
	static struct page_region regions[PAGES];
	struct pm_scan_arg arg = {
		.size = sizeof(arg),
		.flags = flags,
		.start = (uintptr_t)mem,
		.end = (uintptr_t)mem + PAGES * PAGE,
		.vec = (uintptr_t)regions,
		.vec_len = PAGES,
		.return_mask = PAGE_IS_WRITTEN | PAGE_IS_PRESENT |
			       PAGE_IS_SOFT_DIRTY | PAGE_IS_SWAPPED |
			       PAGE_IS_HUGE,
	};
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	long i, count;
	uint64_t at;

	if (flags & PM_SCAN_WP_MATCHING)
		arg.category_mask = PAGE_IS_WRITTEN;
	count = ioctl(fd, PAGEMAP_SCAN, &arg);
	if (count < 0)
		ksft_exit_fail_perror("PAGEMAP_SCAN");
	close(fd);
	memset(answers, 0, sizeof(answers_t));
	for (i = 0; i < count; i++)
		for (at = regions[i].start; at < regions[i].end; at += PAGE)
			answers[(at - (uintptr_t)mem) / PAGE] =
				regions[i].categories;
}

static void pagemap_bit(char *mem, unsigned int bit, answers_t answers)
{
	size_t i;

	for (i = 0; i < PAGES; i++)
		answers[i] = pagemap_entry(mem, i) >> bit & 1;
}

static void soft_dirty(bool huge, answers_t *answers)
{
	char *mem = new_pages(huge);

	write_file("/proc/self/clear_refs", "4");
	write_some(mem);
	pagemap_bit(mem, SOFT_DIRTY, answers[0]);
	pagemap_scan(mem, 0, answers[1]);
	munmap(mem, PAGES * PAGE);
}

static int uffd_protect(char *mem, uint64_t features)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	struct uffdio_register reg = {
		.range = { (uintptr_t)mem, PAGES * PAGE },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect wp = {
		.range = { (uintptr_t)mem, PAGES * PAGE },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	size_t i;

	/* Protected while dirty, so that ksmd has a bit to clear beside uffd-wp's */
	for (i = 0; i < PAGES; i++)
		set_word(mem, i, get_word(mem, i));
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &reg) ||
	    ioctl(fd, UFFDIO_WRITEPROTECT, &wp))
		ksft_exit_fail_perror("userfaultfd");
	return fd;
}

static void uffd_async(bool huge, answers_t *answers)
{
	char *mem = new_pages(huge);
	int fd = uffd_protect(mem, UFFD_FEATURE_WP_ASYNC |
					   UFFD_FEATURE_WP_UNPOPULATED);

	write_some(mem);
	pagemap_bit(mem, UFFD_WP, answers[0]);
	pagemap_scan(mem, PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC,
		     answers[1]);
	ksm_pass(1);
	pagemap_scan(mem, 0, answers[2]);
	close(fd);
	munmap(mem, PAGES * PAGE);
}

struct uffd_thread {
	int fd;
	char *mem;
	uint64_t *faults;
	atomic_bool stop;
};

static void *uffd_thread(void *arg)
{
	struct uffd_thread *t = arg;
	struct pollfd poll_fd = { .fd = t->fd, .events = POLLIN };
	struct uffd_msg msg;

	while (!t->stop) {
		if (poll(&poll_fd, 1, 20) <= 0 ||
		    read(t->fd, &msg, sizeof(msg)) != sizeof(msg))
			continue;
		struct uffdio_writeprotect wp = {
			.range = { msg.arg.pagefault.address & -PAGE, PAGE },
		};
		t->faults[(wp.range.start - (uintptr_t)t->mem) / PAGE]++;
		if (ioctl(t->fd, UFFDIO_WRITEPROTECT, &wp))
			ksft_exit_fail_perror("UFFDIO_WRITEPROTECT");
	}
	return NULL;
}

static void uffd_messages(bool huge, answers_t *answers)
{
	char *mem = new_pages(huge);
	struct uffd_thread t = {
		.fd = uffd_protect(mem, UFFD_FEATURE_PAGEFAULT_FLAG_WP),
		.mem = mem,
		.faults = answers[0],
	};
	pthread_t thread;

	memset(answers[0], 0, sizeof(answers_t));
	pthread_create(&thread, NULL, uffd_thread, &t);
	write_some(mem);
	t.stop = true;
	pthread_join(thread, NULL);
	pagemap_bit(mem, UFFD_WP, answers[1]);
	close(t.fd);
	munmap(mem, PAGES * PAGE);
}

#define ANSWERS 3

static void test(void (*ask)(bool huge, answers_t *answers), bool huge,
		 const char *name, uint64_t bit)
{
	static answers_t off[ANSWERS], on[ANSWERS];
	size_t i, differ = 0, written = 0, wrong = 0;
	uint64_t harvested;

	memset(off, 0, sizeof(off));
	memset(on, 0, sizeof(on));
	ksm_set("dirty_scan", 0);
	ask(huge, off);
	ksm_set("dirty_scan", 1);
	harvested = ksm_get("pages_dirty");
	ask(huge, on);
	harvested = ksm_get("pages_dirty") - harvested;

	for (i = 0; i < PAGES; i++) {
		differ += memcmp(&off[0][i], &on[0][i], sizeof(off[0][i])) ||
			  off[1][i] != on[1][i] || off[2][i] != on[2][i];
		written += is_written(i);
		wrong += is_written(i) && (on[0][i] != bit);
	}
	ksft_print_msg(
		"%s: %lu harvested, %zu written, %zu differ, %zu wrong\n", name,
		harvested, written, differ, wrong);
	check(harvested >= PAGES + written && !differ && !wrong,
	      "%s, %s pages: same answers as without harvests\n", name,
	      huge ? "huge" : "regular");
}

int main(void)
{
	bool huge = false;

	ksft_print_header();
	ksft_set_plan(6);
	ksm_setup();
	do {
		test(soft_dirty, huge, "soft dirty and PAGEMAP_SCAN", 1);
		test(uffd_async, huge, "asynchronous uffd-wp", 0);
		test(uffd_messages, huge, "uffd-wp by messages", 1);
		huge = !huge;
	} while (huge);
	ksft_finished();
}
