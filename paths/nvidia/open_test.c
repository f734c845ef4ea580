/* SPDX-License-Identifier: ISC */
/*
 * Opening and closing, over the fake driver.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/lock_order/lock_order.h"
#include "paths/nvidia/fake.h"
#include "paths/nvidia/nvidia.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static int open_gpu(struct fake *f, int gpu, const struct rig_nv_path **path) {
  struct rig_nv_nvidia_options o;
  rig_nv_nvidia_options_init(&o);
  o.gpu = gpu;
  return nvidia_open(&f->os, &o, path);
}

#define assert_sound(f)                                                        \
  do {                                                                         \
    if ((f)->broken[0] != '\0')                                                \
      fail_msg("%s; after:\n%s", (f)->broken, (f)->log);                       \
  } while (0)

static const struct {
  const char *version;
  int release;
} releases[] = {{"570.211.01", 570}, {"580.159.04", 580}, {"610.43.03", 610}};

static void test_facts(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(releases); i++) {
    struct fake f;
    const struct rig_nv_path *p;
    struct rig_nv_reply reply;
    fake_init(&f);
    f.version = releases[i].version;
    f.release = releases[i].release;
    assert_true(nvidia_supports(f.version));
    assert_int_equal(nvidia_open(&f.os, NULL, &p), 0);
    assert_sound(&f);
    assert_int_equal(p->size, sizeof *p);
    assert_int_equal(p->index, 0);
    assert_int_equal(p->rm.release, releases[i].release);
    assert_string_equal(nvidia_version(p), releases[i].version);
    assert_true(p->rm.frees);
    assert_string_equal(p->bus, "0000:00:06.0");
    assert_int_equal(p->gpu.channel_class, 0xc86f);
    assert_int_equal(p->gpu.compute_class, 0xcbc0);
    assert_int_equal(p->gpu.copy_class, 0xc8b5);
    assert_int_equal(p->gpu.sm_version, 0x900);
    assert_int_equal(p->gpu.gpcs, 8);
    assert_int_equal(p->gpu.tpcs_per_gpc, 9);
    assert_int_equal(p->gpu.sms_per_tpc, 2);
    assert_int_equal(p->gpu.warps_per_sm, 64);
    assert_int_equal(p->budget, UINT64_C(1) << 30);
    assert_int_equal(p->cache_bytes, 62914560);
    assert_int_equal(p->hang_ms, -1);
    assert_non_null(p->flush);
    assert_int_equal((uintptr_t)p->doorbell % 0x10000 % 4096, 0x90);
    assert_int_equal(fake_class(&f, p->device), 0x80);
    assert_int_equal(fake_class(&f, p->subdevice), 0x2080);
    assert_int_equal(fake_class(&f, p->vaspace), 0x90f1);
    assert_int_equal(fake_class(&f, p->rm.client), 0x41);
    assert_true(p->check(p->ctx, &reply));
    assert_int_equal(p->stop(p->ctx), RIG_NV_UNKNOWN);
    assert_false(p->reaches(p->ctx, 0));
    assert_int_equal(rig_nv_path_close(p), 0);
    assert_sound(&f);
    assert_true(fake_nothing(&f));
    fake_end(&f);
  }
}

/* What the driver is asked, in order. */
static const char opening[] =
    "open\nNV_ESC_RM_ALLOC\nNV_ESC_RM_CONTROL\nopen\nopen\nUVM_INITIALIZE\n"
    "UVM_MM_INITIALIZE\n"
    "NV_ESC_CARD_INFO\nopen\nNV_ESC_REGISTER_FD\nNV_ESC_RM_CONTROL\n"
    "NV_ESC_RM_ALLOC\nNV_ESC_RM_ALLOC\nNV_ESC_RM_CONTROL\nNV_ESC_RM_CONTROL\n"
    "NV_ESC_RM_CONTROL\nNV_ESC_RM_CONTROL\nNV_ESC_RM_CONTROL\n"
    "NV_ESC_RM_ALLOC\nopen\nNV_ESC_REGISTER_FD\nNV_ESC_RM_MAP_MEMORY\nmap\n"
    "close\nNV_ESC_RM_ALLOC\nUVM_REGISTER_GPU\nUVM_REGISTER_GPU_VASPACE\n"
    "NV_ESC_RM_ALLOC\nUVM_CREATE_EXTERNAL_RANGE\nUVM_MAP_EXTERNAL_ALLOCATION\n"
    "open\nNV_ESC_REGISTER_FD\nNV_ESC_RM_MAP_MEMORY\nmap\nclose\n";
static const char closing[] =
    "unmap\nNV_ESC_RM_UNMAP_MEMORY\nUVM_FREE\nNV_ESC_RM_FREE\n"
    "UVM_UNREGISTER_GPU_VASPACE\nUVM_UNREGISTER_GPU\nNV_ESC_RM_FREE\n"
    "unmap\nNV_ESC_RM_UNMAP_MEMORY\nNV_ESC_RM_FREE\nNV_ESC_RM_FREE\n"
    "NV_ESC_RM_FREE\nclose\nclose\nclose\nNV_ESC_RM_FREE\nclose\n";

static void test_sequence(void **state) {
  struct fake f;
  const struct rig_nv_path *p;
  (void)state;
  fake_init(&f);
  assert_int_equal(open_gpu(&f, 0, &p), 0);
  assert_string_equal(f.log, opening);
  fake_restart(&f);
  assert_int_equal(rig_nv_path_close(p), 0);
  assert_string_equal(f.log, closing);
  assert_true(fake_nothing(&f));
  fake_end(&f);
}

/* A GPU's timer that reads all ones is one that fell off the bus. */
static void test_check(void **state) {
  static const struct {
    uint32_t time_1;
    bool well;
  } rows[] = {{0, true}, {0x1fffffff, true}, {UINT32_MAX, false}};
  (void)state;
  for (size_t i = 0; i < COUNT(rows); i++) {
    struct fake f;
    const struct rig_nv_path *p;
    struct rig_nv_reply reply;
    fake_init(&f);
    f.gpus[0].time_1 = rows[i].time_1;
    assert_int_equal(open_gpu(&f, 0, &p), 0);
    assert_int_equal(p->check(p->ctx, &reply), rows[i].well);
    assert_int_equal(reply.is, rows[i].well ? RIG_NV_OK : RIG_NV_FAULTED);
    assert_int_equal(reply.text[0] == '\0', rows[i].well);
    assert_int_equal(rig_nv_path_close(p), 0);
    fake_end(&f);
  }
}

static uint64_t no_time(void *ctx) {
  (void)ctx;
  return 0;
}

/* The path's clock reads the timer of the usermode region. */
static void test_clock(void **state) {
  static const struct {
    uint32_t time_0, time_1;
    uint64_t is; /* 0: it does not answer */
  } rows[] = {{0x123456a0, 0x189abcde, 0x189abcde123456a0},
              {UINT32_MAX, 1, 0x1ffffffff},
              {0x20, UINT32_MAX, 0}};
  (void)state;
  for (size_t i = 0; i < COUNT(rows); i++) {
    struct fake f;
    const struct rig_nv_path *p;
    struct clock_measure m = {0};
    fake_init(&f);
    f.gpus[0].time_0 = rows[i].time_0;
    f.gpus[0].time_1 = rows[i].time_1;
    assert_int_equal(open_gpu(&f, 0, &p), 0);
    assert_int_equal(p->clock->kind, RIG_NV_CLOCK_USERMODE);
    unsigned calls = f.calls;
    assert_int_equal(clock_measure(p->clock, no_time, NULL, &m),
                     rows[i].is != 0 ? 0 : -RIG_NV_FAULT);
    assert_int_equal(m.timer, rows[i].is);
    assert_int_equal(f.calls, calls); /* none of the driver */
    assert_int_equal(rig_nv_path_close(p), 0);
    fake_end(&f);
  }
}

static const struct {
  const char *name, *version;
  bool no_driver;
  int gpu, error;
  const char *text; /* in the reason */
  unsigned calls;   /* at most, of an unknown release */
} refusals[] = {
    {"615", "615.71.09", false, 0, RIG_NV_REFUSED, "615.71.09", 5},
    {"older", "535.54.03", false, 0, RIG_NV_REFUSED, "570, 580 and 610", 5},
    {"between", "590.48.01", false, 0, RIG_NV_REFUSED, "590.48.01", 5},
    {"no version", "", false, 0, RIG_NV_REFUSED, "570, 580 and 610", 5},
    {"no driver", "580.1", true, 0, RIG_NV_ABSENT, "/dev/nvidiactl", 1},
    {"no such GPU", "580.1", false, 1, RIG_NV_ABSENT, "the machine has 1", 99},
    {"far off", "580.1", false, 300, RIG_NV_ABSENT, "GPU 300", 99},
};

static void test_refusals(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(refusals); i++) {
    struct fake f;
    const struct rig_nv_path *p = NULL;
    fake_init(&f);
    f.version = refusals[i].version;
    f.no_driver = refusals[i].no_driver;
    int r = open_gpu(&f, refusals[i].gpu, &p);
    assert_int_equal(nvidia_supports(f.version),
                     strcmp(f.version, "580.1") == 0);
    if (r != -refusals[i].error || p != NULL ||
        strstr(rig_nv_why(), refusals[i].text) == NULL ||
        f.calls > refusals[i].calls || !fake_nothing(&f) || f.broken[0] != '\0')
      fail_msg("%s: %d, %s, %u calls, %s", refusals[i].name, r, rig_nv_why(),
               f.calls, f.broken);
    fake_end(&f);
  }
}

static void test_options(void **state) {
  struct fake f, other;
  struct rig_nv_nvidia_options o;
  const struct rig_nv_path *p, *again;
  (void)state;
  fake_init(&f);
  fake_init(&other);
  rig_nv_nvidia_options_init(&o);
  assert_int_equal(o.gpu, -1);
  o.size--;
  assert_int_equal(nvidia_open(&f.os, &o, &p), -RIG_NV_INVALID);
  assert_int_equal(f.calls, 0);
  assert_int_equal(open_gpu(&f, -1, &p), 0);
  assert_int_equal(open_gpu(&f, 0, &again), -RIG_NV_INVALID);
  assert_non_null(strstr(rig_nv_why(), "open in this process"));
  assert_int_equal(open_gpu(&f, -1, &again), -RIG_NV_INVALID);
  assert_int_equal(open_gpu(&other, 0, &again), -RIG_NV_INVALID);
  assert_int_equal(other.calls, 0);
  assert_int_equal(rig_nv_path_close(p), 0);
  assert_int_equal(open_gpu(&other, 0, &again), 0);
  assert_int_equal(rig_nv_path_close(again), 0);
  assert_sound(&f);
  assert_true(fake_nothing(&f) && fake_nothing(&other));
  fake_end(&f);
  fake_end(&other);
}

/* CUDA in the same process has initialized UVM for the process's memory. */
static void test_beside_cuda(void **state) {
  struct fake f;
  const struct rig_nv_path *p;
  (void)state;
  fake_init(&f);
  f.mm_by_other = true;
  assert_int_equal(open_gpu(&f, 0, &p), 0);
  assert_int_equal(rig_nv_path_close(p), 0);
  assert_sound(&f);
  assert_true(fake_nothing(&f));
  fake_end(&f);
}

/* For every n, the n-th call fails: nothing is left, and a next open works. Of
 * what an open can do without it does without. */
static void test_every_call(void **state) {
  static const enum fake_failure how[] = {FAKE_ERRNO, FAKE_STATUS, FAKE_REFUSED,
                                          FAKE_EIO};
  (void)state;
  for (size_t k = 0; k < COUNT(how); k++) {
    struct fake f;
    unsigned opened = 0, n = 1;
    fake_init(&f);
    f.failure = how[k];
    for (bool reached = true; reached; n++) {
      const struct rig_nv_path *p;
      fake_restart(&f);
      f.fail_at = n;
      int r = open_gpu(&f, 0, &p);
      reached = f.failed[0] != '\0';
      f.fail_at = 0;
      if (r == 0)
        opened += reached;
      else if (r != -RIG_NV_REFUSED && r != -RIG_NV_NO_MEMORY)
        fail_msg("call %u, %s: %d, %s", n, f.failed, r, rig_nv_why());
      if (r == 0 && rig_nv_path_close(p) != 0)
        fail_msg("call %u, %s: close: %s", n, f.failed, rig_nv_why());
      if (f.broken[0] != '\0' || !fake_nothing(&f))
        fail_msg("call %u, %s: %s something is left; calls:\n%s", n, f.failed,
                 f.broken, f.log);
    }
    assert_true(n > 30);
    /* An open does without a flush word where memory lacks. */
    bool lacks = how[k] != FAKE_EIO; /* open and map have no status */
    assert_in_range(opened, lacks ? 1 : 0, lacks ? 8 : 0);
    fake_end(&f);
  }
}

/* A refusal to give back is told, and the path is closed all the same. */
static void test_close_fails(void **state) {
  static const char *const names[] = {"NV_ESC_RM_FREE",
                                      "close",
                                      "UVM_UNREGISTER_GPU_VASPACE",
                                      "UVM_UNREGISTER_GPU",
                                      "unmap",
                                      "NV_ESC_RM_UNMAP_MEMORY",
                                      "UVM_FREE"};
  (void)state;
  for (size_t i = 0; i < COUNT(names); i++) {
    struct fake f, next;
    const struct rig_nv_path *p;
    fake_init(&f);
    fake_init(&next);
    assert_int_equal(open_gpu(&f, 0, &p), 0);
    f.fail_name = names[i];
    f.failure = FAKE_REFUSED;
    assert_int_equal(rig_nv_path_close(p), -RIG_NV_FAULT);
    assert_int_equal(fake_counts(&f).files, 0);
    assert_int_equal(open_gpu(&next, 0, &p), 0);
    assert_int_equal(rig_nv_path_close(p), 0);
    assert_true(fake_nothing(&next));
    fake_end(&f);
    fake_end(&next);
  }
}

#define GPU(bus, driven, minor)                                                \
  {bus,                                                                        \
   0x10de,                                                                     \
   0x030200,                                                                   \
   driven,                                                                     \
   minor,                                                                      \
   true,                                                                       \
   {0xc86f, 0xcbc0, 0xc8b5, 0xc661},                                           \
   4,                                                                          \
   0x900,                                                                      \
   1 << 28,                                                                    \
   1 << 24,                                                                    \
   0,                                                                          \
   0}
#define FUNCTION(bus, vendor, class24)                                         \
  {bus, vendor, class24, false, 0, false, {0}, 0, 0, 0, 0, 0, 0}

static const struct {
  const char *name;
  bool no_sysfs;
  size_t n;
  struct fake_gpu gpus[FAKE_GPUS];
  const char *is[FAKE_GPUS]; /* the bus address of each number; NULL: absent */
} numbers[] = {
    {"bus order, not the driver's",
     false,
     3,
     {GPU("0000:c1:00.0", true, 0), GPU("0000:41:00.0", true, 1),
      GPU("0000:41:00.1", true, 2)},
     {"0000:41:00.0", "0000:41:00.1", "0000:c1:00.0", NULL}},
    {"domains first",
     false,
     2,
     {GPU("0001:01:00.0", true, 0), GPU("0000:ff:1f.0", true, 1)},
     {"0000:ff:1f.0", "0001:01:00.0", NULL, NULL}},
    {"wide domains",
     false,
     2,
     {GPU("10000:01:00.0", true, 0), GPU("ffff:01:00.0", true, 1)},
     {"ffff:01:00.0", "10000:01:00.0", NULL, NULL}},
    {"others between",
     false,
     4,
     {FUNCTION("0000:01:00.0", 0x1002, 0x030000),
      FUNCTION("0000:02:00.1", 0x10de, 0x040300), GPU("0000:03:00.0", true, 0),
      GPU("0000:02:00.0", true, 1)},
     {"0000:02:00.0", "0000:03:00.0", NULL, NULL}},
    {"one that another driver holds",
     false,
     3,
     {GPU("0000:01:00.0", false, 0), GPU("0000:02:00.0", true, 0),
      GPU("0000:03:00.0", true, 1)},
     {NULL, "0000:02:00.0", "0000:03:00.0", NULL}},
    {"no list of functions",
     true,
     2,
     {GPU("0000:c1:00.0", true, 0), GPU("0000:41:00.0", true, 1)},
     {"0000:41:00.0", "0000:c1:00.0", NULL, NULL}},
};

/* nvidia_gpus lists what opens, and what another driver holds. */
static size_t assert_listed(const struct fake *f, const char *const *is) {
  char bus[FAKE_GPUS][NVIDIA_BUS], none[1][NVIDIA_BUS] = {"none"};
  size_t n = nvidia_gpus(&f->os, bus, FAKE_GPUS);
  assert_int_equal(nvidia_gpus(&f->os, none, 0), n);
  assert_string_equal(none[0], "none");
  for (size_t k = 0; k < n; k++)
    if (is[k] != NULL)
      assert_string_equal(bus[k], is[k]);
  return n;
}

static void test_numbers(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(numbers); i++) {
    struct fake f;
    fake_init(&f);
    f.no_sysfs = numbers[i].no_sysfs;
    f.ngpus = numbers[i].n;
    memcpy(f.gpus, numbers[i].gpus, sizeof f.gpus);
    size_t shown = assert_listed(&f, numbers[i].is);
    assert_int_equal(shown == 0, numbers[i].no_sysfs);
    for (int k = 0; k < FAKE_GPUS; k++) {
      const struct rig_nv_path *p;
      const char *is = numbers[i].is[k];
      int r = open_gpu(&f, k, &p);
      if (r != (is != NULL ? 0 : -RIG_NV_ABSENT) ||
          (r == 0 && strcmp(p->bus, is) != 0))
        fail_msg("%s: GPU %d: %d, %s", numbers[i].name, k, r,
                 r == 0 ? p->bus : rig_nv_why());
      if (r == 0)
        assert_int_equal(rig_nv_path_close(p), 0);
    }
    assert_sound(&f);
    assert_true(fake_nothing(&f));
    fake_end(&f);
  }
}

/* -1: the first that opens. */
static void test_any(void **state) {
  static const struct {
    bool opens[3];
    int is; /* -1: none */
  } rows[] = {{{true, true, true}, 0},
              {{false, true, true}, 1},
              {{false, false, true}, 2},
              {{false, false, false}, -1}};
  (void)state;
  for (size_t i = 0; i < COUNT(rows); i++) {
    static const struct fake_gpu gpus[] = {GPU("0000:01:00.0", true, 3),
                                           GPU("0000:02:00.0", true, 1),
                                           GPU("0000:03:00.0", true, 2)};
    struct fake f;
    const struct rig_nv_path *p;
    fake_init(&f);
    f.ngpus = 3;
    memcpy(f.gpus, gpus, sizeof gpus);
    for (int k = 0; k < 3; k++)
      f.gpus[k].opens = rows[i].opens[k];
    int r = open_gpu(&f, -1, &p);
    assert_int_equal(r, rows[i].is < 0 ? -RIG_NV_REFUSED : 0);
    if (r != 0)
      assert_non_null(strstr(rig_nv_why(), "/dev/nvidia3"));
    if (r == 0) {
      assert_int_equal(p->index, rows[i].is);
      assert_int_equal(rig_nv_path_close(p), 0);
    }
    assert_sound(&f);
    assert_true(fake_nothing(&f));
    fake_end(&f);
  }
}

static const struct {
  const char *name;
  uint32_t lists[FAKE_CLASSES], n;
  uint32_t channel, compute, copy; /* channel 0: refused */
  const char *lacks;
} classes[] = {
    {"GA102",
     {0xc361, 0xc461, 0xc561, 0xc36f, 0xc46f, 0xc56f, 0xc7c0, 0xc7b5},
     8,
     0xc56f,
     0xc7c0,
     0xc7b5,
     NULL},
    {"AD102",
     {0xc561, 0xc56f, 0xc9c0, 0xc7b5},
     4,
     0xc56f,
     0xc9c0,
     0xc7b5,
     NULL},
    {"GH100",
     {0xc8b5, 0xcbc0, 0xc86f, 0xc661, 0xc56f, 0xc561, 0xc46f, 0xc461},
     8,
     0xc86f,
     0xcbc0,
     0xc8b5,
     NULL},
    {"GB100",
     {0xc56f, 0xc86f, 0xc96f, 0xc661, 0xcdc0, 0xc9b5},
     6,
     0xc96f,
     0xcdc0,
     0xc9b5,
     NULL},
    {"GB202",
     {0xc86f, 0xc96f, 0xca6f, 0xc761, 0xc661, 0xcec0, 0xcab5},
     7,
     0xca6f,
     0xcec0,
     0xcab5,
     NULL},
    {"GA100, which make refuses",
     {0xc561, 0xc56f, 0xc6c0, 0xc6b5},
     4,
     0xc56f,
     0xc6c0,
     0xc6b5,
     NULL},
    {"TU102", {0xc461, 0xc46f, 0xc5c0, 0xc5b5}, 4, 0, 0, 0, "channel"},
    {"no compute", {0xc661, 0xc86f, 0xc8b5}, 3, 0, 0, 0, "compute"},
    {"no copy", {0xc661, 0xc86f, 0xcbc0}, 3, 0, 0, 0, "copy"},
    {"no usermode", {0xc86f, 0xcbc0, 0xc8b5}, 3, 0, 0, 0, "usermode"},
    {"none", {0}, 0, 0, 0, 0, "channel"},
};

static void test_classes(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(classes); i++) {
    struct fake f;
    const struct rig_nv_path *p;
    fake_init(&f);
    memcpy(f.gpus[0].classes, classes[i].lists, sizeof f.gpus[0].classes);
    f.gpus[0].nclasses = classes[i].n;
    int r = open_gpu(&f, 0, &p);
    if (classes[i].channel == 0) {
      assert_int_equal(r, -RIG_NV_REFUSED);
      assert_non_null(strstr(rig_nv_why(), classes[i].lacks));
    } else {
      if (r != 0 || p->gpu.channel_class != classes[i].channel ||
          p->gpu.compute_class != classes[i].compute ||
          p->gpu.copy_class != classes[i].copy)
        fail_msg("%s: %d, %x %x %x", classes[i].name, r, p->gpu.channel_class,
                 p->gpu.compute_class, p->gpu.copy_class);
      assert_int_equal(rig_nv_path_close(p), 0);
    }
    assert_sound(&f);
    assert_true(fake_nothing(&f));
    fake_end(&f);
  }
}

/* A GPU whose BAR has no room opens, with no Mapped memory. */
static void test_no_bar(void **state) {
  struct fake f;
  const struct rig_nv_path *p;
  struct rig_nv_memory m;
  struct rig_nv_reply reply;
  (void)state;
  fake_init(&f);
  f.gpus[0].bar = 0;
  assert_int_equal(open_gpu(&f, 0, &p), 0);
  assert_null(p->flush);
  assert_false(p->alloc(p->ctx, RIG_MAPPED, 4096, 0, &m, &reply));
  assert_int_equal(reply.is, RIG_NV_LACKING);
  assert_int_equal(rig_nv_path_close(p), 0);
  assert_sound(&f);
  assert_true(fake_nothing(&f));
  fake_end(&f);
}

/* Called inside a lock of a path's, each of them is refused, with nothing
 * changed. */
static void test_lock_held(void **state) {
  struct fake f;
  const struct rig_nv_path *p, *q = NULL;
  struct rig_nv_lock l;
  struct rig_nv_memory m, none = {0};
  struct rig_nv_reply reply;
  enum rig_mapping is;
  (void)state;
  fake_init(&f);
  assert_int_equal(rig_nv_lock_init(&l, &rig_nv_lock_path), 0);
  assert_int_equal(open_gpu(&f, 0, &p), 0);
  assert_true(p->alloc(p->ctx, RIG_PINNED, 4096, 0, &m, &reply));
  unsigned calls = f.calls;
  assert_int_equal(rig_nv_lock_take(&l), 0);
  assert_int_equal(open_gpu(&f, 0, &q), -RIG_NV_INVALID);
  assert_int_equal(rig_nv_path_close(p), -RIG_NV_INVALID);
#define REFUSED(call)                                                          \
  do {                                                                         \
    reply.is = RIG_NV_OK;                                                      \
    assert_false(call);                                                        \
    assert_int_equal(reply.is, RIG_NV_WRONG);                                  \
    assert_non_null(strstr(reply.text, "lock \"path\""));                      \
  } while (0)
  REFUSED(p->alloc(p->ctx, RIG_DEVICE, 4096, 0, &none, &reply));
  REFUSED(p->map_host(p->ctx, m.host, 4096, &is, &none, &reply));
  REFUSED(p->map_peer(p->ctx, &m, &is, &none, &reply));
  REFUSED(p->free(p->ctx, &m, &reply));
  REFUSED(p->register_channel(p->ctx, 1, &reply));
  REFUSED(p->unregister_channel(p->ctx, 1, &reply));
  assert_true(p->check(p->ctx, &reply)); /* takes none */
  rig_nv_lock_give(&l);
  assert_int_equal(f.calls, calls);
  assert_null(q);
  assert_true(p->free(p->ctx, &m, &reply));
  assert_int_equal(rig_nv_path_close(p), 0);
  assert_true(fake_nothing(&f));
  rig_nv_lock_fini(&l);
  fake_end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_facts),      cmocka_unit_test(test_sequence),
      cmocka_unit_test(test_check),      cmocka_unit_test(test_clock),
      cmocka_unit_test(test_refusals),   cmocka_unit_test(test_options),
      cmocka_unit_test(test_every_call), cmocka_unit_test(test_close_fails),
      cmocka_unit_test(test_numbers),    cmocka_unit_test(test_any),
      cmocka_unit_test(test_classes),    cmocka_unit_test(test_no_bar),
      cmocka_unit_test(test_lock_held),  cmocka_unit_test(test_beside_cuda),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
