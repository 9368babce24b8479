// SPDX-License-Identifier: Apache-2.0

// Releases this process's levels in other processes when a signal ends it.

#include "CRunLoopToolKit.h"

#include <CRunLoopRecorder.h>
#include <CRunLoopSystem.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { GUARDED = 16 };

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT};
enum { ENDING = sizeof ending / sizeof *ending };

// Guards writes to the following variables. The handler does not take it.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct guarded {
  int is_used;
  int process;  // the owner of the header's memory, or 0 for this process
  uint64_t address;
} guarded[GUARDED];
static int count;
static struct sigaction before[ENDING];

typedef struct letting_go {
  crl_header *header;
  int found;
} letting_go;

static void free_places(void *context) {
  letting_go *what = context;
  int32_t own = getpid();
  for (int index = 0; index < CRL_HOLDERS; index++) what->found |= crl_holder_free(&what->header->holders[index], own);
  if (what->found) crl_level_settle(what->header);
}

// Releases this process's places in a header and returns whether it had any. A truncated file has none.
static int let_go(crl_header *header) {
  letting_go what = {header, 0};
  return crlt_guarded(free_places, &what) && what.found;
}

static void let_go_of_remote(int process, uint64_t address) {
  crl_header header;
  if (crlt_read(process, address, &header, sizeof header) != sizeof header || !let_go(&header)) return;
  crlt_write(process, address + offsetof(crl_header, holders), header.holders, sizeof header.holders);
  crlt_write(process, address + offsetof(crl_header, level), &header.level, sizeof header.level);
}

static void handle(int number) {
  int error = errno;
  for (int index = 0; index < GUARDED; index++) {
    const struct guarded *entry = &guarded[index];
    if (!__atomic_load_n(&entry->is_used, __ATOMIC_ACQUIRE)) continue;
    if (entry->process) let_go_of_remote(entry->process, entry->address);
    else let_go((crl_header *)(uintptr_t)entry->address);
  }
  // The process then ends as it would have. However, SIGQUIT must not reach Swift's crash handler, which starts
  // another program that would keep all descriptors of this process if it outlived it.
  for (int index = 0; index < ENDING; index++)
    if (ending[index] == number) sigaction(number, &before[index], NULL);
  if (number == SIGQUIT) signal(number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  raise(number);
  pthread_sigmask(SIG_UNBLOCK, &one, NULL);
  // The previous handler may return. This process no longer holds a level, and ends.
  signal(number, SIG_DFL);
  raise(number);
  errno = error;
}

static int is_ours(const struct sigaction *action) {
  return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == handle;
}

static void install(void) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
  sigfillset(&action.sa_mask);
  // The memory may be missing.
  sigdelset(&action.sa_mask, SIGBUS);
  for (int index = 0; index < ENDING; index++) {
    struct sigaction now;
    sigaction(ending[index], NULL, &now);
    // An ignored signal does not end the process.
    if (is_ours(&now) || (!(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_IGN)) continue;
    before[index] = now;
    sigaction(ending[index], &action, NULL);
  }
}

static void uninstall(void) {
  for (int index = 0; index < ENDING; index++) {
    struct sigaction now;
    sigaction(ending[index], NULL, &now);
    if (is_ours(&now)) sigaction(ending[index], &before[index], NULL);
  }
}

int crlt_level_guard(int process, uint64_t address) {
  int taken = -1;
  pthread_mutex_lock(&mutex);
  for (int index = 0; index < GUARDED && taken < 0; index++) {
    if (guarded[index].is_used) continue;
    guarded[index].process = process;
    guarded[index].address = address;
    __atomic_store_n(&guarded[index].is_used, 1, __ATOMIC_RELEASE);
    taken = index;
    if (count++ == 0) install();
  }
  pthread_mutex_unlock(&mutex);
  return taken;
}

void crlt_level_unguard(int place) {
  if (place < 0) return;
  pthread_mutex_lock(&mutex);
  __atomic_store_n(&guarded[place].is_used, 0, __ATOMIC_SEQ_CST);
  if (--count == 0) uninstall();
  pthread_mutex_unlock(&mutex);
}
