/* SPDX-License-Identifier: ISC */
#include "tools/rig_nv/output.h"

#include <inttypes.h>
#include <stdio.h>

enum { LABEL = 24 }; /* columns */

static void row(struct output *o, const char *key, const char *label) {
  if (o->json)
    printf("%s\n%s  \"%s\": ", o->rows ? "," : "", o->in_item ? "    " : "",
           key);
  else
    printf("%-*s", LABEL, label);
  o->rows++;
}

static void end_row(const struct output *o) {
  if (!o->json)
    putchar('\n');
}

static void json_string(const char *s) {
  putchar('"');
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '"' || c == '\\')
      printf("\\%c", c);
    else if (c < 0x20)
      printf("\\u%04x", c);
    else
      putchar(c);
  }
  putchar('"');
}

void output_begin(struct output *o, bool json) {
  *o = (struct output){.json = json};
  if (json)
    putchar('{');
}

void output_text(struct output *o, const char *key, const char *label,
                 const char *value) {
  row(o, key, label);
  if (!o->json)
    fputs(value ? value : "none", stdout);
  else if (value)
    json_string(value);
  else
    fputs("null", stdout);
  end_row(o);
}

void output_number(struct output *o, const char *key, const char *label,
                   uint64_t value) {
  row(o, key, label);
  printf("%" PRIu64, value);
  end_row(o);
}

void output_hex(struct output *o, const char *key, const char *label,
                uint64_t value) {
  row(o, key, label);
  printf(o->json ? "%" PRIu64 : "0x%" PRIx64, value);
  end_row(o);
}

void output_signed(struct output *o, const char *key, const char *label,
                   int64_t value) {
  row(o, key, label);
  if (value < 0)
    fputs(o->json ? "null" : "none", stdout);
  else
    printf("%" PRId64, value);
  end_row(o);
}

void output_real(struct output *o, const char *key, const char *label,
                 double value, int decimals) {
  row(o, key, label);
  printf("%.*f", decimals, value);
  end_row(o);
}

void output_bool(struct output *o, const char *key, const char *label,
                 bool value) {
  row(o, key, label);
  fputs(o->json ? (value ? "true" : "false") : (value ? "yes" : "no"), stdout);
  end_row(o);
}

void output_list_begin(struct output *o, const char *key) {
  if (!o->json)
    return;
  row(o, key, NULL);
  putchar('[');
}

static void end_item(struct output *o) {
  if (o->json && o->in_item)
    fputs("\n    }", stdout);
  o->in_item = false;
}

void output_item(struct output *o) {
  end_item(o);
  if (o->json)
    fputs(o->items ? ",\n    {" : "\n    {", stdout);
  else
    putchar('\n');
  o->items++;
  o->in_item = true;
  o->rows = 0;
}

void output_list_end(struct output *o) {
  end_item(o);
  if (o->json)
    fputs(o->items ? "\n  ]" : "]", stdout);
  o->items = 0;
  o->rows = 1;
}

int output_end(struct output *o) {
  if (o->json)
    fputs("\n}\n", stdout);
  return fflush(stdout) || ferror(stdout) ? -1 : 0;
}
