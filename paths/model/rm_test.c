/* SPDX-License-Identifier: ISC */
/*
 * Every refusal of the RM, its answer and its text; and what a refusal leaves
 * as it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "paths/model/testing.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { GROUP = 0xa06c, SHARE = 0x9067, DEBUGGER = 0x83de, CHANNEL = 0xc86f };
enum { COMPUTE = 0xcbc0, COPY = 0xc8b5 };

static struct bench b;

/* Parents that a case names, of the bench's objects. */
enum parent {
  DEVICE,
  SUBDEVICE,
  OF_GROUP,
  OF_SHARE,
  OF_CHANNEL,
  OF_ENGINE,
  NOBODY
};

static uint32_t object(enum parent p) {
  const uint32_t handles[] = {
      b.path->device,      b.path->subdevice,   b.group, b.share,
      b.channel[0].handle, b.channel[0].engine, 0x12345};
  return handles[p];
}

/* One field that a case changes, and to what. */
enum field {
  NONE,
  ENGINE_TYPE,
  GROUP_SPACE,
  SPACE,
  FLAGS,
  ERROR,
  BUFFER,
  OFFSET,
  ENTRIES,
  CONTEXT,
  USERD,
  USERD_AT,
  CLIENT,
  OBJECT
};

static struct abi_rm_field field(enum field f) {
  const struct abi_rm_layout *l = b.layout;
  const struct abi_rm_field fields[] = {[ENGINE_TYPE] = l->group.engine_type,
                                        [GROUP_SPACE] = l->group.va_space,
                                        [SPACE] = l->share.va_space,
                                        [FLAGS] = l->share.flags,
                                        [ERROR] = l->channel.object_error,
                                        [BUFFER] = l->channel.object_buffer,
                                        [OFFSET] = l->channel.gpfifo_offset,
                                        [ENTRIES] = l->channel.gpfifo_entries,
                                        [CONTEXT] = l->channel.context_share,
                                        [USERD] = l->channel.userd_memory_0,
                                        [USERD_AT] = l->channel.userd_offset_0,
                                        [CLIENT] = l->debugger.app_client,
                                        [OBJECT] = l->debugger.class_3d_object};
  return fields[f];
}

static size_t params(uint32_t cls, uint8_t *p) {
  switch (cls) {
  case GROUP:
    bench_group_params(&b, p);
    return b.layout->group.bytes;
  case SHARE:
    bench_share_params(&b, p);
    return b.layout->share.bytes;
  case CHANNEL:
    bench_channel_params(&b, 0, p);
    /* USERD of its own: the bench's channel has its own. */
    bench_set(p, b.layout->channel.userd_offset_0, 4096 * 2 + 512);
    return b.layout->channel.bytes;
  case DEBUGGER:
    bench_debugger_params(&b, p);
    return b.layout->debugger.bytes;
  default:
    return 0;
  }
}

static const struct {
  const char *name;
  enum parent parent;
  uint32_t cls;
  int more; /* bytes of parameters beside the layout's */
  enum field field;
  uint64_t value;
  const char *text; /* "" where it is allowed */
} allocs[] = {
    {"unknown class", DEVICE, 0xc6c0, 0, NONE, 0,
     "alloc class 0xc6c0: NV status 0x22"},
    {"class 0", DEVICE, 0, 0, NONE, 0, "alloc class 0x0: NV status 0x22"},
    {"unknown parent", NOBODY, GROUP, 0, NONE, 0,
     "alloc class 0xa06c: parent 0x12345: NV status 0x33"},
    {"group's parent", SUBDEVICE, GROUP, 0, NONE, 0, "NV status 0x36"},
    {"share's parent", DEVICE, SHARE, 0, NONE, 0,
     "alloc class 0x9067: parent 0xcaf00001 of class 0x80: NV status 0x36"},
    {"channel's parent", DEVICE, CHANNEL, 0, NONE, 0, "NV status 0x36"},
    {"channel under share", OF_SHARE, CHANNEL, 0, NONE, 0, "NV status 0x36"},
    {"engine's parent", OF_GROUP, COPY, 0, NONE, 0, "NV status 0x36"},
    {"debugger's parent", OF_GROUP, DEBUGGER, 0, NONE, 0, "NV status 0x36"},
    {"another channel class", OF_GROUP, 0xc56f, 0, NONE, 0, "status 0x22"},

    {"group", DEVICE, GROUP, 0, NONE, 0, ""},
    {"group's bytes", DEVICE, GROUP, -1, NONE, 0,
     "alloc class 0xa06c: 19 bytes of parameters, not 20: NV status 0x1f"},
    {"group's engine", DEVICE, GROUP, 0, ENGINE_TYPE, 9, "engineType 9"},
    {"group's space", DEVICE, GROUP, 0, GROUP_SPACE, 3, "hVASpace 0x3"},

    {"share", OF_GROUP, SHARE, 0, NONE, 0, ""},
    {"share's bytes", OF_GROUP, SHARE, 4, NONE, 0, "16 bytes of parameters"},
    {"share's space", OF_GROUP, SHARE, 0, SPACE, 0, "hVASpace 0x0"},
    {"share's flags", OF_GROUP, SHARE, 0, FLAGS, 2, "flags 0x2"},

    {"channel", OF_GROUP, CHANNEL, 0, NONE, 0, ""},
    {"channel's bytes", OF_GROUP, CHANNEL, 8, NONE, 0,
     "alloc channel: bytes of parameters 0x178: NV status 0x1f"},
    {"no bytes", OF_GROUP, CHANNEL, -368, NONE, 0, "bytes of parameters 0x0"},
    {"notifier", OF_GROUP, CHANNEL, 0, ERROR, 0, "hObjectError 0x0"},
    {"notifier unknown", OF_GROUP, CHANNEL, 0, ERROR, 77, "hObjectError 0x4d"},
    {"no buffer", OF_GROUP, CHANNEL, 0, BUFFER, 0, ""},
    {"buffer", OF_GROUP, CHANNEL, 0, BUFFER, 77, "hObjectBuffer 0x4d"},
    {"ring nowhere", OF_GROUP, CHANNEL, 0, OFFSET, 0x5000,
     "gpFifoOffset is no memory for all entries: 0x5000: NV status 0x1e"},
    {"ring at 0", OF_GROUP, CHANNEL, 0, OFFSET, 0, "gpFifoOffset"},
    {"no entries", OF_GROUP, CHANNEL, 0, ENTRIES, 0, "gpFifoEntries 0x0"},
    {"odd entries", OF_GROUP, CHANNEL, 0, ENTRIES, 24, "gpFifoEntries 0x18"},
    {"many entries", OF_GROUP, CHANNEL, 0, ENTRIES, 1 << 20, "gpFifoOffset"},
    {"no share", OF_GROUP, CHANNEL, 0, CONTEXT, 0, "hContextShare 0x0"},
    {"userd", OF_GROUP, CHANNEL, 0, USERD, 0, "hUserdMemory[0] 0x0"},
    {"userd inside", OF_GROUP, CHANNEL, 0, USERD_AT, 1 << 20,
     "userdOffset[0] 0x100000"},
    {"userd at its end", OF_GROUP, CHANNEL, 0, USERD_AT, 16384 + 2 * 65536,
     "userdOffset[0]"},
    {"userd aligned", OF_GROUP, CHANNEL, 0, USERD_AT, 256, "userdOffset[0]"},
    {"userd taken", OF_GROUP, CHANNEL, 0, USERD_AT, 8192,
     "userdOffset[0] 0x2000: NV status 0x17"},

    {"copy on compute's", OF_CHANNEL, COPY, 0, NONE, 0, ""},
    {"second engine", OF_CHANNEL, COMPUTE, 0, NONE, 0, "NV status 0x17"},
    {"engine's bytes", OF_CHANNEL, COPY, 8, NONE, 0, "8 bytes of parameters"},

    {"debugger", DEVICE, DEBUGGER, 0, NONE, 0, ""},
    {"debugger's bytes", DEVICE, DEBUGGER, -4, NONE, 0, "8 bytes"},
    {"debugger's client", DEVICE, DEBUGGER, 0, CLIENT, 1, "hAppClient 0x1"},
    {"debugger's object", DEVICE, DEBUGGER, 0, OBJECT, 0, "hClass3dObject 0x0"},
};

static void matches(const char *name, const struct rig_nv_reply *r,
                    const char *text) {
  if (!strstr(r->text, text))
    fail_msg("%s: \"%s\" has no \"%s\"", name, r->text, text);
}

static void allocations(void **state) {
  (void)state;
  const struct rig_nv_path *p = b.path;
  for (size_t i = 0; i < COUNT(allocs); i++) {
    struct model_counts before, after;
    struct rig_nv_reply r;
    uint8_t bytes[1024] = {0};
    uint32_t made = 0xabab;
    size_t n = params(allocs[i].cls, bytes) + (size_t)allocs[i].more;
    if (allocs[i].field)
      bench_set(bytes, field(allocs[i].field), allocs[i].value);
    model_counts(p, &before);
    bool ok = p->rm.alloc(p->ctx, object(allocs[i].parent), allocs[i].cls,
                          bytes, n, &made, &r);
    model_counts(p, &after);
    if (ok != !*allocs[i].text)
      fail_msg("%s: %s", allocs[i].name, r.text);
    assert_int_equal(r.is, ok ? RIG_NV_OK : RIG_NV_DENIED);
    assert_int_equal(after.objects, before.objects + ok);
    matches(allocs[i].name, &r, allocs[i].text);
    if (!ok)
      assert_int_equal(made, 0xabab);
    else if (!p->rm.free(p->ctx, object(allocs[i].parent), made, &r))
      fail_msg("%s: %s", allocs[i].name, r.text);
  }
}

/* A share of another group is no share of this one. */
static void another_share(void **state) {
  (void)state;
  const struct rig_nv_path *p = b.path;
  struct rig_nv_reply r;
  uint8_t bytes[1024] = {0};
  uint32_t group, made;
  size_t n = params(GROUP, bytes);
  assert_true(p->rm.alloc(p->ctx, p->device, GROUP, bytes, n, &group, &r));
  memset(bytes, 0, sizeof bytes);
  n = params(CHANNEL, bytes);
  assert_false(p->rm.alloc(p->ctx, group, CHANNEL, bytes, n, &made, &r));
  matches("share", &r, "hContextShare");
  assert_true(p->rm.free(p->ctx, p->device, group, &r));
}

/* frees and controls: which handle is given, and the text; "" is allowed. */
static void frees(void **state) {
  (void)state;
  const struct rig_nv_path *p = b.path;
  const struct {
    const char *name;
    uint32_t parent, object;
    const char *text;
  } t[] = {
      {"unknown", p->device, 0x999, "free 0x999: NV status 0x33"},
      {"0", p->device, 0, "NV status 0x33"},
      {"parent", p->subdevice, b.group, "NV status 0x36"},
      {"its own handle", b.group, b.group, "NV status 0x36"},
      {"the device", p->rm.client, p->device, "the path's own"},
      {"the space", p->device, p->vaspace, "the path's own"},
      {"registered", p->device, b.group, "is registered: NV status 0x17"},
      {"registered itself", b.group, b.channel[1].handle, "is registered"},
      {"share in use", b.group, b.share, "uses it: NV status 0x17"},
      {"the debugger", p->device, b.debugger, ""},
      {"twice", p->device, b.debugger, "NV status 0x33"},
      {"an engine", b.channel[1].handle, b.channel[1].engine, ""},
      {"a memory", p->device, b.words.handle, "NV status 0x33"},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    struct rig_nv_reply r;
    bool ok = p->rm.free(p->ctx, t[i].parent, t[i].object, &r);
    if (ok != !*t[i].text)
      fail_msg("%s: %s", t[i].name, r.text);
    assert_int_equal(r.is, ok ? RIG_NV_OK : RIG_NV_DENIED);
    matches(t[i].name, &r, t[i].text);
  }
  uint8_t bytes[1024] = {0};
  struct rig_nv_reply r;
  size_t n = params(DEBUGGER, bytes);
  assert_true(
      p->rm.alloc(p->ctx, p->device, DEBUGGER, bytes, n, &b.debugger, &r));
}

enum call {
  TOKEN,
  SCHEDULE,
  BOOST,
  SM_ERRORS,
  MMU_FAULTS,
  REGISTER,
  UNREGISTER
};

static bool control(enum call c, uint32_t h, uint8_t *p, size_t n,
                    struct rig_nv_reply *r) {
  const struct rig_nv_path *t = b.path;
  uint32_t token;
  return c == TOKEN        ? t->rm.token(t->ctx, h, &token, r)
         : c == SCHEDULE   ? t->rm.schedule(t->ctx, h, p, n, r)
         : c == BOOST      ? t->rm.boost(t->ctx, h, r)
         : c == SM_ERRORS  ? t->rm.sm_errors(t->ctx, h, p, n, r)
         : c == MMU_FAULTS ? t->rm.mmu_faults(t->ctx, h, p, n, r)
         : c == REGISTER   ? t->register_channel(t->ctx, h, r)
                           : t->unregister_channel(t->ctx, h, r);
}

static void controls(void **state) {
  (void)state;
  uint32_t chan = b.channel[0].handle, made;
  struct rig_nv_reply r;
  uint8_t bytes[1024] = {0};
  size_t n = params(GROUP, bytes);
  const struct rig_nv_path *p = b.path;
  assert_true(p->rm.alloc(p->ctx, p->device, GROUP, bytes, n, &made, &r));
  const struct {
    const char *name;
    enum call call;
    uint32_t handle;
    size_t bytes;
    const char *text;
  } t[] = {
      {"token", TOKEN, b.group, 0, "token: channel 0x"},
      {"token 0", TOKEN, 0, 0, "token: channel 0x0: NV status 0x33"},
      {"schedule", SCHEDULE, b.group, 3, ""},
      {"schedule a channel", SCHEDULE, chan, 3, "schedule: group 0x"},
      {"schedule none", SCHEDULE, made, 3, "has no channel: NV status 0x40"},
      {"schedule bytes", SCHEDULE, b.group, 2,
       "schedule: 2 bytes of parameters, not 3: NV status 0x1f"},
      {"boost", BOOST, p->device, 0, "boost: subdevice 0x"},
      {"sm_errors", SM_ERRORS, b.group, 4824, "sm_errors: debugger 0x"},
      {"sm_errors bytes", SM_ERRORS, b.debugger, 4820,
       "sm_errors: 4820 bytes of parameters, not 4824"},
      {"sm_errors channel", SM_ERRORS, b.debugger, 4824,
       "sm_errors: channel 0x0: NV status 0x33"},
      {"mmu_faults", MMU_FAULTS, p->device, 72, "mmu_faults: debugger 0x"},
      {"mmu_faults bytes", MMU_FAULTS, b.debugger, 64, "64 bytes"},
      {"mmu_faults none yet", MMU_FAULTS, b.debugger, 72, ""},
      {"register twice", REGISTER, chan, 0, "is registered: NV status 0x40"},
      {"register a group", REGISTER, b.group, 0, "register: channel 0x"},
      {"unregister a group", UNREGISTER, b.group, 0, "unregister: channel 0x"},
      {"unregister", UNREGISTER, chan, 0, ""},
      {"unregister twice", UNREGISTER, chan, 0, "is not registered"},
      {"schedule it", SCHEDULE, b.group, 3,
       "is not registered: NV status 0x40"},
      {"register", REGISTER, chan, 0, ""},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    static uint8_t big[8192];
    memset(big, 0, sizeof big);
    if (t[i].call == SCHEDULE)
      big[0] = 1;
    bool ok = control(t[i].call, t[i].handle, big, t[i].bytes, &r);
    if (ok != !*t[i].text)
      fail_msg("%s: %s", t[i].name, r.text);
    assert_int_equal(r.is, ok ? RIG_NV_OK : RIG_NV_DENIED);
    matches(t[i].name, &r, t[i].text);
  }
  assert_true(p->rm.free(p->ctx, p->device, made, &r));
}

/* Objects end: LACKING, with every one of them given back. */
static void lacking(void **state) {
  (void)state;
  const struct rig_nv_path *p = b.path;
  static uint32_t made[5000];
  struct rig_nv_reply r;
  uint8_t bytes[1024] = {0};
  size_t n = params(GROUP, bytes), i = 0;
  while (i < COUNT(made) &&
         p->rm.alloc(p->ctx, p->device, GROUP, bytes, n, &made[i], &r))
    i++;
  assert_true(i < COUNT(made));
  assert_int_equal(r.is, RIG_NV_LACKING);
  matches("groups", &r, "alloc class 0xa06c: NV status 0x1a");
  while (i--)
    assert_true(p->rm.free(p->ctx, p->device, made[i], &r));
}

/* What frees nothing refuses a free. */
static void pci(void **state) {
  (void)state;
  struct bench c;
  struct rig_nv_reply r;
  struct rig_nv_model_options o;
  rig_nv_model_options_init(&o);
  o.personality = RIG_NV_LIKE_PCI;
  bench_open(&c, &o);
  assert_false(c.path->rm.frees);
  assert_false(c.path->rm.free(c.path->ctx, c.path->device, c.group, &r));
  matches("free", &r, "frees no object");
  bench_close(&c);
}

static int open_bench(void **state) {
  (void)state;
  bench_open(&b, NULL);
  return 0;
}

static int close_bench(void **state) {
  (void)state;
  bench_close(&b);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(allocations, open_bench, close_bench),
      cmocka_unit_test_setup_teardown(another_share, open_bench, close_bench),
      cmocka_unit_test_setup_teardown(frees, open_bench, close_bench),
      cmocka_unit_test_setup_teardown(controls, open_bench, close_bench),
      cmocka_unit_test_setup_teardown(lacking, open_bench, close_bench),
      cmocka_unit_test(pci),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
