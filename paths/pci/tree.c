/* SPDX-License-Identifier: ISC */
#include "paths/pci/tree.h"

#include "core/api/why.h"

struct table tree_page;

/* ---- bits of leaves ---- */

enum { WORD = 64 };

/* The bits of word w that lie in [i, end). */
static uint64_t word_mask(unsigned w, unsigned i, unsigned end) {
  uint64_t mask = ~UINT64_C(0);
  if (i > w * WORD)
    mask &= ~UINT64_C(0) << (i - w * WORD);
  if (end < (w + 1) * WORD)
    mask &= ~(~UINT64_C(0) << (end - w * WORD));
  return mask;
}

/* Whether each of [i, end) is `set`. */
static bool bits_are(const struct table *n, unsigned i, unsigned end,
                     bool set) {
  for (unsigned w = i / WORD; w * WORD < end; w++) {
    const uint64_t mask = word_mask(w, i, end);
    if ((n->bits[w] & mask) != (set ? mask : 0))
      return false;
  }
  return true;
}

static void bits_set(struct table *n, unsigned i, unsigned end) {
  for (unsigned w = i / WORD; w * WORD < end; w++)
    n->bits[w] |= word_mask(w, i, end);
}

/* ---- tables ---- */

static size_t slots_bytes(const struct page_table *t, int d) {
  const unsigned n = t->level[d].entries;
  return tree_leaf(t, d) ? (n + WORD - 1) / WORD * sizeof(uint64_t)
                         : n * sizeof(struct table *);
}

static void record_release(struct page_table *t, int d, struct table *n) {
  host_release(t->allocator, n->slots, slots_bytes(t, d));
  host_release(t->allocator, n, sizeof *n);
}

/* A record with every slot empty, or NULL. */
static struct table *record_get(struct page_table *t, int d) {
  struct table *n = t->level[d].spare;
  if (n != NULL) {
    t->level[d].spare = n->spare;
    return n;
  }
  n = host_alloc(t->allocator, sizeof *n);
  if (n == NULL)
    return NULL;
  n->slots = host_alloc(t->allocator, slots_bytes(t, d));
  if (n->slots == NULL) {
    host_release(t->allocator, n, sizeof *n);
    return NULL;
  }
  return n;
}

static void record_put(struct page_table *t, int d, struct table *n) {
  n->spare = t->level[d].spare;
  t->level[d].spare = n;
}

/* A zeroed table in the GPU's memory that nothing points to. */
static int table_new(struct page_table *t, int d, struct table **out) {
  const uint64_t bytes = UINT64_C(1) << PAGE_LOG2;
  struct tlsf *pool =
      t->tables == PAGE_TABLES_POOL ? &t->tables_pool : &t->main_pool;
  struct tlsf_block *from = NULL;
  struct table *n = record_get(t, d);
  if (n == NULL)
    return why(RIG_NV_HOST_MEMORY, "no host memory for a table's record");
  n->pool = t->booting ? &t->boot_pool : pool;
  const int r = t->gpu_end >= t->memory
                    ? tlsf_take(n->pool, bytes, bytes, &n->block)
                    : tlsf_take_below(n->pool, bytes, bytes, t->gpu_end, &from,
                                      &n->block);
  if (r != 0) {
    record_put(t, d, n);
    return r;
  }
  n->pa = tlsf_address(n->pool, n->block);
  n->block->user = n;
  n->count = 0;
  n->kept = false;
  t->ntables++;
  t->format.zero(t->format.ctx, n->pa, bytes);
  *out = n;
  return 0;
}

/* Gives an empty table back. */
static void table_drop(struct page_table *t, int d, struct table *n) {
  tlsf_free(n->pool, n->block);
  t->ntables--;
  record_put(t, d, n);
}

int tree_root(struct page_table *t) {
  const int r = table_new(t, 0, &t->root);
  if (r == 0)
    t->root->kept = true;
  return r;
}

int tree_make(struct page_table *t, int depth, struct table *parent, unsigned i,
              struct table **out) {
  const int r = table_new(t, depth, out);
  if (r != 0)
    return r;
  parent->slots[i] = *out;
  parent->count++;
  t->format.set_table(t->format.ctx, t->level[depth - 1].number, parent->pa, i,
                      (*out)->pa);
  return 0;
}

/* Unlinks and frees the table in slot i where it is empty. */
static void drop_empty(struct page_table *t, int d, struct table *n,
                       unsigned i) {
  struct table *child = n->slots[i];
  if (child->count != 0 || child->kept)
    return;
  t->format.clear(t->format.ctx, t->level[d].number, n->pa, i);
  n->slots[i] = NULL;
  n->count--;
  table_drop(t, d + 1, child);
}

static void subtree_release(struct page_table *t, int d, struct table *n) {
  for (unsigned i = 0; !tree_leaf(t, d) && i < t->level[d].entries; i++)
    if (n->slots[i] != NULL && n->slots[i] != &tree_page)
      subtree_release(t, d + 1, n->slots[i]);
  record_release(t, d, n);
}

void tree_fini(struct page_table *t) {
  if (t->root != NULL)
    subtree_release(t, 0, t->root);
  for (int d = 0; d < t->nlevels; d++) {
    for (struct table *n = t->level[d].spare, *next; n != NULL; n = next) {
      next = n->spare;
      record_release(t, d, n);
    }
  }
}

/* ---- walks ---- */

/* The part of [va, end) that one table of depth d translates, by its entries
 * [i, last). va and end are addresses less base, end above va. */
struct part {
  unsigned i, last;
  uint64_t start; /* the first address of entry i */
};

static struct part part_of(const struct page_table *t, int d, uint64_t va,
                           uint64_t end) {
  const unsigned bit = t->level[d].bit, mask = t->level[d].entries - 1;
  const uint64_t first = va >> bit, last = (end - 1) >> bit;
  return (struct part){(unsigned)first & mask, ((unsigned)last & mask) + 1,
                       first << bit};
}

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* The first from i on that is `set`, which one is. */
static unsigned bits_find(const struct table *n, unsigned i, bool set) {
  while (tree_bit(n, i) != set)
    i++;
  return i;
}

static int mapped_already(const struct page_table *t, uint64_t at) {
  return why(RIG_NV_INVALID, "0x%llx is mapped already",
             (unsigned long long)(at + t->base));
}

static int not_mapped(const struct page_table *t, uint64_t at) {
  return why(RIG_NV_INVALID, "0x%llx is not mapped",
             (unsigned long long)(at + t->base));
}

/* The first address of an entry of the part. */
static uint64_t part_at(const struct page_table *t, int d, struct part p,
                        unsigned i) {
  return p.start + (uint64_t)(i - p.i) * tree_size(t, d);
}

static int unmapped_in(const struct page_table *t, int d, const struct table *n,
                       uint64_t va, uint64_t end) {
  struct part p = part_of(t, d, va, end);
  const uint64_t size = tree_size(t, d);
  if (tree_leaf(t, d))
    return bits_are(n, p.i, p.last, false)
               ? 0
               : mapped_already(t, part_at(t, d, p, bits_find(n, p.i, true)));
  for (; p.i < p.last; p.i++, p.start += size) {
    const struct table *child = n->slots[p.i];
    if (child == NULL)
      continue;
    const uint64_t low = most(va, p.start);
    const int r = child == &tree_page ? mapped_already(t, low)
                                      : unmapped_in(t, d + 1, child, low,
                                                    least(end, p.start + size));
    if (r != 0)
      return r;
  }
  return 0;
}

int tree_unmapped(const struct page_table *t, uint64_t va, uint64_t end) {
  return va == end ? 0
                   : unmapped_in(t, 0, t->root, va - t->base, end - t->base);
}

static int mapped_in(const struct page_table *t, int d, const struct table *n,
                     uint64_t va, uint64_t end) {
  struct part p = part_of(t, d, va, end);
  const uint64_t size = tree_size(t, d);
  if (tree_leaf(t, d))
    return bits_are(n, p.i, p.last, true)
               ? 0
               : not_mapped(t, part_at(t, d, p, bits_find(n, p.i, false)));
  for (; p.i < p.last; p.i++, p.start += size) {
    const struct table *child = n->slots[p.i];
    const uint64_t low = most(va, p.start), high = least(end, p.start + size);
    if (child == NULL)
      return not_mapped(t, low);
    if (child == &tree_page && high - low != size)
      return why(RIG_NV_INVALID,
                 "the page of 0x%llx bytes at 0x%llx is only partly in the "
                 "range",
                 (unsigned long long)size,
                 (unsigned long long)(p.start + t->base));
    const int r =
        child == &tree_page ? 0 : mapped_in(t, d + 1, child, low, high);
    if (r != 0)
      return r;
  }
  return 0;
}

int tree_mapped(const struct page_table *t, uint64_t va, uint64_t end) {
  return va == end ? 0 : mapped_in(t, 0, t->root, va - t->base, end - t->base);
}

/* ---- clearing ---- */

static void clear_leaf(struct page_table *t, int d, struct table *n,
                       struct part p) {
  const struct page_format *f = &t->format;
  const int level = t->level[d].number;
  for (unsigned w = p.i / WORD; w * WORD < p.last; w++) {
    uint64_t mapped = n->bits[w] & word_mask(w, p.i, p.last);
    n->bits[w] &= ~mapped;
    n->count -= (unsigned)__builtin_popcountll(mapped);
    for (; mapped != 0; mapped &= mapped - 1)
      f->clear(f->ctx, level, n->pa,
               w * WORD + (unsigned)__builtin_ctzll(mapped));
  }
}

/* Every entry is cleared, those of tables that are freed too: what the GPU
 * still has cached of a table then leads to nothing. */
static void clear_in(struct page_table *t, int d, struct table *n, uint64_t va,
                     uint64_t end) {
  struct part p = part_of(t, d, va, end);
  const uint64_t size = tree_size(t, d);
  if (tree_leaf(t, d)) {
    clear_leaf(t, d, n, p);
    return;
  }
  for (; p.i < p.last; p.i++, p.start += size) {
    struct table *child = n->slots[p.i];
    if (child == NULL)
      continue;
    if (child == &tree_page) {
      t->format.clear(t->format.ctx, t->level[d].number, n->pa, p.i);
      n->slots[p.i] = NULL;
      n->count--;
    } else {
      clear_in(t, d + 1, child, most(va, p.start), least(end, p.start + size));
      drop_empty(t, d, n, p.i);
    }
  }
}

void tree_clear(struct page_table *t, uint64_t va, uint64_t end) {
  if (va != end)
    clear_in(t, 0, t->root, va - t->base, end - t->base);
}

/* ---- filling ---- */

static unsigned log2_of(uint64_t x) {
  return 63u - (unsigned)__builtin_clzll(x);
}

/* Takes the next ranges that follow each other into the run. */
static void fill_run(struct fill *f) {
  f->pa = f->next->at;
  f->run_end = f->va;
  uint64_t pa_end = f->pa;
  while (f->next != f->last && (f->next->at == pa_end || f->next->bytes == 0)) {
    f->run_end += f->next->bytes;
    pa_end += f->next->bytes;
    f->next++;
  }
}

/* The largest block that holds va. It starts there: va begins a run, or the
 * block before, which was the largest that held its pages, ended there. */
static void fill_block(struct fill *f) {
  while (f->va == f->run_end)
    fill_run(f);
  const uint64_t both = f->va | f->pa;
  const unsigned fits = log2_of(f->run_end - f->va);
  const unsigned aligned = both == 0 ? 63 : (unsigned)__builtin_ctzll(both);
  f->block_log2 = aligned < fits ? aligned : fits;
  f->block_end = f->va + (UINT64_C(1) << f->block_log2);
}

/* Maps pages of one block from entry i of the table on, as many as there are,
 * up to a slot that holds a table, which the driver may have written into. */
static void fill_pages(struct page_table *t, int d, struct table *n,
                       struct fill *f) {
  const struct level *l = &t->level[d];
  const uint64_t size = tree_size(t, d);
  const unsigned first = tree_index(t, d, f->va);
  const uint64_t pages = (f->block_end - f->va) >> l->bit;
  const unsigned end =
      pages < l->entries - first ? first + (unsigned)pages : l->entries;
  const struct page_format *format = &t->format;
  const unsigned fragment = f->block_log2 - PAGE_LOG2;
  const bool leaf = tree_leaf(t, d);
  unsigned i = first;
  for (uint64_t pa = f->pa; i < end && (leaf || n->slots[i] == NULL); i++) {
    format->set_page(format->ctx, l->number, n->pa, i, pa, f->target, f->flags,
                     fragment);
    if (!leaf)
      n->slots[i] = &tree_page;
    pa += size;
  }
  if (leaf)
    bits_set(n, first, i);
  n->count += i - first;
  f->va += (i - first) * size;
  f->pa += (i - first) * size;
}

/* Maps what the table of depth d translates, whose addresses end at `end`,
 * less base. */
static int fill_in(struct page_table *t, int d, struct table *n, uint64_t end,
                   struct fill *f) {
  const struct level *l = &t->level[d];
  while (f->va < f->end && f->va - t->base < end) {
    const unsigned i = tree_index(t, d, f->va);
    if (f->va >= f->block_end)
      fill_block(f);
    if (l->maps && l->bit <= f->block_log2 &&
        (tree_leaf(t, d) || n->slots[i] == NULL)) {
      fill_pages(t, d, n, f);
      continue;
    }
    struct table *child = n->slots[i];
    int r = child == NULL ? tree_make(t, d + 1, n, i, &child) : 0;
    if (r != 0)
      return r;
    r = fill_in(t, d + 1, child, (((f->va - t->base) >> l->bit) + 1) << l->bit,
                f);
    if (r != 0) {
      drop_empty(t, d, n, i);
      return r;
    }
  }
  return 0;
}

int tree_fill(struct page_table *t, struct fill *f) {
  f->run_end = f->block_end = f->va;
  return f->va == f->end
             ? 0
             : fill_in(t, 0, t->root, UINT64_C(1) << t->format.bits, f);
}
