/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ksm_dirty

#if !defined(_KSM_DIRTY_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _KSM_DIRTY_TRACE_H

#include <linux/tracepoint.h>

/**
 * ksm_dirty_harvest - one window was harvested
 * @mm: the address space
 * @start: first address of the window
 * @pages: pages that the window covers
 * @huge: whether one huge page maps it
 * @present: pages that are mapped and for ksmd to look at
 * @dirty: those of them that were written since the last pass
 * @unknown: those of the others for which somebody cannot tell
 */
TRACE_EVENT(ksm_dirty_harvest,

	TP_PROTO(struct mm_struct *mm, unsigned long start, unsigned int pages,
		 bool huge, unsigned int present, unsigned int dirty,
		 unsigned int unknown),

	TP_ARGS(mm, start, pages, huge, present, dirty, unknown),

	TP_STRUCT__entry(
		__field(void *, mm)
		__field(unsigned long, start)
		__field(unsigned int, pages)
		__field(bool, huge)
		__field(unsigned int, present)
		__field(unsigned int, dirty)
		__field(unsigned int, unknown)
	),

	TP_fast_assign(
		__entry->mm = mm;
		__entry->start = start;
		__entry->pages = pages;
		__entry->huge = huge;
		__entry->present = present;
		__entry->dirty = dirty;
		__entry->unknown = unknown;
	),

	TP_printk("mm %p start 0x%lx pages %u huge %d present %u dirty %u unknown %u clean %u",
		  __entry->mm, __entry->start, __entry->pages, __entry->huge,
		  __entry->present, __entry->dirty, __entry->unknown,
		  __entry->present - __entry->dirty - __entry->unknown)
);

#endif /* _KSM_DIRTY_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
