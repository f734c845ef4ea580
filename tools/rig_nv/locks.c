/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/lock_order/lock_order.h"
#include "tools/rig_nv/tool.h"

/* run's arguments: its name, and at most one of each option below. */
struct settings {
  char *argv[8];
  int argc;
  bool dot;
};

static error_t option(int key, char *text, struct argp_state *state) {
  struct settings *s = state->input;
  static char submissions[64], threads[64];
  switch (key) {
  case 'n':
    snprintf(submissions, sizeof submissions, "--submissions=%s", text);
    s->argv[1] = submissions;
    return 0;
  case 't':
    snprintf(threads, sizeof threads, "--threads=%s", text);
    s->argv[2] = threads;
    return 0;
  case 'd':
    s->dot = true;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* What run says of itself is not asked for. */
static int run_silently(struct settings *s) {
  fflush(stdout);
  int out = dup(STDOUT_FILENO), none = open("/dev/null", O_WRONLY);
  if (out < 0 || none < 0 || dup2(none, STDOUT_FILENO) < 0)
    return tool_failed("/dev/null", strerror(errno));
  close(none);
  int status = tool_run(s->argc, s->argv);
  fflush(stdout);
  if (dup2(out, STDOUT_FILENO) < 0)
    return tool_failed("stdout", strerror(errno));
  close(out);
  return status;
}

static const char *rank(int rank, unsigned flags, char text[16]) {
  snprintf(text, 16, "%d", rank);
  return flags & RIG_NV_LOCK_CONTEXT    ? "context"
         : flags & RIG_NV_LOCK_UNRANKED ? "none"
                                        : text;
}

static void row_class(void *dot, const struct rig_nv_lock_edge *e) {
  char text[16];
  if (dot)
    printf("  \"%s\" [xlabel=\"%s\"];\n", e->to,
           rank(e->to_rank, e->to_flags, text));
  else
    printf("%-24s%s\n", e->to, rank(e->to_rank, e->to_flags, text));
}

static void row_edge(void *dot, const struct rig_nv_lock_edge *e) {
  if (dot)
    printf("  \"%s\" -> \"%s\"%s;\n", e->from, e->to,
           e->reported ? " [color=red]" : "");
  else
    printf("%-24s%-24s%s, %s%s\n", e->from, e->to, e->from_site, e->to_site,
           e->reported ? " WRONG" : "");
}

static void say(const char *text) { fprintf(stderr, "rig-nv: %s\n", text); }

static int print(bool dot) {
  struct rig_nv_lock_counts c;
  void *as_dot = dot ? &c : NULL;
  rig_nv_lock_count(&c);
  printf(dot ? "digraph locks {\n" : "%-24srank\n", "class");
  rig_nv_lock_each_class(row_class, as_dot);
  if (!dot)
    printf("\n%-24s%-24sfirst at\n", "held", "wanted");
  rig_nv_lock_each_edge(row_edge, as_dot);
  if (dot)
    puts("}");
  if (fflush(stdout) || ferror(stdout))
    return tool_failed("writing to stdout", strerror(errno));
  bool wrong = c.cycles + c.nested + c.misplaced + c.ended + c.refusals;
  return wrong ? TOOL_NOT_VERIFIED : TOOL_OK;
}

int tool_locks(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"submissions", 'n', "N", 0, "Of all threads (10000)", 0},
      {"threads", 't', "T", 0, "That submit (4)", 0},
      {"dot", 'd', NULL, 0, "As a graph for Graphviz", 0},
      {0}};
  static const struct argp argp = {
      options,
      option,
      "",
      "Runs what run does with the order of locks watched, and prints it: the "
      "classes of locks that were waited for, and for each pair of them where "
      "the one was first held and the other wanted.\v"
      "(blocks) and (allocates) are what was done with a lock held. Reports go "
      "to stderr. Exit status: 0; 1 where there was one, or as run's; 2 for "
      "wrong usage and for any error.",
      NULL,
      NULL,
      NULL};
  struct settings s = {.argv = {argv[0], "--submissions=10000", "--threads=4"},
                       .argc = 3};
  if (argp_parse(&argp, argc, argv, 0, NULL, &s))
    return TOOL_ERROR;
  (void)rig_nv_lock_on_report(say);
  (void)rig_nv_lock_watch(RIG_NV_WATCH_REPORT);
  int status = run_silently(&s);
  int printed = print(s.dot);
  return printed > status ? printed : status;
}
