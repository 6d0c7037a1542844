/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_INCLUDE_ABI_H
#define PROFILE_INCLUDE_ABI_H

/*
 * The layout of an export in the memory of a guest. A tool on the host finds struct profile_export
 * by the symbol `profile_export` of the kernel; kernel/profile/formats.md describes the text in the
 * ranges. All numbers are little-endian.
 *
 * Versions: a change that old tools would misread gets a new PROFILE_EXPORT_VERSION. A tool refuses
 * a version that it does not know. Keys and files may be added to the text at any time; a tool
 * ignores those that it does not know.
 */

#include <stdint.h>

#define PROFILE_EXPORT_MAGIC	   "LEGOPROF" /* 8 bytes, without the NUL */
#define PROFILE_EXPORT_VERSION	   1
#define PROFILE_EXPORT_RANGE_BYTES (1u << 20)
#define PROFILE_EXPORT_MAX_RANGES  512 /* a tool needs no maximum */

enum profile_export_state {
	PROFILE_EXPORT_NONE,
	PROFILE_EXPORT_WRITING, /* also when the kernel died while it wrote */
	PROFILE_EXPORT_COMPLETE,
};

struct profile_export {
	char magic[8];
	uint32_t version;
	uint32_t state;	    /* enum profile_export_state */
	uint32_t number;    /* of the snapshot; the first one is 1 */
	uint32_t nr_ranges; /* of PROFILE_EXPORT_RANGE_BYTES each */
	uint64_t bytes;	    /* of text, from the start of the first range on */
	uint64_t ranges[PROFILE_EXPORT_MAX_RANGES]; /* physical addresses; nr_ranges are used */
};

/*
 * A page of a CPU's ring of events, as in `data` of trace_pages.json. Records follow this head. A
 * record is a head of 8 bytes, with its kind, and its content, a multiple of 8 bytes. The content
 * of an event is the same as in Linux's rings; the offsets in the event's format text count from
 * its start.
 */
#define PROFILE_TRACE_PAGE_BYTES 4096
struct profile_trace_page {
	uint64_t cycles; /* TSC of the page's first event */
	uint64_t first;	 /* number of that event; all events of a CPU count, lost ones, too */
};

/* The head of a record: bits 0 to 31 are the low half of the TSC. */
#define PROFILE_TRACE_BYTES_SHIFT 32 /* 16 bits: bytes of the record, with its head */
#define PROFILE_TRACE_KIND_SHIFT  48 /* 16 bits: enum profile_trace_kind */

/*
 * The upper half of the TSC is that of the latest extension in the page, or else of the page head.
 */
enum profile_trace_kind {
	PROFILE_TRACE_EVENT,	 /* content: struct profile_trace_event, then its fields */
	PROFILE_TRACE_PADDING,	 /* to the end of the page; content: anything */
	PROFILE_TRACE_EXTENSION, /* content: the whole TSC of the next record */
};

/* The common fields of all events, as Linux has them. */
struct profile_trace_event {
	uint16_t type;	       /* the event's ID */
	uint8_t flags;	       /* PROFILE_TRACE_* below */
	uint8_t preempt_count; /* always 0 */
	int32_t pid;	       /* the thread; 0: idle */
};
#define PROFILE_TRACE_IRQS_OFF 0x01
#define PROFILE_TRACE_HARDIRQ  0x08
#define PROFILE_TRACE_NMI      0x40

#endif
