// SPDX-License-Identifier: BSD-2-Clause
/*
 * getrandom: ChaCha20 (RFC 8439) as a generator. The key is seeded from RDRAND where the CPU has
 * it, and the TSC. Half of a block replaces the key, the other half is kept for small requests, and
 * what was given out is erased, so that old output cannot be computed from a later state. Under
 * QEMU's icount both sources repeat, and so do the numbers.
 */

#include <lego/random.h>

#include <asm/random.h>
#include <lego/errno.h>
#include <lego/sched.h>
#include <lego/spinlock.h>
#include <lego/string.h>
#include <lego/syscall.h>
#include <lego/uaccess.h>

#define GRND_NONBLOCK 1
#define GRND_RANDOM   2
#define GRND_INSECURE 4

#define CHACHA_WORDS 16
#define CHACHA_BYTES 64
#define KEY_WORDS    8

static DEFINE_SPINLOCK(lock);
/* The first part of a block is the key, the rest is output: its last nr_left bytes are unused. */
static u32 state[CHACHA_WORDS];
static size_t nr_left;
static bool seeded;

static u32 rotate(u32 x, unsigned int n)
{
	return x << n | x >> (32 - n);
}

static void quarter_round(u32 *s, int a, int b, int c, int d)
{
	s[a] += s[b];
	s[d] = rotate(s[d] ^ s[a], 16);
	s[c] += s[d];
	s[b] = rotate(s[b] ^ s[c], 12);
	s[a] += s[b];
	s[d] = rotate(s[d] ^ s[a], 8);
	s[c] += s[d];
	s[b] = rotate(s[b] ^ s[c], 7);
}

static void chacha_block(u32 counter, u32 out[CHACHA_WORDS])
{
	u32 in[CHACHA_WORDS] = { 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574 };

	memcpy(&in[4], state, KEY_WORDS * sizeof(*state));
	in[12] = counter;
	memcpy(out, in, sizeof(in));
	for (int i = 0; i < 10; i++) {
		for (int j = 0; j < 4; j++)
			quarter_round(out, j, 4 + j, 8 + j, 12 + j);
		for (int j = 0; j < 4; j++)
			quarter_round(out, j, 4 + (j + 1) % 4, 8 + (j + 2) % 4, 12 + (j + 3) % 4);
	}
	for (int i = 0; i < CHACHA_WORDS; i++)
		out[i] += in[i];
}

static void seed(void)
{
	for (int i = 0; i < KEY_WORDS / 2; i++) {
		u64 word = arch_random_u64() ^ rdtsc();

		memcpy(&state[2 * i], &word, sizeof(word));
	}
	seeded = true;
}

/* Makes a new key and output. Block 0 of each key is used for nothing else. */
static void refill(void)
{
	u32 block[CHACHA_WORDS];

	chacha_block(0, block);
	memcpy(state, block, sizeof(state));
	nr_left = sizeof(state) - KEY_WORDS * sizeof(*state);
}

void random_bytes(void *buf, size_t n)
{
	unsigned long flags = spin_lock_irqsave(&lock);
	u32 block[CHACHA_WORDS];
	u32 counter = 0;
	u8 *to = buf;

	if (!seeded)
		seed();
	for (; n >= CHACHA_BYTES; to += CHACHA_BYTES, n -= CHACHA_BYTES) {
		chacha_block(++counter, block);
		memcpy(to, block, CHACHA_BYTES);
	}
	if (counter)
		refill(); /* the key of these blocks is gone */
	while (n) {
		u8 *from = (u8 *)state + sizeof(state) - nr_left;
		size_t part = min(n, nr_left);

		memcpy(to, from, part);
		memset(from, 0, part);
		nr_left -= part;
		to += part;
		n -= part;
		if (n)
			refill();
	}
	spin_unlock_irqrestore(&lock, flags);
}

SYSCALL_DEFINE3(getrandom, char __user *, buf, size_t, len, unsigned int, flags)
{
	size_t done = 0;
	u8 bytes[256];

	if (flags & ~(GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE) ||
	    (flags & (GRND_RANDOM | GRND_INSECURE)) == (GRND_RANDOM | GRND_INSECURE))
		return -EINVAL;
	len = min(len, (size_t)0x7ffff000);
	while (done < len) {
		size_t part = min(len - done, sizeof(bytes));

		random_bytes(bytes, part);
		if (copy_to_user(buf + done, bytes, part))
			return done ? (long)done : -EFAULT;
		done += part;
		/* As in Linux, a signal only interrupts a long request, at the end of a page. */
		if (done % PAGE_SIZE == 0 && task_interrupted(current))
			break;
		cond_resched();
	}
	return (long)done;
}
