// SPDX-License-Identifier: BSD-2-Clause
/*
 * Switches a profiler whose records cost more than most people want: see stack_switch.h. Its stores
 * are allocated by the first switch to on, so those who never do it pay no memory.
 */

#include "stack_switch.h"

#include "hook_keys.h"
#include "words.h"

void stack_switch(struct stack_switch *s, bool on, bool at_boot)
{
	poll_lock(&s->lock);
	if (on && !s->is_ready) {
		s->init();
		s->is_ready = true;
	}
	off_time_switch(s->off_time, !on, at_boot);
	hook_key_set(s->key, on);
	poll_unlock(&s->lock);
}

int stack_switch_write(struct stack_switch *s, const char *text)
{
	bool on;

	if (words_are(text, "reset")) {
		s->reset();
		return 0;
	}
	if (words_on_off(text, &on))
		return -OS_EINVAL;
	stack_switch(s, on, false);
	return 0;
}
