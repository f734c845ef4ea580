/* SPDX-License-Identifier: ISC */
/* What a kernel needs: the attributes and sections that bear its name. */
#include "core/api/why.h"
#include "core/cubin/view.h"

#define INFO ".nv.info"
#define TEXT ".text."
#define SHARED ".nv.shared."
#define CONSTANT ".nv.constant"

/* A record of INFO: this header, then value bytes if the format says so. */
struct header {
  uint8_t format, attribute;
  uint16_t value;
};
enum { EIFMT_BVAL = 2, EIFMT_SVAL = 4 };
enum {
  EIATTR_NUM_BARRIERS = 0x4c, /* of INFO.NAME, a byte in the header */
  EIATTR_PARAM_CBANK = 0x0a,  /* of INFO.NAME: symbol, offset and bytes */
  EIATTR_MIN_STACK_SIZE = 0x12,
  EIATTR_REGCOUNT = 0x2f
};

/* What the others have. */
struct payload {
  uint32_t symbol, value;
};

struct record {
  struct header header;
  struct payload payload; /* where needed(header) */
};

static bool needed(const struct header *h) {
  return h->format == EIFMT_SVAL && (h->attribute == EIATTR_PARAM_CBANK ||
                                     h->attribute == EIATTR_MIN_STACK_SIZE ||
                                     h->attribute == EIATTR_REGCOUNT);
}

/* 1 with the record at *at, which goes on to the next; 0 at the end; negative
 * where the record is cut. */
static int next_record(const struct cubin *c, const Elf64_Shdr *info,
                       uint64_t *at, struct record *out) {
  const unsigned char *bytes = c->bytes + info->sh_offset;
  const char *name = cubin_section_name(c, info);
  const uint64_t left = info->sh_size - *at;
  if (left == 0) {
    return 0;
  }
  if (left < sizeof out->header) {
    return why(RIG_NV_INVALID, "cubin: " CUBIN_NAME ": ends within a record",
               name);
  }
  memcpy(&out->header, bytes + *at, sizeof out->header);
  const uint64_t n = out->header.format == EIFMT_SVAL ? out->header.value : 0;
  if (n > left - sizeof out->header) {
    return why(RIG_NV_INVALID,
               "cubin: " CUBIN_NAME ": attribute 0x%x is cut short", name,
               out->header.attribute);
  }
  if (needed(&out->header)) {
    if (n < sizeof out->payload) {
      return why(RIG_NV_INVALID,
                 "cubin: " CUBIN_NAME ": attribute 0x%x has %llu bytes", name,
                 out->header.attribute, (unsigned long long)n);
    }
    memcpy(&out->payload, bytes + *at + sizeof out->header,
           sizeof out->payload);
  }
  *at += sizeof out->header + n;
  return 1;
}

static bool is_info(const struct cubin *c, const Elf64_Shdr *s) {
  if (s->sh_type == SHT_NULL || s->sh_type == SHT_NOBITS) {
    return false;
  }
  const char *rest = cubin_after(cubin_section_name(c, s), INFO);
  return rest != NULL && (*rest == '\0' || *rest == '.');
}

static int check_info(const struct cubin *c, const Elf64_Shdr *info) {
  struct record record;
  uint64_t at = 0;
  int r;
  while ((r = next_record(c, info, &at, &record)) == 1) {
    if (needed(&record.header) &&
        record.header.attribute != EIATTR_PARAM_CBANK &&
        record.payload.symbol >= c->symbols) {
      return why(RIG_NV_INVALID,
                 "cubin: " CUBIN_NAME ": attribute 0x%x: symbol %u of %u",
                 cubin_section_name(c, info), record.header.attribute,
                 record.payload.symbol, c->symbols);
    }
  }
  return r;
}

/* A constant bank's number, or -1; *kernel is the rest of the name, "" where
 * the bank is every kernel's. */
static int bank_of(const char *name, const char **kernel) {
  const char *digits = cubin_after(name, CONSTANT);
  if (digits == NULL || *digits < '0' || *digits > '9') {
    return -1;
  }
  int bank = 0;
  for (; *digits >= '0' && *digits <= '9'; digits++) {
    bank = bank * 10 + (*digits - '0');
    bank = bank > CUBIN_BANKS ? CUBIN_BANKS : bank;
  }
  if (*digits != '\0' && *digits != '.') {
    return -1;
  }
  *kernel = *digits == '.' ? digits + 1 : digits;
  return bank;
}

int cubin_check_kernels(const struct cubin *c) {
  for (uint32_t i = 0; i < c->sections; i++) {
    const Elf64_Shdr s = cubin_section(c, i);
    const int r = is_info(c, &s) ? check_info(c, &s) : 0;
    if (r != 0) {
      return r;
    }
    const char *kernel;
    if (cubin_held(c, &s) &&
        bank_of(cubin_section_name(c, &s), &kernel) >= CUBIN_BANKS) {
      return why(RIG_NV_INVALID,
                 "cubin: section " CUBIN_NAME ": banks are 0 to %d",
                 cubin_section_name(c, &s), CUBIN_BANKS - 1);
    }
  }
  return 0;
}

/* The kernel that a section is the code of, or NULL. */
static const char *code_of(const struct cubin *c, const Elf64_Shdr *s) {
  return cubin_held(c, s) && s->sh_type == SHT_PROGBITS
             ? cubin_after(cubin_section_name(c, s), TEXT)
             : NULL;
}

/* Whether an attribute of the symbol is that of the kernel, whose code is the
 * section: the symbol is in its code, or in nobody's and has its name. */
static bool names_kernel(const struct cubin *c, uint32_t symbol,
                         uint32_t section, const char *kernel) {
  const Elf64_Sym s = cubin_symbol(c, symbol);
  if (s.st_shndx < c->sections) {
    const Elf64_Shdr in = cubin_section(c, s.st_shndx);
    if (code_of(c, &in) != NULL) {
      return s.st_shndx == section;
    }
  }
  return strcmp(cubin_symbol_name(c, &s), kernel) == 0;
}

/* Takes the attributes of the file's and of the kernel's own records. The last
 * of an attribute counts. */
static void take_info(const struct cubin *c, const Elf64_Shdr *info,
                      uint32_t section, struct cubin_kernel *k) {
  const char *of = cubin_after(cubin_section_name(c, info), INFO);
  const bool own = *of == '.';
  if (own && strcmp(of + 1, k->name) != 0) {
    return;
  }
  struct record record;
  uint64_t at = 0;
  while (next_record(c, info, &at, &record) == 1) {
    if (own && record.header.format == EIFMT_BVAL &&
        record.header.attribute == EIATTR_NUM_BARRIERS) {
      k->barriers = record.header.value & 0xff;
    }
    if (!needed(&record.header)) {
      continue;
    }
    const uint32_t value = record.payload.value;
    if (record.header.attribute == EIATTR_PARAM_CBANK) {
      k->params_offset = own ? value & 0xffff : k->params_offset;
      k->params_bytes = own ? value >> 16 : k->params_bytes;
    } else if (!own &&
               names_kernel(c, record.payload.symbol, section, k->name)) {
      if (record.header.attribute == EIATTR_REGCOUNT) {
        k->registers = value;
      } else {
        k->stack_bytes = value;
      }
    }
  }
}

static void take_section(const struct cubin *c, uint32_t i, const Elf64_Shdr *s,
                         struct cubin_kernel *k) {
  const char *name = cubin_section_name(c, s), *of;
  const char *shared = cubin_after(name, SHARED);
  if (shared != NULL && strcmp(shared, k->name) == 0) {
    k->shared_bytes = s->sh_size;
  }
  if (!cubin_held(c, s)) {
    return;
  }
  const int bank = bank_of(name, &of);
  if (bank >= 0 && (*of == '\0' || strcmp(of, k->name) == 0)) {
    k->banks[bank] = (struct cubin_part){cubin_offset(c, i), s->sh_size};
  }
}

static void describe(const struct cubin *c, uint32_t section,
                     const Elf64_Shdr *code, struct cubin_kernel *out) {
  struct cubin_kernel k = {.name = code_of(c, code),
                           .code = {cubin_offset(c, section), code->sh_size}};
  for (uint32_t i = 0; i < c->sections; i++) {
    const Elf64_Shdr s = cubin_section(c, i);
    if (s.sh_type == SHT_NULL) {
      continue;
    }
    if (is_info(c, &s)) {
      take_info(c, &s, section, &k);
    }
    take_section(c, i, &s, &k);
  }
  *out = k;
}

int cubin_next(const struct cubin *c, uint32_t *at, struct cubin_kernel *out) {
  while (*at < c->sections) {
    const uint32_t i = (*at)++;
    const Elf64_Shdr s = cubin_section(c, i);
    if (code_of(c, &s) != NULL) {
      describe(c, i, &s, out);
      return 1;
    }
  }
  return 0;
}

int cubin_kernel(const struct cubin *c, const char *name,
                 struct cubin_kernel *out) {
  for (uint32_t i = 0; i < c->sections; i++) {
    const Elf64_Shdr s = cubin_section(c, i);
    const char *kernel = code_of(c, &s);
    if (kernel != NULL && strcmp(kernel, name) == 0) {
      describe(c, i, &s, out);
      return 0;
    }
  }
  return why(RIG_NV_INVALID, "cubin: no kernel " CUBIN_NAME, name);
}
