# SPDX-License-Identifier: GPL-2.0
# Prints the tables from the targets file and results.csv, in that order.
# -v title=TEXT says where the numbers come from.

function have(w, m, v, k) { return (w, m, v, k) in value }
function get(w, m, v, k) { return value[w, m, v, k] }

# Three significant digits, no exponent.
function number(x) {
	return x >= 100 ? sprintf("%.0f", x) : x >= 10 ? sprintf("%.1f", x) : sprintf("%.2f", x)
}

function cell(w, m, v, k, unit) {
	if (!have(w, m, v, k))
		return "-"
	return sprintf("%s%s (%.0f%%)", number(get(w, m, v, k)), unit ? " " unit : "", spread[w, m, v, k])
}

function line(label, w, v, k, unit) {
	if (have(w, "4k", v, k) || have(w, "thp", v, k))
		printf "  %-42s %16s %16s\n", label, cell(w, "4k", v, k, unit), cell(w, "thp", v, k, unit)
}

function verdict(ok, floor_ok) {
	return ok ? "met" : floor_ok ? "missed, floor met" : "MISSED"
}

function check(label, measured, target, floor, word) {
	printf "  %-42s %9s %9s %9s  %s\n", label, measured, target, floor, word
}

function heading(text) {
	printf "\n%s\n", text
	printf "  %-42s %16s %16s\n", "", "4 KiB pages", "huge pages"
}

function checks_heading() {
	printf "\n  %-42s %9s %9s %9s\n", "", "measured", "target", "floor"
}

function tables(w, name,    k) {
	heading(name ": ksmd CPU time per page and pass")
	k = "ksmd_ns_per_page"
	line("stock (smart_scan=0)", w, "stock", k, "ns")
	line("smart_scan=1", w, "smart", k, "ns")
	line("dirty_scan=1", w, "dirty", k, "ns")
	line("PAGEMAP_SCAN over the same pages", w, "off", "pagemap_scan_ns_per_page", "ns")

	heading(name ": passes per second, ksmd at full speed")
	k = "full_scans_per_s"
	line("stock (smart_scan=0)", w, "stock", k)
	line("smart_scan=1", w, "smart", k)
	line("dirty_scan=1", w, "dirty", k)
	k = "writer_sweeps_per_s"
	line("the writer's sweeps beside stock", w, "stock", k)
	line("the writer's sweeps beside smart_scan=1", w, "smart", k)
	line("the writer's sweeps beside dirty_scan=1", w, "dirty", k)

	heading(name ": beside it")
	line("pages skipped by smart_scan=1", w, "smart", "skipped_percent", "%")
	line("pages skipped by dirty_scan=1", w, "dirty", "skipped_percent", "%")
	k = "rmap_bytes_per_page"
	line("ksmd's memory per page, stock", w, "stock", k, "B")
	line("ksmd's memory per page, smart_scan=1", w, "smart", k, "B")
	line("ksmd's memory per page, dirty_scan=1", w, "dirty", k, "B")
	k = "writer_percent_of_off"
	line("writer's speed against KSM off, stock", w, "stock", k, "%")
	line("writer's speed against KSM off, smart_scan=1", w, "smart", k, "%")
	line("writer's speed against KSM off, dirty_scan=1", w, "dirty", k, "%")
}

function checks(w,    i, t, r, rival, k, m, x, shown) {
	k = "ksmd_ns_per_page"
	for (i = 1; i <= targets; i++) {
		split(target[i], t, " ")
		if (t[1] != w || !have(w, t[2], t[3], k) || !have(w, t[2], "dirty", k))
			continue
		if (!shown++)
			checks_heading()
		rival = t[3] == "stock" ? "smart_scan=0" : "smart_scan=1"
		r = get(w, t[2], t[3], k) / get(w, t[2], "dirty", k)
		check(page[t[2]] ", cost against " rival, number(r) "x", t[4] "x", t[5] "x",
		      verdict(r >= t[4], r >= t[5]))
	}
	if (w != "volatile")
		return
	if (have(w, "4k", "dirty", k) && have(w, "4k", "off", "pagemap_scan_ns_per_page")) {
		r = get(w, "4k", "dirty", k) / get(w, "4k", "off", "pagemap_scan_ns_per_page")
		check("4 KiB pages, time against PAGEMAP_SCAN", number(r) "x", "<= 0.7x", "-", verdict(r <= 0.7))
	}
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		if (have(w, x, "dirty", "writer_percent_of_off")) {
			r = get(w, x, "dirty", "writer_percent_of_off")
			check(page[x] ", writer's speed against KSM off", number(r) "%", ">= 98%", "-",
			      verdict(r >= 98) sprintf(" (samples differ by %.0f%%)", spread[w, x, "dirty", "writer_percent_of_off"]))
		}
	}
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		if (have(w, x, "dirty", "full_scans_per_s") && have(w, x, "stock", "full_scans_per_s")) {
			r = get(w, x, "dirty", "full_scans_per_s") / get(w, x, "stock", "full_scans_per_s")
			check(page[x] ", passes/s against smart_scan=0", number(r) "x", m ? "16x" : "8x", "-",
			      verdict(r >= (m ? 16 : 8)))
		}
	}
}

function scale_tables(    m, x, small, large, r) {
	heading("Scale, volatile memory: ksmd CPU time per page and pass, dirty_scan=1")
	small = "ksmd_ns_per_page_512_mib"
	large = "ksmd_ns_per_page_2048_mib"
	line("512 MiB (131072 pages)", "scale", "dirty", small, "ns")
	line("2048 MiB (524288 pages)", "scale", "dirty", large, "ns")
	checks_heading()
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		if (!have("scale", x, "dirty", small) || !have("scale", x, "dirty", large))
			continue
		r = get("scale", x, "dirty", large) / get("scale", x, "dirty", small)
		# Flat either way: a page dearer in little memory counts as well.
		check(page[x] ", larger against smaller of the two", number(r < 1 ? 1 / r : r) "x",
		      "<= 1.2x", "-", verdict(r <= 1.2 && r >= 1 / 1.2))
	}
}

BEGIN {
	FS = ","
	page["4k"] = "4 KiB pages"
	page["thp"] = "huge pages"
}

/^#/ || /^workload,/ { next }
NF == 1 { target[++targets] = $0; next }
{
	value[$1, $3, $4, $5] = $6
	spread[$1, $3, $4, $5] = $8
	seen[$1] = 1
}

END {
	print title
	print "In brackets: largest minus smallest sample, in percent of the median."
	if ("volatile" in seen) {
		tables("volatile", "Volatile memory")
		checks("volatile")
	}
	if ("static" in seen) {
		tables("static", "Unchanging memory")
		checks("static")
	}
	if ("scale" in seen)
		scale_tables()
}
