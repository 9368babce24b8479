// SPDX-License-Identifier: Apache-2.0

// What the two halves of this library share: the clock, and the calls that ask it.
#pragma once

#include "include/CVirtualCalls.h"

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

// The clock that the calling thread is on.
extern _Thread_local cvc_clock *cvc_joined;

// The virtual time since 1970, or since an unknown moment, that the clock shows.
struct timespec cvc_wall_time(cvc_clock *clock);
struct timespec cvc_monotonic_time(cvc_clock *clock);

// Notes a descriptor that stands in for a timer's.
bool cvc_add_timer(cvc_clock *clock, int descriptor);

// Arms a timer for a time since the clock was made, CVC_NEVER to disarm it. False if the descriptor is none of the
// clock's.
bool cvc_set_timer(cvc_clock *clock, int descriptor, int64_t deadline);

// Notes the epoll set that a timer was put into, -1 for none.
void cvc_put_timer(cvc_clock *clock, int descriptor, int set);

// When the first timer of an epoll set expires.
int64_t cvc_first_deadline(cvc_clock *clock, int set);

// Lets the timers expire that are due.
void cvc_expire(cvc_clock *clock);

// Asks what to do with a wait that has found nothing.
enum cvc_sleep cvc_ask_sleeper(cvc_clock *clock, int64_t deadline);
