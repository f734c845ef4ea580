/* SPDX-License-Identifier: ISC */
#include "paths/path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MOST 1023 /* characters of a reply's text */

static uint8_t bytes[16];

static void fill(void) {
  for (size_t i = 0; i < sizeof bytes; i++)
    bytes[i] = (uint8_t)(0xf0 + i);
}

struct field {
  const char *name;
  size_t len, at, n;
  bool null;
  uint64_t x;      /* of a success */
  const char *why; /* of a refusal */
};

static const struct field fields[] = {
    {"byte", 16, 0, 1, false, 0xf0, NULL},
    {"last byte", 16, 15, 1, false, 0xff, NULL},
    {"2", 16, 2, 2, false, 0xf3f2, NULL},
    {"4", 16, 4, 4, false, 0xf7f6f5f4, NULL},
    {"8", 16, 8, 8, false, 0xfffefdfcfbfaf9f8, NULL},
    {"8, misaligned", 16, 3, 8, false, 0xfaf9f8f7f6f5f4f3, NULL},
    {"the whole", 4, 0, 4, false, 0xf3f2f1f0, NULL},
    {"n 0", 16, 0, 0, false, 0, "a field of 0 bytes: 1, 2, 4 or 8"},
    {"n 3", 16, 0, 3, false, 0, "a field of 3 bytes: 1, 2, 4 or 8"},
    {"n 16", 16, 0, 16, false, 0, "a field of 16 bytes: 1, 2, 4 or 8"},
    {"n of 2^64 - 1", 16, 0, SIZE_MAX, false, 0,
     "a field of 18446744073709551615 bytes: 1, 2, 4 or 8"},
    {"one past the end", 16, 16, 1, false, 0,
     "the field of 1 bytes at byte 16 ends past the 16 bytes"},
    {"half past the end", 16, 13, 4, false, 0,
     "the field of 4 bytes at byte 13 ends past the 16 bytes"},
    {"far past the end", 16, 400, 4, false, 0,
     "the field of 4 bytes at byte 400 ends past the 16 bytes"},
    {"at + n is 0", 16, SIZE_MAX - 7, 8, false, 0,
     "the field of 8 bytes at byte 18446744073709551608 ends past the 16 "
     "bytes"},
    {"at + n is 7", 16, SIZE_MAX, 8, false, 0,
     "the field of 8 bytes at byte 18446744073709551615 ends past the 16 "
     "bytes"},
    {"of nothing", 0, 0, 1, false, 0,
     "the field of 1 bytes at byte 0 ends past the 0 bytes"},
    {"of nothing at NULL", 0, 0, 4, true, 0,
     "the field of 4 bytes at byte 0 ends past the 0 bytes"},
    {"NULL", 16, 0, 4, true, 0, "no parameters: NULL"},
};

static void check_reason(const struct field *t, int r) {
  if (r != (t->why ? -RIG_NV_INVALID : 0))
    fail_msg("%s: %d", t->name, r);
  if (t->why && strcmp(rig_nv_why(), t->why))
    fail_msg("%s: %s", t->name, rig_nv_why());
}

static void gets(void **state) {
  (void)state;
  fill();
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    const struct field *t = &fields[i];
    uint64_t x = 0x5555;
    check_reason(
        t, rig_nv_params_get(t->null ? NULL : bytes, t->len, t->at, t->n, &x));
    if (x != (t->why ? 0x5555 : t->x))
      fail_msg("%s: %llx", t->name, (unsigned long long)x);
  }
}

/* Sets a value with more bits than the field and looks at every byte. */
static void sets(void **state) {
  (void)state;
  const uint64_t x = 0x8877665544332211;
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    const struct field *t = &fields[i];
    fill();
    check_reason(
        t, rig_nv_params_set(t->null ? NULL : bytes, t->len, t->at, t->n, x));
    for (size_t b = 0; b < sizeof bytes; b++) {
      bool in = !t->why && b >= t->at && b < t->at + t->n;
      uint8_t want = (uint8_t)(in ? 0x11 * (b - t->at + 1) : 0xf0 + b);
      if (bytes[b] != want)
        fail_msg("%s: byte %zu is %x", t->name, b, bytes[b]);
    }
  }
}

static void replies(void **state) {
  (void)state;
  static const struct {
    const char *name;
    enum rig_nv_answer is;
    int told, kept;
    bool ok, cut;
  } t[] = {
      {"success", RIG_NV_OK, 0, 0, true, false},
      {"lacking", RIG_NV_LACKING, 12, 12, false, false},
      {"denied", RIG_NV_DENIED, 1, 1, false, false},
      {"the longest", RIG_NV_FAULTED, MOST, MOST, false, false},
      {"one too long", RIG_NV_FAULTED, MOST + 1, MOST, false, true},
      {"far too long", RIG_NV_WRONG, 4 * MOST, MOST, false, true},
      {"short after long", RIG_NV_WRONG, 2, 2, false, false},
  };
  struct rig_nv_reply reply;
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    char text[4 * MOST + 1];
    memset(text, 'x', sizeof text);
    text[t[i].told] = '\0';
    bool ok = rig_nv_reply_set(&reply, t[i].is, "%s", text);
    int n = (int)strlen(reply.text);
    bool cut = n > 3 && !strcmp(reply.text + n - 3, "...");
    if (ok != t[i].ok || reply.is != t[i].is || n != t[i].kept ||
        cut != t[i].cut || (int)strspn(reply.text, "x") != n - 3 * cut)
      fail_msg("%s: %d, %d characters, cut %d", t[i].name, ok, n, cut);
  }
}

static void replies_with_its_own_text(void **state) {
  (void)state;
  struct rig_nv_reply reply;
  rig_nv_reply_set(&reply, RIG_NV_LACKING, "no handle");
  assert_false(rig_nv_reply_set(&reply, RIG_NV_DENIED, "RM_ALLOC: %s (%d)",
                                reply.text, 7));
  assert_string_equal(reply.text, "RM_ALLOC: no handle (7)");
}

struct closed {
  int times, answer;
};

static int count_close(void *ctx) {
  struct closed *c = ctx;
  c->times++;
  return c->answer;
}

static void closes(void **state) {
  (void)state;
  static const int answers[] = {0, -RIG_NV_INVALID};
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    struct closed c = {0, answers[i]};
    const struct rig_nv_path path = {
        .size = sizeof path, .ctx = &c, .close = count_close};
    assert_int_equal(rig_nv_path_close(&path), answers[i]);
    assert_int_equal(c.times, 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gets),    cmocka_unit_test(sets),
      cmocka_unit_test(replies), cmocka_unit_test(replies_with_its_own_text),
      cmocka_unit_test(closes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
