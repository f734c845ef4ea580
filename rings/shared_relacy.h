/* SPDX-License-Identifier: ISC */
#ifndef RINGS_SHARED_RELACY_H
#define RINGS_SHARED_RELACY_H
/*
 * shared.h's vocabulary as relacy's: the .c files of the lock-free core, built
 * as C++ with -DRIG_RELACY, run under the C11 memory model, where a load may
 * give any value that the orders allow. stress/relacy has the harness.
 *
 * The orders are those of shared.h's contract, not of a processor: what the
 * model lets pass, no processor may break. "A full barrier" is a sequentially
 * consistent fence on both sides.
 *
 * The place of an access in relacy's report is its caller's.
 */
#include <relacy/relacy.hpp>

#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free

using shared_64 = rl::atomic<uint64_t>;
using shared_32 = rl::atomic<uint32_t>;

/* One atomic object, of which a load gives a half: two loads may give halves
 * of different swaps, as two loads of the machine's do. */
struct shared_halves {
  uint64_t w[2];
  bool operator==(const shared_halves &o) const {
    return w[0] == o.w[0] && w[1] == o.w[1];
  }
  bool operator!=(const shared_halves &o) const { return !(*this == o); }
};
static inline std::ostream &operator<<(std::ostream &s,
                                       const shared_halves &x) {
  return s << x.w[0] << ',' << x.w[1];
}
using shared_pair = rl::atomic<shared_halves>;

/* Memory that one thread at a time may touch: an access that is not ordered
 * behind the last one of another thread is reported as a race. */
template <typename T> class shared_guarded {
  mutable rl::var<T> at;

public:
  operator T() const { return at($); }
  void operator=(T x) { at($) = x; }
  void operator++(int) { at($)++; }
};
using guarded_64 = shared_guarded<uint64_t>;
using guarded_32 = shared_guarded<uint32_t>;

#define SHARED_CALLER                                                          \
  rl::debug_info_param at =                                                    \
      rl::debug_info(__builtin_FUNCTION(), __builtin_FILE(), __builtin_LINE())

static inline void shared_fence_acquire(SHARED_CALLER) {
  rl::atomic_thread_fence(rl::mo_acquire, at);
}

static inline void shared_fence_release(SHARED_CALLER) {
  rl::atomic_thread_fence(rl::mo_release, at);
}

static inline void shared_fence_full(SHARED_CALLER) {
  rl::atomic_thread_fence(rl::mo_seq_cst, at);
}

static inline uint64_t shared_load_64(const shared_64 *p, SHARED_CALLER) {
  return p->load(rl::mo_relaxed, at);
}

static inline uint64_t shared_load_acquire_64(const shared_64 *p,
                                              SHARED_CALLER) {
  return p->load(rl::mo_acquire, at);
}

static inline void shared_store_64(shared_64 *p, uint64_t v, SHARED_CALLER) {
  p->store(v, rl::mo_relaxed, at);
}

static inline void shared_store_release_64(shared_64 *p, uint64_t v,
                                           SHARED_CALLER) {
  p->store(v, rl::mo_release, at);
}

static inline uint32_t shared_load_32(const shared_32 *p, SHARED_CALLER) {
  return p->load(rl::mo_relaxed, at);
}

static inline uint32_t shared_load_acquire_32(const shared_32 *p,
                                              SHARED_CALLER) {
  return p->load(rl::mo_acquire, at);
}

static inline void shared_store_release_32(shared_32 *p, uint32_t v,
                                           SHARED_CALLER) {
  p->store(v, rl::mo_release, at);
}

static inline uint64_t shared_load_acquire_first(const shared_pair *p,
                                                 SHARED_CALLER) {
  return p->load(rl::mo_acquire, at).w[0];
}

static inline uint64_t shared_load_first(const shared_pair *p, SHARED_CALLER) {
  return p->load(rl::mo_relaxed, at).w[0];
}

static inline uint64_t shared_load_second(const shared_pair *p, SHARED_CALLER) {
  return p->load(rl::mo_relaxed, at).w[1];
}

static inline void shared_init_pair(shared_pair *p, uint64_t a, uint64_t b,
                                    SHARED_CALLER) {
  p->store(shared_halves{{a, b}}, rl::mo_relaxed, at);
}

/* Less than the contract: the tail, whose swap this is, asks for no barrier,
 * and one would stand in for the orders of what comes after it. */
static inline bool shared_cas_pair(shared_pair *p, uint64_t from_first,
                                   uint64_t from_second, uint64_t to_first,
                                   uint64_t to_second, SHARED_CALLER) {
  shared_halves from = {{from_first, from_second}};
  return p->compare_exchange_strong(from, shared_halves{{to_first, to_second}},
                                    rl::mo_acq_rel, at);
}

static inline bool shared_cas_32(shared_32 *p, uint32_t from, uint32_t to,
                                 SHARED_CALLER) {
  rl::atomic_thread_fence(rl::mo_seq_cst, at);
  bool swapped = p->compare_exchange_strong(from, to, rl::mo_seq_cst, at);
  rl::atomic_thread_fence(rl::mo_seq_cst, at);
  return swapped;
}

static inline uint32_t shared_exchange_32(shared_32 *p, uint32_t v,
                                          SHARED_CALLER) {
  rl::atomic_thread_fence(rl::mo_seq_cst, at);
  uint32_t old = (*p)(at).exchange(v, rl::mo_seq_cst);
  rl::atomic_thread_fence(rl::mo_seq_cst, at);
  return old;
}

/* A spin for another thread: relacy runs the others. */
static inline void shared_spin(SHARED_CALLER) { rl::yield(1, at); }
#define ck_pr_stall() shared_spin()

/* A number of the calling thread. */
static inline uint32_t shared_thread(void) { return rl::thread_index(); }
#endif
