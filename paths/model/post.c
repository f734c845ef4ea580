/* SPDX-License-Identifier: ISC */
/*
 * Posted writes: a model's Mapped memory as its host stores it and as its GPU
 * sees it, and the page of the flush word between them.
 *
 *   page      read, by a trap              a look after GP_PUT or a word
 *   closed --------------------> open    --------------------------> closed
 *                                          close, then move
 *
 * The trap moves nothing, so that a signal handler has little to do; and while
 * the page is open, further reads of the word are not seen. A thread that read
 * it then stores GP_PUT, or a word that the GPU acquires. `open` was stored
 * before the page opened, so an engine that loads that GP_PUT or word and then
 * `open` finds it set, or cleared by an engine that moved after it closed the
 * page: either way the thread's stores have moved before the engine goes on.
 *
 * A byte has moved once both views are equal. What the GPU writes goes to both
 * with `held` taken, so that no move takes the host's older byte for a store.
 */
#include <ck_pr.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "core/api/why.h"
#include "paths/model/state.h"

/* Static, so that a handler may look at any of them at any time. */
struct model_post {
  unsigned used; /* 1 taken, 2 its page is there (release) */
  unsigned held;
  unsigned open;
  char *page;
  struct model_span *spans; /* by `posted`, with held taken */
};

enum { POSTS = 16 };
static struct model_post posts[POSTS];

void model_post_hold(struct model_post *p) {
  while (p && ck_pr_fas_uint(&p->held, 1))
    sched_yield();
  ck_pr_fence_acquire(); /* pairs with go */
}

void model_post_go(struct model_post *p) {
  ck_pr_fence_release(); /* pairs with hold */
  if (p)
    ck_pr_store_uint(&p->held, 0);
}

static void move(struct model_post *p) {
  for (struct model_span *s = p->spans; s; s = s->posted)
    for (uint64_t at = 0; at < s->mapped; at += MODEL_PAGE) {
      if (!memcmp(s->host + at, s->gpu + at, MODEL_PAGE))
        continue;
      uint64_t *host = (uint64_t *)(void *)(s->host + at);
      uint64_t *gpu = (uint64_t *)(void *)(s->gpu + at);
      for (size_t i = 0; i < MODEL_PAGE / sizeof *host; i++) {
        uint64_t x = ck_pr_load_64(host + i);
        if (x != ck_pr_load_64(gpu + i))
          ck_pr_store_64(gpu + i, x);
      }
    }
}

void model_post_move(struct model_post *p) {
  model_post_hold(p);
  move(p);
  model_post_go(p);
}

static void close_page(struct model_post *p) {
  model_post_hold(p);
  if (ck_pr_load_uint(&p->open)) {
    bool closed = !mprotect(p->page, MODEL_PAGE, PROT_NONE);
    move(p);
    /* Release: an engine that sees it closed sees what moved. */
    ck_pr_fence_release();
    if (closed)
      ck_pr_store_uint(&p->open, 0);
  }
  model_post_go(p);
}

void model_post_settle(void) {
  for (struct model_post *p = posts; p < posts + POSTS; p++)
    if (ck_pr_load_uint(&p->open))
      close_page(p);
  ck_pr_fence_acquire(); /* pairs with close_page */
}

/* A trap of the flush word: whether it may be read now. The engines that hold
 * the post never trap, so the wait for it in a handler ends. */
static bool trapped(struct model_post *p) {
  bool opened = true;
  model_post_hold(p);
  if (!ck_pr_load_uint(&p->open)) {
    ck_pr_store_uint(&p->open, 1);
    ck_pr_fence_memory(); /* before a read: pairs with model_post_settle */
    opened = !mprotect(p->page, MODEL_PAGE, PROT_READ | PROT_WRITE);
  }
  model_post_go(p);
  return opened;
}

static struct model_post *post_at(const char *at) {
  for (struct model_post *p = posts; p < posts + POSTS; p++)
    if (ck_pr_load_uint(&p->used) == 2 && at >= p->page &&
        at < p->page + MODEL_PAGE)
      return p;
  return NULL;
}

static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction former;
/* A former handler that passes the signal on to this one. */
static _Thread_local bool passing;

/* The former handler's, or the process's end at the access's next try. */
static void pass_on(int sig, siginfo_t *info, void *context) {
  const bool none =
      !(former.sa_flags & SA_SIGINFO) &&
      (former.sa_handler == SIG_DFL || former.sa_handler == SIG_IGN);
  if (none || passing) {
    const struct sigaction end = {.sa_handler = SIG_DFL};
    (void)!sigaction(sig, &end, NULL);
    return;
  }
  passing = true;
  if (former.sa_flags & SA_SIGINFO)
    former.sa_sigaction(sig, info, context);
  else
    former.sa_handler(sig);
  passing = false;
}

static void handle(int sig, siginfo_t *info, void *context) {
  int e = errno;
  struct model_post *p = post_at(info->si_addr);
  if (!p || !trapped(p))
    pass_on(sig, info, context);
  errno = e;
}

/* Once, and anew where somebody replaced it. */
static bool install(void) {
  struct sigaction now,
      own = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigemptyset(&own.sa_mask);
  bool ok = !sigaction(SIGSEGV, NULL, &now);
  if (ok && (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != handle)) {
    former = now;
    ok = !sigaction(SIGSEGV, &own, NULL);
  }
  return ok;
}

static struct model_post *take(void) {
  for (struct model_post *p = posts; p < posts + POSTS; p++)
    if (ck_pr_cas_uint(&p->used, 0, 1))
      return p;
  return NULL;
}

int model_post_new(struct model_post **out) {
  pthread_mutex_lock(&installing);
  bool ok = install();
  pthread_mutex_unlock(&installing);
  if (!ok)
    return why(RIG_NV_REFUSED, "no handler of SIGSEGV: %s", strerror(errno));
  struct model_post *p = take();
  if (!p)
    return why(RIG_NV_INVALID, "more than %d models post writes", POSTS);
  p->spans = NULL;
  p->page =
      mmap(NULL, MODEL_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p->page == MAP_FAILED) {
    ck_pr_store_uint(&p->used, 0);
    return why(RIG_NV_HOST_MEMORY, "the flush word's page");
  }
  ck_pr_fence_release(); /* pairs with post_at, which a read of it brings */
  ck_pr_store_uint(&p->used, 2);
  *out = p;
  return 0;
}

void model_post_free(struct model_post *p) {
  if (!p)
    return;
  /* Held, so that no engine closes a page that is gone. */
  model_post_hold(p);
  ck_pr_store_uint(&p->open, 0);
  munmap(p->page, MODEL_PAGE);
  model_post_go(p);
  ck_pr_fence_release(); /* the end, before the slot's next taker */
  ck_pr_store_uint(&p->used, 0);
}

volatile uint32_t *model_post_word(struct model_post *p) {
  return (volatile uint32_t *)(void *)p->page;
}

void model_post_add(struct model_post *p, struct model_span *s) {
  model_post_hold(p);
  s->post = p;
  s->posted = p->spans;
  p->spans = s;
  model_post_go(p);
}

void model_post_remove(struct model_post *p, struct model_span *s) {
  model_post_hold(p);
  struct model_span **at = &p->spans;
  while (*at != s)
    at = &(*at)->posted;
  *at = s->posted;
  model_post_go(p);
}
