// SPDX-License-Identifier: BSD-2-Clause
/*
 * The boot as a list of steps. The boot CPU runs boot_steps[] on its idle stack, each step once, in
 * this order, with interrupts off until "start_tick". Steps that may sleep run afterwards in the
 * init thread.
 */

#include <lego/boot.h>

#include <asm/irqflags.h>
#include <asm/uart.h>
#include <lego/bug.h>
#include <lego/errno.h>
#include <lego/fail_alloc.h>
#include <lego/files_out.h>
#include <lego/fs.h>
#include <lego/futex.h>
#include <lego/page.h>
#include <lego/params.h>
#include <lego/profile.h>
#include <lego/sched.h>
#include <lego/selftest.h>
#include <lego/signal.h>
#include <lego/slab.h>
#include <lego/smp.h>
#include <lego/sysrq.h>
#include <lego/tty.h>

struct boot_info boot_info;

static void parse_params(void)
{
	params_parse(boot_info.cmdline);
}

static void start_tick(void)
{
	clock_start_tick();
	local_irq_enable();
}

static const struct {
	void (*run)(void);
	const char *needs;
} boot_steps[] = {
	{ setup_arch, "nothing: console, traps, boot_info" },
	{ parse_params, "boot_info" },
	{ paging_init, "boot_info, early pages" },
	{ page_init, "the direct map" },
	{ slab_init, "pages" },
	{ mm_init, "slab" },
	{ acpi_init, "ioremap" },
	{ percpu_init, "the number of CPUs, pages" },
	{ tty_init, "nothing: before bytes come in" },
	{ interrupt_init, "APIC and IOAPIC addresses, per-CPU areas" },
	{ clock_init, "HPET or PM timer, the local APIC" },
	{ sched_init, "per-CPU areas, slab" },
	{ start_tick, "the clock, a current task" },
	{ uart_enable_irq, "the IOAPIC, the clock" },
	{ smp_init, "idle tasks, IPIs, the clock" },
	{ futex_init, "slab" },
	{ signal_init, "nothing: before the first signal" },
	{ fs_init, "slab" },
	{ fail_alloc_init, "fs" },
};

/*
 * Frees the pages of the initramfs that are already copied into the file system. So unpacking needs
 * little more memory than the initramfs itself.
 */
static void free_initramfs(size_t used_bytes)
{
	static phys_addr_t next; /* the first byte that may not be free yet */
	phys_addr_t start = boot_info.initrd_start, end = start + used_bytes;

	page_free_range(max(next, start), end);
	next = ALIGN_DOWN(end, PAGE_SIZE);
}

static void unpack_initramfs(void)
{
	u64 size_bytes = boot_info.initrd_size_bytes;
	int error;

	if (!size_bytes)
		panic("no initramfs: give one with -initrd");
	error = initramfs_unpack(phys_to_virt(boot_info.initrd_start), size_bytes, free_initramfs);
	if (error == -ENOMEM)
		panic("not enough memory for an initramfs of %llu KiB",
		      (unsigned long long)size_bytes >> 10);
	if (error)
		panic("the initramfs is damaged");
	free_initramfs(size_bytes);
}

/* Returns the reason why init cannot run, as text. */
static const char *init_problem(int error)
{
	struct file *file;

	switch (error) {
	case -ENOENT:
		file = file_open(init_argv[0], O_PATH, 0);
		if (IS_ERR(file))
			return "ENOENT, no such file in the initramfs";
		file_put(file);
		return "ENOENT, the interpreter that it names is not in the initramfs";
	case -EACCES:
		return "EACCES, not a file that may be executed";
	case -ENOEXEC:
		return "ENOEXEC, neither an x86-64 program nor a script with #!";
	case -ELIBBAD:
		return "ELIBBAD, the dynamic linker that it names is no x86-64 program";
	case -ENOTDIR:
		return "ENOTDIR, a part of the path is no directory";
	case -ENOMEM:
		return "ENOMEM, not enough memory";
	default:
		return "see execve(2)";
	}
}

static int init_thread(void *unused)
{
	static const char *const envp[] = { "HOME=/", "PATH=/bin", NULL };
	int error;

	profile_init();
	sysrq_start();
	if (boot_info.initrd_size_bytes || !IS_ENABLED(CONFIG_SELFTEST))
		unpack_initramfs();
	if (IS_ENABLED(CONFIG_SELFTEST))
		selftest_run();
	files_out_init();
	error = process_start_init(init_argv, envp);
	if (error)
		panic("cannot run init=%s: %s (error %d)", init_argv[0], init_problem(error),
		      -error);
	return 0;
}

void start_kernel(void)
{
	struct task *init;

	for (size_t i = 0; i < ARRAY_SIZE(boot_steps); i++)
		boot_steps[i].run();

	init = kthread_create(init_thread, NULL, "init");
	if (IS_ERR(init))
		panic("cannot create the init thread: error %ld", PTR_ERR(init));
	task_wake(init);
	cpu_idle();
}

void start_secondary(void)
{
	local_irq_enable();
	cpu_idle();
}
