/* SPDX-License-Identifier: ISC */
#include "paths/pci/tlsf.h"

#include "core/api/why.h"
#include "paths/pci/host.h"

enum { CHUNK_BLOCKS = 50 };

struct tlsf_chunk {
  struct tlsf_chunk *next;
  struct tlsf_block blocks[CHUNK_BLOCKS];
};

struct class {
  unsigned first, second;
};

static unsigned log2_of(uint64_t x) {
  return 63u - (unsigned)__builtin_clzll(x);
}

/* ---- classes ---- */

/* The class that a block of the size lies in. */
static struct class class_of(uint64_t units) {
  if (units < TLSF_SECOND)
    return (struct class){0, (unsigned)units};
  const unsigned high = log2_of(units);
  return (struct class){high - TLSF_SECOND_LOG2 + 1,
                        (unsigned)(units >> (high - TLSF_SECOND_LOG2)) &
                            (TLSF_SECOND - 1)};
}

/* The first class whose every block is of the size or larger. */
static struct class class_above(uint64_t units) {
  if (units >= TLSF_SECOND)
    units += (UINT64_C(1) << (log2_of(units) - TLSF_SECOND_LOG2)) - 1;
  return class_of(units);
}

/* The first class from c on that has a block; false where none has. */
static bool
class_next(const struct tlsf *t, struct class *c) {
  unsigned seconds = 0;
  if (c->second < TLSF_SECOND)
    seconds = t->second_map[c->first] & (~0u << c->second);
  if (seconds == 0) {
    if (c->first + 1 >= TLSF_FIRST)
      return false;
    const uint64_t firsts = t->first_map & (~UINT64_C(0) << (c->first + 1));
    if (firsts == 0)
      return false;
    c->first = (unsigned)__builtin_ctzll(firsts);
    seconds = t->second_map[c->first];
  }
  c->second = (unsigned)__builtin_ctz(seconds);
  return true;
}

static void list_add(struct tlsf *t, struct tlsf_block *b) {
  const struct class c = class_of(b->units);
  struct tlsf_block **head = &t->heads[c.first][c.second];
  b->serial = 0;
  b->user = NULL;
  b->mark = false;
  b->prev = NULL;
  b->next = *head;
  if (*head != NULL)
    (*head)->prev = b;
  *head = b;
  t->second_map[c.first] |= (uint16_t)(1u << c.second);
  t->first_map |= UINT64_C(1) << c.first;
  t->free_units += b->units;
}

static void list_remove(struct tlsf *t, struct tlsf_block *b) {
  const struct class c = class_of(b->units);
  if (b->next != NULL)
    b->next->prev = b->prev;
  if (b->prev != NULL)
    b->prev->next = b->next;
  else
    t->heads[c.first][c.second] = b->next;
  if (t->heads[c.first][c.second] == NULL) {
    t->second_map[c.first] &= (uint16_t)~(1u << c.second);
    if (t->second_map[c.first] == 0)
      t->first_map &= ~(UINT64_C(1) << c.first);
  }
  b->prev = b->next = NULL;
  t->free_units -= b->units;
}

/* ---- records ---- */

static void spare_put(struct tlsf *t, struct tlsf_block *b) {
  b->next = t->spare;
  t->spare = b;
}

static struct tlsf_block *spare_get(struct tlsf *t) {
  struct tlsf_block *b = t->spare;
  t->spare = b->next;
  *b = (struct tlsf_block){0};
  return b;
}

/* At least the two records that a take may need. */
static int spare_fill(struct tlsf *t) {
  if (t->spare != NULL && t->spare->next != NULL)
    return 0;
  struct tlsf_chunk *c = host_alloc(t->allocator, sizeof *c);
  if (c == NULL)
    return why(RIG_NV_HOST_MEMORY, "no host memory for records of blocks");
  c->next = t->chunks;
  t->chunks = c;
  for (int i = CHUNK_BLOCKS - 1; i >= 0; i--)
    spare_put(t, &c->blocks[i]);
  return 0;
}

/* ---- used blocks by address ---- */

static struct tlsf_block **bucket_of(const struct tlsf *t, uint64_t at) {
  const uint64_t mixed = at * UINT64_C(0x9e3779b97f4a7c15);
  return &t->buckets[mixed >> (64 - t->buckets_log2)];
}

/* Doubles the table. Where the host has no memory the chains grow instead. */
static void table_grow(struct tlsf *t) {
  const size_t n = (size_t)1 << t->buckets_log2;
  struct tlsf_block **old = t->buckets;
  struct tlsf_block **wider = host_alloc(t->allocator, 2 * n * sizeof *wider);
  if (wider == NULL)
    return;
  t->buckets = wider;
  t->buckets_log2++;
  for (size_t i = 0; i < n; i++) {
    for (struct tlsf_block *b = old[i], *next; b != NULL; b = next) {
      next = b->chain;
      b->chain = *bucket_of(t, b->at);
      *bucket_of(t, b->at) = b;
    }
  }
  if (old != t->own_buckets)
    host_release(t->allocator, old, n * sizeof *old);
}

static void table_add(struct tlsf *t, struct tlsf_block *b) {
  if (t->used >> t->buckets_log2 != 0)
    table_grow(t);
  b->chain = *bucket_of(t, b->at);
  *bucket_of(t, b->at) = b;
  t->used++;
}

static void table_remove(struct tlsf *t, struct tlsf_block *b) {
  struct tlsf_block **p = bucket_of(t, b->at);
  while (*p != b)
    p = &(*p)->chain;
  *p = b->chain;
  b->chain = NULL;
  t->used--;
}

struct tlsf_block *tlsf_find(const struct tlsf *t, uint64_t address) {
  const uint64_t at = address >> t->shift;
  if (at << t->shift != address)
    return NULL;
  struct tlsf_block *b = *bucket_of(t, at);
  while (b != NULL && b->at != at)
    b = b->chain;
  return b;
}

/* ---- taking and freeing ---- */

void tlsf_init(struct tlsf *t, uint64_t base, uint64_t bytes, unsigned shift,
               const struct rig_nv_allocator *allocator) {
  const uint64_t unit = UINT64_C(1) << shift;
  const uint64_t first = (base >> shift) + ((base & (unit - 1)) != 0);
  const uint64_t end = (base + bytes) >> shift;
  *t = (struct tlsf){.allocator = allocator, .shift = shift, .at = first};
  t->units = end > first ? end - first : 0;
  t->free_units = t->units;
  t->buckets = t->own_buckets;
  t->buckets_log2 = TLSF_BUCKETS_LOG2;
}

void tlsf_fini(struct tlsf *t) {
  if (t->buckets != t->own_buckets)
    host_release(t->allocator, t->buckets,
                 sizeof *t->buckets << t->buckets_log2);
  for (struct tlsf_chunk *c = t->chunks, *next; c != NULL; c = next) {
    next = c->next;
    host_release(t->allocator, c, sizeof *c);
  }
  *t = (struct tlsf){0};
}

/* Makes the range one free block, at the first take. */
static int begin(struct tlsf *t) {
  const int r = t->units == 0 || t->begun ? 0 : spare_fill(t);
  if (r != 0 || t->units == 0 || t->begun)
    return r;
  struct tlsf_block *b = spare_get(t);
  b->at = t->at;
  b->units = t->units;
  t->free_units = 0;
  t->lowest = b;
  t->begun = true;
  list_add(t, b);
  return 0;
}

/* Where a block of the size would lie in b; false where it does not fit. */
static bool fits(const struct tlsf_block *b, uint64_t units, uint64_t align,
                 uint64_t *at) {
  const uint64_t start = (b->at + align - 1) & ~(align - 1);
  if (start < b->at || start - b->at > b->units ||
      b->units - (start - b->at) < units)
    return false;
  *at = start;
  return true;
}

/* A free block that holds the size at the alignment, or NULL. */
static struct tlsf_block *search(const struct tlsf *t, uint64_t units,
                                 uint64_t align, uint64_t *at) {
  struct class c = class_of(units);
  for (int probes = 0; probes < TLSF_PROBES; c.second++, probes++) {
    if (!class_next(t, &c))
      return NULL;
    struct tlsf_block *b = t->heads[c.first][c.second];
    if (fits(b, units, align, at))
      return b;
  }
  if (align - 1 > UINT64_MAX / 4 || units > UINT64_MAX / 4)
    return NULL; /* no block of a range is so large */
  c = class_above(units + align - 1);
  if (!class_next(t, &c))
    return NULL;
  struct tlsf_block *b = t->heads[c.first][c.second];
  return fits(b, units, align, at) ? b : NULL;
}

static struct tlsf_block *split(struct tlsf *t, struct tlsf_block *b,
                                uint64_t units) {
  struct tlsf_block *rest = spare_get(t);
  rest->at = b->at + units;
  rest->units = b->units - units;
  b->units = units;
  rest->before = b;
  rest->after = b->after;
  if (rest->after != NULL)
    rest->after->before = rest;
  b->after = rest;
  return rest;
}

/* Makes [at, at + units) of the free block b a used block. Two records are
 * spare. */
static struct tlsf_block *carve(struct tlsf *t, struct tlsf_block *b,
                                uint64_t at, uint64_t units) {
  list_remove(t, b);
  if (at != b->at) {
    struct tlsf_block *rest = split(t, b, at - b->at);
    list_add(t, b);
    b = rest;
  }
  if (b->units != units)
    list_add(t, split(t, b, units));
  b->serial = ++t->serial;
  table_add(t, b);
  return b;
}

/* The request in units; 0 where no range holds it. */
static uint64_t request(const struct tlsf *t, uint64_t bytes, uint64_t *align) {
  const uint64_t unit = UINT64_C(1) << t->shift;
  const uint64_t units = (bytes >> t->shift) + ((bytes & (unit - 1)) != 0);
  *align = *align < unit ? 1 : *align >> t->shift;
  return units <= t->free_units ? units : 0;
}

static int lacks(uint64_t bytes, uint64_t align) {
  return why(RIG_NV_NO_MEMORY,
             "no free block of %llu bytes aligned to %llu bytes",
             (unsigned long long)bytes, (unsigned long long)align);
}

int tlsf_take(struct tlsf *t, uint64_t bytes, uint64_t align,
              struct tlsf_block **out) {
  uint64_t at, step = align;
  const uint64_t units = request(t, bytes, &step);
  int r = begin(t);
  if (r != 0)
    return r;
  struct tlsf_block *b = units == 0 ? NULL : search(t, units, step, &at);
  if (b == NULL)
    return lacks(bytes, align);
  r = spare_fill(t);
  if (r == 0)
    *out = carve(t, b, at, units);
  return r;
}

int tlsf_take_below(struct tlsf *t, uint64_t bytes, uint64_t align,
                    uint64_t below, struct tlsf_block **from,
                    struct tlsf_block **out) {
  uint64_t at = 0, step = align;
  const uint64_t units = request(t, bytes, &step), end = below >> t->shift;
  int r = begin(t);
  if (r != 0)
    return r;
  struct tlsf_block *b = *from != NULL ? *from : t->lowest;
  for (; units != 0 && b != NULL && b->at < end; b = b->after)
    if (b->serial == 0 && fits(b, units, step, &at))
      break;
  if (units == 0 || b == NULL || b->at >= end || end - at < units || at > end)
    return lacks(bytes, align);
  r = spare_fill(t);
  if (r == 0)
    *from = *out = carve(t, b, at, units);
  return r;
}

/* Makes b and the block after it one. */
static void join(struct tlsf *t, struct tlsf_block *b) {
  struct tlsf_block *gone = b->after;
  b->units += gone->units;
  b->after = gone->after;
  if (b->after != NULL)
    b->after->before = b;
  spare_put(t, gone);
}

void tlsf_free(struct tlsf *t, struct tlsf_block *b) {
  table_remove(t, b);
  if (b->after != NULL && b->after->serial == 0) {
    list_remove(t, b->after);
    join(t, b);
  }
  if (b->before != NULL && b->before->serial == 0) {
    b = b->before;
    list_remove(t, b);
    join(t, b);
  }
  list_add(t, b);
}

/* ---- for tests ---- */

static bool listed(const struct tlsf *t, const struct tlsf_block *b) {
  const struct class c = class_of(b->units);
  const struct tlsf_block *at = t->heads[c.first][c.second];
  while (at != NULL && at != b)
    at = at->next;
  return at == b && (t->second_map[c.first] >> c.second & 1) != 0 &&
         (t->first_map >> c.first & 1) != 0;
}

int tlsf_check(const struct tlsf *t) {
  uint64_t at = t->at, free_units = 0;
  size_t used = 0;
  const struct tlsf_block *before = NULL;
  for (const struct tlsf_block *b = t->lowest; b != NULL; b = b->after) {
    if (b->at != at || b->units == 0 || b->before != before)
      return why(RIG_NV_INVALID, "blocks do not follow each other");
    if (b->serial == 0 && before != NULL && before->serial == 0)
      return why(RIG_NV_INVALID, "two free blocks side by side");
    if (b->serial == 0 ? !listed(t, b) : tlsf_find(t, b->at << t->shift) != b)
      return why(RIG_NV_INVALID, "a block cannot be found");
    free_units += b->serial == 0 ? b->units : 0;
    used += b->serial != 0;
    at += b->units;
    before = b;
  }
  if (t->begun && (at != t->at + t->units || free_units != t->free_units ||
                   used != t->used))
    return why(RIG_NV_INVALID, "blocks do not add up to the range");
  return 0;
}
