/* SPDX-License-Identifier: GPL-2.0 */
/* Writers in lockstep with this program. */
#ifndef KSM_DIRTY_BENCH_ACTOR_H
#define KSM_DIRTY_BENCH_ACTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench.h"

/*
 * What an actor writes before pass @pass of ksmd; 0: before the first, all of it.
 */
typedef void (*write_fn)(char *memory, uint64_t pages, uint64_t pass,
			 uint64_t who);

/**
 * struct actor - a child
 * @pid: its process
 * @command: the pipe to it
 * @answer: the pipe from it
 * @start: address of its memory
 * @pages: how many
 */
struct actor {
	pid_t pid;
	int command;
	int answer;
	uint64_t start;
	uint64_t pages;
};

void actor_start(struct actor *actor, write_fn act, uint64_t bytes, bool huge,
		 uint64_t who);
void actor_act(struct actor *actor, uint64_t pass);
void actor_stop(struct actor *actor);
uint64_t merged_now(struct actor *actor, uint64_t first, uint64_t pages);
uint64_t swapped_now(struct actor *actor);

static inline uint64_t *page_at(char *memory, uint64_t page)
{
	return (uint64_t *)(memory + page * PAGE_BYTES);
}

#endif
