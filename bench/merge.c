// SPDX-License-Identifier: GPL-2.0
/*
 * The workloads in which something merges. Here the writers, children of this
 * program, work in lockstep with ksmd: before each pass they are told its number,
 * and answer when they have written what belongs to it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "measure.h"

/* --- actors --- */

/*
 * What an actor writes before pass @pass of ksmd; 0: before the first, all of it.
 */
typedef void (*write_fn)(char *memory, uint64_t pages, uint64_t pass,
			 uint64_t who);

struct actor {
	pid_t pid;
	int command;
	int answer;
	uint64_t start; /* address of its memory */
	uint64_t pages;
};

__attribute__((noreturn)) static void actor_main(write_fn act, uint64_t bytes,
						 bool huge, uint64_t who,
						 int command, int answer)
{
	uint64_t pages = bytes / PAGE_BYTES, pass, reply;
	char *memory = map_memory(bytes, huge);

	act(memory, pages, 0, who);
	if (madvise(memory, bytes, MADV_MERGEABLE))
		fail(EXIT_FAILURE, "MADV_MERGEABLE: %s (kernel without KSM?)",
		     strerror(errno));
	if (huge_bytes("self", (uintptr_t)memory, (uintptr_t)memory + bytes) !=
	    (huge ? bytes : 0))
		fail(EXIT_FAILURE,
		     "%" PRIu64
		     " MiB are not in %s pages: free memory or use less --size",
		     bytes / MIB, huge ? "huge" : "regular");
	reply = (uintptr_t)memory;
	while (write(answer, &reply, sizeof(reply)) == sizeof(reply)) {
		if (read(command, &pass, sizeof(pass)) != sizeof(pass))
			break;
		act(memory, pages, pass, who);
	}
	_exit(EXIT_SUCCESS);
}

static void actor_wait(struct actor *actor, uint64_t *reply)
{
	if (read(actor->answer, reply, sizeof(*reply)) != sizeof(*reply))
		fail(EXIT_FAILURE, "a writer ended early, see above");
}

/* @who: tells actors apart that are not to hold the same. */
static void actor_start(struct actor *actor, write_fn act, uint64_t bytes,
			bool huge, uint64_t who)
{
	int command[2], answer[2];

	if (pipe2(command, O_CLOEXEC) || pipe2(answer, O_CLOEXEC))
		fail(EXIT_FAILURE, "pipe: %s", strerror(errno));
	fflush(NULL);
	actor->pid = fork();
	if (actor->pid < 0)
		fail(EXIT_FAILURE, "fork: %s", strerror(errno));
	if (!actor->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(command[1]);
		close(answer[0]);
		actor_main(act, bytes, huge, who, command[0], answer[1]);
	}
	close(command[0]);
	close(answer[1]);
	actor->command = command[1];
	actor->answer = answer[0];
	actor->pages = bytes / PAGE_BYTES;
	actor_wait(actor, &actor->start);
}

static void actor_stop(struct actor *actor)
{
	kill(actor->pid, SIGKILL);
	waitpid(actor->pid, NULL, 0);
	close(actor->command);
	close(actor->answer);
}

static uint64_t actor_merged(struct actor *actor)
{
	char path[64], text[512], *at;

	snprintf(path, sizeof(path), "/proc/%d/ksm_stat", actor->pid);
	if (!slurp(path, text, sizeof(text)))
		fail(EXIT_FAILURE, "%s: %s", path, strerror(errno));
	at = strstr(text, "ksm_merging_pages");
	if (!at)
		fail(EXIT_FAILURE, "%s: no ksm_merging_pages", path);
	return strtoull(at + strlen("ksm_merging_pages"), NULL, 10);
}

/* A pass that nobody else asked for, too; returns its ns. */
static uint64_t step(void)
{
	uint64_t ns;

	if (!ksmd_step(&ns))
		fail(EXIT_FAILURE,
		     "ksmd runs passes nobody asked for; is anything else setting up KSM?");
	return ns;
}

/* Seeds: no page holds what another kind of page holds. */
enum { QUIET = 1, HOT, ARRIVED };

static uint64_t seed(uint64_t kind, uint64_t pass, uint64_t page)
{
	return kind << 56 | pass << 32 | page;
}

static uint64_t *page_at(char *memory, uint64_t page)
{
	return (uint64_t *)(memory + page * PAGE_BYTES);
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
		step();
	actor_start(&second, write_late, bytes, huge, 0);
	do {
		ns += step();
		merged = actor_merged(&second);
	} while (++passes < LATE_LIMIT && merged < 0.99 * second.pages);
	add(v, PASSES_TO_99_PERCENT, passes);
	add(v, KSMD_MS_TO_99_PERCENT, ns / 1e6);
	add(v, MERGED_PERCENT, 100.0 * merged / second.pages);
	actor_stop(&second);
	actor_stop(&first);
	ksmd_reap();
}

void late(uint64_t mib, bool huge)
{
	unsigned int round, v, m;

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
	for (m = 0; m < METRICS; m++)
		for (v = 0; v < VARIANTS; v++)
			report("late", HOST, huge, v, m, "");
}
