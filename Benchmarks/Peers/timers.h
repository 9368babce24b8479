// SPDX-License-Identifier: Apache-2.0

// W5, W6, W7, W10: timers. Included by workloads.h.

#ifndef LOOP_DRAIN
#define LOOP_DRAIN(loop) ((void)(loop))
#endif

// W5. Created on the loop's thread, as the libraries require; the dates are random within two seconds.
static struct {
  struct loop *loop;
  struct timer *timers;
  int64_t count, left, span, last_date, begin, created, ended;
} w5_state;

static void w5_fire(struct timer *timer) {
  (void)timer;
  if (--w5_state.left > 0) return;
  w5_state.ended = race_now();
  loop_quit(w5_state.loop);
}

static void w5_create(void *context) {
  (void)context;
  uint64_t random = RACE_SEED;
  w5_state.begin = race_now();
  for (int64_t i = 0; i < w5_state.count; i++) {
    int64_t delay = (int64_t)(race_random(&random) % (uint64_t)w5_state.span);
    if (delay > w5_state.last_date) w5_state.last_date = delay;
    timer_init(w5_state.loop, &w5_state.timers[i], w5_fire);
    timer_start(&w5_state.timers[i], delay);
  }
  w5_state.created = race_now();
}

// The client's own work for each timer, without the loop.
static double w5_client(void) {
  uint64_t random = RACE_SEED;
  int64_t cpu = race_cpu();
  for (int64_t i = 0; i < w5_state.count; i++) {
    int64_t delay = (int64_t)(race_random(&random) % (uint64_t)w5_state.span);
    if (delay > w5_state.last_date) w5_state.last_date = delay;
    race_use(w5_state.timers, delay, 0);
  }
  return (double)(race_cpu() - cpu) / (double)w5_state.count;
}

static void w5(void) {
  struct loop *loop = (struct loop *)calloc(1, sizeof *loop);
  w5_state.loop = loop;
  w5_state.count = w5_state.left = race_scaled(ONE_SHOTS, 1000);
  w5_state.span = race_scaled(2000000000, 20000000);
  w5_state.timers = (struct timer *)calloc((size_t)w5_state.count, sizeof(struct timer));
  int64_t cpu = race_cpu();
  loop_make(loop);
  loop_post(loop, w5_create, NULL);
  loop_run(loop);
  double each_timer = (double)(race_cpu() - cpu) / (double)w5_state.count;
  race_report("processor time per timer", each_timer, "ns");
  race_report("processor time per timer, net", each_timer - w5_client(), "ns");
  race_report("creation", (double)(w5_state.created - w5_state.begin) / (double)w5_state.count, "ns");
  race_report("the last is late", (double)(w5_state.ended - w5_state.begin - w5_state.last_date) / 1e6, "ms");
}

// W6 and W7 run on the loop's thread, outside of a run, for enough operations or 0.3 seconds.
static void never(struct timer *timer) {
  (void)timer;
  race_check(false, "a timer has fired long before its date");
}

// Returns a date between one and two minutes ahead.
static int64_t far(uint64_t *random) { return 60000000000 + (int64_t)(race_random(random) % 60000000000u); }

static struct timer *live_timers(struct loop *loop, int64_t count, uint64_t *random) {
  struct timer *timers = (struct timer *)calloc((size_t)count, sizeof(struct timer));
  for (int64_t i = 0; i < count; i++) {
    timer_init(loop, &timers[i], never);
    timer_start(&timers[i], far(random));
  }
  LOOP_DRAIN(loop);
  return timers;
}

// Nothing waits in these, so they are measured in processor time, on which other processes have less influence.
struct stopwatch {
  int64_t before, cpu_before, done;
};

static struct stopwatch stopwatch(void) {
  struct stopwatch watch = {race_now(), race_cpu(), 0};
  return watch;
}

// Counts a thousand operations; returns true when that is enough.
static bool enough(struct stopwatch *watch, int64_t count) {
  watch->done += 1000;
  return watch->done >= count || race_now() - watch->before > race_scaled(300000000, 10000000);
}

static double each(const struct stopwatch *watch) {
  return (double)(race_cpu() - watch->cpu_before) / (double)watch->done;
}

// Reports the cost of operations, and the cost minus the client's part, measured with the same loop without the
// operation. Less than a nanosecond is indistinguishable from nothing.
#define TIMED(metric, count, client, operation)                  \
  do {                                                           \
    struct stopwatch watch = stopwatch();                        \
    do {                                                         \
      for (int i = 0; i < 1000; i++) operation;                  \
      LOOP_DRAIN(loop);                                          \
    } while (!enough(&watch, count));                            \
    double gross = each(&watch);                                 \
    watch = stopwatch();                                         \
    do {                                                         \
      for (int i = 0; i < 1000; i++) client;                     \
    } while (!enough(&watch, count));                            \
    race_report(metric, gross, "ns");                            \
    double net = gross - each(&watch);                           \
    if (net >= 1) race_report(metric ", net", net, "ns");        \
  } while (false)

static void w6(void) {
  struct loop *loop = (struct loop *)calloc(1, sizeof *loop);
  loop_make(loop);
  uint64_t random = RACE_SEED;
  int64_t live = race_sized(100000), count = race_scaled(1000000, 1000);
  struct timer *timers = live_timers(loop, live, &random);
  TIMED(
      "cancel a random one and add one", count, race_use(&timers[race_random(&random) % (uint64_t)live], far(&random), 0),
      {
        struct timer *timer = &timers[race_random(&random) % (uint64_t)live];
        timer_cancel(timer);
        timer_start(timer, far(&random));
      });

  struct timer *extra = (struct timer *)calloc(1, sizeof *extra);
  timer_init(loop, extra, never);
  TIMED("add one and cancel it", count, race_use(extra, far(&random), 0), {
    timer_start(extra, far(&random));
    timer_cancel(extra);
  });

#ifdef TIMER_FREE
  // The same with a new object each time, as in a program that creates a timer for each request.
  struct timer **objects = (struct timer **)calloc((size_t)live, sizeof *objects);
  for (int64_t i = 0; i < live; i++) {
    timer_cancel(&timers[i]);
    objects[i] = (struct timer *)calloc(1, sizeof(struct timer));
    timer_init(loop, objects[i], never);
    timer_start(objects[i], far(&random));
  }
  struct stopwatch watch = stopwatch();
  do {
    for (int i = 0; i < 1000; i++) {
      struct timer **object = &objects[race_random(&random) % (uint64_t)live];
      timer_free(*object);
      *object = (struct timer *)malloc(sizeof(struct timer));
      timer_init(loop, *object, never);
      timer_start(*object, far(&random));
    }
    LOOP_DRAIN(loop);
  } while (!enough(&watch, count));
  race_report("end a random one and make one", each(&watch), "ns");
  watch = stopwatch();
  do {
    for (int i = 0; i < 1000; i++) {
      struct timer *made = (struct timer *)malloc(sizeof *made);
      timer_init(loop, made, never);
      timer_start(made, far(&random));
      timer_free(made);
    }
    LOOP_DRAIN(loop);
  } while (!enough(&watch, count));
  race_report("make one and end it", each(&watch), "ns");
#endif
}

static void w7(void) {
  struct loop *loop = (struct loop *)calloc(1, sizeof *loop);
  loop_make(loop);
  uint64_t random = RACE_SEED;
  int64_t live = race_sized(10000), count = race_scaled(10000000, 1000);
  struct timer *timers = live_timers(loop, live, &random);
  // Each date is a little later than the previous one, as when every request moves its timeout. The loop's cached
  // time does not change meanwhile.
  int64_t date = 120000000000;
  TIMED(
      "move a date later", count, race_use(&timers[race_random(&random) % (uint64_t)live], date += 6000, 0),
      timer_move(&timers[race_random(&random) % (uint64_t)live], date += 6000));
}

#ifndef OWN_W10
static struct {
  struct loop *loop;
  struct race_ticks *ticks;
  struct timer *timer;
} w10_state;

static void w10_fire(struct timer *timer) {
  if (race_tick(w10_state.ticks, timer_periods(timer))) loop_quit(w10_state.loop);
}

static void w10_create(void *context) {
  (void)context;
  w10_state.timer = (struct timer *)calloc(1, sizeof(struct timer));
  timer_init(w10_state.loop, w10_state.timer, w10_fire);
  race_ticks_start(w10_state.ticks);
  timer_repeat(w10_state.timer, 1000000);
}

static void w10(void) {
  struct loop *loop = (struct loop *)calloc(1, sizeof *loop);
  w10_state.loop = loop;
  w10_state.ticks = race_ticks_make(1000000, race_scaled(500, 20));
  loop_make(loop);
  loop_post(loop, w10_create, NULL);
  loop_run(loop);
  race_ticks_report(w10_state.ticks);
}
#endif
