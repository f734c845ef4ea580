/* SPDX-License-Identifier: ISC */
#ifndef PATHS_NVIDIA_ABI_ROWS_H
#define PATHS_NVIDIA_ABI_ROWS_H
/*
 * rows: this package's tables of the kernel driver's numbers, for tests. As
 * core/abi/tsv.h, which it extends.
 */
#include <string.h>

#include "core/abi/tsv.h"

static inline void rows_read(struct tsv *t, const char *name) {
  char path[256], line[256];
  bool names = false;
  snprintf(path, sizeof path, "paths/nvidia/abi/testdata/%s", name);
  FILE *f = fopen(path, "r");
  if (f == NULL)
    tsv_die("cannot be opened", path);
  while (fgets(line, sizeof line, f) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (line[0] == '#')
      continue;
    if (names) {
      char *kept = malloc(strlen(line) + 1);
      if (kept == NULL)
        tsv_die("no memory", path);
      strcpy(kept, line);
      tsv_split(t, kept);
    }
    names = true;
  }
  if (ferror(f) || fclose(f) != 0 || t->n == 0)
    tsv_die("not read", path);
}

/* The row of a release's structure and field, "(sizeof)" the whole. Without
 * one the test ends. */
static inline const char *const *rows_field(const struct tsv *t, int release,
                                            const char *structure,
                                            const char *field) {
  char number[16];
  snprintf(number, sizeof number, "%d", release);
  const char *key[] = {number, structure, field};
  const char *const *row = tsv_find(t, key, 3);
  if (row == NULL)
    tsv_die(structure, field);
  return row;
}

/* The value of a release's constant. */
static inline const char *rows_constant(const struct tsv *t, int release,
                                        const char *name) {
  char number[16];
  snprintf(number, sizeof number, "%d", release);
  const char *key[] = {number, name};
  const char *const *row = tsv_find(t, key, 2);
  return row == NULL ? NULL : row[2];
}
#endif
