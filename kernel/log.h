/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KERNEL_LOG_H
#define KERNEL_LOG_H

/* The log's memory: printk() puts lines in, syslog(2) reads them. */

#include <lego/kernel.h>

/* With the console lock. */
void log_append(const char *text, size_t len);

/* Do lines go to the console, too? syslog(2) may have turned that off. Any context. */
bool log_is_loud(void);

#endif
