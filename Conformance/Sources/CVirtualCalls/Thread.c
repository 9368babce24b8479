// SPDX-License-Identifier: Apache-2.0

#include "Clock.h"

int cvc_thread_join(pthread_t thread, int seconds) {
  // The timeout is in real time, whatever clock this thread has joined.
  cvc_clock *joined = cvc_joined;
  cvc_joined = NULL;
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  cvc_joined = joined;
  limit.tv_sec += seconds;
  return pthread_timedjoin_np(thread, NULL, &limit);
}
