// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CCounts.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// The tracer intercepts the signals, so they are never delivered.
void counts_step(bool counts) { syscall(SYS_tgkill, getpid(), counts_thread(), counts ? SIGUSR1 : SIGUSR2); }

static void be_stepped(char *const arguments[]) {
  ptrace(PTRACE_TRACEME, 0, NULL, NULL);
  raise(SIGSTOP);
  execv("/proc/self/exe", arguments);
  _exit(127);
}

static long count_steps(char *const arguments[], int *status) {
  *status = -1;
  pid_t child = fork();
  if (child < 0) return -errno;
  if (child == 0) be_stepped(arguments);
  int state;
  waitpid(child, &state, 0);
  intptr_t options = PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)options) < 0) {
    long error = -errno;
    kill(child, SIGKILL);
    waitpid(child, &state, 0);
    return error;
  }
  ptrace(PTRACE_CONT, child, NULL, NULL);
  long steps = 0;
  pid_t stepped = 0;
  for (;;) {
    pid_t thread = waitpid(-1, &state, __WALL);
    if (thread < 0) return steps;
    if (WIFEXITED(state) || WIFSIGNALED(state)) {
      if (thread != child) continue;
      *status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
      return steps;
    }
    int signal = WSTOPSIG(state), delivered = 0;
    if (signal == SIGUSR1) {
      stepped = thread;
    } else if (signal == SIGUSR2) {
      stepped = 0;
    } else if (signal == SIGTRAP) {
      if (thread == stepped) steps++;
    } else if (signal != SIGSTOP) {
      delivered = signal;
    }
    ptrace(thread == stepped ? PTRACE_SINGLESTEP : PTRACE_CONT, thread, NULL, (void *)(intptr_t)delivered);
  }
}

// Each step switches to the tracer and back, which is fifty times slower across two processors than on one.
long counts_instructions(char *const arguments[], int *status) {
  cpu_set_t usual, one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  if (sched_getaffinity(0, sizeof usual, &usual) != 0 || sched_setaffinity(0, sizeof one, &one) != 0) return -errno;
  long steps = count_steps(arguments, status);
  sched_setaffinity(0, sizeof usual, &usual);
  return steps;
}
