// SPDX-License-Identifier: Apache-2.0

// Guarded access to memory of a shared file. A page that is missing because a tmpfs is full or the file was truncated
// raises SIGBUS on the thread that touches it.

#include "CRunLoopToolKit.h"

#include <CRunLoopRecorder.h>
#include <CRunLoopSystem.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

// Where the thread continues if an access fails.
static _Thread_local sigjmp_buf *retreat;
static struct sigaction earlier;

static void handle(int number, siginfo_t *info, void *context) {
  if (retreat) siglongjmp(*retreat, 1);
  // Not one of our accesses.
  if (earlier.sa_flags & SA_SIGINFO) return earlier.sa_sigaction(number, info, context);
  if (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN) return earlier.sa_handler(number);
  // The access is repeated, and ends the process as it would have without this handler.
  sigaction(number, &earlier, NULL);
  if (info->si_code <= 0) raise(number);
}

static void install(void) {
  // The signal mask stays unchanged, so a jump out of the handler does not need to restore it.
  struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  // Stored before the handler can be called.
  if (sigaction(SIGBUS, NULL, &earlier) == 0) sigaction(SIGBUS, &action, NULL);
}

int crlt_guarded(void (*work)(void *context), void *context) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, install);
  // A signal handler may have interrupted another guarded access.
  sigjmp_buf *volatile outer = retreat;
  sigjmp_buf here;
  if (sigsetjmp(here, 0) != 0) {
    retreat = outer;
    return 0;
  }
  retreat = &here;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  work(context);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  retreat = outer;
  return 1;
}

typedef struct copying {
  const void *source;
  void *target;
  size_t size;
  int is_numbered, is_whole;
} copying;

static void copy(void *context) {
  copying *what = context;
  what->is_whole = 1;
  if (what->is_numbered) what->is_whole = crl_numbered_copy(what->source, what->target, what->size);
  else memcpy(what->target, what->source, what->size);
}

int crlt_copy(const void *source, void *target, size_t size, int is_numbered) {
  copying what = {source, target, size, is_numbered, 0};
  if (crlt_guarded(copy, &what)) return what.is_whole;
  memset(target, 0, size);
  return 0;
}

typedef struct holding {
  crl_header *header;
  int process, place;
  uint64_t start;
  uint32_t level;
  int is_elsewhere;
} holding;

static void take_hold(void *context) {
  holding *hold = context;
  crl_holders_drop_ended(hold->header, hold->is_elsewhere);
  for (int index = 0; index < CRL_HOLDERS && hold->place < 0; index++)
    if (crl_holder_take(&hold->header->holders[index], hold->process, hold->start, hold->level)) hold->place = index;
  crl_level_settle(hold->header);
}

int crlt_hold_take(void *header, int process, uint64_t start, uint32_t level, int is_elsewhere) {
  holding hold = {header, process, -EBUSY, start, level, is_elsewhere};
  return crlt_guarded(take_hold, &hold) ? hold.place : -EFAULT;
}

static void free_hold(void *context) {
  holding *hold = context;
  crl_holder_free(&hold->header->holders[hold->place], hold->process);
  crl_level_settle(hold->header);
}

int crlt_hold_free(void *header, int place, int process) {
  holding hold = {.header = header, .process = process, .place = place};
  return crlt_guarded(free_hold, &hold) ? 0 : -EFAULT;
}
