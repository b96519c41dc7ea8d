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

function tables(w, p, text,    i) {
	heading(text ": ksmd CPU time per page and pass")
	lines("", w, p, "ksmd_ns_per_page", "ns")
	line("  most passes", w, p, "dirty", "ksmd_between_ns_per_page", "ns")
	line("  one that looks at everything", w, p, "dirty", "ksmd_look_ns_per_page", "ns")
	line("PAGEMAP_SCAN over the same pages", w, p, "off", "pagemap_scan_ns_per_page", "ns")

	if (have(w, p, "4k", "stock", "full_scans_per_s") || have(w, p, "thp", "stock", "full_scans_per_s"))
		heading(text ": passes per second, ksmd at full speed")
	lines("", w, p, "full_scans_per_s")
	lines("the writer's sweeps, ", w, p, "writer_sweeps_per_s")

	heading(text ": beside it")
	line("pages skipped by smart_scan=1", w, p, "smart", "skipped_percent", "%")
	line("pages skipped by dirty_scan=1", w, p, "dirty", "skipped_percent", "%")
	lines("ksmd's memory per page, ", w, p, "rmap_bytes_per_page", "B")
	line("the writer's speed, KSM off twice", w, p, "off", "writer_percent_of_off", "%")
	for (i = 1; i <= 3; i++)
		line("  with a pass in 200 ms, " name[merging[i]], w, p, merging[i], "writer_percent_of_off", "%")
	for (i = 1; i <= 3; i++)
		line("a pass costs it, per page, " name[merging[i]], w, p, merging[i], "writer_ns_per_page", "ns")
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
			check(page[x] ", writer's speed, a pass in 200 ms", number(r) "%", ">= 98%", "-",
			      verdict(r >= 98) sprintf(" (KSM off: samples differ by %.0f%%)", spread[w, p, x, "off", "writer_percent_of_off"]))
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
function passes(w, p, m, v, suffix,    k) {
	k = "passes_to_99_percent" suffix
	if (!have(w, p, m, v, k))
		return "-"
	return (get(w, p, m, v, "merged_percent" suffix) < 99 ? "> " : "") sprintf("%g", get(w, p, m, v, k))
}

function passes_lines(w, p, suffix,    i, v) {
	for (i = 1; i <= 3; i++) {
		v = merging[i]
		if (have(w, p, "4k", v, "passes_to_99_percent" suffix) || have(w, p, "thp", v, "passes_to_99_percent" suffix))
			printf "  %-42s %16s %16s\n", name[v], passes(w, p, "4k", v, suffix), passes(w, p, "thp", v, suffix)
	}
}

function late_tables(p,    w, k, m, x, r) {
	w = "late"
	heading((p == "guest" ? "A guest" : "A process") " arrives with the contents of another: passes until 99 % is merged")
	passes_lines(w, p, "")
	heading("ksmd CPU time until then")
	lines("", w, p, "ksmd_ms_to_99_percent", "ms")
	heading("Merged by then")
	lines("", w, p, "merged_percent", "%")
	checks_heading()
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		if (!have(w, p, x, "dirty", "merged_percent") || !have(w, p, x, "stock", "merged_percent"))
			continue
		k = "passes_to_99_percent"
		r = get(w, p, x, "stock", k)
		check(page[x] ", passes", passes(w, p, x, "dirty", ""), "<= " r, "-",
		      verdict(get(w, p, x, "dirty", k) <= r && get(w, p, x, "dirty", "merged_percent") >= 99))
		k = "ksmd_ms_to_99_percent"
		r = get(w, p, x, "dirty", k) / get(w, p, x, "stock", k)
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
	lines("general_profit, ", w, "host", "general_profit_kib_" c, "KiB")
	printf "  passes until it is 99 %% of what stock merges\n"
	passes_lines(w, "host", "_" c)
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
		check(page[x] ", passes", passes(w, "host", x, "dirty", "_" c), "<= " s, "<= " s + 1, verdict(r <= s, r <= s + 1))
	}
}

function accuracy_tables(    w, p, i, m, x, r) {
	w = "accuracy"
	for (i = 1; i <= 2; i++) {
		p = i == 1 ? "host" : "guest"
		if (!have(w, p, "4k", "dirty", "false_clean_percent") && !have(w, p, "thp", "dirty", "false_clean_percent"))
			continue
		heading((i == 1 ? "A process" : "A guest") ": what the dirty bits tell, dirty_scan=1")
		line("written, and taken for clean", w, p, "dirty", "false_clean_percent", "%")
		line("not written, and taken for dirty", w, p, "dirty", "false_dirty_percent", "%")
	}
	heading("Equal pages fall quiet: passes from the last write until 99 % is merged")
	passes_lines(w, "host", "")
	checks_heading()
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		if (!have(w, "host", x, "dirty", "passes_to_99_percent") || !have(w, "host", x, "stock", "passes_to_99_percent"))
			continue
		r = get(w, "host", x, "stock", "passes_to_99_percent")
		check(page[x] ", passes", passes(w, "host", x, "dirty", ""), "<= " r, "-",
		      verdict(get(w, "host", x, "dirty", "passes_to_99_percent") <= r && get(w, "host", x, "dirty", "merged_percent") >= 99))
	}
}

function fault_tables(    w, p, i, j, k, m, x, r) {
	w = "fault"
	for (i = 1; i <= 2; i++) {
		p = i == 1 ? "host" : "guest"
		for (j = 1; j <= 2; j++) {
			k = "_" j "_threads"
			if (!have(w, p, "4k", "off", "faults_per_s" k) && !have(w, p, "thp", "off", "faults_per_s" k))
				continue
			heading("Page faults per second beside a ksmd that sleeps 20 ms between passes: " j (i == 1 ? " thread" : " vCPU") (j > 1 ? "s" : ""))
			lines("", w, p, "faults_per_s" k)
			line("of KSM off, in the same second, stock", w, p, "stock", "faults_percent_of_off" k, "%")
			line("of KSM off, in the same second, dirty", w, p, "dirty", "faults_percent_of_off" k, "%")
		}
	}
	checks_heading()
	for (i = 1; i <= 2; i++)
		for (j = 1; j <= 2; j++)
			for (m = 0; m < 2; m++) {
				p = i == 1 ? "host" : "guest"
				x = m ? "thp" : "4k"
				k = "faults_per_s_" j "_threads"
				if (!have(w, p, x, "dirty", k) || !have(w, p, x, "stock", k))
					continue
				r = 100 * get(w, p, x, "dirty", k) / get(w, p, x, "stock", k)
				check(page[x] ", " p ", " j (i == 1 ? " thread" : " vCPU") ", against smart_scan=0", number(r) "%", ">= 98%", "-", verdict(r >= 98))
			}
}

function hold_tables(    w, p, m, x, r) {
	w = "hold"
	p = "host"
	heading("ksmd at full speed holds mmap_lock")
	lines("99.9 %, ", w, p, "mmap_lock_p999_us", "us")
	lines("longest, ", w, p, "mmap_lock_max_us", "us")
	heading("A window's harvest, most of it under the page table lock")
	line("median", w, p, "dirty", "window_p50_us", "us")
	line("longest", w, p, "dirty", "window_max_us", "us")
	heading("mmap() of a process that writes, maps and faults beside it")
	lines("median, ", w, p, "mmap_p50_us", "us")
	lines("99.9 %, ", w, p, "mmap_p999_us", "us")
	heading("Its page faults")
	lines("median, ", w, p, "fault_p50_us", "us")
	lines("99.9 %, ", w, p, "fault_p999_us", "us")
	checks_heading()
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		if (!have(w, p, x, "dirty", "mmap_lock_p999_us"))
			continue
		r = get(w, p, x, "dirty", "mmap_lock_p999_us")
		check(page[x] ", mmap_lock held, 99.9 %", number(r) " us", "<= 1000", "-", verdict(r <= 1000))
	}
}

function pagein_tables(    w, p, m, x, k, r) {
	w = "pagein"
	p = "host"
	heading("Swap beside ksmd at full speed: page-out, per page")
	lines("", w, p, "pageout_us_per_page", "us")
	lines("went out, ", w, p, "paged_out_percent", "%")
	heading("Page-in, per page")
	lines("", w, p, "pagein_us_per_page", "us")
	heading("Read again after others needed the memory, per page that was pushed out")
	lines("", w, p, "reread_us_per_page", "us")
	lines("were pushed out, ", w, p, "pushed_out_percent", "%")
	checks_heading()
	for (m = 0; m < 2; m++)
		for (k = 0; k < 2; k++) {
			x = m ? "thp" : "4k"
			if (!have(w, p, x, "dirty", "pageout_us_per_page") || !have(w, p, x, "stock", "pageout_us_per_page"))
				continue
			r = get(w, p, x, "dirty", k ? "pagein_us_per_page" : "pageout_us_per_page") / get(w, p, x, "stock", k ? "pagein_us_per_page" : "pageout_us_per_page")
			check(page[x] (k ? ", page-in" : ", page-out") " against smart_scan=0", number(r) "x", "<= 1.02x", "-", verdict(r <= 1.02))
		}
}

# The functions in the order of what they cost in stock, then in dirty_scan.
function impact_tables(p,    m, x, key, f, n, names, i, j, t, shown) {
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		n = 0
		split("", names)
		split("", shown)
		for (key in value) {
			split(key, f, SUBSEP)
			if (f[1] != "impact" || f[2] != p || f[3] != x || f[5] !~ /^ns_per_page_in_/ || f[5] in shown)
				continue
			shown[f[5]] = 1
			names[++n] = f[5]
		}
		if (!n)
			continue
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && impact_order(p, x, names[j]) > impact_order(p, x, names[j - 1]); j--) {
				t = names[j]
				names[j] = names[j - 1]
				names[j - 1] = t
			}
		printf "\n%s\n", (p == "guest" ? "A guest's volatile memory, " : "Volatile memory, ") page[x] ": ns per page and pass in ksmd's functions"
		printf "  %-42s %10s %10s %10s %12s\n", "", "stock", "smart", "dirty", "stock/dirty"
		for (i = 1; i <= n; i++)
			impact_line(p, x, substr(names[i], length("ns_per_page_in_") + 1), names[i])
		impact_line(p, x, "all", "ksmd_ns_per_page")
	}
}

function impact_order(p, x, k) {
	return get("impact", p, x, "stock", k) * 1e6 + get("impact", p, x, "dirty", k)
}

function impact_line(p, x, label, k,    i, v, text) {
	printf "  %-42s", label
	for (i = 1; i <= 3; i++) {
		v = merging[i]
		printf " %10s", have("impact", p, x, v, k) ? number(get("impact", p, x, v, k)) : "-"
	}
	v = get("impact", p, x, "dirty", k) + 0
	text = v ? number(get("impact", p, x, "stock", k) / v) "x" : "-"
	printf " %12s\n", text
}

function parity_tables() {
	parity_case("hotsub", "One hot page in 512 equal ones")
	parity_case("among", "Equal pages among hot ones")
	parity_case("alternate", "Equal pages written every other time")
	parity_case("same", "Equal pages rewritten with the same bytes")
	parity_case("zero", "Zero pages with use_zero_pages=1")
	parity_case("forked", "Equal pages that a child has, too, some of them hot")
	parity_case("swapped", "Equal pages out to swap and in again")
	parity_case("folios", "Equal pages in folios of 64 KiB with a hot one each")
}

function mixed_tables(p,    w, k, m, x, i, t) {
	w = "mixed"
	heading((p == "guest" ? "A guest's memory, " : "") "90 % quiet, 9 % volatile, 1 % becomes equal: ksmd CPU time per page and pass")
	lines("", w, p, "ksmd_ns_per_page", "ns")
	line("  most passes", w, p, "dirty", "ksmd_between_ns_per_page", "ns")
	line("  one that looks at everything", w, p, "dirty", "ksmd_look_ns_per_page", "ns")
	heading("Passes until what became equal is merged; it stays for 8")
	passes_lines(w, p, "")
	lines("merged when it goes, ", w, p, "merged_percent", "%")
	checks_heading()
	k = "ksmd_ns_per_page"
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		if (!have(w, p, x, "dirty", k) || !have(w, p, x, "stock", k))
			continue
		check(page[x] ", passes", passes(w, p, x, "dirty", ""), "<= " passes(w, p, x, "stock", ""), "-",
		      verdict(get(w, p, x, "dirty", "passes_to_99_percent") <= get(w, p, x, "stock", "passes_to_99_percent")))
	}
	for (i = 1; i <= targets; i++) {
		split(target[i], t, " ")
		if (t[1] == w && t[2] == p && have(w, p, t[3], t[4], k) && have(w, p, t[3], "dirty", k))
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
	heading("Scale: ksmd CPU time per pass")
	lines("32 TiB with 64 pages, ", "scale", "host", "ksmd_ms_per_pass_sparse", "ms")
	lines("20,000 vmas of a page, ", "scale", "host", "ksmd_ms_per_pass_vmas", "ms")
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

function latency_tables(    w, p, m, x, k, r) {
	k = "write_p999_percent_of_off"
	w = "latency"
	p = "guest"
	heading("A guest's writes, from one to the next")
	lines("median, ", w, p, "write_p50_ns", "ns")
	lines("99 %, ", w, p, "write_p99_ns", "ns")
	lines("99.9 %, ", w, p, "write_p999_ns", "ns")
	line("99.9 %, of KSM off just before, stock", w, p, "stock", "write_p999_percent_of_off", "%")
	line("99.9 %, of KSM off just before, dirty", w, p, "dirty", "write_p999_percent_of_off", "%")
	heading("A guest beside ksmd")
	lines("vCPU exits per second, ", w, p, "vcpu_exits_per_s")
	line("mmu_lock held for 2 MiB, and traced", w, p, "dirty", "mmu_lock_read_ns", "ns")
	checks_heading()
	for (m = 0; m < 2; m++) {
		x = m ? "thp" : "4k"
		if (!have(w, p, x, "dirty", k) || !have(w, p, x, "stock", k))
			continue
		r = get(w, p, x, "dirty", k)
		check(page[x] ", p99.9 against KSM off", number(r) "%", "<= 105%", "-", verdict(r <= 105))
		r = 100 * r / get(w, p, x, "stock", k)
		check(page[x] ", p99.9 against smart_scan=0", number(r) "%", "<= 100%", "-", verdict(r <= 100))
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
		late_tables("host")
	if (("late", "guest") in seen)
		late_tables("guest")
	if (("parity", "host") in seen)
		parity_tables()
	if (("mixed", "host") in seen)
		mixed_tables("host")
	if (("mixed", "guest") in seen)
		mixed_tables("guest")
	if (("accuracy", "host") in seen || ("accuracy", "guest") in seen)
		accuracy_tables()
	if (("fault", "host") in seen || ("fault", "guest") in seen)
		fault_tables()
	if (("hold", "host") in seen)
		hold_tables()
	if (("pagein", "host") in seen)
		pagein_tables()
	if (("impact", "host") in seen)
		impact_tables("host")
	if (("impact", "guest") in seen)
		impact_tables("guest")
	if (("scale", "host") in seen)
		scale_tables()
}
