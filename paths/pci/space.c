/* SPDX-License-Identifier: ISC */
#include "paths/pci/space.h"

#include "core/api/why.h"

static const struct rig_nv_lock_class lock_class = {.name = "space",
                                                    .rank = RIG_NV_RANK_SPACE};

int space_init(struct space *s, uint64_t base, uint64_t bytes,
               const struct rig_nv_allocator *allocator) {
  if (bytes == 0 || bytes > UINT64_MAX - base)
    return why(RIG_NV_INVALID,
               "%llu addresses from 0x%llx are none, or end past 2^64 - 1",
               (unsigned long long)bytes, (unsigned long long)base);
  const int r = rig_nv_lock_init(&s->lock, &lock_class);
  if (r != 0)
    return r;
  s->base = base;
  s->bytes = bytes;
  tlsf_init(&s->tlsf, base, bytes, SPACE_UNIT_LOG2, allocator);
  return 0;
}

void space_fini(struct space *s) {
  tlsf_fini(&s->tlsf);
  rig_nv_lock_fini(&s->lock);
}

uint64_t space_base(const struct space *s) { return s->base; }

uint64_t space_bytes(const struct space *s) { return s->bytes; }

void space_holder_init(struct space_holder *h, struct space *s) {
  *h = (struct space_holder){.space = s};
}

/* The block's place in its holder's list. */
static void holder_add(struct space_holder *h, struct tlsf_block *b) {
  b->user = h;
  b->prev = NULL;
  b->next = h->first;
  if (b->next != NULL)
    b->next->prev = b;
  h->first = b;
  h->holds++;
}

static void holder_remove(struct tlsf_block *b) {
  struct space_holder *h = b->user;
  if (b->next != NULL)
    b->next->prev = b->prev;
  if (b->prev != NULL)
    b->prev->next = b->next;
  else
    h->first = b->next;
  h->holds--;
}

int space_alloc(struct space_holder *h, uint64_t n, uint64_t align,
                struct space_hold *hold) {
  struct space *s = h->space;
  struct tlsf_block *b;
  if (n == 0)
    return why(RIG_NV_INVALID, "0 addresses asked for");
  if (align == 0 || (align & (align - 1)) != 0)
    return why(RIG_NV_INVALID, "alignment %llu is no power of two",
               (unsigned long long)align);
  int r = rig_nv_lock_take(&s->lock);
  if (r != 0)
    return r;
  r = tlsf_take(&s->tlsf, n, align, &b);
  if (r == 0) {
    holder_add(h, b);
    *hold = (struct space_hold){tlsf_address(&s->tlsf, b),
                                tlsf_bytes(&s->tlsf, b), b->serial};
  }
  rig_nv_lock_give(&s->lock);
  return r;
}

/* The hold's block; its lock is held. */
static struct tlsf_block *block_of(const struct space *s,
                                   const struct space_hold *hold) {
  struct tlsf_block *b = tlsf_find(&s->tlsf, hold->at);
  if (b != NULL && b->serial == hold->serial)
    return b;
  (void)why(RIG_NV_INVALID, "0x%llx is no hold of this space",
            (unsigned long long)hold->at);
  return NULL;
}

int space_held(struct space *s, const struct space_hold *hold) {
  int r = rig_nv_lock_take(&s->lock);
  if (r != 0)
    return r;
  r = block_of(s, hold) != NULL ? 0 : -RIG_NV_INVALID;
  rig_nv_lock_give(&s->lock);
  return r;
}

int space_free(struct space *s, const struct space_hold *hold) {
  const int r = rig_nv_lock_take(&s->lock);
  if (r != 0)
    return r;
  struct tlsf_block *b = block_of(s, hold);
  if (b != NULL) {
    holder_remove(b);
    tlsf_free(&s->tlsf, b);
  }
  rig_nv_lock_give(&s->lock);
  return b != NULL ? 0 : -RIG_NV_INVALID;
}

int space_release(struct space_holder *h) {
  struct space *s = h->space;
  const int r = rig_nv_lock_take(&s->lock);
  if (r != 0)
    return r;
  while (h->first != NULL) {
    struct tlsf_block *b = h->first;
    holder_remove(b);
    tlsf_free(&s->tlsf, b);
  }
  rig_nv_lock_give(&s->lock);
  return 0;
}

int space_unheld(struct space *s, uint64_t *bytes) {
  const int r = rig_nv_lock_take(&s->lock);
  if (r != 0)
    return r;
  *bytes = tlsf_free_bytes(&s->tlsf);
  rig_nv_lock_give(&s->lock);
  return 0;
}
