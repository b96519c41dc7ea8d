# SPDX-License-Identifier: GPL-2.0
# Prints the tables from the targets file and results.csv, in that order.
# -v title=TEXT says where the numbers come from.

# In all of these: w the workload, p the place (host, guest), m the mapping,
# v the variant, k the metric.
function have(w, p, m, v, k) { return (w, p, m, v, k) in value }
function get(w, p, m, v, k) { return value[w, p, m, v, k] }

# Three significant digits, no exponent.
function number(x) {
	return x >= 100 ? sprintf("%.0f", x) : x >= 10 ? sprintf("%.1f", x) : sprintf("%.2f", x)
}

function cell(w, p, m, v, k, unit) {
	if (!have(w, p, m, v, k))
		return "-"
	return sprintf("%s%s (%.0f%%)", number(get(w, p, m, v, k)), unit ? " " unit : "", spread[w, p, m, v, k])
}

function line(label, w, p, v, k, unit) {
	if (have(w, p, "4k", v, k) || have(w, p, "thp", v, k))
		printf "  %-42s %16s %16s\n", label, cell(w, p, "4k", v, k, unit), cell(w, p, "thp", v, k, unit)
}

# One line per variant, those that were measured.
function lines(label, w, p, k, unit,    i) {
	line(label "KSM off", w, p, "off", k, unit)
	for (i = 1; i <= 3; i++)
		line(label name[merging[i]], w, p, merging[i], k, unit)
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

function tables(w, p, name) {
	heading(name ": ksmd CPU time per page and pass")
	lines("", w, p, "ksmd_ns_per_page", "ns")
	line("  most passes", w, p, "dirty", "ksmd_between_ns_per_page", "ns")
	line("  one that looks at everything", w, p, "dirty", "ksmd_look_ns_per_page", "ns")
	line("PAGEMAP_SCAN over the same pages", w, p, "off", "pagemap_scan_ns_per_page", "ns")

	if (have(w, p, "4k", "stock", "full_scans_per_s") || have(w, p, "thp", "stock", "full_scans_per_s"))
		heading(name ": passes per second, ksmd at full speed")
	lines("", w, p, "full_scans_per_s")
	lines("the writer's sweeps, ", w, p, "writer_sweeps_per_s")

	heading(name ": beside it")
	line("pages skipped by smart_scan=1", w, p, "smart", "skipped_percent", "%")
	line("pages skipped by dirty_scan=1", w, p, "dirty", "skipped_percent", "%")
	lines("ksmd's memory per page, ", w, p, "rmap_bytes_per_page", "B")
	lines("writer vs KSM off, ", w, p, "writer_percent_of_off", "%")
}

# dirty_scan=1 against another variant: fields of targets are a factor to reach.
function check_cost(t,    r, rival) {
	rival = t[4] == "stock" ? "smart_scan=0" : "smart_scan=1"
	r = get(t[1], t[2], t[3], t[4], "ksmd_ns_per_page") / get(t[1], t[2], t[3], "dirty", "ksmd_ns_per_page")
	check(page[t[3]] ", cost against " rival, number(r) "x", t[5] "x", t[6] == "-" ? "-" : t[6] "x",
	      verdict(r >= t[5], t[6] != "-" && r >= t[6]))
}

function checks(w, p,    i, t, r, k, m, x, shown) {
	k = "ksmd_ns_per_page"
	for (i = 1; i <= targets; i++) {
		split(target[i], t, " ")
		if (t[1] != w || t[2] != p || !have(w, p, t[3], t[4], k) || !have(w, p, t[3], "dirty", k))
			continue
		if (!shown++)
			checks_heading()
		check_cost(t)
	}
	if (w != "volatile" || p != "host")
		return
	if (have(w, p, "4k", "dirty", k) && have(w, p, "4k", "off", "pagemap_scan_ns_per_page")) {
		r = get(w, p, "4k", "dirty", k) / get(w, p, "4k", "off", "pagemap_scan_ns_per_page")
		check("4 KiB pages, time against PAGEMAP_SCAN", number(r) "x", "<= 0.7x", "-", verdict(r <= 0.7))
	}
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		if (have(w, p, x, "dirty", "writer_percent_of_off")) {
			r = get(w, p, x, "dirty", "writer_percent_of_off")
			check(page[x] ", writer's speed against KSM off", number(r) "%", ">= 98%", "-",
			      verdict(r >= 98) sprintf(" (samples differ by %.0f%%)", spread[w, p, x, "dirty", "writer_percent_of_off"]))
		}
	}
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		if (have(w, p, x, "dirty", "full_scans_per_s") && have(w, p, x, "stock", "full_scans_per_s")) {
			r = get(w, p, x, "dirty", "full_scans_per_s") / get(w, p, x, "stock", "full_scans_per_s")
			check(page[x] ", passes/s against smart_scan=0", number(r) "x", m ? "16x" : "8x", "-",
			      verdict(r >= (m ? 16 : 8)))
		}
	}
}

# Merged memory is to cost no more than unique memory that does not change. Huge
# pages are none any more once they are merged.
function check_merged(    m, x, k, r) {
	k = "ksmd_ns_per_page"
	checks_heading()
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		if (!have("merged", "host", x, "dirty", k) || !have("static", "host", "4k", "dirty", k))
			continue
		r = get("merged", "host", x, "dirty", k) / get("static", "host", "4k", "dirty", k)
		check((m ? "once huge pages" : page[x]) ", against unmerged 4 KiB", number(r) "x", "<= 1x", "<= 1.2x", verdict(r <= 1, r <= 1.2))
	}
}

# Passes until something is merged; with > where it was not until the last.
function passes(w, m, v, suffix,    k) {
	k = "passes_to_99_percent" suffix
	if (!have(w, "host", m, v, k))
		return "-"
	return (get(w, "host", m, v, "merged_percent" suffix) < 99 ? "> " : "") sprintf("%g", get(w, "host", m, v, k))
}

function passes_lines(w, suffix,    i, v) {
	for (i = 1; i <= 3; i++) {
		v = merging[i]
		if (have(w, "host", "4k", v, "passes_to_99_percent" suffix) || have(w, "host", "thp", v, "passes_to_99_percent" suffix))
			printf "  %-42s %16s %16s\n", name[v], passes(w, "4k", v, suffix), passes(w, "thp", v, suffix)
	}
}

function late_tables(    w, k, m, x, r) {
	w = "late"
	heading("A process arrives with the contents of another: passes until 99 % is merged")
	passes_lines(w, "")
	heading("ksmd CPU time until then")
	lines("", w, "host", "ksmd_ms_to_99_percent", "ms")
	heading("Merged by then")
	lines("", w, "host", "merged_percent", "%")
	checks_heading()
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		if (!have(w, "host", x, "dirty", "merged_percent") || !have(w, "host", x, "stock", "merged_percent"))
			continue
		k = "passes_to_99_percent"
		r = get(w, "host", x, "stock", k)
		check(page[x] ", passes", passes(w, x, "dirty", ""), "<= " r, "-",
		      verdict(get(w, "host", x, "dirty", k) <= r && get(w, "host", x, "dirty", "merged_percent") >= 99))
		k = "ksmd_ms_to_99_percent"
		r = get(w, "host", x, "dirty", k) / get(w, "host", x, "stock", k)
		check(page[x] ", CPU time against smart_scan=0", number(r) "x", "<= 0.5x", "-", verdict(r <= 0.5))
	}
}

# What merges, and when, in one of the cases.
function parity_case(c, text,    w, m, x, i, v, shown, r, s) {
	w = "parity"
	for (m = 0; m < 2; m++)
		shown = shown || have(w, "host", m ? "thp" : "4k", "dirty", "merged_pages_" c)
	if (!shown)
		return
	heading(text ": pages merged after a pass")
	lines("", w, "host", "merged_pages_" c)
	lines("written since, ", w, "host", "merged_pages_held_" c)
	lines("pages_sharing, ", w, "host", "pages_sharing_" c)
	printf "  passes until it is 99 %% of what stock merges\n"
	passes_lines(w, "_" c)
	checks_heading()
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		if (!have(w, "host", x, "dirty", "merged_pages_" c) || !get(w, "host", x, "stock", "merged_pages_" c))
			continue
		r = 100 * get(w, "host", x, "dirty", "merged_pages_" c) / get(w, "host", x, "stock", "merged_pages_" c)
		check(page[x] ", merged against smart_scan=0", sprintf("%.1f%%", r), ">= 99%", "-", verdict(r >= 99))
		s = get(w, "host", x, "stock", "passes_to_99_percent_" c)
		r = get(w, "host", x, "dirty", "passes_to_99_percent_" c)
		if (get(w, "host", x, "dirty", "merged_percent_" c) < 99)
			r = s + 1000
		check(page[x] ", passes", passes(w, x, "dirty", "_" c), "<= " s, "<= " s + 1, verdict(r <= s, r <= s + 1))
	}
}

function parity_tables() {
	parity_case("hotsub", "One hot page in 512 equal ones")
	parity_case("among", "Equal pages among hot ones")
	parity_case("alternate", "Equal pages written every other time")
	parity_case("same", "Equal pages rewritten with the same bytes")
	parity_case("zero", "Zero pages with use_zero_pages=1")
}

function mixed_tables(    w, k, m, x, i, t) {
	w = "mixed"
	heading("90 % quiet, 9 % volatile, 1 % becomes equal: ksmd CPU time per page and pass")
	lines("", w, "host", "ksmd_ns_per_page", "ns")
	line("  most passes", w, "host", "dirty", "ksmd_between_ns_per_page", "ns")
	line("  one that looks at everything", w, "host", "dirty", "ksmd_look_ns_per_page", "ns")
	heading("Passes until what became equal is merged; it stays for 8")
	passes_lines(w, "")
	lines("merged when it goes, ", w, "host", "merged_percent", "%")
	checks_heading()
	k = "ksmd_ns_per_page"
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		if (!have(w, "host", x, "dirty", k) || !have(w, "host", x, "stock", k))
			continue
		check(page[x] ", passes", passes(w, x, "dirty", ""), "<= " passes(w, x, "stock", ""), "-",
		      verdict(get(w, "host", x, "dirty", "passes_to_99_percent") <= get(w, "host", x, "stock", "passes_to_99_percent")))
	}
	for (i = 1; i <= targets; i++) {
		split(target[i], t, " ")
		if (t[1] == w && have(w, "host", t[3], t[4], k) && have(w, "host", t[3], "dirty", k))
			check_cost(t)
	}
}

# Against the first of two sizes; flat: nor is it to be cheaper.
function check_growth(x, first, last, one, other, flat, label,    r) {
	one = first one last
	other = first other last
	if (!have("scale", "host", x, "dirty", one) || !have("scale", "host", x, "dirty", other))
		return
	r = get("scale", "host", x, "dirty", other) / get("scale", "host", x, "dirty", one)
	if (flat && r < 1)
		r = 1 / r
	check(page[x] ", " label, number(r) "x", "<= 1.2x", "-", verdict(r <= 1.2))
}

function scale_tables(    kind, i, j, m, x, n, size, first) {
	kind[1] = "volatile"
	kind[2] = "static"
	heading("Scale: ksmd CPU time per page and pass in most passes, dirty_scan=1")
	for (j = 1; j <= 2; j++) {
		first = "ksmd_between_ns_per_page_" kind[j] "_"
		n = split("128 512 2048", size, " ")
		for (i = 1; i <= n; i++)
			line(kind[j] ", " size[i] " MiB", "scale", "host", "dirty", first size[i] "_mib", "ns")
		n = split("1 16 64 256", size, " ")
		for (i = 1; i <= n; i++)
			line(kind[j] ", 128 MiB of " size[i] " processes", "scale", "host", "dirty", first size[i] "_processes", "ns")
	}
	checks_heading()
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		for (j = 1; j <= 2; j++) {
			first = "ksmd_between_ns_per_page_" kind[j] "_"
			check_growth(x, first, "_mib", 128, 2048, 0, kind[j] ", 2048 against 128 MiB")
			check_growth(x, first, "_mib", 512, 2048, 1, kind[j] ", 512 or 2048 MiB")
			check_growth(x, first, "_processes", 1, 16, 0, kind[j] ", 16 processes for 1")
			n = m ? 64 : 256
			check_growth(x, first, "_processes", 1, n, 0, kind[j] ", " n " processes for 1")
		}
	}
}

# A ratio of p99.9 to that of another variant.
function check_latency(x, other, name, limit,    k, r, s) {
	k = "write_p999_ns"
	if (!have("latency", "guest", x, "dirty", k) || !have("latency", "guest", x, other, k))
		return
	r = get("latency", "guest", x, "dirty", k) / get("latency", "guest", x, other, k)
	s = spread["latency", "guest", x, "dirty", k]
	if (spread["latency", "guest", x, other, k] > s)
		s = spread["latency", "guest", x, other, k]
	check(page[x] ", p99.9 against " name, number(r) "x", "<= " limit "x", "-",
	      verdict(r <= limit) sprintf(" (samples differ by %.0f%%)", s))
}

function latency_tables(    w, p, m, x) {
	w = "latency"
	p = "guest"
	heading("A guest's writes, from one to the next")
	lines("median, ", w, p, "write_p50_ns", "ns")
	lines("99 %, ", w, p, "write_p99_ns", "ns")
	lines("99.9 %, ", w, p, "write_p999_ns", "ns")
	heading("A guest beside ksmd")
	lines("vCPU exits per second, ", w, p, "vcpu_exits_per_s")
	line("mmu_lock held for 2 MiB, and traced", w, p, "dirty", "mmu_lock_read_ns", "ns")
	checks_heading()
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		check_latency(x, "stock", "smart_scan=0", 1)
		check_latency(x, "off", "KSM off", 1.05)
	}
}

BEGIN {
	FS = ","
	page["4k"] = "4 KiB pages"
	page["thp"] = "huge pages"
	split("stock smart dirty", merging, " ")
	name["stock"] = "stock (smart_scan=0)"
	name["smart"] = "smart_scan=1"
	name["dirty"] = "dirty_scan=1"
}

/^#/ || /^workload,/ { next }
NF == 1 { target[++targets] = $0; next }
{
	value[$1, $2, $3, $4, $5] = $6
	spread[$1, $2, $3, $4, $5] = $8
	seen[$1, $2] = 1
}

END {
	print title
	print "In brackets: largest minus smallest sample, in percent of the median."
	if (("volatile", "host") in seen) {
		tables("volatile", "host", "Volatile memory")
		checks("volatile", "host")
	}
	if (("volatile", "guest") in seen) {
		tables("volatile", "guest", "A guest's volatile memory")
		checks("volatile", "guest")
	}
	if (("latency", "guest") in seen)
		latency_tables()
	if (("static", "host") in seen) {
		tables("static", "host", "Unchanging memory")
		checks("static", "host")
	}
	if (("static", "guest") in seen) {
		tables("static", "guest", "A guest's unchanging memory")
		checks("static", "guest")
	}
	if (("merged", "host") in seen) {
		tables("merged", "host", "Merged memory")
		if (("static", "host") in seen)
			check_merged()
	}
	if (("late", "host") in seen)
		late_tables()
	if (("parity", "host") in seen)
		parity_tables()
	if (("mixed", "host") in seen)
		mixed_tables()
	if (("scale", "host") in seen)
		scale_tables()
}
