/* SPDX-License-Identifier: ISC */
/* Entries: what each function of the fixtures must give, what its launches
 * meet, what is refused, and what a failure leaves. The fixtures' numbers are
 * readelf's and `nvcc -Xptxas -v`'s. */
#include "core/image_bed.h"

#include "core/abi/tsv.h"
#include "core/cubin/oracle.h"

enum { KIB = 1024 };

/* ---- entries ---- */

/* Constant banks by number, in the image. */
static const struct oracle_part none[8] = {{0, 0}};
static const struct oracle_part two[8] = {
    [3] = {0, 0x1000}, [4] = {0x1000, 0x10}};
static const struct oracle_part three[8] = {
    [2] = {0x1680, 8}, [3] = {0, 0x1000}, [4] = {0x1000, 0x10}};
static const struct oracle_part at_0[8] = {[3] = {0, 0x10}};
static const struct oracle_part at_300[8] = {[3] = {0x300, 0x10}};

/* Places of the image are its sections' sizes added up by hand. */
static const struct entry_row {
  const char *file;
  uint32_t sm_version;
  const char *name;
  uint32_t code, params, threads;
  /* Of struct launch. */
  uint32_t params_offset, bank_bytes, own_shared;
  /* Of the descriptor. */
  uint32_t registers, local;
  const struct oracle_part *banks;
} entry_rows[] = {
    {"launch_sm86", 0x806, "none", 0x4080, 0, 1024, 0x160, 0x160, 1024, 8, 576,
     two},
    {"launch_sm86", 0x806, "many", 0x3f00, 4009, 1024, 0x160, 0x1109, 1024, 8,
     576, three},
    {"launch_sm86", 0x806, "dynamic", 0x3d80, 8, 1024, 0x160, 0x168, 1024, 10,
     576, two},
    {"launch_sm86", 0x809, "both", 0x3b80, 8, 1024, 0x160, 0x168, 1280, 12, 576,
     two},
    {"launch_sm86", 0x809, "deep", 0x2a00, 12, 1024, 0x160, 0x16c, 1024, 40,
     66112, two},
    {"launch_sm90", 0x900, "none", 0x2780, 0, 1024, 0x210, 0x210, 1024, 8, 576,
     two},
    {"launch_sm90", 0x900, "many", 0x2600, 4009, 1024, 0x210, 0x11b9, 1024, 8,
     576, two},
    {"launch_sm90", 0x900, "dynamic", 0x2400, 8, 1024, 0x210, 0x218, 1024, 10,
     576, two},
    {"launch_sm90", 0x900, "both", 0x2180, 8, 1024, 0x210, 0x218, 1280, 12, 576,
     two},
    {"launch_sm90", 0x900, "deep", 0x1080, 12, 1024, 0x210, 0x21c, 1024, 32,
     66112, two},
    {"launch_sm120", 0xa04, "none", 0x2500, 0, 1024, 0x380, 0x380, 1024, 8, 576,
     two},
    {"launch_sm120", 0xa04, "both", 0x1f00, 8, 1024, 0x380, 0x388, 1280, 14,
     576, two},
    {"launch_sm120", 0xa04, "deep", 0x1080, 12, 1024, 0x380, 0x38c, 1024, 37,
     66112, two},
    /* Of a cubin without shared memory, from sm_90 on too. */
    {"add_sm89", 0x809, "add", 0x180, 28, 1024, 0x160, 0x17c, 1024, 12, 576,
     none},
    {"add_sm90", 0x900, "add", 0, 28, 1024, 0x210, 0x22c, 1024, 12, 576, none},
    {"add_sm100", 0xa00, "add", 0, 28, 1024, 0x380, 0x39c, 1024, 12, 576, none},
    {"stack_sm90", 0x900, "stack", 0, 20, 1024, 0x210, 0x224, 1024, 31, 832,
     none},
    {"table_sm86", 0x806, "shared", 0x380, 8, 1024, 0x160, 0x168, 2048, 24, 576,
     at_300},
    {"table_sm90", 0x900, "shared", 0x580, 8, 1024, 0x210, 0x218, 2048, 24, 576,
     at_0},
    {"table_sm90", 0x900, "choose", 0x980, 12, 1024, 0x210, 0x21c, 1024, 24,
     576, at_0},
    {"table_sm100", 0xa00, "choose", 0x480, 12, 1024, 0x380, 0x38c, 1024, 24,
     576, at_0},
};

/* The most shared memory of a block, own and dynamic. */
static uint32_t shared_most(uint32_t sm_version) {
  return (sm_version == 0x900 || sm_version == 0xa00 ? 228 : 100) * KIB;
}

static struct tsv fields;

/* The bits of the first of the names that the version has. */
static uint64_t field(const struct launch *l, const char *const names[3]) {
  static const char *const of[][2] = {
      [QMD_V3] = {"c7c0", "V03_00"},
      [QMD_V4] = {"cbc0", "V04_00"},
      [QMD_V5] = {"cdc0", "V05_00"},
  };
  const enum qmd_version v = l->descriptor.version;
  for (int i = 0; i < 3 && names[i]; i++) {
    const char *key[] = {of[v][0], of[v][1], names[i]};
    const char *const *row = tsv_find(&fields, key, 3);
    unsigned high, low;
    if (row == NULL || sscanf(row[3], "%u:%u", &high, &low) != 2)
      continue;
    uint64_t word = l->descriptor.words[low / 32];
    return word >> low % 32 & ((UINT64_C(1) << (high - low + 1)) - 1);
  }
  fail_msg("no field %s", names[0]);
  return 0;
}
#define FIELD(l, ...) field(l, (const char *const[3]){__VA_ARGS__})

static uint64_t bank_field(const struct launch *l, const char *format,
                           unsigned bank) {
  char name[64];
  snprintf(name, sizeof name, format, bank);
  return FIELD(l, name);
}

static void check_banks(const struct entry_row *r, const struct launch *l,
                        uint64_t base) {
  bool shifted = l->descriptor.version != QMD_V3;
  for (unsigned i = 1; i < 8; i++) {
    const struct oracle_part p = r->banks[i];
    if (bank_field(l, "CONSTANT_BUFFER_VALID[%u]", i) != (p.bytes != 0))
      fail_msg("%s %s: bank %u", r->file, r->name, i);
    if (p.bytes == 0)
      continue;
    uint64_t at = bank_field(l,
                             shifted ? "CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6[%u]"
                                     : "CONSTANT_BUFFER_ADDR_LOWER[%u]",
                             i) |
                  bank_field(l,
                             shifted ? "CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6[%u]"
                                     : "CONSTANT_BUFFER_ADDR_UPPER[%u]",
                             i)
                      << 32;
    uint64_t units = bank_field(l, "CONSTANT_BUFFER_SIZE_SHIFTED4[%u]", i);
    if (at << (shifted ? 6 : 0) != base + p.offset ||
        units != (p.bytes + 15) / 16)
      fail_msg("%s %s: bank %u at 0x%llx, %llu units", r->file, r->name, i,
               (unsigned long long)at, (unsigned long long)units);
  }
}

static void check_descriptor(const struct entry_row *r, const struct launch *l,
                             uint64_t base) {
  const unsigned v5 = l->descriptor.version == QMD_V5;
  uint64_t code =
      FIELD(l, "PROGRAM_ADDRESS_LOWER", "PROGRAM_ADDRESS_LOWER_SHIFTED4") |
      FIELD(l, "PROGRAM_ADDRESS_UPPER", "PROGRAM_ADDRESS_UPPER_SHIFTED4") << 32;
  uint64_t local = FIELD(l, "SHADER_LOCAL_MEMORY_HIGH_SIZE",
                         "SHADER_LOCAL_MEMORY_HIGH_SIZE_SHIFTED4");
  if (code << (v5 ? 4 : 0) != base + r->code ||
      local << (v5 ? 4 : 0) != r->local ||
      FIELD(l, "REGISTER_COUNT", "REGISTER_COUNT_V") != r->registers ||
      FIELD(l, "SASS_VERSION") !=
          (r->sm_version == 0xa04
               ? 0xa4
               : (r->sm_version >> 4 & 0xf0) + (r->sm_version & 0xf)))
    fail_msg("%s %s: descriptor of code 0x%llx, local %llu", r->file, r->name,
             (unsigned long long)code, (unsigned long long)local);
  assert_int_equal(l->descriptor.shared, r->own_shared);
  check_banks(r, l, base);
}

/* Rows of core/qmd's oracle; their text stays for the life of the program. */
static void read_fields(void) {
  static char text[1 << 16];
  FILE *in = fopen("core/qmd/testdata/qmd.tsv", "r");
  assert_non_null(in);
  size_t n = fread(text, 1, sizeof text - 1, in);
  assert_int_equal(fclose(in), 0);
  assert_in_range(n, 1, sizeof text - 2);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
    if (*line != '#')
      tsv_split(&fields, line);
}

static void test_entries(void **state) {
  (void)state;
  read_fields();
  for (size_t i = 0; i < COUNT(entry_rows); i++) {
    const struct entry_row *r = &entry_rows[i];
    struct bed b;
    begin_on(&b, r->sm_version);
    struct laid l = lay_file(&b, r->file);
    struct rig_nv_function e = entry_of(&l, r->name);
    const struct launch *got = e.launch;
    if (e.code != l.base + r->code || e.params != r->params ||
        e.threads != r->threads)
      fail_msg("%s %s: code 0x%llx, %u parameters, %u threads", r->file,
               r->name, (unsigned long long)(e.code - l.base), e.params,
               e.threads);
    if (got->threads != r->threads || got->params_bytes != r->params ||
        got->params_offset != r->params_offset ||
        got->bank_bytes != r->bank_bytes ||
        got->dynamic_most != shared_most(r->sm_version) - r->own_shared)
      fail_msg("%s %s: launch of %u, %u, %u, %u, %u", r->file, r->name,
               got->threads, got->params_bytes, got->params_offset,
               got->bank_bytes, got->dynamic_most);
    check_descriptor(r, got, l.base);
    assert_true(b.d->local.per_thread >= r->local);
    unlay(&b, &l);
    finish(&b);
  }
}

/* A second call gives the same, and allocates nothing. */
static void test_again(void **state) {
  (void)state;
  struct bed b;
  begin_on(&b, 0x806);
  struct laid l = lay_file(&b, "crowd_sm86");
  struct rig_nv_function e[128], again;
  char name[8];
  for (unsigned i = 0; i < 128; i++) {
    snprintf(name, sizeof name, "k%02x", i);
    e[i] = entry_of(&l, name);
  }
  /* 0x13f00 is k00's, by readelf; the others lie 0x100 apart before it. */
  for (unsigned i = 0; i < 128; i++)
    assert_int_equal(e[i].code, l.base + 0x13f00 - i * 0x100);
  unsigned calls = b.calls, path_calls = b.f.calls;
  for (unsigned i = 0; i < 128; i++) {
    snprintf(name, sizeof name, "k%02x", i);
    again = entry_of(&l, name);
    assert_memory_equal(&again, &e[i], sizeof again);
  }
  assert_int_equal(b.calls, calls);
  assert_int_equal(b.f.calls, path_calls);
  unlay(&b, &l);
  finish(&b);
}

/* ---- launches ---- */

/* What a launch must read of the GPU, and what its kernel met. */
struct met {
  unsigned times; /* its kernel ran */
  struct rig_nv_model_launch launch;
  unsigned char params[4096];
  unsigned char bank_3[4096], bank_4[16];
};

static void meet(const struct rig_nv_model_launch *x, void *ctx) {
  struct met *m = ctx;
  m->times++;
  m->launch = *x;
  SURE(x->params_bytes <= sizeof m->params);
  memcpy(m->params, x->params, x->params_bytes);
  SURE(x->bank[3].bytes == 4096 && x->bank[4].bytes == 16);
  memcpy(m->bank_3, x->bank[3].at, sizeof m->bank_3);
  memcpy(m->bank_4, x->bank[4].at, sizeof m->bank_4);
}

enum { PARAMS = sizeof(struct rig_block), ARGS = 8192 };

static void launch(struct bed *b, const struct rig_nv_function *e,
                   const struct rig_block *block, unsigned char *args) {
  const char *failure = NULL;
  memcpy(args, block, sizeof *block);
  struct rig_part p = rig_part_launch(e->code, e->launch, 0, e->params);
  struct rig_submission s = {
      .parts = &p, .nparts = 1, .args = args, .args_bytes = ARGS};
  uint64_t v = rings_last(&b->d->rings) + 1;
  assert_int_equal(rig_nv_room(b->d, &s), RIG_FITS);
  if (rig_nv_submit(b->d, v, &s, &failure) != RIG_COMMITTED)
    fail_msg("submit: %s", failure);
  DONE(rig_nv_wait(b->d, v, device_now() + UINT64_C(5000000000)));
}

/* From a file to a kernel that runs: constants and parameters are those that
 * were uploaded and given, and the rest what readelf says. */
static void test_launches(void **state) {
  (void)state;
  static const struct {
    const char *file;
    uint32_t sm_version;
    const char *name;
    uint32_t dynamic, shared, local, registers, barriers;
    uint64_t bank_3, bank_4, global; /* in the image; the last is in bank 4 */
  } t[] = {
      {"launch_sm86", 0x806, "none", 0, 1024, 576, 8, 1, 0, 0x1000, 0x4280},
      {"launch_sm86", 0x806, "many", 0, 1024, 576, 8, 1, 0, 0x1000, 0x4280},
      {"launch_sm86", 0x809, "both", 300, 1280 + 384, 576, 12, 1, 0, 0x1000,
       0x4280},
      {"launch_sm86", 0x809, "deep", 0, 1024, 66112, 40, 1, 0, 0x1000, 0x4280},
      {"launch_sm90", 0x900, "none", 0, 1024, 576, 8, 1, 0, 0x1000, 0x2900},
      {"launch_sm90", 0x900, "many", 0, 1024, 576, 8, 1, 0, 0x1000, 0x2900},
      {"launch_sm90", 0x900, "dynamic", 227 * KIB, 228 * KIB, 576, 10, 1, 0,
       0x1000, 0x2900},
      {"launch_sm90", 0x900, "deep", 0, 1024, 66112, 32, 1, 0, 0x1000, 0x2900},
      {"launch_sm120", 0xa04, "both", 1, 1280 + 128, 576, 14, 1, 0, 0x1000,
       0x2680},
      {"launch_sm86", 0x806, "named", 0, 1024, 576, 10, 6, 0, 0x1000, 0x4280},
      {"launch_sm90", 0x900, "named", 0, 1024, 576, 10, 6, 0, 0x1000, 0x2900},
      {"launch_sm120", 0xa04, "named", 0, 1024, 576, 10, 6, 0, 0x1000, 0x2680},
      {"launch_sm120", 0xa04, "many", 0, 1024, 576, 8, 1, 0, 0x1000, 0x2680},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    struct bed b;
    struct met m = {0};
    struct rig_block block = {
        .groups = {3, 2, 1}, .threads = {32, 2, 1}, .shared = t[i].dynamic};
    static _Alignas(16) unsigned char args[ARGS];
    for (unsigned k = 0; k < ARGS; k++)
      args[k] = (unsigned char)(k * 7 + i);
    begin_on(&b, t[i].sm_version);
    struct laid l = lay_file(&b, t[i].file);
    /* Constants of its own, as the file's are zeros. */
    for (unsigned k = 0; k < 4096; k++)
      l.code[t[i].bank_3 + k] = (unsigned char)(k * 3 + 1);
    DONE(rig_nv_upload(b.d, l.region, 0, l.code, l.place_bytes));
    struct rig_nv_function e = entry_of(&l, t[i].name);
    const struct launch *of = e.launch;
    DONE(rig_nv_model_bind(b.model, e.code, of->params_offset, meet, &m));
    launch(&b, &e, &block, args);
    launch(&b, &e, &block, args);
    const struct rig_nv_model_launch *x = &m.launch;
    if (m.times != 2 || x->code != e.code || x->shared != t[i].shared ||
        x->local != t[i].local || x->registers != t[i].registers ||
        x->barriers != t[i].barriers || x->params_bytes < e.params)
      fail_msg("%s %s: %u times, shared %u, local %u, registers %u, %u bytes "
               "of parameters",
               t[i].file, t[i].name, m.times, x->shared, x->local, x->registers,
               x->params_bytes);
    assert_memory_equal(x->grid, block.groups, sizeof block.groups);
    assert_memory_equal(x->group, block.threads, sizeof block.threads);
    assert_memory_equal(m.params, args + PARAMS, e.params);
    assert_memory_equal(m.bank_3, l.code + t[i].bank_3, sizeof m.bank_3);
    assert_memory_equal(m.bank_4, l.code + t[i].bank_4, sizeof m.bank_4);
    uint64_t at[2]; /* one of them is a global's address */
    memcpy(at, m.bank_4, sizeof at);
    assert_true(at[0] == l.base + t[i].global || at[1] == l.base + t[i].global);
    DONE(rig_nv_model_bind(b.model, e.code, 0, NULL, NULL));
    unlay(&b, &l);
    finish(&b);
  }
}

/* ---- functions that take more than a launch can ---- */

/* The value of the only record of the attribute, or that of a section. */
static void patch_attribute(struct file *f, unsigned attribute,
                            uint32_t value) {
  const unsigned char record[] = {4, (unsigned char)attribute, 8, 0};
  unsigned found = 0;
  for (size_t at = 0; at + 12 <= f->n; at++)
    if (memcmp(f->bytes + at, record, sizeof record) == 0) {
      memcpy(f->bytes + at + 8, &value, sizeof value);
      found++;
    }
  assert_int_equal(found, 1);
}

/* Gives the section bytes of its own after the file's. */
static void patch_section(struct file *f, const char *name, uint64_t bytes) {
  uint64_t headers, names, at = f->n;
  uint32_t type, index;
  uint16_t n, strings;
  memcpy(&headers, f->bytes + 0x28, 8);
  memcpy(&n, f->bytes + 0x3c, 2);
  memcpy(&strings, f->bytes + 0x3e, 2);
  memcpy(&names, f->bytes + headers + 64u * strings + 24, 8);
  for (uint16_t i = 0; i < n; i++) {
    unsigned char *header = f->bytes + headers + 64u * i;
    memcpy(&index, header, 4);
    memcpy(&type, header + 4, 4);
    if (strcmp((char *)f->bytes + names + index, name) != 0)
      continue;
    memcpy(header + 32, &bytes, 8);
    if (type == 8) /* SHT_NOBITS */
      return;
    memcpy(header + 24, &at, 8);
    memset(f->bytes + at, 0, bytes);
    f->n += bytes;
    return;
  }
  fail_msg("no section %s", name);
}

enum { CBANK = 0x0a, STACK = 0x12, REGISTERS = 0x2f, SECTION = 0x100 };

static void test_too_much(void **state) {
  (void)state;
  static const struct {
    const char *file, *name;
    int what; /* an attribute, or SECTION */
    const char *section;
    uint64_t value;
    uint32_t threads; /* 0: refused */
    const char *text;
  } t[] = {
      {"add_sm90", "add", REGISTERS, NULL, 64, 1024, NULL},
      {"add_sm90", "add", REGISTERS, NULL, 72, 896, NULL},
      {"add_sm90", "add", REGISTERS, NULL, 128, 512, NULL},
      {"add_sm90", "add", REGISTERS, NULL, 168, 384, NULL},
      {"add_sm90", "add", REGISTERS, NULL, 255, 256, NULL},
      {"add_sm90", "add", REGISTERS, NULL, 256, 0,
       "entry: add: 256 registers exceed 255"},
      {"add_sm90", "add", STACK, NULL, 0x1000000 - 576 - 16, 0,
       "entry: add: 16777216 bytes of local memory exceed 16777215"},
      {"add_sm90", "add", STACK, NULL, UINT32_MAX, 0,
       "entry: add: 4294967871 bytes of local memory a thread take 2^40 bytes "
       "or "
       "more"},
      /* Offset in the low half, bytes in the high one. */
      {"add_sm90", "add", CBANK, NULL, 0xfdf00210, 1024, NULL},
      {"add_sm90", "add", CBANK, NULL, 0xfdf10210, 0,
       "entry: add: a constant bank 0 of 65537 bytes exceeds 65536"},
      {"add_sm90", "add", CBANK, NULL, 0x001c0214, 0,
       "entry: add: parameters at 532 of constant bank 0 are not 8-byte "
       "aligned"},
      {"add_sm90", "add", CBANK, NULL, 0x001c0028, 0,
       "entry: add: parameters at 40 of constant bank 0 are not from 48 to "
       "1024"},
      {"add_sm90", "add", CBANK, NULL, 0x001c0408, 0,
       "entry: add: parameters at 1032 of constant bank 0 are not from 48 to "
       "1024"},
      {"add_sm90", "add", SECTION, ".nv.constant0.add", 65536, 1024, NULL},
      {"add_sm90", "add", SECTION, ".nv.constant0.add", 65537, 0,
       "entry: add: a constant bank 0 of 65537 bytes exceeds 65536"},
      {"table_sm90", "choose", SECTION, ".nv.constant3", 65536, 1024, NULL},
      {"table_sm90", "choose", SECTION, ".nv.constant3", 65537, 0,
       "entry: choose: a constant bank 3 of 65537 bytes exceeds 65536"},
      /* The section counts the reserved KiB from sm_90 on, and not before. */
      {"table_sm90", "shared", SECTION, ".nv.shared.shared", 228 * KIB, 1024,
       NULL},
      {"table_sm90", "shared", SECTION, ".nv.shared.shared", 228 * KIB + 1, 0,
       "entry: shared: 232449 bytes of shared memory exceed the 232448 of a "
       "block on sm_90"},
      {"table_sm86", "shared", SECTION, ".nv.shared.shared", 99 * KIB, 1024,
       NULL},
      {"table_sm86", "shared", SECTION, ".nv.shared.shared", 99 * KIB + 1, 0,
       "entry: shared: 101377 bytes of shared memory exceed the 101376 of a "
       "block on sm_86"},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    struct bed b;
    struct rig_nv_function e;
    uint64_t need;
    begin_on(&b, strstr(t[i].file, "sm86") ? 0x806 : 0x900);
    struct file f = file_read(t[i].file);
    if (t[i].what == SECTION)
      patch_section(&f, t[i].section, t[i].value);
    else
      patch_attribute(&f, (unsigned)t[i].what, (uint32_t)t[i].value);
    struct laid l = lay_bytes(&b, &f);
    free(f.bytes);
    unsigned live = b.live;
    if (t[i].threads == 0) {
      EXPECT(rig_nv_entry(l.image, t[i].name, &e, &need), RIG_NV_INVALID,
             t[i].text);
      assert_int_equal(b.live, live);
      assert_int_equal(b.d->local.per_thread, 0); /* it made nothing */
    } else {
      e = entry_of(&l, t[i].name);
      if (e.threads != t[i].threads)
        fail_msg("row %zu: %u threads", i, e.threads);
    }
    unlay(&b, &l);
    finish(&b);
  }
}

/* ---- failures ---- */

static void test_answers(void **state) {
  (void)state;
  static const struct {
    enum rig_nv_answer answer;
    int error;
    const char *text;
  } t[] = {
      {RIG_NV_LACKING, RIG_NV_SHORT,
       "local memory of 262144 bytes: Device memory: path_alloc failed on "
       "purpose"},
      {RIG_NV_DENIED, RIG_NV_REFUSED,
       "Device memory: path_alloc failed on purpose"},
      {RIG_NV_FAULTED, RIG_NV_FAULT,
       "Device memory: path_alloc failed on purpose"},
  };
  for (size_t i = 0; i < COUNT(t); i++)
    for (int prepared = 0; prepared <= 1; prepared++) {
      struct bed b;
      struct rig_nv_function e;
      uint64_t need = 5;
      begin(&b);
      struct laid l = lay_file(&b, "add_sm90");
      unsigned live = b.live;
      b.f.answer = t[i].answer;
      b.f.fail_at = b.f.calls + 1;
      if (prepared) { /* it reports nothing, and the entry makes it itself */
        (void)why(RIG_NV_INVALID, "before");
        rig_nv_prepare(l.image, "add");
        assert_string_equal(rig_nv_why(), "before");
      } else {
        EXPECT(rig_nv_entry(l.image, "add", &e, &need), t[i].error, t[i].text);
        assert_int_equal(need, t[i].error == RIG_NV_SHORT ? 262144 : 5);
        assert_int_equal(b.live, live);
      }
      if (!prepared && t[i].error == RIG_NV_FAULT) {
        EXPECT(rig_nv_entry(l.image, "add", &e, &need), RIG_NV_LOST, t[i].text);
      } else {
        e = entry_of(&l, "add");
        assert_int_equal(e.code, l.base);
        assert_int_equal(b.live, live + 1);
      }
      unlay(&b, &l);
      finish(&b);
    }
}

/* Each host allocation of load, lay, prepare and entry fails in turn. */
static void test_host_memory(void **state) {
  (void)state;
  struct file f = file_read("add_sm90");
  for (int prepared = 0; prepared <= 1; prepared++) {
    unsigned failed = 0;
    bool whole = false;
    for (unsigned n = 1; !whole; n++) {
      struct bed b;
      struct laid l = {0};
      struct rig_nv_function e;
      uint64_t need;
      begin(&b);
      l.region = bed_region(&b, 0x2000);
      l.code = malloc(0x2000);
      assert_non_null(l.code);
      DONE(rig_nv_local(b.d, 32, NULL)); /* something that entry replaces */
      unsigned live = b.live;
      b.fail_at = b.calls + n;
      int a = rig_nv_image_load(b.d, f.bytes, f.n, &l.place_bytes, &l.image);
      if (a == 0) {
        live += 2;
        DONE(rig_nv_image_lay(l.image, l.region, l.code));
        if (prepared) { /* its failure shows nowhere */
          rig_nv_prepare(l.image, "add");
          DONE(rig_nv_entry(l.image, "add", &e, &need));
        } else {
          a = rig_nv_entry(l.image, "add", &e, &need);
        }
      }
      whole = b.calls < b.fail_at;
      failed += a != 0;
      if (a != 0) {
        assert_int_equal(a, -RIG_NV_HOST_MEMORY);
        assert_non_null(strstr(rig_nv_why(), "the host allocator has no"));
        assert_int_equal(b.live, live);
        b.fail_at = 0;
      }
      if (l.image)
        DONE(rig_nv_unload(b.d, l.image));
      DONE(rig_nv_free(b.d, l.region));
      free(l.code);
      finish(&b);
    }
    /* The image, its bytes; the function, what local memory retires. */
    assert_int_equal(failed, prepared ? 2 : 4);
  }
  free(f.bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_entries),  cmocka_unit_test(test_again),
      cmocka_unit_test(test_launches), cmocka_unit_test(test_too_much),
      cmocka_unit_test(test_answers),  cmocka_unit_test(test_host_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
