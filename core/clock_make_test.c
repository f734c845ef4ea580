/* SPDX-License-Identifier: ISC */
/* The clock of a device: measured by its make, on the model and on clocks that
 * cannot be read. */
#include "core/test_bed.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* A stamp of now is now, within half of the measure's width: the model's timer
 * is CLOCK_MONOTONIC and what its options say; its registers have no bits below
 * 32 ns. */
static void measured(int personality, int64_t ahead) {
  struct rig_nv_model_options o;
  const struct rig_nv_path *path;
  rig_nv_model_options_init(&o);
  o.personality = (enum rig_nv_personality)personality;
  if (ahead != 0)
    o.timer_ahead = ahead;
  assert_int_equal(rig_nv_path_model(&o, &path), 0);
  uint64_t before = device_now();
  struct rig_nv *d = make(path, NULL);
  struct clock_line l = clock_line_now(&d->clock);
  assert_in_range(l.latest.host, before, device_now());
  uint64_t real = device_now();
  uint64_t is = clock_time(&d->clock, real + (uint64_t)o.timer_ahead);
  int64_t off = (int64_t)(is - real);
  assert_in_range((uint64_t)(off + (1 << 30)),
                  (1 << 30) - l.latest.width / 2 - 2,
                  (1 << 30) + l.latest.width / 2 + 34);
  end(d);
  close_path(path);
}

static void test_measured(void **state) {
  static const int64_t aheads[] = {0, 1, -1000, INT64_C(1) << 60};
  (void)state;
  for (size_t i = 0; i < COUNT(aheads); i++) {
    measured(KERNEL, aheads[i]);
    measured(MODEL_PATH_PCI, aheads[i]);
  }
}

/* One source for all rows: it answers as `answer` says. */
static enum rig_nv_answer answer;
static uint32_t registers[0x9414 / 4];

static bool read_fails(void *ctx, struct rig_nv_reading *r,
                       struct rig_nv_reply *reply) {
  (void)ctx;
  *r = (struct rig_nv_reading){2, 2, 1};
  return rig_nv_reply_set(reply, answer, "%s", answer ? "it does not" : "");
}

static uint64_t host(void *ctx) {
  (void)ctx;
  return 0;
}

#define SOURCE .kind = RIG_NV_CLOCK_SOURCE
#define REGISTERS .kind = RIG_NV_CLOCK_REGISTERS
#define USERMODE .kind = RIG_NV_CLOCK_USERMODE
#define MAPPED .mapped = (const volatile char *)registers
#define NONE "make: the path has no clock that can be read"
#define LOST "clock: the GPU's timer does not answer"

static const struct {
  const char *name;
  bool none;
  struct rig_nv_clock clock;
  enum rig_nv_answer answer;
  int error; /* of make */
  const char *text;
} rows[] = {
    {"none", true, {SOURCE}, 0, RIG_NV_REFUSED, NONE},
    {"no source", false, {SOURCE, .host = host}, 0, RIG_NV_REFUSED, NONE},
    {"no host clock",
     false,
     {SOURCE, .read = read_fails},
     0,
     RIG_NV_REFUSED,
     NONE},
    {"no registers", false, {REGISTERS}, 0, RIG_NV_REFUSED, NONE},
    {"no region", false, {USERMODE}, 0, RIG_NV_REFUSED, NONE},
    {"no kind",
     false,
     {.kind = (enum rig_nv_clock_kind)9, MAPPED},
     0,
     RIG_NV_REFUSED,
     NONE},
    {"a source that lacks",
     false,
     {SOURCE, .read = read_fails, .host = host},
     RIG_NV_LACKING,
     RIG_NV_NO_MEMORY,
     "clock: it does not"},
    {"a source that refuses",
     false,
     {SOURCE, .read = read_fails, .host = host},
     RIG_NV_DENIED,
     RIG_NV_REFUSED,
     "clock: it does not"},
    {"a source that fails",
     false,
     {SOURCE, .read = read_fails, .host = host},
     RIG_NV_FAULTED,
     RIG_NV_REFUSED,
     "clock: it does not"},
    {"a source that runs back",
     false,
     {SOURCE, .read = read_fails, .host = host},
     RIG_NV_OK,
     RIG_NV_REFUSED,
     "clock: a host clock ran back by 1 ns"},
    {"registers of a lost GPU",
     false,
     {REGISTERS, MAPPED},
     0,
     RIG_NV_REFUSED,
     LOST},
    {"a region of a lost GPU",
     false,
     {USERMODE, MAPPED},
     0,
     RIG_NV_REFUSED,
     LOST},
};

static void test_cannot_read(void **state) {
  const struct rig_nv_path *path = open_model(KERNEL);
  (void)state;
  memset(registers, 0xff, sizeof registers);
  for (size_t i = 0; i < COUNT(rows); i++) {
    struct rig_nv_path p = *path;
    struct rig_nv *d = NULL;
    p.clock = rows[i].none ? NULL : &rows[i].clock;
    answer = rows[i].answer;
    EXPECT(rig_nv_make(&p, NULL, &d), rows[i].error, rows[i].text);
    assert_null(d);
    nothing_left(path, rows[i].name);
  }
  end(make(path, NULL)); /* another make may use it */
  close_path(path);
}

/* One kind of failing source among calls that succeed: what a failing call of
 * make is otherwise, core/make_test.c has. */
static void test_counted(void **state) {
  const struct rig_nv_path *path = open_model(KERNEL);
  struct failing_path f;
  struct rig_nv *d = NULL;
  unsigned n = 0;
  (void)state;
  failing_path_init(&f, path);
  do {
    f.calls = 0;
    f.fail_at = ++n;
    f.failed = NULL;
    if (rig_nv_make(&f.path, NULL, &d) == 0)
      fail_msg("no call of the clock failed");
  } while (strcmp(f.failed, "clock_read") != 0);
  assert_string_equal(rig_nv_why(), "clock: clock_read failed on purpose");
  nothing_left(path, "clock_read");
  close_path(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_measured),
      cmocka_unit_test(test_cannot_read),
      cmocka_unit_test(test_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
