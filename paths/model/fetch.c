/* SPDX-License-Identifier: ISC */
/*
 * The fetch of a channel: ring entries below GP_PUT, the words of the segment
 * that each names, and the methods that the words hold.
 *
 *   GP_GET .. fetched, not run .. GP_PUT       both wrap at `entries`
 *
 * An entry is overwritten as it is fetched and a word as it is read, before
 * GP_GET or a release tells the driver that their place is free.
 */
#include <ck_pr.h>
#include <string.h>

#include "paths/model/state.h"

typedef unsigned long long ull;

static uint64_t field(uint64_t x, unsigned at, unsigned bits) {
  return x >> at & ((UINT64_C(1) << bits) - 1);
}

static uint64_t filled(uint8_t byte) { return byte * (UINT64_MAX / 255); }

/* Whether the n bytes at `at` lie in the driver's block. */
static bool in_block(const struct model_channel *c, uint64_t at, uint64_t n) {
  const struct model_memory *b = c->names[NAME_BUFFER];
  return b && at >= b->address && n <= b->bytes &&
         at - b->address <= b->bytes - n;
}

void model_overwrite(struct model *m, struct model_channel *c, uint64_t at,
                     uint64_t n) {
  struct model_twin t;
  if (!m->options.poisons || (!in_block(c, at, n) && !model_in_rings(m, at)) ||
      !model_reach_write(m, at, &n, &t))
    return;
  model_post_hold(t.post);
  memset(t.gpu, MODEL_FETCHED, n);
  if (t.post)
    memset(t.host, MODEL_FETCHED, n);
  model_post_go(t.post);
}

/* Why an entry is refused, or NULL. Entries of other kinds exist; nothing here
 * writes them. */
static const char *refusal(uint64_t e) {
  const unsigned length = GP_LENGTH_BIT;
  if (e == filled(MODEL_FETCHED))
    return "was fetched before and nobody wrote it since";
  if (e == filled(MODEL_POISON))
    return "is what fresh memory holds: nobody wrote it";
  if (e == 0)
    return "is empty";
  if (field(e, GP_FETCH_BIT, 1))
    return "fetches conditionally";
  if (field(e, 1, 1) || field(e, GP_GET_TOP_BIT + 1, 1))
    return "has a reserved bit set";
  if (!field(e, GP_LEVEL_BIT, 1))
    return "is of level MAIN";
  if (field(e, GP_SYNC_BIT, 1))
    return "waits (SYNC)";
  if (!field(e, length, GP_LENGTH_BITS))
    return "has no words";
  return NULL;
}

static void store_get(const struct model_channel *c) {
  struct model_post *post = c->userd.post;
  /* Release: whoever sees GP_GET writes entries below it anew. */
  ck_pr_fence_release();
  model_post_hold(post);
  ck_pr_store_32((uint32_t *)(void *)(c->userd.gpu + USERD_GP_GET), c->get);
  if (post)
    ck_pr_store_32((uint32_t *)(void *)(c->userd.host + USERD_GP_GET), c->get);
  model_post_go(post);
}

/* Reads the next entry ahead of its turn. */
static enum model_step read_entry(struct model *m, struct model_channel *c) {
  uint64_t at = c->ring + (uint64_t)c->get * GP_ENTRY_BYTES;
  uint64_t n = GP_ENTRY_BYTES, e;
  char *p = model_reach(m, at, &n);
  if (!p || n < GP_ENTRY_BYTES)
    return model_fault_mmu(m, c, at, FAULT_READ);
  memcpy(&e, p, sizeof e);
  const char *why = refusal(e);
  if (why)
    return model_stray(m, c, "ring entry %u, 0x%llx, %s", c->get, (ull)e, why);
  c->fetched[(c->first + c->nfetched++) % FETCHED] = e;
  c->get = (c->get + 1) & (c->entries - 1);
  model_overwrite(m, c, at, GP_ENTRY_BYTES);
  store_get(c);
  return STEP_DONE;
}

/* GP_PUT, with acquire order: pairs with its store, which follows the stores
 * of the entries and words below it. In Mapped memory that posts writes it is
 * seen as it is stored, and it pushes what was stored before it. */
static uint32_t load_put(const struct model_channel *c) {
  char *p = c->userd.host + USERD_GP_PUT;
  uint32_t put = ck_pr_load_32((uint32_t *)(void *)p);
  ck_pr_fence_acquire(); /* partner: the store of GP_PUT */
  model_post_settle();
  if (c->userd.post && put != c->get)
    model_post_move(c->userd.post);
  return put;
}

/* Looks at GP_PUT and reads as many entries as the seed has it. WAIT where
 * there is none to run. */
static enum model_step read_entries(struct model *m, struct model_channel *c) {
  if (c->look || m->peeks) {
    uint32_t put = load_put(c);
    if (put >= c->entries)
      return model_stray(m, c, "GP_PUT 0x%x is past the ring's %u entries", put,
                         c->entries);
    unsigned most = 1 + model_below(m, FETCHED);
    while (c->get != put && c->nfetched < FETCHED && most--)
      if (read_entry(m, c) == STEP_FAULT)
        return STEP_FAULT;
    c->look = c->get != put;
  }
  return c->nfetched ? STEP_DONE : STEP_WAIT;
}

static void open_segment(struct model_channel *c) {
  uint64_t e = c->fetched[c->first];
  c->first = (c->first + 1) % FETCHED;
  c->nfetched--;
  c->at = e & ((UINT64_C(2) << GP_GET_TOP_BIT) - (1u << GP_GET_LOW_BIT));
  c->words = field(e, GP_LENGTH_BIT, GP_LENGTH_BITS);
}

static enum model_step set_object(struct model *m, struct model_channel *c,
                                  uint32_t sub, uint32_t x) {
  uint32_t cls = x & 0xffff;
  const struct model_object *o = m->objects;
  while (o && (o->parent != c->handle || o->cls != cls))
    o = o->next;
  if (!o || x >> 16)
    return model_stray(m, c, "SET_OBJECT 0x%x: the channel has no such engine",
                       x);
  uint32_t want = cls == m->options.gpu.compute_class ? SUB_COMPUTE : SUB_COPY;
  if (sub != want)
    return model_stray(m, c, "SET_OBJECT 0x%x on subchannel %u, not %u", x, sub,
                       want);
  c->bound[sub] = cls;
  return STEP_DONE;
}

/* Runs the method at byte `at` of the subchannel with the argument x. */
static enum model_step run(struct model *m, struct model_channel *c,
                           uint32_t at, uint32_t sub, uint32_t x) {
  enum model_kind kind = at < HOST_METHODS_END ? KIND_HOST
                         : sub == SUB_COMPUTE  ? KIND_COMPUTE
                                               : KIND_COPY;
  uint32_t cls = kind == KIND_HOST ? c->cls : c->bound[sub];
  if (!cls)
    return model_stray(
        m, c, "method 0x%x on subchannel %u, which no class is bound to", at,
        sub);
  int i = model_find(kind, at);
  if (i < 0)
    return model_stray(m, c, "method 0x%x of class 0x%x is not known", at, cls);
  uint32_t stray = x & ~model_bits(kind, i, cls);
  size_t n;
  if (stray)
    return model_stray(m, c,
                       "method 0x%x (%s) of class 0x%x: bits 0x%x of 0x%x", at,
                       model_methods(kind, &n)[i].name, cls, stray, x);
  if (kind == KIND_HOST && i == HOST_SET_OBJECT)
    return set_object(m, c, sub, x);
  return kind == KIND_HOST      ? model_host(m, c, i, x)
         : kind == KIND_COMPUTE ? model_compute(m, c, i, x)
                                : model_copy(m, c, i, x);
}

static enum model_step header(struct model *m, struct model_channel *c,
                              uint32_t x) {
  if (!x)
    return STEP_DONE; /* DMA_NOP */
  if (x == (uint32_t)filled(MODEL_FETCHED))
    return model_stray(m, c,
                       "header 0x%x was run before and nobody wrote it "
                       "since",
                       x);
  if (x == (uint32_t)filled(MODEL_POISON))
    return model_stray(m, c,
                       "header 0x%x is what fresh memory holds: nobody "
                       "wrote it",
                       x);
  c->op = (enum model_op)(x >> 29);
  c->count = x >> 16 & 0x1fff;
  c->sub = x >> 13 & 7;
  c->method = (x & 0xfff) << 2;
  if (x & 0x1000)
    return model_stray(m, c, "header 0x%x has bit 12 set", x);
  switch (c->op) {
  case OP_IMMD: {
    uint32_t immediate = c->count;
    c->count = 0;
    return run(m, c, c->method, c->sub, immediate);
  }
  case OP_INC:
  case OP_NON_INC:
  case OP_ONE_INC:
    if (c->count)
      return STEP_DONE;
    return model_stray(m, c, "header 0x%x has no arguments", x);
  default:
    return model_stray(m, c, "header 0x%x: operation %u is not modelled", x,
                       x >> 29);
  }
}

static enum model_step argument(struct model *m, struct model_channel *c,
                                uint32_t x) {
  enum model_step step = run(m, c, c->method, c->sub, x);
  if (step != STEP_DONE)
    return step;
  c->count--;
  if (c->op == OP_INC)
    c->method += 4;
  if (c->op == OP_ONE_INC) {
    c->method += 4;
    c->op = OP_NON_INC;
  }
  return STEP_DONE;
}

/* Reads the word that runs next. */
static enum model_step read_word(struct model *m, struct model_channel *c) {
  uint64_t n = 4;
  char *p = model_reach(m, c->at, &n);
  if (!p || n < 4)
    return model_fault_mmu(m, c, c->at, FAULT_READ);
  memcpy(&c->word, p, sizeof c->word);
  model_overwrite(m, c, c->at, sizeof c->word);
  return STEP_DONE;
}

enum model_step model_fetch(struct model *m, struct model_channel *c) {
  if (!c->words) {
    enum model_step step = read_entries(m, c);
    if (step != STEP_DONE)
      return step;
    open_segment(c);
  }
  /* A word that waits is not read again: once a release's store has landed,
   * its words are the driver's. */
  if (!c->held && read_word(m, c) == STEP_FAULT)
    return STEP_FAULT;
  enum model_step step =
      c->count ? argument(m, c, c->word) : header(m, c, c->word);
  c->held = step == STEP_WAIT;
  if (step != STEP_DONE)
    return step;
  m->words++;
  c->at += 4;
  c->words--;
  if (!c->words && c->count)
    return model_stray(m, c,
                       "a segment ends %u arguments early, in method 0x%x",
                       c->count, c->method);
  return STEP_DONE;
}
