/* SPDX-License-Identifier: ISC */
#include "core/cubin/cubin.h"

#include "core/api/why.h"
#include "core/cubin/view.h"

/* The SM version's place in e_flags: the byte above the lowest from ABI version
 * 8 on (nvcc 13.0), the lowest before. */
enum { ABI_BYTE_1 = 8 };

static int check_header(struct cubin *c, Elf64_Ehdr *e) {
  if (c->n < sizeof *e) {
    return why(RIG_NV_INVALID, "cubin: %zu bytes hold no ELF header", c->n);
  }
  memcpy(e, c->bytes, sizeof *e);
  if (memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 ||
      e->e_ident[EI_CLASS] != ELFCLASS64 ||
      e->e_ident[EI_DATA] != ELFDATA2LSB) {
    return why(RIG_NV_INVALID, "cubin: no little-endian ELF64 file");
  }
  if (e->e_machine != EM_CUDA) {
    return why(RIG_NV_INVALID, "cubin: for machine %u, not CUDA's %d",
               e->e_machine, EM_CUDA);
  }
  c->sm = e->e_ident[EI_ABIVERSION] >= ABI_BYTE_1 ? e->e_flags >> 8 & 0xff
                                                  : e->e_flags & 0xff;
  if (c->sm == 0) {
    return why(RIG_NV_INVALID, "cubin: flags 0x%x name no SM version",
               e->e_flags);
  }
  return 0;
}

/* Whether a section is a table of strings inside the file. Its last byte ends
 * each of them. */
static bool has_names(const struct cubin *c, const Elf64_Shdr *s) {
  return s->sh_type == SHT_STRTAB && s->sh_size != 0 &&
         cubin_inside(s->sh_offset, s->sh_size, c->n) &&
         c->bytes[s->sh_offset + s->sh_size - 1] == '\0';
}

/* The table of sections, and the section that has their names. */
static int find_sections(struct cubin *c, const Elf64_Ehdr *e) {
  c->sections = e->e_shnum;
  c->headers = e->e_shoff;
  c->stride = c->sections / CUBIN_MARKS + 1;
  if (c->sections == 0 || e->e_shentsize != sizeof(Elf64_Shdr)) {
    return why(RIG_NV_INVALID,
               "cubin: no section table: %u sections of %u bytes", c->sections,
               e->e_shentsize);
  }
  if (!cubin_inside(c->headers, c->sections * sizeof(Elf64_Shdr), c->n)) {
    return why(RIG_NV_INVALID,
               "cubin: %u section headers at 0x%llx pass the file's end",
               c->sections, (unsigned long long)c->headers);
  }
  if (e->e_shstrndx >= c->sections) {
    return why(RIG_NV_INVALID, "cubin: section names in section %u of %u",
               e->e_shstrndx, c->sections);
  }
  const Elf64_Shdr names = cubin_section(c, e->e_shstrndx);
  if (!has_names(c, &names)) {
    return why(RIG_NV_INVALID, "cubin: section %u is no table of names",
               e->e_shstrndx);
  }
  c->names = names.sh_offset;
  c->names_bytes = names.sh_size;
  return 0;
}

static int check_section(const struct cubin *c, uint32_t i) {
  const Elf64_Shdr s = cubin_section(c, i);
  if (s.sh_type == SHT_NULL) {
    return 0;
  }
  if (s.sh_name >= c->names_bytes) {
    return why(RIG_NV_INVALID, "cubin: section %u: no name at 0x%x", i,
               s.sh_name);
  }
  const char *name = cubin_section_name(c, &s);
  if (s.sh_type != SHT_NOBITS && !cubin_inside(s.sh_offset, s.sh_size, c->n)) {
    return why(RIG_NV_INVALID,
               "cubin: section " CUBIN_NAME
               ": 0x%llx bytes at 0x%llx pass the file's end",
               name, (unsigned long long)s.sh_size,
               (unsigned long long)s.sh_offset);
  }
  if (!cubin_held(c, &s)) {
    return 0;
  }
  if ((s.sh_addralign & (s.sh_addralign - 1)) != 0 ||
      s.sh_addralign > CUBIN_PAGE) {
    return why(RIG_NV_INVALID,
               "cubin: section " CUBIN_NAME ": alignment 0x%llx is no power "
               "of two up to %d",
               name, (unsigned long long)s.sh_addralign, CUBIN_PAGE);
  }
  /* Symbols are offsets into their sections only where those begin at 0. */
  if (s.sh_addr != 0) {
    return why(RIG_NV_INVALID, "cubin: section " CUBIN_NAME ": has an address",
               name);
  }
  return 0;
}

bool cubin_held(const struct cubin *c, const Elf64_Shdr *s) {
  if (s->sh_type == SHT_NULL || !(s->sh_flags & SHF_ALLOC)) {
    return false;
  }
  const char *name = cubin_section_name(c, s);
  return cubin_after(name, ".nv.shared.") == NULL &&
         cubin_after(name, ".nv.merc.") == NULL;
}

static uint64_t align_of(const Elf64_Shdr *s) {
  return s->sh_addralign > CUBIN_ALIGN ? s->sh_addralign : CUBIN_ALIGN;
}

uint64_t cubin_offset(const struct cubin *c, uint32_t section) {
  const uint32_t mark = section / c->stride;
  uint64_t at = c->marks[mark];
  for (uint32_t i = mark * c->stride;; i++) {
    const Elf64_Shdr s = cubin_section(c, i);
    if (cubin_held(c, &s)) {
      at = cubin_round(at, align_of(&s));
      if (i == section) {
        return at;
      }
      at += s.sh_size;
    }
  }
}

/* Places each held section; each has been checked. */
static int place(struct cubin *c) {
  uint64_t at = 0;
  c->align = CUBIN_ALIGN;
  for (uint32_t i = 0; i < c->sections; i++) {
    if (i % c->stride == 0) {
      c->marks[i / c->stride] = at;
    }
    const Elf64_Shdr s = cubin_section(c, i);
    if (!cubin_held(c, &s)) {
      continue;
    }
    at = cubin_round(at, align_of(&s));
    if (!cubin_inside(at, s.sh_size, CUBIN_LIMIT - 2 * CUBIN_PAGE)) {
      return why(RIG_NV_INVALID,
                 "cubin: section " CUBIN_NAME ": 0x%llx bytes are too many",
                 cubin_section_name(c, &s), (unsigned long long)s.sh_size);
    }
    at += s.sh_size;
    c->align = align_of(&s) > c->align ? align_of(&s) : c->align;
  }
  c->image_bytes = cubin_round(at, CUBIN_PAGE) + CUBIN_PAGE;
  return 0;
}

/* The first symbol table and its strings; a file need have none. */
static int find_symbols(struct cubin *c) {
  uint32_t i = 0;
  Elf64_Shdr s = cubin_section(c, 0);
  while (s.sh_type != SHT_SYMTAB) {
    if (++i == c->sections) {
      return 0;
    }
    s = cubin_section(c, i);
  }
  const char *name = cubin_section_name(c, &s);
  if (s.sh_entsize != sizeof(Elf64_Sym) || s.sh_size % sizeof(Elf64_Sym) != 0 ||
      s.sh_size / sizeof(Elf64_Sym) > UINT32_MAX) {
    return why(RIG_NV_INVALID,
               "cubin: section " CUBIN_NAME ": 0x%llx bytes are no symbols",
               name, (unsigned long long)s.sh_size);
  }
  const Elf64_Shdr strings =
      s.sh_link < c->sections ? cubin_section(c, s.sh_link) : (Elf64_Shdr){0};
  if (!has_names(c, &strings)) {
    return why(RIG_NV_INVALID,
               "cubin: section " CUBIN_NAME ": section %u has no names", name,
               s.sh_link);
  }
  c->symbol_section = i;
  c->symbols_at = s.sh_offset;
  c->symbols = (uint32_t)(s.sh_size / sizeof(Elf64_Sym));
  c->strings = strings.sh_offset;
  c->strings_bytes = strings.sh_size;
  for (i = 0; i < c->symbols; i++) {
    const Elf64_Sym symbol = cubin_symbol(c, i);
    if (symbol.st_name >= c->strings_bytes) {
      return why(RIG_NV_INVALID, "cubin: symbol %u: no name at 0x%x", i,
                 symbol.st_name);
    }
  }
  return 0;
}

const char *cubin_symbol_name(const struct cubin *c, const Elf64_Sym *s) {
  if (s->st_name != 0) {
    return (const char *)c->bytes + c->strings + s->st_name;
  }
  if (s->st_shndx < c->sections) {
    const Elf64_Shdr section = cubin_section(c, s->st_shndx);
    if (section.sh_type != SHT_NULL) {
      return cubin_section_name(c, &section);
    }
  }
  return "?";
}

int cubin_parse(const void *bytes, size_t n, struct cubin *out) {
  struct cubin c = {.bytes = bytes, .n = n};
  Elf64_Ehdr e;
  int r = check_header(&c, &e);
  if (r == 0) {
    r = find_sections(&c, &e);
  }
  for (uint32_t i = 0; r == 0 && i < c.sections; i++) {
    r = check_section(&c, i);
  }
  if (r == 0) {
    r = place(&c);
  }
  if (r == 0) {
    r = find_symbols(&c);
  }
  if (r == 0) {
    r = cubin_check_relocations(&c);
  }
  if (r == 0) {
    r = cubin_check_kernels(&c);
  }
  if (r == 0) {
    *out = c;
  }
  return r;
}

int cubin_lay(const struct cubin *c, uint64_t base, void *out) {
  if (base % c->align != 0) {
    return why(RIG_NV_INVALID, "cubin: address 0x%llx: not a multiple of %llu",
               (unsigned long long)base, (unsigned long long)c->align);
  }
  if (!cubin_inside(base, c->image_bytes, CUBIN_LIMIT)) {
    return why(RIG_NV_INVALID,
               "cubin: address 0x%llx: 0x%llx bytes pass the limit",
               (unsigned long long)base, (unsigned long long)c->image_bytes);
  }
  unsigned char *image = out;
  memset(image, 0, c->image_bytes);
  uint64_t at = 0;
  for (uint32_t i = 0; i < c->sections; i++) {
    const Elf64_Shdr s = cubin_section(c, i);
    if (cubin_held(c, &s)) {
      at = cubin_round(at, align_of(&s));
      if (s.sh_type != SHT_NOBITS) {
        memcpy(image + at, c->bytes + s.sh_offset, s.sh_size);
      }
      at += s.sh_size;
    }
  }
  cubin_relocate(c, base, image);
  return 0;
}
