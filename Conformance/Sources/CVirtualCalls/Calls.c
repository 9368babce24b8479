// SPDX-License-Identifier: Apache-2.0

// The system calls that other libraries find. Calls are passed on to the C library's own functions.

#include "Clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

// The C library's functions, once they have been looked up.
static _Atomic(void *) found_clock_gettime;
static _Atomic(void *) found_gettimeofday;
static _Atomic(void *) found_timerfd_create;
static _Atomic(void *) found_timerfd_settime;
static _Atomic(void *) found_epoll_ctl;
static _Atomic(void *) found_ppoll;

static void *find(_Atomic(void *) *found, const char *name) {
  void *function = atomic_load_explicit(found, memory_order_acquire);
  if (function == NULL) {
    function = dlsym(RTLD_NEXT, name);
    if (function == NULL) abort();
    atomic_store_explicit(found, function, memory_order_release);
  }
  return function;
}

// The clock is read often, even while the program is being loaded, when symbols cannot be looked up.
__attribute__((constructor)) static void find_clock(void) {
  find(&found_clock_gettime, "clock_gettime");
  find(&found_gettimeofday, "gettimeofday");
}

static int64_t nanoseconds(struct timespec time) { return time.tv_sec * SECOND + time.tv_nsec; }

int clock_gettime(clockid_t which, struct timespec *time) {
  cvc_clock *clock = cvc_joined;
  if (clock != NULL) {
    switch (which) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
      *time = cvc_wall_time(clock);
      return 0;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_BOOTTIME:
      *time = cvc_monotonic_time(clock);
      return 0;
    default:
      // The processor time of a thread or a process stays real.
      break;
    }
  }
  void *real = atomic_load_explicit(&found_clock_gettime, memory_order_acquire);
  if (real == NULL) return (int)syscall(SYS_clock_gettime, which, time);
  return ((int (*)(clockid_t, struct timespec *))real)(which, time);
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  cvc_clock *clock = cvc_joined;
  if (clock != NULL) {
    struct timespec now = cvc_wall_time(clock);
    *time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
  }
  void *real = atomic_load_explicit(&found_gettimeofday, memory_order_acquire);
  if (real == NULL) return (int)syscall(SYS_gettimeofday, time, zone);
  return ((int (*)(struct timeval *, void *))real)(time, zone);
}

int timerfd_create(clockid_t which, int flags) {
  cvc_clock *clock = cvc_joined;
  if (clock == NULL) {
    return ((int (*)(clockid_t, int))find(&found_timerfd_create, "timerfd_create"))(which, flags);
  }
  // Always nonblocking, as it is also read to reset the count.
  int descriptor = eventfd(0, EFD_NONBLOCK | ((flags & TFD_CLOEXEC) != 0 ? EFD_CLOEXEC : 0));
  if (descriptor < 0 || cvc_add_timer(clock, descriptor)) return descriptor;
  close(descriptor);
  errno = ENOMEM;
  return -1;
}

int timerfd_settime(int descriptor, int flags, const struct itimerspec *value, struct itimerspec *old) {
  cvc_clock *clock = cvc_joined;
  if (clock != NULL) {
    int64_t deadline = nanoseconds(value->it_value);
    if (deadline == 0) {
      deadline = CVC_NEVER;
    } else if ((flags & TFD_TIMER_ABSTIME) != 0) {
      deadline -= cvc_clock_monotonic_base() * SECOND;
    } else {
      deadline += cvc_clock_now(clock);
    }
    // A clock's timer expires once, and does not report its previous setting.
    bool is_plain = nanoseconds(value->it_interval) == 0 && old == NULL;
    if (is_plain && cvc_set_timer(clock, descriptor, deadline)) return 0;
  }
  typedef int (*settime)(int, int, const struct itimerspec *, struct itimerspec *);
  return ((settime)find(&found_timerfd_settime, "timerfd_settime"))(descriptor, flags, value, old);
}

int epoll_ctl(int set, int operation, int descriptor, struct epoll_event *event) {
  typedef int (*control)(int, int, int, struct epoll_event *);
  int answer = ((control)find(&found_epoll_ctl, "epoll_ctl"))(set, operation, descriptor, event);
  cvc_clock *clock = cvc_joined;
  if (clock != NULL && answer == 0 && operation != EPOLL_CTL_MOD) {
    cvc_put_timer(clock, descriptor, operation == EPOLL_CTL_ADD ? set : -1);
  }
  return answer;
}

int ppoll(struct pollfd *entries, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
  typedef int (*poll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
  poll real = (poll)find(&found_ppoll, "ppoll");
  cvc_clock *clock = cvc_joined;
  if (clock == NULL) return real(entries, count, timeout, mask);

  int64_t end = timeout == NULL ? CVC_NEVER : cvc_clock_now(clock) + nanoseconds(*timeout);
  struct timespec none = {0};
  while (true) {
    // A timer may have become due without a move of the time: it must expire before the descriptors are polled.
    cvc_expire(clock);
    int ready = real(entries, count, &none, mask);
    if (ready != 0 || cvc_clock_now(clock) >= end) return ready;

    int64_t deadline = end;
    for (nfds_t index = 0; index < count; index++) {
      int64_t first = cvc_first_deadline(clock, entries[index].fd);
      if (first < deadline) deadline = first;
    }
    switch (cvc_ask_sleeper(clock, deadline)) {
    case CVC_LOOK_AGAIN:
      break;
    case CVC_SLEEP_UNTIL_DEADLINE:
      if (deadline != CVC_NEVER) {
        cvc_clock_move(clock, deadline);
        break;
      }
      // There is no deadline, so only an event can end the wait.
      __attribute__((fallthrough));
    case CVC_WAIT_FOR_EVENTS:
      ready = real(entries, count, NULL, mask);
      if (ready != 0) return ready;
    }
  }
}
