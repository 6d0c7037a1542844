// SPDX-License-Identifier: BSD-2-Clause
/*
 * The host's part of what users reach: the profilers' files, boot parameters and sysrq keys. See
 * profile_os.h and unit.h.
 */
#include "unit.h"

void (*host_on_text)(void);

static struct host_file {
	const char *path;
	int (*show)(os_text_t *text, const void *arg);
	const void *arg;
	int (*write)(const char *text);
} host_files[32];
static int (*process_file_write)(const char *text, struct process *proc);

/* So that the sections exist in every test. */
OS_BOOT_PARAM(host_anchor, "", "", NULL);
OS_SYSRQ_KEY(anchor, '\0', "", NULL);

int host_set_param(const char *name, const char *value)
{
	extern const struct boot_param __start_boot_params[], __stop_boot_params[];

	for (const struct boot_param *p = __start_boot_params; p < __stop_boot_params; p++) {
		if (!strcmp(p->name, name))
			return p->set(value);
	}
	fail_msg("no boot parameter %s", name);
	return -ENOENT;
}

void os_text_vprintf(os_text_t *text, const char *fmt, va_list args)
{
	size_t room = sizeof(text->buf) - text->len;
	size_t len = vsnprintf(text->buf + text->len, room, fmt, args);

	assert_in_range(len, 0, room - 1);
	text->len += len;
	if (host_on_text)
		host_on_text();
}

bool os_text_append(os_text_t *text, const void *bytes, size_t nr)
{
	assert_in_range(nr, 0, sizeof(text->buf) - text->len - 1);
	memcpy(text->buf + text->len, bytes, nr);
	text->len += nr;
	return true;
}

/* Makes the whole text at once. */
void os_text_stream(os_text_t *text, bool (*more)(os_text_t *text, void *data),
		    void (*end)(void *data), void *data)
{
	while (more(text, data)) {
	}
	end(data);
}

/* Adds a file, or replaces the file with this path. A writable file must say what it accepts. */
int os_add_file(const char *path, const char *accepts,
		int (*show)(os_text_t *text, const void *arg), const void *arg,
		int (*write)(const char *text))
{
	struct host_file *file = host_files;

	while (file->path && strcmp(file->path, path))
		file++;
	assert_true(file < host_files + ARRAY_SIZE(host_files));
	assert_int_equal(!accepts, !write);
	*file = (struct host_file){ .path = path, .show = show, .arg = arg, .write = write };
	return 0;
}

static os_trace_file_t trace_files[1024];

int os_add_trace_file(const os_trace_file_t *file)
{
	u32 i = 0;

	while (trace_files[i].path)
		assert_true(++i < ARRAY_SIZE(trace_files) - 1);
	trace_files[i] = *file;
	return 0;
}

const os_trace_file_t *host_trace_file(const char *path)
{
	for (const os_trace_file_t *file = trace_files; file->path; file++) {
		if (!strcmp(file->path, path))
			return file;
	}
	fail_msg("no file %s", path);
	return NULL;
}

/* Keeps only the writable file. */
int os_add_process_file(const char *name, const char *accepts,
			int (*show)(os_text_t *text, struct process *proc),
			int (*write)(const char *text, struct process *proc))
{
	assert_int_equal(!accepts, !write);
	if (!accepts)
		return 0;
	assert_string_equal(name, "strace");
	process_file_write = write;
	return 0;
}

int host_process_file_write(struct process *proc, const char *text)
{
	return process_file_write(text, proc);
}

static const struct host_file *find_file(const char *path)
{
	for (const struct host_file *file = host_files; file->path; file++) {
		if (!strcmp(file->path, path))
			return file;
	}
	fail_msg("no file %s", path);
	return NULL;
}

const char *host_file_read(const char *path)
{
	const struct host_file *file = find_file(path);
	static os_text_t text;

	memset(&text, 0, sizeof(text));
	assert_int_equal(file->show(&text, file->arg), 0);
	return text.buf;
}

int host_file_write(const char *path, const char *text)
{
	return find_file(path)->write(text);
}

void host_sysrq(char letter)
{
	extern const struct host_key __start_host_keys[], __stop_host_keys[];

	for (const struct host_key *key = __start_host_keys; key < __stop_host_keys; key++) {
		if (key->run && key->letter == letter)
			return key->run();
	}
	fail_msg("no key %c", letter);
}
