/* SPDX-License-Identifier: ISC */
#ifndef CORE_ABI_TSV_H
#define CORE_ABI_TSV_H
/*
 * Tables that tests read: tab-separated rows of testdata/, after lines that
 * begin with '#' and one line of column names. For tests only; aborts where a
 * table cannot be read. One thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TSV_COLUMNS = 6, TSV_ROWS = 1024 };

struct tsv {
  size_t n;
  const char *row[TSV_ROWS][TSV_COLUMNS]; /* "" where a row has fewer */
};

static inline void tsv_die(const char *what, const char *of) {
  fprintf(stderr, "%s: %s\n", of, what);
  abort();
}

static inline void tsv_split(struct tsv *t, char *line) {
  size_t column = 0;
  if (t->n == TSV_ROWS)
    tsv_die("more rows than a table holds", line);
  for (size_t i = 0; i < TSV_COLUMNS; i++)
    t->row[t->n][i] = "";
  for (char *at = line; at != NULL;) {
    char *tab = strchr(at, '\t');
    if (tab != NULL)
      *tab++ = '\0';
    if (column == TSV_COLUMNS)
      tsv_die("more columns than a row has", line);
    t->row[t->n][column++] = at;
    at = tab;
  }
  t->n++;
}

/* Adds the rows of core/abi/testdata/name, from the working directory. Their
 * text stays for the life of the program. */
static inline void tsv_read(struct tsv *t, const char *name) {
  char path[256], line[256];
  bool names = false;
  snprintf(path, sizeof path, "core/abi/testdata/%s", name);
  FILE *f = fopen(path, "r");
  if (f == NULL)
    tsv_die("cannot be opened", path);
  while (fgets(line, sizeof line, f) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (line[0] == '#')
      continue;
    if (!names) {
      names = true;
      continue;
    }
    char *kept = malloc(strlen(line) + 1);
    if (kept == NULL)
      tsv_die("no memory", path);
    strcpy(kept, line);
    tsv_split(t, kept);
  }
  if (ferror(f) || fclose(f) != 0 || t->n == 0)
    tsv_die("not read", path);
}

/* The row whose first columns are these (NULL: any), or NULL. */
static inline const char *const *
tsv_find(const struct tsv *t, const char *const key[], size_t columns) {
  for (size_t i = 0; i < t->n; i++) {
    size_t c = 0;
    while (c < columns &&
           (key[c] == NULL || strcmp(t->row[i][c], key[c]) == 0)) {
      c++;
    }
    if (c == columns)
      return t->row[i];
  }
  return NULL;
}

static inline uint64_t tsv_number(const char *text) {
  char *end;
  const uint64_t x = strtoull(text, &end, 0);
  if (end == text || *end != '\0')
    tsv_die("is not a number", text);
  return x;
}

/* Bits "msb:lsb". */
struct tsv_bits {
  unsigned msb, lsb;
};

static inline struct tsv_bits tsv_bits(const char *text) {
  struct tsv_bits b;
  char after;
  if (sscanf(text, "%u:%u%c", &b.msb, &b.lsb, &after) != 2 || b.msb < b.lsb ||
      b.msb > 31) {
    tsv_die("are not bits of a word", text);
  }
  return b;
}

static inline uint64_t tsv_mask(struct tsv_bits b) {
  return (UINT64_C(1) << (b.msb - b.lsb + 1)) - 1;
}
#endif
