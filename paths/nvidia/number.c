/* SPDX-License-Identifier: ISC */
/*
 * The numbers of GPUs: every path numbers a machine's NVIDIA GPUs in bus order
 * among its PCI functions, whichever driver holds each. Where the system shows
 * no such function, as in a container with no sysfs, the driver's own list of
 * its GPUs stands in.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/api/why.h"
#include "paths/nvidia/call.h"

#define FUNCTIONS "/sys/bus/pci/devices"

enum { MOST_GPUS = 256 };

/* Bus addresses as numbers that sort in bus order: domain, bus, device and
 * function. */
struct list {
  const struct nvidia_os *os;
  size_t n;
  uint64_t at[MOST_GPUS];
};

static uint64_t address(unsigned domain, unsigned bus, unsigned device,
                        unsigned function) {
  return (uint64_t)domain << 16 | bus << 8 | device << 3 | function;
}

static void write_bus(uint64_t at, char bus[NVIDIA_BUS]) {
  snprintf(bus, NVIDIA_BUS, "%04x:%02x:%02x.%x",
           (unsigned)(at >> 16 & UINT32_MAX), (unsigned)(at >> 8 & 0xff),
           (unsigned)(at >> 3 & 0x1f), (unsigned)(at & 7));
}

static void add(struct list *l, uint64_t at) {
  size_t i = l->n;
  if (l->n == MOST_GPUS)
    return;
  for (; i > 0 && l->at[i - 1] > at; i--)
    l->at[i] = l->at[i - 1];
  l->at[i] = at;
  l->n++;
}

/* The number in a file of a function's folder; all ones where it is none. */
static uint32_t attribute(const struct nvidia_os *os, const char *function,
                          const char *name) {
  char path[128], text[32], *end;
  snprintf(path, sizeof path, FUNCTIONS "/%.32s/%s", function, name);
  if (os->read(os->ctx, path, text, sizeof text) != 0)
    return UINT32_MAX;
  unsigned long x = strtoul(text, &end, 16);
  return end == text ? UINT32_MAX : (uint32_t)x;
}

static int each(void *arg, const char *name) {
  struct list *l = arg;
  unsigned domain, bus, device, function;
  char rest;
  if (sscanf(name, "%8x:%2x:%2x.%1x%c", &domain, &bus, &device, &function,
             &rest) == 4 &&
      rig_nv_is_gpu(attribute(l->os, name, "vendor"),
                    attribute(l->os, name, "class")))
    add(l, address(domain, bus, device, function));
  return 0;
}

size_t nvidia_gpus(const struct nvidia_os *os, char (*bus)[NVIDIA_BUS],
                   size_t most) {
  struct list l = {.os = os};
  (void)os->list(os->ctx, FUNCTIONS, each, &l);
  for (size_t i = 0; i < l.n && i < most; i++)
    write_bus(l.at[i], bus[i]);
  return l.n;
}

static uint64_t of_card(const struct nv_card *k) {
  return address(k->domain, k->bus, k->slot, k->function);
}

int nvk_number_find(const struct client *c, int index, struct gpu *g,
                    size_t *n) {
  struct rig_nv_reply reply;
  struct nv_card cards[NV_CARDS] = {{0}};
  struct list l = {.os = c->os};
  if (!nvk_call_escape(c, c->ctl, NV_ESC_CARD_INFO, cards, sizeof cards, NULL,
                       "list of cards", &reply))
    return nvk_open_error(&reply);
  (void)c->os->list(c->os->ctx, FUNCTIONS, each, &l); /* none: cards */
  for (size_t i = 0, shown = l.n; shown == 0 && i < NV_CARDS; i++)
    if (cards[i].valid)
      add(&l, of_card(&cards[i]));
  *n = l.n;
  if (index < 0 || (size_t)index >= l.n)
    return why(RIG_NV_ABSENT, "GPU %d: the machine has %zu NVIDIA GPUs", index,
               l.n);
  write_bus(l.at[index], g->bus);
  for (size_t i = 0; i < NV_CARDS; i++) {
    if (cards[i].valid && of_card(&cards[i]) == l.at[index]) {
      g->card = cards[i];
      return 0;
    }
  }
  return why(RIG_NV_ABSENT,
             "GPU %d at %s: NVIDIA's kernel driver does not "
             "have it",
             index, g->bus);
}
