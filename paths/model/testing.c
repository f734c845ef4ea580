/* SPDX-License-Identifier: ISC */
#include "paths/model/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <ck_pr.h>
#include <cmocka.h>

enum { PAGE = 4096, WAIT_MS = 10000 };
enum { RING_0 = 0, USERD_0 = 2 * PAGE, SEGMENTS_0 = 4 * PAGE };

static struct rig_nv_reply reply;

static void ok(bool r, const char *what) {
  if (!r)
    fail_msg("%s: %s", what, reply.text);
  assert_int_equal(reply.is, RIG_NV_OK);
  assert_string_equal(reply.text, "");
}

void bench_set(uint8_t *p, struct abi_rm_field f, uint64_t x) {
  assert_int_equal(rig_nv_params_set(p, 1024, f.at, f.n, x), 0);
}

void bench_group_params(const struct bench *b, uint8_t *p) {
  bench_set(p, b->layout->group.engine_type, 1);
}

void bench_share_params(const struct bench *b, uint8_t *p) {
  bench_set(p, b->layout->share.va_space, b->path->vaspace);
  bench_set(p, b->layout->share.flags, 1);
}

void bench_channel_params(const struct bench *b, int i, uint8_t *p) {
  bench_set(p, b->layout->channel.object_error, b->channel[i].notifier.handle);
  bench_set(p, b->layout->channel.object_buffer, b->block.handle);
  bench_set(p, b->layout->channel.gpfifo_offset,
            b->block.address + RING_0 + (uint64_t)i * PAGE);
  bench_set(p, b->layout->channel.gpfifo_entries, BENCH_ENTRIES);
  bench_set(p, b->layout->channel.context_share, b->share);
  bench_set(p, b->layout->channel.userd_memory_0, b->block.handle);
  bench_set(p, b->layout->channel.userd_offset_0, USERD_0 + (uint64_t)i * PAGE);
}

void bench_debugger_params(const struct bench *b, uint8_t *p) {
  bench_set(p, b->layout->debugger.app_client, b->path->rm.client);
  bench_set(p, b->layout->debugger.class_3d_object, b->channel[0].engine);
}

static uint32_t make(struct bench *b, uint32_t parent, uint32_t cls, uint8_t *p,
                     size_t bytes, const char *what) {
  uint32_t object = 0;
  ok(b->path->rm.alloc(b->path->ctx, parent, cls, p, bytes, &object, &reply),
     what);
  return object;
}

static void take(struct bench *b, uint64_t n, struct rig_nv_memory *m) {
  ok(b->path->alloc(b->path->ctx, RIG_PINNED, n, 0, m, &reply), "alloc");
  memset(m->host, 0, n);
}

static void make_channel(struct bench *b, int i) {
  struct bench_channel *c = &b->channel[i];
  const struct rig_nv_path *p = b->path;
  uint8_t params[1024] = {0};
  take(b, PAGE, &c->notifier);
  bench_channel_params(b, i, params);
  c->handle = make(b, b->group, p->gpu.channel_class, params,
                   b->layout->channel.bytes, "channel");
  c->engine = make(b, c->handle, i ? p->gpu.copy_class : p->gpu.compute_class,
                   NULL, 0, "engine");
  ok(p->rm.token(p->ctx, c->handle, &c->token, &reply), "token");
  ok(p->register_channel(p->ctx, c->handle, &reply), "register");
}

void bench_open(struct bench *b, const struct rig_nv_model_options *options) {
  uint8_t params[1024] = {0};
  memset(b, 0, sizeof *b);
  if (rig_nv_path_model(options, &b->path))
    fail_msg("%s", rig_nv_why());
  const struct rig_nv_path *p = b->path;
  b->layout = abi_rm_layout(p->rm.release);
  take(b, SEGMENTS_0 + 2 * BENCH_SEGMENT, &b->block);
  take(b, BENCH_DATA + BENCH_DATA_BYTES, &b->words);
  bench_group_params(b, params);
  b->group =
      make(b, p->device, 0xa06c, params, b->layout->group.bytes, "group");
  memset(params, 0, sizeof params);
  bench_share_params(b, params);
  b->share = make(b, b->group, 0x9067, params, b->layout->share.bytes, "share");
  make_channel(b, 0);
  make_channel(b, 1);
  memset(params, 0, sizeof params);
  bench_debugger_params(b, params);
  b->debugger =
      make(b, p->device, 0x83de, params, b->layout->debugger.bytes, "debugger");
  memset(params, 0, sizeof params);
  bench_set(params, b->layout->schedule.enable, 1);
  ok(p->rm.schedule(p->ctx, b->group, params, b->layout->schedule.bytes,
                    &reply),
     "schedule");
  ok(p->rm.boost(p->ctx, p->subdevice, &reply), "boost");
}

void bench_close(struct bench *b) {
  const struct rig_nv_path *p = b->path;
  if (p->rm.frees) {
    for (int i = 0; i < 2; i++)
      ok(p->unregister_channel(p->ctx, b->channel[i].handle, &reply),
         "unregister");
    ok(p->rm.free(p->ctx, p->device, b->debugger, &reply), "free debugger");
    ok(p->rm.free(p->ctx, p->device, b->group, &reply), "free group");
    assert_int_equal(p->stop(p->ctx), RIG_NV_UNKNOWN);
  } else
    assert_int_equal(p->stop(p->ctx), RIG_NV_STOPPED);
  for (int i = 0; i < 2; i++)
    ok(p->free(p->ctx, &b->channel[i].notifier, &reply), "free notifier");
  ok(p->free(p->ctx, &b->block, &reply), "free block");
  ok(p->free(p->ctx, &b->words, &reply), "free words");
  if (rig_nv_path_close(p))
    fail_msg("%s", rig_nv_why());
}

void bench_entry(struct bench *b, int i, uint64_t entry) {
  struct bench_channel *c = &b->channel[i];
  uint64_t *ring =
      (uint64_t *)(void *)((char *)b->block.host + RING_0 + (size_t)i * PAGE);
  ring[c->put] = entry;
  c->put = (c->put + 1) % BENCH_ENTRIES;
}

void bench_push(struct bench *b, int i, const uint32_t *words, size_t n) {
  struct bench_channel *c = &b->channel[i];
  uint64_t at = SEGMENTS_0 + (uint64_t)i * BENCH_SEGMENT;
  if (c->written + 4 * n > BENCH_SEGMENT)
    c->written = 0; /* tests push less than a ring at a time */
  at += c->written;
  memcpy((char *)b->block.host + at, words, 4 * n);
  c->written += 4 * n;
  bench_entry(b, i,
              (b->block.address + at) | UINT64_C(1) << 41 | (uint64_t)n << 42);
}

void bench_put(struct bench *b, int i) {
  char *userd = (char *)b->block.host + USERD_0 + (size_t)i * PAGE;
  ck_pr_fence_release(); /* partner: the engine's look at GP_PUT */
  ck_pr_store_32((uint32_t *)(void *)(userd + 0x8c), b->channel[i].put);
}

void bench_ring(struct bench *b, int i) {
  bench_put(b, i);
  ck_pr_fence_release(); /* partner: the engine's look at the doorbell */
  ck_pr_store_32((uint32_t *)b->path->doorbell, b->channel[i].token);
}

void bench_run(struct bench *b, int i, const uint32_t *words, size_t n) {
  bench_push(b, i, words, n);
  bench_ring(b, i);
}

uint64_t bench_word_at(const struct bench *b, int i) {
  return b->words.address + 8 * (uint64_t)i;
}

uint64_t *bench_word(const struct bench *b, int i) {
  return (uint64_t *)b->words.host + i;
}

uint64_t bench_data_at(const struct bench *b, uint64_t i) {
  return b->words.address + BENCH_DATA + i;
}

uint8_t *bench_data(const struct bench *b, uint64_t i) {
  return (uint8_t *)b->words.host + BENCH_DATA + i;
}

uint64_t bench_load(uint64_t *word) {
  uint64_t x = ck_pr_load_64(word);
  ck_pr_fence_acquire(); /* partner: the engine's release of the word */
  return x;
}

void bench_store(uint64_t *word, uint64_t x) {
  ck_pr_fence_release(); /* partner: the engine's acquire of the word */
  ck_pr_store_64(word, x);
}

void bench_sleep_ms(int ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
  nanosleep(&t, NULL);
}

bool bench_wait(uint64_t *word, uint64_t x) {
  for (int ms = 0; ms < WAIT_MS; ms++) {
    if (bench_load(word) == x)
      return true;
    bench_sleep_ms(1);
  }
  return false;
}

uint16_t bench_status(struct bench *b, int i) {
  char *p = b->channel[i].notifier.host;
  uint16_t s = ck_pr_load_16(
      (uint16_t *)(void *)(p + b->layout->notification.status.at));
  ck_pr_fence_acquire(); /* pairs with the model's store of the status */
  return s;
}

uint32_t bench_wait_error(struct bench *b, int i) {
  char *p = b->channel[i].notifier.host;
  for (int ms = 0; ms < WAIT_MS; ms++) {
    if (bench_status(b, i))
      return ck_pr_load_32(
          (uint32_t *)(void *)(p + b->layout->notification.info_32.at));
    bench_sleep_ms(1);
  }
  return 0;
}
