/* SPDX-License-Identifier: ISC */
/*
 * ck_pr for ThreadSanitizer builds: the operations of CK's x86-64 port through
 * compiler atomics, which TSan sees. CK_COPTS (defs.bzl) force-includes it
 * before any CK header, under TSan only.
 *
 * Ordering: x86-64 is TSO and CK puts a compiler barrier on both sides of every
 * ck_pr_load and store, so there each load is an acquire, each store a release
 * and each read-modify-write sequentially consistent. TSan ignores fences that
 * stand alone, so the order is put on the accesses themselves.
 *
 * CK_TSAN_RMO (--config=rmo) instead makes accesses relaxed and has the fences
 * order them, so that a missing ck_pr_fence is a race that TSan reports, though
 * x86 does not need it.
 */
#ifndef CK_PR_TSAN_H
#define CK_PR_TSAN_H
/* Stands for CK's own header: no warnings, 128-bit integers. */
#pragma GCC system_header
#ifdef CK_PR_H
#error include ck_pr_tsan.h before any CK header
#endif
#ifdef CK_TSAN_RMO
#define CK_MD_RMO
#endif
#define CK_USE_CC_BUILTINS 1
#define CK_F_PR /* gcc/ck_pr.h then adds nothing but ck_pr_barrier */

#include <ck_cc.h>
#include <ck_limits.h>
#include <ck_md.h>
#include <ck_stdint.h>
#include <ck_stdbool.h>
#include <gcc/ck_f_pr.h>

#define CKT static inline __attribute__((always_inline, unused))

#ifdef CK_TSAN_RMO
/*
 * Loads and stores are relaxed, and a fence gives order the way C11 says: an acquire fence acquires
 * the addresses loaded before it (the last 8), a release fence makes the next store or RMW a
 * release. A missing ck_pr_fence_* is then a reported race, as it would be a bug off x86.
 */
void __tsan_acquire(void *);
void __tsan_release(void *);
extern __thread const void *ckt_loaded[8];
extern __thread unsigned ckt_nloaded;
extern __thread int ckt_release;
CKT void ckt_load(const void *p) { ckt_loaded[ckt_nloaded++ & 7] = p; }
CKT void ckt_store(const void *p) { if (ckt_release) { ckt_release = 0; __tsan_release((void *)p); } }
CKT void ckt_acq(void) { for (unsigned i = 0; i < 8; i++) if (ckt_loaded[i]) __tsan_acquire((void *)ckt_loaded[i]); }
#define CKT_LD __ATOMIC_RELAXED
#define CKT_ST __ATOMIC_RELAXED
#define CKT_RMW __ATOMIC_RELAXED
#define CKT_RMWF __ATOMIC_RELAXED
#else
#define ckt_load(p) ((void)0)
#define ckt_store(p) ((void)0)
#define CKT_LD __ATOMIC_ACQUIRE
#define CKT_ST __ATOMIC_RELEASE
#define CKT_RMW __ATOMIC_SEQ_CST
#define CKT_RMWF __ATOMIC_ACQUIRE
#endif

#define CKT_INT(S, T)                                                                            \
	CKT T ck_pr_md_load_##S(const T *p) { ckt_load(p); return __atomic_load_n(p, CKT_LD); }     \
	CKT void ck_pr_md_store_##S(T *p, T v) { ckt_store(p); __atomic_store_n(p, v, CKT_ST); }     \
	CKT bool ck_pr_cas_##S(T *p, T c, T s) {                                                 \
		ckt_load(p); ckt_store(p); return __atomic_compare_exchange_n(p, &c, s, 0, CKT_RMW, CKT_RMWF); \
	}                                                                                        \
	CKT bool ck_pr_cas_##S##_value(T *p, T c, T s, T *v) {                                   \
		ckt_load(p); ckt_store(p); bool r = __atomic_compare_exchange_n(p, &c, s, 0, CKT_RMW, CKT_RMWF); \
		*v = c;                                                                          \
		return r;                                                                        \
	}                                                                                        \
	CKT T ck_pr_faa_##S(T *p, T d) { ckt_load(p); ckt_store(p); return __atomic_fetch_add(p, d, CKT_RMW); }    \
	CKT T ck_pr_fas_##S(T *p, T v) { ckt_load(p); ckt_store(p); return __atomic_exchange_n(p, v, CKT_RMW); }   \
	CKT void ck_pr_add_##S(T *p, T d) { ckt_load(p); ckt_store(p); (void)__atomic_fetch_add(p, d, CKT_RMW); }  \
	CKT void ck_pr_sub_##S(T *p, T d) { ckt_load(p); ckt_store(p); (void)__atomic_fetch_sub(p, d, CKT_RMW); }  \
	CKT void ck_pr_and_##S(T *p, T d) { ckt_load(p); ckt_store(p); (void)__atomic_fetch_and(p, d, CKT_RMW); }  \
	CKT void ck_pr_or_##S(T *p, T d) { ckt_load(p); ckt_store(p); (void)__atomic_fetch_or(p, d, CKT_RMW); }    \
	CKT void ck_pr_xor_##S(T *p, T d) { ckt_load(p); ckt_store(p); (void)__atomic_fetch_xor(p, d, CKT_RMW); }  \
	CKT void ck_pr_inc_##S(T *p) { ck_pr_add_##S(p, (T)1); }                                 \
	CKT void ck_pr_dec_##S(T *p) { ck_pr_sub_##S(p, (T)1); }
CKT_INT(char, char)
CKT_INT(int, int)
CKT_INT(uint, unsigned int)
CKT_INT(64, uint64_t)
CKT_INT(32, uint32_t)
CKT_INT(16, uint16_t)
CKT_INT(8, uint8_t)
#undef CKT_INT

CKT double ck_pr_md_load_double(const double *p) { double r; ckt_load(p); __atomic_load(p, &r, CKT_LD); return r; }
CKT void ck_pr_md_store_double(double *p, double v) { ckt_store(p); __atomic_store(p, &v, CKT_ST); }

CKT void *ck_pr_md_load_ptr(const void *p) { ckt_load(p); return __atomic_load_n((void *const *)p, __ATOMIC_ACQUIRE); /* consume */ }
CKT void ck_pr_md_store_ptr(void *p, const void *v) { ckt_store(p); __atomic_store_n((const void **)p, v, CKT_ST); }
CKT bool ck_pr_cas_ptr(void *p, void *c, void *s) {
	ckt_load(p); ckt_store(p); return __atomic_compare_exchange_n((void **)p, &c, s, 0, CKT_RMW, CKT_RMWF);
}
CKT bool ck_pr_cas_ptr_value(void *p, void *c, void *s, void *v) {
	ckt_load(p); ckt_store(p); bool r = __atomic_compare_exchange_n((void **)p, &c, s, 0, CKT_RMW, CKT_RMWF);
	*(void **)v = c;
	return r;
}
CKT void *ck_pr_fas_ptr(void *p, void *v) { ckt_load(p); ckt_store(p); return __atomic_exchange_n((void **)p, v, CKT_RMW); }
CKT void *ck_pr_faa_ptr(void *p, uintptr_t d) { ckt_load(p); ckt_store(p); return (void *)__atomic_fetch_add((uintptr_t *)p, d, CKT_RMW); }
#define CKT_PTR(K) CKT void ck_pr_##K##_ptr(void *p, uintptr_t d) { ckt_load(p); ckt_store(p); (void)__atomic_fetch_##K((uintptr_t *)p, d, CKT_RMW); }
CKT_PTR(add) CKT_PTR(sub) CKT_PTR(and) CKT_PTR(or) CKT_PTR(xor)
#undef CKT_PTR
CKT void ck_pr_inc_ptr(void *p) { ck_pr_add_ptr(p, 1); }
CKT void ck_pr_dec_ptr(void *p) { ck_pr_sub_ptr(p, 1); }
#define CK_F_PR_FAS_CHAR
#define CK_F_PR_FAS_INT
#define CK_F_PR_FAS_UINT
#define CK_F_PR_FAS_PTR
#define CK_F_PR_FAS_64
#define CK_F_PR_FAS_32
#define CK_F_PR_FAS_16
#define CK_F_PR_FAS_8

/* Double-width CAS, absent from CK's builtins port (needs -mcx16). */
CKT bool ck_pr_cas_64_2_value(uint64_t p[2], uint64_t c[2], uint64_t s[2], uint64_t v[2]) {
	unsigned __int128 cc, ss;
	__builtin_memcpy(&cc, c, 16);
	__builtin_memcpy(&ss, s, 16);
	ckt_load(p); ckt_store(p); bool r = __atomic_compare_exchange_n((unsigned __int128 *)p, &cc, ss, 0, CKT_RMW, CKT_RMWF);
	__builtin_memcpy(v, &cc, 16);
	return r;
}
CKT bool ck_pr_cas_64_2(uint64_t p[2], uint64_t c[2], uint64_t s[2]) { uint64_t v[2]; return ck_pr_cas_64_2_value(p, c, s, v); }
CKT bool ck_pr_cas_ptr_2_value(void *p, void *c, void *s, void *v) { return ck_pr_cas_64_2_value((uint64_t *)p, (uint64_t *)c, (uint64_t *)s, (uint64_t *)v); }
CKT bool ck_pr_cas_ptr_2(void *p, void *c, void *s) { return ck_pr_cas_64_2((uint64_t *)p, (uint64_t *)c, (uint64_t *)s); }
CKT void ck_pr_load_64_2(const uint64_t p[2], uint64_t v[2]) {
	ckt_load(p);
	unsigned __int128 r = __atomic_load_n((const unsigned __int128 *)p, CKT_LD);
	__builtin_memcpy(v, &r, 16);
}
CKT void ck_pr_load_ptr_2(const void *p, void *v) { ck_pr_load_64_2((const uint64_t *)p, (uint64_t *)v); }
#define CK_F_PR_CAS_64_2
#define CK_F_PR_CAS_64_2_VALUE
#define CK_F_PR_CAS_PTR_2
#define CK_F_PR_CAS_PTR_2_VALUE
#define CK_F_PR_LOAD_64_2
#define CK_F_PR_LOAD_PTR_2

#if defined(__x86_64__)
CKT void ck_pr_stall(void) { __asm__ __volatile__("pause" ::: "memory"); }
#else
CKT void ck_pr_stall(void) { __asm__ __volatile__("yield" ::: "memory"); }
#endif
#ifdef CK_TSAN_RMO
#define CKT_A ckt_acq();
#define CKT_R ckt_release = 1;
#else
#define CKT_A
#define CKT_R
#endif
#define CKT_FENCE(T, X) CKT void ck_pr_fence_strict_##T(void) { X __atomic_thread_fence(__ATOMIC_SEQ_CST); }
CKT_FENCE(atomic, CKT_A CKT_R) CKT_FENCE(atomic_atomic, CKT_A CKT_R) CKT_FENCE(atomic_load, CKT_A)
CKT_FENCE(atomic_store, CKT_A CKT_R) CKT_FENCE(store_atomic, CKT_R) CKT_FENCE(load_atomic, CKT_A CKT_R)
CKT_FENCE(load, CKT_A) CKT_FENCE(load_load, CKT_A) CKT_FENCE(load_store, CKT_A CKT_R)
CKT_FENCE(store, CKT_R) CKT_FENCE(store_store, CKT_R) CKT_FENCE(store_load, ) CKT_FENCE(memory, CKT_A CKT_R)
CKT_FENCE(acquire, CKT_A) CKT_FENCE(release, CKT_R) CKT_FENCE(acqrel, CKT_A CKT_R)
CKT_FENCE(lock, CKT_A) CKT_FENCE(unlock, CKT_R)
#undef CKT_A
#undef CKT_R
#undef CKT_FENCE
#undef CKT
#endif
