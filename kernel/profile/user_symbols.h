/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_USER_SYMBOLS_H
#define PROFILE_USER_SYMBOLS_H

/*
 * Names of user addresses, from the symbols of the ELF file that the code came from. One reader at
 * a time, like the views of a report. Where the reader may not sleep, and in a panic, there are no
 * names: addresses are places in files.
 */

#include "util.h"

/* The function or object at a user address. The name is valid until the reader's turn ends. */
struct user_symbol {
	u32 image;	  /* the number of the file; 0: unknown */
	const char *name; /* of the function or object, in printable characters; NULL: unknown */
	bool is_known;	  /* it is known where the function or object begins, named or not */
	bool in_library;  /* a function of a library, not of the program */
	u64 start;	  /* where it begins, as an address in the ELF file; else the address */
	u64 offset;	  /* of the address in the file; 0 for data */
	u64 distance;	  /* of the address from start, in bytes */
	u64 bytes;	  /* of the function or object; 0: unknown */
};

/* Finds the function at an address of code. */
void user_symbol_of_code(u32 code_map, u64 addr, struct user_symbol *symbol);
/* Finds the object, such as a lock, at an address of data. Returns false if none is known. */
bool user_symbol_of_data(u32 code_map, u64 addr, struct user_symbol *symbol);
/* Returns the path of a file, by its number. It may have any characters. */
const char *user_symbol_path(u32 image);
/*
 * Copies the name of the function at an address of code; without one, file+0x1234; without a file,
 * the address. Returns its length.
 */
size_t user_symbol_print(char *text, size_t size, u32 code_map, u64 addr);
/* Copies the same as a frame of folded stacks, without blanks and semicolons. Returns text. */
#define USER_FRAME_BYTES 256
const char *user_symbol_frame(char text[USER_FRAME_BYTES], u32 code_map, u64 addr);

/*
 * Tables of symbols. At the end of a reader's turn, those that it has used are freed. A reader with
 * several turns keeps them in between: it swaps its own, which are zeros at first, with the turn's
 * at the begin and at the end of each turn, and frees its own in the end, in or out of a turn.
 */
struct symbol_table;
struct user_symbols {
	struct symbol_table *tables; /* a list */
	u32 nr;
	u64 nr_bytes;
};
void user_symbols_swap(struct user_symbols *symbols);
void user_symbols_free(struct user_symbols *symbols);

/*
 * The functions of images/, which sets them at boot, so that no other folder uses its symbols. The
 * first two leave the members that they do not know as they are.
 */
struct user_symbol_source {
	void (*find_code)(u32 code_map, u64 addr, struct user_symbol *symbol);
	void (*find_data)(u32 code_map, u64 addr, struct user_symbol *symbol);
	const char *(*path)(u32 image);
	void (*swap)(struct user_symbols *symbols);
	void (*free)(struct user_symbols *symbols);
};
extern const struct user_symbol_source *user_symbol_source; /* NULL: nothing is known */

#endif
