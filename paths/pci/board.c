/* SPDX-License-Identifier: ISC */
#include "paths/pci/board.h"

#include <ck_pr.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "paths/pci/gmmu.h"
#include "paths/pci/mmu.h"

enum {
  TABLE = 4096,
  DUAL = 4,  /* the level of 16-byte entries: gmmu.h */
  SIZES = 4, /* of pages */
  SETS = 64, /* of the TLB, for each size */
  PEERS = 8,
  EVICT_ONE_IN = 32,
  KIND_GENERIC = 6 /* NV_MMU_PTE_KIND_GENERIC_MEMORY */
};

static const unsigned sizes[SIZES] = {12, 21, 29, 38}; /* log2 */

struct cached {
  bool there;
  uint64_t number; /* the address's, in pages */
  struct mmu_page page;
};

struct let {
  uint64_t at, bytes;
};

struct board {
  unsigned users;
  struct board_options o;
  enum board_plant plant;
  unsigned bit;
  struct gmmu gmmu;
  struct page_format inner, format;
  char *window, *memory;
  bool *dirty; /* pages of the window that hold stores in flight */
  uint64_t *list, ndirty;
  bool sets, clears; /* since the last flush */
  struct mmu mmu;
  uint64_t root, random;
  struct cached tlb[SIZES][SETS];
  struct let *lets;
  size_t nlets, room;
  struct board *peers[PEERS];
};

/* ---- the host's side: stores, and the flush ---- */

static void touch(struct board *b, uint64_t pa) {
  const uint64_t i = pa / TABLE;
  if (pa < b->o.window && !b->dirty[i]) {
    b->dirty[i] = true;
    b->list[b->ndirty++] = i;
  }
}

static void set_table(void *ctx, int level, uint64_t table, unsigned i,
                      uint64_t child) {
  struct board *b = ctx;
  touch(b, table);
  b->sets = true;
  b->inner.set_table(b->inner.ctx, level, table, i, child);
}

/* The bit of the page's entry that a plant has wrong. */
static void spoil(struct board *b, int level, uint64_t table, unsigned i) {
  const uint64_t at = table + (level == DUAL ? 16u : 8u) * (uint64_t)i;
  uint64_t x;
  memcpy(&x, b->window + at, sizeof x);
  x ^= UINT64_C(1) << b->bit;
  memcpy(b->window + at, &x, sizeof x);
}

static void set_page(void *ctx, int level, uint64_t table, unsigned i,
                     uint64_t pa, struct page_target to, unsigned flags,
                     unsigned fragment) {
  struct board *b = ctx;
  touch(b, table);
  b->sets = true;
  b->inner.set_page(b->inner.ctx, level, table, i, pa, to, flags, fragment);
  if (b->plant == BOARD_WRONG_BIT)
    spoil(b, level, table, i);
}

static void clear(void *ctx, int level, uint64_t table, unsigned i) {
  struct board *b = ctx;
  touch(b, table);
  b->clears = true;
  b->inner.clear(b->inner.ctx, level, table, i);
}

static bool large(void *ctx, int level) {
  struct board *b = ctx;
  return b->inner.large(b->inner.ctx, level);
}

static void zero(void *ctx, uint64_t pa, uint64_t n) {
  struct board *b = ctx;
  for (uint64_t at = pa; at < pa + n; at += TABLE) {
    touch(b, at);
    memset((at < b->o.window ? b->window : b->memory) + at, 0, TABLE);
  }
}

static bool is_lost(const struct board *b) {
  return (b->plant == BOARD_NO_FLUSH_OF_MAPS && b->sets) ||
         (b->plant == BOARD_NO_FLUSH_OF_UNMAPS && b->clears);
}

static bool flush(void *ctx) {
  struct board *b = ctx;
  const bool lost = is_lost(b);
  b->sets = b->clears = false;
  if (lost)
    return true;
  while (b->ndirty != 0) {
    const uint64_t i = b->list[--b->ndirty];
    memcpy(b->memory + i * TABLE, b->window + i * TABLE, TABLE);
    b->dirty[i] = false;
  }
  if (b->plant != BOARD_NO_INVALIDATE)
    memset(b->tlb, 0, sizeof b->tlb);
  return true;
}

/* ---- the machine's memory, and peers ---- */

bool board_let(struct board *b, const void *p, uint64_t n) {
  if (b->nlets == b->room) {
    const size_t room = b->room != 0 ? 2 * b->room : 16;
    struct let *wider = realloc(b->lets, room * sizeof *wider);
    if (wider == NULL)
      return false;
    b->lets = wider;
    b->room = room;
  }
  b->lets[b->nlets++] = (struct let){(uintptr_t)p, n};
  return true;
}

void board_bar(struct board *b, const void *p, uint64_t n) {
  for (size_t i = 0; i < b->nlets; i++)
    if (b->lets[i].at == (uintptr_t)p && b->lets[i].bytes == n) {
      b->lets[i] = b->lets[--b->nlets];
      return;
    }
  abort();
}

int board_peer(struct board *b, struct board *other) {
  for (unsigned k = 0; k < PEERS; k++) {
    const unsigned i = (unsigned)((b->o.seed + k) % PEERS);
    if (b->peers[i] == NULL) {
      board_hold(other);
      b->peers[i] = other;
    }
    if (b->peers[i] == other)
      return (int)i;
  }
  return -1;
}

/* ---- the GPU's side ---- */

static uint64_t below(struct board *b, uint64_t n) {
  /* xorshift64*, Vigna 2014 */
  b->random ^= b->random >> 12;
  b->random ^= b->random << 25;
  b->random ^= b->random >> 27;
  return (b->random * UINT64_C(0x2545f4914f6cdd1d) >> 32) % n;
}

static struct cached *slot(struct board *b, int size, uint64_t va) {
  return &b->tlb[size][(va >> sizes[size]) % SETS];
}

/* What the TLB holds of the address, or NULL. */
static const struct mmu_page *cached(struct board *b, uint64_t va) {
  for (int k = 0; k < SIZES; k++) {
    const struct cached *c = slot(b, k, va);
    if (c->there && c->number == va >> sizes[k])
      return &c->page;
  }
  return NULL;
}

static void keep(struct board *b, uint64_t va, const struct mmu_page *page) {
  for (int k = 0; k < SIZES; k++)
    if (sizes[k] == page->log2) {
      const uint64_t inside = va & ((UINT64_C(1) << page->log2) - 1);
      struct cached *c = slot(b, k, va);
      *c = (struct cached){true, va >> sizes[k], *page};
      c->page.pa -= inside;
    }
}

/* The page of the address; its pa is the page's own. */
static bool translate(struct board *b, uint64_t va, struct mmu_page *page,
                      enum model_fault_type *fault, const char **wrong) {
  if (below(b, EVICT_ONE_IN) == 0)
    b->tlb[below(b, SIZES)][below(b, SETS)].there = false;
  const struct mmu_page *hit = cached(b, va);
  *wrong = NULL;
  if (hit != NULL) {
    *page = *hit;
    return true;
  }
  if (va >> (b->mmu.level[0].msb + 1) != 0) {
    *fault = FAULT_VA_LIMIT;
    return false;
  }
  const enum mmu_result r = mmu_walk(&b->mmu, b->root, va, page);
  if (r == MMU_MAPPED) {
    keep(b, va, page);
    page->pa -= va & ((UINT64_C(1) << page->log2) - 1);
    return true;
  }
  *fault = r == MMU_NOTHING && page->log2 != sizes[0] ? FAULT_PDE : FAULT_PTE;
  *wrong = r == MMU_MALFORMED ? page->wrong : NULL;
  return false;
}

/* Of the n bytes at bus address `at` those, from it on, that the board may
 * reach. */
static uint64_t let_bytes(const struct board *b, uint64_t at, uint64_t n) {
  uint64_t most = 0;
  for (size_t i = 0; i < b->nlets && most < n; i++) {
    const struct let *l = &b->lets[i];
    if (at >= l->at && at - l->at < l->bytes && l->bytes - (at - l->at) > most)
      most = l->bytes - (at - l->at);
  }
  return most < n ? most : n;
}

/* The bytes at physical address pa, at most *n; NULL where there are none. */
static char *locate(struct board *b, const struct mmu_page *page, uint64_t pa,
                    uint64_t *n) {
  struct board *of = b;
  switch (page->aperture) {
  case MMU_COHERENT:
  case MMU_NON_COHERENT:
    *n = let_bytes(b, pa, *n);
    return *n != 0 ? (char *)(uintptr_t)pa : NULL;
  case MMU_PEER:
    of = page->peer < PEERS ? b->peers[page->peer] : NULL;
    break;
  case MMU_VIDEO:
    break;
  }
  if (of == NULL || pa >= of->o.memory)
    return NULL;
  if (*n > of->o.memory - pa)
    *n = of->o.memory - pa;
  return of->memory + pa;
}

/* As board_reach, of one page. */
static char *in_page(struct board *b, uint64_t va, bool write, uint64_t *n,
                     enum model_fault_type *fault, const char **wrong) {
  struct mmu_page page;
  if (!translate(b, va, &page, fault, wrong))
    return NULL;
  const uint64_t size = UINT64_C(1) << page.log2, inside = va & (size - 1);
  if (*n > size - inside)
    *n = size - inside;
  *fault = FAULT_APERTURE;
  if (page.kind != KIND_GENERIC)
    *fault = FAULT_KIND;
  else if (write && page.read_only)
    *fault = FAULT_READ_ONLY;
  else
    return locate(b, &page, page.pa + inside, n);
  return NULL;
}

char *board_reach(struct board *b, uint64_t va, bool write, uint64_t *n,
                  enum model_fault_type *fault, const char **wrong) {
  uint64_t got = *n;
  char *first = in_page(b, va, write, &got, fault, wrong);
  while (first != NULL && got < *n) {
    enum model_fault_type later;
    const char *why;
    uint64_t more = *n - got;
    if (in_page(b, va + got, write, &more, &later, &why) != first + got)
      break;
    got += more;
  }
  *n = got;
  return first;
}

/* ---- its making and its end ---- */

static char *map(uint64_t n) {
  void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

static void destroy(struct board *b) {
  if (b->memory != NULL)
    munmap(b->memory, b->o.memory);
  if (b->window != NULL)
    munmap(b->window, b->o.window);
  free(b->dirty);
  free(b->list);
  free(b->lets);
  free(b);
}

static void make_format(struct board *b) {
  b->gmmu = (struct gmmu){.version = (enum gmmu_version)b->o.version,
                          .window = b->window,
                          .window_bytes = b->o.window,
                          .ctx = b,
                          .zero = zero,
                          .flush = flush};
  if (gmmu_format(&b->gmmu, &b->inner) != 0)
    abort();
  b->format = b->inner;
  b->format.ctx = b;
  b->format.set_table = set_table;
  b->format.set_page = set_page;
  b->format.clear = clear;
  b->format.zero = zero;
  b->format.flush = flush;
  b->format.large = large;
}

struct board *board_new(const struct board_options *o) {
  static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
  const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
  struct board *b = calloc(1, sizeof *b);
  if (b == NULL)
    return NULL;
  b->users = 1;
  b->o = *o;
  b->random = (o->seed ^ odd) * odd | 1;
  b->window = map(o->window);
  b->memory = map(o->memory);
  b->dirty = calloc(o->window / TABLE, sizeof *b->dirty);
  b->list = calloc(o->window / TABLE, sizeof *b->list);
  if (b->window == NULL || b->memory == NULL || b->dirty == NULL ||
      b->list == NULL) {
    destroy(b);
    return NULL;
  }
  make_format(b);
  pthread_mutex_lock(&reading); /* mmu_init keeps the rows */
  mmu_init(&b->mmu, o->version, false, b->memory, o->memory);
  pthread_mutex_unlock(&reading);
  return b;
}

void board_hold(struct board *b) { ck_pr_inc_uint(&b->users); }

void board_drop(struct board *b) {
  bool last;
  ck_pr_fence_release(); /* this user's accesses, before the last drop */
  ck_pr_dec_uint_zero(&b->users, &last);
  if (!last)
    return;
  ck_pr_fence_acquire(); /* partner: the other droppers' fence */
  destroy(b);
}

void board_end(struct board *b) {
  for (int i = 0; i < PEERS; i++)
    if (b->peers[i] != NULL)
      board_drop(b->peers[i]);
  memset(b->peers, 0, sizeof b->peers);
  board_drop(b);
}

const struct page_format *board_format(const struct board *b) {
  return &b->format;
}

void board_plant(struct board *b, enum board_plant plant, unsigned bit) {
  b->plant = plant;
  b->bit = bit;
}

void board_root(struct board *b, uint64_t pa) { b->root = pa; }

char *board_memory(struct board *b) { return b->memory; }

uint64_t board_bytes(const struct board *b) { return b->o.memory; }
