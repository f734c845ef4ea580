/* SPDX-License-Identifier: ISC */
#include "core/api/rig_nv.h"
#include "rings/rcu.h"

void rig_nv_thread_enter(void) { ring_rcu_register(); }

void rig_nv_thread_leave(void) { /* its end does it: rings/rcu.h */ }
