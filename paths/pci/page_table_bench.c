/* SPDX-License-Identifier: ISC */
/*
 * page_table_bench: what an entry costs, map and unmap, in the format of
 * version 3 into plain memory, with a flush that does nothing. Beside it, in
 * the same run, a naive loop: each page descends from the root through host
 * arrays and writes its entry; it checks nothing, joins nothing, frees nothing
 * and knows the page size. CPU time of the thread, medians of rounds. Then what
 * tables take.
 */
#define _DEFAULT_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "paths/pci/failing.h"
#include "paths/pci/gmmu.h"
#include "paths/pci/page_table.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

enum { ROUNDS = 31, MOST_RANGES = 1 << 18, NAIVE_LEVELS = 6 };

static const uint64_t memory_bytes = 256 << 20;
static unsigned char *memory;

static void zero(void *ctx, uint64_t pa, uint64_t n) {
  (void)ctx;
  memset(memory + pa, 0, n);
}

static bool flush(void *ctx) {
  (void)ctx;
  return true;
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void check(int r) {
  if (r != 0) {
    fprintf(stderr, "page_table_bench: %s\n", rig_nv_why());
    exit(1);
  }
}

/* ---- the naive loop ---- */

struct naive {
  const struct page_format *f;
  uint64_t next; /* table to give out */
  struct naive_table *root;
};

struct naive_table {
  uint64_t pa;
  struct naive_table *child[512];
};

static struct naive_table *naive_new(struct naive *n) {
  struct naive_table *t = calloc(1, sizeof *t);
  if (t == NULL)
    abort();
  t->pa = n->next;
  n->next += 4096;
  n->f->zero(n->f->ctx, t->pa, 4096);
  return t;
}

static unsigned naive_index(const struct page_format *f, int up, uint64_t va) {
  const int above = up + 1 < f->nlevels ? f->levels[up + 1] : f->bits;
  return (unsigned)(va >> f->levels[up]) &
         ((1u << (above - f->levels[up])) - 1);
}

/* Maps one page of the level `up` from the leaf, or clears it. */
static void naive_page(struct naive *n, int up, uint64_t va, uint64_t pa,
                       bool map) {
  const struct page_target gpu = {PAGE_GPU, 0};
  const struct page_format *f = n->f;
  struct naive_table *t = n->root;
  int at = f->nlevels - 1;
  for (; at > up; at--) {
    const unsigned i = naive_index(f, at, va);
    if (t->child[i] == NULL) {
      t->child[i] = naive_new(n);
      f->set_table(f->ctx, f->nlevels - 1 - at, t->pa, i, t->child[i]->pa);
    }
    t = t->child[i];
  }
  const int level = f->nlevels - 1 - up;
  if (map)
    f->set_page(f->ctx, level, t->pa, naive_index(f, up, va), pa, gpu, 0, 0);
  else
    f->clear(f->ctx, level, t->pa, naive_index(f, up, va));
}

static void naive_free(struct naive_table *t) {
  for (int i = 0; i < 512; i++)
    if (t->child[i] != NULL)
      naive_free(t->child[i]);
  free(t);
}

/* ---- cases ---- */

/* `calls` maps, `stride` apart, are timed together, and then their unmaps. */
struct row {
  const char *name;
  uint64_t pages, page; /* of this size a call */
  uint64_t calls, stride;
  bool apart;        /* each page is a range of its own */
  bool tables_there; /* kept, so that no call makes or frees any */
};

static const struct row rows[] = {
    {"4 KiB, tables there", 1, 4 * KIB, 512, 4 * KIB, false, true},
    {"4 KiB, 4 tables made", 1, 4 * KIB, 128, UINT64_C(1) << 47, false, false},
    {"2 MiB, 3 tables made", 1, 2 * MIB, 128, UINT64_C(1) << 47, false, false},
    {"1 GiB, 2 tables made", 2, 512 * MIB, 128, UINT64_C(1) << 47, false,
     false},
    {"2 MiB of 4 KiB", 512, 4 * KIB, 64, 2 * MIB, false, false},
    {"1 GiB of 4 KiB, one range", 1 << 18, 4 * KIB, 1, 0, false, false},
    {"1 GiB of 4 KiB, apart", 1 << 18, 4 * KIB, 1, 0, true, false},
    {"64 GiB of 2 MiB, one range", 1 << 15, 2 * MIB, 1, 0, false, false},
    {"64 GiB of 2 MiB, apart", 1 << 15, 2 * MIB, 1, 0, true, false},
};

static struct page_range ranges[MOST_RANGES];

/* Physical pages in order, or every second one, from the last down. One range
 * begins 16 pages off what would be a larger page, so that none is. */
static size_t make_ranges(const struct row *r) {
  if (!r->apart) {
    const uint64_t off = r->page < 512 * MIB ? 16 * r->page : 0;
    ranges[0] = (struct page_range){16 * GIB + off, r->pages * r->page};
    return 1;
  }
  for (uint64_t i = 0; i < r->pages; i++)
    ranges[i] =
        (struct page_range){16 * GIB + 2 * (r->pages - i) * r->page, r->page};
  return r->pages;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Nanoseconds an entry, medians: map, unmap, and the naive loop's. */
struct cost {
  double map, unmap, naive_map, naive_unmap;
};

static double median(double *x) {
  qsort(x, ROUNDS, sizeof *x, by_value);
  return x[ROUNDS / 2];
}

/* One round: maps of all calls, then unmaps, by both. */
static struct cost round_of(struct page_table *t, struct naive *n,
                            const struct row *r, size_t nranges) {
  const struct page_target gpu = {PAGE_GPU, 0};
  const uint64_t first = r->tables_there ? 64 * GIB : 0, end = r->calls;
  const uint64_t bytes = r->pages * r->page;
  const int up = r->page == 4 * KIB ? 0 : r->page == 2 * MIB ? 1 : 2;
  const double entries = (double)(r->calls * r->pages);
  bool confirmed;
  uint64_t at[5];
  at[0] = now();
  for (uint64_t k = 0; k < end; k++)
    check(page_table_map(t, first + k * r->stride, gpu, ranges, nranges, 0,
                         NULL));
  at[1] = now();
  for (uint64_t k = 0; k < end; k++)
    check(page_table_unmap(t, first + k * r->stride, bytes, &confirmed));
  at[2] = now();
  for (uint64_t k = 0; k < end; k++)
    for (uint64_t i = 0; i < r->pages; i++)
      naive_page(n, up, first + k * r->stride + i * r->page,
                 16 * GIB + i * r->page, true);
  at[3] = now();
  for (uint64_t k = 0; k < end; k++)
    for (uint64_t i = 0; i < r->pages; i++)
      naive_page(n, up, first + k * r->stride + i * r->page, 0, false);
  at[4] = now();
  return (struct cost){
      (double)(at[1] - at[0]) / entries, (double)(at[2] - at[1]) / entries,
      (double)(at[3] - at[2]) / entries, (double)(at[4] - at[3]) / entries};
}

static struct cost measure(struct page_table *t, struct naive *n,
                           const struct row *r) {
  static double map[ROUNDS], unmap[ROUNDS], nmap[ROUNDS], nunmap[ROUNDS];
  const size_t nranges = make_ranges(r);
  for (int round = 0; round < ROUNDS; round++) {
    const struct cost c = round_of(t, n, r, nranges);
    map[round] = c.map;
    unmap[round] = c.unmap;
    nmap[round] = c.naive_map;
    nunmap[round] = c.naive_unmap;
  }
  return (struct cost){median(map), median(unmap), median(nmap),
                       median(nunmap)};
}

static void run_row(const struct page_format *f,
                    const struct page_table_options *o, const struct row *r) {
  struct page_table *t;
  uint64_t tables[PAGE_LEVELS];
  int levels;
  struct naive n = {f, 128 << 20, NULL};
  n.root = naive_new(&n);
  check(page_table_create(o, &t));
  page_table_booted(t);
  if (r->tables_there)
    check(page_table_tables(t, 64 * GIB, r->page, tables, &levels));
  const struct cost c = measure(t, &n, r);
  printf("%-28s %8" PRIu64 " %8.1f %8.1f %8.1f %8.1f %9.1f %9.1f\n", r->name,
         r->calls * r->pages, c.map, c.unmap, c.naive_map, c.naive_unmap,
         1e3 / c.map, 1e3 / c.unmap);
  page_table_destroy(t);
  naive_free(n.root);
}

/* ---- what tables take ---- */

static void run_space(struct page_table_options o, struct failing *failing,
                      const char *name, uint64_t page) {
  struct page_table *t;
  const struct page_target gpu = {PAGE_GPU, 0};
  const uint64_t bytes = page == 4 * KIB ? 4 * GIB : 64 * GIB;
  const struct page_range range = {page, bytes}; /* a page off */
  o.allocator = failing_init(failing);
  check(page_table_create(&o, &t));
  page_table_booted(t);
  const uint64_t before = page_table_room(t).ntables, host = failing->live;
  check(page_table_map(t, 64 * GIB, gpu, &range, 1, 0, NULL));
  const double gib = (double)bytes / (double)GIB;
  printf("%-28s %10.1f KiB of tables %10.1f KiB of host memory\n", name,
         (double)(page_table_room(t).ntables - before) * 4 / gib,
         (double)(failing->live - host) / 1024 / gib);
  page_table_destroy(t);
}

int main(void) {
  static struct failing failing;
  struct gmmu g = {.version = GMMU_V3, .zero = zero, .flush = flush};
  struct page_format f;
  struct space space;
  memory = aligned_alloc(4096, memory_bytes);
  if (memory == NULL)
    return 2;
  memset(memory, 0, memory_bytes);
  g.window = memory;
  g.window_bytes = memory_bytes;
  check(gmmu_format(&g, &f));
  check(space_init(&space, 64 * GIB, 64 * GIB, NULL));
  const struct page_table_options o = {.format = &f,
                                       .space = &space,
                                       .memory = 128 << 20,
                                       .boot = 1 << 20,
                                       .tables = PAGE_TABLES_MAIN};
  printf("%-28s %8s %17s %17s %19s\n", "", "", "ns an entry", "naive loop",
         "10^6 entries a s");
  printf("%-28s %8s %8s %8s %8s %8s %9s %9s\n", "", "entries", "map", "unmap",
         "map", "unmap", "map", "unmap");
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
    run_row(&f, &o, &rows[k]);
  printf("\na mapped GiB takes\n");
  run_space(o, &failing, "of 4 KiB pages", 4 * KIB);
  run_space(o, &failing, "of 2 MiB pages", 2 * MIB);
  run_space(o, &failing, "of 512 MiB pages", 512 * MIB);
  space_fini(&space);
  free(memory);
  return 0;
}
