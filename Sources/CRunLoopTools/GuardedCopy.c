// SPDX-License-Identifier: Apache-2.0

// Copies memory of a file that others have: a page that a full tmpfs has no room for, or that somebody has cut off, is
// a signal for whoever touches it.

#include "CRunLoopTools.h"

#include <CRunLoopSystem.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

// Where the copy of the thread that is under way goes on if it cannot.
static _Thread_local sigjmp_buf *retreat;
static struct sigaction earlier;

static void handle(int number) {
  if (retreat) siglongjmp(*retreat, 1);
  // It is no copy of ours: the access is made again, and whoever was here before is asked.
  sigaction(number, &earlier, NULL);
}

static void install(void) {
  // The mask stays as it is, so that a jump out of the handler need not restore it.
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_NODEFER | SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &earlier);
}

int crlt_copy(const void *source, void *target, size_t size, int is_numbered) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, install);
  sigjmp_buf here;
  if (sigsetjmp(here, 0) != 0) {
    retreat = NULL;
    memset(target, 0, size);
    return 0;
  }
  retreat = &here;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  int is_whole = 1;
  if (is_numbered) is_whole = crl_numbered_copy(source, target, size);
  else memcpy(target, source, size);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  retreat = NULL;
  return is_whole;
}
