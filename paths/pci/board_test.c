/* SPDX-License-Identifier: ISC */
/* The board alone, its entries written by the formats or as words: what it
 * reaches and when, what it refuses and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paths/pci/board.h"

enum { PAGE = 4096, WINDOW = 16 * PAGE, MEMORY = 64 * PAGE };
#define VA UINT64_C(0x6000201000)
#define VIDEO (UINT64_C(40) * PAGE)

/* Tables from the root at 0 to the leaf at `leaf`, one a page. */
struct bed {
  struct board *board;
  const struct page_format *f;
  int version;
  uint64_t leaf;
};

static const struct page_target video = {PAGE_GPU, 0};

static unsigned index_of(const struct page_format *f, int depth, uint64_t va) {
  const int up = f->nlevels - 1 - depth;
  const int above = up + 1 < f->nlevels ? f->levels[up + 1] : f->bits;
  return (unsigned)(va >> f->levels[up]) &
         ((1u << (above - f->levels[up])) - 1);
}

static void begin(struct bed *b, int version) {
  const struct board_options o = {
      .version = version, .memory = MEMORY, .window = WINDOW, .seed = 1};
  b->version = version;
  b->board = board_new(&o);
  assert_non_null(b->board);
  b->f = board_format(b->board);
  board_root(b->board, 0);
  for (int d = 0; d + 1 < b->f->nlevels; d++)
    b->f->set_table(b->f->ctx, b->f->first + d, PAGE * (uint64_t)d,
                    index_of(b->f, d, VA), PAGE * (uint64_t)(d + 1));
  b->leaf = PAGE * (uint64_t)(b->f->nlevels - 1);
  assert_true(b->f->flush(b->f->ctx));
}

static void set(struct bed *b, uint64_t va, uint64_t pa,
                struct page_target to) {
  const int leaf = b->f->nlevels - 1;
  b->f->set_page(b->f->ctx, b->f->first + leaf, b->leaf,
                 index_of(b->f, leaf, va), pa, to, 0, 0);
}

static void clear(struct bed *b, uint64_t va) {
  const int leaf = b->f->nlevels - 1;
  b->f->clear(b->f->ctx, b->f->first + leaf, b->leaf, index_of(b->f, leaf, va));
}

static void flush(struct bed *b) { assert_true(b->f->flush(b->f->ctx)); }

/* The page's entry as the GPU sees it. */
static void poke(struct bed *b, uint64_t va, uint64_t x) {
  const uint64_t at = b->leaf + 8ull * index_of(b->f, b->f->nlevels - 1, va);
  memcpy(board_memory(b->board) + at, &x, sizeof x);
}

static char *reach(struct bed *b, uint64_t va, bool write, uint64_t *n,
                   enum model_fault_type *fault, const char **wrong) {
  *n = 2 * PAGE;
  return board_reach(b->board, va, write, n, fault, wrong);
}

static bool reaches(struct bed *b, uint64_t va, const char *p) {
  enum model_fault_type fault;
  const char *wrong;
  uint64_t n;
  return reach(b, va, true, &n, &fault, &wrong) == p;
}

/* ---- faults ---- */

enum entry { NOTHING, WORD, PAGE_OF, SPOILT };

static const struct fault_row {
  const char *name;
  enum entry entry;
  uint64_t va;
  uint64_t x[2]; /* of versions 2 and 3: the word, or the bit that is wrong */
  uint64_t pa;
  struct page_target to;
  bool write;
  enum model_fault_type fault;
  const char *wrong;
} faults[] = {
    {"nothing below the root", NOTHING, 0x1000, {0}, 0, {0}, 0, FAULT_PDE, 0},
    {"nothing at bit 21",
     NOTHING,
     VA + (1 << 21),
     {0},
     0,
     {0},
     1,
     FAULT_PDE,
     0},
    {"nothing in the leaf", NOTHING, VA + PAGE, {0}, 0, {0}, 0, FAULT_PTE, 0},
    {"past the last bit",
     NOTHING,
     UINT64_C(1) << 57,
     {0},
     0,
     {0},
     0,
     FAULT_VA_LIMIT,
     0},
    {"a sparse page", WORD, VA, {8, 8}, 0, {0}, 0, FAULT_PTE, "a sparse page"},
    {"bits of no page",
     WORD,
     VA,
     {0x100, 0x100},
     0,
     {0},
     0,
     FAULT_PTE,
     "bits of no page"},
    {"privileged", SPOILT, VA, {5, 4}, VIDEO, {PAGE_GPU, 0}, 0, FAULT_PTE, 0},
    {"kind", SPOILT, VA, {56, 8}, VIDEO, {PAGE_GPU, 0}, 0, FAULT_KIND, 0},
    {"read-only, written",
     SPOILT,
     VA,
     {6, 5},
     VIDEO,
     {PAGE_GPU, 0},
     1,
     FAULT_READ_ONLY,
     0},
    {"past the memory",
     PAGE_OF,
     VA,
     {0},
     MEMORY,
     {PAGE_GPU, 0},
     0,
     FAULT_APERTURE,
     0},
    {"the host's, not let",
     PAGE_OF,
     VA,
     {0},
     0x10000,
     {PAGE_SYSTEM, 0},
     0,
     FAULT_APERTURE,
     0},
    {"no such peer",
     PAGE_OF,
     VA,
     {0},
     VIDEO,
     {PAGE_PEER, 5},
     0,
     FAULT_APERTURE,
     0},
};

static void one_fault(int version, const struct fault_row *r) {
  struct bed b;
  const uint64_t x = r->x[version - 2];
  enum model_fault_type fault = (enum model_fault_type)99;
  const char *wrong = NULL;
  uint64_t n;
  begin(&b, version);
  if (r->entry == SPOILT)
    board_plant(b.board, BOARD_WRONG_BIT, (unsigned)x);
  if (r->entry == PAGE_OF || r->entry == SPOILT)
    set(&b, r->va, r->pa, r->to);
  flush(&b);
  if (r->entry == WORD)
    poke(&b, r->va, x);
  const char *p = reach(&b, r->va, r->write, &n, &fault, &wrong);
  if (p != NULL || fault != r->fault)
    fail_msg("v%d, %s: %s, fault %d", version, r->name,
             p != NULL ? "reached" : "refused", (int)fault);
  if (r->wrong != NULL && (wrong == NULL || strcmp(wrong, r->wrong) != 0))
    fail_msg("v%d, %s: says %s", version, r->name,
             wrong != NULL ? wrong : "nothing");
  board_end(b.board);
}

static void test_faults(void **state) {
  (void)state;
  for (int version = 2; version <= 3; version++)
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++)
      one_fault(version, &faults[k]);
}

static void test_read_only(void **state) {
  (void)state;
  static const unsigned bits[] = {6, 5};
  for (int version = 2; version <= 3; version++) {
    struct bed b;
    enum model_fault_type fault;
    const char *wrong;
    uint64_t n;
    begin(&b, version);
    board_plant(b.board, BOARD_WRONG_BIT, bits[version - 2]);
    set(&b, VA, VIDEO, video);
    flush(&b);
    assert_ptr_equal(reach(&b, VA, false, &n, &fault, &wrong),
                     board_memory(b.board) + VIDEO);
    board_end(b.board);
  }
}

/* ---- when ---- */

enum step { MAP, UNMAP, FLUSH, REACHES, REFUSES };

static const struct when_row {
  const char *name;
  enum board_plant plant;
  enum step steps[8];
  size_t n;
} whens[] = {
    {"from the flush on", BOARD_NO_PLANT, {MAP, REFUSES, FLUSH, REACHES}, 4},
    {"until the flush",
     BOARD_NO_PLANT,
     {MAP, FLUSH, REACHES, UNMAP, REACHES, FLUSH, REFUSES},
     7},
    {"unmapped where nothing was kept",
     BOARD_NO_PLANT,
     {MAP, FLUSH, UNMAP, REACHES, FLUSH, REFUSES},
     6},
    {"mapped and unmapped in one",
     BOARD_NO_PLANT,
     {MAP, UNMAP, FLUSH, REFUSES},
     4},
    {"no flush of maps", BOARD_NO_FLUSH_OF_MAPS, {MAP, FLUSH, REFUSES}, 3},
    {"no flush of unmaps",
     BOARD_NO_FLUSH_OF_UNMAPS,
     {MAP, FLUSH, REACHES, UNMAP, FLUSH, REACHES},
     6},
    {"no invalidate",
     BOARD_NO_INVALIDATE,
     {MAP, FLUSH, REACHES, UNMAP, FLUSH, REACHES},
     6},
    {"no invalidate, nothing kept",
     BOARD_NO_INVALIDATE,
     {MAP, FLUSH, UNMAP, FLUSH, REFUSES},
     5},
};

static void one_when(int version, const struct when_row *r) {
  struct bed b;
  begin(&b, version);
  board_plant(b.board, r->plant, 0);
  for (size_t i = 0; i < r->n; i++) {
    switch (r->steps[i]) {
    case MAP:
      set(&b, VA, VIDEO, video);
      break;
    case UNMAP:
      clear(&b, VA);
      break;
    case FLUSH:
      flush(&b);
      break;
    case REACHES:
    case REFUSES:
      if (reaches(&b, VA, board_memory(b.board) + VIDEO) !=
          (r->steps[i] == REACHES))
        fail_msg("v%d, %s, step %zu", version, r->name, i);
    }
  }
  board_end(b.board);
}

static void test_when(void **state) {
  (void)state;
  for (int version = 2; version <= 3; version++)
    for (size_t k = 0; k < sizeof whens / sizeof *whens; k++)
      one_when(version, &whens[k]);
}

/* ---- where ---- */

/* Two pages, then a page's last byte on: how many bytes lie together. */
static void test_together(void **state) {
  (void)state;
  static const struct {
    uint64_t second;
    uint64_t n, n_from_last;
  } t[] = {{VIDEO + PAGE, 2 * PAGE, 1 + PAGE},
           {VIDEO + 2 * PAGE, PAGE, 1},
           {VIDEO - PAGE, PAGE, 1},
           {VIDEO, PAGE, 1}};
  for (int version = 2; version <= 3; version++)
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
      struct bed b;
      enum model_fault_type fault;
      const char *wrong;
      uint64_t n;
      begin(&b, version);
      char *p = board_memory(b.board) + VIDEO;
      set(&b, VA, VIDEO, video);
      set(&b, VA + PAGE, t[k].second, video);
      flush(&b);
      assert_ptr_equal(reach(&b, VA, true, &n, &fault, &wrong), p);
      assert_int_equal(n, t[k].n);
      assert_ptr_equal(reach(&b, VA + PAGE - 1, true, &n, &fault, &wrong),
                       p + PAGE - 1);
      assert_int_equal(n, t[k].n_from_last);
      board_end(b.board);
    }
}

/* The host's memory while it is let, and a peer's for as long as this board. */
static void test_others(void **state) {
  (void)state;
  static _Alignas(PAGE) char host[2 * PAGE];
  for (int version = 2; version <= 3; version++) {
    struct bed a, b;
    begin(&a, version);
    begin(&b, version);
    const int peer = board_peer(a.board, b.board);
    assert_int_equal(peer, board_peer(a.board, b.board));
    set(&a, VA, VIDEO, (struct page_target){PAGE_PEER, (unsigned)peer});
    set(&a, VA + PAGE, (uintptr_t)host, (struct page_target){PAGE_SYSTEM, 0});
    flush(&a);
    assert_true(reaches(&a, VA, board_memory(b.board) + VIDEO));
    assert_true(reaches(&a, VA + PAGE, NULL));
    assert_true(board_let(a.board, host, sizeof host));
    assert_true(board_let(a.board, host, sizeof host));
    board_bar(a.board, host, sizeof host);
    assert_true(reaches(&a, VA + PAGE, host));
    board_bar(a.board, host, sizeof host);
    assert_true(reaches(&a, VA + PAGE, NULL));
    char *p = board_memory(b.board) + VIDEO;
    board_end(b.board);
    assert_true(reaches(&a, VA, p));
    *p = 1; /* held */
    board_end(a.board);
  }
}

/* ---- a wrong bit ---- */

/* Every bit of a page's entry says where it is or what may be done there, but
 * those that say how it is cached. */
static void test_bits(void **state) {
  (void)state;
  static const struct page_target to[] = {{PAGE_GPU, 0}, {PAGE_SYSTEM, 0}};
  static _Alignas(PAGE) char host[PAGE];
  /* NV_MMU_VER2_PTE_VOL and of _VER3_PTE_PCF; of _PTE_APERTURE. */
  enum { CACHED = 3, APERTURE = 1 };
  for (int version = 2; version <= 3; version++)
    for (unsigned k = 0; k < 2; k++)
      for (unsigned bit = 0; bit < 64; bit++) {
        struct bed b;
        begin(&b, version);
        assert_true(board_let(b.board, host, sizeof host));
        board_plant(b.board, BOARD_WRONG_BIT, bit);
        set(&b, VA, k == 0 ? VIDEO : (uintptr_t)host, to[k]);
        flush(&b);
        const bool right =
            reaches(&b, VA, k == 0 ? board_memory(b.board) + VIDEO : host);
        /* Coherent or not, the host's memory is reached. */
        const bool same = bit == CACHED || (k == 1 && bit == APERTURE);
        if (right != same)
          fail_msg("v%d, bit %u: %s", version, bit,
                   right ? "reached" : "not reached");
        board_end(b.board);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_faults), cmocka_unit_test(test_read_only),
      cmocka_unit_test(test_when),   cmocka_unit_test(test_together),
      cmocka_unit_test(test_others), cmocka_unit_test(test_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
