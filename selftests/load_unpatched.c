// SPDX-License-Identifier: GPL-2.0
/*
 * For a kernel without kvm_patches/: ksm_dirty.ko does not load there, says what
 * is missing, and changes nothing.
 *
 * Seen to fail with: a patched kernel under it.
 */
#include "ksm_dirty_util.h"

#include <dirent.h>
#include <sys/klog.h>

static unsigned int count_files(void)
{
	DIR *dir = opendir(KSM_DIR);
	unsigned int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

int main(void)
{
	static char log[1 << 20];
	unsigned int files, i;
	int err = 0, len;

	ksft_print_header();
	ksft_set_plan(4);
	ksm_setup_without_module();
	files = count_files();
	for (i = 0; i < 3; i++)
		err = module_load("ksm_dirty", "");
	ksft_print_msg("loading fails with: %s\n", strerror(err));
	check(err == ENOENT || err == ENOEXEC, "loading fails\n");
	len = klogctl(3 /* SYSLOG_ACTION_READ_ALL */, log, sizeof(log) - 1);
	log[len > 0 ? len : 0] = '\0';
	check(strstr(log, "ksm_dirty: Unknown symbol") ||
		      strstr(log, "ksm_dirty: version magic"),
	      "the kernel log says why\n");
	check(files && count_files() == files &&
		      !exists("/sys/module/ksm_dirty"),
	      "nothing is left of it\n");
	map_pages(HUGE_PAGES, false);
	ksm_pass(2);
	check(true, "ksmd goes on scanning\n");
	ksft_finished();
}
