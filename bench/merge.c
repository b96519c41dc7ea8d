// SPDX-License-Identifier: GPL-2.0
/*
 * The workloads in which something merges. Here the writers are actors, that work
 * in lockstep with ksmd: before each pass they are told its number.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "vmm.h"

#include "actor.h"
#include "bench.h"
#include "measure.h"
#include "writer.h"

/**
 * step() - let ksmd make a pass
 * @ns: the CPU time it took is added
 *
 * Returns how many it made: seldom, one more than it was told to.
 */
static unsigned int step(uint64_t *ns)
{
	uint64_t scans = ksm_read("full_scans"), ran;

	if (!ksmd_step(&ran))
		fputs("# ksmd made a pass that nobody asked for\n", stderr);
	*ns += ran;
	return ksm_read("full_scans") - scans;
}

/* Seeds: no page holds what another kind of page holds. */
enum { QUIET = 1, HOT, ARRIVED };

static uint64_t seed(uint64_t kind, uint64_t pass, uint64_t page)
{
	return kind << 56 | pass << 32 | page;
}

/* --- late: the same contents once more, after the first has settled --- */

#define LATE_LIMIT 30

static void write_late(char *memory, uint64_t pages, uint64_t pass,
		       uint64_t who)
{
	uint64_t i;

	(void)who;
	for (i = 0; !pass && i < pages; i++)
		seed_page(page_at(memory, i), seed(QUIET, 0, i));
}

/* Passes until what @pid holds is merged; adds what came of it. */
static void late_merges(enum variant v, pid_t pid, uint64_t pages)
{
	unsigned int passes = 0;
	uint64_t ns = 0, merged;

	do {
		passes += step(&ns);
		merged = process_stat(pid, "ksm_merging_pages");
	} while (passes < LATE_LIMIT && merged < 0.99 * pages);
	add(v, PASSES_TO_99_PERCENT, passes);
	add(v, KSMD_MS_TO_99_PERCENT, ns / 1e6);
	add(v, MERGED_PERCENT, 100.0 * merged / pages);
}

static void late_settle(enum variant v)
{
	unsigned int passes = v == SMART ? 12 : 4;
	uint64_t ns;

	ksmd_setup(&variants[v]);
	while (passes--)
		step(&ns);
}

static void late_process(enum variant v, uint64_t bytes, bool huge)
{
	struct actor first, second;

	actor_start(&first, write_late, bytes, huge, 0);
	late_settle(v);
	actor_start(&second, write_late, bytes, huge, 0);
	late_merges(v, second.pid, second.pages);
	actor_stop(&second);
	actor_stop(&first);
	ksmd_reap();
}

static void late_guest(enum variant v, uint64_t mib, bool huge)
{
	struct writer first;

	writer_start(huge, mib, TWIN, GUEST);
	late_settle(v);
	first = writer;
	writer_start(huge, mib, TWIN, GUEST);
	late_merges(v, writer.pid, writer.pages);
	writer_stop();
	writer = first;
	writer_stop();
}

/* Once will do where it goes on to the limit; guests take long to start. */
unsigned int late_rounds(enum variant v, enum place place)
{
	return v == SMART || place == GUEST ? 1 : settings.rounds;
}

void late(uint64_t mib, bool huge, enum place place)
{
	unsigned int round, v;

	forget_results();
	for (round = 0; round < settings.rounds; round++) {
		for (v = STOCK; v < VARIANTS; v++) {
			if (!settings.variant[v] ||
			    round >= late_rounds(v, place))
				continue;
			if (place == GUEST)
				late_guest(v, mib, huge);
			else
				late_process(v, mib * MIB, huge);
			say("late", place, huge, round, v,
			    PASSES_TO_99_PERCENT);
		}
	}
	report_all("late", place, huge, "");
}

/* --- parity: what is merged in the end, and when --- */

#define PARITY_PASSES 16
/* The mean of so many passes is what it comes to in the end. */
#define PARITY_STEADY 4

/* The second half holds what the first does. */
static void write_pairs(char *memory, uint64_t pages, uint64_t pass)
{
	uint64_t i;

	for (i = 0; i < pages; i++)
		seed_page(page_at(memory, i),
			  seed(QUIET, pass, i % (pages / 2)));
}

static void write_hotsub(char *memory, uint64_t pages, uint64_t pass,
			 uint64_t who)
{
	const uint64_t step = HUGE_BYTES / PAGE_BYTES;
	uint64_t i;

	(void)who;
	if (!pass)
		write_pairs(memory, pages, 0);
	for (i = step / 3; i < pages; i += step)
		seed_page(page_at(memory, i), seed(HOT, pass, i));
}

static void write_among(char *memory, uint64_t pages, uint64_t pass,
			uint64_t who)
{
	uint64_t i;

	(void)who;
	if (!pass)
		write_pairs(memory, pages, 0);
	for (i = 1; i < pages; i += 2)
		seed_page(page_at(memory, i), seed(HOT, pass, i));
}

static void write_alternate(char *memory, uint64_t pages, uint64_t pass,
			    uint64_t who)
{
	(void)who;
	if (pass % 2 == 0)
		write_pairs(memory, pages, pass);
}

static void write_same(char *memory, uint64_t pages, uint64_t pass,
		       uint64_t who)
{
	volatile uint64_t *word;
	uint64_t i;

	(void)who;
	if (!pass)
		write_pairs(memory, pages, 0);
	for (i = 0; i < pages; i++) {
		word = page_at(memory, i);
		*word = *word;
	}
}

static void write_zero(char *memory, uint64_t pages, uint64_t pass,
		       uint64_t who)
{
	uint64_t i;

	(void)who;
	for (i = 0; !pass && i < pages; i++)
		*(volatile uint64_t *)page_at(memory, i) = 0;
}

/* A child has all of it too; one page in four is hot in the parent. */
static void write_forked(char *memory, uint64_t pages, uint64_t pass,
			 uint64_t who)
{
	uint64_t i;

	(void)who;
	if (!pass)
		write_pairs(memory, pages, 0);
	if (pass == 1 && !fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	for (i = 0; pass && i < pages; i += 4)
		seed_page(page_at(memory, i), seed(HOT, pass, i));
}

/* Out to swap before every fourth pass, back in before the next */
static void write_swapped(char *memory, uint64_t pages, uint64_t pass,
			  uint64_t who)
{
	uint64_t i;

	(void)who;
	if (!pass)
		write_pairs(memory, pages, 0);
	else if (pass % 4 == 0)
		madvise(memory, pages * PAGE_BYTES, MADV_PAGEOUT);
	for (i = 0; pass % 4 == 1 && i < pages; i++)
		*(volatile uint64_t *)page_at(memory, i);
}

#define FOLIO_SIZES "/sys/kernel/mm/transparent_hugepage/hugepages-"

static void folios_of_64k(bool on)
{
	if (!put(FOLIO_SIZES "64kB/enabled", on ? "always" : "never") ||
	    !put(FOLIO_SIZES "2048kB/enabled", on ? "never" : "inherit"))
		fail(EXIT_FAILURE, FOLIO_SIZES "64kB: %s", strerror(errno));
}

/* One page in sixteen, that is one of each folio of 64 KiB, is hot. */
static void write_folios(char *memory, uint64_t pages, uint64_t pass,
			 uint64_t who)
{
	uint64_t i;

	(void)who;
	if (!pass) {
		madvise(memory, pages * PAGE_BYTES, MADV_HUGEPAGE);
		write_pairs(memory, pages, 0);
	}
	for (i = 5; pass && i < pages; i += 16)
		seed_page(page_at(memory, i), seed(HOT, pass, i));
}

/**
 * struct parity_case - what is merged of it
 * @name: part of the metrics' names
 * @act: what the actor writes
 * @mib: how much memory
 * @mapping: whether in regular, in huge pages
 * @zero_pages: with use_zero_pages
 * @others: pages are mapped elsewhere that are not merged: go by pages_sharing
 * @prepare: called with true before, with false after
 */
static const struct parity_case {
	const char *name;
	write_fn act;
	unsigned int mib;
	bool mapping[2];
	bool zero_pages;
	bool others;
	void (*prepare)(bool on);
} parity_cases[] = {
	{ "hotsub", write_hotsub, 64, { false, true }, false, false, NULL },
	{ "among", write_among, 16, { true, true }, false, false, NULL },
	{ "alternate", write_alternate, 16, { true, true }, false, false, NULL },
	{ "same", write_same, 16, { true, true }, false, false, NULL },
	{ "zero", write_zero, 16, { true, true }, true, false, NULL },
	{ "forked", write_forked, 16, { true, false }, false, true, NULL },
	{ "swapped", write_swapped, 16, { true, false }, false, true, NULL },
	{ "folios",
	  write_folios,
	  16,
	  { true, false },
	  false,
	  false,
	  folios_of_64k },
};

#define PARITY_CASES (sizeof(parity_cases) / sizeof(*parity_cases))

static double parity_merged(const struct parity_case *c, struct actor *actor)
{
	return c->others ?
		       ksm_read("pages_sharing") + ksm_read("pages_shared") :
		       merged_now(actor, 0, actor->pages);
}

/* @goal: what stock comes to; to be told by stock. */
static void parity_variant(const struct parity_case *c, enum variant v,
			   bool huge, double *goal)
{
	double merged[PARITY_PASSES], sharing = 0, steady = 0, held = 0;
	double profit = 0;
	unsigned int pass, reached = 0;
	struct actor actor;
	double best = 0;
	uint64_t ns = 0, scans = ksm_read("full_scans");
	uint64_t made[PARITY_PASSES];

	ksm_write_if("use_zero_pages", c->zero_pages);
	if (c->prepare)
		c->prepare(true);
	actor_start(&actor, c->act, c->mib * MIB, huge, 0);
	for (pass = 0; pass < PARITY_PASSES; pass++) {
		bool counts = pass >= PARITY_PASSES - PARITY_STEADY;

		if (pass)
			actor_act(&actor, pass);
		if (counts)
			held += parity_merged(c, &actor);
		/* Starting ksmd is the first pass. */
		if (pass)
			step(&ns);
		else
			ksmd_setup(&variants[v]);
		made[pass] = ksm_read("full_scans") - scans;
		merged[pass] = parity_merged(c, &actor);
		if (!counts)
			continue;
		profit += (int64_t)ksm_read("general_profit") / 1024.0;
		steady += merged[pass];
		sharing +=
			ksm_read("pages_sharing") + ksm_count("ksm_zero_pages");
	}
	actor_stop(&actor);
	ksmd_reap();
	ksm_write_if("use_zero_pages", saved("use_zero_pages"));
	if (c->prepare)
		c->prepare(false);

	add(v, PAGES_SHARING, sharing / PARITY_STEADY);
	add(v, GENERAL_PROFIT_KIB, profit / PARITY_STEADY);
	add(v, MERGED_PAGES, steady / PARITY_STEADY);
	add(v, MERGED_PAGES_HELD, held / PARITY_STEADY);
	if (v == STOCK)
		*goal = steady / PARITY_STEADY;
	if (!*goal)
		return;
	for (pass = 0; pass < PARITY_PASSES && !reached; pass++) {
		if (merged[pass] > best)
			best = merged[pass];
		if (best >= 0.99 * *goal)
			reached = made[pass];
	}
	add(v, PASSES_TO_99_PERCENT, reached ? reached : made[pass - 1]);
	add(v, MERGED_PERCENT, best < *goal ? 100 * best / *goal : 100);
}

unsigned int parity_steps(bool huge)
{
	unsigned int c, count = 0;

	for (c = 0; c < PARITY_CASES; c++)
		count += parity_cases[c].mapping[huge];
	return count;
}

void parity(bool huge)
{
	const struct parity_case *c;
	char suffix[24], name[24];
	unsigned int v;
	double goal;

	for (c = parity_cases; c < parity_cases + PARITY_CASES; c++) {
		if (!c->mapping[huge])
			continue;
		forget_results();
		goal = 0;
		snprintf(suffix, sizeof(suffix), "_%s", c->name);
		snprintf(name, sizeof(name), "parity: %s,", c->name);
		for (v = STOCK; v < VARIANTS; v++) {
			if (!settings.variant[v])
				continue;
			parity_variant(c, v, huge, &goal);
			say(name, HOST, huge, 0, v, MERGED_PAGES);
		}
		report_all("parity", HOST, huge, suffix);
	}
}

/* --- fallen quiet: how long after the last write it merges --- */

/* Rewritten, all of it, before so many passes */
#define QUIET_FROM 6
#define QUIET_LIMIT 40

static void write_until(char *memory, uint64_t pages, uint64_t pass,
			uint64_t who)
{
	(void)who;
	if (pass < QUIET_FROM)
		write_pairs(memory, pages, pass);
}

static void fallen_quiet_variant(enum variant v, bool huge)
{
	uint64_t ns = 0, merged;
	unsigned int pass, passes = 0;
	struct actor actor;

	actor_start(&actor, write_until, 16 * MIB, huge, 0);
	ksmd_setup(&variants[v]);
	for (pass = 1; pass < QUIET_FROM; pass++) {
		actor_act(&actor, pass);
		if (pass + 1 < QUIET_FROM)
			step(&ns);
	}
	ns = 0;
	do {
		passes += step(&ns);
		merged = merged_now(&actor, 0, actor.pages);
	} while (passes < QUIET_LIMIT && merged < 0.99 * actor.pages);
	add(v, PASSES_TO_99_PERCENT, passes);
	add(v, MERGED_PERCENT, 100.0 * merged / actor.pages);
	actor_stop(&actor);
	ksmd_reap();
}

void fallen_quiet(bool huge)
{
	unsigned int v;

	forget_results();
	for (v = STOCK; v < VARIANTS; v++) {
		if (!settings.variant[v])
			continue;
		fallen_quiet_variant(v, huge);
		say("accuracy: fallen quiet,", HOST, huge, 0, v,
		    PASSES_TO_99_PERCENT);
	}
	report_all("accuracy", HOST, huge, "");
}

/* --- mixed: most is quiet, some is hot, and a little becomes equal --- */

/* Pages that arrived stay for so many passes. */
#define MIXED_GROUPS 8

/* The hot pages come first, then the groups, then what stays as it is. */
struct mixed {
	uint64_t hot;
	uint64_t group;
	uint64_t quiet; /* the first of them */
};

static struct mixed mixed_layout(uint64_t pages)
{
	struct mixed l = { .hot = pages * 9 / 100, .group = pages / 100 };

	l.quiet = l.hot + MIXED_GROUPS * l.group;
	return l;
}

static void write_mixed(char *memory, uint64_t pages, uint64_t pass,
			uint64_t who)
{
	struct mixed l = mixed_layout(pages);
	uint64_t first = l.hot + pass % MIXED_GROUPS * l.group, i, twin;

	(void)who;
	if (!pass) {
		for (i = 0; i < pages; i++)
			seed_page(page_at(memory, i), seed(QUIET, 0, i));
		return;
	}
	for (i = 0; i < l.hot; i++)
		*page_at(memory, i) = seed(HOT, pass, i);
	for (i = 0; i < l.group; i++) {
		twin = l.quiet + (pass * l.group + i) % (pages - l.quiet);
		seed_page(page_at(memory, first + i), seed(QUIET, 0, twin));
	}
}

/* The same by a guest of the child: pages are told apart by vmm.c's numbers. */
static void guest_write_mixed(char *memory, uint64_t pages, uint64_t pass,
			      uint64_t who)
{
	static struct vmm vm;
	struct mixed l = mixed_layout(pages);
	uint64_t first = l.hot + pass % MIXED_GROUPS * l.group, twin, run;
	uint64_t i;

	(void)who;
	if (!pass) {
		vmm_create(&vm, 0);
		vmm_map(&vm, 0, VMM_GPA, memory, pages, 0);
		guest_fill(&vm, 0, pages, QUIET);
		return;
	}
	guest_write(&vm, 0, l.hot, 1, ((uint64_t)HOT << 24) + pass);
	for (i = 0; i < l.group; i += run) {
		twin = l.quiet + (pass * l.group + i) % (pages - l.quiet);
		run = l.group - i;
		if (run > pages - twin)
			run = pages - twin;
		guest_fill_as(&vm, first + i, run, QUIET, twin);
	}
}

static const write_fn write_mixed_in[PLACES] = { write_mixed,
						 guest_write_mixed };

static uint64_t mixed_step(struct actor *actor, unsigned int *pass)
{
	uint64_t ns = 0;

	actor_act(actor, ++*pass);
	step(&ns);
	return ns;
}

static void mixed_variant(enum variant v, uint64_t bytes, bool huge,
			  enum place place)
{
	const unsigned int warm_up = v == SMART ? 20 : MIXED_GROUPS + 2;
	const unsigned int passes = v == SMART ? 18 : MIXED_GROUPS;
	struct mixed l = mixed_layout(bytes / PAGE_BYTES);
	unsigned int pass = 0, arrived[MIXED_GROUPS] = {}, g, i;
	bool merged[MIXED_GROUPS] = {};
	uint64_t total = 0, ns, count;
	struct actor actor;
	double cost, look;

	actor_start(&actor, write_mixed_in[place], bytes, huge, 0);
	ksmd_setup(&variants[v]);
	while (pass < warm_up + passes) {
		/* Huge pages with hot ones and others in them have been probed */
		if (looks_seldom(v) && pass == warm_up)
			look_every(0, 0);
		/* Who has to go now, merged or not */
		g = (pass + 1) % MIXED_GROUPS;
		if (arrived[g] && pass >= warm_up) {
			count = merged_now(&actor, l.hot + g * l.group,
					   l.group);
			add(v, MERGED_PERCENT, 100.0 * count / l.group);
			if (!merged[g])
				add(v, PASSES_TO_99_PERCENT, MIXED_GROUPS);
		}
		ns = mixed_step(&actor, &pass);
		if (pass > warm_up)
			total += ns;
		arrived[g] = pass;
		merged[g] = false;
		for (g = 0; g < MIXED_GROUPS; g++) {
			if (!arrived[g] || merged[g])
				continue;
			count = merged_now(&actor, l.hot + g * l.group,
					   l.group);
			merged[g] = count >= 0.99 * l.group;
			if (merged[g] && pass > warm_up)
				add(v, PASSES_TO_99_PERCENT,
				    pass - arrived[g] + 1);
		}
	}
	cost = (double)total / passes / actor.pages;
	if (looks_seldom(v)) {
		add(v, KSMD_BETWEEN_NS_PER_PAGE, cost);
		look_every(2, 1);
		for (i = 0, total = 0; i < 5; i++) {
			ns = mixed_step(&actor, &pass);
			total += i < 3 ? 0 : ns;
		}
		look = (double)total / 2 / actor.pages;
		add(v, KSMD_LOOK_NS_PER_PAGE, look);
		cost += look_share(true, true) * look;
	}
	add(v, KSMD_NS_PER_PAGE, cost);
	actor_stop(&actor);
	ksmd_reap();
}

void mixed(uint64_t mib, bool huge, enum place place)
{
	unsigned int v;

	forget_results();
	for (v = STOCK; v < VARIANTS; v++) {
		if (!settings.variant[v])
			continue;
		mixed_variant(v, mib * MIB, huge, place);
		say("mixed", place, huge, 0, v, KSMD_NS_PER_PAGE);
	}
	report_all("mixed", place, huge, "");
}

/* --- crowd: the same memory, of one process or of many --- */

#define CROWD_MIB 128
#define CROWD_PASSES 16

static void write_hot(char *memory, uint64_t pages, uint64_t pass, uint64_t who)
{
	uint64_t i;

	for (i = 0; i < pages; i++) {
		if (!pass)
			seed_page(page_at(memory, i), seed(QUIET, who, i));
		else
			*page_at(memory, i) = seed(HOT, pass, i);
	}
}

static void write_once(char *memory, uint64_t pages, uint64_t pass,
		       uint64_t who)
{
	if (!pass)
		write_hot(memory, pages, 0, who);
}

static void crowd_size(unsigned int processes, bool hot, bool huge)
{
	static struct actor actors[256];
	struct series cost = {};
	unsigned int i, round, pass;
	char suffix[32];
	uint64_t ns;

	forget_results();
	for (i = 0; i < processes; i++)
		actor_start(&actors[i], hot ? write_hot : write_once,
			    CROWD_MIB * MIB / processes, huge, i);
	ksmd_setup(&variants[DIRTY]);
	look_every(0, 0);
	for (round = 0; round < SCALE_ROUNDS; round++) {
		cost.count = 0;
		for (pass = 1; pass <= CROWD_PASSES; pass++) {
			for (i = 0; hot && i < processes; i++)
				actor_act(&actors[i],
					  round * CROWD_PASSES + pass);
			ns = 0;
			step(&ns);
			/* The first may still have to get everything settled. */
			if (pass > 3)
				cost.value[cost.count++] = ns;
		}
		add(DIRTY, KSMD_BETWEEN_NS_PER_PAGE,
		    median(&cost) * PAGE_BYTES / (CROWD_MIB * MIB));
		say(hot ? "scale: volatile, many," : "scale: static, many,",
		    HOST, huge, round, DIRTY, KSMD_BETWEEN_NS_PER_PAGE);
	}
	for (i = 0; i < processes; i++)
		actor_stop(&actors[i]);
	ksmd_reap();
	snprintf(suffix, sizeof(suffix), "_%s_%u_processes",
		 hot ? "volatile" : "static", processes);
	report("scale", HOST, huge, DIRTY, KSMD_BETWEEN_NS_PER_PAGE, suffix);
}

/* --- empty space: nothing to find, and a lot of it --- */

#define SPARSE_BYTES (1ULL << 45)
#define SPARSE_PAGES 64
#define MANY_VMAS 20000UL

/* 32 TiB with a page here and there */
static void write_sparse(char *memory, uint64_t pages, uint64_t pass,
			 uint64_t who)
{
	char *sparse;
	uint64_t i;

	(void)memory;
	(void)pages;
	(void)who;
	if (pass)
		return;
	sparse = mmap(NULL, SPARSE_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sparse == MAP_FAILED)
		fail(EXIT_FAILURE, "cannot map 32 TiB: %s", strerror(errno));
	madvise(sparse, SPARSE_BYTES, MADV_NOHUGEPAGE);
	madvise(sparse, SPARSE_BYTES, MADV_MERGEABLE);
	for (i = 0; i < SPARSE_PAGES; i++)
		seed_page(
			(uint64_t *)(sparse + SPARSE_BYTES / SPARSE_PAGES * i),
			seed(QUIET, 1, i));
}

/* A page each */
static void write_vmas(char *memory, uint64_t pages, uint64_t pass,
		       uint64_t who)
{
	uint64_t i;

	(void)pages;
	(void)who;
	if (pass)
		return;
	memory = map_memory(MANY_VMAS * PAGE_BYTES, false);
	for (i = 0; i < MANY_VMAS; i++)
		seed_page(page_at(memory, i), seed(QUIET, 1, i));
	madvise(memory, MANY_VMAS * PAGE_BYTES, MADV_MERGEABLE);
	for (i = 0; i < MANY_VMAS; i += 2)
		if (mprotect(page_at(memory, i), PAGE_BYTES, PROT_READ))
			fail(EXIT_FAILURE, "cannot have %lu vmas: %s",
			     MANY_VMAS, strerror(errno));
}

static void empty_space_case(const char *name, write_fn act)
{
	struct actor actor;
	unsigned int v, i;
	char suffix[24];
	uint64_t ns;

	forget_results();
	snprintf(suffix, sizeof(suffix), "_%s", name);
	actor_start(&actor, act, HUGE_BYTES, false, 0);
	for (v = STOCK; v < VARIANTS; v++) {
		if (!settings.variant[v] || v == SMART)
			continue;
		ksmd_setup(&variants[v]);
		look_every(0, 0);
		for (i = 0; i < CROWD_PASSES; i++) {
			ns = 0;
			step(&ns);
			if (i >= 3)
				add(v, KSMD_MS_PER_PASS, ns / 1e6);
		}
		say(name, HOST, false, 0, v, KSMD_MS_PER_PASS);
	}
	report_all("scale", HOST, false, suffix);
	actor_stop(&actor);
	ksmd_reap();
}

void empty_space(void)
{
	empty_space_case("sparse", write_sparse);
	empty_space_case("vmas", write_vmas);
}

/* As many as there are huge pages, where those are wanted. */
void crowd(bool huge)
{
	const unsigned int processes[] = { 1, 16, huge ? 64 : 256 };
	unsigned int i, hot;

	for (hot = 0; hot < 2; hot++)
		for (i = 0; i < CROWD_SIZES; i++)
			crowd_size(processes[i], hot, huge);
}
