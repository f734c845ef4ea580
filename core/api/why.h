/* SPDX-License-Identifier: ISC */
#ifndef CORE_API_WHY_H
#define CORE_API_WHY_H
/*
 * Failures: each has a number and a reason. The reason is the calling
 * thread's; rig_nv_why returns it.
 */
#include "core/api/rig_nv.h"

/* Keeps the reason and returns -error. A longer one ends in "...". */
int why(enum rig_nv_error error, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
#endif
