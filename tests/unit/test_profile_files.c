// SPDX-License-Identifier: BSD-2-Clause
/* Tests calls by path, at given times. A cycle is a nanosecond. */
#include "strace_unit.h"

#include "../../kernel/profile/strace/files/files.h"
#include "../../kernel/profile/table.h"

static void begin_call(u64 nr, const char *path)
{
	char buf[4096] = "";

	strcpy(buf, path);
	profile_syscall_enter(nr);
	profile_path(buf, strlen(buf));
	memset(buf, 'x', sizeof(buf)); /* the kernel frees the path before the call ends */
}

static void call(const char *path, u64 cycles, long ret)
{
	begin_call(2, path);
	host_now += cycles;
	profile_syscall_exit(ret);
}

/* Makes the view of a process, or of all. */
static void read_view(struct process *of)
{
	files_pin();
	files_make_view(of);
	files_unpin();
}

/* Returns the row of a path in the view of all processes; NULL: there is none. */
static const struct file_row *row_of(const char *path)
{
	char text[FILE_PATH_BYTES];

	read_view(NULL);
	for (u32 i = 0; i < file_view.nr_rows; i++) {
		if (!strcmp(file_path_of(&file_view.rows[i], text), path))
			return &file_view.rows[i];
	}
	return NULL;
}

static void expect_row(const char *path, u64 nr, u64 nr_errors, u64 cycles)
{
	const struct file_row *row = row_of(path);

	assert_non_null(row);
	assert_int_equal(row->nr, nr);
	assert_int_equal(row->nr_errors, nr_errors);
	assert_int_equal(row->cycles, cycles);
}

static int setup_files(void **state)
{
	setup(state);
	os_key_set(&profile_files_key, true);
	off_time_switch(&files_off_time, false, true);
	host_first_live_pid = 0;
	files_reset();
	return 0;
}

#define TEST(name) HOST_TEST_WITH(name, setup_files, teardown)

TEST(calls_errors_and_times)
{
	const struct file_row *row;

	for (int i = 0; i < 3; i++)
		call("/etc/foo.conf", 100, -ENOENT);
	call("/etc/foo.conf", 50, -EACCES);
	call("/etc/passwd", 200, 3);
	host_call(5, 1000, 0); /* no path */
	expect_row("/etc/passwd", 1, 0, 200);
	expect_row("/etc/foo.conf", 4, 4, 350);
	row = row_of("/etc/foo.conf");
	assert_int_equal(row->errors[0].error, ENOENT);
	assert_int_equal(row->errors[0].nr, 3);
	assert_int_equal(row->errors[1].error, EACCES);
	assert_int_equal(row->error_cycles, 350);
	assert_int_equal(file_view.all.nr, 5);
	assert_int_equal(file_view.nr_rows, 2);
	/* The same as in the table of system calls. */
	assert_int_equal(entry_of(2)->nr_calls, 5);
	assert_int_equal(entry_of(2)->nr_errors, 4);
	assert_int_equal(entry_of(2)->ns, 550);
}

/* The time off a CPU is that of the call. */
TEST(time_off_a_cpu)
{
	begin_call(2, "/fifo");
	host_now += 1000;
	host_off += 900;
	profile_syscall_exit(0);
	assert_int_equal(row_of("/fifo")->off_cycles, 900);
	assert_int_equal(entry_of(2)->cpu_ns, 100);
}

TEST(the_first_path_of_a_call_counts)
{
	begin_call(2, "/old");
	profile_path("/new\0\0\0", 4);
	host_now += 10;
	profile_syscall_exit(0);
	begin_call(2, "");
	profile_syscall_exit(-ENOENT);
	expect_row("/old", 1, 0, 10);
	assert_int_equal(file_view.all.nr, 1);
}

/* Only the ends of paths differ, at each place of a word, and beyond what is stored. */
TEST(paths_of_each_length)
{
	char path[400], text[FILE_PATH_BYTES];

	memset(path, 'p', sizeof(path));
	for (u32 bytes = 1; bytes < sizeof(path); bytes++) {
		path[bytes] = '\0';
		call(path, 1, 0);
		path[bytes] = 'p';
	}
	path[128] = '\0';
	expect_row(path, 1, 0, 1);
	assert_int_equal(file_view.nr_rows, 128 + 1);
	strcpy(text, path);
	strcat(text, "...");
	expect_row(text, 399 - 128, 0, 399 - 128);
}

/* A call that is interrupted by a signal counts once, when it is resumed and ends. */
TEST(restarted_call)
{
	begin_call(2, "/fifo");
	host_now += 100;
	profile_syscall_exit(-512);
	profile_syscall_again(0x400, 0x7000);
	assert_null(row_of("/fifo"));
	begin_call(2, "/fifo");
	host_now += 30;
	profile_syscall_exit(4);
	assert_int_equal(row_of("/fifo")->nr, 1);
	assert_int_equal(entry_of(2)->nr_calls, 1);
}

TEST(off_and_reset)
{
	call("/a", 1, 0);
	files_reset();
	assert_null(row_of("/a"));
	call("/b", 1, 0);
	os_key_set(&profile_files_key, false);
	call("/b", 1, 0);
	expect_row("/b", 1, 0, 1);
	/* A call in flight that noted its path before counts. */
	os_key_set(&profile_files_key, true);
	begin_call(2, "/c");
	os_key_set(&profile_files_key, false);
	profile_syscall_exit(0);
	assert_int_equal(row_of("/c")->nr, 1);
	/* Not counted by strace: not counted here. */
	os_key_set(&profile_files_key, true);
	strace_switch(false);
	call("/d", 1, 0);
	strace_switch(true);
	assert_null(row_of("/d"));
	call("/e", 1, 0);
	expect_row("/e", 1, 0, 1);
}

/* Names of two processes, of which one has ended: its calls stay in the sum. */
TEST(processes)
{
	call("/a", 5, 0);
	read_view(&proc);
	assert_int_equal(file_view.all.nr, 1);
	proc.pid++;
	read_view(&proc);
	assert_int_equal(file_view.all.nr, 0);
	proc.pid--;
	expect_row("/a", 1, 0, 5);
}

/* More paths than there is room for. No call is lost, and what took longest keeps its name. */
TEST(many_paths)
{
	char path[32];
	u64 nr = 0;

	for (u32 round = 0; round < 20; round++) {
		for (u32 i = 0; i < 300; i++) {
			sprintf(path, "/tmp/%u/%u", round, i);
			call(path, 10, i % 2 ? 0 : -ENOENT);
			nr++;
		}
		call("/slow", 1 << 20, -EIO);
		nr++;
		host_run_workers();
	}
	read_view(NULL);
	assert_int_equal(files_read_lost().nr, 0);
	assert_int_equal(file_view.all.nr, nr);
	assert_int_equal(file_view.all.nr_errors, nr / 2 + 10);
	assert_true(file_view.others.nr > 0);
	expect_row("/slow", 20, 20, 20 << 20);
	assert_ptr_equal(row_of("/slow"), &file_view.rows[0]);
}

/* Without the worker, the store runs full: calls without room are counted. */
TEST(full_store)
{
	char path[32];

	for (u32 i = 0; i < 5000; i++) {
		sprintf(path, "/full/%u", i);
		call(path, 3, 0);
	}
	read_view(NULL);
	assert_true(files_read_lost().nr > 0);
	assert_int_equal(file_view.all.nr + files_read_lost().nr, 5000);
	assert_int_equal(file_view.all.cycles + files_read_lost().cycles, 15000);
}

TEST(report)
{
	struct report report = { .top = 2 };

	call("/etc/foo.conf", 300, -ENOENT);
	call("/etc/foo.conf", 300, -ENOENT);
	call("/bin\nforged \033[2J\377", 200, 3);
	call("/c", 150, 3);
	call("/d", 50, -EACCES);
	host_log_clear();
	table_text_restart();
	report_print_files(&report);
	assert_string_equal(host_log,
			    "Kernel Files (top #2)\n"
			    "files: 5 calls of all processes got a path, 3 failed\n"
			    "% time        seconds     calls    errors error   path\n"
			    "------ -------------- --------- --------- ------- ----------------\n"
			    " 60.00    0.000000600         2         2 ENOENT  /etc/foo.conf\n"
			    " 20.00    0.000000200         1         0       - /bin?forged ?[2J?\n"
			    " 20.00    0.000000200         2         1         [2 others]\n"
			    "------ -------------- --------- --------- ------- ----------------\n"
			    "100.00    0.000001000         5         3         total\n");
}

int unit_tests_begin(void **state)
{
	profile_init();
	files_init();
	return 0;
}
