/* SPDX-License-Identifier: ISC */
/*
 * How other PCI functions reach memory, over the fake driver.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/device.h"
#include "paths/nvidia/fake.h"
#include "paths/nvidia/nvidia.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define NIC "0000:41:00.0"
#define MIB (UINT64_C(1) << 20)

static const struct {
  const char *name;
  const char *fn;
  int kind;
  uint64_t bytes;
  uint64_t buffer; /* its bytes; 0: the answer is `is` */
  bool no_dmabuf;
  const char *fail; /* the call that fails, as `how` */
  enum fake_failure how;
  enum rig_nv_answer is;
  const char *text;
} rows[] = {
    {"Device", NIC, RIG_DEVICE, 4096, 4096, false, NULL, 0, RIG_NV_OK, ""},
    {"Device, its own GPU", "0000:00:06.0", RIG_DEVICE, 4096, 4096, false, NULL,
     0, RIG_NV_OK, ""},
    {"odd bytes: whole pages", NIC, RIG_DEVICE, 5000, 8192, false, NULL, 0,
     RIG_NV_OK, ""},
    {"large pages", NIC, RIG_DEVICE, 8 * MIB + 4, 10 * MIB, false, NULL, 0,
     RIG_NV_OK, ""},
    {"Mapped", NIC, RIG_MAPPED, 65536, 65536, false, NULL, 0, RIG_NV_OK, ""},
    {"Pinned", NIC, RIG_PINNED, 4096, 0, false, NULL, 0, RIG_NV_DENIED,
     "dma: function " NIC ": Pinned memory"},
    {"no function", "0000:07:00.0", RIG_DEVICE, 4096, 0, false, NULL, 0,
     RIG_NV_DENIED, "no function 0000:07:00.0"},
    {"no address", "nonsense", RIG_DEVICE, 4096, 0, false, NULL, 0,
     RIG_NV_DENIED, "nonsense is no address"},
    {"more behind it", NIC "0", RIG_DEVICE, 4096, 0, false, NULL, 0,
     RIG_NV_DENIED, NIC "0 is no address"},
    {"NULL", NULL, RIG_DEVICE, 4096, 0, false, NULL, 0, RIG_NV_DENIED,
     "(null) is no address"},
    {"a kernel without", NIC, RIG_DEVICE, 4096, 0, true, NULL, 0, RIG_NV_DENIED,
     "export as a DMA buffer: NV status 0x56 (not supported)"},
    {"no memory", NIC, RIG_MAPPED, 4096, 0, false, "NV_ESC_EXPORT_TO_DMABUF_FD",
     FAKE_STATUS, RIG_NV_LACKING,
     "export as a DMA buffer: NV status 0x51 (no memory)"},
    {"refused", NIC, RIG_DEVICE, 4096, 0, false, "NV_ESC_EXPORT_TO_DMABUF_FD",
     FAKE_REFUSED, RIG_NV_DENIED, "export as a DMA buffer: NV status 0x1f"},
    {"an old kernel", NIC, RIG_DEVICE, 4096, 0, false,
     "NV_ESC_EXPORT_TO_DMABUF_FD", FAKE_ERRNO, RIG_NV_LACKING,
     "export as a DMA buffer: "},
    {"failed", NIC, RIG_DEVICE, 4096, 0, false, "NV_ESC_EXPORT_TO_DMABUF_FD",
     FAKE_EIO, RIG_NV_FAULTED, "export as a DMA buffer: "},
};

static void fake_with_nic(struct fake *f, const char *version, int release) {
  fake_init(f);
  f->version = version;
  f->release = release;
  f->ngpus = 2;
  f->gpus[1] =
      (struct fake_gpu){.bus = NIC, .vendor = 0x15b3, .class24 = 0x020700};
}

static void one(struct fake *f, const struct rig_nv_path *p, size_t i) {
  struct rig_nv_memory m;
  struct rig_nv_reply reply;
  const struct rig_dma none = {.kind = 7, .fd = -3};
  struct rig_dma dma = none;
  struct fake_counts before, after;
  assert_true(p->alloc(p->ctx, (enum rig_memory)rows[i].kind, rows[i].bytes, 0,
                       &m, &reply));
  before = fake_counts(f);
  f->no_dmabuf = rows[i].no_dmabuf;
  f->fail_name = rows[i].fail;
  f->failure = rows[i].how;
  bool ok = p->dma(p->ctx, &m, rows[i].fn, &dma, &reply);
  f->fail_name = NULL;
  if (ok != (rows[i].buffer != 0) || reply.is != rows[i].is ||
      strstr(reply.text, rows[i].text) == NULL)
    fail_msg("%s: %d, %s", rows[i].name, (int)reply.is, reply.text);
  if (ok) {
    assert_int_equal(dma.kind, RIG_DMA_BUF);
    assert_int_equal(dma.offset, 0);
    assert_int_equal(dma.bytes, rows[i].bytes);
    assert_int_equal(fake_buffer(f, dma.fd), rows[i].buffer);
    assert_true(p->free(p->ctx, &m, &reply));
    /* It outlives the memory. */
    assert_int_equal(fake_buffer(f, dma.fd), rows[i].buffer);
    assert_int_equal(f->os.close(f, dma.fd), 0);
  } else {
    assert_memory_equal(&dma, &none, sizeof none);
    after = fake_counts(f);
    assert_memory_equal(&before, &after, sizeof after);
    assert_true(p->free(p->ctx, &m, &reply));
  }
}

static void test_answers(void **state) {
  static const struct {
    const char *version;
    int release;
  } releases[] = {{"570.1", 570}, {"580.1", 580}, {"610.1", 610}};
  (void)state;
  for (size_t k = 0; k < COUNT(releases); k++) {
    struct fake f;
    const struct rig_nv_path *p;
    fake_with_nic(&f, releases[k].version, releases[k].release);
    assert_int_equal(nvidia_open(&f.os, NULL, &p), 0);
    for (size_t i = 0; i < COUNT(rows); i++)
      one(&f, p, i);
    assert_int_equal(rig_nv_path_close(p), 0);
    assert_string_equal(f.broken, "");
    assert_true(fake_nothing(&f));
    fake_end(&f);
  }
}

/* A buffer outlives its region, its device and its path. */
static void test_device(void **state) {
  struct fake f;
  const struct rig_nv_path *p;
  struct rig_nv *d;
  struct rig_nv_region *r;
  struct rig_dma dma;
  (void)state;
  fake_with_nic(&f, "580.1", 580);
  assert_int_equal(nvidia_open(&f.os, NULL, &p), 0);
  assert_int_equal(rig_nv_make(p, NULL, &d), 0);
  assert_int_equal(rig_nv_alloc(d, RIG_DEVICE, 2 * MIB, &r), 0);
  assert_int_equal(rig_nv_dma(d, r, "0000:42:00.0", &dma), -RIG_NV_REFUSED);
  assert_int_equal(rig_nv_dma(d, r, NIC, &dma), 0);
  assert_int_equal(rig_nv_free(d, r), 0);
  assert_int_equal(rig_nv_stop(d, NULL), 0);
  assert_int_equal(rig_nv_release(d), 0);
  assert_int_equal(rig_nv_path_close(p), 0);
  assert_int_equal(fake_buffer(&f, dma.fd), 2 * MIB);
  assert_int_equal(f.os.close(&f, dma.fd), 0);
  assert_true(fake_nothing(&f));
  assert_string_equal(f.broken, "");
  fake_end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_answers),
      cmocka_unit_test(test_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
