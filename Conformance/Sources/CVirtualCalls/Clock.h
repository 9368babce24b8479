// SPDX-License-Identifier: Apache-2.0

// Shared by both files of this library: the clock, and the functions that the calls use.
#pragma once

#include "include/CVirtualCalls.h"

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

// The clock that the calling thread has joined.
extern _Thread_local cvc_clock *cvc_joined;

// The clock's virtual time since 1970, or since an unspecified moment.
struct timespec cvc_wall_time(cvc_clock *clock);
struct timespec cvc_monotonic_time(cvc_clock *clock);

// Registers a descriptor that stands in for a timer's.
bool cvc_add_timer(cvc_clock *clock, int descriptor);

// Arms a timer for a time since the clock was created, or disarms it for CVC_NEVER. Returns false if the descriptor
// does not belong to the clock.
bool cvc_set_timer(cvc_clock *clock, int descriptor, int64_t deadline);

// Records the epoll set that a timer was added to, or -1 for none.
void cvc_put_timer(cvc_clock *clock, int descriptor, int set);

// Returns when the first timer of an epoll set expires.
int64_t cvc_first_deadline(cvc_clock *clock, int set);

// Expires the timers that are due.
void cvc_expire(cvc_clock *clock);

// Asks the sleeper what to do in a wait that has found nothing ready.
enum cvc_sleep cvc_ask_sleeper(cvc_clock *clock, int64_t deadline);
