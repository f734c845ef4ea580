/* SPDX-License-Identifier: ISC */
#ifndef CORE_LOCK_ORDER_NAMES_H
#define CORE_LOCK_ORDER_NAMES_H
/*
 * names: copies of the names of classes and places, each once, so that the
 * graph outlives the code that held the text. There is room for a few thousand;
 * one that finds none is "?".
 *
 * Threads: names_id under the graph's lock. A text, once its number was made,
 * never changes; whoever got the number under that lock may read it without.
 */
#include <stdint.h>

/* The number of s, 0 for "?". */
uint16_t names_id(const char *s);
const char *names_text(uint16_t id);
#endif
