/* SPDX-License-Identifier: ISC */
#ifndef RINGS_VALIDATE_H
#define RINGS_VALIDATE_H
/*
 * What the lock order graph (core/lock_order) is told of a submission: that
 * the thread is in an RCU section, or between reserve and "encoded", where it
 * may not wait, allocate or synchronize. A build with -DRIG_NV_VALIDATE says
 * so, and watches from its start; every other build has nothing there.
 */
#ifdef RIG_NV_VALIDATE
#include "core/lock_order/lock_order.h"
#define VALIDATE_ENTER(context) rig_nv_lock_enter(context)
#define VALIDATE_LEAVE(context) rig_nv_lock_leave(context)
#define VALIDATE_SYNCHRONIZE() rig_nv_lock_may_synchronize()
#define VALIDATE_ALLOCATE(what) rig_nv_lock_may_allocate(what)
#define VALIDATE_BLOCK(what) rig_nv_lock_may_block(what)
#else
#define VALIDATE_ENTER(context) ((void)0)
#define VALIDATE_LEAVE(context) ((void)0)
#define VALIDATE_SYNCHRONIZE() ((void)0)
#define VALIDATE_ALLOCATE(what) ((void)0)
#define VALIDATE_BLOCK(what) ((void)0)
#endif
#endif
