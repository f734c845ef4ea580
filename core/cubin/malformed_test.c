/* SPDX-License-Identifier: ISC */
/* Changes to fixtures: what is refused, with which words, and what is not. */
#include <elf.h>

#include "core/cubin/fixture.h"
#include "core/cubin/oracle.h"

#define COUNT(table) (sizeof table / sizeof table[0])

/* Places in table_sm86.cubin, from readelf. */
#define EH(member) offsetof(Elf64_Ehdr, member), MEMBER(Elf64_Ehdr, member)
#define SH(i, member)                                                          \
  5928 + 64 * (i) + offsetof(Elf64_Shdr, member), MEMBER(Elf64_Shdr, member)
#define SYM(i, member)                                                         \
  0x4f8 + 24 * (i) + offsetof(Elf64_Sym, member), MEMBER(Elf64_Sym, member)
#define MEMBER(type, member) sizeof(((type *)0)->member)
enum {
  SHSTRTAB = 1,
  STRTAB = 2,
  SYMTAB = 3,
  INFO = 7,
  INFO_CHOOSE = 9,
  REL_TEXT = 14,
  RELA_TEXT = 15,
  REL_INIT = 16,
  RELA_INIT = 17,
  CONSTANT_3 = 21,
  TEXT_SHARED = 22,
  INIT = 26,
  SHARED = 27,
  GLOBAL = 28,
  ZEROED_SYMBOL = 21,
  /* Bytes of the file. */
  SHSTRTAB_END = 0x40 + 0x235,
  STRTAB_END = 0x275 + 0x27d,
  INFO_AT = 0xa78,
  INFO_CHOOSE_AT = 0xb30,
  REL_TEXT_AT = 0xbf8,
  RELA_TEXT_AT = 0xc58,
  RELA_INIT_AT = 0xca8,
};

static const struct {
  const char *name;
  size_t at, n;
  uint64_t value;
  const char *why;
} refused[] = {
    {"magic", 0, 1, 0x7e, "cubin: no little-endian ELF64 file"},
    {"32 bits", EI_CLASS, 1, 1, "cubin: no little-endian ELF64 file"},
    {"big-endian", EI_DATA, 1, 2, "cubin: no little-endian ELF64 file"},
    {"machine", EH(e_machine), 62, "cubin: for machine 62, not CUDA's 190"},
    {"no SM version", EH(e_flags), 0xff0000ff,
     "cubin: flags 0xff0000ff name no SM version"},
    {"no sections", EH(e_shnum), 0,
     "cubin: no section table: 0 sections of 64 bytes"},
    {"short headers", EH(e_shentsize), 40,
     "cubin: no section table: 29 sections of 40 bytes"},
    {"headers past the end", EH(e_shoff), 8008 - 29 * 64 + 1,
     "cubin: 29 section headers at 0x1809 pass the file's end"},
    {"headers far past", EH(e_shoff), UINT64_MAX,
     "cubin: 29 section headers at 0xffffffffffffffff pass the file's end"},
    {"too many headers", EH(e_shnum), 0xffff,
     "cubin: 65535 section headers at 0x1728 pass the file's end"},
    {"no names' section", EH(e_shstrndx), 29,
     "cubin: section names in section 29 of 29"},
    {"names elsewhere", EH(e_shstrndx), 0xffff,
     "cubin: section names in section 65535 of 29"},
    {"names of another type", EH(e_shstrndx), INFO,
     "cubin: section 7 is no table of names"},
    {"names past the end", SH(SHSTRTAB, sh_size), 8008,
     "cubin: section 1 is no table of names"},
    {"names without an end", SHSTRTAB_END - 1, 1, 'x',
     "cubin: section 1 is no table of names"},
    {"empty names", SH(SHSTRTAB, sh_size), 0,
     "cubin: section 1 is no table of names"},
    {"section without a name", SH(CONSTANT_3, sh_name), 0x235,
     "cubin: section 21: no name at 0x235"},
    {"section far from names", SH(CONSTANT_3, sh_name), 0xffffffff,
     "cubin: section 21: no name at 0xffffffff"},
    {"section past the end", SH(CONSTANT_3, sh_offset), 8008 - 15,
     "cubin: section .nv.constant3: 0x10 bytes at 0x1f39 pass the file's end"},
    {"section far away", SH(CONSTANT_3, sh_offset), UINT64_MAX - 3,
     "cubin: section .nv.constant3: 0x10 bytes at 0xfffffffffffffffc pass the "
     "file's end"},
    {"section too long", SH(INFO, sh_size), UINT64_MAX,
     "cubin: section .nv.info: 0xffffffffffffffff bytes at 0xa78 pass the "
     "file's end"},
    {"zeros past the limit", SH(GLOBAL, sh_size), UINT64_MAX,
     "cubin: section .nv.global: 0xffffffffffffffff bytes are too many"},
    {"zeros at the limit", SH(GLOBAL, sh_size), CUBIN_LIMIT,
     "cubin: section .nv.global: 0x2000000000000 bytes are too many"},
    {"odd alignment", SH(TEXT_SHARED, sh_addralign), 384,
     "cubin: section .text.shared: alignment 0x180 is no power of two up to "
     "4096"},
    {"wide alignment", SH(TEXT_SHARED, sh_addralign), 8192,
     "cubin: section .text.shared: alignment 0x2000 is no power of two up to "
     "4096"},
    {"section with an address", SH(INIT, sh_addr), 0x1000,
     "cubin: section .nv.global.init: has an address"},
    {"symbols of 23 bytes", SH(SYMTAB, sh_entsize), 23,
     "cubin: section .symtab: 0x258 bytes are no symbols"},
    {"part of a symbol", SH(SYMTAB, sh_size), 0x257,
     "cubin: section .symtab: 0x257 bytes are no symbols"},
    {"symbols without names", SH(SYMTAB, sh_link), 29,
     "cubin: section .symtab: section 29 has no names"},
    {"symbols' names of another type", SH(SYMTAB, sh_link), INFO,
     "cubin: section .symtab: section 7 has no names"},
    {"symbols' names without an end", STRTAB_END - 1, 1, 'x',
     "cubin: section .symtab: section 2 has no names"},
    {"symbol without a name", SYM(ZEROED_SYMBOL, st_name), 0x27d,
     "cubin: symbol 21: no name at 0x27d"},
    {"no symbols", SH(SYMTAB, sh_type), SHT_PROGBITS,
     "cubin: .rel.text.choose: section 3 has no symbols"},
    {"relocations of no section", SH(REL_TEXT, sh_info), 29,
     "cubin: .rel.text.choose: of section 29 of 29"},
    {"relocations of 24 bytes", SH(REL_TEXT, sh_entsize), 24,
     "cubin: .rel.text.choose: 0x60 bytes are no relocations"},
    {"part of a relocation", SH(RELA_TEXT, sh_size), 0x31,
     "cubin: .rela.text.choose: 0x31 bytes are no relocations"},
    {"relocations of other symbols", SH(RELA_TEXT, sh_link), 2,
     "cubin: .rela.text.choose: section 2 has no symbols"},
    {"relocation type", REL_TEXT_AT + 8, 4, 0x3b,
     "cubin: .rel.text.choose: relocation type 0x3b is unknown"},
    {"relocation of nothing", RELA_TEXT_AT + 8, 4, 0,
     "cubin: .rela.text.choose: relocation type 0x0 is unknown"},
    {"relocation past its section", REL_TEXT_AT, 8, 0x380 - 7,
     "cubin: .rel.text.choose: 0x379 is past .text.choose"},
    {"relocation far past", RELA_INIT_AT, 8, UINT64_MAX - 3,
     "cubin: .rela.nv.global.init: 0xfffffffffffffffc is past "
     ".nv.global.init"},
    {"relocation of symbol 25", REL_TEXT_AT + 12, 4, 25,
     "cubin: .rel.text.choose: symbol 25 of 25"},
    {"undefined symbol", SYM(ZEROED_SYMBOL, st_shndx), SHN_UNDEF,
     "cubin: .rel.text.choose: symbol zeroed is not defined in the image"},
    {"absolute symbol", SYM(ZEROED_SYMBOL, st_shndx), SHN_ABS,
     "cubin: .rel.text.choose: symbol zeroed is not defined in the image"},
    {"symbol of section 29", SYM(ZEROED_SYMBOL, st_shndx), 29,
     "cubin: .rel.text.choose: symbol zeroed is not defined in the image"},
    {"symbol of shared memory", SYM(ZEROED_SYMBOL, st_shndx), SHARED,
     "cubin: .rel.text.choose: symbol zeroed is in a section that the image "
     "does not hold"},
    {"symbol of a debugger's", SYM(ZEROED_SYMBOL, st_shndx), 4,
     "cubin: .rel.text.choose: symbol zeroed is in a section that the image "
     "does not hold"},
    {"symbol past its section", SYM(ZEROED_SYMBOL, st_value), 0x191,
     "cubin: .rel.text.choose: symbol zeroed is past its section"},
    {"generic address of a constant", RELA_INIT_AT + 12, 4, 20,
     "cubin: .rela.nv.global.init: symbol scale is not in global memory"},
    {"part of a record", SH(INFO, sh_size), 2,
     "cubin: .nv.info: ends within a record"},
    {"record cut short", SH(INFO, sh_size), 0x77,
     "cubin: .nv.info: attribute 0x12 is cut short"},
    {"long record", INFO_AT + 2, 2, 0xffff,
     "cubin: .nv.info: attribute 0x11 is cut short"},
    {"register count of 7 bytes", INFO_AT + 14, 2, 7,
     "cubin: .nv.info: attribute 0x2f has 7 bytes"},
    {"parameters of 4 bytes", INFO_CHOOSE_AT + 0x36, 2, 4,
     "cubin: .nv.info.choose: attribute 0xa has 4 bytes"},
    {"registers of symbol 25", INFO_AT + 16, 4, 25,
     "cubin: .nv.info: attribute 0x2f: symbol 25 of 25"},
    {"stack of a far symbol", INFO_AT + 0x64, 4, UINT32_MAX,
     "cubin: .nv.info: attribute 0x12: symbol 4294967295 of 25"},
};

static void test_refused(void **state) {
  (void)state;
  static struct fixture f;
  for (size_t i = 0; i < COUNT(refused); i++) {
    fixture_read(&f, "table_sm86");
    fixture_put(&f, refused[i].at, refused[i].n, refused[i].value);
    const int r = fixture_use(&f, f.n);
    if (r != -RIG_NV_INVALID || strcmp(rig_nv_why(), refused[i].why) != 0) {
      fail_msg("%s: %d, %s", refused[i].name, r, r == 0 ? "" : rig_nv_why());
    }
  }
}

/* The bank's number is text; sections' names overlap, so it is found by its
 * own. */
static void test_bank_8(void **state) {
  (void)state;
  static struct fixture f;
  fixture_read(&f, "table_sm86");
  const size_t name = 0x40 + fixture_get(f.bytes + 5928 + 64 * CONSTANT_3, 4);
  assert_string_equal(f.bytes + name, ".nv.constant3");
  f.bytes[name + 12] = '8';
  assert_int_equal(fixture_use(&f, f.n), -RIG_NV_INVALID);
  assert_string_equal(rig_nv_why(),
                      "cubin: section .nv.constant8: banks are 0 to 7");
}

/* A change, and what the image for ORACLE_BASE has then. */
static const struct {
  const char *name;
  size_t at, n;
  uint64_t value;
  uint64_t in_image;
  size_t bytes;
  uint64_t expected;
} accepted[] = {
    {"version", EH(e_version), 0x81, 0xa88, 8, 0x12345678500},
    {"no program headers", EH(e_phnum), 0, 0xa88, 8, 0x12345678500},
    {"unknown attribute", INFO_AT + 1, 1, 0xee, 0xa88, 8, 0x12345678500},
    {"type of a symbol", SYM(ZEROED_SYMBOL, st_info), 0x1d, 0x734, 4,
     0x45678b00},
    {"addend of a REL of 64 bits", 0x1708, 8, 0x1000, 0xa88, 8, 0x12345679500},
    {"addend that wraps", 0x1708, 8, UINT64_MAX, 0xa88, 8, 0x123456784ff},
    {"addend of a REL's low half", 0x13b4, 4, 0xf0, 0x734, 4, 0x45678bf0},
    {"addend of a REL that carries", 0x1394, 4, 0xf0000000, 0x714, 4, 0x124},
    {"addend of a RELA", RELA_INIT_AT + 16, 8, 0, 0xa80, 8, 0x12345678a98},
    {"a symbol's end", SYM(ZEROED_SYMBOL, st_value), 0x190, 0x734, 4,
     0x45678c90},
    {"last place of a relocation", REL_TEXT_AT, 8, 0x378, 0xa7c, 4, 0x123},
    {"sections on the same bytes", SH(CONSTANT_3, sh_offset), 0x1380, 0xa88, 8,
     0x12345678500},
    {"wider alignment", SH(TEXT_SHARED, sh_addralign), 1024, 0xb08, 8,
     0x12345678580},
};

static void test_accepted(void **state) {
  (void)state;
  static struct fixture f;
  static unsigned char image[FIXTURE_MOST];
  for (size_t i = 0; i < COUNT(accepted); i++) {
    struct cubin c;
    fixture_read(&f, "table_sm86");
    fixture_put(&f, accepted[i].at, accepted[i].n, accepted[i].value);
    if (cubin_parse(f.bytes, f.n, &c) != 0 ||
        cubin_lay(&c, ORACLE_BASE, image) != 0) {
      fail_msg("%s: %s", accepted[i].name, rig_nv_why());
    }
    const uint64_t is =
        fixture_get(image + accepted[i].in_image, accepted[i].bytes);
    if (is != accepted[i].expected) {
      fail_msg("%s: 0x%llx", accepted[i].name, (unsigned long long)is);
    }
  }
}

/* A REL of bytes that the file does not have adds 0, whatever lies where they
 * would be: here the flags of section 0, which nothing reads. */
static void test_zeros(void **state) {
  (void)state;
  static struct fixture f;
  static unsigned char image[FIXTURE_MOST];
  struct cubin c;
  fixture_read(&f, "table_sm86");
  fixture_put(&f, SH(REL_INIT, sh_info), GLOBAL);
  fixture_put(&f, SH(0, sh_flags), 0x77777777);
  assert_int_equal(cubin_parse(f.bytes, f.n, &c), 0);
  assert_int_equal(cubin_lay(&c, ORACLE_BASE, image), 0);
  assert_int_equal(fixture_get(image + 0xb08, 8), ORACLE_BASE + 0x500);
  assert_int_equal(fixture_get(image + 0xb10, 8), ORACLE_BASE + 0x600);
}

/* A change, and what the kernel needs then. */
static const struct {
  const char *name;
  size_t at, n;
  uint64_t value;
  const char *kernel;
  uint32_t registers, stack_bytes, params_offset, params_bytes;
} kernels[] = {
    {"registers", INFO_AT + 0x5c, 4, 48, "choose", 48, 0, 0x160, 12},
    {"another's registers", INFO_AT + 0x5c, 4, 48, "shared", 24, 0, 0x160, 8},
    {"nobody's registers", INFO_AT + 0x58, 4, 17, "choose", 0, 0, 0x160, 12},
    {"a constant's registers", INFO_AT + 0x58, 4, 20, "choose", 0, 0, 0x160,
     12},
    {"the last of two", INFO_AT + 0x58, 4, 16, "shared", 24, 0, 0x160, 8},
    {"stack", INFO_AT + 0x74, 4, 512, "choose", 24, 512, 0x160, 12},
    {"a local symbol", INFO_AT + 0x70, 4, 7, "choose", 24, 0, 0x160, 12},
    {"by name", SYM(16, st_shndx), SHN_ABS, "shared", 24, 0, 0x160, 8},
    {"by another name", SYM(16, st_shndx), SHN_ABS, "choose", 24, 0, 0x160, 12},
    {"parameters", INFO_CHOOSE_AT + 0x3c, 4, 0x200210, "choose", 24, 0, 0x210,
     32},
    {"no SVAL", INFO_CHOOSE_AT + 0x34, 1, 3, "choose", 24, 0, 0, 0},
};

static void test_kernels(void **state) {
  (void)state;
  static struct fixture f;
  for (size_t i = 0; i < COUNT(kernels); i++) {
    struct cubin c;
    struct cubin_kernel k;
    fixture_read(&f, "table_sm86");
    fixture_put(&f, kernels[i].at, kernels[i].n, kernels[i].value);
    assert_int_equal(cubin_parse(f.bytes, f.n, &c), 0);
    assert_int_equal(cubin_kernel(&c, kernels[i].kernel, &k), 0);
    if (k.registers != kernels[i].registers ||
        k.stack_bytes != kernels[i].stack_bytes ||
        k.params_offset != kernels[i].params_offset ||
        k.params_bytes != kernels[i].params_bytes) {
      fail_msg("%s: %u registers, %u stack, parameters 0x%x %u",
               kernels[i].name, k.registers, k.stack_bytes, k.params_offset,
               k.params_bytes);
    }
  }
}

static void test_align(void **state) {
  (void)state;
  static struct fixture f;
  struct cubin c;
  fixture_read(&f, "table_sm86");
  fixture_put(&f, SH(TEXT_SHARED, sh_addralign), 4096);
  assert_int_equal(cubin_parse(f.bytes, f.n, &c), 0);
  assert_int_equal(c.align, 4096);
  assert_int_equal(cubin_lay(&c, 2048, f.bytes), -RIG_NV_INVALID);
  assert_string_equal(rig_nv_why(),
                      "cubin: address 0x800: not a multiple of 4096");
}

/* The SM version's place in the flags. */
static const struct {
  unsigned char abi;
  uint32_t flags, sm;
} versions[] = {
    {7, 0x00560556, 86},  {7, 0x005a055a, 90},  {8, 0x06005604, 86},
    {8, 0x06007802, 120}, {9, 0x06006402, 100},
};

static void test_versions(void **state) {
  (void)state;
  static struct fixture f;
  fixture_read(&f, "table_sm86");
  for (size_t i = 0; i < COUNT(versions); i++) {
    struct cubin c;
    fixture_put(&f, EI_ABIVERSION, 1, versions[i].abi);
    fixture_put(&f, EH(e_flags), versions[i].flags);
    assert_int_equal(cubin_parse(f.bytes, f.n, &c), 0);
    assert_int_equal(c.sm, versions[i].sm);
  }
}

/* A file cut anywhere: refused where its section headers are cut. */
static void test_cut(void **state) {
  (void)state;
  static struct fixture f;
  for (size_t i = 0; i < COUNT(oracle_images); i++) {
    fixture_read(&f, oracle_images[i].file);
    for (size_t n = 0; n <= f.n; n++) {
      const int r = fixture_use(&f, n);
      if ((r == 0) != (n >= oracle_images[i].headers_end)) {
        fail_msg("%s of %zu bytes: %d", oracle_images[i].file, n, r);
      }
    }
  }
}

/* Each byte inverted: whatever the answer, nothing outside the file is read,
 * which the sanitizers judge. */
static void test_inverted(void **state) {
  (void)state;
  static struct fixture f;
  fixture_read(&f, "table_sm86");
  for (size_t at = 0; at < f.n; at++) {
    f.bytes[at] ^= 0xff;
    fixture_use(&f, f.n);
    f.bytes[at] ^= 0xff;
  }
  assert_int_equal(fixture_use(&f, f.n), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_refused),  cmocka_unit_test(test_bank_8),
      cmocka_unit_test(test_accepted), cmocka_unit_test(test_versions),
      cmocka_unit_test(test_kernels),  cmocka_unit_test(test_align),
      cmocka_unit_test(test_zeros),    cmocka_unit_test(test_cut),
      cmocka_unit_test(test_inverted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
