// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopSystem.h"

#include <pthread.h>

// Held during a fork, so that the other variables are consistent in the child.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_changed = PTHREAD_COND_INITIALIZER;
// The threads that prevent forks, and those that wait to fork.
static int preventing, forking;
static _Thread_local int is_preventing;

void crl_fork_prevent(void) {
  pthread_mutex_lock(&mutex);
  while (forking > 0) pthread_cond_wait(&has_changed, &mutex);
  preventing++;
  is_preventing = 1;
  pthread_mutex_unlock(&mutex);
}

void crl_fork_allow(void) {
  pthread_mutex_lock(&mutex);
  is_preventing = 0;
  preventing--;
  pthread_cond_broadcast(&has_changed);
  pthread_mutex_unlock(&mutex);
}

int crl_fork_allow_during_wait(const uint32_t *word, uint32_t expected, const struct timespec *deadline) {
  crl_fork_allow();
  int answer = crl_futex_wait(word, expected, deadline);
  crl_fork_prevent();
  return answer;
}

void crl_fork_begin(void) {
  pthread_mutex_lock(&mutex);
  forking++;
  // A thread does not wait for itself.
  while (preventing > is_preventing) pthread_cond_wait(&has_changed, &mutex);
}

void crl_fork_end(int is_child) {
  forking--;
  if (is_child) {
    // No other thread exists here, and none waits.
    preventing = is_preventing;
    forking = 0;
    has_changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  }
  pthread_cond_broadcast(&has_changed);
  pthread_mutex_unlock(&mutex);
}
