/* SPDX-License-Identifier: ISC */
/* A device on the model behind page tables: what it reaches, the faults that
 * its walks find, and bugs of flushes and entries that are found by its work.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/device.h"
#include "paths/pci/model_path.h"

enum { BYTES = 40000, ROUNDS = 4, TRIES = 20, TEXT = 400 };
#define SECOND UINT64_C(1000000000)
#define MIB (UINT64_C(1) << 20)

struct bed {
  const struct rig_nv_path *path;
  struct rig_nv *d;
  unsigned char sent[BYTES], found[BYTES];
  char text[TEXT]; /* what its work found to be wrong */
};

static bool wrong(struct bed *b, const char *what) {
  snprintf(b->text, sizeof b->text, "%s", what);
  return false;
}

/* A call that failed, or did so for another reason. */
static bool refused(struct bed *b, const char *call) {
  snprintf(b->text, sizeof b->text, "%s: %s", call, rig_nv_why());
  return false;
}

static void begin(struct bed *b, int is, uint64_t seed) {
  struct rig_nv_model_options o;
  rig_nv_model_options_init(&o);
  o.seed = seed;
  *b = (struct bed){0};
  if (model_path_open((enum model_path)is, &o, &b->path) != 0 ||
      rig_nv_make(b->path, NULL, &b->d) != 0)
    fail_msg("%s: %s", model_path_name((enum model_path)is), rig_nv_why());
}

static void end(struct bed *b) {
  if (rig_nv_stop(b->d, NULL) != 0 || rig_nv_release(b->d) != 0 ||
      rig_nv_path_close(b->path) != 0)
    fail_msg("end: %s", rig_nv_why());
}

/* The value of a copy that the caller waits for: 0, or an error. */
static int copy(struct bed *b, uint64_t dst, uint64_t src, uint64_t n) {
  struct rig_part p = rig_part_copy(dst, src, n);
  const struct rig_submission s = {.parts = &p, .nparts = 1};
  const char *failure;
  const uint64_t v = rings_last(&b->d->rings) + 1;
  if (rig_nv_room(b->d, &s) != RIG_FITS ||
      rig_nv_submit(b->d, v, &s, &failure) != RIG_COMMITTED)
    return -RIG_NV_REFUSED;
  return rig_nv_wait(b->d, v, device_now() + 10 * SECOND);
}

static uint64_t at(const struct rig_nv_region *r) {
  return rig_nv_locate(r).address;
}

/* Bytes to a region, to another in Device memory, and back. */
static bool moves(struct bed *b, enum rig_memory kind, uint64_t *freed) {
  struct rig_nv_region *r, *other;
  bool ok = true;
  for (int i = 0; i < BYTES; i++)
    b->sent[i] = (unsigned char)rand();
  if (rig_nv_alloc(b->d, kind, BYTES, &r) != 0)
    return refused(b, "alloc");
  if (rig_nv_alloc(b->d, RIG_DEVICE, BYTES, &other) != 0)
    fail_msg("alloc: %s", rig_nv_why());
  memset(b->found, 0, BYTES);
  if (rig_nv_upload(b->d, r, 0, b->sent, BYTES) != 0)
    ok = refused(b, "upload");
  else if (copy(b, at(other) + 3, at(r) + 1, BYTES - 3) != 0)
    ok = refused(b, "copy");
  else if (rig_nv_download(b->d, other, 3, b->found, BYTES - 3) != 0)
    ok = refused(b, "download");
  else if (memcmp(b->sent + 1, b->found, BYTES - 3) != 0)
    ok = wrong(b, "other bytes");
  *freed = at(r);
  if (rig_nv_free(b->d, other) != 0 || rig_nv_free(b->d, r) != 0)
    fail_msg("free: %s", rig_nv_why());
  return ok;
}

/* Work in new memory of each kind, and that freed memory faults where it was:
 * true, or what is wrong in b->text. The device is lost. */
static bool works(struct bed *b) {
  struct rig_nv_region *keep;
  char fault[TEXT];
  uint64_t freed = 0;
  if (rig_nv_alloc(b->d, RIG_DEVICE, BYTES, &keep) != 0)
    return refused(b, "alloc");
  bool ok = true;
  for (int i = 0; ok && i < ROUNDS * 3; i++)
    ok = moves(b, (enum rig_memory)(i % 3), &freed);
  const int r = ok ? copy(b, at(keep), freed, 64) : 0;
  snprintf(fault, sizeof fault, "\nMMU fault: 0x%llx | P",
           (unsigned long long)freed);
  if (ok && r != -RIG_NV_FAULT)
    ok = wrong(b, "freed memory is reached");
  else if (ok && strstr(rig_nv_why(), fault) == NULL)
    ok = refused(b, "another fault");
  if (rig_nv_free(b->d, keep) != 0)
    fail_msg("free: %s", rig_nv_why());
  return ok;
}

static void test_works(void **state) {
  (void)state;
  for (int is = 0; is < MODEL_PATHS; is++)
    for (uint64_t seed = 1; seed <= 4; seed++) {
      struct bed b;
      begin(&b, is, seed);
      if (!works(&b))
        fail_msg("%s, seed %d: %s", model_path_name((enum model_path)is),
                 (int)seed, b.text);
      end(&b);
    }
}

/* ---- faults ---- */

enum where { UNMAPPED, PAST_BITS, NEXT_PAGE, READ_ONLY };

static const struct {
  const char *name;
  enum where where;
  bool write;
  const char *type;
} faults[] = {
    {"where no table leads", UNMAPPED, false, "PDE | VIRT_READ"},
    {"where no table leads", UNMAPPED, true, "PDE | VIRT_WRITE"},
    {"past a region", NEXT_PAGE, false, "PTE | VIRT_READ"},
    {"past a region", NEXT_PAGE, true, "PTE | VIRT_WRITE"},
    /* Version 3 translates every address that a copy names. */
    {"past the last bit", PAST_BITS, false, "VA_LIMIT_VIOLATION | VIRT_READ"},
    {"a read-only page", READ_ONLY, true, "RO_VIOLATION | VIRT_WRITE"},
};

static void one_fault(int is, size_t k) {
  static const unsigned ro_bits[] = {6, 5}; /* board_test.c */
  struct bed b;
  struct rig_nv_region *r, *spoilt;
  char want[TEXT];
  begin(&b, is, 1);
  if (rig_nv_alloc(b.d, RIG_PINNED, BYTES, &r) != 0)
    fail_msg("alloc: %s", rig_nv_why());
  model_path_plant(b.path, BOARD_WRONG_BIT, ro_bits[is - MODEL_PATH_V2]);
  if (rig_nv_alloc(b.d, RIG_DEVICE, BYTES, &spoilt) != 0)
    fail_msg("alloc: %s", rig_nv_why());
  model_path_plant(b.path, BOARD_NO_PLANT, 0);
  const uint64_t bad[] = {[UNMAPPED] = UINT64_C(0x3000000000),
                          [PAST_BITS] = UINT64_C(1) << 49,
                          [NEXT_PAGE] = (at(r) + BYTES + 4095) / 4096 * 4096,
                          [READ_ONLY] = at(spoilt)};
  const uint64_t va = bad[faults[k].where];
  snprintf(want, sizeof want, "\nMMU fault: 0x%llx | %s",
           (unsigned long long)va, faults[k].type);
  const int e =
      faults[k].write ? copy(&b, va, at(r), 16) : copy(&b, at(r), va, 16);
  if (e != -RIG_NV_FAULT || strstr(rig_nv_why(), want) == NULL)
    fail_msg("%s, %s: %d, %s", model_path_name((enum model_path)is),
             faults[k].name, e, rig_nv_why());
  if (rig_nv_free(b.d, spoilt) != 0 || rig_nv_free(b.d, r) != 0)
    fail_msg("free: %s", rig_nv_why());
  end(&b);
}

static void test_faults(void **state) {
  (void)state;
  for (int is = MODEL_PATH_V2; is <= MODEL_PATH_V3; is++)
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++)
      if (is == MODEL_PATH_V2 || faults[k].where != PAST_BITS)
        one_fault(is, k);
}

/* ---- bugs ---- */

static const struct {
  const char *name;
  enum board_plant plant;
  unsigned bit[2]; /* of versions 2 and 3 */
} plants[] = {
    {"no flush after a map", BOARD_NO_FLUSH_OF_MAPS, {0, 0}},
    {"no flush after an unmap", BOARD_NO_FLUSH_OF_UNMAPS, {0, 0}},
    {"a flush that keeps the TLB", BOARD_NO_INVALIDATE, {0, 0}},
    {"VALID", BOARD_WRONG_BIT, {0, 0}},
    {"APERTURE, low", BOARD_WRONG_BIT, {1, 1}},
    {"APERTURE, high", BOARD_WRONG_BIT, {2, 2}},
    {"READ_ONLY, PCF", BOARD_WRONG_BIT, {6, 5}},
    {"ADDRESS, the lowest", BOARD_WRONG_BIT, {8, 12}},
    {"ADDRESS, the 8th", BOARD_WRONG_BIT, {16, 20}},
    {"KIND", BOARD_WRONG_BIT, {56, 8}},
};

/* The TLB's evictions may hide a bug once. */
static bool found(int is, size_t k) {
  for (uint64_t seed = 1; seed <= TRIES; seed++) {
    struct bed b;
    begin(&b, is, seed);
    model_path_plant(b.path, plants[k].plant,
                     plants[k].bit[is - MODEL_PATH_V2]);
    const bool ok = works(&b);
    model_path_plant(b.path, BOARD_NO_PLANT, 0);
    end(&b);
    if (!ok)
      return true;
  }
  return false;
}

static void test_plants(void **state) {
  (void)state;
  for (int is = MODEL_PATH_V2; is <= MODEL_PATH_V3; is++)
    for (size_t k = 0; k < sizeof plants / sizeof *plants; k++)
      if (!found(is, k))
        fail_msg("%s: not found: %s", model_path_name((enum model_path)is),
                 plants[k].name);
}

/* ---- views ---- */

static const struct rig_nv_path *open_path(int is) {
  const struct rig_nv_path *path = NULL;
  if (model_path_open((enum model_path)is, NULL, &path) != 0)
    fail_msg("open: %s", rig_nv_why());
  return path;
}

/* Memory that was viewed is freed, and its path closed, before the view is. */
static void test_views_outlive(void **state) {
  (void)state;
  for (int is = 0; is < MODEL_PATHS; is++)
    for (int kind = RIG_DEVICE; kind <= RIG_MAPPED; kind++) {
      struct rig_nv_memory of, view;
      enum rig_mapping mapping;
      struct rig_nv_reply reply;
      const struct rig_nv_path *a = open_path(is), *b = open_path(is);
      assert_true(
          b->alloc(b->ctx, (enum rig_memory)kind, BYTES, 0, &of, &reply));
      if (!a->map_peer(a->ctx, &of, &mapping, &view, &reply))
        fail_msg("map_peer: %s", reply.text);
      assert_true(b->free(b->ctx, &of, &reply));
      assert_int_equal(rig_nv_path_close(b), 0);
      assert_true(a->free(a->ctx, &view, &reply));
      assert_int_equal(rig_nv_path_close(a), 0);
    }
}

/* Paths of different kinds view nothing of each other. */
static void test_strangers(void **state) {
  (void)state;
  for (int i = 0; i < MODEL_PATHS; i++)
    for (int k = 0; k < MODEL_PATHS; k++) {
      struct rig_nv_memory of, view;
      enum rig_mapping mapping;
      struct rig_nv_reply reply;
      const bool akin = model_path_walks((enum model_path)i) ==
                        model_path_walks((enum model_path)k);
      const struct rig_nv_path *a = open_path(i), *b = open_path(k);
      assert_int_equal(a->key == b->key, akin);
      assert_int_equal(a->reaches(a->ctx, b->index), akin);
      assert_true(b->alloc(b->ctx, RIG_DEVICE, BYTES, 0, &of, &reply));
      const bool maps = a->map_peer(a->ctx, &of, &mapping, &view, &reply);
      assert_int_equal(maps, akin);
      if (maps)
        assert_true(a->free(a->ctx, &view, &reply));
      assert_true(b->free(b->ctx, &of, &reply));
      assert_int_equal(rig_nv_path_close(b), 0);
      assert_int_equal(rig_nv_path_close(a), 0);
    }
}

/* ---- room ---- */

/* All of the budget in one piece and in many, again and again. */
static void test_room(void **state) {
  (void)state;
  static const uint64_t pieces[] = {1, 3, 60, 120};
  for (int is = 0; is < MODEL_PATHS; is++)
    for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
      struct rig_nv_model_options o;
      const struct rig_nv_path *p;
      struct rig_nv_memory m[120];
      struct rig_nv_reply reply;
      rig_nv_model_options_init(&o);
      o.device_bytes = 120 * MIB;
      if (model_path_open((enum model_path)is, &o, &p) != 0)
        fail_msg("open: %s", rig_nv_why());
      for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < pieces[k]; i++)
          if (!p->alloc(p->ctx, RIG_DEVICE, 120 / pieces[k] * MIB, 0, &m[i],
                        &reply))
            fail_msg("%s, of %d: %s", model_path_name((enum model_path)is),
                     (int)pieces[k], reply.text);
        for (uint64_t i = 0; i < pieces[k]; i++)
          assert_true(p->free(p->ctx, &m[i], &reply));
      }
      assert_int_equal(rig_nv_path_close(p), 0);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_works),     cmocka_unit_test(test_faults),
      cmocka_unit_test(test_plants),    cmocka_unit_test(test_views_outlive),
      cmocka_unit_test(test_strangers), cmocka_unit_test(test_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
