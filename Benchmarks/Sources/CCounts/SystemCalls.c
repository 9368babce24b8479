// SPDX-License-Identifier: Apache-2.0

#include "CCounts.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Numbers of nonexistent system calls: the kernel fails them, and the tracer recognizes them.
enum { MARK_OFF = 0x70c0de0, MARK_ON = 0x70c0de1 };

void counts_mark(bool counts) { syscall(counts ? MARK_ON : MARK_OFF); }
int counts_thread(void) { return (int)syscall(SYS_gettid); }

bool counts_is_asleep(int thread) {
  char path[64], state = 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  FILE *file = fopen(path, "r");
  if (!file) return false;
  // The name in parentheses precedes the state.
  int character;
  while ((character = fgetc(file)) != EOF && character != ')') {}
  if (fscanf(file, " %c", &state) != 1) state = 0;
  fclose(file);
  return state == 'S';
}

// The threads that are counted. The traced programs have few.
enum { THREADS = 256 };
static struct {
  pid_t thread;
  bool counts;
} threads[THREADS];

static bool *counting(pid_t thread) {
  for (int i = 0; i < THREADS; i++) {
    if (threads[i].thread == 0) threads[i].thread = thread;
    if (threads[i].thread == thread) return &threads[i].counts;
  }
  fprintf(stderr, "a traced program has more threads than were thought of\n");
  exit(1);
}

static long note_call(pid_t thread) {
  struct __ptrace_syscall_info info;
  memset(&info, 0, sizeof info);
  if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, (void *)sizeof info, &info) < 0) {
    // The end of the process may have ended a thread that is stopped at a call.
    return errno == ESRCH ? 0 : -errno;
  }
  if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return 0;
  bool *counts = counting(thread);
  switch (info.entry.nr) {
    case MARK_ON: *counts = true; return 0;
    case MARK_OFF: *counts = false; return 0;
    default: return *counts ? 1 : 0;
  }
}

static void be_traced(char *const arguments[], int output) {
  dup2(output, 1);
  ptrace(PTRACE_TRACEME, 0, NULL, NULL);
  raise(SIGSTOP);
  execv("/proc/self/exe", arguments);
  _exit(127);
}

// Lets the threads run from call to call until the process has ended.
static long follow(pid_t child, int *status) {
  long calls = 0;
  for (;;) {
    int state;
    pid_t thread = waitpid(-1, &state, __WALL);
    if (thread < 0) return calls;
    if (WIFEXITED(state) || WIFSIGNALED(state)) {
      if (thread != child) continue;
      *status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
      return calls;
    }
    int signal = WSTOPSIG(state), delivered = 0;
    if (signal == (SIGTRAP | 0x80)) {
      long noted = note_call(thread);
      if (noted < 0) return noted;
      calls += noted;
    } else if (signal != SIGTRAP && signal != SIGSTOP) {
      delivered = signal;
    }
    ptrace(PTRACE_SYSCALL, thread, NULL, (void *)(intptr_t)delivered);
  }
}

long counts_trace(char *const arguments[], char *output, size_t size, int *status) {
  int ends[2];
  memset(threads, 0, sizeof threads);
  *status = -1;
  if (pipe(ends) != 0) return -errno;
  pid_t child = fork();
  if (child < 0) return -errno;
  if (child == 0) be_traced(arguments, ends[1]);
  close(ends[1]);
  int state;
  waitpid(child, &state, 0);
  intptr_t options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)options) < 0) {
    long error = -errno;
    kill(child, SIGKILL);
    waitpid(child, &state, 0);
    close(ends[0]);
    return error;
  }
  ptrace(PTRACE_SYSCALL, child, NULL, NULL);
  long calls = follow(child, status);
  // The output is small enough to fit in the pipe.
  ssize_t length = read(ends[0], output, size - 1);
  output[length > 0 ? length : 0] = 0;
  close(ends[0]);
  return calls;
}
