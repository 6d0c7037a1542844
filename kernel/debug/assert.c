// SPDX-License-Identifier: BSD-2-Clause
/*
 * A failed assertion stops the kernel. A test that breaks a rule on purpose sets a trap for its own
 * task instead, and then asks which assertion has failed.
 */

#include <lego/assert.h>

#include <lego/bug.h>
#include <lego/kernel.h>
#include <lego/printk.h>
#include <lego/sched.h>
#include <lego/string.h>

static const struct task *trap_task; /* NULL: no trap */
static char trapped[160];

#ifdef CONFIG_SELFTEST
void assert_set_trap(bool on)
{
	trapped[0] = '\0';
	WRITE_ONCE(trap_task, on ? current : NULL);
}

const char *assert_trapped(void)
{
	static char text[sizeof(trapped)];

	memcpy(text, trapped, sizeof(text));
	trapped[0] = '\0';
	return text[0] ? text : NULL;
}
#endif

void assert_fail(const char *file, int line, const char *function, const char *what)
{
	if (panic_in_progress())
		return;
	if (READ_ONCE(trap_task) == current) {
		if (!trapped[0])
			snprintf(trapped, sizeof(trapped), "%s: %s", function, what);
		return;
	}
	panic("BUG: %s:%d %s(): %s", file, line, function, what);
}
