// SPDX-License-Identifier: Apache-2.0

// Shared by the C programs.
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static inline double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static inline double processor_time(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

// Prints one line for the driver to parse.
static inline void report(long requests, double seconds, double processor) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf(
    "{\"requests\": %ld, \"seconds\": %.6f, \"processor\": %.6f, \"peak\": %ld}\n", requests, seconds, processor,
    usage.ru_maxrss);
}

static inline void fail(const char *what) {
  perror(what);
  exit(1);
}
