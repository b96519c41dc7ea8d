// SPDX-License-Identifier: GPL-2.0
/*
 * Everything at once: two threads and another process do at random what can be
 * done to memory, each against a model of what it has to hold, while ksmd runs at
 * full speed and its settings change all the time.  At the end, when all rests,
 * all pages that are alike are merged, and all others are in the settled tree.
 *
 *	torture [SEED [SECONDS]]
 *
 * Seen to fail with: harvest.c without folio_mark_dirty().
 */
#include "ksm_dirty_util.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define WORKERS 3UL /* the last one is another process */
#define PAGES HUGE_PAGES
#define MOST 64 /* pages that one step is about */
#define POOL 48 /* contents that many pages have */
#define WORDS (PAGE / sizeof(uint64_t))
#define LIMIT 12
#define TREE_CHECK "/sys/kernel/debug/ksm_settled_tree"
#define SPARE_GAP HUGE

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/*
 * A page holds its value in its first and in its last word, and is zero between
 * them.  Where MADV_FREE came by, it may be zero instead.
 */
struct worker {
	char *mem, *spare;
	uint64_t rng;
	uint64_t value[PAGES];
	bool may_be_zero[PAGES];
	uint64_t unique;
	pid_t child;
	unsigned long steps;
};

/* What the processes have in common */
struct common {
	atomic_int stop; /* resting, all written */
	atomic_int done[WORKERS];
	atomic_int look; /* at which page is merged */
	atomic_int looked[WORKERS];
	atomic_ulong wrong;
	unsigned long steps[WORKERS];
	uint64_t value[WORKERS][PAGES];
	uint64_t pfn[WORKERS][PAGES];
	bool ksm[WORKERS][PAGES];
};

static struct common *common;
static struct worker workers[WORKERS];

static uint64_t rng_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 0x2545f4914f6cdd1dULL >> 16;
}

static size_t below(struct worker *w, size_t limit)
{
	return rng_next(&w->rng) % limit;
}

/* Half of all contents are those of many pages, or zero */
static uint64_t new_value(struct worker *w)
{
	if (below(w, 2))
		return below(w, POOL);
	return (w - workers + 1) << 48 | ++w->unique;
}

static bool holds(const char *page, uint64_t value)
{
	const volatile uint64_t *word = (const uint64_t *)page;

	return word[0] == value && word[WORDS - 1] == value && !word[1] &&
	       !word[WORDS / 2];
}

static void put(struct worker *w, size_t i, uint64_t value)
{
	volatile uint64_t *word = (uint64_t *)(w->mem + i * PAGE);

	word[0] = value;
	word[WORDS - 1] = value;
	w->value[i] = value;
	w->may_be_zero[i] = false;
}

static void verify(struct worker *w, size_t first, size_t n)
{
	size_t i;

	for (i = first; i < first + n; i++) {
		if (holds(w->mem + i * PAGE, w->value[i]))
			continue;
		if (w->may_be_zero[i] && holds(w->mem + i * PAGE, 0)) {
			w->value[i] = 0;
			w->may_be_zero[i] = false;
			continue;
		}
		if (!common->wrong++)
			ksft_print_msg(
				"worker %zu, step %lu, page %zu: %lx, not %lx\n",
				w - workers, w->steps, i, get_word(w->mem, i),
				w->value[i]);
	}
}

static void forget(struct worker *w, size_t first, size_t n)
{
	size_t i;

	for (i = first; i < first + n; i++) {
		w->value[i] = 0;
		w->may_be_zero[i] = false;
	}
}

static void step_write(struct worker *w, size_t first, size_t n)
{
	size_t i;

	for (i = first; i < first + n; i++)
		put(w, i, new_value(w));
}

static void step_write_the_same(struct worker *w, size_t first, size_t n)
{
	size_t i;

	verify(w, first, n);
	for (i = first; i < first + n; i++)
		put(w, i, w->value[i]);
}

/* The same contents in two places */
static void step_copy(struct worker *w, size_t first, size_t n)
{
	size_t from = below(w, PAGES - n), i;

	verify(w, from, n);
	for (i = 0; i < n; i++)
		put(w, first + i, w->value[from + i]);
}

static void step_verify(struct worker *w, size_t first, size_t n)
{
	verify(w, first, n);
}

static void step_map(struct worker *w, size_t first, size_t n)
{
	char *addr = w->mem + first * PAGE;

	if (below(w, 2))
		munmap(addr, n * PAGE);
	if (mmap(addr, n * PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	advise(addr, n, MADV_MERGEABLE);
	forget(w, first, n);
}

/* Away and back, past a look that ksmd may take in between */
static void step_mremap(struct worker *w, size_t first, size_t n)
{
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
	char *addr = w->mem + first * PAGE;
	char *to = w->spare + first * PAGE;

	if (below(w, 2))
		flags |= MREMAP_DONTUNMAP;
	/* EFAULT: it is more than one mapping by now */
	if (mremap(addr, n * PAGE, n * PAGE, flags, to) != to)
		return;
	if (below(w, 2))
		usleep(2000);
	if (mremap(to, n * PAGE, n * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		   addr) != addr)
		ksft_exit_fail_perror("mremap back");
	verify(w, first, n);
}

static void step_mprotect(struct worker *w, size_t first, size_t n)
{
	if (mprotect(w->mem + first * PAGE, n * PAGE, PROT_READ) ||
	    mprotect(w->mem + first * PAGE, n * PAGE, PROT_READ | PROT_WRITE))
		ksft_exit_fail_perror("mprotect");
}

static void step_dontneed(struct worker *w, size_t first, size_t n)
{
	advise(w->mem + first * PAGE, n, MADV_DONTNEED);
	forget(w, first, n);
}

/*
 * Of no KSM page: where one page is left of those that merged, MADV_FREE has it
 * freed lazily, and what merges with it later is lost.  In the unpatched kernel too.
 */
static void step_free(struct worker *w, size_t first, size_t n)
{
	size_t i;

	verify(w, first, n);
	advise(w->mem + first * PAGE, n, MADV_UNMERGEABLE);
	advise(w->mem + first * PAGE, n, MADV_FREE);
	for (i = first; i < first + n; i++)
		w->may_be_zero[i] = true;
	if (below(w, 2))
		step_write_the_same(w, first, n);
	advise(w->mem + first * PAGE, n, MADV_MERGEABLE);
}

static void step_pageout(struct worker *w, size_t first, size_t n)
{
	advise(w->mem + first * PAGE, n, MADV_PAGEOUT);
	if (below(w, 2))
		verify(w, first, n);
}

static void step_write_and_pageout(struct worker *w, size_t first, size_t n)
{
	step_write(w, first, n);
	advise(w->mem + first * PAGE, n, MADV_PAGEOUT);
	verify(w, first, n);
}

static char *huge_of(struct worker *w, size_t page)
{
	return w->mem + page / HUGE_PAGES * HUGE;
}

/* There may be no huge page, or what cannot be collapsed */
static void step_collapse(struct worker *w, size_t first, size_t n)
{
	(void)n;
	madvise(huge_of(w, first), HUGE, MADV_HUGEPAGE);
	madvise(huge_of(w, first), HUGE, MADV_COLLAPSE);
}

/* All of a huge page anew */
static void step_fault_huge(struct worker *w, size_t first, size_t n)
{
	first = first / HUGE_PAGES * HUGE_PAGES;
	step_map(w, first, HUGE_PAGES);
	advise(w->mem + first * PAGE, HUGE_PAGES, MADV_HUGEPAGE);
	step_write(w, first, n);
}

static void step_nohugepage(struct worker *w, size_t first, size_t n)
{
	advise(w->mem + first * PAGE, n, MADV_NOHUGEPAGE);
}

static void step_unmergeable(struct worker *w, size_t first, size_t n)
{
	advise(w->mem + first * PAGE, n, MADV_UNMERGEABLE);
	if (below(w, 2))
		step_write(w, first, n);
	advise(w->mem + first * PAGE, n, MADV_MERGEABLE);
}

/* Shows in no dirty bit */
static void step_vm_writev(struct worker *w, size_t first, size_t n)
{
	uint64_t value;
	struct iovec from = { &value, sizeof(value) }, to[2];
	size_t i;

	verify(w, first, n);
	for (i = first; i < first + n; i++) {
		char *page = w->mem + i * PAGE;
		size_t word;

		value = new_value(w);
		for (word = 0; word < 2; word++) {
			to[0] = (struct iovec){ page + word * (PAGE -
							       sizeof(value)),
						sizeof(value) };
			if (process_vm_writev(getpid(), &from, 1, to, 1, 0) !=
			    sizeof(value))
				ksft_exit_fail_perror("process_vm_writev");
		}
		w->value[i] = value;
		w->may_be_zero[i] = false;
	}
}

/* A child of it lives for a while, sees what it holds, and writes it too */
static void reap(struct worker *w)
{
	int status = 0;

	if (w->child && waitpid(w->child, &status, 0) != w->child)
		ksft_exit_fail_perror("waitpid");
	w->child = 0;
	if (status) {
		ksft_print_msg("a child ended with %x\n", status);
		common->wrong++;
	}
}

static void step_fork(struct worker *w, size_t first, size_t n)
{
	unsigned long before;

	reap(w);
	w->child = fork();
	if (w->child < 0)
		ksft_exit_fail_perror("fork");
	if (w->child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	before = common->wrong;
	verify(w, first, n);
	step_write(w, first, n);
	usleep(below(w, 20000));
	verify(w, 0, PAGES);
	_exit(common->wrong != before);
}

static const struct {
	void (*make)(struct worker *w, size_t first, size_t n);
	unsigned int weight;
} steps[] = {
	{ step_write, 20 },
	{ step_write_the_same, 10 },
	{ step_copy, 20 },
	{ step_verify, 20 },
	{ step_map, 4 },
	{ step_mremap, 6 },
	{ step_mprotect, 4 },
	{ step_dontneed, 3 },
	{ step_free, 3 },
	{ step_pageout, 4 },
	{ step_write_and_pageout, 3 },
	{ step_collapse, 1 },
	{ step_fault_huge, 1 },
	{ step_nohugepage, 1 },
	{ step_unmergeable, 2 },
	{ step_vm_writev, 4 },
	{ step_fork, 1 },
};

static void one_step(struct worker *w)
{
	size_t n = 1 + below(w, MOST), first = below(w, PAGES - n);
	unsigned int total = 0, pick;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(steps); i++)
		total += steps[i].weight;
	pick = below(w, total);
	for (i = 0; pick >= steps[i].weight; i++)
		pick -= steps[i].weight;
	steps[i].make(w, first, n);
	w->steps++;
}

static void await(atomic_int *flag)
{
	while (!*flag)
		usleep(1000);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	size_t nr = w - workers, i;

	/* Behind ksmd */
	setpriority(PRIO_PROCESS, gettid(), 15);
	while (!common->stop) {
		one_step(w);
		if (w->steps % 64 == 0)
			verify(w, 0, PAGES);
		/* Let pages rest at times, for ksmd to find them */
		if (w->steps % 8 == 0)
			usleep(below(w, 50000));
	}
	reap(w);
	advise(w->mem, PAGES, MADV_MERGEABLE);
	verify(w, 0, PAGES);
	/* Zero pages are of more than one kind: none of them is left */
	for (i = 0; i < PAGES; i++) {
		if (!w->value[i] || w->may_be_zero[i])
			put(w, i, 1 + i % (POOL - 1));
		common->value[nr][i] = w->value[i];
	}
	common->steps[nr] = w->steps;
	common->done[nr] = 1;

	await(&common->look);
	verify(w, 0, PAGES);
	for (i = 0; i < PAGES; i++) {
		common->pfn[nr][i] = pagemap_entry(w->mem, i) &
				     ((1ULL << 55) - 1);
		common->ksm[nr][i] = page_flag(w->mem, i, 21 /* KPF_KSM */);
	}
	common->looked[nr] = 1;
	return NULL;
}

static void start_worker(size_t nr, uint64_t seed)
{
	struct worker *w = &workers[nr];
	char *area;

	w->rng = (seed + nr + 1) * 0x9e3779b97f4a7c15ULL;
	area = map_pages(2 * PAGES + SPARE_GAP / PAGE, nr == 1);
	w->mem = area;
	/* Where memory goes in between; nothing is mapped there at other times */
	w->spare = area + PAGES * PAGE + SPARE_GAP;
	munmap(area + PAGES * PAGE, PAGES * PAGE + SPARE_GAP);
	if (mmap(w->spare, PAGES * PAGE, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
}

/* Settings that change while it goes on; the file may be absent for a moment */
static void set(const char *name, uint64_t value)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), KSM_DIR "/%s", name);
	snprintf(text, sizeof(text), "%lu", value);
	try_write_file(path, text);
}

struct counts {
	unsigned int toggles, unmerges, reloads, checks;
	uint64_t stale, passes;
};

/* Which starts counting passes anew */
static void unmerge(struct counts *counts)
{
	counts->passes += ksm_get("full_scans");
	set("run", 2);
	counts->unmerges++;
}

static void change_settings(struct worker *w, struct counts *counts)
{
	static const unsigned int rechecks[] = { 0, 1, 2, 16, 1024 };
	static const unsigned int probes[] = { 0, 1, 2, 4, 64, 4096 };
	char buf[128];

	switch (below(w, 16)) {
	case 0 ... 3:
		set("dirty_scan", below(w, 2));
		counts->toggles++;
		break;
	case 4 ... 5:
		set("dirty_scan_recheck_passes",
		    rechecks[below(w, ARRAY_SIZE(rechecks))]);
		break;
	case 6 ... 7:
		set("dirty_scan_probe_passes",
		    probes[below(w, ARRAY_SIZE(probes))]);
		break;
	case 8:
		set("smart_scan", below(w, 2));
		break;
	case 9:
		set("use_zero_pages", below(w, 2));
		break;
	case 10:
		set("pages_to_scan", below(w, 4) ? 300 : 1 + below(w, 60));
		break;
	case 11:
		if (below(w, 4))
			break;
		unmerge(counts);
		/* EBUSY where anything is shared again */
		set("max_page_sharing", below(w, 2) ? 4 : 256);
		set("run", 1);
		break;
	case 12:
		if (below(w, 4))
			break;
		counts->stale += ksm_get("settled_stale");
		if (module_unload("ksm_dirty"))
			ksft_exit_fail_msg("cannot unload ksm_dirty\n");
		if (below(w, 2))
			usleep(below(w, 50000));
		need_module("ksm_dirty");
		counts->reloads++;
		break;
	case 13:
		if (!exists(TREE_CHECK))
			break;
		read_file(TREE_CHECK, buf, sizeof(buf));
		counts->checks++;
		break;
	default:
		set("dirty_scan", 1);
	}
}

/*
 * As it is by default, but that nothing is searched again: what was written unseen
 * stays so.  Up to 256 pages that are alike are one.
 */
static void leave_alone(struct counts *counts)
{
	ksm_set("dirty_scan", 1);
	ksm_set("dirty_scan_recheck_passes", 0);
	ksm_set("dirty_scan_probe_passes", 4096);
	ksm_set("smart_scan", 0);
	/* This has all of it searched again */
	ksm_set("use_zero_pages", 0);
	do {
		usleep(1000);
		unmerge(counts);
	} while (try_write_file(KSM_DIR "/max_page_sharing", "256"));
	ksm_set("pages_to_scan", 300);
	ksm_set("run", 1);
}

/* Pages that are alike, and of those the ones that are not merged */
static size_t count_unmerged(size_t *alike, size_t *doubles)
{
	const size_t all = WORKERS * PAGES;
	const uint64_t *value = &common->value[0][0];
	const uint64_t *pfn = &common->pfn[0][0];
	const bool *ksm = &common->ksm[0][0];
	size_t i, j, unmerged = 0;

	*alike = 0;
	*doubles = 0;
	for (i = 0; i < all; i++) {
		bool other = false, twice = false;

		for (j = 0; j < all; j++) {
			if (i == j || value[i] != value[j])
				continue;
			other = true;
			twice |= pfn[i] != pfn[j];
		}
		*alike += other;
		unmerged += other && !ksm[i];
		*doubles += twice && ksm[i];
	}
	return unmerged;
}

static void await_all(atomic_int *flags)
{
	size_t i;

	for (i = 0; i < WORKERS; i++)
		await(&flags[i]);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	double seconds = argc > 2	    ? atof(argv[2]) :
			 exists(TREE_CHECK) ? 30 :
					      15;
	struct worker control = { .rng = seed * 0x2545f4914f6cdd1dULL };
	uint64_t passes, stale, settled, merged, last;
	size_t i, alike, unmerged, doubles, total = 0;
	pthread_t threads[WORKERS - 1];
	struct counts counts = {};
	unsigned int quiet;
	bool early = true;
	double end;
	int status;
	pid_t pid;

	ksft_print_header();
	ksft_set_plan(5);
	ksm_setup();
	ksft_print_msg("seed %lu, %.0f s\n", seed, seconds);
	common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (common == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	passes = ksm_get("full_scans");
	ksm_full_speed(300);

	pid = fork();
	if (pid < 0)
		ksft_exit_fail_perror("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		start_worker(WORKERS - 1, seed);
		work(&workers[WORKERS - 1]);
		pause();
	}
	for (i = 0; i < WORKERS - 1; i++) {
		start_worker(i, seed);
		pthread_create(&threads[i], NULL, work, &workers[i]);
	}
	end = now() + seconds;
	while (now() < end && !common->wrong) {
		if (early && now() > end - seconds / 3) {
			early = false;
			leave_alone(&counts);
		}
		if (early)
			change_settings(&control, &counts);
		usleep(below(&control, 60000));
	}
	/* Where one step took the rest of the time */
	if (early)
		leave_alone(&counts);
	common->stop = 1;
	await_all(common->done);
	for (i = 0; i < WORKERS; i++)
		total += common->steps[i];
	passes = counts.passes + ksm_get("full_scans") - passes;
	counts.stale += ksm_get("settled_stale");
	ksft_print_msg(
		"%zu steps, %lu passes, %u toggles, %u unmerges, %u reloads, %u tree checks, %lu stale\n",
		total, passes, counts.toggles, counts.unmerges, counts.reloads,
		counts.checks, counts.stale);
	check(!common->wrong, "memory held what was written\n");
	check(total > 300 && passes > 10, "workers and ksmd were at it\n");

	/* Now all rests; what was written unseen is found by searching all of it */
	ksm_stop();
	ksm_pass(3);
	merged = ksm_get("pages_sharing") + ksm_get("pages_shared");
	ksft_print_msg("at rest: %lu merged, %lu settled\n", merged,
		       ksm_get("pages_settled"));
	ksm_set("dirty_scan_probe_passes", 0);
	ksm_set("dirty_scan_recheck_passes", 1);
	for (quiet = 0; quiet < LIMIT; quiet++) {
		last = merged;
		stale = ksm_get("settled_stale");
		ksm_pass(1);
		merged = ksm_get("pages_sharing") + ksm_get("pages_shared");
		stale = ksm_get("settled_stale") - stale;
		ksft_print_msg(
			"searched again: %lu merged, %lu settled, %lu stale\n",
			merged, ksm_get("pages_settled"), stale);
		if (quiet && merged == last && !stale)
			break;
	}
	common->look = 1;
	await_all(common->looked);
	unmerged = count_unmerged(&alike, &doubles);
	settled = ksm_get("pages_settled");
	ksft_print_msg(
		"%zu of %zu pages that are alike are not merged; %zu are, apart\n",
		unmerged, alike, doubles);
	check(quiet < LIMIT && !unmerged && alike > PAGES / 4,
	      "all that is alike is merged after %u passes\n", quiet);
	check(!stale && settled + merged == WORKERS * PAGES,
	      "all else is in the settled tree\n");
	if (exists(TREE_CHECK)) {
		char buf[128];

		read_file(TREE_CHECK, buf, sizeof(buf));
		ksft_print_msg("settled tree: %s", buf);
		if (!strstr(buf, " 0 gone, 0 changed"))
			common->wrong++;
	}
	for (i = 0; i < WORKERS - 1; i++)
		pthread_join(threads[i], NULL);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	check(!common->wrong, "memory holds what was written\n");
	ksft_finished();
}
