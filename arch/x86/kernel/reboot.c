// SPDX-License-Identifier: BSD-2-Clause
/*
 * The ends of the machine. A run under QEMU tells its status by a write to isa-debug-exit, whose
 * port the boot parameter qemu_exit= names: QEMU then exits with (status << 1) | 1. Success is an
 * ordinary power off, QEMU's exit status 0. The verdict, a line of text, goes to isa-debugcon, if
 * there is one. Programs can reach neither device: they have no access to ports.
 */
#include <asm/acpi.h>
#include <asm/io.h>
#include <asm/irqflags.h>
#include <asm/uart.h>
#include <lego/boot.h>
#include <lego/errno.h>
#include <lego/params.h>
#include <lego/printk.h>
#include <lego/verdict.h>

/* isa-debugcon's port reads as its own number. Without a device, a port reads as 0xff. */
#define DEBUGCON_PORT 0xe9

static u16 qemu_exit_port; /* 0: none */

static int set_qemu_exit(const char *value)
{
	u64 port;
	int error = parse_u64(value, &port);

	if (error)
		return error;
	if (port == 0 || port > 0xffff)
		return -EINVAL;
	qemu_exit_port = port;
	return 0;
}
/* Port of QEMU's isa-debug-exit, for the exit status: scripts/qemu-run sets it. None by default. */
BOOT_PARAM(qemu_exit, "qemu_exit", "<I/O port of isa-debug-exit, 1 to 0xffff>", set_qemu_exit);

void machine_tell(const char *text, size_t len)
{
	if (inb(DEBUGCON_PORT) != DEBUGCON_PORT)
		return;
	for (size_t i = 0; i < len; i++)
		outb(text[i], DEBUGCON_PORT);
}

void machine_halt(void)
{
	for (;;)
		asm volatile("cli; hlt" ::: "memory");
}

void machine_exit(int status)
{
	/* 7 bits fit; a status they cannot show must not look like success. */
	int code = status & 0x7f;

	if (status && !code)
		code = 1;
	uart_flush();
	verdict_send(status);
	if (code && qemu_exit_port)
		outb(code, qemu_exit_port);
	acpi_power_off();
	machine_halt();
}

void machine_power_off(int status)
{
	printk_console_on();
	printk("reboot: power off, status %d\n", status);
	machine_exit(status);
}
