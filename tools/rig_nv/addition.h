/* SPDX-License-Identifier: ISC */
#ifndef TOOLS_RIG_NV_ADDITION_H
#define TOOLS_RIG_NV_ADDITION_H
/*
 * addition: a kernel over the file's words, c[i] = a[i] + b[i], with a the
 * file, b words that the host makes, and c read back and compared.
 */
#include "stress/kernels.h"
#include "tools/rig_nv/content.h"
#include "tools/rig_nv/tool.h"

/* TOOL_OK with *words added; TOOL_NOT_VERIFIED or TOOL_ERROR, told. Nothing is
 * left of it. */
int addition_run(struct tool_gpu *, const struct kernels *,
                 const struct content *, bool turn, uint64_t *words);
#endif
