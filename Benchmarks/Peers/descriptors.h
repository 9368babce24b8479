// SPDX-License-Identifier: Apache-2.0

// W9 and W11: descriptors. Included by workloads.h.

#include <unistd.h>

// W9. A thousand pairs, of which a hundred are active: an event reads a byte and writes the next pair's. Measured in
// processor time, as nothing waits.
enum { PAIRS = 1000, ACTIVE = 100 };

static struct {
  struct loop *loop;
  int *pairs;
  struct watch *watches;
  int64_t to_write, to_read;
} w9_state;

static void w9_write(int pair) {
  w9_state.to_write--;
  race_check(write(w9_state.pairs[2 * pair + 1], "e", 1) == 1, "a byte did not fit");
}

static void w9_ready(struct watch *watch) {
  int pair = (int)(watch - w9_state.watches);
#ifndef WATCH_HAS_READ
  char byte;
  race_check(read(w9_state.pairs[2 * pair], &byte, 1) == 1, "a descriptor was not ready");
#endif
  if (w9_state.to_write > 0) w9_write((pair + 1) % PAIRS);
  if (--w9_state.to_read == 0) loop_quit(w9_state.loop);
}

static void w9_begin(void *context) {
  (void)context;
  for (int i = 0; i < ACTIVE; i++) w9_write(i * (PAIRS / ACTIVE));
}

static int64_t w9_round(int64_t count) {
  w9_state.to_write = w9_state.to_read = count;
  int64_t before = race_cpu();
  loop_post(w9_state.loop, w9_begin, NULL);
  loop_run(w9_state.loop);
  return race_cpu() - before;
}

static void w9(void) {
  struct loop *loop = (struct loop *)calloc(1, sizeof *loop);
  loop_make(loop);
  w9_state.loop = loop;
  w9_state.pairs = race_socket_pairs(PAIRS);
  w9_state.watches = (struct watch *)calloc(PAIRS, sizeof(struct watch));
  for (int i = 0; i < PAIRS; i++) watch_start(loop, &w9_state.watches[i], w9_state.pairs[2 * i], w9_ready);
  int64_t count = race_scaled(EVENTS, 1000);
  w9_round(count / 20);
  race_report("event", (double)w9_round(count) / (double)count, "ns");
}

#ifndef OWN_ECHO
static struct {
  struct loop *loop;
  const int *connections;
  struct watch watches[RACE_MOST_CONNECTIONS];
} echo_state;

static void echo_ready(struct watch *watch) {
  if (race_echo_serve(echo_state.connections[watch - echo_state.watches])) return;
  watch_stop(watch);
  if (race_echo_closed()) loop_quit(echo_state.loop);
}

static void echo_start(struct loop *loop, const int *connections) {
  echo_state.loop = loop;
  echo_state.connections = connections;
  for (int i = 0; i < race_connections(); i++) watch_start(loop, &echo_state.watches[i], connections[i], echo_ready);
}
#endif

static void w11(void) {
  struct loop *loop = (struct loop *)calloc(1, sizeof *loop);
  loop_make(loop);
  echo_start(loop, race_echo_begin());
  race_echo_go();
  loop_run(loop);
  race_echo_report();
}
