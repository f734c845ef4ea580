/* SPDX-License-Identifier: ISC */
#ifndef CORE_CUBIN_VIEW_H
#define CORE_CUBIN_VIEW_H
/*
 * A cubin's sections and symbols, for this folder's files: reads that
 * cubin_parse has found to be inside the file. They copy, as nothing in a file
 * need be aligned.
 */
#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "core/cubin/cubin.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "a cubin's words are read as the host's");

enum { CUBIN_PAGE = 4096, CUBIN_ALIGN = 128 };

/* Messages cut names here. */
#define CUBIN_NAME "%.80s"

static inline Elf64_Shdr cubin_section(const struct cubin *c, uint32_t i) {
  Elf64_Shdr s;
  memcpy(&s, c->bytes + c->headers + i * sizeof s, sizeof s);
  return s;
}

static inline const char *cubin_section_name(const struct cubin *c,
                                             const Elf64_Shdr *s) {
  return (const char *)c->bytes + c->names + s->sh_name;
}

static inline Elf64_Sym cubin_symbol(const struct cubin *c, uint32_t i) {
  Elf64_Sym s;
  memcpy(&s, c->bytes + c->symbols_at + i * sizeof s, sizeof s);
  return s;
}

/* The text of name after prefix, or NULL. */
static inline const char *cubin_after(const char *name, const char *prefix) {
  const size_t n = strlen(prefix);
  return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

static inline uint64_t cubin_round(uint64_t x, uint64_t to) {
  return (x + to - 1) & ~(to - 1);
}

/* Whether [at, at + n) is inside limit bytes. */
static inline bool cubin_inside(uint64_t at, uint64_t n, uint64_t limit) {
  return at <= limit && n <= limit - at;
}

/* A symbol's name, or that of its section where it has none. "?" where the
 * file has neither. */
const char *cubin_symbol_name(const struct cubin *, const Elf64_Sym *);

/* Whether the image has the section. */
bool cubin_held(const struct cubin *, const Elf64_Shdr *);
/* Where a section that the image holds begins in it. */
uint64_t cubin_offset(const struct cubin *, uint32_t section);

int cubin_check_relocations(const struct cubin *);
/* Patches the image, which has the sections' bytes. */
void cubin_relocate(const struct cubin *, uint64_t base, unsigned char *image);

int cubin_check_kernels(const struct cubin *);
#endif
