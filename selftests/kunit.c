// SPDX-License-Identifier: GPL-2.0
/*
 * The module's decisions, under KUnit: loads ksm_dirty_kunit.ko and reports each
 * of its cases.
 *
 * Seen to fail with: ksm_dirty_judge() not passing over DIRTY pages.
 */
#include "ksm_dirty_util.h"

#define RESULTS "/sys/kernel/debug/kunit/ksm_dirty/results"

int main(void)
{
	char buf[16384], *line, *next;
	unsigned int cases = 0, number;
	char name[64];

	ksft_print_header();
	need_module("ksm_dirty_kunit");
	read_file(RESULTS, buf, sizeof(buf));
	for (line = buf; line; line = next) {
		bool ok, skip;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		/* The cases are indented, once; the suite is not */
		ok = sscanf(line, "    ok %u %63s", &number, name) == 2 &&
		     !strncmp(line, "    ok", 6);
		skip = ok && strstr(line, "# SKIP");
		if (skip)
			ksft_test_result_skip("%s %s\n", name,
					      strstr(line, "# SKIP") + 7);
		else if (ok)
			ksft_test_result_pass("%s\n", name);
		else if (sscanf(line, "    not ok %u %63s", &number, name) ==
				 2 &&
			 !strncmp(line, "    not ok", 10))
			ksft_test_result_fail("%s\n", name);
		else if (!strncmp(line, "    1..", 7) &&
			 sscanf(line, "    1..%u", &cases) == 1)
			ksft_set_plan(cases);
		else if (*line == ' ')
			ksft_print_msg("%s\n", line);
	}
	if (!cases)
		ksft_exit_fail_msg(RESULTS " has no results\n");
	ksft_finished();
}
