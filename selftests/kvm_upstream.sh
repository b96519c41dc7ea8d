#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Runs the kernel's own KVM selftests, in the VM, in the directory they are in,
# with all of their memory offered to a ksmd that never rests, and prints a line for
# each answer: its name, a colon, and its exit status (4: skipped).
# selftests/run compares those of two kernels.

cd "${0%/*}" || exit 1
ksm=/sys/kernel/mm/ksm

echo none >$ksm/advisor_mode
echo 10000 >$ksm/pages_to_scan
echo 0 >$ksm/sleep_millisecs
echo 1 >$ksm/run
before=$(cat $ksm/full_scans)

while read -r args; do
	start=$(cut -d. -f1 /proc/uptime)
	# shellcheck disable=SC2086 # several arguments
	timeout 300 ./merge_any ./$args >/tmp/out 2>&1
	echo "kvm $args: $?"
	tail -n 4 /tmp/out | sed 's/^/# /'
	echo "# $(($(cut -d. -f1 /proc/uptime) - start)) s"
done <<LIST
dirty_log_test -M dirty-log -i 3 -I 20
dirty_log_test -M clear-log -i 3 -I 20
dirty_log_test -M dirty-ring -i 3 -I 20
dirty_log_perf_test -i 2 -b 64M -v 1
access_tracking_perf_test -b 64M -v 1
memslot_perf_test -l 1 -s 64
memslot_modification_stress_test -i 20 -b 64M -v 1
max_guest_memory_test -c 1 -m 1 -s 1
LIST
echo "# $(($(cat $ksm/full_scans) - before)) passes of ksmd"
[ ! -f $ksm/pages_dirty ] ||
	echo "# $(cat $ksm/pages_dirty) pages dirty, $(cat $ksm/pages_unknown) unknown"
echo 0 >$ksm/run
