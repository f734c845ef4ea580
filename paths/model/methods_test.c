/* SPDX-License-Identifier: ISC */
/*
 * The model's numbers against rows of NVIDIA's class headers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paths/model/methods.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { COLUMNS = 6, MOST_ROWS = 1200 };

struct table {
  size_t n;
  char text[MOST_ROWS][160];
  const char *row[MOST_ROWS][COLUMNS];
};

static struct table methods, gpfifo;

static void read_table(struct table *t, const char *path) {
  FILE *f = fopen(path, "r");
  bool head = true;
  if (!f)
    fail_msg("%s is not there", path);
  while (fgets(t->text[t->n], sizeof t->text[0], f)) {
    char *at = t->text[t->n];
    if (*at == '#')
      continue;
    if (head) {
      head = false;
      continue;
    }
    at[strcspn(at, "\n")] = '\0';
    for (int c = 0; c < COLUMNS; c++) {
      char *tab = at ? strchr(at, '\t') : NULL;
      t->row[t->n][c] = at ? at : "";
      if (tab)
        *tab++ = '\0';
      at = tab;
    }
    assert_true(++t->n < MOST_ROWS);
  }
  fclose(f);
}

static int load(void **state) {
  (void)state;
  read_table(&methods, "paths/model/testdata/methods.tsv");
  read_table(&gpfifo, "paths/model/testdata/gpfifo.tsv");
  return 0;
}

/* The row's value; NULL where there is none. */
static const char *find(const char *cls, const char *kind, const char *method,
                        const char *field, const char *enumerant) {
  for (size_t i = 0; i < methods.n; i++) {
    const char *const *r = methods.row[i];
    if (!strcmp(r[0], cls) && !strcmp(r[1], kind) && !strcmp(r[2], method) &&
        !strcmp(r[3], field) && !strcmp(r[4], enumerant))
      return r[5];
  }
  return NULL;
}

static uint32_t mask(const char *bits) {
  unsigned high, low;
  assert_int_equal(sscanf(bits, "%u:%u", &high, &low), 2);
  return (uint32_t)((UINT64_C(2) << high) - (UINT64_C(1) << low));
}

/* The bits of every field of the method, 0 where none is published. */
static uint32_t fields(const char *cls, const char *method) {
  uint32_t bits = 0;
  for (size_t i = 0; i < methods.n; i++) {
    const char *const *r = methods.row[i];
    if (!strcmp(r[0], cls) && !strcmp(r[1], "field") && !strcmp(r[2], method))
      bits |= mask(r[5]);
  }
  return bits;
}

/* Methods of which the model takes some bits only. */
static bool partly(const char *name) {
  static const char *const some[] = {"SEM_EXECUTE", "LAUNCH_DMA",
                                     "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C"};
  for (size_t i = 0; i < COUNT(some); i++)
    if (!strcmp(some[i], name))
      return true;
  return false;
}

/* The later channel classes publish some of their methods and fields: the rest
 * is as in AMPERE_CHANNEL_GPFIFO_B. */
static void method(enum model_kind kind, const char *cls, int i,
                   const struct model_method *m) {
  const char *base = kind == KIND_HOST ? "c76f" : cls;
  const char *at = find(cls, "method", m->name, "", "");
  if (!at)
    at = find(base, "method", m->name, "", "");
  if (!at)
    fail_msg("%s: no %s", cls, m->name);
  assert_int_equal(strtoul(at, NULL, 16), m->at);
  assert_int_equal(model_find(kind, m->at), i);
  uint32_t bits = model_bits(kind, i, (uint32_t)strtoul(cls, NULL, 16));
  uint32_t want = fields(cls, m->name) | fields(base, m->name);
  if (partly(m->name) ? bits & ~want : bits != want)
    fail_msg("%s: %s takes 0x%x of 0x%x", cls, m->name, bits, want);
}

static void tables(void **state) {
  (void)state;
  static const struct {
    enum model_kind kind;
    const char *cls;
  } t[] = {
      {KIND_HOST, "c56f"},    {KIND_HOST, "c76f"},    {KIND_HOST, "c86f"},
      {KIND_HOST, "c96f"},    {KIND_HOST, "ca6f"},    {KIND_COMPUTE, "c7c0"},
      {KIND_COMPUTE, "c9c0"}, {KIND_COMPUTE, "cbc0"}, {KIND_COMPUTE, "cdc0"},
      {KIND_COMPUTE, "cec0"}, {KIND_COPY, "c7b5"},    {KIND_COPY, "c8b5"},
      {KIND_COPY, "c9b5"},    {KIND_COPY, "cab5"}};
  for (size_t k = 0; k < COUNT(t); k++) {
    size_t n;
    const struct model_method *m = model_methods(t[k].kind, &n);
    assert_true(model_knows(t[k].kind, (uint32_t)strtoul(t[k].cls, NULL, 16)));
    for (size_t i = 0; i < n; i++)
      method(t[k].kind, t[k].cls, (int)i, &m[i]);
  }
}

static void enumerants(void **state) {
  (void)state;
  static const struct {
    const char *cls, *method, *field, *enumerant;
    uint32_t value;
  } t[] = {
      {"c76f", "SEM_EXECUTE", "OPERATION", "ACQUIRE", SEM_ACQUIRE},
      {"c76f", "SEM_EXECUTE", "OPERATION", "RELEASE", SEM_RELEASE},
      {"c76f", "SEM_EXECUTE", "OPERATION", "ACQ_CIRC_GEQ", SEM_ACQ_CIRC_GEQ},
      {"c76f", "SEM_EXECUTE", "ACQUIRE_SWITCH_TSG", "EN", SEM_SWITCH_TSG},
      {"c76f", "SEM_EXECUTE", "RELEASE_WFI", "EN", SEM_RELEASE_WFI},
      {"c76f", "SEM_EXECUTE", "PAYLOAD_SIZE", "64BIT", SEM_64BIT},
      {"c76f", "SEM_EXECUTE", "RELEASE_TIMESTAMP", "EN", SEM_TIMESTAMP},
      {"c8b5", "LAUNCH_DMA", "DATA_TRANSFER_TYPE", "PIPELINED", DMA_PIPELINED},
      {"c8b5", "LAUNCH_DMA", "DATA_TRANSFER_TYPE", "NON_PIPELINED",
       DMA_NON_PIPELINED},
      {"c8b5", "LAUNCH_DMA", "FLUSH_ENABLE", "TRUE", DMA_FLUSH},
      {"c8b5", "LAUNCH_DMA", "FLUSH_TYPE", "GL", DMA_FLUSH_GL},
      {"c8b5", "LAUNCH_DMA", "SEMAPHORE_TYPE", "RELEASE_ONE_WORD_SEMAPHORE",
       DMA_SEM_ONE_WORD << DMA_SEM_SHIFT},
      {"c8b5", "LAUNCH_DMA", "SEMAPHORE_TYPE", "RELEASE_FOUR_WORD_SEMAPHORE",
       DMA_SEM_FOUR_WORD << DMA_SEM_SHIFT},
      {"c8b5", "LAUNCH_DMA", "SRC_MEMORY_LAYOUT", "PITCH", DMA_SRC_PITCH},
      {"c8b5", "LAUNCH_DMA", "DST_MEMORY_LAYOUT", "PITCH", DMA_DST_PITCH},
      {"c8b5", "LAUNCH_DMA", "MULTI_LINE_ENABLE", "TRUE", DMA_MULTI_LINE},
      {"c8b5", "LAUNCH_DMA", "REMAP_ENABLE", "TRUE", DMA_REMAP},
      {"c8b5", "LAUNCH_DMA", "DISABLE_PLC", "TRUE", DMA_DISABLE_PLC},
      {"c8b5", "LAUNCH_DMA", "SEMAPHORE_PAYLOAD_SIZE", "TWO_WORD",
       DMA_SEM_TWO_WORD},
      {"c8b5", "SET_REMAP_COMPONENTS", "DST_X", "CONST_A", REMAP_CONST_A},
      {"c8b5", "SET_REMAP_COMPONENTS", "DST_X", "CONST_B", REMAP_CONST_B},
      {"c8b5", "SET_REMAP_COMPONENTS", "DST_X", "NO_WRITE", REMAP_NO_WRITE},
      {"c8b5", "SET_REMAP_COMPONENTS", "COMPONENT_SIZE", "TWO",
       1 << REMAP_SIZE_SHIFT},
      {"c8b5", "SET_REMAP_COMPONENTS", "NUM_DST_COMPONENTS", "TWO",
       1 << REMAP_DST_SHIFT},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    const char *bits = find(t[i].cls, "field", t[i].method, t[i].field, "");
    const char *value =
        find(t[i].cls, "enum", t[i].method, t[i].field, t[i].enumerant);
    if (!bits || !value)
      fail_msg("no %s %s", t[i].field, t[i].enumerant);
    uint32_t want = (uint32_t)strtoul(value, NULL, 16);
    want *= mask(bits) & ~(mask(bits) - 1); /* the field's lowest bit */
    if (want != t[i].value)
      fail_msg("%s %s is 0x%x, not 0x%x", t[i].field, t[i].enumerant, want,
               t[i].value);
  }
}

/* Bit ranges of entries are of their second word from GP_ENTRY1 on. */
static void entries(void **state) {
  (void)state;
  static const struct {
    const char *source, *name, *value;
    unsigned at;
  } t[] = {
      {"c76f", "GP_ENTRY__SIZE", "0x%x", GP_ENTRY_BYTES},
      {"c76f", "GP_ENTRY0_FETCH", "%u:%u", GP_FETCH_BIT},
      {"c76f", "GP_ENTRY0_GET", "31:%u", GP_GET_LOW_BIT},
      {"c76f", "GP_ENTRY1_GET_HI", "%u:0", GP_GET_TOP_BIT - 32},
      {"c76f", "GP_ENTRY1_LEVEL", "%u:%u", GP_LEVEL_BIT - 32},
      {"c76f", "GP_ENTRY1_LENGTH", "30:%u", GP_LENGTH_BIT - 32},
      {"c76f", "GP_ENTRY1_LENGTH", "%u:10",
       GP_LENGTH_BIT - 32 + GP_LENGTH_BITS - 1},
      {"c76f", "GP_ENTRY1_SYNC", "%u:%u", GP_SYNC_BIT - 32},
      {"c76f", "DMA_SEC_OP_GRP0_USE_TERT", "0x%x", OP_TERT},
      {"c76f", "DMA_SEC_OP_INC_METHOD", "0x%x", OP_INC},
      {"c76f", "DMA_SEC_OP_NON_INC_METHOD", "0x%x", OP_NON_INC},
      {"c76f", "DMA_SEC_OP_IMMD_DATA_METHOD", "0x%x", OP_IMMD},
      {"c76f", "DMA_SEC_OP_ONE_INC", "0x%x", OP_ONE_INC},
      {"c76f", "DMA_SEC_OP_END_PB_SEGMENT", "0x%x", OP_END},
      {"class struct AmpereAControlGPFifo", "GPGet", "0x%x", USERD_GP_GET},
      {"class struct AmpereAControlGPFifo", "GPPut", "0x%x", USERD_GP_PUT},
      {"class struct HopperAControlGPFifo", "(sizeof)", "0x%x", USERD_BYTES},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    const char *got = NULL;
    char want[32];
    for (size_t r = 0; r < gpfifo.n; r++)
      if (!strcmp(gpfifo.row[r][0], t[i].source) &&
          !strcmp(gpfifo.row[r][1], t[i].name))
        got = gpfifo.row[r][3];
    if (!got)
      fail_msg("no %s", t[i].name);
    snprintf(want, sizeof want, t[i].value, t[i].at, t[i].at);
    assert_string_equal(got, want);
  }
}

/* The forbidden side: classes and methods that the tables do not have. */
static void unknown(void **state) {
  (void)state;
  static const struct {
    enum model_kind kind;
    uint32_t cls, at;
  } t[] = {{KIND_HOST, 0xc46f, 0x4},      {KIND_HOST, 0xcbc0, 0x70},
           {KIND_COMPUTE, 0xc6c0, 0x114}, {KIND_COMPUTE, 0xc8b5, 0x300},
           {KIND_COPY, 0xc6b5, 0x260},    {KIND_COPY, 0, 0x304}};
  for (size_t i = 0; i < COUNT(t); i++) {
    assert_false(model_knows(t[i].kind, t[i].cls));
    assert_int_equal(model_find(t[i].kind, t[i].at), -1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tables),
      cmocka_unit_test(enumerants),
      cmocka_unit_test(entries),
      cmocka_unit_test(unknown),
  };
  return cmocka_run_group_tests(tests, load, NULL);
}
