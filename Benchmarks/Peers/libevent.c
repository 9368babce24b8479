// SPDX-License-Identifier: Apache-2.0

// libevent. Posts: a queue and `event_active` from any thread (`evthread_use_pthreads`). W8: an event with a timeout
// of zero, as `event_active` from an event's own callback does not cause a pass. W9, W11: persistent read events. W10
// uses precise timers, which cost a descriptor; the other workloads use the default. Only the posts need a base with
// locks.

#include <CRace.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>

#include "queue.h"

#define PEER "libevent"
#define POSTS 2000000
#define TURNS 30000
#define PASSES 300000
#define ONE_SHOTS 1000000
#define EVENTS 100000

struct loop {
  struct event_base *base;
  struct event *wake;
  struct queue queue;
};

static void loop_serve(evutil_socket_t descriptor, short events, void *context) {
  (void)descriptor, (void)events;
  queue_run(&((struct loop *)context)->queue);
}

static void loop_make(struct loop *loop) {
  evthread_use_pthreads();
  struct event_config *config = event_config_new();
  // A base that is used by one thread needs no locks.
  if (!race_is("W1") && !race_is("W2") && !race_is("W3") && !race_is("W4") && !race_is("L1")) {
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
  }
  if (race_is("W10")) event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
  loop->base = event_base_new_with_config(config);
  event_config_free(config);
  queue_make(&loop->queue);
  loop->wake = event_new(loop->base, -1, EV_PERSIST, loop_serve, loop);
  event_add(loop->wake, NULL);
}

static void loop_run(struct loop *loop) { event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY); }
static void loop_quit(struct loop *loop) { event_base_loopbreak(loop->base); }

static inline void loop_post(struct loop *loop, void (*run)(void *), void *context) {
  if (queue_append(&loop->queue, run, context)) event_active(loop->wake, EV_READ, 0);
}

// -- Timers

struct timer {
  struct event event;
  void (*fire)(struct timer *);
};

static void timer_fired(evutil_socket_t descriptor, short events, void *context) {
  (void)descriptor, (void)events;
  struct timer *timer = context;
  timer->fire(timer);
}

static inline struct timeval interval(int64_t nanoseconds) {
  int64_t microseconds = (nanoseconds + 999) / 1000;
  return (struct timeval){microseconds / 1000000, microseconds % 1000000};
}

static inline void timer_init(struct loop *loop, struct timer *timer, void (*fire)(struct timer *)) {
  timer->fire = fire;
  event_assign(&timer->event, loop->base, -1, 0, timer_fired, timer);
}

static inline void timer_start(struct timer *timer, int64_t delay) {
  struct timeval after = interval(delay);
  event_add(&timer->event, &after);
}

static inline void timer_cancel(struct timer *timer) { event_del(&timer->event); }
static inline void timer_move(struct timer *timer, int64_t delay) { timer_start(timer, delay); }

static inline void timer_repeat(struct timer *timer, int64_t period) {
  struct event_base *base = event_get_base(&timer->event);
  event_assign(&timer->event, base, -1, EV_PERSIST, timer_fired, timer);
  timer_start(timer, period);
}

static inline int64_t timer_periods(struct timer *timer) {
  (void)timer;
  return 1;
}

static inline void timer_free(struct timer *timer) {
  event_del(&timer->event);
  free(timer);
}
#define TIMER_FREE

// -- Descriptors

struct watch {
  struct event event;
  void (*ready)(struct watch *);
};

static void watch_ready(evutil_socket_t descriptor, short events, void *context) {
  (void)descriptor, (void)events;
  struct watch *watch = context;
  watch->ready(watch);
}

static void watch_start(struct loop *loop, struct watch *watch, int descriptor, void (*ready)(struct watch *)) {
  watch->ready = ready;
  event_assign(&watch->event, loop->base, descriptor, EV_READ | EV_PERSIST, watch_ready, watch);
  event_add(&watch->event, NULL);
}

static void watch_stop(struct watch *watch) { event_del(&watch->event); }

// -- W8

static struct {
  struct loop *loop;
  struct event event;
  int64_t left;
} w8_state;

static void w8_again(evutil_socket_t descriptor, short events, void *context) {
  (void)descriptor, (void)events, (void)context;
  static const struct timeval now = {0, 0};
  if (--w8_state.left > 0) event_add(&w8_state.event, &now);
  else loop_quit(w8_state.loop);
}

static void passes(struct loop *loop, int64_t count, bool observed) {
  (void)observed;
  w8_state.loop = loop;
  w8_state.left = count;
  event_assign(&w8_state.event, loop->base, -1, 0, w8_again, NULL);
  event_active(&w8_state.event, EV_TIMEOUT, 0);
  loop_run(loop);
}

#include "workloads.h"
