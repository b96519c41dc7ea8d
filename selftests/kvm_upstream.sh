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

# memslot_perf_test gives its guest 10 s for half of the memory, which its host waits
# for spinning: with ksmd as nice as it is there are three for two CPUs, and it ends by
# its alarm (142) two times in three, on the unpatched kernel as well. Less of ksmd has
# it done in 6 to 9 s; for a slower host it has three tries.
while read -r niceness args; do
	renice "$niceness" $$ >/dev/null
	start=$(cut -d. -f1 /proc/uptime)
	for try in 1 2 3; do
		status=0
		# shellcheck disable=SC2086 # several arguments
		timeout 300 ./merge_any ./$args >/tmp/out 2>&1 || status=$?
		[ $status -eq 142 ] || break
		echo "# try $try: too late"
	done
	echo "kvm $args: $status"
	tail -n 4 /tmp/out | sed 's/^/# /'
	echo "# $(($(cut -d. -f1 /proc/uptime) - start)) s"
done <<LIST
0 dirty_log_test -M dirty-log -i 3 -I 20
0 dirty_log_test -M clear-log -i 3 -I 20
0 dirty_log_test -M dirty-ring -i 3 -I 20
0 dirty_log_perf_test -i 2 -b 64M -v 1
0 access_tracking_perf_test -b 64M -v 1
0 memslot_perf_test -l 1 -s 64 -e 4
-15 memslot_perf_test -l 1 -s 64 -f 5
0 memslot_modification_stress_test -i 20 -b 64M -v 1
0 max_guest_memory_test -c 1 -m 1 -s 1
LIST
echo "# $(($(cat $ksm/full_scans) - before)) passes of ksmd"
[ ! -f $ksm/pages_dirty ] ||
	echo "# $(cat $ksm/pages_dirty) pages dirty, $(cat $ksm/pages_unknown) unknown"
echo 0 >$ksm/run
