/* SPDX-License-Identifier: ISC */
#include <ck_pr.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/device.h"
#include "stress/kernels.h"
#include "stress/smoke.h"

enum { OTHERS = 4, LONG_S = 60 };

/* Others post while rings grow: the n-th value of each stores n. */
struct other {
  struct smoke *smoke;
  pthread_t thread;
  struct rig_nv_region *region; /* two words: what to copy from, and to */
  uint32_t *stop;
  uint64_t posts;
  bool failed;
};

static uint64_t soon(void) {
  return device_now() + LONG_S * UINT64_C(1000000000);
}

static void *others_post(void *arg) {
  struct other *o = arg;
  struct rig_nv *d = o->smoke->device;
  struct rig_location l = rig_nv_locate(o->region);
  volatile uint64_t *words = l.host;
  struct rig_part p = rig_part_copy(l.address + 8, l.address, 8);
  struct rig_submission s = {.parts = &p, .nparts = 1};
  while (!ck_pr_load_32(o->stop) && !o->failed) {
    uint64_t v;
    words[0] = ++o->posts;
    if (rig_nv_post_wait(d, &s, soon(), &v) != 0 ||
        rig_nv_wait(d, v, soon()) != 0)
      o->failed = !smoke_failed("a post beside a growth: %s", rig_nv_why());
    else if (words[1] != o->posts)
      o->failed = !smoke_failed("a copy beside a growth wrote %" PRIu64
                                ", not %" PRIu64,
                                words[1], o->posts);
  }
  return NULL;
}

/* Posts it, growing, and waits: whether it ran. */
static bool grown(struct smoke *s, const char *what,
                  const struct rig_submission *sub) {
  uint64_t v, begun = device_now();
  int r = rig_nv_post_grow(s->device, sub, soon(), &v);
  uint64_t posted = device_now();
  if (r != 0)
    return smoke_failed("%s: %d, %s", what, r, r < 0 ? rig_nv_why() : "");
  if (rig_nv_wait(s->device, v, soon()) != 0)
    return smoke_failed("%s: %s", what, rig_nv_why());
  printf("%-23s posted in %" PRIu64 " us, reached after %" PRIu64 " us more\n",
         what, (posted - begun) / 1000, (device_now() - posted) / 1000);
  return true;
}

/* More entries than the rings of the open hold, all of one segment. */
static bool many_entries(struct smoke *s, size_t n) {
  struct rig_nv_region *r;
  uint64_t entry;
  if (rig_nv_alloc(s->device, RIG_PINNED, 4096, &r) != 0)
    return smoke_failed("alloc: %s", rig_nv_why());
  struct rig_location l = rig_nv_locate(r);
  int words = rig_nv_release_word(l.host, l.address + 2048, 0x1234);
  uint32_t *entries = malloc(8 * n);
  if (words < 0 || entries == NULL ||
      rig_nv_gpfifo_entry(l.address, (uint64_t)words, &entry) != 0)
    return smoke_failed("no entries");
  for (size_t i = 0; i < n; i++) {
    entries[2 * i] = (uint32_t)entry;
    entries[2 * i + 1] = (uint32_t)(entry >> 32);
  }
  struct rig_part p = rig_part_words(RIG_COMPUTE0, entries, 2 * n);
  struct rig_submission sub = {.parts = &p, .nparts = 1};
  char what[32];
  snprintf(what, sizeof what, "%zu entries", n);
  bool ok = grown(s, what, &sub);
  uint64_t stored;
  memcpy(&stored, (const char *)l.host + 2048, sizeof stored);
  if (ok && stored != 0x1234)
    ok = smoke_failed("the entries stored %" PRIx64, stored);
  free(entries);
  return rig_nv_free(s->device, r) == 0 && ok;
}

/* Launches that need a larger launch ring: each raises a byte of its own. */
static bool many_launches(struct smoke *s, size_t n) {
  struct kernels k;
  struct rig_nv_region *r;
  struct call {
    _Alignas(16) struct rig_block block;
    uint64_t params[4];
  } *calls = malloc(n * sizeof *calls);
  struct rig_part *parts = malloc(n * sizeof *parts);
  unsigned char *bytes = calloc(2, n);
  bool real = strcmp(s->path_name, "nvidia") == 0;
  if (calls == NULL || parts == NULL || bytes == NULL ||
      kernels_make(s->device, real ? NULL : s->path, &k) != 0 ||
      rig_nv_alloc(s->device, RIG_DEVICE, 2 * n, &r) != 0)
    return smoke_failed("launches: %s", rig_nv_why());
  uint64_t at = rig_nv_locate(r).address;
  for (size_t i = 0; i < n; i++) {
    calls[i] = (struct call){{{1, 1, 1}, {32, 1, 1}, 0, 0},
                             {at + n + i, at + i, 1, 0x80 | i % 127}};
    parts[i] =
        rig_part_launch(k.mix.code, k.mix.launch, (uint32_t)(i * sizeof *calls),
                        sizeof calls->params);
  }
  struct rig_submission sub = {.parts = parts,
                               .nparts = n,
                               .args = calls,
                               .args_bytes = n * sizeof *calls};
  char what[32];
  snprintf(what, sizeof what, "%zu launches", n);
  bool ok = rig_nv_upload(s->device, r, 0, bytes, 2 * n) == 0 &&
            grown(s, what, &sub) &&
            rig_nv_download(s->device, r, 0, bytes, 2 * n) == 0;
  for (size_t i = 0; ok && i < n; i++)
    if (bytes[n + i] != (unsigned char)(0x80 | i % 127))
      ok = smoke_failed("launch %zu wrote %02x", i, bytes[n + i]);
  ok = kernels_end(&k) == 0 && rig_nv_free(s->device, r) == 0 && ok;
  free(calls);
  free(parts);
  free(bytes);
  return ok;
}

bool smoke_growth(struct smoke *s) {
  struct other others[OTHERS] = {{0}};
  uint32_t stop = 0;
  uint64_t posts = 0;
  bool real = strcmp(s->path_name, "nvidia") == 0, ok = true;
  for (int i = 0; i < OTHERS; i++) {
    others[i] = (struct other){.smoke = s, .stop = &stop};
    if (rig_nv_alloc(s->device, RIG_PINNED, 4096, &others[i].region) != 0 ||
        pthread_create(&others[i].thread, NULL, others_post, &others[i]) != 0)
      return smoke_failed("no threads that post");
  }
  ok = many_entries(s, 300000) && many_launches(s, real ? 65536 : 2048) &&
       many_entries(s, real ? 700000 : 300000);
  ck_pr_store_32(&stop, 1);
  for (int i = 0; i < OTHERS; i++) {
    pthread_join(others[i].thread, NULL);
    posts += others[i].posts;
    ok = !others[i].failed && ok;
    ok = rig_nv_free(s->device, others[i].region) == 0 && ok;
  }
  printf("posts beside            %" PRIu64 " of %d threads, one by one\n",
         posts, OTHERS);
  return ok;
}
