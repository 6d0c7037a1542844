/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROCESS_FUTEX_H
#define PROCESS_FUTEX_H

/* Bits in the word of a robust or priority-inheriting mutex (uapi/linux/futex.h). */
#define FUTEX_WAITERS	 0x80000000U
#define FUTEX_OWNER_DIED 0x40000000U
#define FUTEX_TID_MASK	 0x3fffffffU

#endif
