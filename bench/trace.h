/* SPDX-License-Identifier: GPL-2.0 */
/* A trace of what the kernel does: one at a time. */
#ifndef KSM_DIRTY_BENCH_TRACE_H
#define KSM_DIRTY_BENCH_TRACE_H

#include <sys/types.h>

void trace_function(const char *function);
void trace_events(const char *system, pid_t task);
double *trace_spans(const char *from, const char *to, unsigned int *count);
double tsc_khz(void);
void trace_stop(void);

#endif
