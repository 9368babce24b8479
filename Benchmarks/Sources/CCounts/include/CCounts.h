// SPDX-License-Identifier: Apache-2.0

// Counts the exact cost of parts of a program: a thread's allocations, because this is the program's allocator, and
// its system calls, because a tracing parent stops it at each.

#pragma once

#include <stdbool.h>
#include <stddef.h>

/// Returns the number of allocations that the calling thread has made.
long counts_allocations(void);
/// Starts or stops counting the calling thread's system calls.
void counts_mark(bool counts);
/// Runs this program with other arguments, and returns the number of calls made while they were counted, or a
/// negative error number. Stores the program's output, and its exit status in `status`.
long counts_trace(char *const arguments[], char *output, size_t size, int *status);
/// Whether a thread of this process sleeps in the kernel.
bool counts_is_asleep(int thread);
/// The kernel's number of the calling thread.
int counts_thread(void);
/// Starts or stops counting the calling thread's instructions, if a parent steps through them.
void counts_step(bool counts);
/// Runs this program with other arguments, and steps through it while its instructions are counted. Returns their
/// number, or a negative error number.
long counts_instructions(char *const arguments[], int *status);
