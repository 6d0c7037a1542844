// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes a captured call as the line that strace would print. The table of calls, generated from
 * syscalls.tbl, has the type of each argument; calls.c prints the types with special rules. All
 * text goes through live_put() and live_printf(), which stop at the end of the line. RET_BYTES of
 * the line are reserved for the return value. The decoder reads only the captured call, so it works
 * in any context.
 */

#include "live.h"

#include "../errno_list.h"

#define RET_BYTES     160 /* room for the return value, the CPU and the duration */
#define FIRST_RESTART 512
#define LIVE_AT_FDCWD (-100)

static const struct live_syscall syscalls[LIVE_NR_SYSCALLS] = {
#define LIVE_SYSCALL(nr, name_, classes_, ret_, ...) \
	[nr] = { .name = #name_, .classes = (classes_), .ret = (ret_), .args = { __VA_ARGS__ } },
	OS_SYSCALL_DECODE_LIST(LIVE_SYSCALL)
};

const struct live_syscall *live_syscall(u64 nr)
{
	static const struct live_syscall unknown = { .args = { LIVE_ARG(raw, 0) } };

	return nr < LIVE_NR_SYSCALLS && syscalls[nr].name ? &syscalls[nr] : &unknown;
}

struct name {
	const char *name;
	u32 value;
};

#define NAME(name, value)    { #name, value },
#define NAMES(xlat, unknown) static const struct name xlat##_names[] = { LIVE_##xlat(NAME) };
LIVE_XLATS(NAMES)

static const struct {
	const struct name *names;
	u32 nr;
	const char *unknown;
} xlats[] = {
#define XLAT(xlat, unknown) \
	[LIVE_XLAT_##xlat] = { xlat##_names, PF_ARRAY_SIZE(xlat##_names), unknown },
	LIVE_XLATS(XLAT)
};

void live_put(struct live_text *text, const char *s)
{
	for (; *s; s++) {
		if (text->len + 1 >= text->size) {
			text->truncated = true;
			break;
		}
		text->buf[text->len++] = *s;
	}
	text->buf[text->len] = '\0';
}

void live_printf(struct live_text *text, const char *fmt, ...)
{
	char formatted[64];
	va_list args;

	va_start(args, fmt);
	os_vsnprintf(formatted, sizeof(formatted), fmt, args);
	va_end(args);
	live_put(text, formatted);
}

void live_put_ptr(struct live_text *text, u64 value)
{
	if (value)
		live_printf(text, "0x%llx", (unsigned long long)value);
	else
		live_put(text, "NULL");
}

/* Puts 0 without 0x, as strace does. */
void live_put_hex(struct live_text *text, u64 value)
{
	live_printf(text, value ? "0x%llx" : "%llx", (unsigned long long)value);
}

/* Counts real-time signals from the kernel's SIGRTMIN, 32; libc's SIGRTMIN is 34. */
void live_put_signal(struct live_text *text, s32 value)
{
	const char *name = value == 32 ? "SIGRTMIN" : report_signal(value);

	if (name)
		live_put(text, name);
	else if (value > 32 && value <= 64)
		live_printf(text, "SIGRT_%d", value - 32);
	else
		live_printf(text, "%d", value);
}

const char *live_value_name(enum live_xlat_id xlat, u32 value)
{
	for (u32 i = 0; i < xlats[xlat].nr; i++)
		if (xlats[xlat].names[i].value == value)
			return xlats[xlat].names[i].name;
	return NULL;
}

static void put_unknown(struct live_text *text, enum live_xlat_id xlat, u32 value)
{
	live_put_hex(text, value);
	live_printf(text, " /* %s */", xlats[xlat].unknown);
}

void live_put_value(struct live_text *text, enum live_xlat_id xlat, u32 value)
{
	const char *name = live_value_name(xlat, value);

	if (name)
		live_put(text, name);
	else
		put_unknown(text, xlat, value);
}

u32 live_put_names(struct live_text *text, enum live_xlat_id xlat, u32 value, bool *any)
{
	for (u32 i = 0; i < xlats[xlat].nr; i++) {
		const struct name *name = &xlats[xlat].names[i];

		if (!name->value || (value & name->value) != name->value)
			continue;
		live_put(text, *any ? "|" : "");
		live_put(text, name->name);
		value &= ~name->value;
		*any = true;
	}
	return value;
}

void live_put_flags(struct live_text *text, enum live_xlat_id xlat, u32 value)
{
	bool any = false;
	u32 rest;

	if (!value) {
		live_put(text, live_value_name(xlat, 0) ?: "0");
		return;
	}
	rest = live_put_names(text, xlat, value, &any);
	if (!any)
		put_unknown(text, xlat, rest);
	else if (rest)
		live_printf(text, "|0x%x", rest);
}

/* Escapes as strace does: with three octal digits if a digit follows, else as few as needed. */
static void put_byte(struct live_text *text, u8 byte, bool digit_follows)
{
	static const char *const escapes[256] = {
		['"'] = "\\\"", ['\\'] = "\\\\", ['\t'] = "\\t", ['\n'] = "\\n",
		['\v'] = "\\v", ['\f'] = "\\f",	 ['\r'] = "\\r",
	};

	if (escapes[byte])
		live_put(text, escapes[byte]);
	else if (byte >= ' ' && byte <= '~')
		live_printf(text, "%c", byte);
	else if (digit_follows)
		live_printf(text, "\\%03o", byte);
	else
		live_printf(text, "\\%o", byte);
}

static void put_quoted(struct live_text *text, const char *bytes, size_t len, bool hex,
		       bool truncated)
{
	live_put(text, "\"");
	for (size_t i = 0; i < len; i++) {
		bool digit_follows = i + 1 < len && bytes[i + 1] >= '0' && bytes[i + 1] <= '7';

		if (hex)
			live_printf(text, "\\x%02x", (u8)bytes[i]);
		else
			put_byte(text, bytes[i], digit_follows);
	}
	live_put(text, truncated ? "\"..." : "\"");
}

static void put_chunk(struct live_text *text, const struct live_call *call, unsigned int arg,
		      bool hex)
{
	const struct live_chunk *chunk = live_chunk_of(call, arg);

	if (!chunk || chunk->at > sizeof(call->bytes) ||
	    chunk->len > sizeof(call->bytes) - chunk->at)
		live_put_ptr(text, call->args[arg]);
	else
		put_quoted(text, call->bytes + chunk->at, chunk->len, hex, chunk->truncated);
}

void live_put_string(struct live_text *text, const struct live_call *call, unsigned int arg)
{
	put_chunk(text, call, arg, false);
}

static void put_raw(struct live_text *text, const struct live_call *call)
{
	for (unsigned int i = 0; i < LIVE_MAX_ARGS; i++) {
		live_put(text, i ? ", " : "");
		live_put_hex(text, call->args[i]);
	}
}

static void put_number(struct live_text *text, u8 type, u64 value)
{
	switch (type) {
	case LIVE_ARG_int:
	case LIVE_ARG_fd:
		live_printf(text, "%d", (s32)value);
		break;
	case LIVE_ARG_dirfd:
		if ((s32)value == LIVE_AT_FDCWD)
			live_put(text, "AT_FDCWD");
		else
			live_printf(text, "%d", (s32)value);
		break;
	case LIVE_ARG_uint:
		live_printf(text, "%u", (u32)value);
		break;
	case LIVE_ARG_uid:
		live_printf(text, (u32)value == ~0u ? "%d" : "%u", (u32)value);
		break;
	case LIVE_ARG_long:
		live_printf(text, "%lld", (long long)value);
		break;
	case LIVE_ARG_size:
		live_printf(text, "%llu", (unsigned long long)value);
		break;
	case LIVE_ARG_mode:
		live_printf(text, (u16)value >= 0100 ? "0%o" : "%03o", (u16)value);
		break;
	case LIVE_ARG_sig:
		live_put_signal(text, value);
		break;
	case LIVE_ARG_ptr:
		live_put_ptr(text, value);
		break;
	default:
		live_put_hex(text, value);
		break;
	}
}

/* Returns false if no other argument follows. */
static bool put_arg(struct live_text *text, const struct live_call *call, unsigned int i)
{
	const struct live_arg *arg = &live_syscall(call->nr)->args[i];

	switch (arg->type) {
	case LIVE_ARG_end:
		return false;
	case LIVE_ARG_skip:
		return true;
	case LIVE_ARG_raw:
		put_raw(text, call);
		return false;
	case LIVE_ARG_value:
	case LIVE_ARG_flags:
	case LIVE_ARG_path:
	case LIVE_ARG_str:
	case LIVE_ARG_in:
	case LIVE_ARG_out:
	case LIVE_ARG_outhex:
	case LIVE_ARG_cwd:
	case LIVE_ARG_array:
		break;
	default:
		if (arg->type >= LIVE_ARG_open)
			return live_put_special(text, call, i);
	}
	live_put(text, i ? ", " : "");
	if (arg->type == LIVE_ARG_value)
		live_put_value(text, arg->with, call->args[i]);
	else if (arg->type == LIVE_ARG_flags)
		live_put_flags(text, arg->with, call->args[i]);
	else if (arg->type == LIVE_ARG_array && call->returned && !call->ret)
		live_put(text, "[]");
	else if (arg->type >= LIVE_ARG_path)
		put_chunk(text, call, i, arg->type == LIVE_ARG_outhex);
	else
		put_number(text, arg->type, call->args[i]);
	return true;
}

static void put_error(struct live_text *text, u32 error)
{
	static const struct {
		const char *name, *meaning;
	} errors[] = {
#define ERROR(nr, name, meaning) [nr] = { #name, meaning },
		ERRNO_LIST(ERROR)
	};
	static const char *const restarts[] = {
		"ERESTARTSYS (To be restarted if SA_RESTART is set)",
		"ERESTARTNOINTR (To be restarted)",
		"ERESTARTNOHAND (To be restarted if no handler)",
		NULL,
		"ERESTART_RESTARTBLOCK (Interrupted by signal)",
	};
	u32 restart = error - FIRST_RESTART;

	if (restart < PF_ARRAY_SIZE(restarts) && restarts[restart]) {
		live_put(text, "? ");
		live_put(text, restarts[restart]);
	} else if (error < PF_ARRAY_SIZE(errors) && errors[error].name) {
		live_printf(text, "-1 %s (", errors[error].name);
		live_put(text, errors[error].meaning);
		live_put(text, ")");
	} else {
		live_printf(text, "-1 (errno %u)", error);
	}
}

static void put_seconds(struct live_text *text, const char *before, u64 ns, const char *behind)
{
	live_printf(text, "%s%llu.%06llu%s", before, (unsigned long long)(ns / NS_PER_SEC),
		    (unsigned long long)(ns % NS_PER_SEC / 1000), behind);
}

void live_decode(const struct live_call *call, char *line, size_t size)
{
	const struct live_syscall *sc = live_syscall(call->nr);
	struct live_text text = { .buf = line, .size = size - RET_BYTES };

	live_printf(&text, "[pid %d] ", call->tid);
	if (call->start_ns)
		put_seconds(&text, "", call->start_ns, " ");
	if (sc->name)
		live_put(&text, sc->name);
	else
		live_printf(&text, "syscall_0x%x", call->nr);
	live_put(&text, "(");
	for (unsigned int i = 0; i < LIVE_MAX_ARGS; i++)
		if (!put_arg(&text, call, i))
			break;
	text.size = size;
	live_put(&text, text.truncated ? "...) = " : ") = ");
	if (!call->returned) {
		live_put(&text, "?");
		return;
	}
	if (call->ret < 0 && call->ret >= -4095)
		put_error(&text, -call->ret);
	else
		live_put_ret(&text, call);
	if (call->cpu >= 0)
		live_printf(&text, " (CPU %d)", call->cpu);
	put_seconds(&text, " <", call->ns, ">");
}
