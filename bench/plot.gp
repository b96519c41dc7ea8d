# SPDX-License-Identifier: GPL-2.0
# Draws one workload of results.csv.
# Variables: csv, workload, svg.

set datafile separator ","
set terminal svg size 760,440 font "Helvetica,13" background "#ffffff"
set output svg

# What dirty_scan and smart_scan merge, in percent of what stock does.
if (workload eq "parity") {
	saved(variant) = sprintf("< awk -F, -v OFS=, '$1 == \"parity\" && $5 ~ /^merged_pages_/ && $5 !~ /_held_/ { \
		sub(/^merged_pages_/, \"\", $5); c = $5 \" \" $3; if (!(c in at)) { at[c] = n++; } stock[c] = $4 == \"stock\" ? $6 : stock[c]; \
		if ($4 == \"%s\") mine[c] = $6 } \
		END { for (c in mine) if (stock[c]) { split(c, w, \" \"); print at[c], 100 * mine[c] / stock[c], w[1], w[2] == \"thp\" ? \"huge\" : \"4 KiB\" } }' '%s'", variant, csv)
	set title "{/:Bold What is merged in the end}\npages merged after a pass, in percent of what smart\\_scan=0 merges" offset 0,-0.2
	set ylabel "percent" textcolor "#333333"
	set yrange [0:125]
	set xrange [-0.6:11.6]
	set xtics scale 0 textcolor "#333333"
	set ytics nomirror textcolor "#333333"
	set grid ytics linetype 1 linecolor "#e4e4e4"
	set border 3 linecolor "#888888"
	set key top right horizontal samplen 1
	set style fill solid 1 noborder
	set bmargin 3.6
	set boxwidth 0.36
	plot saved("smart") using ($1 - 0.2):2:xticlabels(strcol(3)."\n".strcol(4)) with boxes linecolor rgb "#e08a2e" title "smart\\_scan=1", \
	     saved("dirty") using ($1 + 0.2):2 with boxes linecolor rgb "#3b6fb6" title "dirty\\_scan=1", \
	     saved("smart") using ($1 - 0.2):2:(sprintf("%.0f", $2)) with labels offset 0,0.6 font ",11" notitle, \
	     saved("dirty") using ($1 + 0.2):2:(sprintf("%.0f", $2)) with labels offset 0,0.6 font ",11" notitle
	exit
}

# In which functions the time goes, the ones that take most of it.
if (workload eq "impact") {
	inside(mapping, variant) = sprintf("< awk -F, -v OFS=, '$1 == \"impact\" && $2 == \"host\" && $3 == \"%s\" && sub(/^ns_per_page_in_/, \"\", $5) { \
		ns[$4, $5] = $6; if ($6 > most[$5]) most[$5] = $6 } \
		END { for (n = 0; n < 14; n++) { top = \"\"; for (f in most) if (top == \"\" || most[f] > most[top]) top = f; \
		if (top == \"\") break; v = ns[\"%s\", top]; print n, (v > 0 ? v : 0.01), top; delete most[top] } }' '%s'", mapping, variant, csv)
	set multiplot layout 1,2 title "{/:Bold Volatile memory: ksmd CPU time per page and pass, by function}"
	set logscale y
	set yrange [0.01:3000000]
	set format y "%g"
	set ylabel "nanoseconds (log scale)" textcolor "#333333"
	set ytics nomirror textcolor "#333333"
	set grid ytics linetype 1 linecolor "#e4e4e4"
	set border 3 linecolor "#888888"
	set xrange [-0.7:13.7]
	set xtics scale 0 rotate by -50 noenhanced font ",9" textcolor "#333333"
	set bmargin 9
	set style fill solid 1 noborder
	set boxwidth 0.27
	set key top right samplen 1
	array mappings[2] = ["4k", "thp"]
	array names[2] = ["4 KiB pages", "huge pages"]
	do for [i=1:2] {
		set title names[i] offset 0,-0.6
		plot inside(mappings[i], "stock") using ($1 - 0.28):2:xticlabels(3) with boxes linecolor rgb "#888888" title "stock", \
		     inside(mappings[i], "smart") using 1:2 with boxes linecolor rgb "#e08a2e" title "smart\\_scan=1", \
		     inside(mappings[i], "dirty") using ($1 + 0.28):2 with boxes linecolor rgb "#3b6fb6" title "dirty\\_scan=1"
	}
	unset multiplot
	exit
}

# The cost of a page by the number of pages, and by the number of processes.
if (workload eq "scale") {
	by(kind, mapping, what) = sprintf("< awk -F, -v OFS=, '$1 == \"scale\" && $3 == \"%s\" && $5 ~ /_%s_[0-9]+_%s$/ { \
		n = split($5, w, \"_\"); print w[n - 1], $6 }' '%s'", mapping, kind, what, csv)
	set multiplot layout 1,2 title "{/:Bold ksmd CPU time per page and pass, dirty\\_scan=1}"
	set logscale xy 2
	set logscale y 10
	set yrange [0.5:20000]
	set format y "%g"
	set ylabel "nanoseconds (log scale)" textcolor "#333333"
	set xtics nomirror textcolor "#333333"
	set ytics nomirror textcolor "#333333"
	set grid ytics linetype 1 linecolor "#e4e4e4"
	set border 3 linecolor "#888888"
	set key top right samplen 1 spacing 1.1
	array unit[2] = ["mib", "processes"]
	array label[2] = ["MiB", "processes with 128 MiB in all"]
	array from[2] = [90, 0.7]
	array to[2] = [2900, 370]
	do for [i=1:2] {
		set xlabel label[i] textcolor "#333333"
		set xrange [from[i]:to[i]]
		if (i == 1) { set xtics (128, 512, 2048) } else { set xtics (1, 16, 64, 256); unset key }
		plot by("volatile", "4k", unit[i]) using 1:2 with linespoints pointtype 7 linecolor rgb "#3b6fb6" title "rewritten, 4 KiB pages", \
		     by("volatile", "thp", unit[i]) using 1:2 with linespoints pointtype 7 linecolor rgb "#e08a2e" title "rewritten, huge pages", \
		     by("static", "4k", unit[i]) using 1:2 with linespoints pointtype 6 linecolor rgb "#9bb8dd" title "unchanging, 4 KiB pages", \
		     by("static", "thp", unit[i]) using 1:2 with linespoints pointtype 6 linecolor rgb "#f2c592" title "unchanging, huge pages"
	}
	unset multiplot
	exit
}

# "x y" for each bar of one mapping in one place, and of the variants in the
# order drawn; nothing where it was not measured.
metric = workload eq "latency" ? "write_p999_ns" : \
	workload eq "late" ? "ksmd_ms_to_99_percent" : \
	workload eq "accuracy" ? "passes_to_99_percent" : \
	workload eq "fault" ? "faults_per_s_1_threads" : \
	workload eq "hold" ? "mmap_p999_us" : \
	workload eq "pagein" ? "pagein_us_per_page" : "ksmd_ns_per_page"
# Those that compare with KSM off, and leave smart_scan out
off = strstrt("latency fault hold pagein", workload) > 0
bars(place, mapping) = sprintf("< awk -F, -v OFS=, '$1 == \"%s\" && $2 == \"%s\" && $3 == \"%s\" && $5 == \"%s\" { \
	x = %d ? ($4 == \"off\" ? 0 : $4 == \"stock\" ? 1 : 2) : \
	    $4 == \"stock\" ? 0 : $4 == \"smart\" ? 1 : 2; \
	print x, $6, $8 }' '%s'", workload, place, mapping, metric, off, csv)
measured(place) = int(system(sprintf("grep -c '^%s,%s,' '%s' || true", workload, place, csv))) > 0

title = workload eq "volatile" ? "Memory rewritten between passes" : \
	workload eq "static" ? "Memory that does not change" : \
	workload eq "late" ? "Somebody arrives with the contents of another" : \
	workload eq "mixed" ? "90 % quiet, 9 % rewritten, 1 % becomes equal" : \
	workload eq "merged" ? "Memory that is merged already" : \
	workload eq "accuracy" ? "Equal pages fall quiet" : \
	workload eq "fault" ? "Page faults beside a ksmd that sleeps 20 ms between passes" : \
	workload eq "hold" ? "mmap() beside ksmd at full speed, 99.9 %" : \
	workload eq "pagein" ? "Page-in from swap beside ksmd at full speed" : \
	"A guest's writes: time from one to the next, 99.9 %"
what = workload eq "latency" ? "beside a pass of ksmd every 150 ms" : \
	workload eq "accuracy" ? "passes from the last write until 99 % is merged" : \
	workload eq "fault" ? "page faults per second of one thread or vCPU" : \
	workload eq "hold" ? "of a process that writes, maps and faults" : \
	workload eq "pagein" ? "time to read a page that was in swap" : \
	workload eq "late" ? "ksmd CPU time until 99 % is merged, or for 30 passes" : "ksmd CPU time per page and pass"
set title "{/:Bold ".title."}\n".what offset 0,-0.2

if (off) {
	set xtics ("KSM off" 0, "stock\n(smart\\_scan=0)" 1, "dirty\\_scan=1" 2)
} else {
	set xtics ("stock\n(smart\\_scan=0)" 0, "smart\\_scan=1" 1, "dirty\\_scan=1" 2)
}
set xrange [-0.6:2.6]
set xtics scale 0 textcolor "#333333"
set ylabel (workload eq "late" ? "milliseconds" : workload eq "accuracy" ? "passes" : \
	workload eq "fault" ? "page faults per second" : workload eq "hold" || workload eq "pagein" ? "microseconds" : \
	"nanoseconds")." (log scale)" textcolor "#333333"
set logscale y
set yrange [0.1:*]
set format y "%g"
set ytics nomirror textcolor "#333333"
set grid ytics linetype 1 linecolor "#e4e4e4"
set bmargin 3.6
set border 3 linecolor "#888888"
set key top right horizontal samplen 1 spacing 1.2
set style fill solid 1 noborder
set offsets graph 0, graph 0, graph 0.12, graph 0

label(y) = y >= 100 ? sprintf("%.0f", y) : y >= 10 ? sprintf("%.1f", y) : sprintf("%.2f", y)

# The bars of a group, from left to right.
array place[4] = ["host", "host", "guest", "guest"]
array mapping[4] = ["4k", "thp", "4k", "thp"]
array name[4] = ["4 KiB pages", "huge pages", "guest, 4 KiB pages", "guest, huge pages"]
array colour[4] = ["#3b6fb6", "#e08a2e", "#9bb8dd", "#f2c592"]
first = measured("host") ? 1 : 3
last = measured("guest") ? 4 : 2
width = 0.8 / (last - first + 1)
set boxwidth width * 0.9
at(i) = (i - (first + last) / 2.0) * width

plot for [i=first:last] bars(place[i], mapping[i]) using ($1 + at(i)):2 with boxes linecolor rgb colour[i] title name[i], \
     for [i=first:last] bars(place[i], mapping[i]) using ($1 + at(i)):2:(label($2)) with labels offset 0,0.7 font ",12" notitle
