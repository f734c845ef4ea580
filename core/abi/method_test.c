/* SPDX-License-Identifier: ISC */
/*
 * Each operation's words: as literal words, and as what they mean to every
 * class that the words are written for, decoded by the class headers' rows of
 * testdata/. Neither uses a number of method.h.
 *
 * The published headers of c86f, c96f and ca6f are cut down: a row that one
 * lacks is c76f's or, failing that, c56f's. That those values hold there too
 * is not something a header can show.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/abi/method.h"
#include "core/abi/tsv.h"

/* Operands, no two halves of which are alike. */
#define ADDR UINT64_C(0x12fedcba90)
#define DST UINT64_C(0x34a1b2c3d5)
#define SRC UINT64_C(0x56e4f50617)
#define QMD UINT64_C(0x789abcde00)
#define V UINT64_C(0x0123456789abcdef)

enum engine { HOST, COMPUTE, COPY };

static const char *const classes[][6] = {
    [HOST] = {"c56f", "c76f", "c86f", "c96f", "ca6f"},
    [COMPUTE] = {"c7c0", "c9c0", "cbc0", "cdc0", "cec0"},
    [COPY] = {"c7b5", "c8b5", "c9b5", "cab5"},
};

/* What a field must hold: an enumerant where it is named, else a number. */
struct field {
  const char *name, *enumerant;
  uint64_t number;
};

/* A method's argument. Bits of fields that are not named must be 0. */
struct argument {
  const char *method;
  struct field fields[10];
};

struct operation {
  const char *name;
  enum engine engine; /* whose class has the methods */
  unsigned subchannel;
  unsigned words; /* ABI_X_WORDS */
  unsigned (*encode)(uint32_t *w);
  uint32_t golden[RIG_NV_MOST_WORDS];
  struct argument means[10]; /* one more than any has */
};

#define ENCODE(name, call)                                                     \
  static unsigned name(uint32_t *w) { return call; }

ENCODE(object_compute, abi_set_object(w, RIG_NV_COMPUTE, 0xcbc0))
ENCODE(object_copy, abi_set_object(w, RIG_NV_COPY, 0xc8b5))
ENCODE(acquire, abi_acquire(w, ADDR, V))
ENCODE(release, abi_release(w, ADDR, V))
ENCODE(release_stamp, abi_release_stamp(w, ADDR, V))
ENCODE(interrupt, abi_interrupt(w))
ENCODE(shared_window, abi_shared_window(w, ADDR))
ENCODE(local_window, abi_local_window(w, ADDR))
ENCODE(local_memory, abi_local_memory(w, ADDR, DST))
ENCODE(invalidate_caches, abi_invalidate_caches(w))
ENCODE(wait_for_idle, abi_wait_for_idle(w))
ENCODE(schedule, abi_schedule(w, QMD))
ENCODE(copy, abi_copy(w, DST, SRC, 0x7fffffff))
ENCODE(copy_most, abi_copy(w, DST, SRC, 0x80000000))
ENCODE(box, abi_box(w, DST, SRC, 0xfffffff1, 0x8765, 0xfffffff2, 0x1234))
ENCODE(fill_1b, abi_fill(w, RIG_NV_1B, DST, 0xa1b2c3d4, 0x80000000))
ENCODE(fill_2b, abi_fill(w, RIG_NV_2B, DST, 0xa1b2c3d4, 0x40000000))
ENCODE(fill_4b, abi_fill(w, RIG_NV_4B, DST, 0xa1b2c3d4, 0x20000000))
ENCODE(copy_release, abi_copy_release(w, ADDR, V))
ENCODE(copy_release_stamp, abi_copy_release_stamp(w, ADDR, V))

#define ENUM(name, enumerant) {name, enumerant, 0}
#define HALF(method, field, n)                                                 \
  {                                                                            \
    method, {                                                                  \
      {                                                                        \
        field, NULL, n                                                         \
      }                                                                        \
    }                                                                          \
  }

#define SEM_OPERANDS                                                           \
  HALF("SEM_ADDR_LO", "OFFSET", 0xfedcba90 >> 2),                              \
      HALF("SEM_ADDR_HI", "OFFSET", 0x12),                                     \
      HALF("SEM_PAYLOAD_LO", "PAYLOAD", 0x89abcdef),                           \
      HALF("SEM_PAYLOAD_HI", "PAYLOAD", 0x01234567)
#define SEM_RELEASE                                                            \
  ENUM("OPERATION", "RELEASE"), ENUM("RELEASE_WFI", "EN"),                     \
      ENUM("PAYLOAD_SIZE", "64BIT")
#define COPY_SOURCE                                                            \
  HALF("OFFSET_IN_UPPER", "UPPER", 0x56),                                      \
      HALF("OFFSET_IN_LOWER", "VALUE", 0xe4f50617)
#define COPY_TARGET                                                            \
  HALF("OFFSET_OUT_UPPER", "UPPER", 0x34),                                     \
      HALF("OFFSET_OUT_LOWER", "VALUE", 0xa1b2c3d5)
#define LAUNCH(lines, remap)                                                   \
  {                                                                            \
    "LAUNCH_DMA", {                                                            \
      ENUM("DATA_TRANSFER_TYPE", "NON_PIPELINED"),                             \
          ENUM("SEMAPHORE_TYPE", "NONE"), ENUM("INTERRUPT_TYPE", "NONE"),      \
          ENUM("SRC_MEMORY_LAYOUT", "PITCH"),                                  \
          ENUM("DST_MEMORY_LAYOUT", "PITCH"),                                  \
          ENUM("MULTI_LINE_ENABLE", lines), ENUM("REMAP_ENABLE", remap),       \
          ENUM("SRC_TYPE", "VIRTUAL"), ENUM("DST_TYPE", "VIRTUAL")             \
    }                                                                          \
  }
#define CONSTANTS(size)                                                        \
  {                                                                            \
    "SET_REMAP_COMPONENTS", {                                                  \
      ENUM("DST_X", "CONST_A"), ENUM("DST_Y", "CONST_A"),                      \
          ENUM("DST_Z", "CONST_A"), ENUM("DST_W", "CONST_A"),                  \
          ENUM("COMPONENT_SIZE", size), ENUM("NUM_SRC_COMPONENTS", "ONE"),     \
          ENUM("NUM_DST_COMPONENTS", "ONE")                                    \
    }                                                                          \
  }
#define FILL(n, constant, size)                                                \
  {COPY_TARGET, HALF("LINE_LENGTH_IN", "VALUE", n),                            \
   HALF("SET_REMAP_CONST_A", "V", constant), CONSTANTS(size),                  \
   LAUNCH("FALSE", "TRUE")}
#define COPY_SEMAPHORE(type)                                                   \
  {                                                                            \
    HALF("SET_SEMAPHORE_A", "UPPER", 0x12),                                    \
        HALF("SET_SEMAPHORE_B", "LOWER", 0xfedcba90),                          \
        HALF("SET_SEMAPHORE_PAYLOAD", "PAYLOAD", 0x89abcdef),                  \
        HALF("SET_SEMAPHORE_PAYLOAD_UPPER", "PAYLOAD", 0x01234567), {          \
      "LAUNCH_DMA", {                                                          \
        ENUM("DATA_TRANSFER_TYPE", "NONE"), ENUM("FLUSH_ENABLE", "TRUE"),      \
            ENUM("FLUSH_TYPE", "SYS"), ENUM("SEMAPHORE_TYPE", type),           \
            ENUM("SEMAPHORE_PAYLOAD_SIZE", "TWO_WORD")                         \
      }                                                                        \
    }                                                                          \
  }

static const struct operation operations[] = {
    {"set_object compute",
     HOST,
     1,
     ABI_SET_OBJECT_WORDS,
     object_compute,
     {0x20012000, 0xcbc0},
     {HALF("SET_OBJECT", "NVCLASS", 0xcbc0)}},
    {"set_object copy",
     HOST,
     4,
     ABI_SET_OBJECT_WORDS,
     object_copy,
     {0x20018000, 0xc8b5},
     {HALF("SET_OBJECT", "NVCLASS", 0xc8b5)}},
    {"acquire",
     HOST,
     0,
     ABI_ACQUIRE_WORDS,
     acquire,
     {0x20050017, 0xfedcba90, 0x12, 0x89abcdef, 0x01234567, 0x01001003},
     {SEM_OPERANDS,
      {"SEM_EXECUTE",
       {ENUM("OPERATION", "ACQ_CIRC_GEQ"), ENUM("ACQUIRE_SWITCH_TSG", "EN"),
        ENUM("PAYLOAD_SIZE", "64BIT")}}}},
    {"release",
     HOST,
     0,
     ABI_RELEASE_WORDS,
     release,
     {0x20050017, 0xfedcba90, 0x12, 0x89abcdef, 0x01234567, 0x01100001},
     {SEM_OPERANDS, {"SEM_EXECUTE", {SEM_RELEASE}}}},
    {"release_stamp",
     HOST,
     0,
     ABI_RELEASE_STAMP_WORDS,
     release_stamp,
     {0x20050017, 0xfedcba90, 0x12, 0x89abcdef, 0x01234567, 0x03100001},
     {SEM_OPERANDS,
      {"SEM_EXECUTE", {SEM_RELEASE, ENUM("RELEASE_TIMESTAMP", "EN")}}}},
    {"interrupt",
     HOST,
     0,
     ABI_INTERRUPT_WORDS,
     interrupt,
     {0x20010008, 0},
     {HALF("NON_STALL_INTERRUPT", "HANDLE", 0)}},
    {"shared_window",
     COMPUTE,
     1,
     ABI_SHARED_WINDOW_WORDS,
     shared_window,
     {0x200220a8, 0x12, 0xfedcba90},
     {HALF("SET_SHADER_SHARED_MEMORY_WINDOW_A", "BASE_ADDRESS_UPPER", 0x12),
      HALF("SET_SHADER_SHARED_MEMORY_WINDOW_B", "BASE_ADDRESS", 0xfedcba90)}},
    {"local_window",
     COMPUTE,
     1,
     ABI_LOCAL_WINDOW_WORDS,
     local_window,
     {0x200221ec, 0x12, 0xfedcba90},
     {HALF("SET_SHADER_LOCAL_MEMORY_WINDOW_A", "BASE_ADDRESS_UPPER", 0x12),
      HALF("SET_SHADER_LOCAL_MEMORY_WINDOW_B", "BASE_ADDRESS", 0xfedcba90)}},
    {"local_memory",
     COMPUTE,
     1,
     ABI_LOCAL_MEMORY_WORDS,
     local_memory,
     {0x200221e4, 0x12, 0xfedcba90, 0x200320b9, 0x34, 0xa1b2c3d5, 0xff},
     {HALF("SET_SHADER_LOCAL_MEMORY_A", "ADDRESS_UPPER", 0x12),
      HALF("SET_SHADER_LOCAL_MEMORY_B", "ADDRESS_LOWER", 0xfedcba90),
      HALF("SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A", "SIZE_UPPER", 0x34),
      HALF("SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B", "SIZE_LOWER", 0xa1b2c3d5),
      HALF("SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C", "MAX_SM_COUNT", 0xff)}},
    {"invalidate_caches",
     COMPUTE,
     1,
     ABI_INVALIDATE_CACHES_WORDS,
     invalidate_caches,
     {0x200125a6, 0x00001011},
     {{"INVALIDATE_SHADER_CACHES_NO_WFI",
       {ENUM("INSTRUCTION", "TRUE"), ENUM("GLOBAL_DATA", "TRUE"),
        ENUM("CONSTANT", "TRUE")}}}},
    {"wait_for_idle",
     COMPUTE,
     1,
     ABI_WAIT_FOR_IDLE_WORDS,
     wait_for_idle,
     {0x20012044, 0},
     {HALF("WAIT_FOR_IDLE", "V", 0)}},
    {"schedule",
     COMPUTE,
     1,
     ABI_SCHEDULE_WORDS,
     schedule,
     {0x200120ad, 0x789abcde, 0x200120b0, 9},
     {HALF("SEND_PCAS_A", "QMD_ADDRESS_SHIFTED8", 0x789abcde),
      {"SEND_SIGNALING_PCAS2_B", {ENUM("PCAS_ACTION", "PREFETCH_SCHEDULE")}}}},
    {"copy",
     COPY,
     4,
     ABI_COPY_WORDS,
     copy,
     {0x20048100, 0x56, 0xe4f50617, 0x34, 0xa1b2c3d5, 0x20018106, 0x7fffffff,
      0x200180c0, 0x00000182},
     {COPY_SOURCE, COPY_TARGET, HALF("LINE_LENGTH_IN", "VALUE", 0x7fffffff),
      LAUNCH("FALSE", "FALSE")}},
    {"copy, the most",
     COPY,
     4,
     ABI_COPY_WORDS,
     copy_most,
     {0x20048100, 0x56, 0xe4f50617, 0x34, 0xa1b2c3d5, 0x20018106, 0x80000000,
      0x200180c0, 0x00000182},
     {COPY_SOURCE, COPY_TARGET, HALF("LINE_LENGTH_IN", "VALUE", 0x80000000),
      LAUNCH("FALSE", "FALSE")}},
    {"box",
     COPY,
     4,
     ABI_BOX_WORDS,
     box,
     {0x20088100, 0x56, 0xe4f50617, 0x34, 0xa1b2c3d5, 0x8765, 0xfffffff1,
      0x1234, 0xfffffff2, 0x200180c0, 0x00000382},
     {COPY_SOURCE, COPY_TARGET, HALF("PITCH_IN", "VALUE", 0x8765),
      HALF("PITCH_OUT", "VALUE", 0xfffffff1),
      HALF("LINE_LENGTH_IN", "VALUE", 0x1234),
      HALF("LINE_COUNT", "VALUE", 0xfffffff2), LAUNCH("TRUE", "FALSE")}},
    {"fill 1",
     COPY,
     4,
     ABI_FILL_WORDS,
     fill_1b,
     {0x20028102, 0x34, 0xa1b2c3d5, 0x20018106, 0x80000000, 0x200181c0, 0xd4,
      0x200181c2, 0x00004444, 0x200180c0, 0x00000582},
     FILL(0x80000000, 0xd4, "ONE")},
    {"fill 2",
     COPY,
     4,
     ABI_FILL_WORDS,
     fill_2b,
     {0x20028102, 0x34, 0xa1b2c3d5, 0x20018106, 0x40000000, 0x200181c0, 0xc3d4,
      0x200181c2, 0x00014444, 0x200180c0, 0x00000582},
     FILL(0x40000000, 0xc3d4, "TWO")},
    {"fill 4",
     COPY,
     4,
     ABI_FILL_WORDS,
     fill_4b,
     {0x20028102, 0x34, 0xa1b2c3d5, 0x20018106, 0x20000000, 0x200181c0,
      0xa1b2c3d4, 0x200181c2, 0x00034444, 0x200180c0, 0x00000582},
     FILL(0x20000000, 0xa1b2c3d4, "FOUR")},
    {"copy_release",
     COPY,
     4,
     ABI_COPY_RELEASE_WORDS,
     copy_release,
     {0x20048090, 0x12, 0xfedcba90, 0x89abcdef, 0x01234567, 0x200180c0,
      0x0800000c},
     COPY_SEMAPHORE("RELEASE_ONE_WORD_SEMAPHORE")},
    {"copy_release_stamp",
     COPY,
     4,
     ABI_COPY_RELEASE_STAMP_WORDS,
     copy_release_stamp,
     {0x20048090, 0x12, 0xfedcba90, 0x89abcdef, 0x01234567, 0x200180c0,
      0x08000014},
     COPY_SEMAPHORE("RELEASE_FOUR_WORD_SEMAPHORE")},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static struct tsv methods, formats;

static int read_tables(void **state) {
  (void)state;
  tsv_read(&methods, "methods.tsv");
  tsv_read(&formats, "gpfifo.tsv");
  return 0;
}

/* Only cut-down host headers fall back. */
static const char *look(const char *cls, const char *kind, const char *method,
                        const char *field, const char *enumerant) {
  const bool cut =
      !strcmp(cls, "c86f") || !strcmp(cls, "c96f") || !strcmp(cls, "ca6f");
  const char *sources[] = {cls, cut ? "c76f" : cls, cut ? "c56f" : cls};
  for (size_t i = 0; i < 3; i++) {
    const char *key[] = {sources[i], kind, method, field, enumerant};
    const char *const *row = tsv_find(&methods, key, 5);
    if (row != NULL)
      return row[5];
  }
  fail_msg("%s has no %s %s %s %s", cls, kind, method, field, enumerant);
  return NULL;
}

static uint32_t meaning(const char *cls, const struct argument *a) {
  uint64_t word = 0;
  for (const struct field *f = a->fields; f->name != NULL; f++) {
    const struct tsv_bits at =
        tsv_bits(look(cls, "field", a->method, f->name, ""));
    const uint64_t x =
        f->enumerant == NULL
            ? f->number
            : tsv_number(look(cls, "enum", a->method, f->name, f->enumerant));
    if (x > tsv_mask(at)) {
      fail_msg("%s: 0x%llx does not fit %s %s", cls, (unsigned long long)x,
               a->method, f->name);
    }
    word |= x << at.lsb;
  }
  return (uint32_t)word;
}

/* A field of a header word, by the rows of c56f's DMA_INCR. */
static uint32_t header(uint32_t word, const char *name) {
  const char *key[] = {"c56f", name, "bits"};
  const char *const *row = tsv_find(&formats, key, 3);
  if (row == NULL)
    fail_msg("no header field %s", name);
  const struct tsv_bits at = tsv_bits(row[3]);
  return (uint32_t)(word >> at.lsb & tsv_mask(at));
}

static void check_meaning(const struct operation *o, const char *cls) {
  uint32_t w[RIG_NV_MOST_WORDS];
  const unsigned n = o->encode(w);
  const struct argument *a = o->means;
  for (unsigned i = 0; i < n;) {
    const uint32_t head = w[i++];
    const unsigned count = header(head, "DMA_INCR_COUNT");
    uint64_t method = header(head, "DMA_INCR_ADDRESS") * UINT64_C(4);
    assert_int_equal(header(head, "DMA_INCR_OPCODE"), 1);
    assert_int_equal(header(head, "DMA_INCR_SUBCHANNEL"), o->subchannel);
    assert_in_range(count, 1, n - i);
    for (unsigned k = 0; k < count; k++, i++, a++, method += 4) {
      if (a->method == NULL)
        fail_msg("%s: word %u is one more", o->name, i);
      const uint64_t at = tsv_number(look(cls, "method", a->method, "", ""));
      const uint32_t is = meaning(cls, a);
      if (at != method || is != w[i]) {
        fail_msg("%s on %s: word %u is 0x%x for method 0x%llx, not 0x%x for %s "
                 "(0x%llx)",
                 o->name, cls, i, w[i], (unsigned long long)method, is,
                 a->method, (unsigned long long)at);
      }
    }
  }
  if (a->method != NULL)
    fail_msg("%s lacks %s", o->name, a->method);
}

static void test_means(void **state) {
  (void)state;
  for (size_t i = 0; i < OPERATIONS; i++) {
    const struct operation *o = &operations[i];
    for (const char *const *cls = classes[o->engine]; *cls; cls++) {
      check_meaning(o, *cls);
    }
  }
}

static void test_golden(void **state) {
  (void)state;
  for (size_t i = 0; i < OPERATIONS; i++) {
    const struct operation *o = &operations[i];
    uint32_t w[RIG_NV_MOST_WORDS];
    memset(w, 0xee, sizeof w);
    const unsigned n = o->encode(w);
    if (n != o->words || n > RIG_NV_MOST_WORDS) {
      fail_msg("%s: %u words, ABI_X_WORDS %u", o->name, n, o->words);
    }
    for (unsigned k = 0; k < RIG_NV_MOST_WORDS; k++) {
      const uint32_t is = k < n ? o->golden[k] : 0xeeeeeeee;
      if (w[k] != is) {
        fail_msg("%s: word %u is 0x%08x, not 0x%08x", o->name, k, w[k], is);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_golden),
      cmocka_unit_test(test_means),
  };
  return cmocka_run_group_tests(tests, read_tables, NULL);
}
