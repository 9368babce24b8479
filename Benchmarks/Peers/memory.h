// SPDX-License-Identifier: Apache-2.0

// W12: memory, and the list of workloads. Included by workloads.h.

static void w12(void) {
  enum { LOOPS = 200 };
  struct loop *loop = (struct loop *)calloc(1, sizeof *loop);
  loop_make(loop);
  int64_t live = race_sized(100000);
  uint64_t random = RACE_SEED;
  int64_t before = race_heap();
  live_timers(loop, live, &random);
  race_report("bytes per timer", (double)(race_heap() - before) / (double)live, "B");
#ifdef ONLY_TIMERS
  return;
#endif

  loop_start();
  race_settle();
  int64_t resident = race_resident(), heap = race_heap();
  int descriptors = race_descriptors();
  for (int i = 0; i < LOOPS; i++) loop_start();
  race_settle();
  race_report("bytes in memory per idle loop and its thread", (double)(race_resident() - resident) / LOOPS, "B");
  race_report("bytes of heap per idle loop", (double)(race_heap() - heap) / LOOPS, "B");
  race_report("descriptors per loop", (double)(race_descriptors() - descriptors) / LOOPS, "");
}

int main(int argc, char **argv) {
#ifdef ONLY_TIMERS
  static const char *const names[] = {"W5", "W6", "W7", "W12"};
  static void (*const workloads[])(void) = {w5, w6, w7, w12};
#else
  static const char *const names[] = {"W1", "W2", "W3", "W4", "W5", "W6", "W7", "W8", "W9", "W10", "W11", "W12", "L1", "L2"};
  static void (*const workloads[])(void) = {w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, l1, l2};
#endif
  race_begin(argc, argv, PEER);
  race_run(names, workloads, (int)(sizeof names / sizeof *names));
  return 0;
}
