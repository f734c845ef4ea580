/* SPDX-License-Identifier: ISC */
#ifndef TOOLS_RIG_NV_OUTPUT_H
#define TOOLS_RIG_NV_OUTPUT_H
/*
 * output: what a command found, on stdout, as a table for people or as one
 * JSON object for programs. A row has a key for JSON and a label for the
 * table. Strings are UTF-8.
 */
#include <stdbool.h>
#include <stdint.h>

struct output {
  bool json;
  unsigned rows;
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
/* 0, or -1 with errno where stdout did not take it all. */
int output_end(struct output *);
#endif
