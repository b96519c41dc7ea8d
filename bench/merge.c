// SPDX-License-Identifier: GPL-2.0
/*
 * The workloads in which something merges. Here the writers are actors, that work
 * in lockstep with ksmd: before each pass they are told its number.
 */
#define _GNU_SOURCE

#include "actor.h"
#include "bench.h"
#include "measure.h"

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

#define LATE_LIMIT 60

static void write_late(char *memory, uint64_t pages, uint64_t pass,
		       uint64_t who)
{
	uint64_t i;

	(void)who;
	for (i = 0; !pass && i < pages; i++)
		seed_page(page_at(memory, i), seed(QUIET, 0, i));
}

static void late_variant(enum variant v, uint64_t bytes, bool huge)
{
	unsigned int settle = v == SMART ? 12 : 4, passes = 0;
	struct actor first, second;
	uint64_t ns = 0, merged;

	actor_start(&first, write_late, bytes, huge, 0);
	ksmd_setup(&variants[v]);
	while (settle--)
		step(&ns);
	actor_start(&second, write_late, bytes, huge, 0);
	ns = 0;
	do {
		passes += step(&ns);
		merged = ksm_stat(second.pid, "ksm_merging_pages");
	} while (passes < LATE_LIMIT && merged < 0.99 * second.pages);
	add(v, PASSES_TO_99_PERCENT, passes);
	add(v, KSMD_MS_TO_99_PERCENT, ns / 1e6);
	add(v, MERGED_PERCENT, 100.0 * merged / second.pages);
	actor_stop(&second);
	actor_stop(&first);
	ksmd_reap();
}

void late(uint64_t mib, bool huge)
{
	unsigned int round, v;

	forget_results();
	for (round = 0; round < settings.rounds; round++) {
		for (v = STOCK; v < VARIANTS; v++) {
			/* Once will do, where it goes on to the limit. */
			if (!settings.variant[v] || (v == SMART && round))
				continue;
			late_variant(v, mib * MIB, huge);
			say("late", HOST, huge, round, v, PASSES_TO_99_PERCENT);
		}
	}
	report_all("late", HOST, huge, "");
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

static const struct parity_case {
	const char *name;
	write_fn act;
	unsigned int mib;
	bool mapping[2];
	bool zero_pages;
} parity_cases[] = {
	{ "hotsub", write_hotsub, 64, { false, true }, false },
	{ "among", write_among, 16, { true, true }, false },
	{ "alternate", write_alternate, 16, { true, true }, false },
	{ "same", write_same, 16, { true, true }, false },
	{ "zero", write_zero, 16, { true, true }, true },
};

#define PARITY_CASES (sizeof(parity_cases) / sizeof(*parity_cases))

/* @goal: what stock comes to; to be told by stock. */
static void parity_variant(const struct parity_case *c, enum variant v,
			   bool huge, double *goal)
{
	double merged[PARITY_PASSES], sharing = 0, steady = 0, held = 0;
	unsigned int pass, reached = 0;
	struct actor actor;
	double best = 0;
	uint64_t ns = 0, scans = ksm_read("full_scans");
	uint64_t made[PARITY_PASSES];

	ksm_write_if("use_zero_pages", c->zero_pages);
	actor_start(&actor, c->act, c->mib * MIB, huge, 0);
	for (pass = 0; pass < PARITY_PASSES; pass++) {
		bool counts = pass >= PARITY_PASSES - PARITY_STEADY;

		if (pass)
			actor_act(&actor, pass);
		if (counts)
			held += merged_now(&actor, 0, actor.pages);
		/* Starting ksmd is the first pass. */
		if (pass)
			step(&ns);
		else
			ksmd_setup(&variants[v]);
		made[pass] = ksm_read("full_scans") - scans;
		merged[pass] = merged_now(&actor, 0, actor.pages);
		if (!counts)
			continue;
		steady += merged[pass];
		sharing +=
			ksm_read("pages_sharing") + ksm_count("ksm_zero_pages");
	}
	actor_stop(&actor);
	ksmd_reap();
	ksm_write_if("use_zero_pages", saved("use_zero_pages"));

	add(v, PAGES_SHARING, sharing / PARITY_STEADY);
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

static uint64_t mixed_step(struct actor *actor, unsigned int *pass)
{
	uint64_t ns = 0;

	actor_act(actor, ++*pass);
	step(&ns);
	return ns;
}

static void mixed_variant(enum variant v, uint64_t bytes, bool huge)
{
	const unsigned int warm_up = v == SMART ? 20 : MIXED_GROUPS + 2;
	const unsigned int passes = v == SMART ? 18 : MIXED_GROUPS;
	struct mixed l = mixed_layout(bytes / PAGE_BYTES);
	unsigned int pass = 0, arrived[MIXED_GROUPS] = {}, g, i;
	bool merged[MIXED_GROUPS] = {};
	uint64_t total = 0, ns, count;
	struct actor actor;
	double cost, look;

	actor_start(&actor, write_mixed, bytes, huge, 0);
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

void mixed(uint64_t mib, bool huge)
{
	unsigned int v;

	forget_results();
	for (v = STOCK; v < VARIANTS; v++) {
		if (!settings.variant[v])
			continue;
		mixed_variant(v, mib * MIB, huge);
		say("mixed", HOST, huge, 0, v, KSMD_NS_PER_PAGE);
	}
	report_all("mixed", HOST, huge, "");
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
	for (round = 0; round < settings.rounds; round++) {
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

/* As many as there are huge pages, where those are wanted. */
void crowd(bool huge)
{
	const unsigned int processes[] = { 1, 16, huge ? 64 : 256 };
	unsigned int i, hot;

	for (hot = 0; hot < 2; hot++)
		for (i = 0; i < CROWD_SIZES; i++)
			crowd_size(processes[i], hot, huge);
}
