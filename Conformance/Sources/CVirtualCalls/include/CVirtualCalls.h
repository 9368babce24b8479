// SPDX-License-Identifier: Apache-2.0

// System calls that tell a thread a virtual time, so that a run loop in another library can be run on it.
//
// The program that this is linked into defines clock_gettime, gettimeofday, timerfd_create, timerfd_settime, epoll_ctl
// and ppoll, in front of the C library. They serve threads that have joined a virtual clock; for every other thread
// they pass their arguments on. What calls them by their names is served: other libraries are, the C library itself is
// not.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A clock, and the timers that threads on it have made. Any thread may use it.
typedef struct cvc_clock cvc_clock;

// No deadline.
#define CVC_NEVER INT64_MAX

// What a wait is to do that has found nothing ready.
enum cvc_sleep {
  // Move the time on to the deadline.
  CVC_SLEEP_UNTIL_DEADLINE,
  // Look again: something was done meanwhile.
  CVC_LOOK_AGAIN,
  // Wait in real time, until a descriptor is ready.
  CVC_WAIT_FOR_EVENTS,
};

// Asked by a wait that has found nothing ready, on the thread that waits and under no lock. `deadline`, in nanoseconds
// since the clock was made, is when the first timer that it waits for expires, or its own timeout.
typedef enum cvc_sleep (*cvc_sleeper)(void *context, int64_t deadline);

cvc_clock *cvc_clock_create(cvc_sleeper sleeper, void *context);

// Ends a clock. No thread may be on it any more, and no descriptor of a timer in use.
void cvc_clock_destroy(cvc_clock *clock);

// Puts the calling thread on a clock, or on none.
void cvc_clock_join(cvc_clock *clock);

// Whether a thread on the clock has made a timer.
bool cvc_clock_has_timers(cvc_clock *clock);

// Nanoseconds since the clock was made.
int64_t cvc_clock_now(cvc_clock *clock);

// The wall time of that moment, in whole seconds since 1970, and the monotonic one.
int64_t cvc_clock_wall_base(void);
int64_t cvc_clock_monotonic_base(void);

// Lets so many nanoseconds pass: timers expire in the order of their dates.
void cvc_clock_advance(cvc_clock *clock, int64_t nanoseconds);

// Moves the time on to `now`, and lets only those timers expire that were due before.
void cvc_clock_move(cvc_clock *clock, int64_t now);

// What is read from the clock is so many nanoseconds later than it is, until told otherwise. Timers do not notice.
void cvc_clock_shift(cvc_clock *clock, int64_t nanoseconds);

// Waits until a thread has ended, at most so many seconds; 0, or the error: ETIMEDOUT.
int cvc_thread_join(pthread_t thread, int seconds);

#ifdef __cplusplus
}
#endif
