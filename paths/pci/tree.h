/* SPDX-License-Identifier: ISC */
#ifndef PATHS_PCI_TREE_H
#define PATHS_PCI_TREE_H
/*
 * tree: what the entries of the tables hold, kept in host memory.
 *
 *   depth 0   root       slots: NULL nothing, &tree_page a page, else a table
 *   ...
 *   depth n-1 leaf       one bit an entry: mapped or not
 *
 * A table lives while an entry of it holds something; the root and those that
 * page_table_tables made, which are `kept`, live for ever. Records of tables
 * that went are kept for the next ones of their depth, and have every slot
 * empty.
 *
 * For the files of page_table alone, which check every argument.
 */
#include "paths/pci/host.h"
#include "paths/pci/page_table.h"

struct table {
  uint64_t pa;
  struct tlsf *pool;
  struct tlsf_block *block;
  struct table *spare; /* the next of its depth's list */
  unsigned count;      /* entries that hold something */
  bool kept;
  union {
    struct table **slots;
    uint64_t *bits; /* of a leaf */
  };
};

struct level {
  unsigned bit, entries; /* an entry maps 2^bit bytes */
  int number;            /* the format's */
  bool maps;             /* pages may map here */
  struct table *spare;
};

struct page_table {
  struct page_format format;
  const struct rig_nv_allocator *allocator;
  struct space *space;
  uint64_t base, memory, boot, tables_bytes;
  uint64_t gpu_end; /* the end of the GPU's memory that an entry reaches */
  bool booting;
  enum page_tables tables;
  int nlevels;
  struct level level[PAGE_LEVELS]; /* by depth: the root first */
  struct table *root;
  uint64_t ntables;
  struct page_block *pages;
  size_t npages;
  struct tlsf boot_pool, tables_pool, main_pool;
};

/* What fills entries: a walk over the ranges of a map, in blocks. */
struct fill {
  uint64_t va, end;
  struct page_target target;
  unsigned flags;
  const struct page_range *next, *last; /* ranges not yet in the run */
  uint64_t pa;                          /* at va */
  uint64_t run_end;                     /* the va where the run ends */
  uint64_t block_end; /* the va where the block of this fragment ends */
  unsigned block_log2;
};

extern struct table tree_page;

/* A new table of the depth: NO_MEMORY, HOST_MEMORY. Zeroed and linked. */
int tree_make(struct page_table *, int depth, struct table *parent, unsigned i,
              struct table **);
/* The root: made, not linked. */
int tree_root(struct page_table *);
void tree_fini(struct page_table *);

/* The used block at pa that is no table, and its pool; or NULL, the reason
 * kept. */
struct tlsf_block *tree_block(struct page_table *, uint64_t pa, struct tlsf **);

/* Whether nothing of [va, end) is mapped: 0 or INVALID. */
int tree_unmapped(const struct page_table *, uint64_t va, uint64_t end);
/* Whether all of it is, by pages that lie within it: 0 or INVALID. */
int tree_mapped(const struct page_table *, uint64_t va, uint64_t end);

/* Maps what the fill says, as far as f->va where it fails. */
int tree_fill(struct page_table *, struct fill *);
/* Clears the pages that map any of [va, end), and frees the tables that are
 * empty then. */
void tree_clear(struct page_table *, uint64_t va, uint64_t end);

/* Entry of depth d that translates va, and the first address that it does. */
static inline unsigned tree_index(const struct page_table *t, int d,
                                  uint64_t va) {
  return (unsigned)((va - t->base) >> t->level[d].bit) &
         (t->level[d].entries - 1);
}
static inline uint64_t tree_size(const struct page_table *t, int d) {
  return UINT64_C(1) << t->level[d].bit;
}
static inline bool tree_bit(const struct table *n, unsigned i) {
  return (n->bits[i / 64] >> i % 64 & 1) != 0;
}
static inline bool tree_leaf(const struct page_table *t, int d) {
  return d == t->nlevels - 1;
}
#endif
