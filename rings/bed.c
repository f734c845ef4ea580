/* SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rings/bed.h"
#include "rings/rcu.h"

const struct sizes usual = {64, 64, 8, 0, 0, 0, 0, 64, 0};

const uint32_t foreign[4] = {0x4000, 0x10 << 10, 0x5000, 0x10 << 10};

struct bed *bed_make(const struct sizes *z) {
  struct bed *b = aligned_alloc(_Alignof(struct bed), sizeof *b);
  assert_non_null(b);
  memset(b, 0, sizeof *b);
  b->word = z->v;
  for (int q = 0; q < QUEUES; q++) {
    b->entries[q] = calloc(z->entries, 8);
    b->segments[q] = aligned_alloc(64, (size_t)z->units * 64);
    assert_non_null(b->entries[q]);
    assert_non_null(b->segments[q]);
    memset(b->segments[q], 0xee, (size_t)z->units * 64);
    b->seen[q] = z->start_entries;
    b->seen_of[q] = b->entries[q];
    b->generation.channel[q] =
        (struct ring_channel){.entries = b->entries[q],
                              .n = z->entries,
                              .segments = b->segments[q],
                              .segments_gpu = 0x100000u << q,
                              .units = z->units,
                              .gp_put = &b->gp_put[q],
                              .token = 0x70u + (uint32_t)q};
  }
  b->launches = aligned_alloc(256, ((size_t)z->launches + 1) * 256);
  assert_non_null(b->launches);
  memset(b->launches, 0xee, (size_t)z->launches * 256);
  b->generation.launches = (struct ring_launches){
      .at = b->launches, .gpu = LAUNCHES, .units = z->launches};
  struct cursor c = {.v = z->v,
                     .joins = z->joins,
                     .entries = {z->start_entries, z->start_entries},
                     .units = {z->start_units, z->start_units},
                     .launch = z->start_launch,
                     .freed_launch = z->start_launch,
                     .released_by = NOBODY,
                     .freed_entries = {z->start_entries, z->start_entries},
                     .freed_units = {z->start_units, z->start_units},
                     .owes = 3};
  struct mark *marks = aligned_alloc(64, z->marks * sizeof *marks);
  assert_non_null(marks);
  rings_init(&b->rings, marks, z->marks, &c);
  b->rings.newest = &b->generation;
  b->rings.word = &b->word;
  b->rings.word_gpu = WORD;
  b->rings.join_gpu[0] = JOIN;
  b->rings.join_gpu[1] = JOIN + 0x40;
  b->rings.doorbell = &b->doorbell;
  b->rings.gpu = (struct rig_nv_gpu){.compute_class = 0xcbc0,
                                     .copy_class = 0xc8b5,
                                     .shared_window = 0xff00000000,
                                     .local_window = 0xfe00000000};
  return b;
}

static void *memory(struct bed *b, size_t n) {
  void *p = aligned_alloc(256, (n + 255) / 256 * 256);
  assert_non_null(p);
  assert_true(b->nmemory < sizeof b->memory / sizeof b->memory[0]);
  memset(p, 0xee, n);
  return b->memory[b->nmemory++] = p;
}

void bed_grow(struct bed *b, const struct bed_growth *z) {
  assert_true(b->ngrown < BED_GENERATIONS);
  struct ring_generation *g = &b->grown[b->ngrown++];
  const uint8_t id = b->rings.newest->id + 1;
  *g = *b->rings.newest;
  g->id = id;
  g->older = b->rings.newest;
  for (int q = 0; q < QUEUES; q++) {
    struct ring_channel *c = &g->channel[q];
    if (z->entries[q] != 0) {
      g->channels_born = id;
      c->n = z->entries[q];
      c->entries = memory(b, (size_t)c->n * 8);
      c->gp_put = memory(b, sizeof *c->gp_put);
      *c->gp_put = 0;
      c->token = 0x70u + 2u * id + (uint32_t)q;
    }
    if (z->units[q] != 0) {
      c->segments_born = id;
      c->units = z->units[q];
      c->segments = memory(b, (size_t)c->units * RING_UNIT);
      c->segments_gpu = 0x100000u * 4 * id << q;
    }
  }
  if (z->launches != 0)
    g->launches = (struct ring_launches){.born = id,
                                         .at = memory(b, z->launches * 256u),
                                         .gpu = LAUNCHES + 0x10000u * id,
                                         .units = z->launches};
  ring_rcu_assign(&b->rings.newest, g);
}

void bed_free(struct bed *b) {
  for (unsigned i = 0; i < b->nmemory; i++)
    free(b->memory[i]);
  for (int q = 0; q < QUEUES; q++) {
    free(b->entries[q]);
    free(b->segments[q]);
  }
  free(b->launches);
  free(b->rings.marks.at);
  free(b);
}

static void say(struct bed *b, const char *fmt, ...) {
  size_t n = strlen(b->trace);
  va_list args;
  va_start(args, fmt);
  vsnprintf(b->trace + n, sizeof b->trace - n, fmt, args);
  va_end(args);
}

static uint64_t riap(const uint32_t *high) {
  return (uint64_t)high[0] << 32 | high[1];
}

/* One operation at w as text; the words it takes, or 0. */
static size_t say_operation(struct bed *b, const uint32_t *w) {
  switch (w[0]) {
  case 0x20012000: /* SET_OBJECT on subchannel 1 */
    say(b, " compute(%x)", w[1]);
    return 2;
  case 0x20018000: /* on subchannel 4 */
    say(b, " copy-engine(%x)", w[1]);
    return 2;
  case 0x200221ec:
    say(b, " local(%" PRIx64 ")", riap(w + 1));
    return 3;
  case 0x200220a8:
    say(b, " shared(%" PRIx64 ")", riap(w + 1));
    return 3;
  case 0x200221e4: /* SET_SHADER_LOCAL_MEMORY_A .. */
    if (w[3] != 0x200320b9 || w[6] != 0xff)
      return 0;
    say(b, " local-memory(%" PRIx64 ",%" PRIx64 ")", riap(w + 1), riap(w + 4));
    return 7;
  case 0x200125a6: /* INVALIDATE_SHADER_CACHES_NO_WFI */
    if (w[1] != 0x1011)
      return 0;
    say(b, " invalidate");
    return 2;
  case 0x20012044: /* WAIT_FOR_IDLE */
    say(b, " idle");
    return 2;
  case 0x200120ad: /* SEND_PCAS_A, SEND_SIGNALING_PCAS2_B */
    if (w[2] != 0x200120b0 || w[3] != 9)
      return 0;
    say(b, " launch(%x)", (w[1] << 8) - LAUNCHES);
    return 4;
  case 0x20050017: /* SEM_ADDR_LO .. SEM_EXECUTE */
    say(b, " %s(%" PRIx64 ",%" PRIu64 ")",
        w[5] == 0x01001003   ? "acquire"
        : w[5] == 0x01100001 ? "release"
                             : "?",
        pair(w + 1), pair(w + 3));
    return 6;
  case 0x20048100: /* OFFSET_IN .. */
    if (w[5] != 0x20018106 || w[7] != 0x200180c0 || w[8] != 0x182)
      return 0;
    say(b, " copy(%" PRIx64 ",%" PRIx64 ",%x)", riap(w + 3), riap(w + 1), w[6]);
    return 9;
  case 0x20088100: /* OFFSET_IN .. LINE_COUNT: a box */
    if (w[9] != 0x200180c0 || w[10] != 0x382)
      return 0;
    say(b, " box(%" PRIx64 "+%x,%" PRIx64 "+%x,%xx%x)", riap(w + 3), w[6],
        riap(w + 1), w[5], w[8], w[7]);
    return 11;
  case 0x20028102: /* OFFSET_OUT: a fill */
    if (w[3] != 0x20018106 || w[5] != 0x200181c0 || w[7] != 0x200181c2 ||
        w[9] != 0x200180c0 || w[10] != 0x582)
      return 0;
    say(b, " fill%d(%" PRIx64 ",%x,%x)", (w[8] >> 16 & 3) + 1, riap(w + 1),
        w[6], w[4]);
    return 11;
  case 0x20048090: /* SET_SEMAPHORE .. */
    if (w[5] != 0x200180c0 || w[6] != 0x0800000c)
      return 0;
    say(b, " copy-release(%" PRIx64 ",%" PRIu64 ")", riap(w + 1), pair(w + 3));
    return 7;
  default:
    return 0;
  }
}

static void say_segment(struct bed *b, const uint32_t *w, uint64_t n) {
  for (uint64_t i = 0; i < n;) {
    size_t took = say_operation(b, w + i);
    if (took == 0) {
      say(b, " ?%08x", w[i]);
      return;
    }
    i += took;
  }
}

/* The words of channel q at the GPU address `at`, in whichever segment ring,
 * or NULL. */
static const uint32_t *segment_at(const struct bed *b, int q, uint64_t at) {
  for (const struct ring_generation *g = b->rings.newest; g; g = g->older) {
    const struct ring_channel *c = &g->channel[q];
    if (at >= c->segments_gpu && at < c->segments_gpu + c->units * 64u)
      return (const uint32_t *)(c->segments + (at - c->segments_gpu));
  }
  return NULL;
}

/* The entries that GP_PUT newly shows on channel q; "|" ends a segment. */
static void say_channel(struct bed *b, int q) {
  const struct ring_generation *g = b->rings.newest;
  while (g->id != b->rings.seat.generation)
    g = g->older;
  const struct ring_channel *c = &g->channel[q];
  if (b->seen_of[q] && b->seen_of[q] != c->entries)
    b->seen[q] = 0;
  b->seen_of[q] = c->entries;
  for (; (b->seen[q] & (c->n - 1)) != *c->gp_put; b->seen[q]++) {
    uint64_t e = pair(&c->entries[2 * (b->seen[q] & (c->n - 1))]);
    uint64_t at = e & UINT64_C(0xfffffffffc), n = e >> 42 & 0x1fffff;
    const uint32_t *words = segment_at(b, q, at);
    if (words == NULL) {
      say(b, " entry(%" PRIx64 ")", e);
      continue;
    }
    if ((e & UINT64_C(1) << 41) == 0 || e >> 63 != 0)
      say(b, " ?level");
    say_segment(b, words, n);
    say(b, " |");
  }
}

/* Submits the next value; the trace is what both channels got. */
enum rig_done submit(struct bed *b, const struct rig_submission *s,
                     const char **failure) {
  b->trace[0] = 0;
  b->doorbell = 0;
  enum rig_done done =
      rings_submit(&b->rings, rings_last(&b->rings) + 1, s, failure);
  for (int q = 0; q < QUEUES; q++) {
    say(b, q == COMPUTE ? "COMPUTE" : "; COPY");
    say_channel(b, q);
  }
  return done;
}

void submit_ok(struct bed *b, const struct rig_submission *s) {
  const char *failure = NULL;
  assert_int_equal(rings_room(&b->rings, s), RIG_FITS);
  enum rig_done done = submit(b, s, &failure);
  if (done != RIG_COMMITTED)
    fail_msg("submit: %s", failure);
}
