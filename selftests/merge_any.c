// SPDX-License-Identifier: GPL-2.0
/* Runs a program all of whose memory is offered to KSM. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#endif

int main(int argc, char **argv)
{
	if (argc < 2 || !strcmp(argv[1], "--help")) {
		fprintf(argc < 2 ? stderr : stdout,
			"Usage: merge_any PROGRAM [ARG...]\n\n"
			"Runs PROGRAM with all of its memory offered to KSM.\n\n"
			"Status: PROGRAM's; 125 if KSM is not there, 126 if PROGRAM cannot be run,\n"
			"2 usage.\n");
		return argc < 2 ? 2 : 0;
	}
	if (prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0)) {
		fprintf(stderr,
			"merge_any: PR_SET_MEMORY_MERGE: %s; needs a kernel with KSM, 6.4 or later\n",
			strerror(errno));
		return 125;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "merge_any: cannot run %s: %s\n", argv[1],
		strerror(errno));
	return 126;
}
