// SPDX-License-Identifier: BSD-2-Clause
/* Tests interleave.c itself: it finds the known faults, and finds none where there is none. */

#include "unit.h"

static u64 x, y, seen_x, seen_y;

static void share_x_y(void)
{
	x = y = seen_x = seen_y = 0;
	il_share(&x, sizeof(x));
	il_share(&y, sizeof(y));
	il_keep(&seen_x, sizeof(seen_x));
	il_keep(&seen_y, sizeof(seen_y));
}

static void set_x_read_y(void)
{
	pf_write_once(x, 1);
	pf_mb();
	seen_y = pf_read_once(y);
}

static void set_y_read_x(void)
{
	pf_write_once(y, 1);
	pf_mb();
	seen_x = pf_read_once(x);
}

static void one_is_seen(void)
{
	il_check(seen_x || seen_y);
}

/* Plain stores before and after one that publishes them. */
static void publish_x(void)
{
	x = 1;
	pf_store_release(&y, 1);
	pf_barrier();
	x = 2;
}

static void read_x(void)
{
	if (pf_load_acquire(&y))
		il_check(pf_read_once(x));
	else
		il_check(pf_read_once(x) != 2 || pf_read_once(y));
}

static void add_locked(void)
{
	u64 old;

	do
		old = pf_read_once(x);
	while (pf_cmpxchg(&x, old, old + 1) != old);
}

static void x_is_2(void)
{
	il_check(x == 2);
}

/* An interrupt runs to its end. It sees the stores of its CPU. */
static void interrupt_y(void)
{
	seen_x = pf_read_once(x);
	pf_write_once(y, pf_read_once(y) + 1);
	pf_write_once(y, pf_read_once(y) + 1);
}

static void set_x_twice(void)
{
	pf_write_once(x, 1);
	seen_y = pf_read_once(y);
	il_check(seen_y == 0 || seen_y == 2);
	pf_write_once(x, 2);
}

/* y changes before x. So if y is still 0 after x was copied, x was copied before its change. */
static void change_y_then_x(void)
{
	pf_write_once(y, 1);
	pf_barrier();
	x = 1;
}

static void copy_x_then_look_at_y(void)
{
	u64 copy = x;

	pf_mb();
	if (!pf_read_once(y))
		il_check(copy == 0);
}

const struct il_test il_tests[] = {
	{ "store buffers",
	  share_x_y,
	  { { set_x_read_y, 0 }, { set_y_read_x, 1 } },
	  one_is_seen,
	  2,
	  "" },
	{ "publication", share_x_y, { { publish_x, 0 }, { read_x, 1 } }, NULL, 2, "" },
	{ "locked", share_x_y, { { add_locked, 0 }, { add_locked, 1 } }, x_is_2, 2, "" },
	{ "interrupts", share_x_y, { { set_x_twice, 0 }, { interrupt_y, 0 } }, NULL, 2, NULL },
	{ "a copy that is checked",
	  share_x_y,
	  { { change_y_then_x, 0 }, { copy_x_then_look_at_y, 1 } },
	  NULL,
	  2,
	  "" },
	{ 0 },
};
