/* SPDX-License-Identifier: ISC */
/* Launch descriptors: every field decoded by the rows of testdata/ and no
 * other bit set, literal dumps, and templates against whole writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/abi/tsv.h"
#include "core/api/rig_nv.h"
#include "core/qmd/qmd.h"

enum { CLASS, VERSION, FIELD, BITS, ENUMERANT, VALUE };

static struct tsv rows;

/* Least and most of each field; a launch as drivers make them; and each kind
 * of release, membar, chain and shared memory. */
struct row {
  const char *name;
  struct qmd_function fn;
  struct qmd_args args;
};

static const struct row launches[] = {
    {"least", {.shared = 1024}, {.grid = {1, 1, 1}, .block = {1, 1, 1}}},
    {"usual",
     {.registers = 32,
      .barriers = 1,
      .shared = 1024,
      .local = 0x240,
      .code = 0x7fedcba980,
      .code_bytes = 0x1380,
      .bank0_bytes = 0x21c,
      .bank[3] = {0x12345678c0, 0x104}},
     {.grid = {1000, 20, 3},
      .block = {128, 2, 4},
      .bank0 = 0xfe98765440,
      .membar = QMD_MEMBAR_SYSTEM}},
    {"chained",
     {.registers = 64, .barriers = 2, .shared = 33 * 1024, .bank0_bytes = 16},
     {.grid = {7, 1, 1},
      .block = {32, 1, 1},
      .bank0 = 0x40,
      .next = 0x8765432100}},
    {"release",
     {.shared = 64 * 1024, .bank0_bytes = 0x160},
     {.grid = {1, 2, 3},
      .block = {4, 5, 6},
      .dynamic_shared = 1,
      .release = {QMD_TWO_WORDS, 0x9abcdef018, 0x123456789abcdef0}}},
    {"stamp",
     {.shared = 1024 + 128, .bank[1] = {0x40, 1}},
     {.grid = {1, 1, 1},
      .block = {1, 1, 1},
      .dynamic_shared = 35 * 1024,
      .release = {QMD_FOUR_WORDS, 0xfffffffff0, UINT64_MAX}}},
    {"most",
     {.registers = 255,
      .barriers = 16,
      .shared = 100 * 1024,
      .local = 0xffff0,
      .code = 0x1ffffffffff80,
      .code_bytes = UINT64_MAX,
      .bank0_bytes = 65536,
      .bank[1] = {0x1ffffffffffc0, 65536},
      .bank[2] = {0x1ffffffffffc0, 65536},
      .bank[3] = {0x1ffffffffffc0, 65536},
      .bank[4] = {0x1ffffffffffc0, 65536},
      .bank[5] = {0x1ffffffffffc0, 65536},
      .bank[6] = {0x1ffffffffffc0, 65536},
      .bank[7] = {0x1ffffffffffc0, 65536}},
     {.grid = {0x7fffffff, 65535, 65535},
      .block = {4, 1, 64},
      .bank0 = 0xffffffffc0,
      .next = 0xffffffff00,
      .release = {QMD_TWO_WORDS, 0xfffffffff8, 1},
      .membar = QMD_MEMBAR_SYSTEM}},
};

/* A class's descriptor: what the GPU of sm_version writes must read so. Where
 * all is set, every row has a value, and every other bit is 0. */
static const struct {
  const char *cls, *version;
  uint32_t sm_version;
  bool all;
  enum qmd_version is;
  uint32_t sass, most; /* KiB of shared memory */
} classes[] = {
    {"c7c0", "V03_00", 0x806, true, QMD_V3, 0x86, 100},
    {"c7c0", "V03_00", 0x807, true, QMD_V3, 0x87, 164},
    {"c9c0", "V03_00", 0x809, true, QMD_V3, 0x89, 100},
    {"cbc0", "V04_00", 0x900, true, QMD_V4, 0x90, 228},
    {"cdc0", "V04_01", 0x900, true, QMD_V4, 0x90, 228},
    {"cdc0", "V05_00", 0xa00, true, QMD_V5, 0xa0, 228},
    {"cec0", "V05_00", 0xa04, true, QMD_V5, 0xa4, 100},
    {"cdc0", "V05_01", 0xa00, false, QMD_V5, 0xa0, 228},
};
enum {
  LAUNCHES = sizeof launches / sizeof launches[0],
  CLASSES = sizeof classes / sizeof classes[0]
};

/* The value of a field's enumerant in a class. */
static uint64_t enumerant(size_t c, const char *field, const char *name) {
  char of[64];
  snprintf(of, sizeof of, "%.*s", (int)strcspn(field, "["), field);
  const char *key[] = {classes[c].cls, classes[c].version, of, NULL, name};
  const char *const *row = tsv_find(&rows, key, 5);
  if (row == NULL)
    fail_msg("%s %s has no %s", classes[c].cls, of, name);
  return tsv_number(row[VALUE]);
}

static bool ends(const char *text, const char *end) {
  const size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

static bool begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

/* _UPPER fields hold what is above the lower 32 bits of what is shifted. */
static uint64_t half(const char *field, uint64_t x) {
  return strstr(field, "UPPER") != NULL ? x >> 32 : x & UINT32_MAX;
}

static uint64_t release_value(size_t c, const char *f, const struct row *l) {
  const struct qmd_release *r = &l->args.release;
  if (r->size == QMD_NO_RELEASE)
    return 0;
  if (strstr(f, "STRUCTURE_SIZE") != NULL)
    return enumerant(c, f,
                     r->size == QMD_TWO_WORDS ? "SEMAPHORE_TWO_WORDS"
                                              : "SEMAPHORE_FOUR_WORDS");
  if (strstr(f, "MEMBAR_TYPE") != NULL)
    return classes[c].is == QMD_V4 ? enumerant(c, f, "FE_SYSMEMBAR") : 0;
  if (strstr(f, "PAYLOAD_") != NULL)
    return half(f, r->payload);
  if (strstr(f, "ADDR") != NULL)
    return half(f, r->addr);
  return 1; /* ENABLE, PAYLOAD64B */
}

static uint64_t next_value(size_t c, const char *f, const struct row *l) {
  if (l->args.next == 0)
    return 0;
  if (strstr(f, "POINTER") != NULL)
    return l->args.next / 256;
  if (strstr(f, "ACTION") != NULL)
    return enumerant(c, f, "QMD_SCHEDULE");
  return 1; /* ENABLE, PREFETCH */
}

static uint64_t bank_value(size_t c, const char *f, const struct row *l) {
  const unsigned i = (unsigned)strtoul(strchr(f, '[') + 1, NULL, 10);
  struct qmd_bank b = l->fn.bank[i];
  if (i == 0)
    b = (struct qmd_bank){l->args.bank0, l->fn.bank0_bytes};
  if (strstr(f, "ADDR") != NULL)
    return half(f, strstr(f, "SHIFTED6") != NULL ? b.addr / 64 : b.addr);
  if (strstr(f, "SIZE") != NULL)
    return (b.bytes + 15) / 16;
  if (strstr(f, "VALID[") != NULL && strstr(f, "INVALID") == NULL)
    return i == 0 || b.bytes != 0;
  if (strstr(f, "PREFETCH") != NULL)
    return i == 0 && classes[c].is == QMD_V4 ? enumerant(c, f, "PREFETCH_PRE")
                                             : 0;
  return i == 0; /* INVALIDATE */
}

static uint64_t shared_value(size_t c, const char *f, const struct row *l) {
  static const uint32_t steps[] = {32, 64, 100, 132, 164, 228};
  const uint32_t dynamic = (l->args.dynamic_shared + 127) / 128 * 128;
  const uint64_t most = classes[c].most / 4 + 1;
  size_t i = 0;
  if (begins(f, "SHARED_MEMORY_SIZE")) {
    const uint32_t n = l->fn.shared + dynamic;
    return ends(f, "_SHIFTED7") ? n / 128 : n;
  }
  if (begins(f, "MAX") || dynamic != 0)
    return most;
  while (steps[i] * 1024 < l->fn.shared)
    i++;
  return steps[i] / 4 + 1;
}

/* What a field must hold, from the launch alone. */
static uint64_t value(size_t c, const char *f, const struct row *l) {
  const struct qmd_function *fn = &l->fn;
  const struct qmd_args *a = &l->args;
  const bool barrier =
      a->membar == QMD_MEMBAR_SYSTEM || a->release.size != QMD_NO_RELEASE;
  const uint64_t units = fn->code_bytes / 256;
  const struct {
    const char *field;
    uint64_t is;
  } plain[] = {
      {"QMD_MAJOR_VERSION", (uint64_t)classes[c].is},
      {"QMD_MINOR_VERSION", 0},
      {"QMD_VERSION", 0},
      {"QMD_GROUP_ID", 0x3f},
      {"SM_GLOBAL_CACHING_ENABLE", 1},
      {"INVALIDATE_TEXTURE_HEADER_CACHE", 1},
      {"INVALIDATE_TEXTURE_SAMPLER_CACHE", 1},
      {"INVALIDATE_TEXTURE_DATA_CACHE", 1},
      {"INVALIDATE_SHADER_DATA_CACHE", 1},
      {"INVALIDATE_SHADER_CONSTANT_CACHE", classes[c].is == QMD_V4},
      {"SASS_VERSION", classes[c].sass},
      {"GRID_WIDTH", a->grid[0]},
      {"GRID_HEIGHT", a->grid[1]},
      {"GRID_DEPTH", a->grid[2]},
      {"CTA_RASTER_WIDTH", a->grid[0]},
      {"CTA_RASTER_HEIGHT", a->grid[1]},
      {"CTA_RASTER_DEPTH", a->grid[2]},
      {"CTA_THREAD_DIMENSION0", a->block[0]},
      {"CTA_THREAD_DIMENSION1", a->block[1]},
      {"CTA_THREAD_DIMENSION2", a->block[2]},
      {"REGISTER_COUNT", fn->registers},
      {"REGISTER_COUNT_V", fn->registers},
      {"BARRIER_COUNT", fn->barriers},
      {"SHADER_LOCAL_MEMORY_HIGH_SIZE", fn->local},
      {"SHADER_LOCAL_MEMORY_HIGH_SIZE_SHIFTED4", fn->local / 16},
      {"PROGRAM_ADDRESS_LOWER", half("LOWER", fn->code)},
      {"PROGRAM_ADDRESS_UPPER", half("UPPER", fn->code)},
      {"PROGRAM_ADDRESS_LOWER_SHIFTED4", half("LOWER", fn->code / 16)},
      {"PROGRAM_ADDRESS_UPPER_SHIFTED4", half("UPPER", fn->code / 16)},
      {"PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED", half("LOWER", fn->code / 256)},
      {"PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED", half("UPPER", fn->code / 256)},
      {"PROGRAM_PREFETCH_SIZE", units < 511 ? units : 511},
  };
  for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
    if (strcmp(plain[i].field, f) == 0)
      return plain[i].is;
  }
  if (strcmp(f, "QMD_TYPE") == 0)
    return enumerant(c, f, "GRID_CTA");
  if (strcmp(f, "CWD_MEMBAR_TYPE") == 0)
    return barrier ? enumerant(c, f, "L1_SYSMEMBAR") : 0;
  if (strcmp(f, "API_VISIBLE_CALL_LIMIT") == 0)
    return enumerant(c, f, "NO_CHECK");
  if (strcmp(f, "SAMPLER_INDEX") == 0)
    return enumerant(c, f, "VIA_HEADER_INDEX");
  if (begins(f, "RELEASE"))
    return release_value(c, f, l);
  if (begins(f, "DEPENDENT_QMD"))
    return next_value(c, f, l);
  if (begins(f, "CONSTANT_BUFFER_"))
    return bank_value(c, f, l);
  if (strstr(f, "SHARED_MEM") != NULL)
    return shared_value(c, f, l);
  fail_msg("no value is expected of %s", f);
  return 0;
}

/* Takes bits msb..lsb out of the descriptor. */
static uint64_t take(uint32_t *w, const char *bits) {
  unsigned msb, lsb;
  uint64_t x = 0;
  assert_int_equal(sscanf(bits, "%u:%u", &msb, &lsb), 2);
  for (unsigned i = msb + 1; i-- > lsb;) {
    x = x << 1 | (w[i / 32] >> i % 32 & 1);
    w[i / 32] &= ~(1u << i % 32);
  }
  return x;
}

static struct qmd_launch launch_of(uint32_t sm_version, const struct row *l) {
  struct qmd_launch q = {l->fn, l->args};
  q.function.limits = limits_of(sm_version);
  assert_non_null(q.function.limits);
  return q;
}

static void decode(size_t c, const struct row *l) {
  const struct qmd_launch q = launch_of(classes[c].sm_version, l);
  uint32_t w[QMD_MOST_WORDS], taken[QMD_MOST_WORDS];
  size_t decoded = 0;
  memset(w, 0x5a, sizeof w);
  assert_int_equal(qmd_check_function(classes[c].is, &q.function), 0);
  assert_int_equal(qmd_check_args(&q.function, &q.args), 0);
  const unsigned n = qmd_write(classes[c].is, &q, w);
  memcpy(taken, w, sizeof w);
  for (size_t i = 0; i < rows.n; i++) {
    const char *const *row = rows.row[i];
    if (strcmp(row[CLASS], classes[c].cls) != 0 ||
        strcmp(row[VERSION], classes[c].version) != 0 || *row[BITS] == '\0')
      continue;
    if (strcmp(row[FIELD], "(size)") == 0) {
      assert_int_equal(n * 32 - 1, strtoul(row[BITS], NULL, 10));
      assert_int_equal(n * 4, qmd_bytes(classes[c].is));
      continue;
    }
    uint32_t whole[QMD_MOST_WORDS];
    memcpy(whole, w, sizeof w);
    const uint64_t is = take(whole, row[BITS]);
    const uint64_t want = value(c, row[FIELD], l);
    if (is != want)
      fail_msg("%s %s of %s: %#llx, expected %#llx", row[VERSION], row[FIELD],
               l->name, (unsigned long long)is, (unsigned long long)want);
    (void)take(taken, row[BITS]);
    decoded++;
  }
  assert_true(decoded > 20);
  for (unsigned i = 0; i < QMD_MOST_WORDS && classes[c].all; i++) {
    if (taken[i] != (i < n ? 0 : 0x5a5a5a5a))
      fail_msg("%s: word %u of %s holds %#x beside its fields",
               classes[c].version, i, l->name, (unsigned)taken[i]);
  }
}

static void test_fields(void **state) {
  (void)state;
  for (size_t i = 0; i < CLASSES * LAUNCHES; i++)
    decode(i / LAUNCHES, &launches[i % LAUNCHES]);
}

/* One launch, by hand from the class headers' tables. */
static const struct row golden_launch = {
    "golden",
    {.registers = 32,
     .barriers = 1,
     .shared = 1024,
     .local = 0x240,
     .code = 0x7fedcba980,
     .code_bytes = 0x1380,
     .bank0_bytes = 0x21c,
     .bank[3] = {0x12345678c0, 0x104}},
    {.grid = {1000, 20, 3},
     .block = {128, 2, 4},
     .bank0 = 0xfe98765440,
     .next = 0x8765432100,
     .release = {QMD_TWO_WORDS, 0x9abcdef010, 0x123456789abcdef0}},
};

static const struct {
  uint32_t sm_version;
  unsigned words;
  uint32_t is[QMD_MOST_WORDS];
} golden[] = {
    {0x809,
     64,
     {
         [4] = 0x0000007f,  [5] = 0x3c000000,  [8] = 0x7fedcba9,
         [11] = 0x44010000, [12] = 0x000003e8, [13] = 0x00000014,
         [14] = 0x00000003, [15] = 0x87654321, [16] = 0x00000013,
         [17] = 0x34240400, [18] = 0x00800030, [19] = 0x00040002,
         [20] = 0x00122009, [23] = 0x08000000, [24] = 0xbcdef010,
         [25] = 0xa080009a, [26] = 0x9abcdef0, [27] = 0x12345678,
         [32] = 0x98765440, [33] = 0x011400fe, [38] = 0x345678c0,
         [39] = 0x00880012, [48] = 0xedcba980, [49] = 0x0000007f,
         [50] = 0x00000240, [51] = 0x89002600,
     }},
    {0x900,
     96,
     {
         [0] = 0x013f0000,  [10] = 0x0000100d, [11] = 0x00130000,
         [13] = 0x0000100b, [14] = 0x87654321, [16] = 0x90000000,
         [17] = 0x03000240, [18] = 0xbc040040, [19] = 0x00009e89,
         [20] = 0xbcdef010, [21] = 0x0000009a, [22] = 0x9abcdef0,
         [23] = 0x12345678, [32] = 0x000003e8, [33] = 0x00000014,
         [34] = 0x00000003, [35] = 0x00010000, [36] = 0x00020080,
         [37] = 0x08200004, [38] = 0xedcba980, [39] = 0x0000007f,
         [42] = 0x7fedcba9, [43] = 0x00260000, [48] = 0xfa61d951,
         [49] = 0x01100003, [54] = 0x48d159e3, [55] = 0x00880000,
     }},
    {0xa04,
     96,
     {
         [4] = 0x013f0000,  [9] = 0x00001005,  [10] = 0x00130000,
         [12] = 0x87654321, [14] = 0x0f5003a4, [15] = 0xbcdef010,
         [16] = 0x0000009a, [17] = 0x9abcdef0, [18] = 0x12345678,
         [19] = 0x00010000, [32] = 0xfedcba98, [33] = 0x02600007,
         [34] = 0x00020080, [35] = 0x00022004, [36] = 0x04b44808,
         [37] = 0x00240000, [39] = 0x000003e8, [40] = 0x00000014,
         [41] = 0x00000003, [42] = 0xfa61d951, [43] = 0x01100003,
         [48] = 0x48d159e3, [49] = 0x00880000, [58] = 0x00001009,
         [59] = 0x7fedcba9,
     }},
};

static void test_golden(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
    const struct qmd_launch q = launch_of(golden[i].sm_version, &golden_launch);
    uint32_t w[QMD_MOST_WORDS] = {0};
    enum qmd_version v;
    assert_int_equal(qmd_version_of(golden[i].sm_version, &v), 0);
    assert_int_equal(qmd_check_args(&q.function, &q.args), 0);
    assert_int_equal(qmd_write(v, &q, w), golden[i].words);
    for (unsigned k = 0; k < QMD_MOST_WORDS; k++) {
      if (w[k] != golden[i].is[k])
        fail_msg("SM %#x: word %u is %#x", (unsigned)golden[i].sm_version, k,
                 (unsigned)w[k]);
    }
  }
}

/* A template serves launch after launch: none leaves a bit to the next. */
static void test_template(void **state) {
  (void)state;
  for (size_t i = 0; i < CLASSES * LAUNCHES; i++) {
    const size_t c = i / LAUNCHES;
    struct qmd_launch q =
        launch_of(classes[c].sm_version, &launches[i % LAUNCHES]);
    struct qmd_template t;
    qmd_template(classes[c].is, &q.function, &t);
    for (size_t k = 0; k < 2 * LAUNCHES; k++) {
      uint32_t filled[QMD_MOST_WORDS], whole[QMD_MOST_WORDS];
      memset(filled, 0xff, sizeof filled);
      q.args = launches[k % LAUNCHES].args;
      const unsigned n = qmd_fill(&t, &q.args, filled);
      assert_int_equal(qmd_write(classes[c].is, &q, whole), n);
      assert_memory_equal(filled, whole, n * sizeof *filled);
    }
  }
}

/* As tsv_read, of this package's testdata. */
static int read_rows(void **state) {
  (void)state;
  const char *path = "core/qmd/testdata/qmd.tsv";
  char line[256];
  bool names = false;
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
      tsv_split(&rows, kept);
    }
    names = true;
  }
  if (ferror(f) || fclose(f) != 0 || rows.n == 0)
    tsv_die("not read", path);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fields),
      cmocka_unit_test(test_golden),
      cmocka_unit_test(test_template),
  };
  return cmocka_run_group_tests(tests, read_rows, NULL);
}
