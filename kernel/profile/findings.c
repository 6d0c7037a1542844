// SPDX-License-Identifier: BSD-2-Clause
/*
 * Collects the findings of all profilers, and prints the largest. Each is a share of the CPU time
 * or of the wall time of the report's process or run. They are ordered by their part of the wall
 * time: code that takes all of the CPU time comes last if the CPU time is a small part of it.
 */

#include "findings.h"

#include "profiler.h"

#define MAX_PRINTED  3
#define MAX_FINDINGS 16

struct finding {
	u64 weight; /* its part of the wall time, in hundredths of a percent */
	u32 share;  /* in hundredths of a percent */
	bool is_last_resort;
	const char *of;
	char text[FINDING_BYTES];
};

static struct finding findings[MAX_FINDINGS]; /* of the one reader */
static u32 nr_findings;

const char *finding_count(char text[FINDING_COUNT_BYTES], u64 nr)
{
	if (nr < 1000)
		os_snprintf(text, FINDING_COUNT_BYTES, "%lu", nr);
	else if (nr < 1000000)
		os_snprintf(text, FINDING_COUNT_BYTES, "%lu,%03lu", nr / 1000, nr % 1000);
	else
		os_snprintf(text, FINDING_COUNT_BYTES, "%lu,%03lu,%03lu", nr / 1000000,
			    nr / 1000 % 1000, nr % 1000);
	return text;
}

/* Prints a number of tenths: with the tenth if it is below 10. */
static void print_tenths(char text[FINDING_COUNT_BYTES], u64 tenths, const char *unit)
{
	if (tenths < 100)
		os_snprintf(text, FINDING_COUNT_BYTES, "%lu.%lu %s", tenths / 10, tenths % 10,
			    unit);
	else
		os_snprintf(text, FINDING_COUNT_BYTES, "%lu %s", (tenths + 5) / 10, unit);
}

const char *finding_bytes(char text[FINDING_COUNT_BYTES], u64 bytes)
{
	if (bytes < PF_BIT(20))
		os_snprintf(text, FINDING_COUNT_BYTES, "%lu KiB", (bytes + 512) >> 10);
	else
		print_tenths(text, (bytes * 10 + PF_BIT(19)) >> 20, "MiB");
	return text;
}

const char *finding_each(char text[FINDING_COUNT_BYTES], u64 ns, u64 nr)
{
	u64 each = nr ? (ns + nr / 2) / nr : 0;

	if (each < 1000)
		os_snprintf(text, FINDING_COUNT_BYTES, "%lu ns", each);
	else if (each < NS_PER_MSEC)
		print_tenths(text, (each + 50) / 100, "us");
	else if (each < NS_PER_SEC)
		print_tenths(text, (each + 50000) / 100000, "ms");
	else
		print_tenths(text, (each + 50000000) / 100000000, "s");
	return text;
}

static void offer_finding(const struct finding_scope *scope, struct finding finding, u64 ns,
			  u64 whole_ns, const char *fmt, va_list args)
{
	ns = pf_min(ns, whole_ns);
	finding.share = report_percent(ns, whole_ns);
	finding.weight = scope->wall_ns ? os_mul_div_u64(ns, 10000, scope->wall_ns) : 0;
	if (ns < FINDING_MIN_NS || finding.share < FINDING_MIN_SHARE ||
	    finding.weight < FINDING_MIN_SHARE || nr_findings == MAX_FINDINGS)
		return;
	os_vsnprintf(finding.text, sizeof(finding.text), fmt, args);
	report_make_printable(finding.text);
	findings[nr_findings++] = finding;
}

void finding_of_cpu_time(const struct finding_scope *scope, u64 ns, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	offer_finding(scope, (struct finding){ .of = "CPU time" }, ns, scope->cpu_ns, fmt, args);
	va_end(args);
}

void finding_of_wall_time(const struct finding_scope *scope, u64 ns, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	offer_finding(scope, (struct finding){ .of = "wall time" }, ns, scope->wall_ns, fmt, args);
	va_end(args);
}

void finding_of_last_resort(const struct finding_scope *scope, u64 ns, const char *fmt, ...)
{
	struct finding finding = { .of = "wall time", .is_last_resort = true };
	va_list args;

	va_start(args, fmt);
	offer_finding(scope, finding, ns, scope->wall_ns, fmt, args);
	va_end(args);
}

static int compare_findings(const void *a_, const void *b_)
{
	const struct finding *a = a_, *b = b_;

	if (a->is_last_resort != b->is_last_resort)
		return a->is_last_resort ? 1 : -1;
	return a->weight != b->weight ? compare_u64(b->weight, a->weight) :
					strcmp(a->text, b->text);
}

void findings_print(const struct report *report, const struct report_summary *sums)
{
	const struct finding_scope scope = {
		.report = report,
		.sums = sums,
		.cpu_ns = os_cycles_to_ns(report_cpu_cycles(sums)),
		.wall_ns = report->wall_ns,
	};

	nr_findings = 0;
	report_find(&scope);
	os_sort(findings, nr_findings, sizeof(findings[0]), compare_findings);
	for (u32 i = 0; i < pf_min(nr_findings, (u32)MAX_PRINTED); i++) {
		if (i && findings[i].is_last_resort)
			break;
		report_printf("%u %% of %s %s\n", findings[i].share / 100, findings[i].of,
			      findings[i].text);
	}
}
