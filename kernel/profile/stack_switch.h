/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_STACK_SWITCH_H
#define PROFILE_STACK_SWITCH_H

/* The switch of a profiler that is off by default, and has no stores before it is first on. */

#include "off_time.h"
#include "util.h"

struct stack_switch {
	os_key_t *key; /* of its hooks */
	struct profile_off_time *off_time;
	void (*init)(void); /* allocates the stores, once */
	void (*reset)(void);
	struct poll_lock lock;
	bool is_ready;
};

/* at_boot: by a boot parameter. Process context. */
void stack_switch(struct stack_switch *s, bool on, bool at_boot);

/* Does what a control file accepts: on, off or reset. Returns 0 or -OS_EINVAL. Process context. */
int stack_switch_write(struct stack_switch *s, const char *text);

#endif
