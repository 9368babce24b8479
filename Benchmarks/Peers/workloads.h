// SPDX-License-Identifier: Apache-2.0

// The workloads for the peers in C and C++. A racer includes this file after defining its loop's operations inline:
//
//     struct loop;  void loop_make(struct loop *);            on the loop's thread
//     void loop_run(struct loop *);                           until loop_quit, there; even without work
//     void loop_quit(struct loop *);                          from the loop's own work
//     void loop_post(struct loop *, work, void *context);     from any thread
//
//     struct timer;  void timer_init(struct loop *, struct timer *, void (*fire)(struct timer *));
//     void timer_start(struct timer *, int64_t delay);        once; nanoseconds after the loop's cached time
//     void timer_cancel(struct timer *);                      it can be started again
//     void timer_move(struct timer *, int64_t delay);         of a timer that is started
//     void timer_repeat(struct timer *, int64_t period);      first after one period
//     int64_t timer_periods(struct timer *);                  the number of periods since the last fire
//
//     struct watch;
//     void watch_start(struct loop *, struct watch *, int descriptor, void (*ready)(struct watch *));
//     void watch_stop(struct watch *);
//
//     void passes(struct loop *, int64_t count, bool observed);    W8, each in its own way
//
// If a library has a better way for a workload, the racer defines that before: LOOP_POST_CAPTURING, LOOP_DRAIN,
// LOOP_HAS_NO_THREAD, WATCH_HAS_READ, OWN_W10, OWN_ECHO.

#pragma once

#include <stdlib.h>

typedef void (*work)(void *);

#include "posts.h"
#include "timers.h"
#include "descriptors.h"
#include "memory.h"
