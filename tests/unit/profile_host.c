// SPDX-License-Identifier: BSD-2-Clause
/*
 * Implements the profiler's OS interface on the host: see profile_os.h and unit.h. host_files.c has
 * what users reach.
 */

#include "unit.h"

__thread unsigned int host_cpu;
__thread struct task *host_current;
struct pt_regs host_here;
const char *host_wait_name;
struct profile_function_thread *host_function_thread;
u64 host_patching;
u64 host_wait_addr;
u64 host_now;
u64 host_step;
u64 host_off;
struct profile_cpu_times host_cpu_times;

void host_add_cpu_times(struct profile_cpu_times *times)
{
	for (size_t i = 0; i < sizeof(*times) / sizeof(u64); i++)
		((u64 *)times)[i] += ((const u64 *)&host_cpu_times)[i];
}

struct profile_machine_times host_machine_times;
int host_nr_fences_dropped;
bool host_idle;
void (*host_meanwhile)(void);

bool host_is_idle(void)
{
	void (*meanwhile)(void) = host_meanwhile;

	host_meanwhile = NULL;
	if (meanwhile)
		meanwhile();
	return host_idle;
}

bool host_dying;
unsigned int host_irq_depth = 1;
u64 host_timer_deadline;
const char *host_nmi_timer = "test";
u32 host_nmi_hz;
int host_nr_nmis_sent;
int host_nr_nmis_moved;
__thread u32 host_tid = 1;
u32 host_pid = 1, host_syscall = OS_NO_SYSCALL;
u32 host_other_tid;
char host_comm[16] = "test";
u8 host_program;
u32 host_code_map;
u32 host_first_live_pid;
struct os_signal_counts host_signals;
int host_nr_key_changes;
u64 host_age_ns;
u32 host_wait_status;
u64 host_memory_bytes = 1ull << 30;
u64 host_peak_bytes[OS_NR_MEMORY_KINDS] = { 1 << 20, 3 << 19, 1 << 19 };

u64 host_task_key(void)
{
	u64 who = (u64)host_tid << 32 | host_pid;

	for (size_t i = 0; i < sizeof(host_comm); i++)
		who = who * 257 + host_comm[i];
	return who << 8 | host_program;
}

u8 host_trace_flags;
bool host_panicking;
bool host_counts_instructions;
int host_fail_alloc;
int host_nr_allocated;
void (*host_on_wait)(void);
void (*host_on_walk)(void);
const struct pt_regs *host_user_regs;
void (*host_on_line)(void);
void (*host_on_symbol)(void);
void (*host_on_key)(void);
void (*host_on_assert)(const char *what);

char host_log[1 << 20];
static size_t host_log_len;

static struct host_worker *host_woken;

/* So that the section exists in every test. */
static u64 host_percpu_anchor __used __section("percpu");

static char percpu_areas[HOST_NR_CPUS][1 << 17] __aligned(64);

__attribute__((constructor)) static void copy_percpu_image(void)
{
	for (int cpu = 0; cpu < HOST_NR_CPUS; cpu++)
		memcpy(percpu_areas[cpu], __start_percpu, __stop_percpu - __start_percpu);
}

char *host_percpu_area(unsigned int cpu)
{
	assert_true(cpu < HOST_NR_CPUS);
	assert_true(__stop_percpu - __start_percpu <= (long)sizeof(percpu_areas[0]));
	return percpu_areas[cpu];
}

u64 host_clock(void)
{
	return __atomic_add_fetch(&host_now, host_step, __ATOMIC_RELAXED);
}

void host_log_clear(void)
{
	host_log_len = 0;
	host_log[0] = '\0';
}

int os_vprintk(const char *fmt, va_list args)
{
	static __thread bool nested;
	int len;

	len = vsnprintf(host_log + host_log_len, sizeof(host_log) - host_log_len, fmt, args);
	host_log_len += len;
	assert_true(host_log_len < sizeof(host_log));
	if (host_on_line && !nested) {
		nested = true;
		host_on_line();
		nested = false;
	}
	return len;
}

ssize_t host_file_data_read(const os_file_t *file, void *buf, size_t n, u64 at)
{
	if (at >= file->bytes)
		return 0;
	n = min(n, file->bytes - at);
	memcpy(buf, (const char *)file->data + at, n);
	return n;
}

os_file_t *host_file_to_open;
u64 host_file_version; /* of all files */

os_file_t *host_file_open(const char *path)
{
	os_file_t *file = host_file_to_open;

	return file && !strcmp(path, file->path) ? file : NULL;
}

struct profile_task *os_current_profile(void)
{
	return &host_current->profile;
}

u64 host_copied_bytes(const struct process *proc)
{
	return proc->copied_bytes;
}

struct profile_task *os_task_profile(struct task *task)
{
	return &task->profile;
}

struct process *os_task_process(struct task *task)
{
	return task->proc;
}

struct profile_process *os_process_profile(struct process *proc)
{
	return &proc->profile;
}

const struct task *host_sleeper;
bool host_sleeper_asleep;
u64 host_sleeper_pc;

struct task *os_task_of(const struct profile_task *pt)
{
	return (struct task *)((char *)pt - offsetof(struct task, profile));
}

struct process *os_process_of(const struct profile_process *pp)
{
	return container_of(pp, struct process, profile);
}

int os_process_pid(const struct process *proc)
{
	return proc->pid;
}

const char *os_process_name(const struct process *proc)
{
	return proc->comm;
}

u64 os_regs_pc(const struct pt_regs *regs)
{
	return regs->pc;
}

bool os_regs_user(const struct pt_regs *regs)
{
	return regs->user;
}

u64 os_regs_sp(const struct pt_regs *regs)
{
	return regs->sp;
}

bool os_process_mapping(struct process *proc, u64 addr, char *path, size_t size, u64 *offset)
{
	if (addr < 0x400000 || addr >= 0x500000)
		return false;
	*offset = addr - 0x400000;
	snprintf(path, size, "/bin/program");
	return true;
}

bool os_regs_irqs_off(const struct pt_regs *regs)
{
	return regs->irqs_off;
}

static u64 nmi_start;

const char *os_nmi_start(u32 hz, bool *jitter, bool *moves)
{
	if (!host_nmi_timer)
		return NULL;
	host_nmi_hz = hz;
	*moves = true;
	nmi_start = os_cycles();
	return host_nmi_timer;
}

u64 os_nmi_slots(void)
{
	return (host_now - nmi_start) * host_nmi_hz / os_cycles_per_second();
}

void os_run_on_all_cpus(void (*fn)(void *unused))
{
	unsigned int cpu, self = host_cpu;

	os_for_each_cpu(cpu) {
		host_cpu = cpu;
		fn(NULL);
	}
	host_cpu = self;
}

struct profile_stack_walk os_stack_walk(const struct pt_regs *regs, u64 *pcs, u32 max)
{
	u32 nr_all = 1 + regs->nr_callers + regs->nr_user_callers, nr = min(nr_all, max);
	u32 nr_kernel = regs->user ? 0 : min(nr, 1 + regs->nr_callers);
	u64 hash = 0;

	if (host_on_walk)
		host_on_walk();
	for (u32 i = 0; i < nr; i++) {
		pcs[i] = i ? regs->callers[i - 1] : regs->pc;
		hash = profile_stack_mix(hash, pcs[i]);
	}
	return (struct profile_stack_walk){
		.hash = hash,
		.counts = PROFILE_STACK_COUNTS(
			nr_kernel, nr - nr_kernel,
			nr < nr_all ? PROFILE_STACK_TRUNCATED_DEPTH : regs->truncated,
			nr < nr_all ? PROFILE_STACK_NOT_REPLAYABLE : PROFILE_STACK_REPLAYABLE),
	};
}

static bool same_pcs(const u64 *pcs, const u64 *callers, u32 nr_callers)
{
	return !nr_callers || !memcmp(pcs, callers, nr_callers * sizeof(*pcs));
}

bool os_stack_matches_kernel(const struct pt_regs *regs, const u64 *pcs, u32 nr)
{
	static struct pt_regs user_regs;

	user_regs = *regs;
	host_user_regs = &user_regs;
	return nr == 1 + regs->nr_callers && same_pcs(pcs + 1, regs->callers, regs->nr_callers);
}

bool os_stack_matches_callers(const struct pt_regs *regs, const u64 *pcs, u32 nr)
{
	return nr <= 1 + regs->nr_callers && pcs[0] == regs->pc &&
	       same_pcs(pcs + 1, regs->callers, nr - 1);
}

bool os_stack_matches_user(const struct pt_regs *regs, const u64 *pcs, u32 nr,
			   enum profile_stack_truncation end)
{
	u32 own = regs->user; /* pcs[0] is a user address, too */

	return nr == own + regs->nr_user_callers && (!own || pcs[0] == regs->pc) &&
	       same_pcs(pcs + own, regs->callers + regs->nr_callers, regs->nr_user_callers) &&
	       regs->truncated == end;
}

void *os_alloc(size_t size)
{
	void *ptr = os_zalloc(size);

	if (ptr)
		memset(ptr, 0xa5, size);
	return ptr;
}

void *os_zalloc(size_t size)
{
	void *ptr;

	if (host_fail_alloc && host_fail_alloc-- == 1) {
		host_fail_alloc = 1;
		return NULL;
	}
	ptr = calloc(1, size);
	assert_non_null(ptr);
	__atomic_add_fetch(&host_nr_allocated, 1, __ATOMIC_RELAXED);
	return ptr;
}

void os_free(void *ptr)
{
	if (ptr)
		__atomic_sub_fetch(&host_nr_allocated, 1, __ATOMIC_RELAXED);
	free(ptr);
}

void (*host_on_lock)(os_lock_t *lock);

unsigned long os_lock(os_lock_t *lock)
{
	void (*fn)(os_lock_t * lock) = host_on_lock;

	assert_false(host_panicking);
	if (fn) {
		host_on_lock = NULL; /* the hook itself may take locks */
		fn(lock);
		host_on_lock = fn;
	}
	return pthread_mutex_lock(lock);
}

void host_assert(bool ok, const char *file, int line, const char *what)
{
	if (!ok && host_on_assert)
		host_on_assert(what);
	if (!ok && !host_panicking)
		fail_msg("%s:%d: asserted in vain: %s", file, line, what);
}

bool host_is_held(os_lock_t *lock)
{
	if (pthread_mutex_trylock(lock))
		return true;
	pthread_mutex_unlock(lock);
	return false;
}

void host_key_is_set(void)
{
	if (host_on_key)
		host_on_key();
}

void os_relax_and_yield(void)
{
	assert_non_null(host_on_wait);
	host_on_wait();
}

const char *os_syscall_name(u64 nr)
{
	static const char *const names[] = { "sys_read", "sys_write", "sys_open", "sys_close" };

	if (nr == 59)
		return "sys_execve";
	if (nr == 217)
		return "sys_getdents64";
	if (nr == 231)
		return "sys_exit_group";
	if (nr == 232)
		return "sys_epoll_wait";
	return nr < ARRAY_SIZE(names) ? names[nr] : NULL;
}

const char *os_syscall_params(u64 nr)
{
	static const char *const params[] = { "(int fd, char * buf, size_t count)",
					      "(int fd, const char *buf, size_t count)",
					      "other(char * name, int flags, unsigned mode)",
					      "(int fd)" };

	if (nr == 231)
		return "()";
	return nr < ARRAY_SIZE(params) ? params[nr] : NULL;
}

static bool is_function(u64 addr, u64 first, u64 nr_bytes, u64 *start)
{
	if (addr < first || addr >= first + 8192 * nr_bytes)
		return false;
	*start = addr - (addr - first) % nr_bytes;
	return true;
}

/*
 * Functions of 256 bytes from 0xffffffff81000000 on, fn_0 to fn_8191, and of 20 bytes from
 * 0xffffffff82000000 on, small_0 to small_8191.
 */
bool os_symbol_lookup(u64 addr, u64 *start, char *name, size_t size)
{
	const u64 large = 0xffffffff81000000, small = 0xffffffff82000000;
	bool is_large = is_function(addr, large, 256, start);

	if (host_on_symbol)
		host_on_symbol();
	if (!is_large && !is_function(addr, small, 20, start))
		return false;
	if (name)
		snprintf(name, size, is_large ? "fn_%u" : "small_%u",
			 (unsigned int)(is_large ? (*start - large) / 256 : (*start - small) / 20));
	return true;
}

bool os_symbol_range(const char *name, u64 *start, u64 *bytes)
{
	u32 nr;

	if (sscanf(name, "fn_%u", &nr) != 1)
		return false;
	*bytes = 256;
	*start = 0xffffffff81000000 + nr * *bytes;
	return true;
}

int os_worker_start(struct host_worker *worker, const char *name)
{
	return 0;
}

void os_worker_wake(struct host_worker *worker)
{
	assert_true(!host_woken || host_woken == worker);
	host_woken = worker;
}

void host_run_workers(void)
{
	struct host_worker *worker = host_woken;

	host_woken = NULL;
	if (worker)
		worker->fn();
}

#ifdef CONFIG_PROFILE_STRACE
void host_call(u64 nr, u64 cycles, long ret)
{
	profile_syscall_enter(nr);
	host_now += cycles;
	profile_syscall_exit(ret);
}
#endif

const char *host_line(const char *end)
{
	static char line[256];
	size_t end_len = strlen(end);

	for (const char *at = host_log; *at;) {
		size_t len = strcspn(at, "\n");

		if (len >= end_len && len < sizeof(line) &&
		    !strncmp(at + len - end_len, end, end_len)) {
			memcpy(line, at, len);
			line[len] = '\0';
			return line;
		}
		at += len + (at[len] == '\n');
	}
	fail_msg("no line ends in \"%s\" in:\n%s", end, host_log);
	return NULL;
}

#ifdef CONFIG_PROFILE_HEATMAP
/* Rearms the timer for the profiler's deadline alone: this kernel has no tick of its own. */
void host_timer_rearm(void)
{
	u64 deadline = ~0ull;

	profile_next_deadline(&deadline);
	if (host_cpu == 0)
		host_timer_deadline = deadline;
}

/* The interrupt arrives 100 cycles late. */
void os_wait_for_interrupt(bool halt)
{
	struct pt_regs regs = { .pc = 0 };

	host_now = max(host_now, host_timer_deadline + 100);
	profile_tick(&regs, os_cycles());
	host_timer_rearm();
}
#endif
