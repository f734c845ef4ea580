/* SPDX-License-Identifier: ISC */
/*
 * The walk over a submission's parts, twice: dry, it counts what they take;
 * wet, it writes it. One function does both, so the two cannot disagree.
 *
 * On a channel, in order:
 *
 *   entering, once    owed setup; acquire(word, v - 1) unless this channel
 *                     released it (COPY puts it off to its first foreign
 *                     entries); the waits; what setup.h tells COMPUTE
 *   each part         acquire of the other channel's join word, if it comes
 *                     after a part there; its words; a release of this
 *                     channel's join word, if a part of the other waits for it
 *   the last part     that release, if the other channel releases v
 *   releasing channel acquire of the other's last part; release of v
 *
 * Waits. The channel entered first acquires them and tells the other: the
 * value's own work may lower a word that it waited for, so only one looks.
 *
 * Launches. COMPUTE goes on while they run, so one that comes after another
 * either is chained to it, where nothing stands between them, or waits until
 * the channel is idle. A chained one takes no words: the descriptor before it
 * starts it. So a descriptor is held back until the next part is known.
 *
 *   launch, launch, launch      schedule(0)    0 -> 1 -> 2
 *   launch, join, launch        schedule(0)    acquire, idle, schedule(1)
 *
 * The last launch releases the value itself where every part is on COMPUTE.
 *
 * Completion. Copies and fills follow each other on the copy engine. Foreign
 * entries may use any engine in any way, so what follows them waits, and they
 * wait for what they follow, until the channel is idle: a release by the host.
 *
 * Joins. Part i's tag is joins + i + 2, so a part that comes after several of
 * the other channel needs the latest alone: the channel ran the others before
 * it. The parts that are waited for so are the running maxima of the waiting
 * parts' latest, hence met in the order of the parts: a second index that runs
 * ahead finds them, with no memory for any number of parts.
 *
 * Segments. The driver's words collect in an open segment, which closes into
 * an entry before foreign entries, at the end of the value and every 4 MiB.
 */
#include <string.h>

#include "core/abi/gpfifo.h"
#include "core/abi/method.h"
#include "rings/entering.h"
#include "rings/io.h"
#include "rings/launch.h"
#include "rings/pieces.h"
#include "rings/rings.h"
#include "rings/straight.h"

enum { OTHER = QUEUES - 1 /* q ^ OTHER is the other queue */ };

/* A channel's side of the walk. */
struct lane {
  uint64_t entries; /* taken */
  uint64_t words;   /* taken, entering counted at its bound */
  uint64_t run;     /* of those, since the last close */
  bool entered;
  bool foreign; /* dry: nothing but entering before foreign entries */
  enum { IDLE, ENGINE, FOREIGN } busy; /* what may run, unwaited for */
  bool trails;      /* wet: may run the last value, which it released */
  size_t last;      /* index + 1 of its last part */
  size_t signalled; /* index + 1 of the last part it released a tag for */
  size_t seen;      /* index + 1 of the other's part it has acquired */
  size_t ahead;     /* the part at which the search for waiters goes on */
  size_t target;    /* index + 1 of the latest part waited for before it */
  uint32_t *open;   /* wet: start of the open segment */
  uint32_t *at;     /* wet: where the next word goes */
  uint32_t entry;   /* wet: where the next entry goes, free-running */
};

/* A launch whose descriptor is not written. */
struct held {
  const struct rig_launch *launch; /* or NULL */
  unsigned char *at;               /* wet: its descriptor's place */
  struct qmd_args *args;           /* wet: while there is one. Apart, so that
                                    * nobody clears what a launch fills in */
};

struct walk {
  const struct rig_submission *s;
  struct held held;
  uint64_t launch; /* units of the launch ring: dry, taken; wet, its next */
  uint64_t enter;  /* the bound of entering a channel, in words */
  bool joins;      /* whether any part comes after another */
  struct lane lane[QUEUES];
  const struct rings *rings;    /* wet */
  const struct ring_plan *plan; /* wet */
};

#define INLINE static inline __attribute__((always_inline))

/* index + 1 of the latest part of the other queue that part p comes after. */
static size_t joined(const struct rig_submission *s, const struct rig_part *p) {
  size_t latest = 0;
  for (size_t i = 0; i < p->nafter; i++) {
    size_t a = (size_t)p->after[i];
    if (s->parts[a].queue != p->queue && a + 1 > latest)
      latest = a + 1;
  }
  return latest;
}

/* Whether a later part of the other queue acquires the tag of part i of q. */
static bool awaited(struct walk *k, int q, size_t i) {
  const struct rig_submission *s = k->s;
  struct lane *l = &k->lane[q];
  while (l->target < i + 1 && l->ahead < s->nparts) {
    const struct rig_part *p = &s->parts[l->ahead++];
    if (p->queue != q) {
      size_t t = joined(s, p);
      if (t > l->target)
        l->target = t;
    }
  }
  return l->target == i + 1;
}

INLINE void close_segment(struct walk *k, int q, const bool wet) {
  struct lane *l = &k->lane[q];
  l->entries = piece_sum(l->entries, 1);
  l->run = 0;
  if (wet && l->at != l->open) {
    const struct ring_channel *c = &k->plan->generation->channel[q];
    uint64_t offset = (uint64_t)((unsigned char *)l->open - c->segments);
    uint64_t e =
        abi_gpfifo_entry(c->segments_gpu + offset, (uint64_t)(l->at - l->open));
    uint32_t w[2] = {(uint32_t)e, (uint32_t)(e >> 32)};
    io_copy(&c->entries[2 * (size_t)(l->entry++ & (c->n - 1))], w, 2);
    l->open = l->at;
  }
}

/* n more words of the driver's: counted, and wet, about to be written. */
INLINE void count(struct walk *k, int q, unsigned n, const bool wet) {
  struct lane *l = &k->lane[q];
  if (l->run + n > SEGMENT_WORDS)
    close_segment(k, q, wet);
  l->words = piece_sum(l->words, n);
  l->run += n;
}

/* What `launches` calls of count for n words each come to, dry. */
static void count_many(struct walk *k, int q, uint64_t launches, unsigned n) {
  struct lane *l = &k->lane[q];
  const uint64_t full = SEGMENT_WORDS / n, first = (SEGMENT_WORDS - l->run) / n;
  l->words = piece_sum(l->words, piece_product(launches, n));
  if (launches <= first) {
    l->run += launches * n;
    return;
  }
  launches -= first;
  l->entries = piece_sum(l->entries, piece_divide(launches, full));
  l->run = ((launches - 1) % full + 1) * n;
}

#define PUT(k, q, n, wet, encode)                                              \
  do {                                                                         \
    count(k, q, n, wet);                                                       \
    if (wet) {                                                                 \
      uint32_t w[RIG_NV_MOST_WORDS];                                           \
      unsigned wrote = (encode);                                               \
      io_copy((k)->lane[q].at, w, wrote);                                      \
      (k)->lane[q].at += wrote;                                                \
    }                                                                          \
  } while (0)

/* The tag of part index1 - 1, and of 0, that the waits are over. */
static uint64_t tag(const struct walk *k, size_t index1) {
  return k->plan->from.joins + 1 + index1;
}

/* Words of the driver's that were counted ahead. Wet. */
static void lay(struct lane *l, const uint32_t *w, unsigned n) {
  if (n == 0)
    return;
  io_copy(l->at, w, n);
  l->at += n;
}

/* Wet entering: only what this cursor owes. It is counted at its bound, once
 * and for all, so that where segments close depends on the parts alone. */
static void enter_words(struct walk *k, int q) {
  const struct rings *r = k->rings;
  const struct cursor *from = &k->plan->from;
  const struct rig_submission *s = k->s;
  struct lane *l = &k->lane[q];
  uint32_t w[SETUP_WORDS + 2 * ABI_ACQUIRE_WORDS];
  int other = q ^ OTHER;
  unsigned n = entering_words(r, from, q, w);
  l->trails = from->released_by == q && q == RIG_COPY0;
  if (k->lane[other].entered && s->nwaits > 0)
    n += abi_acquire(w + n, r->join_gpu[other], tag(k, 0));
  lay(l, w, n);
  if (k->lane[other].entered || s->nwaits == 0)
    return;
  for (size_t i = 0; i < s->nwaits; i++)
    lay(l, w, abi_acquire(w, s->waits[i].at, s->waits[i].value));
  if (k->plan->used & 1u << other)
    lay(l, w, abi_release(w, r->join_gpu[q], tag(k, 0)));
}

INLINE void enter(struct walk *k, int q, const bool wet) {
  struct lane *l = &k->lane[q];
  if (l->entered)
    return;
  l->entered = true;
  l->words = l->run = k->enter;
  if (wet) {
    uint32_t w[CHANGE_WORDS];
    enter_words(k, q);
    if (q == RIG_COMPUTE0)
      lay(l, w, change_words(k->plan, w));
  }
}

/* Whether launches of its GPU need no membar between them: seen with V4. */
static bool chains_bare(const struct rig_launch *x) {
  return ((const struct launch *)x->launch)->descriptor.version == QMD_V4;
}

/* Completes the held launch's descriptor: it starts the one at `next`, or is
 * the last of its chain and then may release the value. The next one reads
 * what this one wrote by invalidating its caches; anybody else by the membar
 * of the last one. */
static void write_held(struct walk *k, uint64_t next, bool releases) {
  struct held *h = &k->held;
  h->args->next = next;
  h->args->membar =
      next != 0 && chains_bare(h->launch) ? QMD_MEMBAR_NONE : QMD_MEMBAR_SYSTEM;
  if (releases)
    h->args->release = (struct qmd_release){.size = QMD_TWO_WORDS,
                                            .addr = k->rings->word_gpu,
                                            .payload = k->plan->to.v};
  launch_write_descriptor(h->launch, h->args, h->at);
}

/* No launch is chained to the held one. */
INLINE void end_chain(struct walk *k, const bool wet) {
  if (k->held.launch == NULL)
    return;
  if (wet)
    write_held(k, 0, false);
  k->held.launch = NULL;
}

/* Holds the channel until its parts so far have completed, and says so. */
INLINE void settle_channel(struct walk *k, int q, const bool wet) {
  struct lane *l = &k->lane[q];
  if (q == RIG_COMPUTE0)
    end_chain(k, wet);
  PUT(k, q, ABI_RELEASE_WORDS, wet,
      abi_release(w, k->rings->join_gpu[q], tag(k, l->last)));
  l->signalled = l->last;
  l->busy = IDLE;
  l->trails = false;
}

/* Tells the other channel that the parts so far have completed. */
INLINE void signal(struct walk *k, int q, const bool wet) {
  struct lane *l = &k->lane[q];
  if (l->signalled == l->last)
    return;
  if (q == RIG_COMPUTE0 || l->busy == FOREIGN) {
    settle_channel(k, q, wet);
    return;
  }
  PUT(k, q, ABI_COPY_RELEASE_WORDS, wet,
      abi_copy_release(w, k->rings->join_gpu[q], tag(k, l->last)));
  l->signalled = l->last;
}

/* Holds channel q until part index1 - 1 of the other has completed. */
INLINE void join(struct walk *k, int q, size_t index1, const bool wet) {
  struct lane *l = &k->lane[q];
  if (index1 <= l->seen)
    return;
  if (q == RIG_COMPUTE0)
    end_chain(k, wet);
  PUT(k, q, ABI_ACQUIRE_WORDS, wet,
      abi_acquire(w, k->rings->join_gpu[q ^ OTHER], tag(k, index1)));
  l->seen = index1;
}

/* Holds the channel until the last value is reached. Wet. */
static void acquire_last(struct walk *k, struct lane *l) {
  uint32_t w[ABI_ACQUIRE_WORDS];
  lay(l, w, abi_acquire(w, k->rings->word_gpu, k->plan->from.v));
  l->trails = false;
}

/* Foreign entries: they start once the parts before them have completed,
 * whatever engine they use, so a busy channel settles first. So does COPY
 * behind a value that it released itself, as the copy engine does that while
 * the channel goes on: it acquires that value, in the place of entering that
 * was counted and not used. */
INLINE void words(struct walk *k, int q, const struct rig_words *p,
                  const bool wet) {
  struct lane *l = &k->lane[q];
  if (p->n == 0)
    return;
  if (l->busy != IDLE)
    settle_channel(k, q, wet);
  else if (wet && l->trails)
    acquire_last(k, l);
  if (l->entries == 0 && l->words == k->enter)
    l->foreign = true;
  close_segment(k, q, wet);
  l->entries = piece_sum(l->entries, p->n / 2);
  l->busy = FOREIGN;
  if (wet) {
    const struct ring_channel *c = &k->plan->generation->channel[q];
    for (size_t i = 0; i < p->n; i += 2)
      io_copy(&c->entries[2 * (size_t)(l->entry++ & (c->n - 1))], p->at + i, 2);
  }
}

/* A copy of one line, 2 GiB a launch. Wet. */
static void copy_line(struct walk *k, uint64_t dst, uint64_t src,
                      uint64_t bytes) {
  for (uint64_t done = 0, n; done < bytes; done += n) {
    n = bytes - done < RIG_NV_MAX_COPY ? bytes - done : RIG_NV_MAX_COPY;
    PUT(k, RIG_COPY0, ABI_COPY_WORDS, true,
        abi_copy(w, dst + done, src + done, (uint32_t)n));
  }
}

/* Copies do not overlap the ones before them on the copy engine
 * (NON_PIPELINED), so they need no settling. */
static void copy(struct walk *k, const struct rig_copy *p) {
  uint64_t dst = p->dst + p->dst_offset, src = p->src + p->src_offset;
  uint64_t rows = piece_rows(p->rows);
  for (uint64_t i = 0, n; i < rows; i += n) {
    uint64_t to = dst + i * p->dst_pitch, from = src + i * p->src_pitch;
    if (piece_boxed(p)) {
      n = rows - i < PIECE_MOST_ROWS ? rows - i : PIECE_MOST_ROWS;
      PUT(k, RIG_COPY0, ABI_BOX_WORDS, true,
          abi_box(w, to, from, (uint32_t)p->dst_pitch, (uint32_t)p->src_pitch,
                  (uint32_t)n, (uint32_t)p->bytes));
    } else {
      n = 1;
      copy_line(k, to, from, p->bytes);
    }
  }
}

/* n components from dst on, 2 GiB a launch. Wet. */
static void fill_line(struct walk *k, enum rig_nv_component c, uint64_t dst,
                      uint32_t value, uint64_t n) {
  for (uint64_t done = 0, some; done < n; done += some) {
    some = n - done < PIECE_MOST_COMPONENTS ? n - done : PIECE_MOST_COMPONENTS;
    PUT(k, RIG_COPY0, ABI_FILL_WORDS, true,
        abi_fill(w, c, dst + done * (uint64_t)c, value, (uint32_t)some));
  }
}

static void fill(struct walk *k, const struct rig_fill *p) {
  const uint32_t value = p->byte * UINT32_C(0x01010101);
  uint64_t rows = piece_rows(p->rows);
  for (uint64_t i = 0; i < rows; i++) {
    uint64_t dst = p->dst + p->dst_offset + i * p->dst_pitch;
    struct piece_fill f = piece_fill_row(dst, p->bytes);
    fill_line(k, RIG_NV_1B, dst, value, f.head);
    fill_line(k, RIG_NV_4B, dst + f.head, value, f.components);
    fill_line(k, RIG_NV_1B, dst + p->bytes - f.tail, value, f.tail);
  }
}

/* What runs on the copy engine, if anything. Foreign entries before it may
 * have left anything running, a release by the copy engine included. */
INLINE void engine(struct walk *k, const struct rig_part *p, const bool wet) {
  bool is_fill = p->kind == RIG_FILL;
  if ((is_fill ? p->fill.bytes : p->copy.bytes) == 0)
    return;
  if (k->lane[RIG_COPY0].busy == FOREIGN)
    settle_channel(k, RIG_COPY0, wet);
  k->lane[RIG_COPY0].busy = ENGINE;
  if (!wet && !is_fill && p->copy.rows <= 1 && p->copy.bytes <= RIG_NV_MAX_COPY)
    count(k, RIG_COPY0, ABI_COPY_WORDS, false);
  else if (!wet && is_fill)
    count_many(k, RIG_COPY0, piece_fills(&p->fill), ABI_FILL_WORDS);
  else if (!wet)
    count_many(k, RIG_COPY0, piece_copies(&p->copy),
               piece_boxed(&p->copy) ? ABI_BOX_WORDS : ABI_COPY_WORDS);
  else if (is_fill)
    fill(k, &p->fill);
  else
    copy(k, &p->copy);
}

/* A launch's words, if it is not chained. */
INLINE void start(struct walk *k, uint64_t descriptor, const bool wet) {
  struct lane *l = &k->lane[RIG_COMPUTE0];
  if (l->busy == FOREIGN)
    settle_channel(k, RIG_COMPUTE0, wet);
  else if (l->busy == ENGINE)
    PUT(k, RIG_COMPUTE0, ABI_WAIT_FOR_IDLE_WORDS, wet, abi_wait_for_idle(w));
  PUT(k, RIG_COMPUTE0, ABI_SCHEDULE_WORDS, wet, abi_schedule(w, descriptor));
  l->busy = ENGINE;
}

INLINE void launch(struct walk *k, const struct rig_launch *x, const bool wet) {
  const struct ring_launches *ring = NULL;
  uint64_t offset = k->launch * LAUNCH_UNIT, at = 0;
  k->launch = piece_sum(k->launch, launch_units(x));
  if (wet) {
    ring = &k->plan->generation->launches;
    at = ring->gpu + offset;
  }
  if (k->held.launch == NULL)
    start(k, at, wet);
  else if (wet)
    write_held(k, at, false);
  k->held.launch = x;
  if (wet) {
    k->held.at = ring->at + offset;
    launch_write_bank(k->s, x, &k->rings->gpu, k->held.at, at, k->held.args);
  }
}

INLINE void part(struct walk *k, size_t i, const bool wet) {
  const struct rig_part *p = &k->s->parts[i];
  int q = p->queue;
  struct lane *l = &k->lane[q];
  enter(k, q, wet);
  if (k->joins)
    join(k, q, joined(k->s, p), wet);
  if (p->kind == RIG_WORDS)
    words(k, q, &p->words, wet);
  else if (p->kind == RIG_LAUNCH)
    launch(k, &p->launch, wet);
  else
    engine(k, p, wet);
  l->last = i + 1;
  if (k->joins && awaited(k, q, i))
    signal(k, q, wet);
}

static bool joins(const struct rig_submission *s) {
  for (size_t i = 0; i < s->nparts; i++)
    if (s->parts[i].nafter != 0)
      return true;
  return false;
}

void ring_need(const struct rig_submission *s, struct ring_need *need) {
  struct walk k = {
      .s = s, .enter = entering_bound(s->nwaits), .joins = joins(s)};
  for (size_t i = 0; i < s->nparts; i++)
    part(&k, i, false);
  memset(need, 0, sizeof *need);
  need->enter = k.enter;
  need->joins = k.joins;
  for (int q = 0; q < QUEUES; q++) {
    struct lane *l = &k.lane[q];
    if (!l->entered)
      l->words = k.enter;
    else
      need->used |= 1u << q;
    need->lead |= (unsigned)l->foreign << q;
    /* A used channel always ends in words: a join, or the release. */
    need->entries[q] = l->entries + 1;
    need->words[q] = l->words + END_WORDS;
  }
  need->waits = s->nwaits > 0;
  need->launch = k.launch;
  if (s->nparts > 0) {
    const struct rig_part *last = &s->parts[s->nparts - 1];
    need->last = last->queue;
    need->launch_releases = last->kind == RIG_LAUNCH && s->times == NULL &&
                            need->used == 1u << RIG_COMPUTE0;
  }
}

/* The wet end: every segment is closed, and all that was reserved is used. */
static void finish(struct walk *k, int q) {
  const struct ring_plan *p = k->plan;
  const struct ring_channel *c = &p->generation->channel[q];
  struct lane *l = &k->lane[q];
  close_segment(k, q, true);
  uint32_t *limit = (uint32_t *)(c->segments + (size_t)p->start[q] * RING_UNIT);
  uint32_t taken = p->to.units[q] - p->from.units[q];
  limit += (size_t)taken * (RING_UNIT / sizeof *limit);
  RING_ASSERT(l->entry == p->to.entries[q]);
  RING_ASSERT(l->at <= limit);
}

static __attribute__((noinline)) void encode(const struct rings *r,
                                             const struct rig_submission *s,
                                             const struct ring_need *need,
                                             const struct ring_plan *p) {
  struct qmd_args args;
  struct walk k = {.s = s,
                   .enter = need->enter,
                   .joins = need->joins,
                   .launch = p->launch,
                   .held = {.args = &args},
                   .rings = r,
                   .plan = p};
  for (int q = 0; q < QUEUES; q++) {
    struct lane *l = &k.lane[q];
    unsigned char *piece = p->generation->channel[q].segments;
    piece += (size_t)p->start[q] * RING_UNIT;
    l->open = l->at = (uint32_t *)piece;
    l->entry = p->from.entries[q];
  }
  for (size_t i = 0; i < s->nparts; i++)
    part(&k, i, true);
  int q = p->release, other = q ^ OTHER;
  enter(&k, q, true);
  k.lane[q].run = k.lane[other].run = 0; /* the end closes nothing midway */
  if (p->used & 1u << other) {
    signal(&k, other, true);
    join(&k, q, k.lane[other].last, true);
    finish(&k, other);
  }
  if (p->launch_releases)
    write_held(&k, 0, true);
  else if (q == RIG_COMPUTE0 || k.lane[q].busy == FOREIGN) {
    end_chain(&k, true);
    PUT(&k, q, ABI_RELEASE_WORDS, true, abi_release(w, r->word_gpu, p->to.v));
  } else
    PUT(&k, q, ABI_COPY_RELEASE_WORDS, true,
        abi_copy_release(w, r->word_gpu, p->to.v));
  finish(&k, q);
}

void ring_encode(const struct rings *r, const struct rig_submission *s,
                 const struct ring_need *need, const struct ring_plan *p) {
  /* Where COMPUTE releases a value of COPY's, it is on both. */
  if (need->straight && p->release == need->last)
    straight_encode(r, s, p);
  else
    encode(r, s, need, p);
}
