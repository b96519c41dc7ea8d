// SPDX-License-Identifier: GPL-2.0
/*
 * The files beside KSM's own: there, with the right modes, saying no to bad
 * input, counting upwards.
 *
 * Seen to fail with: sysfs.c taking numbers above 1; counters of mode 0644.
 */
#include "ksm_dirty_util.h"

#include <sys/stat.h>

/* What counts up, and whether it does in test_counters() */
static const struct {
	const char *name;
	bool moves;
} counters[] = {
	{ "pages_dirty", true },	 { "pages_clean", true },
	{ "pages_unknown", false },	 { "pages_probed", false },
	{ "settled_passed_over", true }, { "settled_searches", true },
	{ "settled_pruned", false },	 { "settled_stale", false },
	{ "dirty_scan_windows", true },	 { "dirty_scan_flushes", true },
	{ "ksmd_runtime_ns", true },
};

/* Files that take a number of passes */
static const char *const passes[] = {
	"dirty_scan_probe_passes",
	"dirty_scan_recheck_passes",
};

static mode_t mode(const char *name)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), KSM_DIR "/%s", name);
	return stat(path, &st) ? 0 : st.st_mode & 07777;
}

static void test_input(void)
{
	static const char *const bad[] = {
		"2", "-1", "x", "\n", "1x", "1 0", " ", "on", "4294967297",
	};
	unsigned int before, wrong = 0;
	size_t i;

	for (before = 0; before < 2; before++) {
		ksm_set("dirty_scan", before);
		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			int err = try_write_file(KSM_DIR "/dirty_scan", bad[i]);
			/* A number too large to be one has its own error */
			bool ok = err == EINVAL || (err == ERANGE && i == 8);

			if (ok && ksm_get("dirty_scan") == before)
				continue;
			ksft_print_msg("'%s': error %d, dirty_scan %lu\n",
				       bad[i], err, ksm_get("dirty_scan"));
			wrong++;
		}
	}
	check(!wrong, "dirty_scan takes nothing but 0 and 1\n");
	check(!try_write_file(KSM_DIR "/dirty_scan", "0\n") &&
		      !ksm_get("dirty_scan") &&
		      !try_write_file(KSM_DIR "/dirty_scan", "0") &&
		      !try_write_file(KSM_DIR "/dirty_scan", "1\n") &&
		      ksm_get("dirty_scan") == 1,
	      "dirty_scan takes 0 and 1\n");
}

static void test_passes(void)
{
	static const char *const bad[] = { "-1", "x", "\n", "1x",
					   "4294967296" };
	unsigned int wrong = 0;
	char path[128];
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(passes); i++) {
		snprintf(path, sizeof(path), KSM_DIR "/%s", passes[i]);
		wrong += mode(passes[i]) != 0644;
		ksm_set(passes[i], 77);
		for (j = 0; j < ARRAY_SIZE(bad); j++)
			wrong += !try_write_file(path, bad[j]) ||
				 ksm_get(passes[i]) != 77;
		wrong += try_write_file(path, "4294967295\n") ||
			 ksm_get(passes[i]) != 4294967295;
		ksm_set(passes[i], 0);
	}
	check(!wrong, "numbers of passes: any that fits, nothing else\n");
}

static void test_counters(void)
{
	char *mem = map_pages(HUGE_PAGES, false);
	uint64_t last[ARRAY_SIZE(counters)], value;
	bool moved[ARRAY_SIZE(counters)] = {};
	unsigned int backwards = 0, wrong = 0;
	char path[128];
	size_t i, pass;

	fill_pages(mem, HUGE_PAGES, 1);
	for (i = 0; i < ARRAY_SIZE(counters); i++)
		last[i] = ksm_get(counters[i].name);
	for (pass = 0; pass < 6; pass++) {
		/* Written, and not, with and without harvests */
		ksm_set("dirty_scan", pass != 4);
		if (pass < 2)
			rewrite_pages(mem, HUGE_PAGES, pass);
		ksm_pass(1);
		for (i = 0; i < ARRAY_SIZE(counters); i++) {
			value = ksm_get(counters[i].name);
			backwards += value < last[i];
			moved[i] |= value > last[i];
			last[i] = value;
		}
	}
	check(!backwards, "no counter goes backwards\n");
	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		if (moved[i] == counters[i].moves)
			continue;
		wrong++;
		ksft_print_msg("%s %s\n", counters[i].name,
			       moved[i] ? "moved" : "did not move");
	}
	check(!wrong, "counters count what happens, and nothing else\n");

	wrong = 0;
	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		snprintf(path, sizeof(path), KSM_DIR "/%s", counters[i].name);
		wrong += !try_write_file(path, "0");
		wrong += ksm_get(counters[i].name) < last[i];
	}
	check(!wrong, "counters cannot be written\n");
	munmap(mem, HUGE_PAGES * PAGE);
}

int main(void)
{
	unsigned int wrong = 0;
	size_t i;

	ksft_print_header();
	ksft_set_plan(9);
	ksm_setup();
	check(mode("dirty_scan") == 0644, "dirty_scan has mode 0644\n");
	for (i = 0; i < ARRAY_SIZE(counters); i++)
		wrong += mode(counters[i].name) != 0444;
	check(!wrong, "counters have mode 0444\n");
	check(mode("pages_settled") == 0444, "pages_settled has mode 0444\n");
	test_passes();
	test_input();
	test_counters();
	ksft_finished();
}
