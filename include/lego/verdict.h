/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_VERDICT_H
#define LEGO_VERDICT_H

/*
 * The verdict: one line that tells the script which runs the machine how the run ended. The kernel
 * writes it to QEMU's isa-debugcon, which programs cannot write to. They can write to the console,
 * so a line there proves nothing. A run without a verdict has failed.
 *
 *  verdict: status=<n> panic=<0|1> bugs=<n> warnings=<n> reports_cut=<n> console_lost=<bytes>
 *
 * After a panic, ` why=<its message>` follows, to the end of the line.
 */

#include <lego/types.h>

/* Counts a failed WARN_ON(). Any context. */
void verdict_count_warning(void);

/* Remembers why the kernel panics. The text is not copied, so it must stay. */
void verdict_set_panic(const char *why);

/*
 * Sends the line; further calls do nothing. Called when the machine is about to end. Any context.
 */
void verdict_send(int status);

#endif
