// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests the rings of events with an interrupt at every possible place. The trap flag raises a
 * signal after each instruction of a write (SDM vol. 3, 17.4.1.4); at a chosen one the signal
 * handler acts as the interrupt.
 */

#include "trace_unit.h"

#include <signal.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100

/* Counts instructions down to the interrupt. */
static int steps_left;
static bool stepping, was_hit;

static u32 nr_more; /* more events in the interrupt, so that it fills several pages */

static void interrupt(void)
{
	for (u32 i = 0; i < nr_more; i++)
		write_event(3, 0);
	struct trace_slot slot = trace_reserve(sizeof(struct record) + 3 * sizeof(u64));

	write_event(1, 200); /* as an NMI in the interrupt would */
	fill_in(slot, 3, 100);
	write_event(2, 300);
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	if (stepping && steps_left-- == 0) {
		was_hit = true;
		interrupt();
		stepping = false;
	}
	if (!stepping)
		uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static void write_interrupted(int at, u32 nr_values)
{
	steps_left = at;
	was_hit = false;
	stepping = true;
	asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
	write_event(nr_values, 1);
	stepping = false;
	asm volatile("nop");
}

/* Checks the events left by one write and its interrupt in a cleared ring. */
static void check_interrupted(void)
{
	u64 values[256], lost;
	u32 nr = read_all(values, 256, &lost), nr_found = 0, seen = 0;

	assert_int_equal(nr, was_hit ? 4 + nr_more : 1);
	assert_int_equal(lost, 0);
	for (u32 i = 0; i < nr; i++) {
		nr_found += values[i] == 1;
		seen += values[i];
	}
	assert_int_equal(nr_found, 1);
	assert_int_equal(seen, was_hit ? 601 : 1);
	assert_int_equal(os_per_cpu(trace_ring, 0).head, os_per_cpu(trace_ring, 0).commit);
}

/* Fills the ring until a page has exactly this many words left. */
static void leave_room(u32 words)
{
	u64 room;

	while ((room = -TRACE_POSITION(os_per_cpu(trace_ring, 0).head) % TRACE_PAGE_WORDS) !=
	       words) {
		bool exactly = room >= words + 2 && room < words + 8;

		write_event(exactly ? room - words - 2 : 1, 5);
	}
	ring_clear();
}

#define TEST(name) HOST_TEST_WITH(name, set_up, tear_down)

TEST(interrupted_anywhere)
{
	static const u32 rooms[] = { 300, 20, 12, 10, 8, 6, 5, 4, 3, 2, 0 };
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	u32 nr_hits = 0;

	sigaction(SIGTRAP, &action, NULL);
	for (u32 i = 0; i < 3 * ARRAY_SIZE(rooms); i++) {
		int at = 0;

		do {
			/* In every third round, positions wrap at the end of the page. */
			if (i % 3 == 2)
				move_to_last_page(1);
			leave_room(rooms[i / 3]);
			/*
			 * In every third round, the upper half of the TSC changes during the write.
			 */
			if (i % 3 == 1)
				host_now = ((host_now >> 32) + 1) << 32 | (0x100000000 - 2);
			write_interrupted(at++, 2);
			check_interrupted();
			nr_hits += was_hit;
		} while (was_hit);
	}
	assert_in_range(nr_hits, 500, 100000);
}

/*
 * The interrupt fills several pages, up to the next lap of the ring and past the wrap of positions.
 * Later events must still be in the right pages.
 */
TEST(interrupted_for_long)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	u32 nr_hits = 0;

	sigaction(SIGTRAP, &action, NULL);
	assert_int_equal(ring_set_bytes(2 * RING_BYTES), 0);
	nr_more = 220;
	for (u32 i = 0; i < 8; i++) {
		u64 values[1], lost;
		int at = 0;

		do {
			move_to_last_page(4 - i / 2);
			leave_room(i % 2 ? 3 : 20);
			write_interrupted(at++, 2);
			check_interrupted();
			ring_clear();
			for (u32 j = 0; j < 220; j++)
				write_event(3, 0);
			assert_int_equal(read_all(values, 1, &lost), 220);
			assert_int_equal(lost, 0);
			nr_hits += was_hit;
		} while (was_hit);
	}
	nr_more = 0;
	assert_in_range(nr_hits, 200, 100000);
}
