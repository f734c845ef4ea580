/* SPDX-License-Identifier: ISC */
#include "core/api/rig_edge.h"

void rig_word_raise(volatile uint64_t *word, uint64_t last) {
  /* Relaxed: nothing is read through the word, and the CAS tests it again. */
  uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!rig_reached(seen, last)) {
    /* Release: pairs with the acquire load of whoever waits for the word, in
     * rig_nv_signaled and in other devices' readers. A failed CAS publishes
     * nothing and reads nothing else: relaxed. */
    if (__atomic_compare_exchange_n(word, &seen, last, true, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED))
      return;
  }
}
