/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PORT_BROKEN_OS_H
#define PORT_BROKEN_OS_H

#include "../os.h"

int broken_vprintk(const char *fmt, va_list args);
int broken_vsnprintf(char *buf, size_t size, const char *fmt, va_list args);
void *broken_zalloc(size_t size);
bool broken_symbol_lookup(u64 addr, u64 *start, char *name, size_t size);
u64 broken_lock(void);
void broken_unlock(u64 flags);
u64 broken_exec_cycles(const struct task *task);

#undef os_cpu_online
#define os_cpu_online(cpu) (!(cpu) || breaks("cpus"))
#undef os_run_on_all_cpus
#define os_run_on_all_cpus(fn) fn(NULL)
#undef os_run_on_boot_cpu
#define os_run_on_boot_cpu(fn) fn(NULL)
#undef os_vprintk
#define os_vprintk(fmt, args) broken_vprintk(fmt, args)
#undef os_vsnprintf
#define os_vsnprintf(buf, size, fmt, args) broken_vsnprintf(buf, size, fmt, args)
#undef os_zalloc
#define os_zalloc(size) broken_zalloc(size)
#undef os_symbol_lookup
#define os_symbol_lookup(addr, start, name, size) broken_symbol_lookup(addr, start, name, size)
#undef os_lock
#define os_lock(lock) ((void)(lock), broken_lock())
#undef os_unlock
#define os_unlock(lock, flags) ((void)(lock), broken_unlock(flags))
#undef os_cycles_per_second
#define os_cycles_per_second() (breaks("rate") ? cycles_per_second / 10 : cycles_per_second)
#undef os_cycles_to_ns
#define os_cycles_to_ns(cycles) (battery_cycles_to_ns(cycles, cycles_per_second) << breaks("ns"))
#undef os_task_syscall
#define os_task_syscall(task, regs) ((task)->syscall | breaks("call") << 16)
#undef os_task_exec_cycles
#define os_task_exec_cycles(pt) broken_exec_cycles(pf_container_of(pt, struct task, profile))

#endif
