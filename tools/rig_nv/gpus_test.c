/* SPDX-License-Identifier: ISC */
/*
 * The list of GPUs, of made-up machines (system_bed.h).
 */
#include "tools/rig_nv/system_bed.h"

#include "tools/rig_nv/gpus.h"

enum { CHANGES = 4, GPUS = 3 };

#define SECOND(driver)                                                         \
  {"/sys/bus/pci/devices/0000:00:05.0/vendor", "0x10de\n", NULL},              \
      {"/sys/bus/pci/devices/0000:00:05.0/class", "0x030000\n", NULL},         \
      {"/sys/bus/pci/devices/0000:00:05.0/device", "0x2230\n", NULL}, {        \
    "/sys/bus/pci/devices/0000:00:05.0/driver", NULL, driver                   \
  }

static void second(struct fake *f) {
  static const uint32_t classes[] = {0xc56f, 0xc7c0, 0xc7b5, 0xc661};
  f->gpus[1] = f->gpus[0];
  f->gpus[1].bus = "0000:00:05.0";
  f->gpus[1].minor = 1;
  memcpy(f->gpus[1].classes, classes, sizeof classes);
  f->gpus[1].nclasses = COUNT(classes);
  f->gpus[1].sm_version = 0x806;
  f->ngpus = 2;
}
static void second_of_vfio(struct fake *f) {
  second(f);
  f->gpus[1].driven = false;
}
static void second_unknown(struct fake *f) {
  second(f);
  f->gpus[1].sm_version = 0x1234;
}
static void no_functions(struct fake *f) {
  second(f);
  f->no_sysfs = true;
}
static void no_driver(struct fake *f) {
  f->no_sysfs = true;
  f->no_driver = true;
}
static void no_functions_nor_second(struct fake *f) {
  no_functions(f);
  f->gpus[1].opens = false;
}
static void no_functions_615(struct fake *f) {
  no_functions(f);
  f->version = "615.71.09";
}
static void release_615(struct fake *f) { f->version = "615.71.09"; }
static void does_not_close(struct fake *f) { f->fail_name = "UVM_FREE"; }

#define H200 "0000:00:06.0", "0x2335", "nvidia"
#define H200_STATES NULL, "sm_90", {0xc86f, 0xcbc0, 0xc8b5}, 144
#define GA102_STATES NULL, "sm_86", {0xc56f, 0xc7c0, 0xc7b5}, 144
#define NOTHING NULL, {0}, 0

static const struct {
  const char *name;
  size_t n;
  struct {
    const char *bus, *device, *driver;
    const char *reason; /* in it; NULL: it opens */
    const char *arch;
    uint32_t classes[3], sms;
  } gpus[GPUS];
  void (*driver)(struct fake *);
  struct change changes[CHANGES];
} rows[] = {
    {"one", 1, {{H200, H200_STATES}}, NULL, {{0}}},
    {"two, in bus order",
     2,
     {{"0000:00:05.0", "0x2230", "nvidia", GA102_STATES}, {H200, H200_STATES}},
     second,
     {SECOND("../drivers/nvidia")}},
    {"one for a virtual machine",
     2,
     {{"0000:00:05.0", "0x2230", "vfio-pci", "does not have it", NOTHING},
      {H200, H200_STATES}},
     second_of_vfio,
     {SECOND("../drivers/vfio-pci")}},
    {"one of an unknown architecture, with no driver's link",
     2,
     {{"0000:00:05.0", "0x2230", "", NULL, NULL, {0xc56f, 0xc7c0, 0xc7b5}, 144},
      {H200, H200_STATES}},
     second_unknown,
     {SECOND(NULL)}},
    {"the driver's own list",
     2,
     {{"0000:00:05.0", "?", "", GA102_STATES},
      {"0000:00:06.0", "?", "", H200_STATES}},
     no_functions,
     {{"/sys/bus", NULL, NULL}}},
    {"the driver's own list, where one does not open",
     2,
     {{"?", "?", "", "Permission denied", NOTHING},
      {"0000:00:06.0", "?", "", H200_STATES}},
     no_functions_nor_second,
     {{"/sys/bus", NULL, NULL}}},
    {"the driver's own list, of a release that is not supported",
     0,
     {{0}},
     no_functions_615,
     {{"/sys/bus", NULL, NULL}}},
    {"none", 0, {{0}}, no_driver, {{"/sys/bus", NULL, NULL}}},
    {"a release that is not supported",
     1,
     {{H200, "615.71.09", NOTHING}},
     release_615,
     {{0}}},
    {"one that does not close",
     1,
     {{H200, "close: UVM_FREE", "sm_90", {0xc86f, 0xcbc0, 0xc8b5}, 144}},
     does_not_close,
     {{0}}},
};

static void judge(const char *name, size_t i, const struct gpus_one *g,
                  const char *reason, const char *arch,
                  const uint32_t classes[3], uint32_t sms) {
  const char *is = g->arch != NULL ? g->arch : "";
  if (g->opens != (reason == NULL) ||
      (reason != NULL && strstr(g->reason, reason) == NULL))
    fail_msg("%s: GPU %zu: %s", name, i, g->reason);
  if (strcmp(is, arch != NULL ? arch : "") != 0 ||
      g->gpu.channel_class != classes[0] ||
      g->gpu.compute_class != classes[1] || g->gpu.copy_class != classes[2] ||
      gpus_sms(&g->gpu) != sms)
    fail_msg("%s: GPU %zu: %s, class %x, %u SMs", name, i, is,
             g->gpu.channel_class, gpus_sms(&g->gpu));
  if (g->opens)
    assert_int_equal(g->memory, UINT64_C(1) << 30);
  if (g->opens)
    assert_int_equal(g->cache_bytes, 62914560);
}

static void test_list(void **state) {
  static struct gpus_one list[SYSTEM_GPUS];
  (void)state;
  for (size_t i = 0; i < COUNT(rows); i++) {
    struct machine m;
    machine_make(&m, rows[i].changes, CHANGES, rows[i].driver);
    size_t n = gpus_list(&m.system, list);
    if (n != rows[i].n)
      fail_msg("%s: %zu GPUs", rows[i].name, n);
    for (size_t k = 0; k < n; k++) {
      assert_string_equal(list[k].at.bus, rows[i].gpus[k].bus);
      assert_string_equal(list[k].at.device, rows[i].gpus[k].device);
      assert_string_equal(list[k].at.driver, rows[i].gpus[k].driver);
      judge(rows[i].name, k, &list[k], rows[i].gpus[k].reason,
            rows[i].gpus[k].arch, rows[i].gpus[k].classes, rows[i].gpus[k].sms);
    }
    machine_end(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_list)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
