/* SPDX-License-Identifier: ISC */
/* Each fixture against what readelf shows of it. */
#include "core/cubin/fixture.h"
#include "core/cubin/oracle.h"

#define COUNT(table) (sizeof table / sizeof table[0])

static struct fixture file;
static struct cubin cubin;

static void parse(const char *name) {
  fixture_read(&file, name);
  if (cubin_parse(file.bytes, file.n, &cubin) != 0) {
    fail_msg("%s: %s", name, rig_nv_why());
  }
}

static void test_images(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(oracle_images); i++) {
    const struct oracle_image *o = &oracle_images[i];
    parse(o->file);
    if (cubin.sm != o->sm || cubin.image_bytes != o->image_bytes ||
        cubin.align != 128) {
      fail_msg("%s: sm_%u, %llu bytes, aligned to %llu", o->file, cubin.sm,
               (unsigned long long)cubin.image_bytes,
               (unsigned long long)cubin.align);
    }
  }
}

/* The image is the sections' bytes, then the patches, and zeros elsewhere. */
static void expected_image(const char *name, unsigned char *out) {
  memset(out, 0, FIXTURE_MOST);
  for (size_t i = 0; i < COUNT(oracle_sections); i++) {
    const struct oracle_section *o = &oracle_sections[i];
    if (strcmp(o->file, name) == 0 && o->in_file != ZEROS) {
      memcpy(out + o->in_image, file.bytes + o->in_file, o->bytes);
    }
  }
  for (size_t i = 0; i < COUNT(oracle_patches); i++) {
    const struct oracle_patch *o = &oracle_patches[i];
    if (strcmp(o->file, name) == 0) {
      memcpy(out + o->in_image, &o->value, o->bytes);
    }
  }
}

static void test_bytes(void **state) {
  (void)state;
  static unsigned char image[FIXTURE_MOST], expected[FIXTURE_MOST];
  for (size_t i = 0; i < COUNT(oracle_images); i++) {
    const char *name = oracle_images[i].file;
    parse(name);
    memset(image, 0xa5, sizeof image);
    assert_int_equal(cubin_lay(&cubin, ORACLE_BASE, image), 0);
    expected_image(name, expected);
    for (size_t at = 0; at < cubin.image_bytes; at++) {
      if (image[at] != expected[at]) {
        fail_msg("%s: 0x%x at 0x%zx", name, image[at], at);
      }
    }
    assert_int_equal(image[cubin.image_bytes], 0xa5);
  }
}

static int same_part(struct cubin_part is, struct oracle_part o) {
  return is.bytes == o.bytes && is.offset == o.offset;
}

static void test_kernels(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(oracle_kernels); i++) {
    const struct oracle_kernel *o = &oracle_kernels[i];
    struct cubin_kernel k;
    parse(o->file);
    if (cubin_kernel(&cubin, o->name, &k) != 0) {
      fail_msg("%s: %s", o->file, rig_nv_why());
    }
    assert_string_equal(k.name, o->name);
    if (!same_part(k.code, o->code) || k.registers != o->registers ||
        k.stack_bytes != o->stack_bytes || k.shared_bytes != o->shared_bytes ||
        k.params_offset != o->params_offset ||
        k.params_bytes != o->params_bytes) {
      fail_msg("%s %s: code 0x%llx %llu, %u registers, %u stack, %llu shared, "
               "parameters 0x%x %u",
               o->file, o->name, (unsigned long long)k.code.offset,
               (unsigned long long)k.code.bytes, k.registers, k.stack_bytes,
               (unsigned long long)k.shared_bytes, k.params_offset,
               k.params_bytes);
    }
    for (int bank = 0; bank < CUBIN_BANKS; bank++) {
      const struct oracle_part part = bank == 0   ? o->bank_0
                                      : bank == 3 ? o->bank_3
                                                  : (struct oracle_part){0, 0};
      if (!same_part(k.banks[bank], part)) {
        fail_msg("%s %s: bank %d: 0x%llx %llu", o->file, o->name, bank,
                 (unsigned long long)k.banks[bank].offset,
                 (unsigned long long)k.banks[bank].bytes);
      }
    }
  }
}

/* cubin_next gives the rows of a file in their order, and no more. */
static void test_next(void **state) {
  (void)state;
  size_t row = 0;
  for (size_t i = 0; i < COUNT(oracle_images); i++) {
    struct cubin_kernel k;
    uint32_t at = 0;
    parse(oracle_images[i].file);
    while (cubin_next(&cubin, &at, &k) == 1) {
      assert_true(row < COUNT(oracle_kernels));
      assert_string_equal(oracle_kernels[row].file, oracle_images[i].file);
      assert_string_equal(oracle_kernels[row].name, k.name);
      row++;
    }
  }
  assert_int_equal(row, COUNT(oracle_kernels));
}

static const struct {
  const char *name, *why;
} absent[] = {
    {"", "cubin: no kernel "},
    {"choos", "cubin: no kernel choos"},
    {"choose ", "cubin: no kernel choose "},
    {".text.choose", "cubin: no kernel .text.choose"},
};

static void test_absent(void **state) {
  (void)state;
  parse("table_sm86");
  for (size_t i = 0; i < COUNT(absent); i++) {
    struct cubin_kernel k = {.registers = 77};
    assert_int_equal(cubin_kernel(&cubin, absent[i].name, &k), -RIG_NV_INVALID);
    assert_string_equal(rig_nv_why(), absent[i].why);
    assert_int_equal(k.registers, 77);
  }
}

static const struct {
  uint64_t base;
  const char *why; /* NULL: laid */
} bases[] = {
    {0, NULL},
    {128, NULL},
    {64, "cubin: address 0x40: not a multiple of 128"},
    {CUBIN_LIMIT - 0x2000, NULL},
    {CUBIN_LIMIT - 0x1f80,
     "cubin: address 0x1ffffffffe080: 0x2000 bytes pass the limit"},
    {CUBIN_LIMIT,
     "cubin: address 0x2000000000000: 0x2000 bytes pass the limit"},
    {UINT64_MAX - 127,
     "cubin: address 0xffffffffffffff80: 0x2000 bytes pass the limit"},
};

static void test_bases(void **state) {
  (void)state;
  static unsigned char image[FIXTURE_MOST];
  parse("table_sm86");
  for (size_t i = 0; i < COUNT(bases); i++) {
    image[0] = 0xa5;
    const int r = cubin_lay(&cubin, bases[i].base, image);
    if (bases[i].why == NULL) {
      assert_int_equal(r, 0);
    } else {
      assert_int_equal(r, -RIG_NV_INVALID);
      assert_string_equal(rig_nv_why(), bases[i].why);
      assert_int_equal(image[0], 0xa5);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_images),  cmocka_unit_test(test_bytes),
      cmocka_unit_test(test_kernels), cmocka_unit_test(test_next),
      cmocka_unit_test(test_absent),  cmocka_unit_test(test_bases),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
