/* SPDX-License-Identifier: ISC */
#include "core/local.h"

#include "core/api/why.h"
#include "core/device.h"
#include "core/qmd/limits.h"
#include "paths/call.h"
#include "rings/rcu.h"

/* Memory that a growth replaced. */
struct local_retired {
  struct local_retired *next;
  struct rig_nv_memory memory;
  uint32_t replaced_by; /* the record's seq */
  bool carried;         /* a value has told COMPUTE of that record */
  uint64_t after;       /* then: no later value uses the memory */
};

int local_make(struct rig_nv *d) {
  int e = rig_nv_lock_init(&d->local.lock, &rig_nv_lock_local);
  d->local.made = e == 0;
  return e;
}

void local_unmake(struct rig_nv *d) {
  if (d->local.made)
    rig_nv_lock_fini(&d->local.lock);
}

/* ---- records ---- */

static struct setup newest(const struct rig_nv *d) {
  return d->rings.setup ? *d->rings.setup : (struct setup){0};
}

/* Under the lock. */
static void publish(struct rig_nv *d, const struct setup *s) {
  struct setup *record = d->local.record;
  struct setup *to = &record[d->rings.setup == &record[0]];
  *to = *s;
  ring_rcu_assign(&d->rings.setup, to); /* partner: who reserves */
  ring_rcu_synchronize();               /* the other record may be written */
}

/* Under the lock. */
static void publish_local(struct rig_nv *d, const struct limits_local *n) {
  struct setup s = newest(d);
  s.local_seq = ++s.seq;
  s.local = d->local.memory.address;
  s.local_per_tpc = n->per_tpc;
  publish(d, &s);
}

int local_code_changed(struct rig_nv *d) {
  int e = rig_nv_lock_take(&d->local.lock);
  if (e != 0)
    return e;
  struct setup s = newest(d);
  s.code_seq = ++s.seq;
  publish(d, &s);
  rig_nv_lock_give(&d->local.lock);
  return 0;
}

/* ---- retired memory ---- */

/* Whether no value uses it any more, given the cursor after the last value. */
static bool unused(struct local_retired *r, const struct cursor *last,
                   uint64_t word) {
  if (!r->carried && !setup_after(r->replaced_by, last->setup)) {
    r->carried = true;
    r->after = last->v;
  }
  return r->carried && rig_reached(word, r->after);
}

static int end_retired(struct rig_nv *d, struct local_retired *r,
                       bool give_back) {
  int e = give_back ? path_free(d->path, &r->memory) : 0;
  d->host.release(d->host.ctx, r, sizeof *r);
  return e;
}

/* Under the lock. */
static int free_unused(struct rig_nv *d) {
  struct local_retired *kept = NULL;
  struct cursor last;
  int fault = 0;
  tail_last(&d->rings.tail, &last);
  uint64_t word = rig_nv_signaled(d);
  for (struct local_retired *r = d->local.retired, *next; r; r = next) {
    next = r->next;
    if (unused(r, &last, word)) {
      int e = end_retired(d, r, true);
      fault = e != 0 ? e : fault;
    } else {
      r->next = kept;
      kept = r;
    }
  }
  ck_pr_store_ptr(&d->local.retired, kept);
  return fault;
}

int local_free_retired(struct rig_nv *d) {
  /* Somebody else's that is missed here goes back at a later call. */
  if (ck_pr_load_ptr(&d->local.retired) == NULL)
    return 0;
  int e = rig_nv_lock_take(&d->local.lock);
  if (e != 0)
    return e;
  e = free_unused(d);
  rig_nv_lock_give(&d->local.lock);
  return e;
}

/* ---- growth ---- */

/* A record for what the growth replaces; NULL with 0 for nothing. */
static int make_retired(struct rig_nv *d, struct local_retired **out) {
  *out = NULL;
  if (d->local.memory.bytes == 0)
    return 0;
  *out =
      device_host_alloc(&d->host, _Alignof(struct local_retired), sizeof **out);
  return *out == NULL ? -RIG_NV_HOST_MEMORY : 0;
}

static int short_of(uint64_t n, uint64_t *bytes) {
  if (bytes != NULL)
    *bytes = n;
  return why(RIG_NV_SHORT, "local memory of %llu bytes: %s",
             (unsigned long long)n, rig_nv_why());
}

/* Under the lock: in place of what there is. */
static int replace(struct rig_nv *d, const struct limits_local *n,
                   uint64_t *bytes) {
  struct local *l = &d->local;
  struct rig_nv_memory memory;
  struct local_retired *old;
  int e = free_unused(d);
  if (e == 0)
    e = make_retired(d, &old);
  if (e != 0)
    return e;
  e = path_alloc(d->path, RIG_DEVICE, n->bytes, 0, &memory);
  if (e != 0) {
    if (old != NULL)
      d->host.release(d->host.ctx, old, sizeof *old);
    return e == -RIG_NV_NO_MEMORY ? short_of(n->bytes, bytes) : e;
  }
  if (old != NULL) {
    *old = (struct local_retired){.next = l->retired,
                                  .memory = l->memory,
                                  .replaced_by = newest(d).seq + 1};
    ck_pr_store_ptr(&l->retired, old);
  }
  l->memory = memory;
  l->per_thread = n->per_thread;
  publish_local(d, n);
  return 0;
}

int local_grow(struct rig_nv *d, uint64_t need, uint64_t *bytes) {
  struct limits_local n;
  int e = limits_local(&d->rings.gpu, need, &n);
  if (e == 0)
    e = rig_nv_lock_take(&d->local.lock);
  if (e != 0)
    return e;
  if (n.per_thread > d->local.per_thread)
    e = replace(d, &n, bytes);
  rig_nv_lock_give(&d->local.lock);
  return e;
}

int rig_nv_local(struct rig_nv *d, uint64_t bytes_per_thread, uint64_t *need) {
  int e = device_enter(d);
  return e != 0 ? e : device_lose(d, local_grow(d, bytes_per_thread, need));
}

/* ---- the end ---- */

int local_end(struct rig_nv *d, bool give_back) {
  struct local *l = &d->local;
  int fault = rig_nv_lock_take(&l->lock);
  if (fault != 0)
    return fault; /* not reached: stop's thread holds no lock */
  for (struct local_retired *r = l->retired, *next; r; r = next) {
    next = r->next;
    int e = end_retired(d, r, give_back);
    fault = e != 0 ? e : fault;
  }
  l->retired = NULL;
  int e = give_back ? path_free(d->path, &l->memory) : 0;
  fault = e != 0 ? e : fault;
  rig_nv_lock_give(&l->lock);
  return fault;
}
