/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the selftests share: KSM's files, passes of ksmd one at a time, memory
 * to scan, modules, tracing.  What cannot be done fails the program at once.
 *
 * A program starts with ksm_setup(), which finds the module loaded, stops ksmd,
 * and puts all settings back when the program ends.
 */
#ifndef _KSM_DIRTY_UTIL_H
#define _KSM_DIRTY_UTIL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "kselftest.h"

#define PAGE 4096UL
#define HUGE (2UL << 20)
#define HUGE_PAGES (HUGE / PAGE)

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define KSM_DIR "/sys/kernel/mm/ksm"

/* Files and settings */
bool exists(const char *path);
void write_file(const char *path, const char *text);
int try_write_file(const char *path, const char *text);
size_t read_file(const char *path, char *buf, size_t size);
uint64_t file_value(const char *path, const char *key);
uint64_t ksm_get(const char *name);
void ksm_set(const char *name, uint64_t value);
uint64_t ksm_stat(const char *name);

/* ksmd */
void ksm_setup(void);
void ksm_setup_without_module(void);
void ksm_pass(unsigned int passes);
void ksm_full_speed(unsigned int pages_to_scan);
void ksm_stop(void);
uint64_t ksmd_ns(void);
void ksmd_pin(int cpu);

/* Memory */
char *map_pages(size_t pages, bool huge);
void need_huge(const char *addr, size_t pages);
void set_word(char *addr, size_t page, uint64_t value);
uint64_t get_word(const char *addr, size_t page);
void fill_page(char *addr, size_t page, uint64_t value);
bool page_holds(const char *addr, size_t page, uint64_t value);
void fill_pages(char *addr, size_t pages, uint64_t seed);
size_t wrong_pages(const char *addr, size_t pages, uint64_t seed);
void rewrite_pages(char *addr, size_t pages, uint64_t value);
void advise(char *addr, size_t pages, int advice);
uint64_t pagemap_entry(const char *addr, size_t page);
bool page_flag(const char *addr, size_t page, unsigned int flag);

/* Modules and symbols, by name */
int module_load(const char *name, const char *params);
int module_unload(const char *name);
void need_module(const char *name);
uint64_t kernel_symbol(const char *name);

/* Tracing */
void count_checksums(void);
uint64_t checksums(void);
void trace_harvests(void);
uint64_t traced_harvests(const char *addr, size_t pages, const char *field);

/* Time */
double now(void);
void pin_to_cpu(int cpu);

/* What a check compares, for the message: one line in TAP's comment form */
#define check(ok, ...) ksft_test_result((ok), __VA_ARGS__)

#endif /* _KSM_DIRTY_UTIL_H */
