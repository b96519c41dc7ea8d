// SPDX-License-Identifier: GPL-2.0
/*
 * The writer: the volatile program, a process or a guest of KVM whose memory ksmd
 * scans, and passes of ksmd between each of which it has rewritten all of it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "measure.h"
#include "writer.h"

struct writer writer;
unsigned int passes_thrown_away;

void writer_check(void)
{
	int status;

	if (writer.pid && waitpid(writer.pid, &status, WNOHANG) == writer.pid) {
		writer.pid = 0;
		fail(EXIT_FAILURE, "the writer ended early");
	}
}

/**
 * writer_spawn() - run one of the programs as the writer
 * @argv: its name, and its arguments but --progress; room for two more and the end
 * @sweep: wait until it has made a sweep, too
 */
void writer_spawn(const char **argv, bool sweep)
{
	double limit = seconds_now() + STUCK_SECONDS;
	char program[4096];
	unsigned int argc = 0;
	int fd;

	strcpy(writer.path, "/tmp/ksm_dirty.XXXXXX");
	fd = mkstemp(writer.path);
	if (fd < 0 || ftruncate(fd, sizeof(*writer.progress)))
		fail(EXIT_FAILURE, "%s: %s", writer.path, strerror(errno));
	writer.progress = mmap(NULL, sizeof(*writer.progress), PROT_READ,
			       MAP_SHARED, fd, 0);
	if (writer.progress == MAP_FAILED)
		fail(EXIT_FAILURE, "%s: %s", writer.path, strerror(errno));
	close(fd);

	snprintf(program, sizeof(program), "%s/%s", settings.programs, argv[0]);
	while (argv[argc])
		argc++;
	argv[argc++] = "--progress";
	argv[argc++] = writer.path;
	argv[argc] = NULL;
	fflush(NULL);
	writer.pid = fork();
	if (writer.pid < 0)
		fail(EXIT_FAILURE, "fork: %s", strerror(errno));
	if (!writer.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* stdout is for results */
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execv(program, (char **)argv);
		fprintf(stderr, "measure: cannot run %s: %s\n", program,
			strerror(errno));
		_exit(127);
	}
	while (!writer.progress->ready || (sweep && !writer.progress->sweeps)) {
		writer_check();
		if (seconds_now() > limit)
			fail(EXIT_FAILURE, "%s got nowhere in %d s", argv[0],
			     STUCK_SECONDS);
		nap(0.01);
	}
	writer.mark = writer.progress->writes;
}

/**
 * writer_start() - have the volatile program rewrite memory, or just hold it
 * @huge: in huge pages
 * @mib: how much
 * @what: WRITES and so on
 * @place: who
 */
void writer_start(bool huge, uint64_t mib, unsigned int what, enum place place)
{
	char size[24], cpu[8];
	const char *argv[16] = {
		"volatile",	     "--size", size, "--mapping",
		huge ? "thp" : "4k", "--cpu",  cpu,
	};
	unsigned int argc = 7;

	snprintf(size, sizeof(size), "%" PRIu64, mib);
	snprintf(cpu, sizeof(cpu), "%d", WRITER_CPU);
	if (!(what & WRITES)) {
		argv[argc++] = "--sweeps";
		/* A guest's memory is mapped as the guest writes it. */
		argv[argc++] = place == GUEST ? "1" : "0";
	}
	if (place == GUEST)
		argv[argc++] = "--guest";
	if (what & STAMPS)
		argv[argc++] = "--stamp";
	if (what & PAIRS)
		argv[argc++] = "--pairs";
	if (what & TWIN)
		argv[argc++] = "--twin";
	writer.place = place;
	writer.writes = what & WRITES;
	writer.pages = mib * MIB / PAGE_BYTES;
	writer_spawn(argv, writer.writes || place == GUEST);
}

/* Ends the writer, which then checks that its mapping is still as asked. */
void writer_stop(void)
{
	pid_t pid = writer.pid;
	int status;

	kill(pid, SIGTERM);
	if (waitpid(pid, &status, 0) != pid || status)
		fail(EXIT_FAILURE, "the writer failed, see above");
	writer.pid = 0;
	munmap(writer.progress, sizeof(*writer.progress));
	unlink(writer.path);
	*writer.path = '\0';
	ksmd_reap();
}

/* Until everything has been rewritten since the last pass. */
static void wait_for_writer(void)
{
	uint64_t goal =
		writer.mark + writer.progress->per_sweep + PROGRESS_EVERY;
	double limit = seconds_now() + STUCK_SECONDS;

	while (writer.writes && writer.progress->writes < goal) {
		writer_check();
		if (seconds_now() > limit)
			fail(EXIT_FAILURE,
			     "the writer made no sweep in %d s: use less --size",
			     STUCK_SECONDS);
		nap(0.001);
	}
}

/* From any state into @v, asleep before its next pass. */
void writer_setup(enum variant v)
{
	ksmd_setup(&variants[v]);
	writer.mark = writer.progress->writes;
}

/* One pass of ksmd over memory that was rewritten since the last: ksmd_step(). */
bool ksmd_pass(uint64_t *ns)
{
	bool one;

	wait_for_writer();
	one = ksmd_step(ns);
	writer.mark = writer.progress->writes;
	return one;
}

/**
 * measure_passes() - what a pass costs
 * @passes: how many to take
 * @alike: they all do the same: take the median, since a short pass is easily
 *         disturbed; else the mean
 * @tries: how many it took
 *
 * Returns nanoseconds per page.
 */
double measure_passes(unsigned int passes, bool alike, unsigned int *tries)
{
	struct series cost = {};
	double total = 0;
	uint64_t ns;

	*tries = 0;
	while (cost.count < passes) {
		if (++*tries > 2 * passes + 4)
			fail(EXIT_FAILURE,
			     "ksmd runs passes nobody asked for; is anything else setting up KSM?");
		if (!ksmd_pass(&ns)) {
			passes_thrown_away++;
			continue;
		}
		total += ns;
		cost.value[cost.count++] = ns;
	}
	return (alike ? median(&cost) : total / passes) / writer.pages;
}

void warm_up(unsigned int passes)
{
	uint64_t ns;

	while (passes--)
		ksmd_pass(&ns);
}
