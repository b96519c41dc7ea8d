// SPDX-License-Identifier: GPL-2.0
/*
 * Do the dirty bits tell the truth? Pages that were written since the last pass are
 * to be passed over as dirty, those that were not are not.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "measure.h"
#include "writer.h"

#define ACCURACY_PASSES 16

/* In how many of all cases, in percent, a counter counts a page in a pass. */
static double share_counted(const char *counter)
{
	uint64_t before = ksm_read(counter);
	unsigned int tries;

	measure_passes(ACCURACY_PASSES, true, &tries);
	return 100.0 * (ksm_read(counter) - before) / tries / writer.pages;
}

void accuracy(uint64_t mib, bool huge, enum place place)
{
	unsigned int what;

	forget_results();
	for (what = 0; what <= WRITES; what += WRITES) {
		writer_start(huge, mib, what, place);
		writer_setup(DIRTY);
		look_every(0, 0);
		warm_up(variants[DIRTY].warm_up);
		if (what & WRITES)
			add(DIRTY, FALSE_CLEAN_PERCENT,
			    share_counted("pages_clean"));
		else
			add(DIRTY, FALSE_DIRTY_PERCENT,
			    share_counted("pages_dirty"));
		say("accuracy", place, huge, 0, DIRTY,
		    what & WRITES ? FALSE_CLEAN_PERCENT : FALSE_DIRTY_PERCENT);
		writer_stop();
	}
	report_all("accuracy", place, huge, "");
	if (place == HOST)
		fallen_quiet(huge);
}
