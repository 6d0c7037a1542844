/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LEGO_RANDOM_H
#define LEGO_RANDOM_H

#include <lego/types.h>

/* Unpredictable bytes; see kernel/process/random.c. Any context but NMI. */
void random_bytes(void *buf, size_t n);

#endif
