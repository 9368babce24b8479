// SPDX-License-Identifier: Apache-2.0

// The jobs that end the sleeps of tasks, for runtimes that ask no executor to do so: Swift 6.2's.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// A job to be run at an instant of a clock (1: continuous, 2: suspending); a tolerance of less than zero is none.
// Returns false to leave the job to the runtime. Called by the task that sleeps.
typedef bool crl_sleep_until_function(int64_t seconds, int64_t nanoseconds, int64_t tolerance_seconds,
                                      int64_t tolerance_nanoseconds, int32_t clock, void *job);
// A job to be run after a time.
typedef bool crl_sleep_for_function(uint64_t nanoseconds, void *job);

// Asks these functions first from now on. To be called once in a process.
void crl_sleeps_observe(crl_sleep_until_function *until, crl_sleep_for_function *duration);
