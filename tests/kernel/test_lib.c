// SPDX-License-Identifier: BSD-2-Clause
/* Tests kernel/lib and the small services around it. */

#include <lego/selftest.h>

#include <lego/errno.h>
#include <lego/kallsyms.h>
#include <lego/math64.h>
#include <lego/params.h>
#include <lego/printk.h>
#include <lego/random.h>
#include <lego/sort.h>
#include <lego/string.h>
#include <lego/syscall.h>

/* Has no printf attribute, since it also tests formats that the compiler would warn about. */
static bool prints(const char *want, const char *fmt, ...)
{
	char buf[64];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(buf, sizeof(buf), fmt, args);
	va_end(args);
	if (len == (int)strlen(want) && !strcmp(buf, want))
		return true;
	printk("    # '%s' makes '%s' (%d), want '%s'\n", fmt, buf, len, want);
	return false;
}

SELFTEST(lib, printf_integers)
{
	EXPECT(prints("0 -1 42", "%d %i %u", 0, -1, 42U));
	EXPECT(prints("-2147483648", "%d", INT32_MIN));
	EXPECT(prints("-9223372036854775808", "%ld", (long)INT64_MIN));
	EXPECT(prints("18446744073709551615", "%llu", ~0ULL));
	EXPECT(prints("ff FF 0xff 0XFF 377 0377", "%x %X %#x %#X %o %#o", 255, 255, 255, 255, 255,
		      255));
	EXPECT(prints("-1 255 -1 65535", "%hhd %hhu %hd %hu", -1, 255, -1, 65535));
	EXPECT(prints("4294967296", "%zu", (size_t)1 << 32));
	EXPECT(prints("+5  5 -5", "%+d % d %d", 5, 5, -5));
}

SELFTEST(lib, printf_width)
{
	EXPECT(prints("   42|42   |00042|-0042", "%5d|%-5d|%05d|%05d", 42, 42, 42, -42));
	EXPECT(prints("  042|", "%5.3d|", 42));
	EXPECT(prints("|", "%.0d|", 0));
	EXPECT(prints("    7|7    |", "%*d|%*d|", 5, 7, -5, 7));
	EXPECT(prints("0x00ff", "%#06x", 255));
	EXPECT(prints("  abc|abc  |ab|x", "%5s|%-5s|%.2s|%c", "abc", "abc", "abc", 'x'));
	EXPECT(prints("abc", "%.*s", 3, "abcdef"));
	EXPECT(prints("100%", "%d%%", 100));
	EXPECT(prints("0xffffffff81000000", "%p", (void *)0xffffffff81000000UL));
}

SELFTEST(lib, printf_truncates)
{
	char buf[8];

	memset(buf, 'x', sizeof(buf));
	EXPECT_EQ(snprintf(buf, 4, "%s", "abcdef"), 6);
	EXPECT(!memcmp(buf, "abc\0xxxx", 8));
	EXPECT_EQ(scnprintf(buf, 4, "%s", "abcdef"), 3);
	EXPECT_EQ(snprintf(NULL, 0, "%d", 12345), 5);
	EXPECT_EQ(scnprintf(buf, 0, "abc"), 0);
}

SELFTEST(lib, strings)
{
	char buf[8];

	EXPECT_EQ(strscpy(buf, "1234567", sizeof(buf)), 7);
	EXPECT_EQ(strscpy(buf, "12345678", sizeof(buf)), -E2BIG);
	EXPECT(!strcmp(buf, "1234567"));
	EXPECT_EQ(strscpy(buf, "", 0), -E2BIG);
	EXPECT(strcmp("a", "b") < 0 && strcmp("b", "a") > 0 && strcmp("\xff", "a") > 0);
	EXPECT(!strncmp("abcx", "abcy", 3) && strncmp("abcx", "abcy", 4) < 0);
	EXPECT(strchr("abc", 'c') && !strchr("abc", 'x') && *strchr("abc", 0) == 0);
	EXPECT(!strcmp(strrchr("a/b/c", '/'), "/c"));
	EXPECT(memcmp("aaaaaaaaaab", "aaaaaaaaaac", 11) < 0);
}

/* Overlapping copies of every distance and length around the word size, in both directions. */
SELFTEST(lib, memory)
{
	u8 buf[160], want[160];

	for (size_t from = 40; from < 56; from++) {
		for (size_t to = 16; to < 90; to++) {
			for (size_t n = 0; n < 50; n += 7) {
				for (size_t i = 0; i < sizeof(buf); i++)
					buf[i] = want[i] = i;
				for (size_t i = 0; i < n; i++)
					want[to + i] = from + i;
				memmove(buf + to, buf + from, n);
				ASSERT(!memcmp(buf, want, sizeof(buf)));
			}
		}
	}
	for (size_t n = 0; n < 70; n++) {
		memset(buf, 0, sizeof(buf));
		memset(buf + 3, 0xa5, n);
		EXPECT(!buf[2] && !buf[n + 3]);
		for (size_t i = 0; i < n; i++)
			ASSERT(buf[3 + i] == 0xa5);
	}
}

SELFTEST(lib, glob)
{
	static const struct {
		const char *pattern, *text;
		bool match;
	} cases[] = {
		{ "", "", true },
		{ "", "a", false },
		{ "*", "", true },
		{ "a*c", "abbbc", true },
		{ "a*c", "abbbd", false },
		{ "?", "", false },
		{ "a?c", "abc", true },
		{ "[a-c]x", "bx", true },
		{ "[!a-c]x", "bx", false },
		{ "[]x]", "]", true },
		{ "[abc", "[abc", true },
		{ "*a*b*", "xxaxxbxx", true },
		{ "*a*b", "ab ab a", false },
		{ "**", "x", true },
		{ "a[", "a[", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (glob_match(cases[i].pattern, cases[i].text) != cases[i].match)
			selftest_fail(__FILE__, __LINE__, cases[i].pattern);
	}
	EXPECT(glob_match_list("x,word*", "wordcount"));
	EXPECT(glob_match_list("word*,x", "wordcount"));
	EXPECT(!glob_match_list("word,count", "wordcount"));
	EXPECT(glob_match_list("a,", ""));
}

static int compare_u32(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

SELFTEST(lib, sort)
{
	static u32 numbers[1000];

	for (size_t nr = 0; nr <= ARRAY_SIZE(numbers); nr = nr < 10 ? nr + 1 : nr * 10) {
		u64 sum = 0, sorted_sum = 0;

		for (size_t i = 0; i < nr; i++)
			sum += numbers[i] = i * 2654435761U >> 20;
		sort(numbers, nr, sizeof(numbers[0]), compare_u32);
		for (size_t i = 0; i < nr; i++) {
			sorted_sum += numbers[i];
			ASSERT(!i || numbers[i - 1] <= numbers[i]);
		}
		EXPECT_EQ(sorted_sum, sum);
	}
}

SELFTEST(lib, mul_div)
{
	EXPECT_EQ(mul_div_u64(7, 3, 2), 10);
	EXPECT_EQ(mul_div_u64(~0ULL, ~0ULL, ~0ULL), ~0ULL);
	EXPECT_EQ(mul_div_u64(~0ULL, 1000000000, 1000000001), 18446744055262807559ULL);
	EXPECT_EQ(mul_div_u64(~0ULL, 2, 1), ~0ULL); /* saturated */
	EXPECT_EQ(mul_div_u64(1ULL << 63, 6, 4), 3ULL << 62);
	EXPECT_EQ(mul_div_u64(0, ~0ULL, 5), 0);
}

SELFTEST(lib, parse_u64)
{
	u64 value = 7;

	EXPECT(!parse_u64("0", &value) && value == 0);
	EXPECT(!parse_u64("18446744073709551615", &value) && value == ~0ULL);
	EXPECT(!parse_u64("0xfF", &value) && value == 255);
	EXPECT_EQ(parse_u64("18446744073709551616", &value), -ERANGE);
	EXPECT_EQ(parse_u64("0x10000000000000000", &value), -ERANGE);
	EXPECT_EQ(parse_u64("", &value), -EINVAL);
	EXPECT_EQ(parse_u64("0x", &value), -EINVAL);
	EXPECT_EQ(parse_u64("12a", &value), -EINVAL);
	EXPECT_EQ(parse_u64("-1", &value), -EINVAL);
	EXPECT_EQ(parse_u64(" 1", &value), -EINVAL);
	EXPECT_EQ(value, 255);
}

SELFTEST(lib, kallsyms)
{
	u64 addr = (u64)&printk, start = 0, size = 0, found, found_size;
	const char *name = kallsyms_lookup(addr + 1, &start, &size);

	ASSERT(name);
	EXPECT(!strcmp(name, "printk"));
	EXPECT_EQ(start, addr);
	EXPECT(size > 1);
	EXPECT(kallsyms_find("printk", &found, &found_size));
	EXPECT(found == addr && found_size == size);
	EXPECT(!kallsyms_find("no such function", &found, &found_size));
	EXPECT(!kallsyms_lookup(0, NULL, NULL));
	EXPECT(!kallsyms_lookup(~0ULL, NULL, NULL));
	EXPECT(!kallsyms_lookup((u64)&start, NULL, NULL));
}

SELFTEST(lib, syscall_names)
{
	EXPECT(!strcmp(syscall_name(0), "sys_read"));
	EXPECT(!strcmp(syscall_name(202), "sys_futex"));
	EXPECT(!strcmp(syscall_name(231), "sys_exit_group"));
	EXPECT(!syscall_name(400));
	EXPECT(!syscall_name(NR_SYSCALLS));
	EXPECT(!syscall_name(~0UL));
}

static int compare_words(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* Requests of all sizes up to 200 bytes give no 8 bytes twice, and as many ones as zeros. */
SELFTEST(lib, random)
{
	static u64 words[2600];
	u8 *bytes = (u8 *)words;
	size_t nr_ones = 0, used = 0;

	for (size_t n = 0; n <= 200; used += n++)
		random_bytes(bytes + used, n);
	ASSERT(used <= sizeof(words));
	used /= sizeof(*words);
	for (size_t i = 0; i < used; i++) {
		for (u64 word = words[i]; word; word &= word - 1)
			nr_ones++;
	}
	EXPECT(nr_ones > used * 31 && nr_ones < used * 33);
	sort(words, used, sizeof(*words), compare_words);
	for (size_t i = 1; i < used; i++)
		EXPECT(words[i] != words[i - 1]);
}
