// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopSystem.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int is_preventing;
// Whether `crl_fork_begin` has taken the lock; it has not if its own thread prevents forks.
static _Thread_local int is_taken;

void crl_fork_prevent(void) {
  pthread_mutex_lock(&mutex);
  is_preventing = 1;
}

void crl_fork_allow(void) {
  is_preventing = 0;
  pthread_mutex_unlock(&mutex);
}

int crl_fork_allow_during_wait(const uint32_t *word, uint32_t expected, const struct timespec *deadline) {
  crl_fork_allow();
  int answer = crl_futex_wait(word, expected, deadline);
  crl_fork_prevent();
  return answer;
}

void crl_fork_begin(void) {
  is_taken = !is_preventing;
  if (is_taken) pthread_mutex_lock(&mutex);
}

void crl_fork_end(void) {
  if (is_taken) pthread_mutex_unlock(&mutex);
  is_taken = 0;
}
