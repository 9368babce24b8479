// SPDX-License-Identifier: Apache-2.0

// libev. Posts: a queue and `ev_async_send`. W7: `ev_timer_again`. W8: an async watcher that signals itself, and an
// idle watcher. W9, W11: `ev_io`.

#include <CRace.h>
#include <ev.h>

#include "queue.h"

#define PEER "libev"
#define POSTS 2000000
#define TURNS 30000
#define PASSES 300000
#define ONE_SHOTS 1000000
#define EVENTS 100000

struct loop {
  struct ev_loop *ev;
  ev_async async;
  struct queue queue;
};

static void loop_serve(struct ev_loop *ev, ev_async *async, int events) {
  (void)ev, (void)events;
  queue_run(&((struct loop *)async->data)->queue);
}

static void loop_make(struct loop *loop) {
  loop->ev = ev_loop_new(EVFLAG_AUTO);
  queue_make(&loop->queue);
  ev_async_init(&loop->async, loop_serve);
  loop->async.data = loop;
  ev_async_start(loop->ev, &loop->async);
}

static void loop_run(struct loop *loop) { ev_run(loop->ev, 0); }
static void loop_quit(struct loop *loop) { ev_break(loop->ev, EVBREAK_ONE); }

static inline void loop_post(struct loop *loop, void (*run)(void *), void *context) {
  if (queue_append(&loop->queue, run, context)) ev_async_send(loop->ev, &loop->async);
}

// -- Timers

struct timer {
  ev_timer ev;
  void (*fire)(struct timer *);
};

// Watchers do not store their loop. A program with a single loop does not need that, and the timer workloads have
// one.
static struct ev_loop *timers_loop;

static void timer_fired(struct ev_loop *ev, ev_timer *watcher, int events) {
  (void)ev, (void)events;
  struct timer *timer = (struct timer *)watcher;
  timer->fire(timer);
}

static inline void timer_init(struct loop *loop, struct timer *timer, void (*fire)(struct timer *)) {
  timers_loop = loop->ev;
  timer->fire = fire;
  ev_init(&timer->ev, timer_fired);
}

static inline void timer_start(struct timer *timer, int64_t delay) {
  ev_timer_set(&timer->ev, (double)delay * 1e-9, 0);
  ev_timer_start(timers_loop, &timer->ev);
}

static inline void timer_cancel(struct timer *timer) { ev_timer_stop(timers_loop, &timer->ev); }

static inline void timer_move(struct timer *timer, int64_t delay) {
  timer->ev.repeat = (double)delay * 1e-9;
  ev_timer_again(timers_loop, &timer->ev);
}

static inline void timer_repeat(struct timer *timer, int64_t period) {
  ev_timer_set(&timer->ev, (double)period * 1e-9, (double)period * 1e-9);
  ev_timer_start(timers_loop, &timer->ev);
}

static inline int64_t timer_periods(struct timer *timer) {
  (void)timer;
  return 1;
}

static inline void timer_free(struct timer *timer) {
  ev_timer_stop(timers_loop, &timer->ev);
  free(timer);
}
#define TIMER_FREE

// -- Descriptors

struct watch {
  ev_io ev;
  void (*ready)(struct watch *);
};

static void watch_ready(struct ev_loop *ev, ev_io *watcher, int events) {
  (void)ev, (void)events;
  struct watch *watch = (struct watch *)watcher;
  watch->ready(watch);
}

static void watch_start(struct loop *loop, struct watch *watch, int descriptor, void (*ready)(struct watch *)) {
  watch->ready = ready;
  watch->ev.data = loop;
  ev_io_init(&watch->ev, watch_ready, descriptor, EV_READ);
  ev_io_start(loop->ev, &watch->ev);
}

static void watch_stop(struct watch *watch) { ev_io_stop(((struct loop *)watch->ev.data)->ev, &watch->ev); }

// -- W8

#define OBSERVERS
#define IDLE_PASSES

static struct {
  struct loop *loop;
  int64_t left;
} w8_state;

static void w8_again(struct ev_loop *ev, ev_async *async, int events) {
  (void)events;
  if (--w8_state.left > 0) ev_async_send(ev, async);
  else loop_quit(w8_state.loop);
}

static void w8_idle(struct ev_loop *ev, ev_idle *idle, int events) {
  (void)ev, (void)idle, (void)events;
  if (--w8_state.left == 0) loop_quit(w8_state.loop);
}

static void w8_prepare(struct ev_loop *ev, ev_prepare *watcher, int events) { (void)ev, (void)watcher, (void)events; }
static void w8_check(struct ev_loop *ev, ev_check *watcher, int events) { (void)ev, (void)watcher, (void)events; }

static void passes(struct loop *loop, int64_t count, bool observed) {
  ev_async async;
  ev_prepare prepare;
  ev_check check;
  w8_state.loop = loop;
  w8_state.left = count;
  ev_async_init(&async, w8_again);
  ev_async_start(loop->ev, &async);
  ev_async_send(loop->ev, &async);
  ev_prepare_init(&prepare, w8_prepare);
  ev_check_init(&check, w8_check);
  if (observed) {
    ev_prepare_start(loop->ev, &prepare);
    ev_check_start(loop->ev, &check);
  }
  loop_run(loop);
  ev_async_stop(loop->ev, &async);
  ev_prepare_stop(loop->ev, &prepare);
  ev_check_stop(loop->ev, &check);
}

static void idle_passes(struct loop *loop, int64_t count) {
  ev_idle idle;
  w8_state.left = count;
  ev_idle_init(&idle, w8_idle);
  ev_idle_start(loop->ev, &idle);
  loop_run(loop);
  ev_idle_stop(loop->ev, &idle);
}

#include "workloads.h"
