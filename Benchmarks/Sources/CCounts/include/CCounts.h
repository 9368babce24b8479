// SPDX-License-Identifier: Apache-2.0

// Counts what a piece of a program costs, exactly: the allocations of a thread, because this is the program's
// allocator, and its system calls, because a parent that traces it stops it at each.

#pragma once

#include <stdbool.h>
#include <stddef.h>

/// How often the calling thread has asked for memory.
long counts_allocations(void);
/// From now on, or from now on not, the calling thread's system calls count.
void counts_mark(bool counts);
/// Runs this program with other arguments, and counts. Gives the calls that were made while they counted, or a negative
/// error number; the program's output is stored, and `status` is what it ended with.
long counts_trace(char *const arguments[], char *output, size_t size, int *status);
/// Whether a thread of this process sleeps in the kernel.
bool counts_is_asleep(int thread);
/// The kernel's number of the calling thread.
int counts_thread(void);
/// From now on, or from now on not, the calling thread's instructions count, if a parent steps through them.
void counts_step(bool counts);
/// Runs this program with other arguments, and steps through it wherever its instructions count. Gives their number, or
/// a negative error number.
long counts_instructions(char *const arguments[], int *status);
