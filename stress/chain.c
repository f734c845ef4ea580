/* SPDX-License-Identifier: ISC */
#include "stress/chain.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  LINE = 64,
  SEGMENT_BYTES = 3 * RIG_NV_MOST_WORDS * 4,
  TAG_LINK_BITS = 40 /* of a tag: the link; above it the thread, from 1 */
};

/* The region: last | count[threads], a line each | before[] | segments[]. */
static uint64_t count_at(unsigned thread) { return LINE * (1 + thread); }

static uint64_t slot_of(const struct chain *c, unsigned thread, uint64_t link) {
  return (uint64_t)thread * c->each + (link - c->thread[thread].begun - 1);
}

static uint64_t before_at(const struct chain *c, uint64_t slot) {
  return LINE * (1 + (uint64_t)c->threads) + 8 * slot;
}

static uint64_t segment_at(const struct chain *c, uint64_t slot) {
  return before_at(c, (uint64_t)c->threads * c->each) + SEGMENT_BYTES * slot;
}

static uint64_t tag_of(unsigned thread, uint64_t link) {
  return (uint64_t)(thread + 1) << TAG_LINK_BITS | link;
}

static uint64_t word_at(const struct chain *c, uint64_t at) {
  /* Acquire: partner, the channel's release. */
  return __atomic_load_n((uint64_t *)(c->host + at), __ATOMIC_ACQUIRE);
}

int chain_make(struct rig_nv *device, unsigned threads, unsigned each,
               struct chain *c) {
  *c = (struct chain){.device = device, .threads = threads, .each = each};
  assert(threads >= 1 && threads <= CHAIN_MOST_THREADS && each >= 1);
  size_t slots = (size_t)threads * each;
  c->tags = calloc(slots, sizeof *c->tags);
  bool lacks = !c->tags;
  for (unsigned t = 0; t < threads; t++) {
    c->thread[t].values = calloc(each, sizeof *c->thread[t].values);
    c->thread[t].copied = calloc(each, sizeof *c->thread[t].copied);
    lacks |= !c->thread[t].values || !c->thread[t].copied;
  }
  int e = lacks ? -RIG_NV_HOST_MEMORY
                : rig_nv_alloc(device, RIG_PINNED, segment_at(c, slots),
                               &c->region);
  if (e != 0) {
    (void)chain_end(c); /* there is no region that could fail to go */
    return e;
  }
  struct rig_location l = rig_nv_locate(c->region);
  c->host = l.host;
  c->at = l.address;
  memset(c->host, 0, before_at(c, 0));
  return 0;
}

int chain_end(struct chain *c) {
  int e = c->region ? rig_nv_free(c->device, c->region) : 0;
  for (unsigned t = 0; t < c->threads; t++) {
    free(c->thread[t].values);
    free(c->thread[t].copied);
  }
  free(c->tags);
  *c = (struct chain){0};
  return e;
}

void chain_begin(struct chain *c) {
  c->last = word_at(c, 0);
  for (unsigned t = 0; t < c->threads; t++)
    c->thread[t].begun = c->thread[t].made;
  size_t slots = (size_t)c->threads * c->each;
  memset(c->host + before_at(c, 0), 0, 8 * slots);
}

static size_t put(size_t n, int words) {
  assert(words > 0); /* the encoders take these operands */
  return n + (size_t)words;
}

void chain_link(struct chain *c, unsigned thread, int queue,
                struct rig_part *part) {
  struct chain_thread *me = &c->thread[thread];
  uint64_t link = me->made + 1, slot = slot_of(c, thread, link);
  assert(link - me->begun <= c->each);
  uint32_t w[SEGMENT_BYTES / 4];
  size_t n = 0;
  me->copied[link - me->begun - 1] = queue == RIG_COPY0;
  if (queue == RIG_COPY0)
    n = put(n, rig_nv_copy(w, c->at + before_at(c, slot), c->at, 8));
  n = put(n, rig_nv_release_word(w + n, c->at, tag_of(thread, link)));
  n = put(n, rig_nv_release_word(w + n, c->at + count_at(thread), link));
  memcpy(c->host + segment_at(c, slot), w, 4 * n);
  uint64_t entry = 0;
  int e = rig_nv_gpfifo_entry(c->at + segment_at(c, slot), n, &entry);
  assert(e == 0);
  (void)e;
  me->entry[0] = (uint32_t)entry;
  me->entry[1] = (uint32_t)(entry >> 32);
  *part = rig_part_words(queue, me->entry, 2);
}

void chain_took(struct chain *c, unsigned thread, uint64_t v) {
  struct chain_thread *me = &c->thread[thread];
  me->values[me->made - me->begun] = v;
  me->made++;
  /* Release: partner, chain_wait. Who sees it posts a later value. */
  __atomic_store_n(&me->posted, me->made, __ATOMIC_RELEASE);
}

void chain_wait(const struct chain *c, unsigned of, struct rig_wait *w) {
  w->kind = RIG_WAIT_WORD;
  w->at = c->at + count_at(of);
  /* Acquire: partner, chain_took. */
  w->value = __atomic_load_n(&c->thread[of].posted, __ATOMIC_ACQUIRE);
}

/* Fills in tags by value: each value is there, and once. */
static bool dense(struct chain *c, uint64_t first, uint64_t n, char *what,
                  size_t size) {
  uint64_t taken = 0;
  memset(c->tags, 0, (size_t)c->threads * c->each * sizeof *c->tags);
  for (unsigned t = 0; t < c->threads; t++)
    taken += c->thread[t].made - c->thread[t].begun;
  if (taken != n) {
    snprintf(what, size, "%" PRIu64 " values were given, %" PRIu64 " returned",
             n, taken);
    return false;
  }
  for (unsigned t = 0; t < c->threads; t++)
    for (uint64_t i = c->thread[t].begun; i < c->thread[t].made; i++) {
      uint64_t v = c->thread[t].values[i - c->thread[t].begun];
      if (v - first >= n || c->tags[v - first] != 0) {
        snprintf(what, size, "value %" PRIu64 " was returned %s", v,
                 v - first >= n ? "and not given" : "twice");
        return false;
      }
      c->tags[v - first] = tag_of(t, i + 1);
    }
  return true;
}

static bool is(const char *name, uint64_t v, uint64_t found, uint64_t expected,
               char *what, size_t size) {
  if (found == expected)
    return true;
  snprintf(what, size,
           "%s value %" PRIu64 ": link %" PRIx64 " is there, not %" PRIx64,
           name, v, found, expected);
  return false;
}

bool chain_check(struct chain *c, uint64_t first, uint64_t last, char *what,
                 size_t size) {
  uint64_t n = last - first + 1, tag = c->last;
  if (!dense(c, first, n, what, size))
    return false;
  for (uint64_t i = 0; i < n; i++) {
    uint64_t before = tag;
    tag = c->tags[i];
    unsigned t = (unsigned)(tag >> TAG_LINK_BITS) - 1;
    uint64_t link = tag & ((UINT64_C(1) << TAG_LINK_BITS) - 1);
    if (c->thread[t].copied[link - c->thread[t].begun - 1] &&
        !is("before", first + i, word_at(c, before_at(c, slot_of(c, t, link))),
            before, what, size))
      return false;
  }
  if (!is("at the end,", last, word_at(c, 0), tag, what, size))
    return false;
  for (unsigned t = 0; t < c->threads; t++)
    if (!is("count after", last, word_at(c, count_at(t)), c->thread[t].made,
            what, size))
      return false;
  return true;
}
