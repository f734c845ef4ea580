/* SPDX-License-Identifier: ISC */
#ifndef RIG_NV_LOCK_ORDER_H
#define RIG_NV_LOCK_ORDER_H
/*
 * lock_order: mutexes that refuse to be taken out of order, and a graph that
 * learns the order of those with none.
 *
 * A lock has a class, and a class a rank, or none (RIG_NV_LOCK_UNRANKED). A
 * thread takes locks in rising rank alone: a take of a rank that is not above
 * every rank the thread holds is refused before it can deadlock, with nothing
 * taken. So a second lock of one class and a recursive take are refused too.
 * These checks are always on.
 *
 *   take(l):  rank(l) >  highest rank held  ->  waits for l, holds it, 0
 *             rank(l) <= highest rank held  ->  -RIG_NV_INVALID
 *             l is held                     ->  -RIG_NV_INVALID, also unranked
 *   try(l):   never waits, so no rank refuses it; later takes rise above it
 *
 *   thread:   image | local | growth | flush | path | space   ranks rise
 *              held   held     |       |       take path   -> held
 *              held   held     |       |       take image  -> refused
 *
 * Locks of a class with RIG_NV_LOCK_BY_ADDRESS nest, each at a higher address
 * than the others of its class that the thread holds.
 *
 * The graph is off until rig_nv_lock_watch. A take with a lock held says that
 * the held one's class comes before the wanted one's, in whatever thread; a
 * take that no order of the classes allows any more is reported before it
 * waits, so also where the threads concerned never met:
 *
 *   thread 1   holds a, takes b       a -> b
 *   thread 2   holds b, takes c       a -> b -> c
 *   thread 3   holds c, takes a       reported: the takes' places and all that
 *                                     the three threads held
 *
 * Contexts are locks that nobody waits to enter: an RCU section, the stretch
 * between reserve and encoded, a call that may not allocate. What may wait
 * until all threads have left one, as synchronize_rcu, says so first
 * (rig_nv_lock_may_wait), and is to the graph a take of it; what may block or
 * allocate says that (rig_nv_lock_may_block, rig_nv_lock_may_allocate), and is
 * reported inside a class that forbids it. A try is no edge to what it takes,
 * but from it. An edge that was reported is not part of the order: each
 * report stands once, and every cycle has had one. Reports change nothing:
 * the take is done.
 *
 * Entry points that may take a lock run their whole body in
 * rig_nv_lock_guarded, or ask rig_nv_lock_idle first: a call from a callback
 * inside a lock is then refused as it starts, before it changed anything.
 *
 * A program's own mutexes, whatever they are, take part by a record each
 * (rig_nv_lock_wants, rig_nv_lock_taken, rig_nv_lock_given).
 *
 * Errors: -RIG_NV_INVALID, nothing taken and nothing changed; rig_nv_why names
 * the lock wanted, the lock held and the place in the source that took each.
 * A mistake that no result can report stops the process: a line on standard
 * error, then abort(), in release builds too. These are a give of a lock that
 * the thread does not hold, rig_nv_lock_fini of a lock that is held, the end of
 * a class with the thread holding one of it, a guarded function that returns
 * holding a lock, and a thread that ends holding one, which would leave every
 * later taker waiting for ever.
 *
 * Ordering: what a thread wrote before its give is visible to the lock's next
 * taker (pthread_mutex_unlock, pthread_mutex_lock).
 *
 * Threads: any thread may call any function, at the same time as others, but
 * rig_nv_lock_init and rig_nv_lock_fini of a lock run alone on it. A lock is
 * given by the thread that took it, in any order. A signal handler calls none
 * of these functions. No function is a cancellation point, and none may be
 * left by longjmp. A thread's first take registers the thread's end and may
 * allocate; a later take and a give allocate nothing and make no system call
 * unless another thread holds or waits for the lock. A thread's end goes
 * unwatched where the process has no thread-specific key left.
 *
 * With the graph on, a take whose edges are all known takes no other lock and
 * writes nothing of the graph. A lock's first take, its first after a class
 * ended, and a new edge take the graph's own lock, a leaf. It allocates
 * nothing. It keeps GRAPH_CLASSES - 1 classes and GRAPH_EDGES edges with their
 * places (graph.h); a class beyond goes unwatched, an edge beyond is kept
 * without its places.
 *
 * Fork: the child's thread holds what the thread that forked held, and may
 * give it. A lock that another thread held stays taken in the child, and a
 * take of it waits for ever, since what it guards may be half changed. The
 * graph goes on in the child as it was: pthread_atfork's handlers, set by the
 * first rig_nv_lock_watch, hold it still.
 */
#include <pthread.h>

#include "core/api/rig_edge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The order of locks. It is this list; the gaps are for programs' own ranks.
 * Locks that the specification does not name lie between LOCAL and PATH: they
 * guard records of the device that an entry point may reach with an image's
 * and the local memory lock held, and what they guard calls the path. */
enum rig_nv_rank {
  /* An image's functions: held by entry and unload, which may need local
   * memory for a function. */
  RIG_NV_RANK_IMAGE = 100,
  /* A device's local memory: held by entry and stop while they allocate and
   * free it. */
  RIG_NV_RANK_LOCAL = 200,
  /* A device's newest ring generation: held while rings are made and retired
   * ones given back. After LOCAL, as an allocation of local memory gives
   * retired rings back; before PATH, as rings are the path's memory. */
  RIG_NV_RANK_GROWTH = 300,
  /* What devices view of each other's Mapped memory (rings/flush.h), one lock
   * for all: held across grace periods, so after every lock that a growth or
   * a free may hold, and never inside a path's. */
  RIG_NV_RANK_FLUSH = 350,
  /* A path's own: after the device's, as the path calls back into nothing. One
   * at a time. */
  RIG_NV_RANK_PATH = 400,
  /* A range of GPU addresses (paths/pci/space.h): last, as a path takes
   * addresses with its lock held, and inside it only an allocator is called. */
  RIG_NV_RANK_SPACE = 450
};

/* What a class is, besides its rank. */
enum rig_nv_lock_flag {
  RIG_NV_LOCK_UNRANKED = 1 << 0,   /* rank is not read: the graph learns */
  RIG_NV_LOCK_BY_ADDRESS = 1 << 1, /* its locks nest, at rising addresses */
  RIG_NV_LOCK_CONTEXT = 1 << 2,    /* of a context's record, not of a lock */
  /* What the graph reports while one of the class is held or inside. */
  RIG_NV_LOCK_NO_BLOCK = 1 << 3,
  RIG_NV_LOCK_NO_ALLOCATE = 1 << 4,
  RIG_NV_LOCK_NO_TAKE = 1 << 5 /* the take of a lock, which may block */
};

/* A kind of lock. It outlives its locks, and where the graph is ever on it
 * lives on, or ends by rig_nv_lock_class_end. */
struct rig_nv_lock_class {
  const char *name; /* as refusals call it */
  int rank;         /* an enum rig_nv_rank, or a program's own */
  unsigned flags;   /* of enum rig_nv_lock_flag */
};

extern RIG_PUBLIC const struct rig_nv_lock_class rig_nv_lock_image;
extern RIG_PUBLIC const struct rig_nv_lock_class rig_nv_lock_local;
extern RIG_PUBLIC const struct rig_nv_lock_class rig_nv_lock_growth;
extern RIG_PUBLIC const struct rig_nv_lock_class rig_nv_lock_flush;
extern RIG_PUBLIC const struct rig_nv_lock_class rig_nv_lock_path;

/* What the order knows of one lock. */
struct rig_nv_lock_record {
  const struct rig_nv_lock_class *cls;
  uint64_t node; /* the class in the graph; 0, or of another epoch, unknown */
};

#define RIG_NV_LOCK_RECORD(cls) {cls, 0}

struct rig_nv_lock {
  pthread_mutex_t mutex;
  struct rig_nv_lock_record record;
};

/* The value of a lock with static storage, which needs no rig_nv_lock_init:
 * static struct rig_nv_lock l = RIG_NV_LOCK(&rig_nv_lock_path); */
#define RIG_NV_LOCK(cls) {PTHREAD_MUTEX_INITIALIZER, RIG_NV_LOCK_RECORD(cls)}

/* The most locks that a thread holds; a take beyond it is refused. */
#define RIG_NV_MOST_LOCKS 8

/* "file:line" of where it stands. */
#define RIG_NV_SITE_TEXT(line) #line
#define RIG_NV_SITE_LINE(line) RIG_NV_SITE_TEXT(line)
#define RIG_NV_SITE __FILE__ ":" RIG_NV_SITE_LINE(__LINE__)

/* Makes *l a free lock of the class. INVALID for a class with no name, with
 * unknown flags or of a context, or where the system makes no mutex. */
RIG_PUBLIC int rig_nv_lock_init(struct rig_nv_lock *l,
                                const struct rig_nv_lock_class *);
/* Ends a free lock. */
RIG_PUBLIC void rig_nv_lock_fini(struct rig_nv_lock *l);

/* Waits until the lock is free and takes it. INVALID out of order, beyond
 * RIG_NV_MOST_LOCKS, or before rig_nv_lock_init of a zeroed lock. site is the
 * place refusals name, a string that lives as long as the lock is held. */
RIG_PUBLIC int rig_nv_lock_take_at(struct rig_nv_lock *l, const char *site)
    __attribute__((warn_unused_result));
#define rig_nv_lock_take(l) rig_nv_lock_take_at(l, RIG_NV_SITE)

/* Takes the lock if it is free, whatever the thread holds: 0, or 1 where a
 * thread holds it, this one too. INVALID beyond RIG_NV_MOST_LOCKS or for a
 * zeroed lock. */
RIG_PUBLIC int rig_nv_lock_try_at(struct rig_nv_lock *l, const char *site)
    __attribute__((warn_unused_result));
#define rig_nv_lock_try(l) rig_nv_lock_try_at(l, RIG_NV_SITE)

/* Gives a lock that the thread holds. */
RIG_PUBLIC void rig_nv_lock_give(struct rig_nv_lock *l);

/* Takes the lock, runs fn(arg), gives the lock and returns what fn returned;
 * INVALID where the take is refused, fn not run. */
RIG_PUBLIC int rig_nv_lock_protect_at(struct rig_nv_lock *l, int (*fn)(void *),
                                      void *arg, const char *site);
#define rig_nv_lock_protect(l, fn, arg)                                        \
  rig_nv_lock_protect_at(l, fn, arg, RIG_NV_SITE)

/* 0 where the thread holds no lock; else INVALID, and rig_nv_why names the
 * lock. */
RIG_PUBLIC int rig_nv_lock_idle(void) __attribute__((warn_unused_result));

/* Runs fn(arg), the whole body of an entry point, and returns what it
 * returned; INVALID as rig_nv_lock_idle, fn not run. */
RIG_PUBLIC int rig_nv_lock_guarded(int (*fn)(void *), void *arg);

/* For a mutex of the program's own, beside which a record stands. A record of
 * a lock that threads share, as readers do, counts as each one's.
 *
 * Before the wait for it: 0, or INVALID as rig_nv_lock_take, and the program
 * does not wait. Nothing to undo where it then fails to take. Not before a
 * try. */
RIG_PUBLIC int rig_nv_lock_wants_at(struct rig_nv_lock_record *,
                                    const char *site)
    __attribute__((warn_unused_result));
#define rig_nv_lock_wants(record) rig_nv_lock_wants_at(record, RIG_NV_SITE)
/* After it was taken, also by a try. INVALID beyond RIG_NV_MOST_LOCKS, which
 * happens after no rig_nv_lock_wants that answered 0: the program gives the
 * mutex back. */
RIG_PUBLIC int rig_nv_lock_taken_at(struct rig_nv_lock_record *,
                                    const char *site)
    __attribute__((warn_unused_result));
#define rig_nv_lock_taken(record) rig_nv_lock_taken_at(record, RIG_NV_SITE)
/* Before it is given, and before a wait for a condition gives it. */
RIG_PUBLIC void rig_nv_lock_given(struct rig_nv_lock_record *);

/* The graph. */

/* Not 0 while the graph is on. Read by rig_nv_lock_watched. */
extern RIG_PUBLIC uint64_t rig_nv_lock_state;

/* Whether the graph is on. Relaxed: a thread may see a change later than
 * another; what a context's leave misses, the next enter finds. */
static inline int rig_nv_lock_watched(void) {
  return __builtin_expect(
      __atomic_load_n(&rig_nv_lock_state, __ATOMIC_RELAXED) != 0, 0);
}

enum rig_nv_watch {
  RIG_NV_WATCH_OFF,
  RIG_NV_WATCH_REPORT, /* to the handler; to standard error where it is NULL */
  RIG_NV_WATCH_STOP    /* and then abort() */
};

/* Turns the graph on, with what it learned before, or off; returns what it
 * was. Locks that are held count from then on, contexts where they are entered
 * after. Any other number is REPORT. */
RIG_PUBLIC enum rig_nv_watch rig_nv_lock_watch(enum rig_nv_watch);

/* Forgets what the graph learned and what the counters counted. */
RIG_PUBLIC void rig_nv_lock_forget(void);

/* Ends a class, whose memory may then be of another one: its edges go. No
 * lock of it is held. One taken later makes the class anew. */
RIG_PUBLIC void rig_nv_lock_class_end(const struct rig_nv_lock_class *);

/* Contexts: an RCU section, in which nothing blocks and no grace period is
 * waited for; between reserve and encoded, which keeps later values from the
 * hardware: nothing blocks, allocates or takes a lock; inside a call that may
 * not allocate. A program's own is a record of a class with
 * RIG_NV_LOCK_CONTEXT. */
extern RIG_PUBLIC struct rig_nv_lock_record rig_nv_lock_in_rcu;
extern RIG_PUBLIC struct rig_nv_lock_record rig_nv_lock_in_reserve;
extern RIG_PUBLIC struct rig_nv_lock_record rig_nv_lock_in_no_alloc;

/* The contexts that a thread is inside of at a time; one more is not seen. */
#define RIG_NV_MOST_CONTEXTS 4

/* Enters a context, as often as the thread likes, and leaves it as often. A
 * leave with no enter is of a context entered while the graph was off: it does
 * nothing. Free of charge while it is off. */
RIG_PUBLIC void rig_nv_lock_enter_at(struct rig_nv_lock_record *,
                                     const char *site);
RIG_PUBLIC void rig_nv_lock_leave_at(struct rig_nv_lock_record *);
#define rig_nv_lock_enter(context)                                             \
  (rig_nv_lock_watched() ? rig_nv_lock_enter_at(context, RIG_NV_SITE) : (void)0)
#define rig_nv_lock_leave(context)                                             \
  (rig_nv_lock_watched() ? rig_nv_lock_leave_at(context) : (void)0)

/* What the caller is about to do, `what` in words, such as "nanosleep": it may
 * block, may allocate, or may wait until every thread has left the context.
 * Each place and context is reported once. */
RIG_PUBLIC void rig_nv_lock_may_block_at(const char *what, const char *site);
RIG_PUBLIC void rig_nv_lock_may_allocate_at(const char *what, const char *site);
RIG_PUBLIC void rig_nv_lock_may_wait_at(struct rig_nv_lock_record *context,
                                        const char *what, const char *site);
#define rig_nv_lock_may_block(what)                                            \
  (rig_nv_lock_watched() ? rig_nv_lock_may_block_at(what, RIG_NV_SITE)         \
                         : (void)0)
#define rig_nv_lock_may_allocate(what)                                         \
  (rig_nv_lock_watched() ? rig_nv_lock_may_allocate_at(what, RIG_NV_SITE)      \
                         : (void)0)
#define rig_nv_lock_may_wait(context, what)                                    \
  (rig_nv_lock_watched() ? rig_nv_lock_may_wait_at(context, what, RIG_NV_SITE) \
                         : (void)0)
#define rig_nv_lock_may_synchronize()                                          \
  rig_nv_lock_may_wait(&rig_nv_lock_in_rcu, "a grace period")

/* Called with the text of each refusal, of each report of the graph, which has
 * lines, and with the line of a mistake that stops the process, by the thread
 * concerned, which holds what it held. Its own refusals and reports are not
 * reported. It returns. */
typedef void rig_nv_lock_handler(const char *text);

/* Replaces the handler, NULL none, which is the first, and returns the former
 * one, which other threads may still be in. */
RIG_PUBLIC rig_nv_lock_handler *rig_nv_lock_on_report(rig_nv_lock_handler *);

struct rig_nv_lock_counts {
  uint64_t refusals; /* counted also while the graph is off */
  uint64_t cycles;
  uint64_t nested;         /* two locks of an unranked class, in no order */
  uint64_t misplaced;      /* what a context or a class forbids */
  uint64_t ended;          /* threads that ended inside a context */
  uint64_t classes, edges; /* that the graph has; edges not reported */
  uint64_t unwatched; /* locks of no class that it had room for; edges' places
                       * and contexts that it had none for */
};
RIG_PUBLIC void rig_nv_lock_count(struct rig_nv_lock_counts *);

/* An edge: in what place a lock of one class was held and one of another
 * wanted, the first time. Its strings live as long as the library. */
struct rig_nv_lock_edge {
  const char *from, *to;
  int from_rank, to_rank;
  unsigned from_flags, to_flags; /* of enum rig_nv_lock_flag */
  const char *from_site, *to_site;
  int thread;   /* the kernel's number of it */
  int reported; /* it closed a cycle, or was misplaced */
};

/* Calls fn with each edge whose places were kept, or with each class as both
 * its ends, in the order in which they
 * were learned. fn may call any function of these; what is learned meanwhile
 * may be left out. */
RIG_PUBLIC void
rig_nv_lock_each_edge(void (*fn)(void *arg, const struct rig_nv_lock_edge *),
                      void *arg);
RIG_PUBLIC void
rig_nv_lock_each_class(void (*fn)(void *arg, const struct rig_nv_lock_edge *),
                       void *arg);

#ifdef __cplusplus
}
#endif
#endif
