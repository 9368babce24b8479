// SPDX-License-Identifier: Apache-2.0

// GLib. Posts: `g_main_context_invoke_full`, GLib's own way from another thread. Timers: sources with a ready time; a
// destroyed source cannot be reused, so each one is new. W5 has 5,000 timers, as each fire iterates over all of them.
// W8: an idle source. W9, W11: `g_unix_fd_source`.

#include <CRace.h>
#include <glib-unix.h>
#include <glib.h>

#define PEER "GLib"
#define POSTS 500000
#define TURNS 30000
#define PASSES 300000
#define ONE_SHOTS 5000
#define EVENTS 50000

struct loop {
  GMainContext *context;
  GMainLoop *main;
};

static void loop_make(struct loop *loop) {
  loop->context = g_main_context_new();
  g_main_context_push_thread_default(loop->context);
  loop->main = g_main_loop_new(loop->context, FALSE);
}

static void loop_run(struct loop *loop) { g_main_loop_run(loop->main); }
static void loop_quit(struct loop *loop) { g_main_loop_quit(loop->main); }

struct post {
  void (*run)(void *);
  void *context;
};

static gboolean post_run(gpointer data) {
  struct post *post = data;
  post->run(post->context);
  return G_SOURCE_REMOVE;
}

static void post_free(gpointer data) { g_slice_free(struct post, data); }

static inline void loop_post(struct loop *loop, void (*run)(void *), void *context) {
  struct post *post = g_slice_new(struct post);
  post->run = run;
  post->context = context;
  // On the loop's own thread the function would be called immediately.
  if (g_main_context_is_owner(loop->context)) {
    GSource *source = g_idle_source_new();
    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    g_source_set_callback(source, post_run, post, post_free);
    g_source_attach(source, loop->context);
    g_source_unref(source);
  } else {
    g_main_context_invoke_full(loop->context, G_PRIORITY_DEFAULT, post_run, post, post_free);
  }
}

// -- Timers

struct timer {
  GSource *source;
  struct loop *loop;
  void (*fire)(struct timer *);
  gint64 period;
};

static gboolean timer_dispatch(GSource *source, GSourceFunc callback, gpointer data) {
  (void)source;
  return callback(data);
}

static GSourceFuncs timer_functions = {.dispatch = timer_dispatch};

static gboolean timer_fired(gpointer data) {
  struct timer *timer = data;
  if (timer->period == 0) {
    g_source_unref(timer->source);
    timer->source = NULL;
    timer->fire(timer);
    return G_SOURCE_REMOVE;
  }
  timer->fire(timer);
  return G_SOURCE_CONTINUE;
}

// The other libraries cache the time while a program creates timers, so this does too.
static gint64 timers_now;

static inline void timer_init(struct loop *loop, struct timer *timer, void (*fire)(struct timer *)) {
  if (timers_now == 0) timers_now = g_get_monotonic_time();
  *timer = (struct timer){.loop = loop, .fire = fire};
}

static inline gint64 date(int64_t delay) { return timers_now + (delay + 999) / 1000; }

static inline void timer_start(struct timer *timer, int64_t delay) {
  timer->source = g_source_new(&timer_functions, sizeof(GSource));
  g_source_set_callback(timer->source, timer_fired, timer, NULL);
  g_source_set_ready_time(timer->source, date(delay));
  g_source_attach(timer->source, timer->loop->context);
}

static inline void timer_cancel(struct timer *timer) {
  g_source_destroy(timer->source);
  g_source_unref(timer->source);
}

static inline void timer_move(struct timer *timer, int64_t delay) {
  g_source_set_ready_time(timer->source, date(delay));
}

// GLib's own repeating timer, with a resolution of milliseconds.
static inline void timer_repeat(struct timer *timer, int64_t period) {
  timer->period = period / 1000;
  timer->source = g_timeout_source_new((guint)(period / 1000000));
  g_source_set_callback(timer->source, timer_fired, timer, NULL);
  g_source_attach(timer->source, timer->loop->context);
}

static inline int64_t timer_periods(struct timer *timer) {
  (void)timer;
  return 1;
}

// -- Descriptors

struct watch {
  GSource *source;
  void (*ready)(struct watch *);
};

static gboolean watch_ready(gint descriptor, GIOCondition events, gpointer data) {
  (void)descriptor, (void)events;
  struct watch *watch = data;
  watch->ready(watch);
  return G_SOURCE_CONTINUE;
}

static void watch_start(struct loop *loop, struct watch *watch, int descriptor, void (*ready)(struct watch *)) {
  watch->ready = ready;
  watch->source = g_unix_fd_source_new(descriptor, G_IO_IN);
  g_source_set_callback(watch->source, G_SOURCE_FUNC(watch_ready), watch, NULL);
  g_source_attach(watch->source, loop->context);
}

static void watch_stop(struct watch *watch) { g_source_destroy(watch->source); }

// -- W8

static struct {
  struct loop *loop;
  int64_t left;
} w8_state;

static gboolean w8_again(gpointer data) {
  (void)data;
  if (--w8_state.left > 0) return G_SOURCE_CONTINUE;
  loop_quit(w8_state.loop);
  return G_SOURCE_REMOVE;
}

static void passes(struct loop *loop, int64_t count, bool observed) {
  (void)observed;
  w8_state.loop = loop;
  w8_state.left = count;
  GSource *idle = g_idle_source_new();
  g_source_set_callback(idle, w8_again, NULL, NULL);
  g_source_attach(idle, loop->context);
  g_source_unref(idle);
  loop_run(loop);
}

#include "workloads.h"
