#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Runs the kernel's own KSM selftests, in the VM, in the directory they are in,
# and prints a line for each answer: its name, a colon, and the answer.
# selftests/run compares those of two kernels.

cd "${0%/*}" || exit 1

# ksm_tests -N merges a page with one that settled before it came. smart_scan looks at
# the settled one in some passes only, and the test waits for two: the unpatched
# kernel fails it one time in three.
echo 0 >/sys/kernel/mm/ksm/smart_scan

# They wait for passes by full_scans, and one that was under way already counts: on a
# loaded host each of them fails now and then, on any kernel. So the answer is 1 only
# if it is 1 five times.
answer()
{
	tries=0
	status=1
	while [ $status -eq 1 ] && [ $tries -lt 5 ]; do
		status=0
		# shellcheck disable=SC2086 # the mode is several arguments
		./ksm_tests $1 >/tmp/out 2>&1 || status=$?
		sed 's/^/# /' /tmp/out
		tries=$((tries + 1))
	done
	echo "ksm_tests $1: $status"
}

for mode in "-M -p 10" -U "-Z -p 10 -z 0" "-Z -p 10 -z 1" "-N -m 1" "-N -m 0" \
	"-P -s 20" "-H -s 20" "-D -s 20" -C; do
	answer "$mode"
done
./ksm_functional_tests >/tmp/out 2>&1
echo "ksm_functional_tests: $?"
sed -n 's/^\(not ok\|ok\) \([0-9]*\) \(# SKIP\)* *\(.*\)/ksm_functional_tests \2 \4: \1 \3/p' /tmp/out
grep '^#' /tmp/out
