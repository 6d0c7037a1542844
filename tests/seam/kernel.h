/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SEAM_KERNEL_H
#define SEAM_KERNEL_H

/*
 * Declares the part of an imaginary kernel that the profiler's seam uses. It has other types, other
 * names, and familiar names with other meanings. tests/boot/test_seam.py only compiles it.
 */

#include <stdarg.h>
#include <stddef.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef _Bool bool;
enum {
	false,
	true
};

#define likely(x, percent)   __builtin_expect_with_probability(!!(x), 1, percent)
#define min(a, b, c)	     no_such_function(a, b, c)
#define max(a, b, c)	     no_such_function(a, b, c)
#define BIT(word, n)	     no_such_function(word, n)
#define ARRAY_SIZE	     64
#define BUILD_BUG_ON(c, why) no_such_function(c, why)
#define READ_ONCE(p)	     (*(p))
#define noinline	     __attribute__((noinline))
#define section(name)	     __attribute__((section(name)))
#define barrier(cpus)	     no_such_function(cpus)
#define sort		     no_such_function
#define printk		     no_such_function
#define snprintf	     no_such_function
#define per_cpu		     no_such_function
#define current		     no_such_function
#define container_of	     no_such_function

void *memset(void *dst, int c, size_t n);
void *memcpy(void *dst, const void *src, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);

/* The compiler checks the formats of their callers. */
int klogv(const char *fmt, va_list args) __attribute__((format(printf, 1, 0)));
int formatv(char *buf, size_t size, const char *fmt, va_list args)
	__attribute__((format(printf, 3, 0)));

struct thread;
struct program;
struct trap_frame {
	unsigned long pc, sp;
};

struct thread *this_thread(void);
u64 time_off(const struct thread *thread);
u64 time_on(const struct thread *thread);
u64 read_counter(void);
u64 counter_hz(void);
u64 counter_to_ns(u64 counter);
void *heap_get(size_t size);
void heap_put(void *ptr);

struct lock {
	int word;
};
#define LOCK_INIT \
	{         \
		0 \
	}
unsigned long lock_take(struct lock *lock);
void lock_drop(struct lock *lock, unsigned long flags);
unsigned long interrupts_off(void);
void interrupts_on(unsigned long flags);
bool find_function(u64 addr, char *name, size_t size, u64 *start);
const char *call_name(u64 nr);
int user_read(void *dst, u64 addr, size_t n);
long user_read_string(char *dst, u64 addr, size_t size);
u32 backtrace(const struct trap_frame *frame, u64 *pcs, u32 max);
u64 random_number(void);
u64 heap_live(int kind);

struct space;
struct space *space_of(struct program *program);
void space_put(struct space *space);
struct profile_user_range;
u32 space_ranges(struct space *space, struct profile_user_range *ranges, u32 max);
u64 space_count(struct space *space, u64 start, u64 end);
bool space_lock(struct space *space);
void space_unlock(struct space *space);
bool space_clear(struct space *space, u64 *addr, u64 end, bool *flush);
u32 space_use(struct space *space, u64 addr);
u32 space_flush(struct space *space);
void nap(u32 ms);

struct file;
struct area {
	u64 begin, end, offset;
	bool is_code;
	struct file *file;
};
u64 file_bytes(const struct file *file);
s64 file_read(struct file *file, void *buf, size_t n, u64 pos);

#endif
