/* SPDX-License-Identifier: ISC */
#ifndef CORE_ABI_TIMER_H
#define CORE_ABI_TIMER_H
/*
 * Registers of the GPU's timer, which counts nanoseconds: in BAR 0, and in the
 * usermode region, where the doorbell is. Byte offsets.
 *
 * Sources: classes/clc361 and dev_usermode, dev_vm (the region is the same from
 * Volta to Blackwell), dev_timer; rows in testdata/timer.tsv, which timer_test
 * compares.
 */
enum {
  NV_USERMODE_BYTES = 0x10000,
  NV_USERMODE_TIME_0 = 0x80,
  NV_USERMODE_TIME_1 = 0x84,
  NV_USERMODE_DOORBELL = 0x90 /* NOTIFY_CHANNEL_PENDING */
};

enum { NV_PTIMER_TIME_0 = 0x9400, NV_PTIMER_TIME_1 = 0x9410 };

/* TIME_0 has the low 32 bits, of which 31:5 count, TIME_1 the high 29. */
#define NV_TIME_0_NSEC 0xffffffe0u
#define NV_TIME_1_NSEC 0x1fffffffu
#endif
