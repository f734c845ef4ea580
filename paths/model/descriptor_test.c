/* SPDX-License-Identifier: ISC */
/*
 * The model's fields of launch descriptors against rows of NVIDIA's headers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paths/model/descriptor.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { CLASS, VERSION, FIELD, BITS, ENUMERANT, VALUE, COLUMNS, ROWS = 1024 };

static char text[ROWS][128];
static const char *rows[ROWS][COLUMNS];
static size_t nrows;

static int load(void **state) {
  (void)state;
  FILE *f = fopen("paths/model/testdata/qmd.tsv", "r");
  if (!f)
    fail_msg("no rows of descriptors");
  while (nrows < ROWS && fgets(text[nrows], sizeof text[0], f)) {
    char *at = text[nrows];
    at[strcspn(at, "\n")] = '\0';
    for (int c = 0; c < COLUMNS; c++) {
      char *tab = at ? strchr(at, '\t') : NULL;
      rows[nrows][c] = at ? at : "";
      if (tab)
        *tab++ = '\0';
      at = tab;
    }
    nrows += *rows[nrows][CLASS] != '#';
  }
  assert_in_range(nrows, 100, ROWS - 1);
  fclose(f);
  return 0;
}

static const char *find(const char *cls, const char *version, const char *field,
                        const char *enumerant, int column) {
  for (size_t i = 0; i < nrows; i++)
    if (!strcmp(rows[i][CLASS], cls) && !strcmp(rows[i][VERSION], version) &&
        !strcmp(rows[i][FIELD], field) &&
        !strcmp(rows[i][ENUMERANT], enumerant))
      return rows[i][column];
  return NULL;
}

static const struct {
  const char *cls, *name;
  int version;
} versions[] = {{"c7c0", "V03_00", 3},
                {"c9c0", "V03_00", 3},
                {"cbc0", "V04_00", 4},
                {"cdc0", "V05_00", 5},
                {"cec0", "V05_00", 5}};

static void bits(size_t v, const struct model_qmd_bits *b, unsigned i) {
  char name[96], want[32];
  snprintf(name, sizeof name, b->step ? "%s[%u]" : "%s", b->name, i);
  const char *got = find(versions[v].cls, versions[v].name, name, "", BITS);
  if (!got)
    fail_msg("%s %s has no %s", versions[v].cls, versions[v].name, name);
  snprintf(want, sizeof want, "%u:%u", b->high + i * b->step,
           b->low + i * b->step);
  if (strcmp(got, want) != 0)
    fail_msg("%s %s: %s is at %s, not %s", versions[v].cls, versions[v].name,
             name, got, want);
}

static void fields(void **state) {
  (void)state;
  for (size_t v = 0; v < COUNT(versions); v++) {
    char size[32];
    unsigned n = 0;
    for (int f = 0; f < QF_FIELDS; f++) {
      const struct model_qmd_bits *b =
          model_qmd_bits(versions[v].version, (enum model_qmd_field)f);
      for (unsigned i = 0; b->name && i < (b->step ? QV_BANKS : 1); i++)
        bits(v, b, i);
      n += b->name != NULL;
    }
    assert_in_range(n, QF_FIELDS - 2, QF_FIELDS);
    snprintf(size, sizeof size, "%u bytes",
             model_qmd_bytes(versions[v].version));
    assert_string_equal(
        find(versions[v].cls, versions[v].name, "(size)", "", VALUE), size);
  }
}

/* Names of V03, V04 and V05 where they differ. */
static void enumerants(void **state) {
  (void)state;
  static const struct {
    const char *field[3], *enumerant; /* of V03, V04, V05 */
    unsigned value;
  } t[] = {
      {{NULL, "QMD_TYPE", "QMD_TYPE"}, "GRID_CTA", QV_GRID_CTA},
      {{"CWD_MEMBAR_TYPE", "CWD_MEMBAR_TYPE", "CWD_MEMBAR_TYPE"},
       "L1_NONE",
       QV_L1_NONE},
      {{"CWD_MEMBAR_TYPE", "CWD_MEMBAR_TYPE", "CWD_MEMBAR_TYPE"},
       "L1_SYSMEMBAR",
       QV_L1_SYSMEMBAR},
      {{"CWD_MEMBAR_TYPE", "CWD_MEMBAR_TYPE", "CWD_MEMBAR_TYPE"},
       "L1_MEMBAR",
       QV_L1_MEMBAR},
      {{"RELEASE0_MEMBAR_TYPE", "RELEASE_MEMBAR_TYPE", "RELEASE_MEMBAR_TYPE"},
       "FE_SYSMEMBAR",
       QV_FE_SYSMEMBAR},
      {{"RELEASE0_STRUCTURE_SIZE", "RELEASE_STRUCTURE_SIZE",
        "RELEASE_STRUCTURE_SIZE"},
       "SEMAPHORE_FOUR_WORDS",
       QV_FOUR_WORDS},
      {{"RELEASE0_STRUCTURE_SIZE", "RELEASE_STRUCTURE_SIZE",
        "RELEASE_STRUCTURE_SIZE"},
       "SEMAPHORE_ONE_WORD",
       QV_ONE_WORD},
      {{"RELEASE0_STRUCTURE_SIZE", "RELEASE_STRUCTURE_SIZE",
        "RELEASE_STRUCTURE_SIZE"},
       "SEMAPHORE_TWO_WORDS",
       QV_TWO_WORDS},
      {{"DEPENDENT_QMD0_ACTION", "DEPENDENT_QMD_ACTION",
        "DEPENDENT_QMD0_ACTION"},
       "QMD_SCHEDULE",
       QV_SCHEDULE},
      {{NULL, "CONSTANT_BUFFER_PREFETCH", "CONSTANT_BUFFER_PREFETCH"},
       "PREFETCH_PRE",
       QV_PREFETCH_PRE},
  };
  for (size_t i = 0; i < COUNT(t); i++)
    for (size_t v = 0; v < COUNT(versions); v++) {
      const char *field = t[i].field[versions[v].version - 3];
      if (!field)
        continue;
      const char *got =
          find(versions[v].cls, versions[v].name, field, t[i].enumerant, VALUE);
      if (!got)
        fail_msg("%s: no %s %s", versions[v].cls, field, t[i].enumerant);
      assert_int_equal(strtoul(got, NULL, 16), t[i].value);
    }
}

/* The forbidden side. */
static void unknown(void **state) {
  (void)state;
  static const uint32_t t[] = {0, 0x705, 0x800, 0x805, 0x901, 0xa01, 0xc00};
  for (size_t i = 0; i < COUNT(t); i++)
    assert_null(model_arch(t[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fields),
      cmocka_unit_test(enumerants),
      cmocka_unit_test(unknown),
  };
  return cmocka_run_group_tests(tests, load, NULL);
}
