/* SPDX-License-Identifier: ISC */
/* Images: which are taken, where they are laid, and how they end. */
#include "core/image_bed.h"

#include "core/cubin/oracle.h"

/* ---- load ---- */

static void test_archs(void **state) {
  (void)state;
  static const struct {
    const char *file;
    uint32_t sm_version;
    const char *refused; /* or NULL */
  } t[] = {
      {"add_sm86", 0x806, NULL},
      {"add_sm86", 0x809, NULL},
      {"add_sm89", 0x809, NULL},
      {"add_sm90", 0x900, NULL},
      {"add_sm100", 0xa00, NULL},
      {"add_sm120", 0xa04, NULL},
      {"add_sm89", 0x806, "image: a cubin of sm_89 does not run on sm_86"},
      /* The desktop's on Tegra. */
      {"add_sm86", 0x807, "image: a cubin of sm_86 does not run on sm_87"},
      {"add_sm86", 0x900, "image: a cubin of sm_86 does not run on sm_90"},
      {"add_sm90", 0x809, "image: a cubin of sm_90 does not run on sm_89"},
      {"add_sm90", 0xa00, "image: a cubin of sm_90 does not run on sm_100"},
      {"add_sm100", 0xa04, "image: a cubin of sm_100 does not run on sm_120"},
      {"add_sm120", 0xa00, "image: a cubin of sm_120 does not run on sm_100"},
      /* Devices whose launches are not known. */
      {"add_sm86", 0x800, "no launch descriptor is known to run on sm_80"},
      {"add_sm86", 0x705,
       "no launch limits are known for sm_75 (SM version "
       "0x705)"},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    struct bed b;
    struct rig_nv_image *image = NULL;
    uint64_t n = 7;
    begin_on(&b, t[i].sm_version);
    unsigned live = b.live;
    struct file f = file_read(t[i].file);
    int e = rig_nv_image_load(b.d, f.bytes, f.n, &n, &image);
    free(f.bytes);
    if (t[i].refused) {
      EXPECT(e, RIG_NV_INVALID, t[i].refused);
      assert_null(image);
      assert_int_equal(n, 7);
      assert_int_equal(b.live, live);
    } else {
      if (e != 0)
        fail_msg("%s: %s", t[i].file, rig_nv_why());
      assert_int_equal(n, 0x2000);
      DONE(rig_nv_unload(b.d, image));
    }
    finish(&b);
  }
}

static void test_refused_loads(void **state) {
  (void)state;
  struct bed b;
  struct rig_nv_image *image = NULL;
  uint64_t n;
  begin_on(&b, 0x806);
  unsigned live = b.live;
  struct file f = file_read("print_sm86");
  EXPECT(rig_nv_image_load(b.d, f.bytes, 0, &n, &image), RIG_NV_INVALID,
         "image: no bytes");
  EXPECT(rig_nv_image_load(b.d, NULL, f.n, &n, &image), RIG_NV_INVALID,
         "image: no bytes");
  assert_int_equal(rig_nv_image_load(b.d, f.bytes, 63, &n, &image),
                   -RIG_NV_INVALID);
  /* Although `quiet` never calls it. */
  assert_int_equal(rig_nv_image_load(b.d, f.bytes, f.n, &n, &image),
                   -RIG_NV_INVALID);
  assert_non_null(strstr(rig_nv_why(), "vprintf"));
  free(f.bytes);
  assert_null(image);
  assert_int_equal(b.live, live);
  finish(&b);
}

/* ---- lay ---- */

static uint32_t code_seq(const struct bed *b) {
  return b->d->rings.setup ? b->d->rings.setup->code_seq : 0;
}

/* The 8-byte relocations of the oracle, for this base. */
static void check_relocated(const char *file, const struct laid *l) {
  unsigned n = 0;
  for (size_t i = 0; i < COUNT(oracle_patches); i++) {
    const struct oracle_patch *p = &oracle_patches[i];
    uint64_t value = 0;
    if (strcmp(p->file, file) != 0 || p->bytes != sizeof value)
      continue;
    memcpy(&value, l->code + p->in_image, sizeof value);
    assert_int_equal(value, p->value - ORACLE_BASE + l->base);
    n++;
  }
  assert_true(n > 0);
}

static void test_lay(void **state) {
  (void)state;
  struct bed b;
  struct rig_nv_function e;
  uint64_t need;
  begin(&b);
  struct laid l = lay_file(&b, "table_sm90");
  assert_int_equal(code_seq(&b), 1);
  check_relocated("table_sm90", &l);
  /* Again elsewhere, while there is no entry. */
  struct rig_nv_region *second = bed_region(&b, l.place_bytes),
                       *small = bed_region(&b, l.place_bytes - 4);
  const uint64_t first = l.base;
  DONE(rig_nv_image_lay(l.image, second, l.code));
  l.base = rig_nv_locate(second).address;
  assert_true(l.base != first);
  check_relocated("table_sm90", &l);
  assert_int_equal(code_seq(&b), 2);
  EXPECT(rig_nv_image_lay(l.image, small, l.code), RIG_NV_INVALID,
         "image: a region of 8188 bytes is below the 8192 it takes");
  EXPECT(rig_nv_image_lay(l.image, NULL, l.code), RIG_NV_INVALID,
         "image: not a region of its device");
  assert_int_equal(code_seq(&b), 2);
  e = entry_of(&l, "choose");
  assert_int_equal(e.code, l.base + 0x980);
  /* Local memory's record came in between, and keeps the code's. */
  assert_int_equal(code_seq(&b), 2);
  assert_int_equal(b.d->rings.setup->seq, 3);
  EXPECT(rig_nv_image_lay(l.image, second, l.code), RIG_NV_INVALID,
         "image: laid before, and entry choose has addresses");
  assert_int_equal(rig_nv_entry(l.image, "shared", &e, &need), 0);
  assert_int_equal(e.code, l.base + 0x580);
  DONE(rig_nv_free(b.d, second));
  DONE(rig_nv_free(b.d, small));
  unlay(&b, &l);
  finish(&b);
}

static void test_not_laid(void **state) {
  (void)state;
  struct bed b, other;
  struct rig_nv_function e;
  struct rig_nv_image *image;
  uint64_t n, need;
  begin(&b);
  begin(&other);
  struct file f = file_read("add_sm90");
  DONE(rig_nv_image_load(b.d, f.bytes, f.n, &n, &image));
  free(f.bytes);
  assert_int_equal(n, 0x2000);
  EXPECT(rig_nv_entry(image, "add", &e, &need), RIG_NV_INVALID,
         "entry: the image was not laid");
  EXPECT(rig_nv_entry(image, "sub", &e, &need), RIG_NV_ABSENT,
         "entry: the image has no function sub");
  unsigned live = b.live;
  rig_nv_prepare(image, "add");
  assert_int_equal(b.live, live);
  struct rig_nv_region *theirs = bed_region(&other, n);
  EXPECT(rig_nv_image_lay(image, theirs, f.bytes), RIG_NV_INVALID,
         "image: not a region of its device");
  assert_null(b.d->rings.setup);
  EXPECT(rig_nv_unload(other.d, image), RIG_NV_INVALID,
         "unload: not an image of this device");
  EXPECT(rig_nv_unload(b.d, NULL), RIG_NV_INVALID,
         "unload: not an image of this device");
  DONE(rig_nv_unload(b.d, image));
  DONE(rig_nv_free(other.d, theirs));
  finish(&other);
  finish(&b);
}

/* ---- the end ---- */

static void test_stopped(void **state) {
  (void)state;
  struct bed b;
  struct rig_nv_function e;
  struct rig_nv_image *image;
  uint64_t need, n;
  begin(&b);
  struct laid l = lay_file(&b, "add_sm90");
  struct file f = file_read("add_sm90");
  entry_of(&l, "add");
  unsigned live = b.live;
  DONE(rig_nv_stop(b.d, NULL));
  EXPECT(rig_nv_image_load(b.d, f.bytes, f.n, &n, &image), RIG_NV_REFUSED,
         "the device is stopped");
  free(f.bytes);
  EXPECT(rig_nv_image_lay(l.image, l.region, l.code), RIG_NV_REFUSED,
         "the device is stopped");
  EXPECT(rig_nv_entry(l.image, "add", &e, &need), RIG_NV_REFUSED,
         "the device is stopped");
  rig_nv_prepare(l.image, "add");
  assert_int_equal(b.live, live - 1); /* the marks */
  EXPECT(rig_nv_release(b.d), RIG_NV_INVALID,
         "release: 1 images are not unloaded");
  unlay(&b, &l);
  bed_release_all(&b);
}

struct locked {
  struct bed *b;
  struct laid *l;
  struct file *f;
  int which;
};

static int locked_call(void *arg) {
  struct locked *k = arg;
  struct rig_nv_image *image;
  struct rig_nv_function e;
  uint64_t n;
  switch (k->which) {
  case 0:
    return rig_nv_image_load(k->b->d, k->f->bytes, k->f->n, &n, &image);
  case 1:
    return rig_nv_image_lay(k->l->image, k->l->region, k->l->code);
  case 2:
    return rig_nv_entry(k->l->image, "add", &e, &n);
  case 3:
    return rig_nv_unload(k->b->d, k->l->image);
  case 4:
    rig_nv_prepare(k->l->image, "add");
    return -RIG_NV_INVALID;
  default:
    return 1;
  }
}

static void test_lock_held(void **state) {
  (void)state;
  struct bed b;
  struct rig_nv_lock lock;
  begin(&b);
  struct laid l = lay_file(&b, "add_sm90");
  struct file f = file_read("add_sm90");
  struct locked k = {&b, &l, &f, 0};
  DONE(rig_nv_lock_init(&lock, &rig_nv_lock_path));
  unsigned calls = b.calls;
  for (; k.which < 5; k.which++)
    assert_int_equal(rig_nv_lock_protect(&lock, locked_call, &k),
                     -RIG_NV_INVALID);
  assert_int_equal(b.calls, calls);
  rig_nv_lock_fini(&lock);
  free(f.bytes);
  unlay(&b, &l);
  finish(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_archs),   cmocka_unit_test(test_refused_loads),
      cmocka_unit_test(test_lay),     cmocka_unit_test(test_not_laid),
      cmocka_unit_test(test_stopped), cmocka_unit_test(test_lock_held),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
