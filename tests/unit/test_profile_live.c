// SPDX-License-Identifier: BSD-2-Clause
/* Tests strace trace output: capture, decoding, filters, and that every lost line is counted. */

#include "unit.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/prctl.h>
#include <linux/reboot.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

#include "../../kernel/profile/strace/errno_list.h"
#include "../../kernel/profile/strace/live/live.h"

/* User memory. Nothing else is readable. */
#define USER_BASE  0x10000ul
#define USER_BYTES 4096

static char user[USER_BYTES];
static u64 user_args[6];
static bool no_registers;
static void (*on_sleep)(void);
static int nr_sleeps;

bool os_syscall_args(u64 *args)
{
	memcpy(args, user_args, sizeof(user_args));
	return !no_registers;
}

int os_copy_from_user(void *dst, u64 addr, size_t n)
{
	if (addr < USER_BASE || addr > USER_BASE + USER_BYTES || n > USER_BASE + USER_BYTES - addr)
		return -EFAULT;
	memcpy(dst, user + (addr - USER_BASE), n);
	return 0;
}

long os_copy_string_from_user(char *dst, u64 addr, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (os_copy_from_user(dst + i, addr + i, 1))
			return -EFAULT;
		if (!dst[i])
			return i;
	}
	return -ENAMETOOLONG;
}

void os_sleep_ms(u32 ms)
{
	nr_sleeps++;
	host_now += ms * 1000000;
	if (on_sleep)
		on_sleep();
}

static struct process proc = { .pid = 20, .comm = "test" };
static struct task task = { .proc = &proc };

static int set_up(void **state)
{
	static bool started;

	host_tid = host_pid = 20;
	host_current = &task;
	if (!started) {
		started = true;
		profile_init();
	}
	host_log_clear();
	memset(user_args, 0, sizeof(user_args));
	memset(user, 0, sizeof(user));
	assert_int_equal(host_file_write("profile/strace_live", "all"), 0);
	return 0;
}

static int tear_down(void **state)
{
	no_registers = host_dying = host_panicking = false;
	assert_int_equal(host_file_write("profile/strace_live", "off"), 0);
	host_run_workers();
	profile_task_exit(&task);
	host_fail_alloc = 0;
	on_sleep = NULL;
	host_cpu = 0;
	return 0;
}

static u64 put(const char *bytes, size_t len)
{
	static size_t at;

	if (at + len > USER_BYTES)
		at = 0;
	memcpy(user + at, bytes, len);
	at += len;
	return USER_BASE + at - len;
}

#define PUT(s) put(s, strlen(s) + 1)

static void enter(u64 nr)
{
	os_current_profile()->strace.argument = nr;
	profile_strace_enter_live();
}

static void leave(long ret)
{
	os_current_profile()->strace.argument = ret;
	profile_strace_exit_live();
}

static void call(u64 nr, long ret, u64 a, u64 b, u64 c, u64 d)
{
	user_args[0] = a;
	user_args[1] = b;
	user_args[2] = c;
	user_args[3] = d;
	enter(nr);
	host_now += 12345;
	leave(ret);
	host_run_workers();
}

#define TEST(name) HOST_TEST_WITH(name, set_up, tear_down)

TEST(lines)
{
	call(__NR_openat, 3, -100, PUT("/etc/passwd"), 0, 0);
	assert_log("[pid 20] openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY) = 3 <0.000012>\n");
	host_log_clear();
	call(__NR_openat, -2, 7, PUT("x"), 0101, 0600);
	assert_log("[pid 20] openat(7, \"x\", O_WRONLY|O_CREAT, 0600) = -1 ENOENT "
		   "(No such file or directory) <0.000012>\n");
	host_log_clear();
	call(__NR_mmap, 0x7f0000000000, 0, 8192, 3, 0x22);
	assert_log("[pid 20] mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, 0, "
		   "0) = 0x7f0000000000 <0.000012>\n");
	host_log_clear();
	call(__NR_futex, -512, USER_BASE, 128, 7, 0);
	assert_log("[pid 20] futex(0x10000, FUTEX_WAIT_PRIVATE, 7, NULL) = ? ERESTARTSYS (To be "
		   "restarted if SA_RESTART is set) <0.000012>\n");
	host_log_clear();
	call(5000, -38, 1, 2, 0, 0);
	assert_log("[pid 20] syscall_0x1388(0x1, 0x2, 0, 0, 0, 0) = -1 ENOSYS (Function not "
		   "implemented) <0.000012>\n");
	host_log_clear();
	call(__NR_nanosleep, -516, USER_BASE, 0, 0, 0);
	call(__NR_restart_syscall, 0, 0, 0, 0, 0);
	assert_non_null(strstr(host_log, "restart_syscall(<... resuming interrupted nanosleep"));
}

/* Output is captured when the call ends, unless it fails. */
TEST(output)
{
	u64 buf = put("0123456789012345678901234567890123456789", 40);

	call(__NR_read, 3, 0, buf, 100, 0);
	assert_log("[pid 20] read(0, \"012\", 100) = 3 <0.000012>\n");
	host_log_clear();
	call(__NR_read, 33, 0, buf, 100, 0);
	assert_log("[pid 20] read(0, \"01234567890123456789012345678901\"..., 100) = 33 "
		   "<0.000012>\n");
	host_log_clear();
	call(__NR_read, -9, 0, USER_BASE, 100, 0);
	assert_log("[pid 20] read(0, 0x10000, 100) = -1 EBADF (Bad file descriptor) "
		   "<0.000012>\n");
}

TEST(ends)
{
	user_args[0] = 7;
	enter(__NR_exit_group);
	profile_task_exit(&task);
	host_run_workers();
	assert_log("[pid 20] exit_group(7) = ?\n");
	host_log_clear();
	host_dying = true;
	call(__NR_pause, -512, 0, 0, 0, 0);
	assert_log("[pid 20] pause() = ?\n");
}

/* Every call with extreme register values: lines are bounded, printable and complete. */
TEST(hostile)
{
	static const u64 values[] = { 0,
				      1,
				      ~0ull,
				      ~0u,
				      1ull << 63,
				      0x8000000000000000ull - 1,
				      USER_BASE,
				      USER_BASE + USER_BYTES - 1,
				      USER_BASE + USER_BYTES,
				      0xffffffff81000000,
				      0x5555555555555555,
				      0x80000000,
				      512,
				      0x1000000000000ull };
	static const long rets[] = { 0, -1, 1, -512, -516, -4095, -4096, 1l << 62, 33, -999 };
	u64 seed = 1;

	for (size_t i = 0; i < USER_BYTES; i++)
		user[i] = (seed = seed * 6364136223846793005 + 1) >> 56 | 1;
	for (u64 nr = 0; nr < 600; nr++) {
		for (u32 round = 0; round < 40; round++) {
			long ret = rets[(seed >> 40) % ARRAY_SIZE(rets)];

			for (u32 i = 0; i < 6; i++) {
				seed = seed * 6364136223846793005 + 1442695040888963407;
				user_args[i] = round < ARRAY_SIZE(values) ?
						       values[round] :
						       values[(seed >> 33) % ARRAY_SIZE(values)];
			}
			host_log_clear();
			enter(nr);
			leave(ret);
			host_run_workers();
			assert_in_range(strlen(host_log), 10, LIVE_LINE_BYTES);
			assert_non_null(strstr(host_log, ") = "));
			assert_ptr_equal(strchr(host_log, '\n'), host_log + strlen(host_log) - 1);
			for (const char *c = host_log; *c != '\n'; c++)
				assert_in_range(*c, ' ', '~');
		}
	}
}

/* Decodes random bytes, as in a ring that was overwritten. */
TEST(decode_garbage)
{
	static struct live_call garbage;
	char line[LIVE_LINE_BYTES + 8];
	u64 seed = 7;

	for (u32 round = 0; round < 20000; round++) {
		for (size_t i = 0; i < sizeof(garbage); i++)
			((char *)&garbage)[i] =
				(seed = seed * 6364136223846793005 + 1442695040888963407) >> 56;
		garbage.nr %= 520;
		*(u8 *)&garbage.returned &= 1;
		for (u32 i = 0; i < LIVE_MAX_CHUNKS; i++)
			*(u8 *)&garbage.chunks[i].truncated &= 1;
		memset(line, 'x', sizeof(line));
		live_decode(&garbage, line, LIVE_LINE_BYTES);
		assert_in_range(strlen(line), 10, LIVE_LINE_BYTES - 1);
		assert_memory_equal(line + LIVE_LINE_BYTES, "xxxxxxxx", 8);
	}
}

TEST(long_paths)
{
	char path[LIVE_PATH_BYTES + 1];

	memset(path, 1, sizeof(path));
	memset(user, 1, sizeof(user));
	call(__NR_rename, 0, USER_BASE, USER_BASE + 300, 0, 0);
	assert_non_null(strstr(host_log, "...) = 0 <0.000012>\n"));
	host_log_clear();
	memset(user, 'p', 255);
	user[255] = '\0';
	call(__NR_chdir, 0, USER_BASE, 0, 0, 0);
	assert_int_equal(strlen(host_log), strlen("[pid 20] chdir(\"\") = 0 <0.000012>\n") + 255);
	host_log_clear();
	user[255] = 'p';
	call(__NR_chdir, 0, USER_BASE, 0, 0, 0);
	assert_non_null(strstr(host_log, "ppp\"...) = 0 <"));
	/* The memory ends inside a string. */
	host_log_clear();
	memset(user, 'p', USER_BYTES);
	call(__NR_chdir, -14, USER_BASE + USER_BYTES - 3, 0, 0, 0);
	assert_log("[pid 20] chdir(0x10ffd) = -1 EFAULT (Bad address) <0.000012>\n");
}

/* Lines begin as in `strace -f -ttt`; the CPU follows the return value. */
TEST(time_and_cpu)
{
	assert_int_equal(host_file_write("profile/strace_live", "all,+time"), 0);
	host_now = 41000000999;
	call(__NR_getpid, 5, 0, 0, 0, 0);
	assert_log("[pid 20] 1700000041.000000 getpid() = 5 <0.000012>\n");
	host_log_clear();
	host_now = 7000003000;
	assert_int_equal(host_file_write("profile/strace_live", "failed,+cpu,+time"), 0);
	host_cpu = 2;
	call(__NR_close, 0, 1, 0, 0, 0);
	call(__NR_close, -9, -1, 0, 0, 0);
	assert_log("[pid 20] 1700000007.000015 close(-1) = -1 EBADF (Bad file descriptor) (CPU 2) "
		   "<0.000012>\n");
	host_log_clear();
	/* "time" is also the name of a system call. */
	assert_int_equal(host_file_write("profile/strace_live", "time,+cpu"), 0);
	call(__NR_getpid, 5, 0, 0, 0, 0);
	call(__NR_time, 5, 0, 0, 0, 0);
	assert_log("[pid 20] time(NULL) = 5 (CPU 2) <0.000012>\n");
	host_cpu = 0;
}

static const char *const good[] = { "all",    "+time",	      "file +cpu,+time",
				    "file",   "-memory",      "openat,read",
				    "open*",  "desc,-close",  "failed",
				    ">100us", "pid:7 failed", "wait",
				    "off\n",  "file\n",	      "all,>1s,pid:1,pid:2",
				    ">5ms",   ">300ns" };
static const char *const bad[] = {
	"",
	"nonsense",
	"-",
	"pid:",
	"pid:0",
	"pid:x",
	">",
	">us",
	">0us",
	">99999999999999999999s",
	">1",
	"off,all",
	"file,,x*y",
	"pid:1,pid:1,pid:1,pid:1,pid:1,pid:1,pid:1,pid:1,pid:1",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
};

TEST(filter_words)
{
	struct live_filter filter;

	for (u32 i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(live_filter_parse(good[i], &filter), 0);
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(live_filter_parse(bad[i], &filter), -EINVAL);
	assert_int_equal(host_set_param("profile.strace_live", "nonsense"), -EINVAL);
	assert_int_equal(host_file_write("profile/strace_live", "nonsense"), -EINVAL);
	assert_non_null(strstr(host_file_read("profile/strace_live"), "all\n"));
}

/* Returns the first letters of the calls that are printed with a filter. */
static const char *shown(const char *words)
{
	static char names[64];

	names[0] = '\0';
	assert_int_equal(host_file_write("profile/strace_live", words), 0);
	host_log_clear();
	call(__NR_openat, -2, 0, 0, 0, 0);
	call(__NR_read, 0, 0, 0, 0, 0);
	call(__NR_brk, 0x5000, 0, 0, 0, 0);
	call(5000, -38, 0, 0, 0, 0);
	for (const char *at = host_log; (at = strstr(at, "] ")); at += 2)
		snprintf(names + strlen(names), 3, "%c ", at[2]);
	return names;
}

TEST(filter)
{
	assert_string_equal(shown("all"), "o r b s ");
	assert_string_equal(shown("file"), "o ");
	assert_string_equal(shown("desc"), "o r ");
	assert_string_equal(shown("-desc"), "b s ");
	assert_string_equal(shown("desc,-open*"), "r ");
	assert_string_equal(shown("brk read"), "r b ");
	assert_string_equal(shown("failed"), "o s ");
	assert_string_equal(shown("desc,failed"), "o ");
	assert_string_equal(shown(">12us"), "o r b s ");
	assert_string_equal(shown(">13us"), "");
	assert_string_equal(shown("pid:20,brk"), "b ");
	assert_string_equal(shown("pid:21"), "");
	assert_string_equal(shown("off"), "");
	assert_false(os_key_is_set(&profile_live_key));
}

/* A call that began before the filter changed, and one without user registers, print nothing. */
TEST(switch_inside)
{
	enter(__NR_getpid);
	assert_int_equal(host_file_write("profile/strace_live", "all"), 0);
	leave(0);
	leave(0);
	no_registers = true;
	enter(__NR_execve);
	leave(0);
	host_run_workers();
	assert_log("");
}

static u64 counter(const char *name)
{
	const char *at = strstr(host_file_read("profile/strace_live"), name);

	assert_non_null(at);
	return strtoul(at + strlen(name) + 1, NULL, 10);
}

static void check_counters_add_up(void)
{
	assert_int_equal(counter("made"),
			 counter("printed") + counter("lost_no_room") + counter("lost_no_memory"));
}

TEST(losses)
{
	u64 made = counter("made"), lost = counter("lost_no_room");

	for (u32 i = 0; i < 5000; i++) {
		host_cpu = i % 2;
		enter(__NR_getpid);
		leave(i);
	}
	host_run_workers();
	check_counters_add_up();
	assert_int_equal(counter("made"), made + 5000);
	assert_true(counter("lost_no_room") > lost);
	assert_non_null(strstr(host_log, "lines lost: "));
	/* Lines are sorted by the time their calls ended, across CPUs. */
	assert_int_equal(strncmp(host_log, "[pid 20] getpid() = 0 <", 23), 0);
	host_log_clear();
	profile_task_exit(&task);
	host_fail_alloc = 1;
	call(__NR_getpid, 1, 0, 0, 0, 0);
	host_fail_alloc = 0;
	check_counters_add_up();
	assert_non_null(strstr(host_log, "no memory"));
}

TEST(wait)
{
	u64 lost = counter("lost_no_room");

	assert_int_equal(host_file_write("profile/strace_live", "all,wait"), 0);
	on_sleep = host_run_workers;
	for (u32 i = 0; i < 5000; i++) {
		enter(__NR_getpid);
		leave(i);
	}
	host_run_workers();
	check_counters_add_up();
	assert_true(nr_sleeps > 0);
	assert_int_equal(counter("lost_no_room"), lost);
}

TEST(order)
{
	for (u32 i = 0; i < 100; i++) {
		host_cpu = (i * 7) % 3;
		host_now += 10;
		enter(__NR_getpid);
		leave(i);
	}
	report_flush();
	for (const char *at = host_log, *next; *at; at = next + 1) {
		char expected[32];

		next = strchr(at, '\n');
		snprintf(expected, sizeof(expected), "getpid() = %u <",
			 (u32)(strtoul(strstr(at, "= ") + 2, NULL, 10)));
		assert_non_null(strstr(at, expected));
	}
	for (u32 i = 0; i < 99; i++) {
		char one[32], other[32];

		snprintf(one, sizeof(one), "() = %u <", i);
		snprintf(other, sizeof(other), "() = %u <", i + 1);
		assert_true(strstr(host_log, one) < strstr(host_log, other));
	}
}

TEST(panic)
{
	enter(__NR_getpid);
	leave(5);
	host_panicking = true;
	report_flush();
	assert_log("[pid 20] getpid() = 5 <0.000000>\n");
}

/* One thread fills the rings while another empties them. */
static void *produce(void *arg)
{
	static struct task other = { .proc = &proc };

	host_current = &other;
	host_cpu = 1;
	host_tid = 21;
	for (u32 i = 0; i < 20000; i++) {
		struct live_call *one = calloc(1, sizeof(*one));

		one->nr = __NR_getpid;
		one->ret = i;
		one->nr_bytes = i % 300;
		memset(one->bytes, i, one->nr_bytes);
		while (!live_ring_put(one))
			;
		free(one);
	}
	return NULL;
}

TEST(ring_race)
{
	static struct live_call got;
	pthread_t thread;
	u32 next = 0;

	assert_int_equal(pthread_create(&thread, NULL, produce, NULL), 0);
	while (next < 20000) {
		if (!live_ring_get(&got))
			continue;
		assert_int_equal(got.ret, next);
		assert_int_equal(got.nr_bytes, next % 300);
		for (u32 i = 0; i < got.nr_bytes; i++)
			assert_int_equal((u8)got.bytes[i], (u8)next);
		/* A panic that stops the reader here finds the call again. */
		assert_true(live_ring_get(&got));
		assert_int_equal(got.ret, next);
		live_ring_drop(&got);
		next++;
	}
	pthread_join(thread, NULL);
}

/* Compares our values with those of the host's headers, as far as these have the names. */
TEST(values)
{
#define CHECK_IF(name, value) assert_int_equal((u32)(name), (u32)(value));
	/* clang-format off */
	LIVE_family(CHECK_IF) LIVE_socket(CHECK_IF) LIVE_msg(CHECK_IF) LIVE_shutdown(CHECK_IF)
	LIVE_sockopt_level(CHECK_IF) LIVE_sockopt(CHECK_IF)
	LIVE_timerfd(CHECK_IF) LIVE_signalfd(CHECK_IF) LIVE_memfd(CHECK_IF)
	LIVE_close_range(CHECK_IF)
	LIVE_epoll(CHECK_IF) LIVE_epoll_ctl(CHECK_IF) LIVE_eventfd(CHECK_IF)
	LIVE_access(CHECK_IF) LIVE_whence(CHECK_IF) LIVE_file_type(CHECK_IF)
	LIVE_mode_bits(CHECK_IF) LIVE_fadvise(CHECK_IF) LIVE_rlimit(CHECK_IF)
	LIVE_sig_how(CHECK_IF) LIVE_itimer(CHECK_IF) LIVE_timer(CHECK_IF) LIVE_wait(CHECK_IF)
	LIVE_idtype(CHECK_IF) LIVE_mlockall(CHECK_IF) LIVE_getrandom(CHECK_IF) LIVE_clone(CHECK_IF)
	LIVE_membarrier(CHECK_IF) LIVE_prctl(CHECK_IF) LIVE_futex(CHECK_IF) LIVE_futex_op(CHECK_IF)
	LIVE_futex_cmp(CHECK_IF) LIVE_reboot(CHECK_IF) LIVE_reboot_magic1(CHECK_IF)
	LIVE_reboot_magic2(CHECK_IF) LIVE_msync(CHECK_IF) LIVE_mremap(CHECK_IF)
	LIVE_statx_mask(CHECK_IF) LIVE_priority(CHECK_IF) LIVE_tcxonc(CHECK_IF)
	LIVE_tcflsh(CHECK_IF) LIVE_rename(CHECK_IF) LIVE_at(CHECK_IF) LIVE_faccess(CHECK_IF)
	LIVE_fallocate(CHECK_IF) LIVE_umount(CHECK_IF) LIVE_seals(CHECK_IF)
	LIVE_notify(CHECK_IF) LIVE_lease(CHECK_IF) LIVE_fdflags(CHECK_IF)
#define CHECK_ERRNO(nr, name, text) \
	assert_int_equal(name, nr); \
	assert_string_equal(strerror(nr), text);
	ERRNO_LIST(CHECK_ERRNO)
	/* clang-format on */
}
