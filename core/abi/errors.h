/* SPDX-License-Identifier: ISC */
#ifndef CORE_ABI_ERRORS_H
#define CORE_ABI_ERRORS_H
/*
 * Names of the channel errors that the RM writes to a notifier's info32.
 * Source: open-gpu-kernel-modules, nverror.h (ROBUST_CHANNEL_*) of releases
 * 570 to 595; no number has two names. Constant: any thread.
 */
#include <stdint.h>

/* Such as "FIFO_ERROR_MMU_ERR_FLT" for 31; NULL for a code without a name. */
const char *abi_channel_error(uint32_t code);
#endif
