// SPDX-License-Identifier: Apache-2.0

#include "Clock.h"

#include <stdlib.h>
#include <sys/eventfd.h>

#define SECOND INT64_C(1000000000)

// Whole seconds, so that dates in floating point are exact. The wall time is in 2023.
#define MONOTONIC_BASE INT64_C(1000000)
#define WALL_BASE INT64_C(1678307200)

// An event descriptor that stands in for a timer descriptor. Its count is one when the timer expires.
struct timer {
  int descriptor;
  int set;
  int64_t deadline;
  // The order in which timers were armed: of two with the same deadline, the one armed first expires first.
  uint64_t arming;
};

struct cvc_clock {
  cvc_sleeper sleeper;
  void *context;
  // Guards the following members.
  pthread_mutex_t lock;
  int64_t now;
  int64_t shift;
  uint64_t armings;
  struct timer *timers;
  size_t count;
  size_t capacity;
};

_Thread_local cvc_clock *cvc_joined;

cvc_clock *cvc_clock_create(cvc_sleeper sleeper, void *context) {
  cvc_clock *clock = calloc(1, sizeof *clock);
  if (clock == NULL) abort();
  clock->sleeper = sleeper;
  clock->context = context;
  pthread_mutex_init(&clock->lock, NULL);
  return clock;
}

void cvc_clock_destroy(cvc_clock *clock) {
  pthread_mutex_destroy(&clock->lock);
  free(clock->timers);
  free(clock);
}

void cvc_clock_join(cvc_clock *clock) { cvc_joined = clock; }

int64_t cvc_clock_wall_base(void) { return WALL_BASE; }

int64_t cvc_clock_monotonic_base(void) { return MONOTONIC_BASE; }

bool cvc_clock_has_timers(cvc_clock *clock) {
  pthread_mutex_lock(&clock->lock);
  bool has_timers = clock->count > 0;
  pthread_mutex_unlock(&clock->lock);
  return has_timers;
}

int64_t cvc_clock_now(cvc_clock *clock) {
  pthread_mutex_lock(&clock->lock);
  int64_t now = clock->now;
  pthread_mutex_unlock(&clock->lock);
  return now;
}

void cvc_clock_shift(cvc_clock *clock, int64_t nanoseconds) {
  pthread_mutex_lock(&clock->lock);
  clock->shift = nanoseconds;
  pthread_mutex_unlock(&clock->lock);
}

static struct timespec time_since(int64_t base, cvc_clock *clock) {
  pthread_mutex_lock(&clock->lock);
  int64_t now = clock->now + clock->shift;
  pthread_mutex_unlock(&clock->lock);
  return (struct timespec){.tv_sec = base + now / SECOND, .tv_nsec = now % SECOND};
}

struct timespec cvc_wall_time(cvc_clock *clock) { return time_since(WALL_BASE, clock); }

struct timespec cvc_monotonic_time(cvc_clock *clock) { return time_since(MONOTONIC_BASE, clock); }

// Requires the lock.
static struct timer *find_timer(cvc_clock *clock, int descriptor) {
  for (size_t index = 0; index < clock->count; index++) {
    if (clock->timers[index].descriptor == descriptor) return &clock->timers[index];
  }
  return NULL;
}

// Requires the lock. Returns the next timer to expire by `limit`, of one epoll set or, for -1, of all.
static struct timer *first_timer(cvc_clock *clock, int set, int64_t limit) {
  struct timer *first = NULL;
  for (size_t index = 0; index < clock->count; index++) {
    struct timer *timer = &clock->timers[index];
    if (timer->deadline == CVC_NEVER || timer->deadline > limit || (set >= 0 && timer->set != set)) continue;
    bool is_earlier = first == NULL || timer->deadline < first->deadline ||
                      (timer->deadline == first->deadline && timer->arming < first->arming);
    if (is_earlier) first = timer;
  }
  return first;
}

// Requires the lock.
static void expire(cvc_clock *clock, int64_t limit) {
  struct timer *timer;
  while ((timer = first_timer(clock, -1, limit)) != NULL) {
    timer->deadline = CVC_NEVER;
    // Errors are ignored: the counter may be full, or closed by its owner.
    (void)eventfd_write(timer->descriptor, 1);
  }
}

bool cvc_add_timer(cvc_clock *clock, int descriptor) {
  bool has_room = true;
  pthread_mutex_lock(&clock->lock);
  struct timer *timer = find_timer(clock, descriptor);
  if (timer == NULL) {
    if (clock->count == clock->capacity) {
      size_t capacity = clock->capacity == 0 ? 8 : 2 * clock->capacity;
      struct timer *timers = realloc(clock->timers, capacity * sizeof *timers);
      has_room = timers != NULL;
      if (has_room) {
        clock->timers = timers;
        clock->capacity = capacity;
      }
    }
    if (has_room) timer = &clock->timers[clock->count++];
  }
  if (timer != NULL) *timer = (struct timer){.descriptor = descriptor, .set = -1, .deadline = CVC_NEVER};
  pthread_mutex_unlock(&clock->lock);
  return has_room;
}

bool cvc_set_timer(cvc_clock *clock, int descriptor, int64_t deadline) {
  pthread_mutex_lock(&clock->lock);
  struct timer *timer = find_timer(clock, descriptor);
  if (timer != NULL) {
    // Resets an earlier expiration.
    eventfd_t count;
    (void)eventfd_read(descriptor, &count);
    timer->deadline = deadline;
    timer->arming = ++clock->armings;
    if (deadline <= clock->now) {
      timer->deadline = CVC_NEVER;
      (void)eventfd_write(descriptor, 1);
    }
  }
  pthread_mutex_unlock(&clock->lock);
  return timer != NULL;
}

void cvc_put_timer(cvc_clock *clock, int descriptor, int set) {
  pthread_mutex_lock(&clock->lock);
  struct timer *timer = find_timer(clock, descriptor);
  if (timer != NULL) timer->set = set;
  pthread_mutex_unlock(&clock->lock);
}

int64_t cvc_first_deadline(cvc_clock *clock, int set) {
  pthread_mutex_lock(&clock->lock);
  struct timer *timer = first_timer(clock, set, CVC_NEVER - 1);
  int64_t deadline = timer == NULL ? CVC_NEVER : timer->deadline;
  pthread_mutex_unlock(&clock->lock);
  return deadline;
}

void cvc_expire(cvc_clock *clock) { cvc_clock_advance(clock, 0); }

void cvc_clock_advance(cvc_clock *clock, int64_t nanoseconds) {
  pthread_mutex_lock(&clock->lock);
  clock->now += nanoseconds;
  expire(clock, clock->now);
  pthread_mutex_unlock(&clock->lock);
}

void cvc_clock_move(cvc_clock *clock, int64_t now) {
  pthread_mutex_lock(&clock->lock);
  if (now > clock->now) {
    expire(clock, now - 1);
    clock->now = now;
  }
  pthread_mutex_unlock(&clock->lock);
}

enum cvc_sleep cvc_ask_sleeper(cvc_clock *clock, int64_t deadline) {
  if (clock->sleeper != NULL) return clock->sleeper(clock->context, deadline);
  return deadline == CVC_NEVER ? CVC_WAIT_FOR_EVENTS : CVC_SLEEP_UNTIL_DEADLINE;
}
