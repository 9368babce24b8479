// SPDX-License-Identifier: Apache-2.0

// Forks beside threads of this package that the program does not know.
//
// A child gets the locks of the Swift runtime as they are at the fork, and those held by another thread are never
// released in it. Threads that run Swift code by themselves, such as the watch for hangs, therefore prevent forks while
// they do, and a fork waits for all of them.

#ifndef CRUNLOOPFORKS_H
#define CRUNLOOPFORKS_H

#include <stdint.h>
#include <time.h>

// Prevents forks on other threads. Nothing that the program can delay may be called meanwhile: neither its code nor
// calls that wait.
void crl_fork_prevent(void);
void crl_fork_allow(void);

// Like crl_futex_wait, with forks allowed meanwhile.
int crl_fork_allow_during_wait(const uint32_t *word, uint32_t expected, const struct timespec *deadline);

// Called before a fork, and after it in the parent and in the child.
void crl_fork_begin(void);
void crl_fork_end(int is_child);

#endif
