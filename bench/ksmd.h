/* SPDX-License-Identifier: GPL-2.0 */
/*
 * KSM's files and ksmd: what the variants of KSM are, and how ksmd is made to go
 * through one pass at a time.
 */
#ifndef KSM_DIRTY_BENCH_KSMD_H
#define KSM_DIRTY_BENCH_KSMD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define KSM "/sys/kernel/mm/ksm/"
#define KSMD_CPU 0
#define WRITER_CPU 1

/* A pass, or a sweep of the writer, that takes longer than this is stuck. */
#define STUCK_SECONDS 120

/* ksmd between two steps: asleep, as long as nobody writes another value. */
#define STEP_SLEEP_MS 3600000
/* ksmd while a guest's latency is measured: seven passes a second. */
#define PACED_SLEEP_MS 150

/* How often dirty_scan looks at what it passes over else */
#define PROBE_PASSES "dirty_scan_probe_passes"
#define RECHECK_PASSES "dirty_scan_recheck_passes"

enum variant { OFF, STOCK, SMART, DIRTY, VARIANTS };

/**
 * struct variant_info - how a variant is set up and how long it takes to show
 * @warm_up: passes before the first that counts
 * @cycle: passes that make one sample.  smart_scan skips a page up to 8 times,
 *	then scans it; dirty_scan's turn is too long for that, see looks_seldom()
 */
struct variant_info {
	const char *name;
	unsigned int run;
	unsigned int smart_scan;
	unsigned int dirty_scan;
	unsigned int warm_up;
	unsigned int cycle;
};

extern const struct variant_info variants[VARIANTS];

extern volatile sig_atomic_t interrupted;
void nap(double seconds);

bool slurp(const char *path, char *buffer, size_t size);
bool put(const char *path, const char *text);
bool ksm_has(const char *name);
bool ksm_put(const char *name, const char *text);
uint64_t ksm_read(const char *name);
uint64_t ksm_count(const char *name);
uint64_t process_stat(pid_t pid, const char *name);
void ksm_write(const char *name, uint64_t value);
void ksm_write_if(const char *name, uint64_t value);
uint64_t rmap_item_bytes(void);
uint64_t ksmd_runtime(void);
pid_t ksmd_pid(void);

void ksmd_take(void);
void ksmd_give_back(void);
uint64_t saved(const char *name);
void look_every(uint64_t probe_passes, uint64_t recheck_passes);
void ksmd_wake(void);
void ksmd_settle(void);
void ksmd_setup(const struct variant_info *v);
bool ksmd_step(uint64_t *ns);
void ksmd_reap(void);

#endif
