/* SPDX-License-Identifier: ISC */
#include "rings/rcu.h"

#ifdef RING_RCU_TSAN
char ring_rcu_tag;
#endif
