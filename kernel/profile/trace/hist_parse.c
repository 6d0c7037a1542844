// SPDX-License-Identifier: BSD-2-Clause
/*
 * Parses commands of the file `trigger`:
 *
 *	[!]hist:keys=<field>[.<form>],...[:values=<field>,...][:sort=<field>[.descending],...]
 *		[:size=<rows>][:pause][:continue][:clear][ if <filter>]
 */

#include "hist.h"

/* A part of the command. */
struct span {
	const char *at, *end;
};

struct parser {
	const struct trace_event *event;
	const char *text;
	struct trace_hist *hist;
	struct span sorts; /* at is NULL: none given */
	struct trace_filter_error error;
};

const char *const hist_form_names[HIST_NR_FORMS] = {
	[HIST_HEX] = "hex",   [HIST_SYM] = "sym",	    [HIST_SYM_OFFSET] = "sym-offset",
	[HIST_LOG2] = "log2", [HIST_EXECNAME] = "execname", [HIST_SYSCALL] = "syscall",
};

/* Notes the first error. Returns false. */
static bool fail(struct parser *p, const char *at, const char *what)
{
	if (!p->error.what)
		p->error = (struct trace_filter_error){ what, at - p->text };
	return false;
}

static bool is_word(struct span span, const char *word)
{
	size_t len = span.end - span.at;

	return strlen(word) == len && !strncmp(span.at, word, len);
}

/* Returns the part of *rest before a separator, and moves *rest behind it; NULL: at its end. */
static struct span take_part(struct span *rest, char separator)
{
	struct span part = { rest->at, rest->at };

	while (part.end < rest->end && *part.end != separator)
		part.end++;
	rest->at = part.end < rest->end ? part.end + 1 : NULL;
	return part;
}

static void set_number(struct hist_field *key)
{
	u32 bytes = key->field->bytes, end = key->field->offset + bytes;

	key->offset = end < sizeof(u64) ? 0 : end - sizeof(u64);
	key->left = end < sizeof(u64) ? 64 - 8 * end : 0;
	key->right = 64 - 8 * bytes;
	key->is_signed = key->field->is_signed;
}

/* Finds the form of a field from the word after the dot. */
static bool take_form(struct parser *p, struct hist_field *key, struct span word)
{
	u32 form = 0;

	while (form < HIST_NR_FORMS &&
	       (!hist_form_names[form] || !is_word(word, hist_form_names[form])))
		form++;
	if (form == HIST_NR_FORMS)
		return fail(p, word.at, "no such form of a field");
	if (form == HIST_EXECNAME && strcmp(key->name, "common_pid"))
		return fail(p, word.at, "only common_pid has an execname");
	key->form = form;
	return true;
}

static bool take_special(struct parser *p, struct hist_field *key, struct span name)
{
	if (is_word(name, "common_cpu")) {
		*key = (struct hist_field){ "common_cpu", .form = HIST_CPU, .words = 1 };
		return true;
	}
	if (!is_word(name, "common_stacktrace") && !is_word(name, "stacktrace"))
		return false;
	*key = (struct hist_field){ "common_stacktrace", .form = HIST_STACK,
				    .words = HIST_STACK_WORDS };
	if (!PF_IS_ENABLED(CONFIG_PROFILE_CALLCHAIN))
		fail(p, name.at, "the kernel has no call chains (CONFIG_PROFILE_CALLCHAIN)");
	return true;
}

/* Parses `<field>[.<form>]`. */
static bool take_field(struct parser *p, struct span part, struct hist_field *key)
{
	struct span name = take_part(&part, '.');
	char copy[TRACE_FILTER_BYTES];

	if (take_special(p, key, name))
		return part.at ? fail(p, part.at, "this field has no forms") : !p->error.what;
	memcpy(copy, name.at, name.end - name.at);
	copy[name.end - name.at] = '\0';
	key->field = trace_find_field(p->event, copy);
	if (!key->field)
		return fail(p, name.at, "no such field");
	key->name = key->field->name;
	key->form = key->field->is_text ? HIST_TEXT : HIST_NUMBER;
	key->words = key->field->is_text ? HIST_TEXT_WORDS : 1;
	if (part.at && key->field->is_text)
		return fail(p, part.at, "a text has no forms");
	if (part.at && !take_form(p, key, part))
		return false;
	if (key->field->is_text)
		return true;
	if (key->field->nr || key->field->bytes > sizeof(u64))
		return fail(p, name.at, "an array is no single value");
	set_number(key);
	return true;
}

static bool take_keys(struct parser *p, struct span list)
{
	struct trace_hist *hist = p->hist;

	if (hist->nr_keys)
		return fail(p, list.at, "the keys are given twice");
	while (list.at) {
		struct span part = take_part(&list, ',');
		struct hist_field *key = &hist->keys[hist->nr_keys];

		if (hist->nr_keys == HIST_MAX_KEYS)
			return fail(p, part.at, "too many keys");
		if (!take_field(p, part, key))
			return false;
		if (hist->key_words + key->words > HIST_KEY_WORDS)
			return fail(p, part.at, "the keys are too long together");
		key->at = hist->key_words;
		hist->key_words += key->words;
		hist->nr_keys++;
	}
	return true;
}

static bool take_values(struct parser *p, struct span list)
{
	struct trace_hist *hist = p->hist;

	while (list.at) {
		struct span part = take_part(&list, ',');
		struct hist_field *value = &hist->values[hist->nr_values];

		if (is_word(part, "hitcount"))
			continue; /* each histogram has it */
		if (hist->nr_values == HIST_MAX_VALUES)
			return fail(p, part.at, "too many values");
		if (!take_field(p, part, value))
			return false;
		if (value->form != HIST_NUMBER)
			return fail(p, part.at, "only numbers have sums, and these have no forms");
		hist->nr_values++;
	}
	return true;
}

static const struct hist_field *find_by_name(const struct trace_hist *hist, struct span name)
{
	for (u32 i = 0; i < hist->nr_values; i++) {
		if (is_word(name, hist->values[i].name))
			return &hist->values[i];
	}
	for (u32 i = 0; i < hist->nr_keys; i++) {
		if (is_word(name, hist->keys[i].name))
			return &hist->keys[i];
	}
	return NULL;
}

static bool take_sorts(struct parser *p, struct span list)
{
	struct trace_hist *hist = p->hist;

	while (list.at) {
		struct span part = take_part(&list, ','), name = take_part(&part, '.');
		struct hist_sort *sort = &hist->sorts[hist->nr_sorts];

		if (hist->nr_sorts == HIST_MAX_SORTS)
			return fail(p, name.at, "too many fields to sort by");
		sort->by = find_by_name(hist, name);
		if (!sort->by && !is_word(name, "hitcount"))
			return fail(p, name.at, "no key and no value to sort by");
		sort->descending = part.at && is_word(part, "descending");
		if (part.at && !sort->descending && !is_word(part, "ascending"))
			return fail(p, part.at, "neither ascending nor descending");
		hist->nr_sorts++;
	}
	return true;
}

/* Rounds up to a power of two, as Linux does. */
static bool take_size(struct parser *p, struct span number)
{
	char copy[16];
	u64 size;

	if (number.end - number.at >= (long)sizeof(copy))
		return fail(p, number.at, "the size is no number from 128 to 16384");
	memcpy(copy, number.at, number.end - number.at);
	copy[number.end - number.at] = '\0';
	if (os_parse_u64(copy, &size) || size < HIST_MIN_ROWS || size > HIST_MAX_ROWS)
		return fail(p, number.at, "the size is no number from 128 to 16384");
	for (p->hist->max_rows = HIST_MIN_ROWS; p->hist->max_rows < size;)
		p->hist->max_rows *= 2;
	return true;
}

static bool take_word(struct parser *p, struct span word, struct hist_command *command)
{
	if (is_word(word, "pause"))
		command->pauses = true;
	else if (is_word(word, "continue") || is_word(word, "cont"))
		command->continues = true;
	else if (is_word(word, "clear"))
		command->clears = true;
	else
		return fail(p, word.at, "no such option");
	return !(command->pauses && command->continues) ||
	       fail(p, word.at, "both pause and continue");
}

static bool take_option(struct parser *p, struct span option, struct hist_command *command)
{
	struct span name = take_part(&option, '=');

	if (!option.at)
		return take_word(p, name, command);
	if (is_word(name, "keys") || is_word(name, "key"))
		return take_keys(p, option);
	if (is_word(name, "values") || is_word(name, "vals") || is_word(name, "val"))
		return take_values(p, option);
	if (is_word(name, "size"))
		return take_size(p, option);
	if (!is_word(name, "sort"))
		return fail(p, name.at, "no such option");
	p->sorts = option; /* after all keys and values are known */
	return true;
}

static bool take_filter(struct parser *p, const char *at)
{
	struct trace_filter_error error;

	os_snprintf(p->hist->filter.text, TRACE_FILTER_BYTES, "%s", at);
	error = trace_parse_filter(p->event, &p->hist->filter);
	if (error.what)
		return fail(p, at + error.at, error.what);
	p->hist->has_filter = true;
	return true;
}

/* Returns the end of the options: a blank, or the end of the text. */
static const char *end_of_options(const char *text)
{
	while (*text && *text != ' ' && *text != '\t')
		text++;
	return text;
}

/* Places the words of a row behind those of its keys. */
static void lay_out(struct trace_hist *hist)
{
	hist->row_words = hist->key_words + 1;
	for (u32 i = 0; i < hist->nr_values; i++) {
		hist->values[i].at = hist->row_words++;
		hist->values[i].words = 1;
	}
	for (u32 i = 0; i < hist->nr_keys; i++) {
		if (hist->keys[i].form == HIST_EXECNAME)
			hist->comm_at = hist->row_words;
	}
	hist->row_words += hist->comm_at ? HIST_COMM_WORDS : 0;
	os_assert(hist->row_words * sizeof(u64) <= ROWS_MAX_BYTES);
}

static bool parse(struct parser *p, struct hist_command *command)
{
	struct span options = { p->text, end_of_options(p->text) }, part;
	const char *filter = options.end;

	command->removes = *options.at == '!';
	options.at += command->removes;
	part = take_part(&options, ':');
	if (!is_word(part, "hist"))
		return fail(p, part.at, "the only trigger is hist");
	while (options.at) {
		if (!take_option(p, take_part(&options, ':'), command))
			return false;
	}
	if (!p->hist->nr_keys)
		return fail(p, options.end, "no keys");
	if (p->sorts.at && !take_sorts(p, p->sorts))
		return false;
	if (!p->hist->nr_sorts)
		p->hist->nr_sorts = 1; /* hitcount */
	while (*filter == ' ' || *filter == '\t')
		filter++;
	if (!*filter)
		return true;
	if (strncmp(filter, "if ", 3))
		return fail(p, filter, "neither an option nor `if <filter>`");
	for (filter += 3; *filter == ' ' || *filter == '\t';)
		filter++;
	return take_filter(p, filter);
}

struct trace_filter_error hist_parse(const struct trace_event *event, const char *text,
				     struct hist_command *command)
{
	struct parser p = { .event = event, .text = text, .hist = command->hist };

	p.hist->max_rows = HIST_DEFAULT;
	if (parse(&p, command))
		lay_out(p.hist);
	return p.error;
}
