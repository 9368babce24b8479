// SPDX-License-Identifier: Apache-2.0

// Protection of a process from others: a privileged process shows nothing, and truncation of a shared file by another
// process does not kill this one.

#include "CRunLoopRecorder.h"
#include "CRunLoopSystem.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

int crl_is_privileged(void) {
  // Treated as privileged if the kernel does not report it.
  return getauxval(AT_SECURE) != 0 || prctl(PR_GET_DUMPABLE, 0UL, 0UL, 0UL, 0UL) != 1;
}

const char *crl_instruments_environment(const char *name) { return crl_is_privileged() ? NULL : crl_environment(name); }

// Memory that others can truncate

static struct guarded {
  uintptr_t begin, end;
} guarded[CRL_GUARDED];
static crl_retreat retreat;
static struct sigaction earlier;
static uint32_t is_installed;

static int is_guarded(uintptr_t address) {
  for (int index = 0; index < CRL_GUARDED; index++) {
    uintptr_t begin = __atomic_load_n(&guarded[index].begin, __ATOMIC_ACQUIRE);
    if (begin && address >= begin && address < guarded[index].end) return 1;
  }
  return 0;
}

static void handle(int number, siginfo_t *info, void *context) {
  int error = errno;
  int is_ours = info->si_code == BUS_ADRERR && is_guarded((uintptr_t)info->si_addr) && retreat();
  errno = error;
  // The access is retried.
  if (is_ours) return;
  if (earlier.sa_flags & SA_SIGINFO) return earlier.sa_sigaction(number, info, context);
  if (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN) return earlier.sa_handler(number);
  // A signal that was sent to the process and is ignored, as it was before.
  if (info->si_code <= 0 && earlier.sa_handler == SIG_IGN) return;
  // The retried access, or the signal raised again, has the effect that it would have had without this handler.
  sigaction(number, &earlier, NULL);
  if (info->si_code <= 0) raise(number);
}

void crl_memory_guard(int place, const void *memory, size_t size, crl_retreat what) {
  retreat = what;
  guarded[place].end = (uintptr_t)memory + size;
  __atomic_store_n(&guarded[place].begin, (uintptr_t)memory, __ATOMIC_RELEASE);
  if (__atomic_exchange_n(&is_installed, 1, __ATOMIC_SEQ_CST)) return;
  struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  // Stored before the handler may need it.
  if (sigaction(SIGBUS, NULL, &earlier) == 0) sigaction(SIGBUS, &action, NULL);
}
