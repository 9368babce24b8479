// SPDX-License-Identifier: Apache-2.0

// libuv. Posts: a queue and `uv_async_send`. W8: an async handle that signals itself, and an idle handle. W9:
// `uv_poll`. W11: streams with `uv_try_write`. Its timers have a resolution of milliseconds.

#include <CRace.h>
#include <string.h>
#include <uv.h>

#include "queue.h"

#define PEER "libuv"
#define POSTS 2000000
#define TURNS 30000
#define PASSES 300000
#define ONE_SHOTS 1000000
#define EVENTS 100000

struct loop {
  uv_loop_t uv;
  uv_async_t async;
  struct queue queue;
};

static void loop_serve(uv_async_t *async) { queue_run(&((struct loop *)async->data)->queue); }

static void loop_make(struct loop *loop) {
  uv_loop_init(&loop->uv);
  queue_make(&loop->queue);
  uv_async_init(&loop->uv, &loop->async, loop_serve);
  loop->async.data = loop;
}

static void loop_run(struct loop *loop) { uv_run(&loop->uv, UV_RUN_DEFAULT); }
static void loop_quit(struct loop *loop) { uv_stop(&loop->uv); }

static inline void loop_post(struct loop *loop, void (*run)(void *), void *context) {
  if (queue_append(&loop->queue, run, context)) uv_async_send(&loop->async);
}

// -- Timers

struct timer {
  uv_timer_t uv;
  void (*fire)(struct timer *);
};

static void timer_fired(uv_timer_t *uv) {
  struct timer *timer = (struct timer *)uv;
  timer->fire(timer);
}

static inline uint64_t milliseconds(int64_t nanoseconds) { return (uint64_t)(nanoseconds + 999999) / 1000000; }

static inline void timer_init(struct loop *loop, struct timer *timer, void (*fire)(struct timer *)) {
  uv_timer_init(&loop->uv, &timer->uv);
  timer->fire = fire;
}

static inline void timer_start(struct timer *timer, int64_t delay) {
  uv_timer_start(&timer->uv, timer_fired, milliseconds(delay), 0);
}

static inline void timer_cancel(struct timer *timer) { uv_timer_stop(&timer->uv); }
static inline void timer_move(struct timer *timer, int64_t delay) { timer_start(timer, delay); }

static inline void timer_repeat(struct timer *timer, int64_t period) {
  uv_timer_start(&timer->uv, timer_fired, milliseconds(period), milliseconds(period));
}

static inline int64_t timer_periods(struct timer *timer) {
  (void)timer;
  return 1;
}

static void timer_closed(uv_handle_t *handle) { free(handle); }
static inline void timer_free(struct timer *timer) { uv_close((uv_handle_t *)&timer->uv, timer_closed); }
#define TIMER_FREE
// The loop frees handles that are being closed.
#define LOOP_DRAIN(loop) uv_run(&(loop)->uv, UV_RUN_NOWAIT)

// -- Descriptors

struct watch {
  uv_poll_t uv;
  void (*ready)(struct watch *);
};

static void watch_ready(uv_poll_t *uv, int status, int events) {
  (void)status, (void)events;
  struct watch *watch = (struct watch *)uv;
  watch->ready(watch);
}

static void watch_start(struct loop *loop, struct watch *watch, int descriptor, void (*ready)(struct watch *)) {
  watch->ready = ready;
  uv_poll_init(&loop->uv, &watch->uv, descriptor);
  uv_poll_start(&watch->uv, UV_READABLE, watch_ready);
}

// -- W8

#define OBSERVERS
#define IDLE_PASSES

static struct {
  struct loop *loop;
  int64_t left;
} w8_state;

static void w8_again(uv_async_t *async) {
  if (--w8_state.left > 0) uv_async_send(async);
  else loop_quit(w8_state.loop);
}

static void w8_idle(uv_idle_t *idle) {
  (void)idle;
  if (--w8_state.left == 0) loop_quit(w8_state.loop);
}

static void w8_prepare(uv_prepare_t *handle) { (void)handle; }
static void w8_check(uv_check_t *handle) { (void)handle; }
static void w8_closed(uv_handle_t *handle) { free(handle); }

static void passes(struct loop *loop, int64_t count, bool observed) {
  uv_async_t *async = malloc(sizeof *async);
  uv_prepare_t prepare;
  uv_check_t check;
  w8_state.loop = loop;
  w8_state.left = count;
  uv_async_init(&loop->uv, async, w8_again);
  uv_async_send(async);
  if (observed) {
    uv_prepare_init(&loop->uv, &prepare);
    uv_prepare_start(&prepare, w8_prepare);
    uv_check_init(&loop->uv, &check);
    uv_check_start(&check, w8_check);
  }
  loop_run(loop);
  uv_close((uv_handle_t *)async, w8_closed);
  if (observed) {
    uv_close((uv_handle_t *)&prepare, NULL);
    uv_close((uv_handle_t *)&check, NULL);
  }
  uv_run(&loop->uv, UV_RUN_NOWAIT);
}

static void idle_passes(struct loop *loop, int64_t count) {
  uv_idle_t *idle = malloc(sizeof *idle);
  w8_state.left = count;
  uv_idle_init(&loop->uv, idle);
  uv_idle_start(idle, w8_idle);
  loop_run(loop);
  uv_close((uv_handle_t *)idle, w8_closed);
  uv_run(&loop->uv, UV_RUN_NOWAIT);
}

// -- W11

#define OWN_ECHO

struct connection {
  uv_tcp_t uv;
  char buffer[4096];
};

static struct loop *echo_loop;

static void echo_room(uv_handle_t *handle, size_t suggested, uv_buf_t *room) {
  (void)suggested;
  struct connection *connection = (struct connection *)handle;
  *room = uv_buf_init(connection->buffer, sizeof connection->buffer);
}

static void echo_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *read) {
  if (got > 0) {
    uv_buf_t answer = uv_buf_init(read->base, (unsigned)got);
    race_check(uv_try_write(stream, &answer, 1) == got, "an answer did not fit");
  } else if (got < 0) {
    uv_close((uv_handle_t *)stream, NULL);
    if (race_echo_closed()) loop_quit(echo_loop);
  }
}

static void echo_start(struct loop *loop, const int *connections) {
  echo_loop = loop;
  struct connection *states = calloc((size_t)race_connections(), sizeof *states);
  for (int i = 0; i < race_connections(); i++) {
    uv_tcp_init(&loop->uv, &states[i].uv);
    uv_tcp_open(&states[i].uv, connections[i]);
    uv_read_start((uv_stream_t *)&states[i].uv, echo_room, echo_read);
  }
}

#include "workloads.h"
