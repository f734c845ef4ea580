/* SPDX-License-Identifier: ISC */
/*
 * Counts that come around: of the entry and segment rings, by so many
 * submissions that each is gone through; of the word's low half and of all of
 * it, by devices that begin a little before.
 */
#include <ck_pr.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/device.h"
#include "stress/smoke.h"

/* 20,000 submissions a channel of 14 entries each: the rings of the open have
 * 262,144 entries and 1 MiB of segments. */
enum { WRAPS = 40000, ENTRIES = 14, PAGE = 4096, PIECE = 16 };

struct wraps {
  struct smoke *smoke;
  struct rig_nv_region *words, *bytes; /* Pinned */
  uint32_t entries[2][2 * ENTRIES];    /* by queue: each stores the word */
};

/* ENTRIES entries of the queue's, of one segment that stores `x`. */
static bool storing(struct wraps *w, int q, uint64_t x) {
  struct rig_location l = rig_nv_locate(w->words);
  uint32_t *at = (uint32_t *)l.host + q * 64;
  uint64_t gpu = l.address + (uint64_t)q * 256,
           to = l.address + 2048 + (uint64_t)q * 64;
  uint64_t entry;
  int n = q == RIG_COMPUTE0 ? rig_nv_release_word(at, to, x)
                            : rig_nv_copy_release(at, to, x);
  if (n < 0 || rig_nv_gpfifo_entry(gpu, (uint64_t)n, &entry) != 0)
    return smoke_failed("no entry: %s", rig_nv_why());
  for (int i = 0; i < ENTRIES; i++) {
    w->entries[q][2 * i] = (uint32_t)entry;
    w->entries[q][2 * i + 1] = (uint32_t)(entry >> 32);
  }
  return true;
}

static bool posted(struct wraps *w, uint64_t n) {
  uint64_t at = rig_nv_locate(w->bytes).address, v = 0;
  for (uint64_t i = 0; i < n; i++) {
    const int q = (int)(i % 2);
    /* Each moves a piece of its own, from the first half to the second. */
    struct rig_part parts[] = {
        rig_part_words(q, w->entries[q], 2 * ENTRIES),
        rig_part_copy(at + (n + i) * PIECE, at + i * PIECE, PIECE)};
    if (!smoke_post(w->smoke, parts, 2, &v))
      return false;
  }
  return smoke_reach(w->smoke, v);
}

static bool right(const struct wraps *w, uint64_t n) {
  const unsigned char *bytes = rig_nv_locate(w->bytes).host;
  const char *words = rig_nv_locate(w->words).host;
  for (int q = 0; q < 2; q++) {
    uint64_t stored;
    memcpy(&stored, words + 2048 + (size_t)q * 64, sizeof stored);
    if (stored != 0x5a5a + (uint64_t)q)
      return smoke_failed("queue %d stored %" PRIx64, q, stored);
  }
  return memcmp(bytes, bytes + n * PIECE, n * PIECE) == 0 ||
         smoke_failed("a copy is missing");
}

bool smoke_wraps(struct smoke *s) {
  struct wraps w = {.smoke = s};
  const uint64_t n = s->quick ? WRAPS / 20 : WRAPS;
  if (rig_nv_alloc(s->device, RIG_PINNED, PAGE, &w.words) != 0 ||
      rig_nv_alloc(s->device, RIG_PINNED, 2 * n * PIECE, &w.bytes) != 0)
    return smoke_failed("alloc: %s", rig_nv_why());
  unsigned char *bytes = rig_nv_locate(w.bytes).host;
  for (uint64_t i = 0; i < n * PIECE; i++)
    bytes[i] = (unsigned char)(i * 37 ^ i >> 8);
  bool ok = storing(&w, RIG_COMPUTE0, 0x5a5a) && storing(&w, RIG_COPY0, 0x5a5b);
  ok = ok && posted(&w, n) && right(&w, n);
  if (ok)
    printf("wraps                   %" PRIu64 " submissions of %d entries\n", n,
           ENTRIES + 2);
  return (rig_nv_free(s->device, w.words) == 0 &&
          rig_nv_free(s->device, w.bytes) == 0) &&
         ok;
}

/* ---- the word ---- */

/* Reads the word as fast as it can: it never goes back. */
struct reader {
  const uint64_t *word;
  uint64_t start, last, reads;
  uint32_t stop;
  bool back;
};

static void *reads(void *arg) {
  struct reader *r = arg;
  while (!ck_pr_load_32(&r->stop)) {
    uint64_t at = ck_pr_load_64(r->word) - r->start;
    if (at < r->last)
      r->back = true;
    r->last = at;
    r->reads++;
  }
  return NULL;
}

struct poster {
  struct smoke *smoke;
  uint64_t posts, at; /* of a page for it alone */
  int index;
  bool failed;
  pthread_t thread;
};

/* By one channel, the other, and both, one after the other. */
static void *posts(void *arg) {
  struct poster *p = arg;
  static const int fill[1] = {0};
  for (uint64_t i = 0; i < p->posts && !p->failed; i++) {
    struct rig_part parts[2] = {rig_part_fill(p->at, 64, (uint8_t)i),
                                rig_part_words(RIG_COMPUTE0, NULL, 0)};
    uint64_t v;
    size_t n = (i + (unsigned)p->index) % 3;
    if (n == 2) { /* released by COMPUTE, after the copy engine's part */
      parts[1].after = fill;
      parts[1].nafter = 1;
    }
    p->failed = !smoke_post(p->smoke, parts, n, &v) ||
                (i % 256 == 255 && !smoke_reach(p->smoke, v));
  }
  return NULL;
}

static bool raced(struct smoke *s, uint64_t start, uint64_t each) {
  enum { POSTERS = 8 };
  struct poster p[POSTERS] = {{0}};
  struct rig_nv_region *r;
  struct reader reader = {
      .word = (const uint64_t *)rig_nv_facts(s->device)->word, .start = start};
  pthread_t watcher;
  if (rig_nv_alloc(s->device, RIG_DEVICE, POSTERS * PAGE, &r) != 0)
    return smoke_failed("alloc: %s", rig_nv_why());
  bool ok = pthread_create(&watcher, NULL, reads, &reader) == 0;
  for (int i = 0; i < POSTERS; i++) {
    p[i] = (struct poster){.smoke = s,
                           .posts = each,
                           .at = rig_nv_locate(r).address + (uint64_t)i * PAGE,
                           .index = i};
    ok = pthread_create(&p[i].thread, NULL, posts, &p[i]) == 0 && ok;
  }
  if (!ok)
    return smoke_failed("no thread");
  for (int i = 0; i < POSTERS; i++) {
    pthread_join(p[i].thread, NULL);
    ok = !p[i].failed && ok;
  }
  ok = ok && smoke_reach(s, start + POSTERS * each);
  ck_pr_store_32(&reader.stop, 1);
  pthread_join(watcher, NULL);
  if (ok && reader.back)
    ok = smoke_failed("the word went back");
  if (ok && rig_nv_signaled(s->device) != start + POSTERS * each)
    ok = smoke_failed("the word is 0x%" PRIx64, rig_nv_signaled(s->device));
  if (ok)
    printf("word                    0x%" PRIx64 " to 0x%" PRIx64
           ", read %" PRIu64 " times beside: never back\n",
           start, start + POSTERS * each, reader.reads);
  return rig_nv_free(s->device, r) == 0 && ok;
}

bool smoke_carry(struct smoke *s) {
  const uint64_t each = s->quick ? 200 : 20000;
  const uint64_t starts[] = {(UINT64_C(1) << 32) - 4 * each,
                             UINT64_MAX - 4 * each + 1};
  unsigned char *words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (words == MAP_FAILED)
    return smoke_failed("no page of words");
  bool ok = true;
  s->words = words;
  for (size_t i = 0; ok && i < sizeof starts / sizeof starts[0]; i++) {
    memcpy(words, &starts[i], sizeof starts[i]);
    if (!smoke_path_open(s) || !smoke_device_open(s))
      return false;
    ok = raced(s, starts[i], each);
    ok = smoke_device_close(s) && smoke_path_close(s) && ok;
  }
  s->words = NULL;
  munmap(words, PAGE);
  return ok;
}
