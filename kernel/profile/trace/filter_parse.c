// SPDX-License-Identifier: BSD-2-Clause
/*
 * Parses filters: comparisons of fields, joined by &&, ||, ! and parentheses, as Linux has them
 * (Documentation/trace/events.rst, 5.1). The comparisons stand in the filter in the order of the
 * text. Each says which later one follows if it is true, and which if it is false. So
 * `a && (b || c)` needs no tree:
 *
 *	0: a	true: 1		false: refuse
 *	1: b	true: accept	false: 2
 *	2: c	true: accept	false: refuse
 *
 * An operand is parsed with `accept` and `refuse` as its two ends. An operator behind it moves one
 * of the ends to the next operand: && moves `accept`, || moves `refuse`. `!` swaps them.
 */

#include "trace.h"

#include "../words.h"

#define WORD_BYTES 64
#define MAX_DEPTH  16 /* of parentheses and `!`, which take stack */

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

struct parser {
	const struct trace_event *event;
	struct trace_filter *filter;
	const char *at;
	u32 nr_terms, nr_value_chars, depth;
	struct trace_filter_error error;
};

/* Notes the first error. Returns false. */
static bool fail(struct parser *p, const char *at, const char *what)
{
	if (!p->error.what)
		p->error = (struct trace_filter_error){ what, at - p->filter->text };
	return false;
}

static bool is_name_character(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static void skip_blanks(struct parser *p)
{
	while (*p->at == ' ' || *p->at == '\t')
		p->at++;
}

/* Skips a word that stands here, and blanks around it. Returns whether there was one. */
static bool take_word(struct parser *p, const char *word)
{
	size_t len = strlen(word);

	skip_blanks(p);
	if (strncmp(p->at, word, len))
		return false;
	p->at += len;
	skip_blanks(p);
	return true;
}

static bool take_operator(struct parser *p, u8 *compare)
{
	for (u32 i = 0; i < PF_ARRAY_SIZE(operators) && strncmp(p->at, "&&", 2); i++) {
		if (take_word(p, operators[i].text)) {
			*compare = operators[i].compare;
			return true;
		}
	}
	return fail(p, p->at, "no comparison behind the field");
}

/*
 * Parses a number as in C: decimal, hexadecimal after 0x, octal after 0, with an optional minus
 * sign. Returns 0 or -OS_EINVAL.
 */
static int parse_number(const char *text, u64 *value)
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
		u32 digit = words_digit(*text);

		if (digit >= base || __builtin_mul_overflow(*value, (u64)base, value) ||
		    __builtin_add_overflow(*value, (u64)digit, value))
			return -OS_EINVAL;
	}
	*value = negative ? -*value : *value;
	return 0;
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
static void set_range(struct trace_term *term, const struct trace_field *field, u64 value)
{
	u32 end = field->offset + field->bytes, unused_bits = 64 - 8 * field->bytes;
	/* Flipping the sign bit gives signed numbers the order of unsigned ones. */
	u64 flip = field->is_signed ? PF_BIT(63) : 0, all = ~0ull >> unused_bits;
	u64 min = field->is_signed ? flip - (all / 2 + 1) : 0;
	struct range range;

	term->offset = end < 8 ? 0 : end - 8;
	term->shift = end < 8 ? 64 - 8 * end : 0;
	if (term->compare == TRACE_AND) {
		term->mask = value << unused_bits;
		/* A negative number has all bits above its field set. The sign bit covers them. */
		if (field->is_signed && value > all)
			term->mask |= PF_BIT(63);
		term->first = 1;
		term->last_less_first = ~0ull - 1;
	} else if (find_range(term->compare, value ^ flip, min, min + all, &range)) {
		term->mask = all << unused_bits;
		term->first = (range.first ^ flip) << unused_bits;
		term->last_less_first = (range.last - range.first) << unused_bits;
	} else {
		term->first = 1; /* accepts nothing: the mask gives 0, the range is 1 to 1 */
	}
}

/*
 * Copies a value without its quotes. Without quotes it ends at a blank, `)`, && or ||. Returns its
 * place in the filter's values, or NULL.
 */
static char *take_value(struct parser *p)
{
	char *value = p->filter->values + p->nr_value_chars;
	char quote = *p->at == '"' || *p->at == '\'' ? *p->at : '\0';
	const char *start = p->at + (quote != '\0'), *end = start;

	if (quote) {
		while (*end && *end != quote)
			end++;
	} else {
		while (*end && *end != ' ' && *end != '\t' && *end != ')' &&
		       strncmp(end, "&&", 2) && strncmp(end, "||", 2))
			end++;
	}
	if (*end != quote && quote) {
		fail(p, p->at, "no quote at the end of the text");
		return NULL;
	}
	if (end == start && !quote) {
		fail(p, p->at, "no value");
		return NULL;
	}
	/* There is room, as a value is a part of the text, and has an operator before it. */
	memcpy(value, start, end - start);
	value[end - start] = '\0';
	p->nr_value_chars += end - start + 1;
	p->at = end + (quote != '\0');
	return value;
}

/* `<field>.function == <name>`: the address is in that function. */
static bool take_function(struct parser *p, const struct trace_field *field,
			  struct trace_term *term)
{
	const char *at = p->at, *name = take_value(p);
	u64 start, bytes;

	if (!name)
		return false;
	if (field->bytes != sizeof(u64) || field->is_text || field->nr)
		return fail(p, at, "the field is no address");
	if (term->compare != TRACE_EQUAL && term->compare != TRACE_NOT_EQUAL)
		return fail(p, at, "a function can be compared by == and != only");
	if (!os_symbol_range(name, &start, &bytes))
		return fail(p, at, "no such function");
	set_range(term, field, start);
	/* As for the one address, but its end is further away. A range may wrap around. */
	if (term->compare == TRACE_NOT_EQUAL)
		term->first += bytes - 1;
	term->last_less_first += term->compare == TRACE_EQUAL ? bytes - 1 : 1 - bytes;
	return true;
}

static bool take_number(struct parser *p, const struct trace_field *field, struct trace_term *term)
{
	const char *at = p->at, *text = take_value(p);
	u64 value;

	if (!text)
		return false;
	if (term->compare == TRACE_GLOB)
		return fail(p, at, "a shell pattern cannot be compared with a number");
	if (parse_number(text, &value))
		return fail(p, at, "not a number of 64 bits");
	set_range(term, field, value);
	return true;
}

static bool take_text(struct parser *p, struct trace_term *term)
{
	const char *at = p->at, *text = take_value(p);

	if (!text)
		return false;
	if (term->compare != TRACE_EQUAL && term->compare != TRACE_NOT_EQUAL &&
	    term->compare != TRACE_GLOB)
		return fail(p, at, "a text can be compared by ==, != and ~ only");
	term->is_text = true;
	term->text = text - p->filter->values;
	return true;
}

/* Copies the name of a field, and removes `.function` from its end. */
static bool take_name(struct parser *p, char name[WORD_BYTES], bool *is_function)
{
	size_t len = 0;

	for (; is_name_character(*p->at) && len < WORD_BYTES - 1; p->at++)
		name[len++] = *p->at;
	name[len] = '\0';
	*is_function = take_word(p, ".function");
	return len;
}

static bool parse_comparison(struct parser *p)
{
	struct trace_term *term = &p->filter->terms[p->nr_terms];
	const char *at = p->at;
	const struct trace_field *field;
	char name[WORD_BYTES];
	bool is_function;

	if (p->nr_terms == TRACE_FILTER_TERMS)
		return fail(p, at, "too many comparisons");
	if (!take_name(p, name, &is_function))
		return fail(p, at, "no field");
	field = trace_find_field(p->event, name);
	if (!field)
		return fail(p, at, "no such field");
	if (!take_operator(p, &term->compare))
		return false;
	p->nr_terms++;
	term->next[true] = TRACE_ACCEPT;
	term->next[false] = TRACE_REFUSE;
	term->field = field;
	p->filter->wants_common |= field->offset < sizeof(struct profile_trace_event);
	if (is_function)
		return take_function(p, field, term);
	if (field->is_text)
		return take_text(p, term);
	if (field->nr)
		return fail(p, at, "an array is no single value");
	return take_number(p, field, term);
}

/* Moves an end of the terms from `first` on to the term that comes next. */
static void lead_on(struct parser *p, u32 first, u16 end)
{
	for (u32 i = first; i < p->nr_terms; i++) {
		for (u32 is_true = 0; is_true < 2; is_true++) {
			u16 *next = &p->filter->terms[i].next[is_true];

			*next = *next == end ? p->nr_terms * sizeof(struct trace_term) : *next;
		}
	}
}

static bool parse_or(struct parser *p);

static bool parse_operand(struct parser *p)
{
	u32 first = p->nr_terms;
	bool is_parsed;

	if (p->depth++ == MAX_DEPTH)
		return fail(p, p->at, "too many parentheses");
	if (take_word(p, "!")) {
		is_parsed = parse_operand(p);
		for (u32 i = first; i < p->nr_terms; i++) {
			u16 *next = p->filter->terms[i].next;

			next[0] ^= next[0] >= TRACE_REFUSE;
			next[1] ^= next[1] >= TRACE_REFUSE;
		}
	} else if (take_word(p, "(")) {
		is_parsed = parse_or(p) && (take_word(p, ")") || fail(p, p->at, "no `)`"));
	} else {
		is_parsed = parse_comparison(p);
	}
	p->depth--;
	return is_parsed;
}

static bool parse_and(struct parser *p)
{
	u32 first = p->nr_terms;

	if (!parse_operand(p))
		return false;
	while (take_word(p, "&&")) {
		lead_on(p, first, TRACE_ACCEPT);
		if (!parse_operand(p))
			return false;
	}
	return true;
}

static bool parse_or(struct parser *p)
{
	u32 first = p->nr_terms;

	if (!parse_and(p))
		return false;
	while (take_word(p, "||")) {
		lead_on(p, first, TRACE_REFUSE);
		if (!parse_and(p))
			return false;
	}
	return true;
}

struct trace_filter_error trace_parse_filter(const struct trace_event *event,
					     struct trace_filter *filter)
{
	struct parser p = { .event = event, .filter = filter, .at = filter->text };

	skip_blanks(&p);
	if (parse_or(&p) && *p.at)
		fail(&p, p.at, "nothing can follow here");
	return p.error;
}
