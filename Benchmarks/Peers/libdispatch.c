// SPDX-License-Identifier: Apache-2.0

// libdispatch from C: a serial queue is the loop, and work is a function with a context (`dispatch_async_f`). W5:
// `dispatch_after_f`. W6, W7, W10: timer sources; a cancelled one cannot be reused, so each one is new. W9, W11: read
// sources.

#include <CRace.h>
#include <dispatch/dispatch.h>

#define PEER "libdispatch (C)"
#define POSTS 2000000
#define TURNS 30000
#define PASSES 300000
#define ONE_SHOTS 1000000
#define EVENTS 100000

// An idle queue has no thread.
#define LOOP_HAS_NO_THREAD

struct loop {
  dispatch_queue_t queue;
  struct race_gate *quit;
};

static void loop_make(struct loop *loop) {
  loop->queue = dispatch_queue_create("race", DISPATCH_QUEUE_SERIAL);
  loop->quit = race_gate_make();
}

static void loop_run(struct loop *loop) { race_gate_wait(loop->quit); }
static void loop_quit(struct loop *loop) { race_gate_open(loop->quit); }

static inline void loop_post(struct loop *loop, void (*run)(void *), void *context) {
  dispatch_async_f(loop->queue, context, run);
}

// -- Timers

struct timer {
  dispatch_source_t source;
  dispatch_queue_t queue;
  void (*fire)(struct timer *);
};

static void timer_fired(void *context) {
  struct timer *timer = context;
  timer->fire(timer);
}

static inline void timer_init(struct loop *loop, struct timer *timer, void (*fire)(struct timer *)) {
  *timer = (struct timer){.queue = loop->queue, .fire = fire};
}

static inline void timer_make(struct timer *timer, int64_t delay, uint64_t period) {
  timer->source = dispatch_source_create(DISPATCH_SOURCE_TYPE_TIMER, 0, DISPATCH_TIMER_STRICT, timer->queue);
  dispatch_set_context(timer->source, timer);
  dispatch_source_set_event_handler_f(timer->source, timer_fired);
  dispatch_source_set_timer(timer->source, dispatch_time(DISPATCH_TIME_NOW, delay), period, 0);
  dispatch_activate(timer->source);
}

static inline void timer_start(struct timer *timer, int64_t delay) {
  if (race_is("W5")) {
    dispatch_after_f(dispatch_time(DISPATCH_TIME_NOW, delay), timer->queue, timer, timer_fired);
  } else {
    timer_make(timer, delay, DISPATCH_TIME_FOREVER);
  }
}

static inline void timer_cancel(struct timer *timer) {
  dispatch_source_cancel(timer->source);
  dispatch_release(timer->source);
}

static inline void timer_move(struct timer *timer, int64_t delay) {
  dispatch_source_set_timer(timer->source, dispatch_time(DISPATCH_TIME_NOW, delay), DISPATCH_TIME_FOREVER, 0);
}

static inline void timer_repeat(struct timer *timer, int64_t period) { timer_make(timer, period, (uint64_t)period); }
static inline int64_t timer_periods(struct timer *timer) { return (int64_t)dispatch_source_get_data(timer->source); }

// -- Descriptors

struct watch {
  dispatch_source_t source;
  void (*ready)(struct watch *);
};

static void watch_ready(void *context) {
  struct watch *watch = context;
  watch->ready(watch);
}

static void watch_start(struct loop *loop, struct watch *watch, int descriptor, void (*ready)(struct watch *)) {
  watch->ready = ready;
  watch->source = dispatch_source_create(DISPATCH_SOURCE_TYPE_READ, (uintptr_t)descriptor, 0, loop->queue);
  dispatch_set_context(watch->source, watch);
  dispatch_source_set_event_handler_f(watch->source, watch_ready);
  dispatch_activate(watch->source);
}

static void watch_stop(struct watch *watch) { dispatch_source_cancel(watch->source); }

// -- W8

static struct {
  struct loop *loop;
  int64_t left;
} w8_state;

static void w8_again(void *context) {
  if (--w8_state.left > 0) loop_post(w8_state.loop, w8_again, context);
  else loop_quit(w8_state.loop);
}

static void passes(struct loop *loop, int64_t count, bool observed) {
  (void)observed;
  w8_state.loop = loop;
  w8_state.left = count;
  loop_post(loop, w8_again, NULL);
  loop_run(loop);
}

#include "workloads.h"
