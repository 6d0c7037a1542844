/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ACCURACY_PLUGIN_API_H
#define ACCURACY_PLUGIN_API_H

/*
 * The part of QEMU's interface for TCG plugins, version 1 (QEMU 7.2), that the plugins use. Debian
 * ships no header for it. QEMU provides the functions when it loads the plugin.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUGIN_EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;

struct qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint32_t qemu_plugin_meminfo_t;

enum {
	QEMU_PLUGIN_CB_NO_REGS
};
enum {
	QEMU_PLUGIN_MEM_R = 1,
	QEMU_PLUGIN_MEM_W,
	QEMU_PLUGIN_MEM_RW
};
enum {
	QEMU_PLUGIN_INLINE_ADD_U64
};

/* QEMU looks for these two. */
extern PLUGIN_EXPORT int qemu_plugin_version;
PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc,
				      char **argv);

/* Calls fn for each block of guest code when it is translated. insns are its instructions. */
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*fn)(qemu_plugin_id_t id,
						      struct qemu_plugin_tb *tb));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

/* Before each execution of an instruction, calls fn, then adds to a counter. */
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*fn)(unsigned int cpu, void *data), int regs,
					    void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int op,
						void *counter, uint64_t add);

/*
 * Calls fn at each memory access of an instruction. rw must be RW: QEMU 7.2 never calls fn with R,
 * and calls it for reads, too, with W.
 */
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      void (*fn)(unsigned int cpu, qemu_plugin_meminfo_t info,
						 uint64_t vaddr, void *data),
				      int regs, int rw, void *data);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);

/* Calls fn when QEMU ends. */
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id,
				    void (*fn)(qemu_plugin_id_t id, void *data), void *data);

#endif
