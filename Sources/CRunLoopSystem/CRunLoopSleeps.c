// SPDX-License-Identifier: Apache-2.0

// Hooks of the runtime that are called with a job that waits for a date. Toolchains install no header that declares
// them; these are the declarations of Swift 6.2 and 6.3.
#include "CRunLoopSleeps.h"

#define CRL_SWIFT __attribute__((swiftcall))

typedef CRL_SWIFT void deadline_function(long long seconds, long long nanoseconds, long long tolerance_seconds,
                                         long long tolerance_nanoseconds, int clock, void *job);
typedef CRL_SWIFT void deadline_hook(long long seconds, long long nanoseconds, long long tolerance_seconds,
                                     long long tolerance_nanoseconds, int clock, void *job,
                                     deadline_function *original);
typedef CRL_SWIFT void delay_function(unsigned long long nanoseconds, void *job);
typedef CRL_SWIFT void delay_hook(unsigned long long nanoseconds, void *job, delay_function *original);

// Weak: a program whose runtime has no hooks links, and keeps the runtime's sleeps.
extern __attribute__((weak)) deadline_hook *swift_task_enqueueGlobalWithDeadline_hook;
extern __attribute__((weak)) delay_hook *swift_task_enqueueGlobalWithDelay_hook;

static crl_sleep_until_function *sleep_until;
static crl_sleep_for_function *sleep_for;
// What others had set before.
static deadline_hook *next_deadline_hook;
static delay_hook *next_delay_hook;

static CRL_SWIFT void on_deadline(long long seconds, long long nanoseconds, long long tolerance_seconds,
                                  long long tolerance_nanoseconds, int clock, void *job, deadline_function *original) {
  if (sleep_until(seconds, nanoseconds, tolerance_seconds, tolerance_nanoseconds, clock, job)) return;
  if (next_deadline_hook) {
    next_deadline_hook(seconds, nanoseconds, tolerance_seconds, tolerance_nanoseconds, clock, job, original);
  } else {
    original(seconds, nanoseconds, tolerance_seconds, tolerance_nanoseconds, clock, job);
  }
}

static CRL_SWIFT void on_delay(unsigned long long nanoseconds, void *job, delay_function *original) {
  if (sleep_for(nanoseconds, job)) return;
  if (next_delay_hook) {
    next_delay_hook(nanoseconds, job, original);
  } else {
    original(nanoseconds, job);
  }
}

void crl_sleeps_observe(crl_sleep_until_function *until, crl_sleep_for_function *duration) {
  if (!&swift_task_enqueueGlobalWithDeadline_hook || !&swift_task_enqueueGlobalWithDelay_hook) return;
  sleep_until = until;
  sleep_for = duration;
  next_deadline_hook = swift_task_enqueueGlobalWithDeadline_hook;
  next_delay_hook = swift_task_enqueueGlobalWithDelay_hook;
  // The runtime reads them without an order: it sees what was there or these, with what they need behind them.
  __atomic_store_n(&swift_task_enqueueGlobalWithDeadline_hook, on_deadline, __ATOMIC_RELEASE);
  __atomic_store_n(&swift_task_enqueueGlobalWithDelay_hook, on_delay, __ATOMIC_RELEASE);
}
