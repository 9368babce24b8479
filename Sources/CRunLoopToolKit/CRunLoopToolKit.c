// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopToolKit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

long crlt_read(int process, uint64_t address, void *buffer, size_t size) {
  struct iovec here = {buffer, size}, there = {(void *)(uintptr_t)address, size};
  ssize_t count = process_vm_readv(process, &here, 1, &there, 1, 0);
  return count < 0 ? -errno : count;
}

long crlt_write(int process, uint64_t address, const void *buffer, size_t size) {
  struct iovec here = {(void *)buffer, size}, there = {(void *)(uintptr_t)address, size};
  ssize_t count = process_vm_writev(process, &here, 1, &there, 1, 0);
  return count < 0 ? -errno : count;
}

static void store(void *context) {
  void **both = context;
  __atomic_store_n((uint32_t *)both[0], (uint32_t)(uintptr_t)both[1], __ATOMIC_SEQ_CST);
}

int crlt_store(uint32_t *word, uint32_t value) {
  void *both[2] = {word, (void *)(uintptr_t)value};
  return crlt_guarded(store, both);
}

void crlt_futex_wait(uint32_t *word, uint32_t expected, int milliseconds) {
  struct timespec limit = {milliseconds / 1000, milliseconds % 1000 * 1000000l};
  syscall(SYS_futex, word, FUTEX_WAIT, expected, &limit, NULL, 0);
}

int crlt_memory(void) { return memfd_create("runloop-copy", MFD_CLOEXEC | MFD_ALLOW_SEALING); }

int crlt_spawn_held(const char *const arguments[], const char *variable, const char *value, int memory, int *gate) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -errno;
  pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return -errno;
  }
  if (child == 0) {
    char token;
    close(ends[1]);
    while (read(ends[0], &token, 1) < 0 && errno == EINTR) {}
    setenv(variable, value, 1);
    char number[16];
    snprintf(number, sizeof number, "%d", memory);
    if (memory >= 3 && fcntl(memory, F_SETFD, 0) == 0) setenv("RUNLOOP_RECORD_MEMORY", number, 1);
    execvp(arguments[0], (char *const *)arguments);
    _exit(errno == ENOENT ? 127 : 126);
  }
  close(ends[0]);
  *gate = ends[1];
  return child;
}

void crlt_let_go(int gate) { close(gate); }

int crlt_wait(int process, int *status) {
  // An interrupt key also ends the child, whose end this process must report.
  void (*before)(int) = signal(SIGINT, SIG_IGN);
  pid_t answer;
  while ((answer = waitpid(process, status, 0)) < 0 && errno == EINTR) {}
  signal(SIGINT, before);
  return answer < 0 ? -errno : 0;
}

static volatile sig_atomic_t interruption;
static struct sigaction before_interruption[3];
static const int interrupting[3] = {SIGINT, SIGTERM, SIGHUP};

static void note_interruption(int number) {
  interruption = number;
  // A second signal ends the command immediately.
  for (int index = 0; index < 3; index++)
    if (interrupting[index] == number) sigaction(number, &before_interruption[index], NULL);
}

void crlt_interruption_begin(void) {
  interruption = 0;
  struct sigaction action = {.sa_handler = note_interruption};
  for (int index = 0; index < 3; index++) {
    sigaction(interrupting[index], NULL, &before_interruption[index]);
    sigaction(interrupting[index], &action, NULL);
  }
}

int crlt_interruption_has_come(void) { return interruption; }

void crlt_interruption_end(void) {
  for (int index = 0; index < 3; index++) sigaction(interrupting[index], &before_interruption[index], NULL);
}
