// SPDX-License-Identifier: BSD-2-Clause
/*
 * reboot(2). All commands power off with status 0. After a restart, an emulator would only run the
 * same session again, and a PC can be switched on by hand.
 */

#include <lego/process.h>

#include "process.h"
#include <lego/boot.h>
#include <lego/errno.h>
#include <lego/printk.h>
#include <lego/syscall.h>

#define MAGIC	0xfee1deadU
#define MAGIC2	672274793
#define MAGIC2A 85072278
#define MAGIC2B 369367448
#define MAGIC2C 537993216

#define CMD_RESTART   0x01234567U
#define CMD_HALT      0xcdef0123U
#define CMD_CAD_ON    0x89abcdefU
#define CMD_CAD_OFF   0U
#define CMD_POWER_OFF 0x4321fedcU

static void __noreturn power_off(const char *why)
{
	process_end_reports();
	printk("reboot: %s asked for by %pE[%d]\n", why, current->comm, current->pid);
	machine_power_off(0);
}

SYSCALL_DEFINE3(reboot, u32, magic, u32, magic2, u32, command)
{
	if (!process_is_root(current->proc))
		return -EPERM;
	if (magic != MAGIC ||
	    (magic2 != MAGIC2 && magic2 != MAGIC2A && magic2 != MAGIC2B && magic2 != MAGIC2C))
		return -EINVAL;
	switch (command) {
	case CMD_RESTART:
		power_off("restart");
	case CMD_HALT:
		power_off("halt");
	case CMD_POWER_OFF:
		power_off("power off");
	case CMD_CAD_ON:
	case CMD_CAD_OFF:
		return 0; /* enables or disables Ctrl-Alt-Del, which no keyboard sends here */
	default:
		return -EINVAL;
	}
}
