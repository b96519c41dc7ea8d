#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Usage: kvm_qemu.sh PROGRAM SKIPS [MODULE...]
# SKIPS: the volatile pages of both that ksmd is to skip in a pass, at least.
# Two Linux guests under QEMU with KVM, in the machine that runs this, with PROGRAM
# as PID 1: their memory is offered to KSM (-machine mem-merge=on), most of what
# their programs use is volatile, and the rest the same in both. TAP on stdout.
#
# Needs, beside it: bzImage, PROGRAM, each MODULE of the guests' kernel, and what
# qemu-system-x86_64 loads: bios-256k.bin, linuxboot_dma.bin, kvmvapic.bin.
#
# Seen to fail with: KVM asking only its shadow MMU (kvm_qemu), or only its TDP MMU
# (kvm_nested) for dirty bits.

cd "${0%/*}" || exit 1
program=$1
skips=$2
shift 2
ksm=/sys/kernel/mm/ksm
guests="1 2"
seconds=${KVM_QEMU_SECONDS:-12}	# of the guests' time, after they have booted
boot_seconds=100
boots=3	# to try again, of all guests together
failed=0
results=0

check()
{
	results=$((results + 1))
	if [ "$1" -ne 0 ]; then
		echo "ok $results $2"
	else
		echo "not ok $results $2"
		failed=1
	fi
}

bail()
{
	echo "Bail out! $*"
	for i in $guests; do
		tail -n 15 "$i.err" "$i.log" | sed "s/^/# guest $i: /"
	done
	exit 1
}

get()
{
	cat "$ksm/$1"
}

# Pages that nobody vouches for; those that were written and looked at all the same are known
get_unknown()
{
	echo $(($(get pages_unknown) - $(get pages_probed)))
}

start_guest()
{
	qemu-system-x86_64 -L . -accel kvm -cpu host,la57=off -M pc,mem-merge=on \
		-m 128 -nodefaults -no-user-config -display none -no-reboot \
		-kernel bzImage -initrd /tmp/guest.cpio \
		-append "console=ttyS0 quiet panic=-1 tsc=reliable no_timer_check SECONDS=$seconds" \
		-serial file:"$1.log" >"$1.err" 2>&1 &
	echo $! >"$1.pid"
	: >>"$1.log"
}

# Guest $1 ended before it said '$2'. Under emulation one may reset while it boots,
# which is before ksmd runs: that is tried again.
ended()
{
	if [ "$2" != "guest: ready" ] || [ $boots -eq 0 ]; then
		bail "guest $1 ended before it said '$2'"
	fi
	echo "# guest $1 ended while it booted: once more"
	boots=$((boots - 1))
	start_guest "$1"
}

# Waits until each guest's console has a line like $1; $2: seconds
wait_for()
{
	left=$(($2 * 5))
	for i in $guests; do
		while ! grep -q "$1" "$i.log"; do
			kill -0 "$(cat "$i.pid")" 2>/dev/null || grep -q "$1" "$i.log" ||
				ended "$i" "$1"
			left=$((left - 1))
			[ $left -gt 0 ] || bail "guest $i did not say '$1' in $2 s"
			usleep 200000
		done
	done
}

echo "TAP version 13"
echo "1..5"
[ -c /dev/kvm ] || bail "no /dev/kvm: load KVM's modules"
[ -f $ksm/dirty_scan ] || bail "no $ksm/dirty_scan: load ksm_dirty.ko"

mkdir -p /tmp/guest/dev /tmp/guest/proc /tmp/guest/sys /tmp/guest/lib/modules
cp "$program" /tmp/guest/init
for module in "$@"; do
	cp "$module" /tmp/guest/lib/modules/
done
mknod /tmp/guest/dev/console c 5 1
(cd /tmp/guest && find . | cpio -o -H newc 2>/dev/null) >/tmp/guest.cpio

echo 0 >$ksm/run
echo none >$ksm/advisor_mode
echo 0 >$ksm/smart_scan
for i in $guests; do
	start_guest "$i"
done
wait_for "guest: ready" $boot_seconds
echo "# both guests have booted"

scanned=$(get pages_scanned)
dirty=$(get pages_dirty)
unknown=$(get_unknown)
passes=$(get full_scans)
echo 20000 >$ksm/pages_to_scan
echo 20 >$ksm/sleep_millisecs
echo 1 >$ksm/run
sharing=0
while ! grep -q "guest: [vC]" 1.log && [ -d "/proc/$(cat 1.pid)" ]; do
	now=$(get pages_sharing)
	[ "$now" -le "$sharing" ] || sharing=$now
	usleep 300000
done
passes=$(($(get full_scans) - passes))
dirty=$(($(get pages_dirty) - dirty))
scanned=$(($(get pages_scanned) - scanned))
unknown=$(($(get_unknown) - unknown))
wait_for "guest: [vC]" $((seconds * 3 + 20))
echo 0 >$ksm/run
for i in $guests; do
	wait "$(cat "$i.pid")"
	echo "# guest $i: $(grep -a 'guest: [vC]' "$i.log")"
done

echo "# $passes passes: $dirty volatile pages skipped, $scanned scanned, $unknown unknown, up to $sharing shared"
check "$((passes >= 3))" "ksmd made passes while the guests ran"
check "$((dirty > passes * skips))" "volatile pages of the guests were skipped"
check "$((sharing >= 2000))" "equal pages of the guests merged"
check "$((unknown * 20 < dirty + scanned))" "hardly any page was unknown"
check "$(cat 1.log 2.log | grep -c 'guest: verified' | grep -xc 2)" \
	"both guests ran to the end and verified their memory"
exit $failed
