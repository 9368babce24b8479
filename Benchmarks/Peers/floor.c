// SPDX-License-Identifier: Apache-2.0

// The floor: the minimal C program that does the work of each workload, without the loop that a library needs. Its
// timers are in a four-ary heap or, with WHEEL, in a timing wheel.

#include <CRace.h>
#include <limits.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>

#include "floor/inbox.h"
#ifdef WHEEL
#include "floor/wheel.h"
#define PEER "floor (wheel)"
#define ONLY_TIMERS
#else
#include "floor/heap.h"
#define PEER "floor"
#endif

#define POSTS 2000000
#define TURNS 30000
#define PASSES 3000000
#define ONE_SHOTS 1000000
#define EVENTS 100000

struct loop {
  struct inbox inbox;
  int epoll;
  bool quits;
};

static int64_t timers_now;

static void loop_make(struct loop *loop) { loop->epoll = -1; }

static void serve_descriptors(struct loop *loop);

static void let_gather(void) {
  for (int i = 0; i < 64; i++) __builtin_ia32_pause();
  sched_yield();
}

static void loop_run(struct loop *loop) {
  loop->quits = false;
  while (!loop->quits) {
    size_t count = inbox_run(&loop->inbox);
    bool fired = timers_next() != INT64_MAX && timers_fire(race_now());
    // After a burst of posts, more are likely: let them accumulate instead of locking or waking for each.
    if (count > 16) let_gather();
    if (count > 0 || fired) continue;
    if (loop->epoll >= 0) serve_descriptors(loop);
    else inbox_sleep(&loop->inbox, timers_next());
  }
}

static void loop_quit(struct loop *loop) { loop->quits = true; }

static inline void loop_post(struct loop *loop, void (*run)(void *), void *context) {
  inbox_append(&loop->inbox, run, context);
}

// -- Timers

static inline void timer_init(struct loop *loop, struct timer *timer, void (*fire)(struct timer *)) {
  (void)loop;
  if (timers_now == 0) timers_now = race_now();
  timer->fire = fire;
}

static inline void timer_start(struct timer *timer, int64_t delay) { timers_add(timer, timers_now + delay); }
static inline void timer_cancel(struct timer *timer) { timers_remove(timer); }
static inline void timer_move(struct timer *timer, int64_t delay) { timers_move(timer, timers_now + delay); }

static inline void timer_free(struct timer *timer) {
  timers_remove(timer);
  free(timer);
}
#define TIMER_FREE

// -- W10: three ways to wait for a date

#define OWN_W10

static void tick_by_timer_descriptor(struct race_ticks *ticks) {
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  race_ticks_start(ticks);
  int64_t first = race_ticks_begin(ticks) + 1000000;
  struct itimerspec dates = {{0, 1000000}, {first / 1000000000, first % 1000000000}};
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &dates, NULL);
  uint64_t periods;
  while (read(timer, &periods, sizeof periods) == sizeof periods && !race_tick(ticks, (int64_t)periods)) {}
}

static void tick_by_futex(struct race_ticks *ticks) {
  atomic_uint word = 0;
  prctl(PR_SET_TIMERSLACK, 1);
  race_ticks_start(ticks);
  int64_t date = race_ticks_begin(ticks);
  do {
    date += 1000000;
    struct timespec until = {date / 1000000000, date % 1000000000};
    futex(&word, FUTEX_WAIT_BITSET, 0, &until);
  } while (!race_tick(ticks, 1));
}

static void tick_by_epoll(struct race_ticks *ticks) {
  int set = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event;
  prctl(PR_SET_TIMERSLACK, 50000);
  race_ticks_start(ticks);
  int64_t date = race_ticks_begin(ticks);
  do {
    date += 1000000;
    int64_t rest = date - race_now();
    if (rest < 0) rest = 0;
    struct timespec until = {rest / 1000000000, rest % 1000000000};
    syscall(SYS_epoll_pwait2, set, &event, 1, &until, NULL, 0);
  } while (!race_tick(ticks, 1));
}

static void w10(void) {
  static const struct {
    const char *name;
    void (*run)(struct race_ticks *);
  } ways[] = {
      {"floor (timerfd)", tick_by_timer_descriptor},
      {"floor (futex, slack 1 ns)", tick_by_futex},
      {"floor (epoll)", tick_by_epoll},
  };
  for (int i = 0; i < 3; i++) {
    struct race_ticks *ticks = race_ticks_make(1000000, race_scaled(500, 20));
    race_set_peer(ways[i].name);
    ways[i].run(ticks);
    race_ticks_report(ticks);
  }
}

// -- Descriptors

struct watch {
  struct loop *loop;
  int descriptor;
  void (*ready)(struct watch *);
};

static void watch_start(struct loop *loop, struct watch *watch, int descriptor, void (*ready)(struct watch *)) {
  if (loop->epoll < 0) loop->epoll = epoll_create1(EPOLL_CLOEXEC);
  *watch = (struct watch){loop, descriptor, ready};
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};
  epoll_ctl(loop->epoll, EPOLL_CTL_ADD, descriptor, &event);
}

static void watch_stop(struct watch *watch) { epoll_ctl(watch->loop->epoll, EPOLL_CTL_DEL, watch->descriptor, NULL); }

static void serve_descriptors(struct loop *loop) {
  struct epoll_event events[64];
  // Nothing is posted during the wait: in these workloads, only descriptors become ready.
  int count = epoll_wait(loop->epoll, events, 64, -1);
  for (int i = 0; i < count; i++) {
    struct watch *watch = events[i].data.ptr;
    watch->ready(watch);
  }
}

// -- W8: a flag, and a list of observer functions

#define OBSERVERS

static struct {
  bool signalled, quits;
  int64_t left;
} w8_state;

static void w8_again(void) {
  if (--w8_state.left > 0) w8_state.signalled = true;
  else w8_state.quits = true;
}

static void w8_observe(void) {}

static void passes(struct loop *loop, int64_t count, bool observed) {
  (void)loop;
  void (*volatile source)(void) = w8_again;
  void (*volatile observers[])(void) = {w8_observe, w8_observe};
  int64_t observer_count = observed ? 2 : 0;
  w8_state.signalled = true;
  w8_state.quits = false;
  w8_state.left = count;
  while (!w8_state.quits) {
    for (int i = 0; i < observer_count; i++) observers[i]();
    if (__atomic_exchange_n(&w8_state.signalled, false, __ATOMIC_ACQUIRE)) source();
  }
}

#include "workloads.h"
