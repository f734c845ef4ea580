/* SPDX-License-Identifier: ISC */
#ifndef TOOLS_RIG_NV_DOCTOR_H
#define TOOLS_RIG_NV_DOCTOR_H
/*
 * doctor: why can a GPU not be opened? Looks at what stands between this user
 * and it, in the order of its list in doctor.c, then opens it. A line each:
 *
 *   ok    what is
 *   warn  what is odd, and may do no harm  -> what to do
 *   FAIL  what stands in the way  -> what to do
 *
 * Each line is out before the next look: an open that never returns is the
 * line that lacks.
 *
 * It changes nothing. A device file of a driver that the kernel does not have
 * is not opened, for which the kernel would look for a module to load. The
 * limit of locked memory (RLIMIT_MEMLOCK) is not looked at: the driver pins
 * pages of Pinned memory and counts none of them.
 */
#include <stdio.h>

#include "tools/rig_nv/system.h"

/* The GPU of the number, or where it is -1 any. 0 where it opened, else 1. */
int doctor_run(const struct system *, int gpu, FILE *out);
#endif
