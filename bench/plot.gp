# SPDX-License-Identifier: GPL-2.0
# Draws ksmd's cost per page from results.csv, on a log scale.
# Variables: csv, workload, svg.

set datafile separator ","
set terminal svg size 760,440 font "Helvetica,13" background "#ffffff"
set output svg

# "x y" for each bar of one mapping, and of the variants in the order drawn.
metric = workload eq "scale" ? "ksmd_ns_per_page_" : "ksmd_ns_per_page"
bars(mapping) = sprintf("< awk -F, -v OFS=, '$1 == \"%s\" && $3 == \"%s\" && index($5, \"%s\") == 1 { \
	x = $1 == \"scale\" ? ($5 ~ /_512_/ ? 0 : 1) : $4 == \"stock\" ? 0 : $4 == \"smart\" ? 1 : 2; \
	print x, $6, $8 }' '%s'", workload, mapping, metric, csv)

title = workload eq "volatile" ? "Memory rewritten between passes" : \
	workload eq "static" ? "Memory that does not change" : \
	"Rewritten memory, dirty\\_scan=1, by size"
set title "{/:Bold ".title."}\nksmd CPU time per page and pass" offset 0,-0.2

if (workload eq "scale") {
	set xtics ("512 MiB" 0, "2048 MiB" 1)
	set xrange [-0.6:1.6]
} else {
	set xtics ("stock\n(smart\\_scan=0)" 0, "smart\\_scan=1" 1, "dirty\\_scan=1" 2)
	set xrange [-0.6:2.6]
}
set xtics scale 0 textcolor "#333333"
set ylabel "nanoseconds (log scale)" textcolor "#333333"
set logscale y
set yrange [0.1:*]
set format y "%g"
set ytics nomirror textcolor "#333333"
set grid ytics linetype 1 linecolor "#e4e4e4"
set bmargin 3.6
set border 3 linecolor "#888888"
set key top right horizontal samplen 1 spacing 1.2
set boxwidth 0.34
set style fill solid 1 noborder
set offsets graph 0, graph 0, graph 0.12, graph 0

label(y) = y >= 100 ? sprintf("%.0f", y) : y >= 10 ? sprintf("%.1f", y) : sprintf("%.2f", y)

plot bars("4k") using ($1 - 0.19):2 with boxes linecolor "#3b6fb6" title "4 KiB pages", \
     bars("thp") using ($1 + 0.19):2 with boxes linecolor "#e08a2e" title "huge pages", \
     bars("4k") using ($1 - 0.19):2:(label($2)) with labels offset 0,0.7 font ",12" notitle, \
     bars("thp") using ($1 + 0.19):2:(label($2)) with labels offset 0,0.7 font ",12" notitle
