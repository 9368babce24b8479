// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopSystem.h"

#include <pthread.h>
#include <stdatomic.h>

// Created when the library is loaded. Destructors of a round run in the order of their keys, and libdispatch blocks
// the main thread of a program with an async main in a destructor of the first round, whose key it creates only at
// that point.
static pthread_key_t key;
static int has_key = 0;

// The process whose main thread has exited. A forked child has a different id.
static _Atomic(int) left_process = 0;

static void leave(void *value) {
  (void)value;
  atomic_store(&left_process, getpid());
  crl_hook object = crl_hook_get(CRL_HOOK_MAIN_OBJECT_ENDS), loop = crl_hook_get(CRL_HOOK_MAIN_LOOP_ENDS);
  if (object) object(NULL);
  if (loop) loop(NULL);
}

__attribute__((constructor)) static void watch(void) {
  has_key = pthread_key_create(&key, leave) == 0;
  if (crl_thread_id() == getpid()) crl_main_thread_watch();
}

void crl_main_thread_watch(void) {
  if (has_key) pthread_setspecific(key, &key);
}

int crl_main_thread_has_left(void) {
  int process = atomic_load(&left_process);
  return process != 0 && process == getpid();
}
