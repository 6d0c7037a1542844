// SPDX-License-Identifier: BSD-2-Clause
/*
 * The MC146818 clock in the CMOS. It updates once a second, and while it does (UIP) its
 * registers are undefined: read between updates, twice, until two readings agree.
 */
#include <asm/rtc.h>

#include <asm/io.h>
#include <asm/processor.h>
#include <lego/kernel.h>
#include <lego/spinlock.h>
#include <lego/string.h>

#define CMOS_INDEX   0x70
#define CMOS_DATA    0x71
#define NMI_DISABLED 0x80

enum cmos_register {
	CMOS_SECOND = 0x00,
	CMOS_MINUTE = 0x02,
	CMOS_HOUR = 0x04,
	CMOS_DAY = 0x07,
	CMOS_MONTH = 0x08,
	CMOS_YEAR = 0x09,
	CMOS_STATUS_A = 0x0a,
	CMOS_STATUS_B = 0x0b,
	CMOS_CENTURY = 0x32,
};

#define STATUS_A_UPDATING BIT(7)
#define STATUS_B_24_HOURS BIT(1)
#define STATUS_B_BINARY	  BIT(2)
#define HOUR_PM		  0x80

struct reading {
	u8 second, minute, hour, day, month, year, century;
};

/* Guards the index register until the data is read. No interrupt handler uses the CMOS. */
static DEFINE_SPINLOCK(cmos_lock);

static u8 cmos_read(enum cmos_register reg)
{
	/* The index port's top bit gates NMIs on real chipsets: keep them enabled. */
	outb(reg & ~NMI_DISABLED, CMOS_INDEX);
	return inb(CMOS_DATA);
}

static void read_registers(struct reading *now)
{
	for (int i = 0; i < 100000 && (cmos_read(CMOS_STATUS_A) & STATUS_A_UPDATING); i++)
		cpu_relax();
	now->second = cmos_read(CMOS_SECOND);
	now->minute = cmos_read(CMOS_MINUTE);
	now->hour = cmos_read(CMOS_HOUR);
	now->day = cmos_read(CMOS_DAY);
	now->month = cmos_read(CMOS_MONTH);
	now->year = cmos_read(CMOS_YEAR);
	now->century = cmos_read(CMOS_CENTURY);
}

static unsigned int from_bcd(u8 value)
{
	return (value >> 4) * 10 + (value & 0xf);
}

/*
 * Days since 1970-01-01 in the Gregorian calendar; years start in March so that leap days end
 * them.
 */
static u64 days_since_1970(unsigned int year, unsigned int month, unsigned int day)
{
	unsigned int y = month <= 2 ? year - 1 : year;
	unsigned int m = month <= 2 ? month + 9 : month - 3;
	u64 days = 365ULL * y + y / 4 - y / 100 + y / 400;

	/* 719468 days from 0000-03-01 to 1970-01-01. */
	return days + (153 * m + 2) / 5 + day - 1 - 719468;
}

static u64 reading_to_seconds(const struct reading *raw, u8 status_b)
{
	struct reading now = *raw;
	bool pm = !(status_b & STATUS_B_24_HOURS) && (now.hour & HOUR_PM);
	unsigned int year;

	if (!(status_b & STATUS_B_24_HOURS))
		now.hour &= ~HOUR_PM;
	if (!(status_b & STATUS_B_BINARY)) {
		u8 *fields = (u8 *)&now;

		for (size_t i = 0; i < sizeof(now); i++)
			fields[i] = from_bcd(fields[i]);
	}
	if (!(status_b & STATUS_B_24_HOURS))
		now.hour = now.hour % 12 + (pm ? 12 : 0);
	if (now.second > 59 || now.minute > 59 || now.hour > 23 || now.day < 1 || now.day > 31 ||
	    now.month < 1 || now.month > 12 || now.year > 99)
		return 0;
	/* Not every machine has a century register, or has it there. */
	year = now.year + (now.century == 19 || now.century == 20 || now.century == 21 ?
				   now.century * 100u :
			   now.year < 70 ? 2000u :
					   1900u);
	if (year < 1970)
		return 0;
	return days_since_1970(year, now.month, now.day) * 86400 + now.hour * 3600 +
	       now.minute * 60 + now.second;
}

u64 rtc_read_seconds(void)
{
	struct reading now, again;
	u64 seconds = 0;

	spin_lock(&cmos_lock);
	read_registers(&again);
	for (int i = 0; i < 5; i++) {
		now = again;
		read_registers(&again);
		if (!memcmp(&now, &again, sizeof(now))) {
			seconds = reading_to_seconds(&now, cmos_read(CMOS_STATUS_B));
			break;
		}
	}
	spin_unlock(&cmos_lock);
	return seconds;
}
