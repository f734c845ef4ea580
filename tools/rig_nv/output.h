/* SPDX-License-Identifier: ISC */
#ifndef TOOLS_RIG_NV_OUTPUT_H
#define TOOLS_RIG_NV_OUTPUT_H
/*
 * output: what a command found, on stdout, as a table for people or as one
 * JSON object for programs. A row has a key for JSON and a label for the
 * table. Strings are UTF-8. A list's items, each with rows of its own, are an
 * array of objects, and blocks of the table.
 */
#include <stdbool.h>
#include <stdint.h>

struct output {
  bool json;
  unsigned rows, items;
  bool in_item;
};

void output_begin(struct output *, bool json);
void output_text(struct output *, const char *key, const char *label,
                 const char *value); /* NULL is null, and "none" */
void output_number(struct output *, const char *key, const char *label,
                   uint64_t value);
void output_hex(struct output *, const char *key, const char *label,
                uint64_t value); /* a number in JSON, which has no hex */
/* Below 0: null, and "none". */
void output_signed(struct output *, const char *key, const char *label,
                   int64_t value);
void output_real(struct output *, const char *key, const char *label,
                 double value, int decimals);
void output_bool(struct output *, const char *key, const char *label,
                 bool value);
/* begin: a list of the key, in no item. end: of the last item, and the list. */
void output_list_begin(struct output *, const char *key);
void output_item(struct output *); /* begins one, the last one's end */
void output_list_end(struct output *);
/* 0, or -1 with errno where stdout did not take it all. */
int output_end(struct output *);
#endif
