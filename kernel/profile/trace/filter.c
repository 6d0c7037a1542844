// SPDX-License-Identifier: BSD-2-Clause
/*
 * Filters events, and makes the format texts that name their fields. A filter is one comparison of
 * a field with a value. All comparisons of numbers become one range check, so an event that a
 * filter refuses costs 48 instructions. Events that match are copied to the ring.
 */

#include "trace.h"

#define WORD_BYTES     64
#define MAX_TEXT_BYTES 256 /* the longest text of a field, with its NUL */

/* The common fields, which all events have. */
#define COMMON(text, member, signed_)                                                             \
	{                                                                                         \
		.type = text, .name = "common_" #member,                                          \
		.offset = __builtin_offsetof(struct profile_trace_event, member),                 \
		.bytes = sizeof(((struct profile_trace_event *)0)->member), .is_signed = signed_, \
	}
static const struct trace_field common_fields[] = {
	COMMON("unsigned short", type, false),
	COMMON("unsigned char", flags, false),
	COMMON("unsigned char", preempt_count, false),
	COMMON("int", pid, true),
};

static const struct {
	const char *text;
	enum trace_compare compare;
} operators[] = {
	/* An operator precedes its own prefixes: the first match is taken. */
	{ "==", TRACE_EQUAL },
	{ "!=", TRACE_NOT_EQUAL },
	{ "<=", TRACE_LESS_OR_EQUAL },
	{ "<", TRACE_LESS },
	{ ">=", TRACE_GREATER_OR_EQUAL },
	{ ">", TRACE_GREATER },
	{ "&", TRACE_AND },
	{ "~", TRACE_GLOB },
};

/* A text of limited size. Characters that do not fit are left out. */
struct buffer {
	char *text;
	size_t size, len;
};

static void put(struct buffer *buffer, const char *fmt, ...) pf_printf(2, 3);
static void put(struct buffer *buffer, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	buffer->len +=
		os_vsnprintf(buffer->text + buffer->len, buffer->size - buffer->len, fmt, args);
	va_end(args);
	buffer->len = pf_min(buffer->len, buffer->size - 1);
}

static void put_field(struct buffer *buffer, const struct trace_field *field)
{
	char array[16] = "";

	if (field->nr)
		os_snprintf(array, sizeof(array), "[%u]", field->nr);
	put(buffer, "\tfield:%s %s%s;\toffset:%u;\tsize:%u;\tsigned:%u;\n", field->type,
	    field->name, array, field->offset, field->bytes, field->is_signed);
}

void trace_format_text(const struct trace_event *event, char text[TRACE_FORMAT_BYTES])
{
	struct buffer buffer = { text, TRACE_FORMAT_BYTES, 0 };

	put(&buffer, "name: %s\nID: %u\nformat:\n", event->name, event->id);
	for (u32 i = 0; i < PF_ARRAY_SIZE(common_fields); i++)
		put_field(&buffer, &common_fields[i]);
	put(&buffer, "\n");
	for (u32 i = 0; i < event->nr_fields; i++)
		put_field(&buffer, &event->fields[i]);
	put(&buffer, "\nprint fmt: %s\n", event->print_format);
}

static void text_of(const struct trace_field *field, const char *content, char *text, size_t size)
{
	u32 offset = field->offset, bytes = field->bytes, len = 0;

	if (field->is_moved) {
		memcpy(&offset, content + field->offset, sizeof(offset));
		bytes = offset >> 16;
		offset &= 0xffff;
	}
	for (; len < bytes && len < size - 1 && content[offset + len]; len++)
		text[len] = content[offset + len];
	text[len] = '\0';
}

static bool matches_text(const struct trace_filter *filter, const void *content)
{
	const struct trace_field *field = pf_read_once(filter->field);
	enum trace_compare compare = pf_read_once(filter->compare);
	char text[MAX_TEXT_BYTES];

	text_of(field, content, text, sizeof(text));
	if (compare == TRACE_GLOB)
		return os_glob_match(filter->value_text, text);
	return !strcmp(filter->value_text, text) == (compare == TRACE_EQUAL);
}

/* Returns whether a number is in the range of its filter. Always true for a filter of a text. */
static pf_always_inline bool matches_number(const struct trace_filter *filter, const void *content)
{
	u64 value;

	__builtin_memcpy(&value, (const char *)content + filter->offset, sizeof(value));
	value = value << filter->shift & filter->mask;
	return value - filter->first <= filter->last_less_first;
}

static pf_always_inline bool record_copy(const struct trace_event *event, const void *content,
					 struct trace_slot slot)
{
	if (!slot.content)
		return false;
	memcpy(slot.content, content, event->bytes);
	trace_commit(slot);
	return true;
}

bool trace_record_copy(const struct trace_event *event, const void *content)
{
	return record_copy(event, content, trace_reserve(event->bytes));
}

void trace_write_slowly(const struct trace_event *event, struct profile_trace_event *content)
{
	u8 slow = pf_read_once(event->slow);

	if (slow & TRACE_SLOW_FILTER) {
		if (pf_unlikely(event->filter.wants_common))
			trace_fill_common(content, event->id);
		if (!matches_number(&event->filter, content))
			return;
		if (event->filter.field->is_text && !matches_text(&event->filter, content))
			return;
	}
	trace_fill_common(content, event->id);
	if (slow & TRACE_SLOW_STACK)
		trace_record_with_stack(event, content);
	else if (slow)
		trace_record_copy(event, content);
	else /* the writer has tried the fast path */
		record_copy(event, content, trace_reserve_slowly(event->bytes / sizeof(u64) + 1));
}

/* The numbers that a filter accepts: from first to last, which may wrap around. */
struct range {
	u64 first, last;
};

/*
 * Finds the range of numbers that a comparison other than TRACE_AND accepts, of those from min to
 * max. A range may wrap around: min follows max. Returns false if no number is accepted.
 */
static bool find_range(enum trace_compare compare, u64 value, u64 min, u64 max, struct range *range)
{
	bool fits = value >= min && value <= max;

	*range = (struct range){ min, max };
	switch (compare) {
	case TRACE_EQUAL:
		*range = (struct range){ value, value };
		return fits;
	case TRACE_NOT_EQUAL:
		if (fits)
			*range = (struct range){ value + 1, value - 1 };
		return true;
	case TRACE_LESS:
		range->last = pf_min(value - 1, max);
		return value > min;
	case TRACE_LESS_OR_EQUAL:
		range->last = pf_min(value, max);
		return value >= min;
	case TRACE_GREATER_OR_EQUAL:
		range->first = value < min ? min : value;
		return value <= max;
	default:
		range->first = value < min ? min : value + 1;
		return value < max;
	}
}

/* Turns a comparison of a number into a range check of the field, shifted to the top of a word. */
static void prepare(struct trace_filter *filter)
{
	const struct trace_field *field = filter->field;
	u32 end = field->offset + field->bytes, unused_bits = 64 - 8 * field->bytes;
	/* Flipping the sign bit gives signed numbers the order of unsigned ones. */
	u64 flip = field->is_signed ? PF_BIT(63) : 0, all = ~0ull >> unused_bits;
	u64 min = field->is_signed ? flip - (all / 2 + 1) : 0;
	struct range range;

	filter->wants_common = field->offset < sizeof(struct profile_trace_event);
	filter->offset = end < 8 ? 0 : end - 8;
	filter->shift = end < 8 ? 64 - 8 * end : 0;
	if (filter->compare == TRACE_AND) {
		filter->mask = filter->value << unused_bits;
		/* A negative number has all bits above its field set. The sign bit covers them. */
		if (field->is_signed && filter->value > all)
			filter->mask |= PF_BIT(63);
		filter->first = 1;
		filter->last_less_first = ~0ull - 1;
	} else if (find_range(filter->compare, filter->value ^ flip, min, min + all, &range)) {
		filter->mask = all << unused_bits;
		filter->first = (range.first ^ flip) << unused_bits;
		filter->last_less_first = (range.last - range.first) << unused_bits;
	} else {
		filter->first = 1; /* accepts nothing: the mask gives 0, the range is 1 to 1 */
	}
}

static const struct trace_field *find_field(const struct trace_event *event, const char *name)
{
	for (u32 i = 0; i < event->nr_fields; i++) {
		if (!strcmp(event->fields[i].name, name))
			return &event->fields[i];
	}
	for (u32 i = 0; i < PF_ARRAY_SIZE(common_fields); i++) {
		if (!strcmp(common_fields[i].name, name))
			return &common_fields[i];
	}
	return NULL;
}

static bool is_name_character(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static const char *skip_blanks(const char *text)
{
	while (*text == ' ' || *text == '\t')
		text++;
	return text;
}

/* Parses the operator at the start of text. Returns the text after it, or NULL if there is none. */
static const char *take_operator(const char *text, enum trace_compare *compare)
{
	for (u32 i = 0; i < PF_ARRAY_SIZE(operators); i++) {
		size_t len = strlen(operators[i].text);

		if (!strncmp(text, operators[i].text, len)) {
			*compare = operators[i].compare;
			return skip_blanks(text + len);
		}
	}
	return NULL;
}

static u32 digit_of(char c)
{
	char lower = c | 0x20;

	if (c >= '0' && c <= '9')
		return c - '0';
	return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : ~0u;
}

/*
 * Parses a number as in C: decimal, hexadecimal after 0x, octal after 0, with an optional minus
 * sign. Returns 0 or -OS_EINVAL.
 */
static int take_number(const char *text, u64 *value)
{
	bool negative = *text == '-';
	u32 base = 10;

	text += negative;
	if (*text == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	} else if (*text == '0') {
		base = 8;
	}
	if (!*text)
		return -OS_EINVAL;
	for (*value = 0; *text; text++) {
		u32 digit = digit_of(*text);

		if (digit >= base || __builtin_mul_overflow(*value, (u64)base, value) ||
		    __builtin_add_overflow(*value, (u64)digit, value))
			return -OS_EINVAL;
	}
	*value = negative ? -*value : *value;
	return 0;
}

/*
 * Copies a text without its quotes. Returns 0, or -OS_EINVAL if there is none, or if anything
 * follows: a second comparison must not pass for a part of the text.
 */
static int take_text(const char *text, char *value, size_t size)
{
	char quote = *text == '"' || *text == '\'' ? *text : '\0';
	size_t len = 0;

	text += quote != '\0';
	while (text[len] && (quote ? text[len] != quote : text[len] != ' ' && text[len] != '\t'))
		len++;
	if (text[len] != quote || (quote ? text[len + 1] : !len) || len >= size)
		return -OS_EINVAL;
	memcpy(value, text, len);
	value[len] = '\0';
	return 0;
}

static int parse(const struct trace_event *event, const char *text, struct trace_filter *filter)
{
	char name[WORD_BYTES];
	size_t len = 0;
	bool of_text;

	while (is_name_character(text[len]) && len < sizeof(name) - 1)
		len++;
	memcpy(name, text, len);
	name[len] = '\0';
	filter->field = find_field(event, name);
	text = take_operator(skip_blanks(text + len), &filter->compare);
	/* An array of numbers is no single value to compare. */
	if (!filter->field || !text || (filter->field->nr && !filter->field->is_text))
		return -OS_EINVAL;
	if (!filter->field->is_text) {
		if (filter->compare == TRACE_GLOB || take_number(text, &filter->value))
			return -OS_EINVAL;
		prepare(filter);
		return 0;
	}
	of_text = filter->compare == TRACE_EQUAL || filter->compare == TRACE_NOT_EQUAL ||
		  filter->compare == TRACE_GLOB;
	if (!of_text)
		return -OS_EINVAL;
	return take_text(text, filter->value_text, sizeof(filter->value_text));
}

int trace_set_filter(struct trace_event *event, const char *text)
{
	struct trace_filter filter = { 0 };
	size_t len;

	text = skip_blanks(text);
	for (len = strlen(text); len && (text[len - 1] == ' ' || text[len - 1] == '\t'); len--)
		;
	if (len >= sizeof(filter.text))
		return -OS_EINVAL;
	memcpy(filter.text, text, len);
	if (!strcmp(filter.text, "0")) {
		trace_put_filter(event, NULL);
		return 0;
	}
	if (parse(event, filter.text, &filter))
		return -OS_EINVAL;
	trace_put_filter(event, &filter);
	return 0;
}
