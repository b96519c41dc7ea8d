// SPDX-License-Identifier: GPL-2.0
/*
 * Actors: children of this program with memory that KSM may merge, that write to
 * it when they are told, and answer when they have.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor.h"
#include "bench.h"

/* Bits of /proc/PID/pagemap */
#define PAGEMAP_PRESENT (1ULL << 63)
#define PAGEMAP_SWAPPED (1ULL << 62)
#define PAGEMAP_EXCLUSIVE (1ULL << 56)

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
	check_mapping(memory, bytes, huge);
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

/**
 * actor_start() - have a child write memory and offer it to KSM
 * @act: what it writes
 * @bytes: how much memory
 * @huge: in huge pages
 * @who: tells actors apart that are not to hold the same
 */
void actor_start(struct actor *actor, write_fn act, uint64_t bytes, bool huge,
		 uint64_t who)
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

/** actor_act() - have it write what belongs to a pass, and wait for that */
void actor_act(struct actor *actor, uint64_t pass)
{
	uint64_t reply;

	if (write(actor->command, &pass, sizeof(pass)) != sizeof(pass))
		fail(EXIT_FAILURE, "a writer ended early, see above");
	actor_wait(actor, &reply);
}

void actor_stop(struct actor *actor)
{
	kill(actor->pid, SIGKILL);
	waitpid(actor->pid, NULL, 0);
	close(actor->command);
	close(actor->answer);
}

/* How many of some pages' entries in pagemap have, of these bits, those. */
static uint64_t count_pages(struct actor *actor, uint64_t first, uint64_t pages,
			    uint64_t bits, uint64_t value)
{
	size_t size = pages * sizeof(uint64_t);
	uint64_t *entry = malloc(size), i, count = 0;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", actor->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || !entry ||
	    pread(fd, entry, size,
		  (actor->start / PAGE_BYTES + first) * sizeof(*entry)) !=
		    (ssize_t)size)
		fail(EXIT_FAILURE, "%s: %s", path, strerror(errno));
	for (i = 0; i < pages; i++)
		count += (entry[i] & bits) == value;
	free(entry);
	close(fd);
	return count;
}

/** merged_now() - how many of the pages from @first on are mapped elsewhere, too */
uint64_t merged_now(struct actor *actor, uint64_t first, uint64_t pages)
{
	return count_pages(actor, first, pages,
			   PAGEMAP_PRESENT | PAGEMAP_EXCLUSIVE,
			   PAGEMAP_PRESENT);
}

/** swapped_now() - how many of the pages are in swap */
uint64_t swapped_now(struct actor *actor)
{
	return count_pages(actor, 0, actor->pages, PAGEMAP_SWAPPED,
			   PAGEMAP_SWAPPED);
}
