/* SPDX-License-Identifier: ISC */
#ifndef PATHS_MODEL_SPAN_H
#define PATHS_MODEL_SPAN_H
/*
 * span: the model's GPU addresses, for what gives memory (memory.c). The
 * model's lock is held in each of these; model_span_end needs it where the
 * span is backed alone.
 */
#include "paths/model/state.h"

/* n in whole pages. */
static inline uint64_t model_whole(uint64_t n) {
  return (n + MODEL_PAGE - 1) & ~(MODEL_PAGE - 1);
}

/* Spans that the GPU reaches from now on, or NULL where room lacks: of n bytes
 * of new memory, which the GPU sees apart where `post`; of the caller's n bytes
 * at p, whole pages; a view like `of` (model_view_new). */
struct model_span *model_span_fresh(struct model *, int kind, uint64_t n,
                                    struct model_post *post);
struct model_span *model_span_of_host(struct model *, uint64_t n, char *p);
struct model_span *model_span_view(struct model *, const struct model_span *of,
                                   uint64_t n);

/* Takes the span out of the GPU's addresses. */
void model_span_out(struct model *, struct model_span *);
/* Gives back the memory of a span that no model reaches; NULL does nothing. */
void model_span_end(struct model *, struct model_span *);

/* Where the GPU writes to byte `at` of the span. */
struct model_twin model_span_twin(const struct model_span *, uint64_t at);
#endif
