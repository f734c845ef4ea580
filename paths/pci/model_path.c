/* SPDX-License-Identifier: ISC */
#include "paths/pci/model_path.h"

#include <ck_pr.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/api/why.h"
#include "paths/model/backing.h"
#include "paths/pci/gmmu.h"
#include "paths/pci/page_table.h"

#define MIB (UINT64_C(1) << 20)
#define PAGE (UINT64_C(1) << PAGE_LOG2)
#define LARGE (2 * MIB) /* a page of bit 21 */
#define MUCH (8 * MIB)
#define BOOT MIB
#define SPACE_FIRST UINT64_C(0x6000000000)
/* That entries of both versions hold. */
#define MOST_MEMORY (UINT64_C(1) << 37)

enum { MOST_RANGES = 4, GUARD_PAGES = 16 };

struct paged {
  struct board *board;
  struct space space;
  struct space_holder holder;
  struct page_table *tables;
  struct model_backing backing;
  uint64_t random;
};

/* Memory at GPU addresses. Views of it hold it, of which they read what is
 * above the line, written before. */
struct block {
  unsigned users;
  struct board *board; /* held */
  bool video;
  struct page_range ranges[MOST_RANGES];
  size_t nranges;
  /* ---- */
  struct space_hold hold;
  uint64_t bytes; /* mapped from hold.at on */
  bool takes;     /* it owns its physical memory */
  bool lets;      /* the board was let reach it */
  char *fresh;    /* host memory of its own */
};

static uint64_t whole(uint64_t n) { return (n + PAGE - 1) / PAGE * PAGE; }

static uint64_t below(struct paged *p, uint64_t n) {
  /* xorshift64*, Vigna 2014 */
  p->random ^= p->random >> 12;
  p->random ^= p->random << 25;
  p->random ^= p->random >> 27;
  return (p->random * UINT64_C(0x2545f4914f6cdd1d) >> 32) % n;
}

/* What the design rules out: a call of this file's own that is refused. */
static void sure(int r) {
  if (r != 0)
    abort();
}

/* What a block of n bytes is aligned to, in either space: one of much memory
 * to large pages, as a walk of all of it would take long. */
static uint64_t alignment(struct paged *p, uint64_t n) {
  return n >= MUCH || (n >= LARGE && below(p, 2)) ? LARGE : PAGE;
}

/* ---- physical memory ---- */

static bool take_range(struct paged *p, struct block *b, uint64_t n,
                       uint64_t align) {
  struct page_request q = page_request(n);
  q.zero = false;
  q.align = align;
  uint64_t pa;
  if (page_table_palloc(p->tables, q, &pa) != 0)
    return false;
  b->ranges[b->nranges++] = (struct page_range){pa, n};
  model_poison(board_memory(p->board) + pa, n);
  return true;
}

static void give_ranges(struct paged *p, struct block *b) {
  for (size_t i = 0; i < b->nranges; i++) {
    const struct page_range *r = &b->ranges[i];
    sure(page_table_pfree(p->tables, r->at));
    if (r->bytes >= LARGE) /* the process's memory goes back */
      (void)!madvise(board_memory(p->board) + r->at, r->bytes, MADV_DONTNEED);
  }
  b->nranges = 0;
}

/* New video memory: one range, or several where it may lie apart. */
static bool take_video(struct paged *p, struct block *b, bool apart) {
  const uint64_t align = alignment(p, b->bytes);
  uint64_t left = b->bytes;
  b->video = b->takes = true;
  while (left != 0) {
    uint64_t n = left;
    if (apart && left > align && b->nranges + 1 < MOST_RANGES && below(p, 2))
      n = align * (1 + below(p, left / align));
    if (!take_range(p, b, n, align)) {
      give_ranges(p, b);
      return false;
    }
    left -= n;
  }
  return true;
}

/* The caller's host memory, or new. */
static bool take_host(struct paged *p, struct block *b, char *host) {
  char *at = host;
  if (at == NULL) {
    at = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
      return false;
    model_poison(at, b->bytes);
    b->fresh = at;
  }
  b->lets = board_let(p->board, at, b->bytes);
  b->ranges[b->nranges++] = (struct page_range){(uintptr_t)at, b->bytes};
  return b->lets;
}

/* The bytes of another block from `from` on. */
static bool take_view(struct paged *p, struct block *b, const struct block *of,
                      uint64_t from) {
  uint64_t left = b->bytes;
  b->video = of->video;
  for (size_t i = 0; i < of->nranges && left != 0; i++) {
    const struct page_range *r = &of->ranges[i];
    if (from >= r->bytes) {
      from -= r->bytes;
      continue;
    }
    const uint64_t n = r->bytes - from < left ? r->bytes - from : left;
    b->ranges[b->nranges++] = (struct page_range){r->at + from, n};
    left -= n;
    from = 0;
  }
  if (left != 0)
    return false;
  b->lets = !of->video &&
            board_let(p->board, (void *)(uintptr_t)b->ranges[0].at, b->bytes);
  return of->video || b->lets;
}

static void give(struct paged *p, struct block *b) {
  if (b->lets)
    board_bar(p->board, (void *)(uintptr_t)b->ranges[0].at, b->bytes);
  if (b->fresh != NULL)
    munmap(b->fresh, b->bytes);
  if (b->takes)
    give_ranges(p, b);
}

/* ---- addresses and entries ---- */

static bool map(struct paged *p, struct block *b, const struct block *of) {
  struct page_target to = {b->video ? PAGE_GPU : PAGE_SYSTEM, 0};
  const unsigned flags = b->video ? 0 : PAGE_SNOOPED;
  const uint64_t room = b->bytes + PAGE * (1 + below(p, GUARD_PAGES));
  if (of != NULL && b->video) {
    const int peer = board_peer(p->board, of->board);
    if (peer < 0)
      return false;
    to = (struct page_target){PAGE_PEER, (unsigned)peer};
  }
  if (space_alloc(&p->holder, room, alignment(p, b->bytes), &b->hold) != 0)
    return false;
  if (page_table_map(p->tables, b->hold.at, to, b->ranges, b->nranges, flags,
                     NULL) == 0)
    return true;
  sure(space_free(&p->space, &b->hold));
  return false;
}

/* ---- the backing ---- */

static void put(struct block *b) {
  bool last;
  ck_pr_fence_release(); /* this user's reads, before the last put */
  ck_pr_dec_uint_zero(&b->users, &last);
  if (!last)
    return;
  ck_pr_fence_acquire(); /* partner: the other users' fence */
  board_drop(b->board);
  free(b);
}

static bool take(struct paged *p, struct block *b, const struct model_wish *w) {
  if (w->view != NULL)
    return take_view(p, b, w->view, w->from);
  if (w->kind == RIG_PINNED)
    return take_host(p, b, w->host);
  return take_video(p, b, w->kind == RIG_DEVICE && below(p, 2));
}

static char *bytes_of(const struct block *b) {
  if (b->nranges != 1)
    return NULL;
  return b->video ? board_memory(b->board) + b->ranges[0].at
                  : (char *)(uintptr_t)b->ranges[0].at;
}

static bool place(void *ctx, const struct model_wish *w,
                  struct model_block *out) {
  struct paged *p = ctx;
  struct block *b = calloc(1, sizeof *b);
  if (b == NULL)
    return false;
  b->users = 1;
  b->board = p->board;
  board_hold(b->board);
  b->bytes = whole(w->bytes);
  if (take(p, b, w) && map(p, b, w->view)) {
    *out = (struct model_block){b->hold.at,
                                w->view == NULL ? bytes_of(b) : NULL, b};
    return true;
  }
  give(p, b);
  put(b);
  return false;
}

static void hide(void *ctx, void *own) {
  struct paged *p = ctx;
  const struct block *b = own;
  bool confirmed;
  sure(page_table_unmap(p->tables, b->hold.at, b->bytes, &confirmed));
  if (!confirmed)
    abort(); /* the board's flush never fails */
}

static void drop(void *ctx, void *own) {
  struct paged *p = ctx;
  struct block *b = own;
  sure(space_free(&p->space, &b->hold));
  give(p, b);
  put(b);
}

static char *reach(void *ctx, uint64_t at, bool write, uint64_t *n) {
  struct paged *p = ctx;
  enum model_fault_type fault;
  const char *wrong;
  return board_reach(p->board, at, write, n, &fault, &wrong);
}

static enum model_fault_type fault_of(void *ctx, uint64_t at, bool write,
                                      const char **wrong) {
  struct paged *p = ctx;
  enum model_fault_type is;
  uint64_t n = 1;
  if (board_reach(p->board, at, write, &n, &is, wrong) != NULL)
    return FAULT_PTE; /* past a memory's last byte, or its views' end */
  return is;
}

static void *refer(void *own) {
  struct block *b = own;
  ck_pr_inc_uint(&b->users);
  return b;
}

static void unrefer(void *block) { put(block); }

static void end(void *ctx) {
  struct paged *p = ctx;
  page_table_destroy(p->tables);
  space_fini(&p->space);
  board_end(p->board);
  free(p);
}

/* ---- opening ---- */

static struct board *new_board(const struct rig_nv_model_options *o,
                               enum model_path is) {
  /* Pools answer while a block of twice the request is free. */
  const uint64_t most = MOST_MEMORY / 4;
  const uint64_t device = o->device_bytes < most ? o->device_bytes : most;
  const uint64_t mapped = o->mapped_bytes < most ? o->mapped_bytes : most;
  const uint64_t main = 2 * (whole(device) + whole(mapped)) + 64 * MIB;
  const uint64_t memory = main < MOST_MEMORY ? main : MOST_MEMORY;
  const struct board_options b = {
      .version = is == MODEL_PATH_V2 ? GMMU_V2 : GMMU_V3,
      .memory = memory / MIB * MIB,
      .window = BOOT + (memory / 512 + MIB - 1) / MIB * MIB, /* and tables */
      .seed = o->seed};
  return board_new(&b);
}

static int make_tables(struct paged *p) {
  static const struct page_block blocks[] = {{LARGE, LARGE}};
  const struct page_table_options o = {.format = board_format(p->board),
                                       .space = &p->space,
                                       .memory = board_bytes(p->board),
                                       .boot = BOOT,
                                       .tables = PAGE_TABLES_POOL,
                                       .pages = blocks,
                                       .npages = 1};
  int r =
      space_init(&p->space, SPACE_FIRST, RIG_NV_WINDOWS - SPACE_FIRST, NULL);
  if (r != 0)
    return r;
  space_holder_init(&p->holder, &p->space);
  r = page_table_create(&o, &p->tables);
  if (r != 0) {
    space_fini(&p->space);
    return r;
  }
  page_table_booted(p->tables);
  board_root(p->board, page_table_root(p->tables));
  return 0;
}

static int new_paged(const struct rig_nv_model_options *o, enum model_path is,
                     struct paged **out) {
  static const char key;
  struct paged *p = calloc(1, sizeof *p);
  if (p == NULL)
    return why(RIG_NV_HOST_MEMORY, "page tables of a model");
  p->random = o->seed * 2 + 1;
  p->board = new_board(o, is);
  int r = p->board != NULL ? make_tables(p)
                           : why(RIG_NV_HOST_MEMORY, "a model's board");
  if (r != 0) {
    if (p->board != NULL)
      board_end(p->board);
    free(p);
    return r;
  }
  p->backing = (struct model_backing){p,     &key,     place, hide,    drop,
                                      reach, fault_of, refer, unrefer, end};
  *out = p;
  return 0;
}

static int open_paged(enum model_path is, const struct rig_nv_model_options *o,
                      const struct rig_nv_path **path) {
  struct paged *p = NULL;
  int r = new_paged(o, is, &p);
  if (r != 0)
    return r;
  r = model_open(o, &p->backing, path);
  if (r != 0)
    end(p);
  return r;
}

int model_path_open(enum model_path is,
                    const struct rig_nv_model_options *options,
                    const struct rig_nv_path **path) {
  struct rig_nv_model_options o;
  rig_nv_model_options_init(&o);
  if (options != NULL)
    o = *options;
  o.personality =
      is == MODEL_PATH_KERNEL ? RIG_NV_LIKE_KERNEL : RIG_NV_LIKE_PCI;
  return model_path_walks(is) ? open_paged(is, &o, path)
                              : rig_nv_path_model(&o, path);
}

void model_path_plant(const struct rig_nv_path *path, enum board_plant plant,
                      unsigned bit) {
  const struct paged *p = model_backing_of(path)->ctx;
  model_stall(path, true); /* no turn looks meanwhile */
  board_plant(p->board, plant, bit);
  model_stall(path, false);
}

static const char *const names[MODEL_PATHS] = {"kernel", "pci", "v2", "v3"};

const char *model_path_name(enum model_path is) { return names[is]; }

enum model_path model_path_of(const char *name) {
  unsigned i = 0;
  while (i < MODEL_PATHS && strcmp(names[i], name) != 0)
    i++;
  return (enum model_path)i;
}
