/* SPDX-License-Identifier: ISC */
/* Relocations: addresses of the image's own symbols in the image's bytes. */
#include "core/api/why.h"
#include "core/cubin/view.h"

/* Names as nvdisasm has them. The generic address of a byte of global memory
 * is its address. The last two patch the upper word of an instruction's first
 * half. */
enum {
  R_CUDA_64 = 0x2,
  R_CUDA_G64 = 0x4,
  R_CUDA_ABS32_LO_32 = 0x38,
  R_CUDA_ABS32_HI_32 = 0x39
};

/* The bytes that a type writes: where they begin after the relocation's
 * offset, how many, and by how much the address is shifted. */
struct patch {
  uint32_t skip, bytes, shift;
};

/* A relocation, read: what it writes where, and of what symbol. */
struct relocation {
  uint64_t offset, addend;
  uint32_t symbol, type;
  struct patch patch;
};

static bool patch_of(uint32_t type, struct patch *out) {
  switch (type) {
  case R_CUDA_64:
  case R_CUDA_G64:
    *out = (struct patch){0, 8, 0};
    return true;
  case R_CUDA_ABS32_LO_32:
    *out = (struct patch){4, 4, 0};
    return true;
  case R_CUDA_ABS32_HI_32:
    *out = (struct patch){4, 4, 32};
    return true;
  default:
    return false;
  }
}

static bool is_table(const Elf64_Shdr *s) {
  return s->sh_type == SHT_REL || s->sh_type == SHT_RELA;
}

static uint64_t entry_bytes(const Elf64_Shdr *table) {
  return table->sh_type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
}

/* Without the addend of a REL. */
static struct relocation read_entry(const struct cubin *c,
                                    const Elf64_Shdr *table, uint64_t i) {
  Elf64_Rela r = {0}; /* begins as an Elf64_Rel */
  const uint64_t n = entry_bytes(table);
  memcpy(&r, c->bytes + table->sh_offset + i * n, n);
  return (struct relocation){.offset = r.r_offset,
                             .addend = (uint64_t)r.r_addend,
                             .symbol = (uint32_t)ELF64_R_SYM(r.r_info),
                             .type = (uint32_t)ELF64_R_TYPE(r.r_info)};
}

static int check_symbol(const struct cubin *c, const char *table,
                        const struct relocation *r) {
  if (r->symbol >= c->symbols) {
    return why(RIG_NV_INVALID, "cubin: " CUBIN_NAME ": symbol %u of %u", table,
               r->symbol, c->symbols);
  }
  const Elf64_Sym symbol = cubin_symbol(c, r->symbol);
  const char *name = cubin_symbol_name(c, &symbol);
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= c->sections) {
    return why(RIG_NV_INVALID,
               "cubin: " CUBIN_NAME ": symbol " CUBIN_NAME
               " is not defined in the image",
               table, name);
  }
  const Elf64_Shdr section = cubin_section(c, symbol.st_shndx);
  if (!cubin_held(c, &section)) {
    return why(RIG_NV_INVALID,
               "cubin: " CUBIN_NAME ": symbol " CUBIN_NAME
               " is in a section that the image does not hold",
               table, name);
  }
  if (symbol.st_value > section.sh_size) {
    return why(RIG_NV_INVALID,
               "cubin: " CUBIN_NAME ": symbol " CUBIN_NAME
               " is past its section",
               table, name);
  }
  /* Constant memory has no generic address here. */
  if (r->type == R_CUDA_G64 && !(section.sh_flags & SHF_WRITE)) {
    return why(RIG_NV_INVALID,
               "cubin: " CUBIN_NAME ": symbol " CUBIN_NAME
               " is not in global memory",
               table, name);
  }
  return 0;
}

static int check_table(const struct cubin *c, const Elf64_Shdr *table,
                       const Elf64_Shdr *target) {
  const char *name = cubin_section_name(c, table);
  const uint64_t n = entry_bytes(table);
  if (table->sh_entsize != n || table->sh_size % n != 0) {
    return why(RIG_NV_INVALID,
               "cubin: " CUBIN_NAME ": 0x%llx bytes are no relocations", name,
               (unsigned long long)table->sh_size);
  }
  if (table->sh_size != 0 && table->sh_link != c->symbol_section) {
    return why(RIG_NV_INVALID,
               "cubin: " CUBIN_NAME ": section %u has no symbols", name,
               table->sh_link);
  }
  for (uint64_t i = 0; i < table->sh_size / n; i++) {
    struct relocation r = read_entry(c, table, i);
    if (!patch_of(r.type, &r.patch)) {
      return why(RIG_NV_INVALID,
                 "cubin: " CUBIN_NAME ": relocation type 0x%x is unknown", name,
                 r.type);
    }
    if (!cubin_inside(r.offset, r.patch.skip + r.patch.bytes,
                      target->sh_size)) {
      return why(RIG_NV_INVALID,
                 "cubin: " CUBIN_NAME ": 0x%llx is past " CUBIN_NAME, name,
                 (unsigned long long)r.offset, cubin_section_name(c, target));
    }
    const int bad = check_symbol(c, name, &r);
    if (bad != 0) {
      return bad;
    }
  }
  return 0;
}

/* The section that a table's relocations patch, where the image holds it. The
 * others are debuggers'. */
static bool target_of(const struct cubin *c, const Elf64_Shdr *table,
                      Elf64_Shdr *target) {
  *target = cubin_section(c, table->sh_info);
  return cubin_held(c, target);
}

int cubin_check_relocations(const struct cubin *c) {
  for (uint32_t i = 0; i < c->sections; i++) {
    const Elf64_Shdr s = cubin_section(c, i);
    if (!is_table(&s)) {
      continue;
    }
    if (s.sh_info >= c->sections) {
      return why(RIG_NV_INVALID, "cubin: " CUBIN_NAME ": of section %u of %u",
                 cubin_section_name(c, &s), s.sh_info, c->sections);
    }
    Elf64_Shdr target;
    const int r = target_of(c, &s, &target) ? check_table(c, &s, &target) : 0;
    if (r != 0) {
      return r;
    }
  }
  return 0;
}

/* The addend of a REL is what its bytes hold in the file, so that no patch
 * reads another's. */
static uint64_t addend_in_place(const struct cubin *c, const Elf64_Shdr *target,
                                const struct relocation *r) {
  uint64_t x = 0;
  if (target->sh_type != SHT_NOBITS) {
    memcpy(&x, c->bytes + target->sh_offset + r->offset + r->patch.skip,
           r->patch.bytes);
  }
  return x;
}

static void relocate_table(const struct cubin *c, const Elf64_Shdr *table,
                           const Elf64_Shdr *target, uint64_t base,
                           unsigned char *image) {
  unsigned char *at = image + cubin_offset(c, table->sh_info);
  for (uint64_t i = 0; i < table->sh_size / entry_bytes(table); i++) {
    struct relocation r = read_entry(c, table, i);
    patch_of(r.type, &r.patch);
    if (table->sh_type == SHT_REL) {
      r.addend = addend_in_place(c, target, &r);
    }
    const Elf64_Sym symbol = cubin_symbol(c, r.symbol);
    const uint64_t x =
        base + cubin_offset(c, symbol.st_shndx) + symbol.st_value + r.addend;
    const uint64_t shifted = x >> r.patch.shift;
    memcpy(at + r.offset + r.patch.skip, &shifted, r.patch.bytes);
  }
}

void cubin_relocate(const struct cubin *c, uint64_t base,
                    unsigned char *image) {
  for (uint32_t i = 0; i < c->sections; i++) {
    const Elf64_Shdr s = cubin_section(c, i);
    Elf64_Shdr target;
    if (is_table(&s) && target_of(c, &s, &target)) {
      relocate_table(c, &s, &target, base, image);
    }
  }
}
