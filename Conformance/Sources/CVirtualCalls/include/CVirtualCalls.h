// SPDX-License-Identifier: Apache-2.0

// System calls that report virtual time to a thread, so that a run loop in another library can run on it.
//
// The program that links this defines clock_gettime, gettimeofday, timerfd_create, timerfd_settime, epoll_ctl and
// ppoll, which take precedence over the C library's. They serve threads that have joined a virtual clock, and pass
// all other calls on. This applies to calls by name from other libraries, but not to calls within the C library
// itself.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A clock, and the timers that its threads have created. Can be used from any thread.
typedef struct cvc_clock cvc_clock;

// No deadline.
#define CVC_NEVER INT64_MAX

// The possible actions of a wait that finds nothing ready.
enum cvc_sleep {
  // Advance the time to the deadline.
  CVC_SLEEP_UNTIL_DEADLINE,
  // Poll again, because something has changed.
  CVC_LOOK_AGAIN,
  // Wait in real time until a descriptor is ready.
  CVC_WAIT_FOR_EVENTS,
};

// Called by a wait that has found nothing ready, on the waiting thread and without a lock. `deadline` is when its
// first timer expires, or its own timeout, in nanoseconds since the clock was created.
typedef enum cvc_sleep (*cvc_sleeper)(void *context, int64_t deadline);

cvc_clock *cvc_clock_create(cvc_sleeper sleeper, void *context);

// Destroys a clock. No thread may still have joined it, and no timer descriptor may be in use.
void cvc_clock_destroy(cvc_clock *clock);

// Makes the calling thread join a clock, or leave it for NULL.
void cvc_clock_join(cvc_clock *clock);

// Whether a thread of the clock has created a timer.
bool cvc_clock_has_timers(cvc_clock *clock);

// Returns the nanoseconds since the clock was created.
int64_t cvc_clock_now(cvc_clock *clock);

// The wall time at the clock's creation, in whole seconds since 1970, and the monotonic time.
int64_t cvc_clock_wall_base(void);
int64_t cvc_clock_monotonic_base(void);

// Advances the time. Timers expire in the order of their dates.
void cvc_clock_advance(cvc_clock *clock, int64_t nanoseconds);

// Sets the time to `now`, and expires only the timers that were due before it.
void cvc_clock_move(cvc_clock *clock, int64_t now);

// Shifts the times read from the clock by a number of nanoseconds, until the next call. Timers are unaffected.
void cvc_clock_shift(cvc_clock *clock, int64_t nanoseconds);

// Waits up to `seconds` for the end of a thread. Returns 0 or an error such as ETIMEDOUT.
int cvc_thread_join(pthread_t thread, int seconds);

#ifdef __cplusplus
}
#endif
