/* SPDX-License-Identifier: ISC */
/*
 * submission_fuzz: bytes become submissions, lawful and not, for a device with
 * small rings on the model. Whatever they are:
 *   - room answers one of its four, and RIG_NEVER where the interface says so
 *   - after RIG_FITS, submit commits, or fails for a reason that the interface
 *     names; after another answer, and for another value, it fails
 *   - a failure leaves the next value as it was
 *   - RIG_LATER is never answered once every value is reached
 *   - the word reaches the last value committed, and no other
 *   - no byte changes that no committed part names as a destination
 *
 * Copies past their region and fills are only asked of room. Parts of words
 * name segments that the harness wrote.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/device.h"

enum {
  GROUND = 16384,  /* bytes of each region that copies write */
  CONTROL = 4096,  /* segments at 0, then words */
  HELD = 2048,     /* a word that holds HELD_VALUE always */
  RELEASED = 2056, /* a word that segments release */
  SEGMENTS = 4,    /* the last of them for COPY:0 alone */
  SEGMENT = 256,
  MOST_PARTS = 24,
  MOST_AFTER = 4,
  MOST_WAITS = 300,
  MOST_WORDS = 80,
  MOST_SUBMISSIONS = 64
};
#define HELD_VALUE UINT64_C(1000)

struct bytes {
  const uint8_t *at;
  size_t n;
};

/* MAY_RUN: where room fits them, they run; it may refuse them. */
enum verdict { RUNS, MAY_RUN, ASK_ONLY, MUST_NEVER };

struct ground {
  struct rig_nv_region *region;
  uint64_t address;
  bool named[GROUND]; /* by a committed part */
};

struct world {
  struct rig_nv *device;
  struct ground grounds[2]; /* Pinned, Device */
  struct rig_nv_region *control;
  uint64_t control_address;
  unsigned char *control_host;
  uint64_t entries[SEGMENTS];
  uint64_t last;

  struct rig_submission submission;
  struct rig_part parts[MOST_PARTS];
  int after[MOST_PARTS][MOST_AFTER];
  uint32_t words[MOST_PARTS][MOST_WORDS];
  struct rig_wait waits[MOST_WAITS];
  enum verdict verdict;
  bool bad_waits;
};

#define HOLDS(what, ...)                                                       \
  do {                                                                         \
    if (!(what)) {                                                             \
      fprintf(stderr, "submission_fuzz: not so: " #what "\n  " __VA_ARGS__);   \
      fprintf(stderr, "\n  %s\n", rig_nv_why());                               \
      abort();                                                                 \
    }                                                                          \
  } while (0)

static unsigned byte(struct bytes *b) {
  if (!b->n)
    return 0;
  b->n--;
  return *b->at++;
}

static uint64_t number(struct bytes *b, unsigned bytes) {
  uint64_t x = 0;
  while (bytes--)
    x = x << 8 | byte(b);
  return x;
}

static void worst(struct world *w, enum verdict v) {
  if (v > w->verdict)
    w->verdict = v;
}

/* A copy inside one of the grounds, or one whose numbers mean nothing. */
static void make_copy(struct world *w, struct bytes *b, struct rig_part *p) {
  struct ground *to = &w->grounds[byte(b) & 1],
                *from = &w->grounds[byte(b) & 1];
  uint64_t bytes = number(b, 2) % 600, rows = byte(b) % 5;
  uint64_t dst = number(b, 2), src = number(b, 2);
  uint64_t hull = 1024 + 4 * 1024;
  *p = rig_part_rows(to->address, bytes + byte(b), from->address,
                     bytes + byte(b), rows, bytes);
  p->copy.dst_offset = dst % (GROUND - hull);
  p->copy.src_offset = src % (GROUND - hull);
  if (rows > 1)
    worst(w, MAY_RUN);
  unsigned odd = byte(b);
  if (odd < 16) {
    p->copy.bytes = number(b, 1 + odd % 8);
    p->copy.rows = number(b, odd % 5);
    p->copy.dst_pitch = number(b, odd % 6);
    worst(w, ASK_ONLY);
  }
}

static void make_words(struct world *w, struct bytes *b, struct rig_part *p,
                       uint32_t *words) {
  size_t n = byte(b) % (MOST_WORDS + 1);
  unsigned segments = p->queue == RIG_COPY0 ? SEGMENTS : SEGMENTS - 1;
  for (size_t i = 0; i < n; i += 2) {
    uint64_t entry = w->entries[byte(b) % segments];
    words[i] = (uint32_t)entry;
    if (i + 1 < n)
      words[i + 1] = (uint32_t)(entry >> 32);
  }
  *p = rig_part_words(p->queue, words, n);
  if (n % 2)
    worst(w, MUST_NEVER);
}

static void make_after(struct world *w, struct bytes *b, struct rig_part *p,
                       int *after, int i) {
  unsigned how = byte(b);
  p->after = after;
  p->nafter = how % (MOST_AFTER + 1);
  for (size_t j = 0; j < p->nafter; j++) {
    after[j] = i ? (int)(byte(b) % (unsigned)i) : 0;
    if (how > 240)
      after[j] = (int)byte(b) - 8;
    if (after[j] < 0 || after[j] >= i)
      worst(w, MUST_NEVER);
  }
}

static void make_part(struct world *w, struct bytes *b, int i) {
  struct rig_part *p = &w->parts[i];
  unsigned how = byte(b);
  int queue = how & 1 ? RIG_COPY0 : RIG_COMPUTE0;
  memset(p, 0, sizeof *p);
  p->queue = queue;
  switch (how >> 1 & 7) {
  case 0:
  case 1:
  case 2:
    make_words(w, b, p, w->words[i]);
    break;
  case 3:
    *p = rig_part_fill(w->grounds[0].address, number(b, 1 + how % 8), 1);
    worst(w, p->fill.bytes && queue != RIG_COPY0 ? MUST_NEVER : ASK_ONLY);
    break;
  case 4:
    p->kind = (int)byte(b) - 100;
    if (p->kind >= RIG_WORDS && p->kind <= RIG_LAUNCH)
      p->kind = RIG_NO_PART;
    worst(w, MUST_NEVER);
    break;
  default:
    make_copy(w, b, p);
    /* Any zero-byte copy runs on either queue. */
    if (p->copy.bytes && queue != RIG_COPY0)
      worst(w, MUST_NEVER);
  }
  p->queue = queue;
  if (how >= 250) {
    p->queue = (int)byte(b) - 128;
    if (p->queue != RIG_COMPUTE0 && p->queue != RIG_COPY0)
      worst(w, MUST_NEVER);
    else
      p->queue = queue;
  }
  make_after(w, b, p, w->after[i], i);
}

static void make_wait(struct world *w, struct bytes *b, struct rig_wait *wait) {
  unsigned how = byte(b);
  *wait = (struct rig_wait){w->control_address + HELD, HELD_VALUE - how,
                            RIG_WAIT_WORD};
  if (how < 200)
    return;
  bool bad = how >= 224;
  switch (how % 4) {
  case 0:
    wait->at += bad ? 1 + how % 7 : 0;
    break;
  case 1:
    wait->at = bad ? UINT64_C(1) << 40 : wait->at;
    break;
  case 2:
    wait->kind = bad ? RIG_WAIT_OBJECT : RIG_WAIT_WORD;
    break;
  default: /* the device's own word */
    wait->at = rig_nv_facts(w->device)->word_gpu;
    wait->value = bad ? w->last + 1 + byte(b) : w->last - byte(b);
  }
  w->bad_waits |= bad;
}

static void make_submission(struct world *w, struct bytes *b) {
  w->verdict = RUNS;
  unsigned parts = byte(b), waits = byte(b);
  w->submission = (struct rig_submission){
      .parts = w->parts,
      .nparts = parts < 250 ? parts % 5 : MOST_PARTS,
      .waits = w->waits,
      .nwaits = waits < 128   ? 0
                : waits < 250 ? waits % 6
                              : MOST_WAITS - (waits - 250) * 10};
  for (size_t i = 0; i < w->submission.nparts; i++)
    make_part(w, b, (int)i);
  w->bad_waits = w->submission.nwaits > rig_nv_facts(w->device)->most_waits;
  for (size_t i = 0; i < w->submission.nwaits; i++)
    make_wait(w, b, &w->waits[i]);
}

static uint64_t deadline(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return ((uint64_t)now.tv_sec + 20) * 1000000000 + (uint64_t)now.tv_nsec;
}

static void reach(struct world *w, uint64_t v) {
  HOLDS(rig_nv_wait(w->device, v, deadline()) == 0, "value %" PRIu64, v);
}

static void must_fail(struct world *w, uint64_t v, const char *because) {
  const char *failure = NULL;
  enum rig_done is = rig_nv_submit(w->device, v, &w->submission, &failure);
  HOLDS(is == RIG_FAILED, "answer %d, %s", (int)is, because);
  HOLDS(failure != NULL && *failure != '\0', "%s", because);
}

static enum rig_room ask(struct world *w) {
  for (;;) {
    uint64_t before = rig_nv_signaled(w->device);
    enum rig_room is = rig_nv_room(w->device, &w->submission);
    HOLDS(is == RIG_FITS || is == RIG_LATER || is == RIG_NEVER ||
              is == RIG_GROW,
          "%d", (int)is);
    if (w->verdict == MUST_NEVER)
      HOLDS(is == RIG_NEVER, "%d", (int)is);
    if (w->verdict == RUNS)
      HOLDS(is != RIG_NEVER, "lawful parts");
    if (is != RIG_LATER)
      return is;
    HOLDS(before != w->last, "LATER with every value reached");
    reach(w, before + 1);
  }
}

static void name_destinations(struct world *w) {
  for (size_t i = 0; i < w->submission.nparts; i++) {
    const struct rig_copy *c = &w->parts[i].copy;
    if (w->parts[i].kind != RIG_COPY)
      continue;
    struct ground *g = &w->grounds[c->dst == w->grounds[1].address];
    for (uint64_t row = 0; row < (c->rows ? c->rows : 1); row++)
      for (uint64_t x = 0; x < c->bytes; x++)
        g->named[c->dst_offset + row * c->dst_pitch + x] = true;
  }
}

static void submit(struct world *w, struct bytes *b) {
  unsigned how = byte(b);
  enum rig_room is = ask(w);
  if (is != RIG_FITS) {
    if (how < 128)
      must_fail(w, w->last + 1, "room did not answer RIG_FITS");
    return;
  }
  if (w->bad_waits) {
    must_fail(w, w->last + 1, "a wait that is refused");
    return;
  }
  if (w->verdict > MAY_RUN)
    return;
  if (how < 16)
    must_fail(w, w->last + how % 2 * 2, "not the next value");
  if (how < 16 && ask(w) != RIG_FITS)
    return;
  const char *failure = "";
  enum rig_done done =
      rig_nv_submit(w->device, w->last + 1, &w->submission, &failure);
  HOLDS(done == RIG_COMMITTED, "answer %d: %s", (int)done, failure);
  w->last++;
  name_destinations(w);
}

static void write_segments(struct world *w) {
  uint64_t held = HELD_VALUE;
  memcpy(w->control_host + HELD, &held, sizeof held);
  for (unsigned i = 0; i < SEGMENTS; i++) {
    uint32_t words[4 * RIG_NV_MOST_WORDS];
    int n;
    if (i == 0)
      n = rig_nv_release_word(words, w->control_address + RELEASED, 7);
    else if (i == 1)
      n = rig_nv_interrupt(words);
    else if (i == 2)
      n = rig_nv_acquire(words, w->control_address + HELD, HELD_VALUE);
    else
      n = rig_nv_copy_release(words, w->control_address + RELEASED, 8);
    HOLDS(n > 0, "segment %u", i);
    memcpy(w->control_host + i * SEGMENT, words, 4 * (size_t)n);
    HOLDS(rig_nv_gpfifo_entry(w->control_address + i * SEGMENT, (uint64_t)n,
                              &w->entries[i]) == 0,
          "segment %u", i);
  }
}

/* No run of bytes is like another. */
static const unsigned char *ground_bytes(void) {
  static unsigned char bytes[GROUND];
  for (uint32_t i = 0; i < GROUND; i++)
    bytes[i] = (unsigned char)((i * UINT32_C(2654435761)) >> 24);
  return bytes;
}

static void world_make(struct world *w, const struct rig_nv_path *path,
                       struct bytes *b) {
  static const struct device_sizes sizes[] = {
      {.entries = 8, .segment_bytes = 1024, .in_flight = 2},
      {.entries = 16,
       .segment_bytes = 4096,
       .in_flight = 4,
       .start_entries = UINT32_MAX - 31,
       .start_units = UINT32_MAX - 20,
       .start_joins = UINT64_MAX - 3},
      {.entries = 64, .segment_bytes = 8192, .in_flight = 8},
      {.entries = 512, .segment_bytes = 65536, .in_flight = 16}};
  static const uint64_t starts[] = {0, UINT32_MAX - UINT64_C(3), UINT64_MAX - 3,
                                    77};
  unsigned how = byte(b);
  uint64_t word = starts[how >> 2 & 3];
  struct rig_nv_options o;
  rig_nv_options_init(&o);
  o.word = &word;
  HOLDS(device_make_sized(path, &o, &sizes[how & 3], &w->device) == 0, "make");
  for (unsigned i = 0; i < 2; i++) {
    struct ground *g = &w->grounds[i];
    HOLDS(rig_nv_alloc(w->device, i ? RIG_DEVICE : RIG_PINNED, GROUND,
                       &g->region) == 0,
          "alloc");
    HOLDS(rig_nv_upload(w->device, g->region, 0, ground_bytes(), GROUND) == 0,
          "upload");
    g->address = rig_nv_locate(g->region).address;
  }
  HOLDS(rig_nv_alloc(w->device, RIG_PINNED, CONTROL, &w->control) == 0,
        "alloc");
  struct rig_location l = rig_nv_locate(w->control);
  w->control_address = l.address;
  w->control_host = l.host;
  w->last = rig_nv_signaled(w->device);
  write_segments(w);
}

static void world_check(struct world *w) {
  reach(w, w->last);
  HOLDS(rig_nv_signaled(w->device) == w->last, "%" PRIu64, w->last);
  static unsigned char now[GROUND];
  const unsigned char *bytes = ground_bytes();
  for (unsigned i = 0; i < 2; i++) {
    HOLDS(rig_nv_download(w->device, w->grounds[i].region, 0, now, GROUND) == 0,
          "download");
    for (unsigned j = 0; j < GROUND; j++)
      HOLDS(w->grounds[i].named[j] || now[j] == bytes[j],
            "byte %u of ground %u", j, i);
  }
}

static void world_end(struct world *w) {
  HOLDS(rig_nv_stop(w->device, NULL) == 0, "stop");
  HOLDS(rig_nv_free(w->device, w->grounds[0].region) == 0, "free");
  HOLDS(rig_nv_free(w->device, w->grounds[1].region) == 0, "free");
  HOLDS(rig_nv_free(w->device, w->control) == 0, "free");
  HOLDS(rig_nv_release(w->device) == 0, "release");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static struct world w;
  struct bytes b = {data, n};
  struct rig_nv_model_options o;
  const struct rig_nv_path *path;
  memset(&w, 0, sizeof w);
  rig_nv_model_options_init(&o);
  o.personality = byte(&b) & 1 ? RIG_NV_LIKE_PCI : RIG_NV_LIKE_KERNEL;
  o.device_bytes = o.mapped_bytes = o.host_bytes = 64 << 20;
  HOLDS(rig_nv_path_model(&o, &path) == 0, "model");
  world_make(&w, path, &b);
  for (unsigned i = 0; i < MOST_SUBMISSIONS && b.n; i++) {
    make_submission(&w, &b);
    submit(&w, &b);
  }
  world_check(&w);
  world_end(&w);
  HOLDS(rig_nv_path_close(path) == 0, "close");
  return 0;
}
