/* SPDX-License-Identifier: ISC */
/* Per thread, what the fences of CK_TSAN_RMO order: see ck_pr_tsan.h. */
#include "third_party/ck/ck_pr_tsan.h"

#ifdef CK_TSAN_RMO
__thread const void *ckt_loaded[8];
__thread unsigned ckt_nloaded;
__thread int ckt_release;
#endif
