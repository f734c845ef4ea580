/* SPDX-License-Identifier: ISC */
/*
 * Rules on dma: what it answers, and what of the memory it named stays. One row
 * a rule.
 */
#include "core/rules_bed.h"

static struct {
  int kind;
  enum rig_nv_answer is;
  unsigned calls;
  uint64_t address; /* asked about */
} bus;

static bool answer_dma(void *ctx, const struct rig_nv_memory *m, const char *fn,
                       struct rig_dma *dma, struct rig_nv_reply *reply) {
  (void)ctx;
  bus.calls++;
  bus.address = m->address;
  if (bus.is != RIG_NV_OK)
    return rig_nv_reply_set(reply, bus.is, "the machine has no %s", fn);
  *dma = (struct rig_dma){
      .kind = bus.kind, .bus = 0xb05000, .fd = 7, .bytes = m->bytes};
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

#define FN "0000:41:00.0"

static void open_bus(struct bed *b, int personality, int kind) {
  open_bed(b, personality);
  b->g.path.dma = answer_dma;
  memset(&bus, 0, sizeof bus);
  bus.kind = kind;
}

/* BUS: kept where it is until the process exits, and the path in use, whatever
 * is freed, stopped and released, in any way. */
static void bus_memory_stays(int personality) {
  for (int way = 0; way < 3; way++) {
    struct bed b;
    struct rig_dma dma;
    open_bus(&b, personality, RIG_DMA_BUS);
    struct rig_nv_region *r = bed_region(&b, PAGE);
    uint64_t address = rig_nv_locate(r).address;
    DONE(rig_nv_dma(b.d, r, FN, &dma));
    assert_int_equal(dma.kind, RIG_DMA_BUS);
    assert_int_equal(dma.bus, 0xb05000);
    assert_int_equal(bus.address, address);
    assert_int_equal(rig_nv_locate(r).address, address);
    /* A later answer of another kind takes nothing back. */
    bus.kind = RIG_DMA_BUF;
    DONE(rig_nv_dma(b.d, r, FN, &dma));
    bus.is = RIG_NV_DENIED;
    assert_int_equal(rig_nv_dma(b.d, r, FN, &dma), -RIG_NV_REFUSED);
    unsigned calls = b.f.calls;
    if (way == 0)
      DONE(rig_nv_free(b.d, r));
    if (way == 1)
      DONE(rig_nv_free_after(b.d, r, 0));
    assert_int_equal(b.f.calls, calls);
    for (int i = 0; i < 8 && way < 2; i++) {
      struct rig_nv_region *other = bed_region(&b, PAGE);
      assert_int_not_equal(rig_nv_locate(other).address, address);
      DONE(rig_nv_free(b.d, other));
    }
    DONE(rig_nv_stop(b.d, NULL));
    if (way == 2)
      DONE(rig_nv_free(b.d, r));
    DONE(rig_nv_release(b.d));
    assert_int_equal(memories(&b), 1);
    assert_int_equal(rig_nv_path_close(b.model), -RIG_NV_INVALID);
    assert_int_equal(sweep(&b), personality == KERNEL ? 1 : 3);
  }
}

/* BUF: it goes back. */
static void buffer_goes_back(int personality) {
  struct bed b;
  struct rig_dma dma;
  open_bus(&b, personality, RIG_DMA_BUF);
  struct rig_nv_region *r = bed_region(&b, PAGE);
  DONE(rig_nv_dma(b.d, r, FN, &dma));
  assert_int_equal(dma.fd, 7);
  assert_int_equal(dma.bytes, PAGE);
  DONE(rig_nv_free(b.d, r));
  finish(&b);
}

static void dma_refusals(int personality) {
  struct bed b, far;
  struct rig_dma dma, before;
  struct rig_nv_region *mapped, *view;
  enum rig_mapping mapping;
  void *page = aligned_alloc(PAGE, PAGE);
  assert_non_null(page);
  memset(&before, 0x77, sizeof before);
  dma = before;
  open_bus(&b, personality, 7);
  open_bed(&far, personality);
  struct rig_nv_region *r = bed_region(&b, PAGE),
                       *of_far = bed_region(&far, PAGE);
  DONE(rig_nv_map_host(b.d, page, PAGE, &mapping, &mapped));
  DONE(rig_nv_map_peer(b.d, far.d, of_far, &mapping, &view));
  const char *const other = "dma: not a region that rig_nv_alloc made";
  EXPECT(rig_nv_dma(b.d, NULL, FN, &dma), RIG_NV_INVALID,
         "dma: not a region of this device");
  EXPECT(rig_nv_dma(b.d, of_far, FN, &dma), RIG_NV_INVALID,
         "dma: not a region of this device");
  EXPECT(rig_nv_dma(b.d, mapped, FN, &dma), RIG_NV_INVALID, other);
  EXPECT(rig_nv_dma(b.d, view, FN, &dma), RIG_NV_INVALID, other);
  EXPECT(rig_nv_dma(b.d, b.d->own_word, FN, &dma), RIG_NV_INVALID, other);
  EXPECT(rig_nv_dma(b.d, r, NULL, &dma), RIG_NV_INVALID,
         "dma: no bus address of a function");
  assert_int_equal(bus.calls, 0);
  EXPECT(rig_nv_dma(b.d, r, FN, &dma), RIG_NV_REFUSED,
         "dma: the path answered kind 7");
  bus.is = RIG_NV_DENIED;
  EXPECT(rig_nv_dma(b.d, r, FN, &dma), RIG_NV_REFUSED,
         "dma: the machine has no " FN);
  bus.is = RIG_NV_LACKING;
  EXPECT(rig_nv_dma(b.d, r, FN, &dma), RIG_NV_NO_MEMORY,
         "dma: the machine has no " FN);
  b.g.path.dma = b.f.path.dma; /* the model's, which has no functions */
  assert_int_equal(rig_nv_dma(b.d, r, FN, &dma), -RIG_NV_REFUSED);
  assert_non_null(strstr(rig_nv_why(), FN));
  assert_memory_equal(&dma, &before, sizeof dma);
  DONE(rig_nv_free(b.d, view));
  DONE(rig_nv_free(b.d, mapped));
  DONE(rig_nv_free(b.d, r));
  DONE(rig_nv_free(far.d, of_far));
  finish(&b);
  finish(&far);
  free(page);
}

static const struct rule rules[] = {
    {"For Bus, the driver must keep the memory where it is until the process "
     "exits.",
     bus_memory_stays},
    {"A buffer keeps nothing.", buffer_goes_back},
    {"dma is Error why, and only of a region alloc made.", dma_refusals},
};

static void test_rules(void **state) {
  (void)state;
  run_rules(rules, COUNT(rules));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
