// SPDX-License-Identifier: GPL-2.0
/*
 * The settled tree is ordered by 32 bits of checksum, so with enough memory there
 * are pages that are alike in that and differ all the same.  All of them settle, and
 * each merges with a copy of itself, and with no other.
 *
 * Seen to fail with: a search that ends at the first page of equal checksum, and one
 * that takes its contents for equal (mm/ksm.c).
 */
#include "ksm_dirty_util.h"

#include <stdlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/*
 * Of so many contents, some CONTENTS^2 / 2^33 = 32 pairs have an equal checksum,
 * always the same ones.
 */
#define CONTENTS (1U << 19)
#define PAIRS 16UL
#define PAGES (2 * PAIRS)
#define LIMIT 12

struct candidate {
	uint32_t checksum, value;
};

static int compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->checksum < y->checksum ? -1 : x->checksum > y->checksum;
}

/* Of a page that holds value in its last word, and nothing else: as mm/ksm.c */
static uint32_t checksum_of(const XXH64_state_t *zeros, uint64_t value)
{
	XXH64_state_t state = *zeros;

	XXH64_update(&state, &value, sizeof(value));
	return XXH64_digest(&state);
}

/* Values of pages, two by two with equal checksums */
static void find_pairs(uint32_t values[PAGES])
{
	struct candidate *all = calloc(CONTENTS, sizeof(*all));
	static const char zeros[PAGE - sizeof(uint64_t)];
	XXH64_state_t state;
	size_t i, found = 0;

	if (!all)
		ksft_exit_fail_perror("calloc");
	XXH64_reset(&state, 0);
	XXH64_update(&state, zeros, sizeof(zeros));
	for (i = 0; i < CONTENTS; i++) {
		all[i].value = i + 1;
		all[i].checksum = checksum_of(&state, i + 1);
	}
	qsort(all, CONTENTS, sizeof(*all), compare);
	for (i = 1; i < CONTENTS && found < PAGES; i++) {
		if (all[i].checksum != all[i - 1].checksum)
			continue;
		values[found++] = all[i - 1].value;
		values[found++] = all[i].value;
	}
	free(all);
	if (found < PAGES)
		ksft_exit_fail_msg("only %zu pages have a checksum in common\n",
				   found);
}

static void fill(char *mem, const uint32_t values[PAGES])
{
	size_t i;

	for (i = 0; i < PAGES; i++)
		set_word(mem + PAGE - sizeof(uint64_t), i, values[i]);
}

static size_t wrong(const char *mem, const uint32_t values[PAGES])
{
	size_t i, count = 0;

	for (i = 0; i < PAGES; i++)
		count += get_word(mem + PAGE - sizeof(uint64_t), i) !=
				 values[i] ||
			 get_word(mem, i);
	return count;
}

/* How many of the pages are one with the same page of the other mapping */
static size_t merged(const char *a, const char *b)
{
	const uint64_t frame = (1ULL << 55) - 1;
	size_t i, count = 0;

	for (i = 0; i < PAGES; i++)
		count += !((pagemap_entry(a, i) ^ pagemap_entry(b, i)) & frame);
	return count;
}

int main(void)
{
	uint64_t passed_over, searches, settled;
	uint32_t values[PAGES];
	unsigned int passes;
	char *a, *b;

	ksft_print_header();
	ksft_set_plan(4);
	ksm_setup();
	find_pairs(values);
	a = map_pages(PAGES, false);
	fill(a, values);
	ksm_pass(2);
	settled = ksm_get("pages_settled");
	check(settled == PAGES,
	      "%lu of %lu pages, two by two of a checksum, settled\n", settled,
	      PAGES);
	passed_over = ksm_get("settled_passed_over");
	searches = ksm_get("settled_searches");
	ksm_pass(3);
	check(ksm_get("settled_passed_over") - passed_over == 3 * PAGES &&
		      ksm_get("settled_searches") == searches,
	      "and rest\n");

	b = map_pages(PAGES, false);
	fill(b, values);
	for (passes = 0; passes < LIMIT && merged(a, b) < PAGES; passes++)
		ksm_pass(1);
	check(passes <= 2 && ksm_get("pages_shared") == PAGES &&
		      ksm_get("pages_sharing") == PAGES,
	      "%zu merge with a copy of themselves, in %u passes\n",
	      merged(a, b), passes);
	check(!wrong(a, values) && !wrong(b, values), "contents\n");
	ksft_finished();
}
