// SPDX-License-Identifier: BSD-2-Clause
/* Tests the histograms of all profilers: buckets, percentiles, and the printed form. */

#include "unit.h"

#include "../../kernel/profile/histogram.h"

#define FIRST_LOG2 7
#define NR_BUCKETS 5 /* from at most 2^7 to at least 2^11 cycles */

static u64 buckets[NR_BUCKETS];
static struct histogram h = { buckets, NR_BUCKETS, FIRST_LOG2, 0 };

static int setup(void **state)
{
	memset(buckets, 0, sizeof(buckets));
	h.max_cycles = 0;
	host_log_clear();
	return 0;
}

static void count(u64 cycles)
{
	u64 bucket = pf_log2(cycles, FIRST_LOG2) - FIRST_LOG2;

	buckets[pf_min(bucket, (u64)NR_BUCKETS - 1)]++;
	h.max_cycles = pf_max(h.max_cycles, cycles);
}

#define TEST(name) HOST_TEST_WITH(name, setup, NULL)

TEST(bucket_of_a_time)
{
	assert_int_equal(pf_log2(0ull, 0), 0);
	assert_int_equal(pf_log2(1ull, 0), 0);
	for (u32 n = 1; n < 64; n++) {
		u64 first = 1ull << n;

		assert_int_equal(pf_log2(first, 0), n);
		assert_int_equal(pf_log2(2 * first - 1, 0), n);
		assert_int_equal(pf_log2(first - 1, 0), n - 1);
		assert_int_equal(pf_log2(first, FIRST_LOG2), pf_max(n, (u32)FIRST_LOG2));
		assert_int_equal(pf_log2_by_halves(first), n);
		assert_int_equal(pf_log2_by_halves(2 * first - 1), n);
	}
	assert_int_equal(pf_log2_by_halves(1), 0);
}

TEST(empty)
{
	assert_int_equal(histogram_nr(buckets, NR_BUCKETS), 0);
	for (u32 percent = 1; percent <= 100; percent++)
		assert_int_equal(histogram_percentile(&h, percent), 0);
	assert_int_equal(histogram_cell(&h).whole, 0);
	histogram_print(&h, "empty");
	assert_log("");
}

TEST(known_percentiles)
{
	for (int i = 0; i < 50; i++)
		count(100); /* up to 255 cycles */
	for (int i = 0; i < 49; i++)
		count(1000); /* up to 1023 */
	count(1500);
	assert_int_equal(histogram_nr(buckets, NR_BUCKETS), 100);
	assert_int_equal(histogram_percentile(&h, 1), 255);
	assert_int_equal(histogram_percentile(&h, 50), 255);
	assert_int_equal(histogram_percentile(&h, 51), 1023);
	assert_int_equal(histogram_percentile(&h, 99), 1023);
	assert_int_equal(histogram_percentile(&h, 100), 1500);
}

/* Ranks are rounded up: the median of three values is the second. */
TEST(few)
{
	count(200);
	assert_int_equal(histogram_percentile(&h, 1), 200);
	assert_int_equal(histogram_percentile(&h, 99), 200);
	count(300);
	count(600);
	assert_int_equal(histogram_percentile(&h, 33), 255);
	assert_int_equal(histogram_percentile(&h, 34), 511);
	assert_int_equal(histogram_percentile(&h, 66), 511);
	assert_int_equal(histogram_percentile(&h, 67), 600);
}

/* The last bucket has no upper end, so its bound is the longest time. */
TEST(longer_than_the_last_bucket)
{
	count(1ull << 40);
	count(3000);
	assert_int_equal(buckets[NR_BUCKETS - 1], 2);
	assert_int_equal(histogram_percentile(&h, 1), 1ull << 40);
	assert_int_equal(histogram_percentile(&h, 99), 1ull << 40);
}

TEST(all_of_64_bits)
{
	u64 wide[64] = { 0 };
	struct histogram all = { wide, 64, 0, ~0ull };

	wide[0] = wide[1] = wide[63] = 1ull << 62; /* 100 times the sum does not fit 64 bits */
	assert_int_equal(histogram_nr(wide, 64), 3ull << 62);
	assert_int_equal(histogram_percentile(&all, 33), 1);
	assert_int_equal(histogram_percentile(&all, 34), 3);
	assert_int_equal(histogram_percentile(&all, 67), ~0ull);
	wide[62] = 1ull << 62;
	wide[63] = 0;
	assert_int_equal(histogram_percentile(&all, 67), ~0ull >> 1);
}

static int compare(const void *a, const void *b)
{
	return *(const u64 *)a < *(const u64 *)b ? -1 : *(const u64 *)a > *(const u64 *)b;
}

/* For random times, a percentile is at least the exact one and at most the end of its bucket. */
TEST(bounds_of_random_times)
{
	static u64 times[1000];
	u64 random = 1;

	for (u32 nr = 1; nr <= ARRAY_SIZE(times); nr += 37) {
		setup(NULL);
		for (u32 i = 0; i < nr; i++) {
			random = random * 6364136223846793005 + 1442695040888963407;
			times[i] = random >> 33 >> (random >> 59) % 24;
			count(times[i]);
		}
		qsort(times, nr, sizeof(times[0]), compare);
		for (u32 percent = 1; percent <= 100; percent++) {
			u64 exact = times[(nr * percent + 99) / 100 - 1];
			u64 bound = histogram_percentile(&h, percent);

			assert_true(bound >= exact && bound <= h.max_cycles);
			if (exact < 1ull << (FIRST_LOG2 + NR_BUCKETS - 1))
				assert_true(bound <= pf_max(2 * exact, (2ull << FIRST_LOG2) - 1));
		}
	}
}

TEST(cell)
{
	struct cell cell;

	count(1);
	count(600);
	count(700);
	cell = histogram_cell(&h);
	assert_int_equal(cell.whole, 2);
	assert_string_equal(cell.counts[0].name, "7");
	assert_int_equal(cell.counts[0].nr, 1);
	assert_string_equal(cell.counts[1].name, "9");
	assert_int_equal(cell.counts[1].nr, 2);
}

TEST(print)
{
	buckets[0] = 1;
	buckets[1] = 50;
	buckets[4] = 1000000;
	histogram_print(&h, "work");
	assert_log("                          work  2^7  cycles                 1  *\n"
		   "                          work  2^8  cycles                50  *\n"
		   "                          work  2^11 cycles           1000000  "
		   "****************************************\n");
}
