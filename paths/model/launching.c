/* SPDX-License-Identifier: ISC */
#include "paths/model/launching.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CLASS, VERSION, FIELD, BITS, ENUMERANT, VALUE, COLUMNS };
enum { ROWS = 1024 };

static char lines[ROWS][128];
static const char *rows[ROWS][COLUMNS];
static size_t nrows;

static void read_rows(void) {
  FILE *f = fopen("paths/model/testdata/qmd.tsv", "r");
  if (!f)
    fail_msg("no rows of descriptors");
  while (fgets(lines[nrows], sizeof lines[0], f)) {
    char *at = lines[nrows];
    at[strcspn(at, "\n")] = '\0';
    if (*at == '#')
      continue;
    for (int c = 0; c < COLUMNS; c++) {
      char *tab = at ? strchr(at, '\t') : NULL;
      rows[nrows][c] = at ? at : "";
      if (tab)
        *tab++ = '\0';
      at = tab;
    }
    assert_true(++nrows < ROWS);
  }
  fclose(f);
}

/* The bits of a field, or NULL. */
static const char *bits_of(const struct launching *l, const char *name) {
  for (size_t i = 0; i < nrows; i++)
    if (!strcmp(rows[i][CLASS], l->cls) &&
        !strcmp(rows[i][VERSION], l->version) &&
        !strcmp(rows[i][FIELD], name) && !*rows[i][ENUMERANT])
      return rows[i][BITS];
  return NULL;
}

static void set_bits(uint32_t *words, const char *bits, uint64_t x) {
  unsigned high, low;
  assert_int_equal(sscanf(bits, "%u:%u", &high, &low), 2);
  if (high - low < 63 && x >> (high - low + 1))
    fail_msg("0x%llx is past %s", (unsigned long long)x, bits);
  for (unsigned at = low; at <= high; at++) {
    words[at / 32] &= ~(1u << at % 32);
    words[at / 32] |= (uint32_t)(x >> (at - low) & 1) << at % 32;
  }
}

static uint32_t *words_of(const struct launching *l, int slot) {
  return (uint32_t *)(void *)((char *)l->slots.host +
                              (size_t)slot * LAUNCHING_SLOT);
}

/* The field's bits, with _SHIFTEDn too, whose n is *shift. */
static const char *shifted(const struct launching *l, const char *stem,
                           const char *index, unsigned *shift) {
  static const unsigned shifts[] = {0, 4, 6, 7};
  for (size_t i = 0; i < 4; i++) {
    char name[96];
    *shift = shifts[i];
    if (*shift)
      snprintf(name, sizeof name, "%s_SHIFTED%u%s", stem, *shift, index);
    else
      snprintf(name, sizeof name, "%s%s", stem, index);
    const char *bits = bits_of(l, name);
    if (bits)
      return bits;
  }
  return NULL;
}

/* Splits the next of the names into its stem and its index. */
static const char *split(const char *names, char *stem, char *index) {
  size_t n = strcspn(names, "|"), k = strcspn(names, "[|");
  snprintf(stem, 80, "%.*s", (int)k, names);
  snprintf(index, 16, "%.*s", (int)(n - k), names + k);
  return names[n] ? names + n + 1 : NULL;
}

/* The bits of the first of the names that the class has. */
static const char *first(const struct launching *l, const char *names,
                         unsigned *shift, char *name) {
  char stem[80], index[16];
  for (const char *at = names; at;) {
    at = split(at, stem, index);
    const char *bits = shifted(l, stem, index, shift);
    if (bits && name && *shift)
      snprintf(name, 96, "%s_SHIFTED%u", stem, *shift);
    else if (bits && name)
      snprintf(name, 96, "%s", stem);
    if (bits)
      return bits;
  }
  return NULL;
}

bool launching_has(const struct launching *l, const char *names) {
  unsigned shift;
  return first(l, names, &shift, NULL);
}

const char *launching_name(const struct launching *l, const char *names) {
  static char name[96];
  unsigned shift;
  if (!first(l, names, &shift, name))
    fail_msg("no %s in %s %s", names, l->cls, l->version);
  return name;
}

void launching_put(struct launching *l, int slot, const char *names,
                   uint64_t value) {
  unsigned shift;
  const char *bits = first(l, names, &shift, NULL);
  if (!bits)
    fail_msg("no %s in %s %s", names, l->cls, l->version);
  set_bits(words_of(l, slot), bits, value >> shift);
}

void launching_address(struct launching *l, int slot, const char *names,
                       uint64_t value) {
  char stem[80], index[16], half[96];
  for (const char *at = names; at;) {
    unsigned shift;
    at = split(at, stem, index);
    snprintf(half, sizeof half, "%s_LOWER", stem);
    const char *bits = shifted(l, half, index, &shift);
    if (!bits)
      continue;
    set_bits(words_of(l, slot), bits, value >> shift & UINT32_MAX);
    snprintf(half, sizeof half, "%s_UPPER", stem);
    bits = shifted(l, half, index, &shift);
    set_bits(words_of(l, slot), bits, value >> shift >> 32);
    return;
  }
  fail_msg("no %s in %s %s", names, l->cls, l->version);
}

static const struct {
  uint32_t sm_version, channel, compute, copy;
  const char *cls, *version;
  uint32_t params, block, grid;
} gpus[] = {
    {0x806, 0xc56f, 0xc7c0, 0xc7b5, "c7c0", "V03_00", 0x160, 0, 12},
    {0x807, 0xc56f, 0xc7c0, 0xc7b5, "c7c0", "V03_00", 0x160, 0, 12},
    {0x809, 0xc56f, 0xc9c0, 0xc7b5, "c9c0", "V03_00", 0x160, 0, 12},
    {0x900, 0xc86f, 0xcbc0, 0xc8b5, "cbc0", "V04_00", 0x210, 0, 12},
    {0xa00, 0xc96f, 0xcdc0, 0xc9b5, "cdc0", "V05_00", 0x380, 0x360, 0x370},
    {0xa04, 0xca6f, 0xcec0, 0xcab5, "cec0", "V05_00", 0x380, 0x360, 0x370},
};

static void take(struct launching *l, enum rig_memory kind, uint64_t n,
                 struct rig_nv_memory *m) {
  struct rig_nv_reply r;
  const struct rig_nv_path *p = l->bench.path;
  if (!p->alloc(p->ctx, kind, n, 0, m, &r))
    fail_msg("%s", r.text);
  if (m->host)
    memset(m->host, 0, n);
}

void launching_open_bare(struct launching *l, uint32_t sm_version,
                         const struct rig_nv_model_options *options) {
  struct rig_nv_model_options o;
  size_t i = 0;
  if (!nrows)
    read_rows();
  memset(l, 0, sizeof *l);
  while (gpus[i].sm_version != sm_version)
    assert_true(++i < sizeof gpus / sizeof *gpus);
  rig_nv_model_options_init(&o);
  if (options)
    o = *options;
  o.gpu.channel_class = gpus[i].channel;
  o.gpu.compute_class = gpus[i].compute;
  o.gpu.copy_class = gpus[i].copy;
  o.gpu.sm_version = sm_version;
  o.gpu.gpcs = 1;
  o.gpu.tpcs_per_gpc = 2;
  o.gpu.warps_per_sm = 16;
  l->cls = gpus[i].cls;
  l->version = gpus[i].version;
  l->sm_version = sm_version;
  l->params = gpus[i].params;
  l->block = gpus[i].block;
  l->grid = gpus[i].grid;
  bench_open(&l->bench, &o);
  take(l, RIG_PINNED, LAUNCHING_SLOTS * LAUNCHING_SLOT, &l->slots);
  take(l, RIG_PINNED, LAUNCHING_PROGRAMS * LAUNCHING_PROGRAM, &l->code);
  for (int k = 0; k < LAUNCHING_PROGRAMS; k++)
    memset((char *)l->code.host + k * LAUNCHING_PROGRAM, k + 1,
           LAUNCHING_PROGRAM);
  /* 32 threads of a warp; in units of 32 KiB */
  l->per_tpc =
      (uint64_t)LAUNCHING_LOCAL * 32 * o.gpu.warps_per_sm * o.gpu.sms_per_tpc;
  assert_int_equal(l->per_tpc % 32768, 0);
  take(l, RIG_DEVICE, l->per_tpc * 2, &l->local);
}

void launching_open(struct launching *l, uint32_t sm_version,
                    const struct rig_nv_model_options *options) {
  launching_open_bare(l, sm_version, options);
  launching_bind(l);
  launching_local(l, l->local.address, l->per_tpc);
}

void launching_close(struct launching *l) {
  struct rig_nv_memory kept[] = {l->slots, l->code, l->local};
  const struct rig_nv_path *p = l->bench.path;
  struct rig_nv_reply r;
  for (size_t i = 0; i < 3; i++)
    assert_true(p->free(p->ctx, &kept[i], &r));
  bench_close(&l->bench);
}

void launching_bind(struct launching *l) {
  const uint32_t words[] = {0x20012000, l->bench.path->gpu.compute_class,
                            0x200220a8, 0xff,
                            0, /* 2^40 - 4 GiB */
                            0x200221ec, 0xfe,
                            0};
  bench_push(&l->bench, 0, words, sizeof words / 4);
}

void launching_local(struct launching *l, uint64_t at, uint64_t per_tpc) {
  const uint32_t words[] = {
      0x200221e4, (uint32_t)(at >> 32),      (uint32_t)at,
      0x200320b9, (uint32_t)(per_tpc >> 32), (uint32_t)per_tpc,
      0xff};
  bench_push(&l->bench, 0, words, sizeof words / 4);
}

uint64_t launching_at(const struct launching *l, int slot) {
  return l->slots.address + (uint64_t)slot * LAUNCHING_SLOT;
}

uint64_t launching_code(const struct launching *l, int program) {
  return l->code.address + (uint64_t)program * LAUNCHING_PROGRAM;
}

uint8_t *launching_bank(const struct launching *l, int slot) {
  return (uint8_t *)words_of(l, slot) + LAUNCHING_BANK;
}

static void write_bank(struct launching *l, int slot, const void *params,
                       size_t n) {
  const uint32_t one[3] = {1, 1, 1}, block[3] = {32, 1, 1};
  uint8_t *bank = launching_bank(l, slot);
  assert_true(l->params + n <= LAUNCHING_BANK_BYTES);
  memset(bank, 0, LAUNCHING_BANK_BYTES);
  memcpy(bank + l->block, block, sizeof block);
  memcpy(bank + l->grid, one, sizeof one);
  if (n)
    memcpy(bank + l->params, params, n);
}

void launching_write(struct launching *l, int slot, int program,
                     const void *params, size_t n) {
  const uint64_t code = launching_code(l, program);
  const struct {
    const char *field;
    uint64_t value;
  } t[] = {
      {"QMD_MAJOR_VERSION", (uint64_t)(l->version[2] - '0')},
      {"QMD_GROUP_ID", 0x3f},
      {"INVALIDATE_TEXTURE_HEADER_CACHE", 1},
      {"INVALIDATE_TEXTURE_SAMPLER_CACHE", 1},
      {"INVALIDATE_TEXTURE_DATA_CACHE", 1},
      {"INVALIDATE_SHADER_DATA_CACHE", 1},
      {"CWD_MEMBAR_TYPE", 1},
      {"API_VISIBLE_CALL_LIMIT", 1},
      {"SAMPLER_INDEX", 1},
      {"SASS_VERSION", (l->sm_version >> 4 & 0xf0) | (l->sm_version & 0xf)},
      {"GRID_WIDTH|CTA_RASTER_WIDTH", 1},
      {"GRID_HEIGHT|CTA_RASTER_HEIGHT", 1},
      {"GRID_DEPTH|CTA_RASTER_DEPTH", 1},
      {"CTA_THREAD_DIMENSION0", 32},
      {"CTA_THREAD_DIMENSION1", 1},
      {"CTA_THREAD_DIMENSION2", 1},
      {"REGISTER_COUNT|REGISTER_COUNT_V", 16},
      {"BARRIER_COUNT", 1},
      {"SHARED_MEMORY_SIZE", 1024},
      {"MIN_SM_CONFIG_SHARED_MEM_SIZE", 9},
      {"TARGET_SM_CONFIG_SHARED_MEM_SIZE", 9},
      {"MAX_SM_CONFIG_SHARED_MEM_SIZE", 26},
      {"SHADER_LOCAL_MEMORY_HIGH_SIZE", LAUNCHING_LOCAL},
      {"PROGRAM_PREFETCH_SIZE", LAUNCHING_PROGRAM / 256},
      {"CONSTANT_BUFFER_VALID[0]", 1},
      {"CONSTANT_BUFFER_INVALIDATE[0]", 1},
      {"CONSTANT_BUFFER_SIZE_SHIFTED4[0]", LAUNCHING_BANK_BYTES / 16},
  };
  memset(words_of(l, slot), 0, LAUNCHING_BANK);
  for (size_t i = 0; i < sizeof t / sizeof *t; i++)
    launching_put(l, slot, t[i].field, t[i].value);
  if (launching_has(l, "QMD_TYPE"))
    launching_put(l, slot, "QMD_TYPE", 2);
  launching_address(l, slot, "PROGRAM_ADDRESS", code);
  launching_put(l, slot, "PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED",
                code >> 8 & UINT32_MAX);
  launching_put(l, slot, "PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED", code >> 40);
  launching_address(l, slot, "CONSTANT_BUFFER_ADDR[0]",
                    launching_at(l, slot) + LAUNCHING_BANK);
  write_bank(l, slot, params, n);
}

void launching_release(struct launching *l, int slot, unsigned size,
                       uint64_t at, uint64_t payload, bool membar) {
  launching_put(l, slot, "RELEASE_ENABLE[0]|RELEASE0_ENABLE", 1);
  launching_put(l, slot, "RELEASE_STRUCTURE_SIZE[0]|RELEASE0_STRUCTURE_SIZE",
                size);
  launching_put(l, slot, "RELEASE_PAYLOAD64B[0]|RELEASE0_PAYLOAD64B",
                size != 1);
  launching_put(l, slot, "RELEASE_MEMBAR_TYPE[0]|RELEASE0_MEMBAR_TYPE", membar);
  launching_address(l, slot, "RELEASE_SEMAPHORE0_ADDR|RELEASE0_ADDRESS", at);
  launching_address(l, slot, "RELEASE_SEMAPHORE0_PAYLOAD|RELEASE0_PAYLOAD",
                    payload);
}

void launching_chain(struct launching *l, int slot, int next, bool prefetch) {
  launching_put(l, slot, "DEPENDENT_QMD_ENABLE[0]|DEPENDENT_QMD0_ENABLE", 1);
  launching_put(l, slot, "DEPENDENT_QMD_ACTION[0]|DEPENDENT_QMD0_ACTION", 1);
  launching_put(l, slot, "DEPENDENT_QMD_PREFETCH[0]|DEPENDENT_QMD0_PREFETCH",
                prefetch);
  launching_put(l, slot, "DEPENDENT_QMD0_POINTER", launching_at(l, next) >> 8);
}

void launching_push(struct launching *l, int slot) {
  const uint32_t words[] = {0x200120ad, (uint32_t)(launching_at(l, slot) >> 8),
                            0x200120b0, 9};
  bench_push(&l->bench, 0, words, sizeof words / 4);
}

void launching_word(struct launching *l, int i, uint64_t x, bool waits) {
  const uint64_t at = bench_word_at(&l->bench, i);
  const uint32_t words[] = {
      0x20050017,  (uint32_t)at,        (uint32_t)(at >> 32),
      (uint32_t)x, (uint32_t)(x >> 32), waits ? 0x01100001 : 0x01000001};
  bench_push(&l->bench, 0, words, sizeof words / 4);
}

void launching_idle(struct launching *l) {
  const uint32_t words[] = {0x20012044, 0};
  bench_push(&l->bench, 0, words, sizeof words / 4);
}

static void nothing(const struct rig_nv_model_launch *l, void *ctx) {
  (void)l, (void)ctx;
}

void launching_bind_all(struct launching *l, rig_nv_model_kernel *fn,
                        void *ctx) {
  for (int i = 0; i < LAUNCHING_PROGRAMS; i++)
    assert_int_equal(rig_nv_model_bind(l->bench.path, launching_code(l, i),
                                       l->params, fn ? fn : nothing, ctx),
                     0);
}

void launching_open_at(struct launching *l, uint32_t sm_version,
                       uint64_t seed) {
  struct rig_nv_model_options o;
  rig_nv_model_options_init(&o);
  o.seed = seed;
  o.personality = seed % 2 ? RIG_NV_LIKE_KERNEL : RIG_NV_LIKE_PCI;
  launching_open(l, sm_version, &o);
  launching_bind_all(l, NULL, NULL);
}

void launching_go(struct launching *l) {
  launching_push(l, 0);
  launching_word(l, 0, 1, true);
  bench_ring(&l->bench, 0);
}

void launching_report(struct launching *l, char *text, size_t n) {
  struct rig_nv_reply r;
  (void)!l->bench.path->check(l->bench.path->ctx, &r);
  snprintf(text, n, "%s", r.text);
}

void launching_stopped(struct launching *l, const char *name, uint32_t error,
                       const char *a, const char *b) {
  char text[1024];
  const uint32_t got = bench_wait_error(&l->bench, 0);
  launching_report(l, text, sizeof text);
  if (got != error || !strstr(text, a) || !strstr(text, b))
    fail_msg("%s (0x%x): error %u, \"%s\" and not \"%s\" \"%s\"", name,
             (unsigned)l->sm_version, (unsigned)got, text, a, b);
  assert_int_equal(bench_wait_error(&l->bench, 1), error);
  assert_int_equal(bench_load(bench_word(&l->bench, 0)), 0);
}

static uint64_t field(const uint8_t *p, struct abi_rm_field f) {
  uint64_t x;
  assert_int_equal(rig_nv_params_get(p, 8192, f.at, f.n, &x), 0);
  return x;
}

void launching_recorded(struct launching *l, uint64_t at, uint64_t access) {
  static uint8_t p[8192];
  const struct bench *b = &l->bench;
  struct rig_nv_reply r;
  memset(p, 0, sizeof p);
  assert_true(b->path->rm.mmu_faults(b->path->ctx, b->debugger, p,
                                     b->layout->mmu_faults.bytes, &r));
  assert_int_equal(field(p, b->layout->mmu_faults.count), 1);
  assert_int_equal(field(p, b->layout->mmu_faults.address), at);
  assert_int_equal(field(p, b->layout->mmu_faults.access), access);
}

void launching_outcome(struct launching *l, char *text, size_t n) {
  size_t out = 0;
  uint32_t error = 0;
  char all[1024];
  for (int ms = 0; ms < 5000; ms++) {
    if (bench_load(bench_word(&l->bench, 0)) || bench_status(&l->bench, 0))
      break;
    bench_sleep_ms(1);
  }
  if (bench_status(&l->bench, 0))
    error = bench_wait_error(&l->bench, 0);
  launching_report(l, all, sizeof all);
  out = (size_t)snprintf(text, n, "%u ", (unsigned)error);
  for (const char *p = all; *p && out + 1 < n; p++) {
    if (!strncmp(p, "0x", 2))
      p += 1 + strspn(p + 2, "0123456789abcdef");
    else
      text[out++] = *p;
  }
  text[out] = '\0';
}
