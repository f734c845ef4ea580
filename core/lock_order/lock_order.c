/* SPDX-License-Identifier: ISC */
#include "core/lock_order/lock_order.h"

#include "core/api/why.h"
#include "core/lock_order/watch.h"

const struct rig_nv_lock_class rig_nv_lock_image = {"image", RIG_NV_RANK_IMAGE,
                                                    0};
const struct rig_nv_lock_class rig_nv_lock_local = {"local", RIG_NV_RANK_LOCAL,
                                                    0};
const struct rig_nv_lock_class rig_nv_lock_growth = {"growth",
                                                     RIG_NV_RANK_GROWTH, 0};
const struct rig_nv_lock_class rig_nv_lock_flush = {"flush", RIG_NV_RANK_FLUSH,
                                                    0};
const struct rig_nv_lock_class rig_nv_lock_path = {"path", RIG_NV_RANK_PATH, 0};

static const struct rig_nv_lock_class rcu_class = {
    "RCU section", 0, RIG_NV_LOCK_CONTEXT | RIG_NV_LOCK_NO_BLOCK};
static const struct rig_nv_lock_class reserve_class = {
    "reserve to encoded", 0,
    RIG_NV_LOCK_CONTEXT | RIG_NV_LOCK_NO_BLOCK | RIG_NV_LOCK_NO_ALLOCATE |
        RIG_NV_LOCK_NO_TAKE};
static const struct rig_nv_lock_class no_alloc_class = {
    "call that allocates nothing", 0,
    RIG_NV_LOCK_CONTEXT | RIG_NV_LOCK_NO_ALLOCATE};
struct rig_nv_lock_record rig_nv_lock_in_rcu = RIG_NV_LOCK_RECORD(&rcu_class);
struct rig_nv_lock_record rig_nv_lock_in_reserve =
    RIG_NV_LOCK_RECORD(&reserve_class);
struct rig_nv_lock_record rig_nv_lock_in_no_alloc =
    RIG_NV_LOCK_RECORD(&no_alloc_class);

enum {
  NO_LOCKS = RIG_NV_LOCK_CONTEXT,
  NO_PLAIN_RANK =
      RIG_NV_LOCK_UNRANKED | RIG_NV_LOCK_BY_ADDRESS | RIG_NV_LOCK_CONTEXT,
  KNOWN_FLAGS = RIG_NV_LOCK_UNRANKED | RIG_NV_LOCK_BY_ADDRESS |
                RIG_NV_LOCK_NO_BLOCK | RIG_NV_LOCK_NO_ALLOCATE |
                RIG_NV_LOCK_NO_TAKE
};

_Thread_local struct held lock_held
    __attribute__((tls_model("initial-exec"))) = {.at = {{.top = NO_RANK}}};

/* The reason is kept last: the handler's own calls may fail and keep theirs. */
__attribute__((format(printf, 1, 2), cold)) static int refuse(const char *fmt,
                                                              ...) {
  struct lock_text text = {.n = 0};
  va_list args;
  va_start(args, fmt);
  lock_text_vadd(&text, fmt, args);
  va_end(args);
  graph_enter();
  graph_counts.refusals++;
  graph_leave();
  (void)lock_report(text.s); /* the result says it where there is none */
  return why(RIG_NV_INVALID, "%s", text.s);
}

/* The thread's end. */

static pthread_key_t end_key;
static bool end_key_made; /* written once, inside pthread_once */

static void on_end(void *unused) {
  (void)unused;
  struct held *h = &lock_held;
  lock_watch_end_inside(h);
  if (h->n == 0)
    return;
  const struct holding *last = held_lock(h, h->n - 1);
  lock_stop_process("a thread ended holding lock \"%s\", taken at %s",
                    last->record->cls->name, last->site);
}

static void make_end_key(void) {
  end_key_made = pthread_key_create(&end_key, on_end) == 0;
}

/* The code of on_end goes when the library is unloaded. */
__attribute__((destructor)) static void delete_end_key(void) {
  if (end_key_made)
    pthread_key_delete(end_key);
}

/* Failure leaves this thread's end unwatched and every lock sound. */
__attribute__((cold)) void lock_watch_end(struct held *h) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  h->watched = true;
  pthread_once(&once, make_end_key);
  if (end_key_made)
    (void)pthread_setspecific(end_key, h);
}

/* Locks. */

int rig_nv_lock_init(struct rig_nv_lock *l,
                     const struct rig_nv_lock_class *cls) {
  if (!l || !cls || !cls->name)
    return why(RIG_NV_INVALID, "lock init: no lock, class or class name");
  if (cls->flags & NO_LOCKS)
    return why(RIG_NV_INVALID, "lock init: class \"%s\" is a context's",
               cls->name);
  if (cls->flags & ~(unsigned)KNOWN_FLAGS)
    return why(RIG_NV_INVALID, "lock init: class \"%s\" has unknown flags %#x",
               cls->name, cls->flags);
  /* The default kind has no owner: the order refuses a recursive take, give
   * knows the holder, and a forked child, whose thread id is another, may give
   * what it holds. */
  int error = pthread_mutex_init(&l->mutex, NULL);
  if (error != 0)
    return why(RIG_NV_INVALID, "lock init: no mutex for \"%s\": error %d",
               cls->name, error);
  l->record = (struct rig_nv_lock_record)RIG_NV_LOCK_RECORD(cls);
  return 0;
}

void rig_nv_lock_fini(struct rig_nv_lock *l) {
  const struct held *h = &lock_held;
  const char *name = l->record.cls ? l->record.cls->name : "?";
  for (unsigned i = 0; i < h->n; i++)
    if (held_lock(h, i)->record == &l->record)
      lock_stop_process("fini of lock \"%s\", which the thread took at %s",
                        name, held_lock(h, i)->site);
  /* To destroy a locked mutex is undefined. */
  int error = pthread_mutex_trylock(&l->mutex);
  if (error == 0)
    error = pthread_mutex_unlock(&l->mutex);
  if (error == 0)
    error = pthread_mutex_destroy(&l->mutex);
  if (error != 0)
    lock_stop_process("fini of lock \"%s\", which a thread holds: error %d",
                      name, error);
  l->record.cls = NULL;
}

/* The held lock that forbids a take of r by the rules of its class; NULL where
 * none does. Of several, the one of the highest rank. */
__attribute__((noinline)) static const struct holding *
forbidding(const struct held *h, const struct rig_nv_lock_record *r) {
  const struct rig_nv_lock_class *cls = r->cls;
  const struct holding *found = NULL;
  for (unsigned i = 0; i < h->n; i++) {
    const struct holding *x = held_lock(h, i);
    const struct rig_nv_lock_class *c = x->record->cls;
    if (x->record == r)
      return x;
    if (c == cls && cls->flags & RIG_NV_LOCK_BY_ADDRESS) {
      if ((uintptr_t)x->record >= (uintptr_t)r)
        found = x;
    } else if (lock_is_ranked(c) && lock_is_ranked(cls) &&
               c->rank >= cls->rank &&
               (!found || found->record->cls->rank <= c->rank)) {
      found = x;
    }
  }
  return found;
}

/* Why the held locks forbid a take of r. */
__attribute__((cold)) static int refuse_take(const struct rig_nv_lock_record *r,
                                             const char *site) {
  const struct held *h = &lock_held;
  if (!r || !r->cls)
    return refuse("take at %s refused: the lock has no class", site);
  const char *name = r->cls->name;
  const struct holding *x = forbidding(h, r);
  if (!x) {
    x = held_lock(h, h->n - 1);
    return refuse("take of lock \"%s\" at %s refused: the thread holds %u "
                  "locks, the most there may be, the last \"%s\", taken at %s",
                  name, site, h->n, x->record->cls->name, x->site);
  }
  if (x->record == r)
    return refuse("take of lock \"%s\" at %s refused: the thread holds that "
                  "very lock, taken at %s",
                  name, site, x->site);
  if (x->record->cls == r->cls && r->cls->flags & RIG_NV_LOCK_BY_ADDRESS)
    return refuse("take of lock \"%s\" at %s refused: the thread holds one of "
                  "its class, taken at %s, and addresses must rise",
                  name, site, x->site);
  return refuse("take of lock \"%s\" (rank %d) at %s refused: the thread holds "
                "lock \"%s\" (rank %d), taken at %s, and ranks must rise",
                name, r->cls->rank, site, x->record->cls->name,
                x->record->cls->rank, x->site);
}

/* Whether the locks that the thread holds allow a wait for r. */
static inline bool in_order(const struct held *h,
                            const struct rig_nv_lock_record *r) {
  const struct rig_nv_lock_class *cls = r->cls;
  if (!cls || h->n == RIG_NV_MOST_LOCKS)
    return false;
  if (cls->flags & (RIG_NV_LOCK_UNRANKED | RIG_NV_LOCK_BY_ADDRESS))
    return h->n == 0 || !forbidding(h, r);
  return h->at[h->n].top < cls->rank;
}

static inline void push(struct held *h, struct rig_nv_lock_record *r,
                        const char *site) {
  long top = h->at[h->n].top;
  if (lock_is_ranked(r->cls) && r->cls->rank > top)
    top = r->cls->rank;
  h->at[++h->n] = (struct holding){r, site, top};
}

/* Takes it out from below others. */
__attribute__((cold, noinline)) static bool
pop_below(struct held *h, const struct rig_nv_lock_record *r) {
  struct holding after[RIG_NV_MOST_LOCKS];
  unsigned i = h->n, n = 0;
  for (; i > 0 && h->at[i].record != r; i--)
    after[n++] = h->at[i];
  if (i == 0)
    return false;
  h->n = i - 1;
  while (n-- > 0)
    push(h, after[n].record, after[n].site);
  return true;
}

/* False where the thread does not hold it. */
static inline bool pop(struct held *h, const struct rig_nv_lock_record *r) {
  if (__builtin_expect(h->at[h->n].record != r, 0))
    return pop_below(h, r); /* where it holds none, at[0] has no record */
  h->n--;
  return true;
}

/* Out of the ranks' way, which it would make spill registers. */
__attribute__((noinline)) static void watch(struct held *h,
                                            struct rig_nv_lock_record *r,
                                            const char *site, uint64_t state) {
  if (!lock_watch_known(h, r, state))
    lock_watch_learn(h, r, site);
}

/* The order's part of a take, before the wait. */
__attribute__((always_inline)) static inline int
want(struct held *h, struct rig_nv_lock_record *r, const char *site) {
  if (__builtin_expect(!in_order(h, r), 0))
    return refuse_take(r, site);
  if (__builtin_expect(!h->watched, 0))
    lock_watch_end(h);
  /* Relaxed: the mode is a hint, and nodes have an order of their own. */
  uint64_t state = __atomic_load_n(&rig_nv_lock_state, __ATOMIC_RELAXED);
  if (__builtin_expect(state != 0, 0))
    watch(h, r, site, state);
  return 0;
}

/* What pthread_mutex_lock never says of the default kind. The lock is the one
 * that was noted last. */
__attribute__((cold, noinline)) static int refuse_mutex(int error) {
  struct held *h = &lock_held;
  const struct holding x = h->at[h->n--];
  return refuse("take of lock \"%s\" at %s refused: mutex error %d",
                x.record->cls->name, x.site, error);
}

/* What is held is noted before the wait, which only this thread sees, so that
 * little is left to do after it. */
__attribute__((always_inline)) static inline int
wait_for(struct rig_nv_lock *l) {
  int error = pthread_mutex_lock(&l->mutex);
  return __builtin_expect(error != 0, 0) ? refuse_mutex(error) : 0;
}

/* A take that is more than a rank above the others', or is refused. */
__attribute__((noinline)) static int take_any(struct rig_nv_lock *l,
                                              const char *site) {
  if (!l)
    return refuse_take(NULL, site);
  int refused = want(&lock_held, &l->record, site);
  if (refused != 0)
    return refused;
  push(&lock_held, &l->record, site);
  return wait_for(l);
}

/* Ends in a call of take_any or of the mutex's, so that it saves nothing. */
int rig_nv_lock_take_at(struct rig_nv_lock *l, const char *site) {
  struct held *h = &lock_held;
  /* Relaxed: as in want. */
  if (!l || !h->watched ||
      __atomic_load_n(&rig_nv_lock_state, __ATOMIC_RELAXED) != 0)
    return take_any(l, site);
  const struct rig_nv_lock_class *cls = l->record.cls;
  unsigned n = h->n;
  if (!cls || cls->flags & NO_PLAIN_RANK || n == RIG_NV_MOST_LOCKS ||
      h->at[n].top >= cls->rank)
    return take_any(l, site);
  h->at[n + 1] = (struct holding){&l->record, site, cls->rank};
  h->n = n + 1;
  return wait_for(l);
}

/* Whether a lock can be noted as held. */
static int room(struct held *h, const struct rig_nv_lock_record *r,
                const char *site) {
  if (!r->cls || h->n == RIG_NV_MOST_LOCKS)
    return refuse_take(r, site);
  if (!h->watched)
    lock_watch_end(h);
  return 0;
}

int rig_nv_lock_try_at(struct rig_nv_lock *l, const char *site) {
  if (!l)
    return refuse_take(NULL, site);
  struct held *h = &lock_held;
  int refused = room(h, &l->record, site);
  if (refused != 0)
    return refused;
  if (pthread_mutex_trylock(&l->mutex) != 0)
    return 1; /* the kind of its mutex has no other failure */
  push(h, &l->record, site);
  return 0;
}

__attribute__((cold, noinline, noreturn)) static void
stop_give(const struct rig_nv_lock_record *r) {
  lock_stop_process("give of lock \"%s\", which the thread does not hold",
                    r && r->cls ? r->cls->name : "?");
}

static inline void unlock(struct rig_nv_lock *l) {
  int error = pthread_mutex_unlock(&l->mutex);
  if (__builtin_expect(error != 0, 0))
    lock_stop_process("give of a lock: mutex error %d", error);
}

__attribute__((noinline)) static void give_below(struct rig_nv_lock *l) {
  if (!l || !pop_below(&lock_held, &l->record))
    stop_give(l ? &l->record : NULL);
  unlock(l);
}

void rig_nv_lock_give(struct rig_nv_lock *l) {
  struct held *h = &lock_held;
  if (!l || h->at[h->n].record != &l->record) {
    give_below(l);
    return;
  }
  h->n--;
  unlock(l);
}

int rig_nv_lock_wants_at(struct rig_nv_lock_record *r, const char *site) {
  return r ? want(&lock_held, r, site) : refuse_take(NULL, site);
}

int rig_nv_lock_taken_at(struct rig_nv_lock_record *r, const char *site) {
  int refused = r ? room(&lock_held, r, site) : refuse_take(NULL, site);
  if (refused != 0)
    return refused;
  push(&lock_held, r, site);
  return 0;
}

void rig_nv_lock_given(struct rig_nv_lock_record *r) {
  if (!r || !pop(&lock_held, r))
    stop_give(r);
}

int rig_nv_lock_protect_at(struct rig_nv_lock *l, int (*fn)(void *), void *arg,
                           const char *site) {
  int refused = rig_nv_lock_take_at(l, site);
  if (refused != 0)
    return refused;
  int result = fn(arg);
  rig_nv_lock_give(l);
  return result;
}

int rig_nv_lock_idle(void) {
  const struct held *h = &lock_held;
  if (h->n == 0)
    return 0;
  const struct holding *x = held_lock(h, h->n - 1);
  return refuse("call refused: the thread holds lock \"%s\", taken at %s",
                x->record->cls->name, x->site);
}

int rig_nv_lock_guarded(int (*fn)(void *), void *arg) {
  int refused = rig_nv_lock_idle();
  if (refused != 0)
    return refused;
  int result = fn(arg);
  const struct held *h = &lock_held;
  if (h->n != 0) {
    const struct holding *x = held_lock(h, h->n - 1);
    lock_stop_process(
        "a guarded call returned holding lock \"%s\", taken at %s",
        x->record->cls->name, x->site);
  }
  return result;
}
