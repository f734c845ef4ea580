/* SPDX-License-Identifier: ISC */
#define _GNU_SOURCE /* gettid */

#include "core/lock_order/watch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/lock_order/names.h"

/* Nobody takes these: they are where the graph shows what blocks and what
 * allocates inside which locks. */
static const struct rig_nv_lock_class blocks_class = {"(blocks)", 0,
                                                      RIG_NV_LOCK_CONTEXT};
static const struct rig_nv_lock_class allocates_class = {"(allocates)", 0,
                                                         RIG_NV_LOCK_CONTEXT};
static struct rig_nv_lock_record blocks = RIG_NV_LOCK_RECORD(&blocks_class);
static struct rig_nv_lock_record allocates =
    RIG_NV_LOCK_RECORD(&allocates_class);

/* Every turning on begins one: contexts that a thread left while the graph was
 * off are of an older one. Relaxed: a number to compare, by whoever is inside
 * a context of the thread's own. */
static atomic_uint session;

enum rig_nv_watch rig_nv_lock_watch(enum rig_nv_watch mode) {
  if (mode != RIG_NV_WATCH_OFF && mode != RIG_NV_WATCH_STOP)
    mode = RIG_NV_WATCH_REPORT;
  if (mode != RIG_NV_WATCH_OFF && !rig_nv_lock_watched())
    atomic_fetch_add_explicit(&session, 1, memory_order_relaxed);
  return graph_mode(mode);
}

/* Says a report, which changes nothing but in RIG_NV_WATCH_STOP. */
static void deliver(const char *text) {
  bool stops = (__atomic_load_n(&rig_nv_lock_state, __ATOMIC_RELAXED) & 0xff) ==
               RIG_NV_WATCH_STOP;
  if (!lock_report(text) || stops)
    lock_say(text);
  if (stops)
    abort();
}

/* What is held, locks first, by one number. */

static unsigned holders(const struct held *h) { return h->n + h->contexts; }

static struct rig_nv_lock_record *holder(const struct held *h, unsigned i) {
  return i < h->n ? held_lock(h, i)->record : h->context[i - h->n].record;
}

static const char *holder_site(const struct held *h, unsigned i) {
  return i < h->n ? held_lock(h, i)->site : h->context[i - h->n].site;
}

static void add_held(struct lock_text *t, const struct held *h) {
  lock_text_add(t, "\n  thread %d holds", (int)gettid());
  for (unsigned i = 0; i < holders(h); i++)
    lock_text_add(t, "%s \"%s\" (%s)", i ? "," : "", holder(h, i)->cls->name,
                  holder_site(h, i));
}

/* The edge's line, as its thread said it. */
static void add_edge(struct lock_text *t, unsigned from, unsigned to) {
  const struct graph_edge *e = graph_edge_of(from, to);
  if (!e) {
    lock_text_add(t, "\n  \"%s\" came before \"%s\", where is not kept",
                  names_text(graph_classes[from].name),
                  names_text(graph_classes[to].name));
    return;
  }
  lock_text_add(t, "\n  thread %d held", e->thread);
  for (unsigned i = 0; i < e->n; i++)
    lock_text_add(t, "%s \"%s\" (%s)", i ? "," : "",
                  names_text(e->chain[i].name), names_text(e->chain[i].site));
  lock_text_add(t, " and wanted \"%s\" (%s)",
                names_text(graph_classes[to].name), names_text(e->site));
}

/* What a thread wants; its report is put together under the graph's lock and
 * said without. */
struct want {
  struct held *h;
  struct rig_nv_lock_record *record;
  const char *site;
  uint64_t blamed[GRAPH_WORDS]; /* classes whose edge closed a cycle */
  struct lock_text text;
};

static void keep(const struct want *w, unsigned from, unsigned to, unsigned i,
                 bool reported) {
  struct graph_edge e = {.from = (uint8_t)from,
                         .to = (uint8_t)to,
                         .reported = reported,
                         .n = (uint8_t)holders(w->h),
                         .holder = (uint8_t)i,
                         .site = names_id(w->site),
                         .thread = (int)gettid()};
  for (unsigned j = 0; j < e.n; j++)
    e.chain[j] = (struct graph_link){names_id(holder(w->h, j)->cls->name),
                                     names_id(holder_site(w->h, j))};
  graph_keep(&e);
}

static void nested(struct want *w, unsigned i) {
  graph_counts.nested++;
  lock_text_add(&w->text,
                "lock order: take of \"%s\" at %s inside another of its class, "
                "taken at %s, in no order (RIG_NV_LOCK_BY_ADDRESS)",
                w->record->cls->name, w->site, holder_site(w->h, i));
  add_held(&w->text, w->h);
}

/* The n classes of the path lead from the wanted one to the held one. */
static void cycle(struct want *w, const uint8_t *path, unsigned n) {
  unsigned from = path[n - 1];
  for (unsigned i = 0; i + 1 < n; i++)
    if (w->blamed[path[i] / 64] >> path[i] % 64 & 1)
      return; /* the same cycle, by a longer way */
  w->blamed[from / 64] |= UINT64_C(1) << from % 64;
  graph_counts.cycles++;
  lock_text_add(&w->text,
                "lock order: take of \"%s\" at %s closes a cycle of %u classes",
                w->record->cls->name, w->site, n);
  add_held(&w->text, w->h);
  lock_text_add(&w->text, " and wants \"%s\" (%s)", w->record->cls->name,
                w->site);
  for (unsigned i = 0; i + 1 < n; i++)
    add_edge(&w->text, path[i], path[i + 1]);
}

/* what: NULL, the take. */
static void misplaced(struct want *w, unsigned i, const char *what) {
  graph_counts.misplaced++;
  if (what)
    lock_text_add(&w->text, "lock order: %s", what);
  else
    lock_text_add(&w->text, "lock order: take of \"%s\"", w->record->cls->name);
  lock_text_add(&w->text, " at %s inside \"%s\" (%s)", w->site,
                holder(w->h, i)->cls->name, holder_site(w->h, i));
  add_held(&w->text, w->h);
}

static bool is_lock(const struct rig_nv_lock_record *r) {
  return !(r->cls->flags & RIG_NV_LOCK_CONTEXT);
}

/* The flag of classes that forbid a wait for the record. */
static unsigned forbids(const struct rig_nv_lock_record *r) {
  if (r == &allocates)
    return RIG_NV_LOCK_NO_ALLOCATE;
  return is_lock(r) ? RIG_NV_LOCK_NO_TAKE : RIG_NV_LOCK_NO_BLOCK;
}

/* The edge is new. What is no lock's was reported by its event. */
static void judge(struct want *w, unsigned from, unsigned to, unsigned i) {
  uint8_t path[GRAPH_CLASSES];
  unsigned n = graph_path(to, from, path);
  bool forbidden = holder(w->h, i)->cls->flags & forbids(w->record);
  if (n)
    cycle(w, path, n);
  else if (!forbidden)
    graph_order(from, to);
  else if (is_lock(w->record))
    misplaced(w, i, NULL);
  keep(w, from, to, i, n || forbidden);
}

/* Learns the edge from holder i. */
static void learn(struct want *w, unsigned i) {
  struct rig_nv_lock_record *r = holder(w->h, i);
  unsigned from, to;
  do { /* to ask for the one's index may end the other's */
    from = graph_index(r);
    to = graph_index(w->record);
  } while ((graph_node_of(r) ^ graph_node_of(w->record)) >> 8);
  if (!graph_learn(from, to))
    return;
  if (from != to)
    judge(w, from, to, i);
  else if (is_lock(r) && !(r->cls->flags & RIG_NV_LOCK_BY_ADDRESS))
    nested(w, i);
}

/* Runs fn on each holder under the graph's lock, and says what it reports. */
static void for_each(struct held *h, struct rig_nv_lock_record *wanted,
                     const char *site, const char *what,
                     void (*fn)(struct want *, unsigned i, const char *what)) {
  struct want w;
  w.h = h;
  w.record = wanted;
  w.site = site;
  memset(w.blamed, 0, sizeof w.blamed);
  for (unsigned i = 0; i < holders(h); i++) {
    w.text.n = 0;
    graph_enter();
    fn(&w, i, what);
    graph_leave();
    if (w.text.n != 0)
      deliver(w.text.s);
  }
}

static void learn_one(struct want *w, unsigned i, const char *what) {
  (void)what;
  learn(w, i);
}

void lock_watch_learn(struct held *h, struct rig_nv_lock_record *wanted,
                      const char *site) {
  lock_watch_current(h);
  graph_enter();
  (void)graph_index(wanted); /* known, also where nothing is held */
  graph_leave();
  for_each(h, wanted, site, NULL, learn_one);
}

/* Places of misplaced calls that were reported, under the graph's lock. */
static bool first_time(const struct want *w, unsigned i, const char *what) {
  enum { PLACES = 512 };
  static uint16_t place[PLACES][3];
  static unsigned places;
  uint16_t at[3] = {names_id(w->site), names_id(what),
                    names_id(holder(w->h, i)->cls->name)};
  if (graph_counts.misplaced == 0)
    places = 0; /* forgotten */
  for (unsigned p = 0; p < places; p++)
    if (memcmp(place[p], at, sizeof at) == 0)
      return false;
  if (places == PLACES) {
    graph_counts.unwatched++;
    return false;
  }
  memcpy(place[places++], at, sizeof at);
  return true;
}

static void forbid_one(struct want *w, unsigned i, const char *what) {
  const struct rig_nv_lock_record *r = holder(w->h, i);
  if (r == w->record || r->cls->flags & forbids(w->record))
    if (first_time(w, i, what))
      misplaced(w, i, what);
}

static void event(struct rig_nv_lock_record *wanted, const char *what,
                  const char *site) {
  struct held *h = &lock_held;
  uint64_t state = __atomic_load_n(&rig_nv_lock_state, __ATOMIC_RELAXED);
  if (!state)
    return;
  lock_watch_current(h);
  bool forbidden = false;
  for (unsigned i = 0; i < holders(h); i++)
    forbidden |=
        holder(h, i) == wanted || holder(h, i)->cls->flags & forbids(wanted);
  if (forbidden)
    for_each(h, wanted, site, what, forbid_one);
  if (!lock_watch_known(h, wanted, state))
    lock_watch_learn(h, wanted, site);
}

void rig_nv_lock_may_block_at(const char *what, const char *site) {
  event(&blocks, what, site);
}

void rig_nv_lock_may_allocate_at(const char *what, const char *site) {
  event(&allocates, what, site);
}

void rig_nv_lock_may_wait_at(struct rig_nv_lock_record *context,
                             const char *what, const char *site) {
  event(context, what, site);
}

void lock_watch_current(struct held *h) {
  unsigned now = atomic_load_explicit(&session, memory_order_relaxed);
  if (h->session != now)
    h->contexts = 0;
  h->session = now;
}

static struct inside *inside_of(struct held *h,
                                const struct rig_nv_lock_record *context) {
  for (unsigned i = 0; i < h->contexts; i++)
    if (h->context[i].record == context)
      return &h->context[i];
  return NULL;
}

void rig_nv_lock_enter_at(struct rig_nv_lock_record *context,
                          const char *site) {
  struct held *h = &lock_held;
  if (!rig_nv_lock_watched())
    return;
  if (!h->watched)
    lock_watch_end(h);
  lock_watch_current(h);
  struct inside *in = inside_of(h, context);
  if (in) {
    in->depth++;
  } else if (h->contexts < RIG_NV_MOST_CONTEXTS) {
    h->context[h->contexts++] = (struct inside){context, site, 1};
  } else {
    graph_enter();
    graph_counts.unwatched++;
    graph_leave();
  }
}

void rig_nv_lock_leave_at(struct rig_nv_lock_record *context) {
  struct held *h = &lock_held;
  struct inside *in = inside_of(h, context);
  if (!in || --in->depth > 0)
    return;
  for (; in + 1 < h->context + h->contexts; in++)
    *in = in[1];
  h->contexts--;
}

void lock_watch_end_inside(struct held *h) {
  if (!rig_nv_lock_watched())
    return;
  lock_watch_current(h);
  for (unsigned i = 0; i < h->contexts; i++) {
    struct lock_text t = {.n = 0};
    graph_enter();
    graph_counts.ended++;
    graph_leave();
    lock_text_add(&t, "lock order: a thread ended inside \"%s\" (%s)",
                  h->context[i].record->cls->name, h->context[i].site);
    deliver(t.s);
  }
}

#ifdef RIG_NV_VALIDATE
__attribute__((constructor)) static void watch_from_start(void) {
  rig_nv_lock_watch(RIG_NV_WATCH_STOP);
}
#endif
