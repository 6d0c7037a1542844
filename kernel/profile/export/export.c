// SPDX-License-Identifier: BSD-2-Clause
/*
 * Exports: one snapshot of all tables, as JSON, in memory of the kernel. A tool on the host finds
 * it in the guest's RAM after the run, even after a panic (<profile/abi.h>). Reading
 * /proc/profile/export makes a new one. The format is lines of text, not binary: a reader can check
 * each line alone, keep the complete ones, and skip unknown ones.
 *
 * profile.export= reserves the memory at boot, because a panic cannot allocate. Without it, the
 * first export in process context allocates the memory. No export is made while a report is
 * printed.
 *
 * On the console, an export is printed in chunks of lines, each with a number and a checksum, so
 * that a reader finds them among other lines, and knows what is missing. A program could print such
 * lines, too. So each chunk has a random mark, which only root can read. It is logged before any
 * program runs, and again when root asks for an export, for a reader who has only the end of a log.
 */

#include "../profiler.h"
#include "../table.h"
#include "../words.h"
#include "os.h"

#include <profile/abi.h>

#define MIN_BYTES     4096
#define MAX_BYTES     (PROFILE_EXPORT_MAX_RANGES * (u64)PROFILE_EXPORT_RANGE_BYTES)
#define DEFAULT_BYTES (4ull << 20)
#define PRINT_BYTES   1024 /* longest text of one report_printf() */
#define LAST_BYTES    128  /* room that is kept for the last line */
#define PIECE_BYTES   400  /* longest chunk of a line on the console */

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* Read by the host. */
struct profile_export profile_export pf_used = {
	.magic = PROFILE_EXPORT_MAGIC,
	.version = PROFILE_EXPORT_VERSION,
};

/* profile.export= */
static u64 wanted_bytes;
static bool wants_console; /* print each snapshot, except those that are read */

static u64 mark;       /* of lines on the console */
static u64 room_bytes; /* the memory that was set aside */
static char *ranges[PROFILE_EXPORT_MAX_RANGES];

/* State of the export that export_make() is writing. */
static u64 limit_bytes, line_start, nr_lost_lines;
static bool line_is_lost;

static int set_export(const char *value)
{
	u64 bytes = DEFAULT_BYTES;
	char word[32];
	bool console = false;

	if (!*value)
		return -OS_EINVAL;
	while (words_next(&value, word, sizeof(word)) > 0) {
		if (!strcmp(word, "console"))
			console = true;
		else if (os_parse_u64(word, &bytes) || bytes < MIN_BYTES || bytes > MAX_BYTES)
			return -OS_EINVAL;
	}
	if (*value)
		return -OS_EINVAL;
	wanted_bytes = bytes;
	wants_console = console;
	return 0;
}
/*
 * Memory for an export at power off or in a panic; console: print exports there. None by default.
 */
OS_BOOT_PARAM(profile_export, "profile.export", "[<bytes, 4096 to 536870912>][,][console]",
	      set_export);

static int set_on_exit(const char *value)
{
	return on_exit_set(&on_exit_exports, value);
}
/* Which programs make an export when they exit: none by default. */
OS_BOOT_PARAM(profile_export_on_exit, "profile.export_on_exit", ON_EXIT_WORDS, set_on_exit);

static void set_memory_aside(u64 bytes)
{
	struct profile_export *e = &profile_export;
	char *range;

	for (; room_bytes < bytes; room_bytes += PROFILE_EXPORT_RANGE_BYTES) {
		range = os_alloc(PROFILE_EXPORT_RANGE_BYTES);
		if (!range) {
			os_printk("profile: no memory for exports above %lu bytes\n", room_bytes);
			return;
		}
		ranges[e->nr_ranges] = range;
		e->ranges[e->nr_ranges++] = os_physical_address(range);
	}
	room_bytes = bytes;
}

/* Allocates the memory, unless it is there. Process context. */
static void need_memory(void)
{
	if (!room_bytes)
		set_memory_aside(DEFAULT_BYTES);
}

static void announce_mark(void)
{
	os_printk("profile: lines of exports begin with export-%016lx\n", mark);
}

static void init(void)
{
	set_memory_aside(wanted_bytes);
	mark = os_random();
	announce_mark();
}

static void append(const char *bytes, u64 n)
{
	struct profile_export *e = &profile_export;

	while (n) {
		u64 at = e->bytes % PROFILE_EXPORT_RANGE_BYTES;
		u64 part = pf_min(n, PROFILE_EXPORT_RANGE_BYTES - at);

		memcpy(ranges[e->bytes / PROFILE_EXPORT_RANGE_BYTES] + at, bytes, part);
		e->bytes += part;
		bytes += part;
		n -= part;
	}
}

/* Receives the text of report_printf(). A line without room is left out as a whole, and counted. */
static void export_put(const char *fmt, va_list args)
{
	static char text[PRINT_BYTES];
	struct profile_export *e = &profile_export;
	u64 n = os_vsnprintf(text, sizeof(text), fmt, args);
	bool ends;

	n = pf_min(n, sizeof(text) - 1);
	ends = n && text[n - 1] == '\n';
	if (!line_is_lost && e->bytes + n > limit_bytes) {
		e->bytes = line_start;
		line_is_lost = true;
		nr_lost_lines++;
	}
	if (!line_is_lost)
		append(text, n);
	if (ends) {
		line_is_lost = false;
		line_start = e->bytes;
	}
}

/* Adds a byte to a CRC-32 as in gzip (RFC 1952, section 8). Begin with ~0; the result is ~crc. */
static u32 add_to_checksum(u32 crc, u8 byte)
{
	static const u32 of_nibble[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};

	crc ^= byte;
	crc = crc >> 4 ^ of_nibble[crc & 15];
	return crc >> 4 ^ of_nibble[crc & 15];
}

static char byte_at(u64 at)
{
	return ranges[at / PROFILE_EXPORT_RANGE_BYTES][at % PROFILE_EXPORT_RANGE_BYTES];
}

static u32 checksum(void)
{
	u32 crc = ~0u;

	for (u64 i = 0; i < profile_export.bytes; i++)
		crc = add_to_checksum(crc, byte_at(i));
	return ~crc;
}

/* Copies a chunk of a line that ends in a newline. Returns the length of the chunk. */
static u64 copy_piece(u64 at, char piece[PIECE_BYTES + 1])
{
	u64 n = 0;

	for (; n < PIECE_BYTES && byte_at(at + n) != '\n'; n++)
		piece[n] = byte_at(at + n);
	piece[n] = '\0';
	return n;
}

/*
 * export-<mark> <export> <piece><place> <text> <checksum of all that>
 * place: = is a whole line, < begins one, > ends one, - is in the middle.
 */
static void print_on_console(void)
{
	static char piece[PIECE_BYTES + 1], line[PIECE_BYTES + 80];
	bool begins = true, ends;
	u32 nr = 0;

	for (u64 at = 0; at < profile_export.bytes; nr++, begins = ends) {
		u32 crc = ~0u;

		at += copy_piece(at, piece);
		ends = byte_at(at) == '\n';
		at += ends;
		os_snprintf(line, sizeof(line), "export-%016lx %u %u%c %s", mark,
			    profile_export.number, nr, "-><="[2 * begins + ends], piece);
		for (const char *c = line; *c; c++)
			crc = add_to_checksum(crc, *c);
		os_printk("%s %08x\n", line, ~crc);
	}
}

static void print_first_line(const char *why)
{
	char build_id[48];
	u32 nr_online = 0, cpu;

	os_for_each_cpu(cpu)
		nr_online += os_cpu_online(cpu);
	os_build_id(build_id, sizeof(build_id));
	report_printf("{\"export\":%u,\"number\":%u,\"why\":\"%s\",\"compiler\":\"%s\","
		      "\"build_id\":\"%s\",\"clock\":\"%s\",\"tsc_hz\":%lu,\"cpus\":%u,"
		      "\"end_ns\":%lu}\n",
		      PROFILE_EXPORT_VERSION, profile_export.number, why, COMPILER, build_id,
		      os_clock_counts_instructions() ? "instructions" : "TSC",
		      os_cycles_per_second(), nr_online, os_cycles_to_ns(os_cycles()));
}

/*
 * Makes an export, while no report is printed, or in a panic. If the panic interrupted another
 * export, starts again.
 */
static void export_make(const char *why)
{
	struct profile_export *e = &profile_export;
	u32 crc;

	if (!room_bytes)
		return;
	e->state = PROFILE_EXPORT_WRITING;
	e->number++;
	e->bytes = line_start = nr_lost_lines = 0;
	line_is_lost = false;
	limit_bytes = room_bytes - LAST_BYTES;
	report_to_output(export_put);
	print_first_line(why);
	report_print_json_files();
	crc = checksum();
	limit_bytes = room_bytes;
	report_printf("{\"end\":%u,\"bytes\":%lu,\"crc32\":\"%08x\",\"lost_lines\":%lu}\n",
		      e->number, e->bytes, crc, nr_lost_lines);
	report_to_output(NULL);
	pf_store_release(&e->state, PROFILE_EXPORT_COMPLETE);
}

static void make_for_all(const char *why)
{
	export_make(why);
	if (wants_console && room_bytes)
		print_on_console();
}

/* Prints the file /proc/profile/export: makes an export and copies it. */
static void print_export(const void *unused)
{
	const struct profile_export *e = &profile_export;

	need_memory();
	export_make("read");
	for (u64 at = 0, n; at < e->bytes; at += n) {
		const char *range = ranges[at / PROFILE_EXPORT_RANGE_BYTES];

		n = pf_min(e->bytes - at, 4096);
		report_printf("%.*s", (int)n, range + at % PROFILE_EXPORT_RANGE_BYTES);
	}
}

static void print_snapshot(const struct report *unused)
{
	need_memory();
	make_for_all("sysrq");
	os_printk("profile: export %u: %lu bytes, %lu lines lost\n", profile_export.number,
		  profile_export.bytes, nr_lost_lines);
}

static void take_snapshot(void)
{
	if (!report_try_print(print_snapshot))
		os_printk("profile: no export: a report is being printed\n");
}
OS_SYSRQ_KEY(profile_export, 'e', "export the profiler's tables", take_snapshot);

/* Makes the last export, unless the machine is switched off and there is a snapshot already. */
static void export_end(const char *why)
{
	if (!profile_export.number || os_panicking())
		make_for_all(why);
	on_exit_print_unmatched(&on_exit_exports);
}

static void print_exit(const void *proc_)
{
	os_process_t *proc = (os_process_t *)proc_;
	char why[64], name[24];

	report_copy_printable(name, os_process_name(proc), sizeof(name));
	for (char *c = name; *c; c++)
		*c = *c == '"' || *c == '\\' ? '?' : *c;
	os_snprintf(why, sizeof(why), "exit of %s (pid %d)", name, os_process_pid(proc));
	need_memory();
	make_for_all(why);
}

static void process_exit(struct profile_process *pp)
{
	os_process_t *proc = os_process_of(pp);

	if (on_exit_wants(&on_exit_exports, proc))
		report_to_text(NULL, &table_text, print_exit, proc);
}

/* Prints the last snapshot on the console. Its bytes are the same as when it was read. */
static void print_last(const void *unused)
{
	need_memory();
	if (!profile_export.number)
		export_make("write");
	if (!wants_console)
		announce_mark();
	print_on_console();
}

#define ON_EXIT_WORD "on_exit "

static int write_export(const char *text)
{
	if (!strncmp(text, ON_EXIT_WORD, strlen(ON_EXIT_WORD)))
		return on_exit_write_to(&on_exit_exports, text + strlen(ON_EXIT_WORD));
	if (!words_are(text, "console"))
		return -OS_EINVAL;
	report_to_text(NULL, &table_text, print_last, NULL);
	return 0;
}

static const struct profiler_file files[] = {
	{ "profile/export", "console|on_exit " ON_EXIT_WORDS, write_export, .print = print_export },
	{ 0 },
};

PROFILER(export) = {
	.name = "export",
	.place = 90,
	.init = init,
	.end = export_end,
	.process_exit = process_exit,
	.files = files,
};
