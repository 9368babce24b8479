// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopSystem.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

_Thread_local void *crl_thread_slot __attribute__((tls_model("initial-exec")));
_Thread_local void *crl_promise_slot __attribute__((tls_model("initial-exec")));
_Thread_local void *crl_object_slot __attribute__((tls_model("initial-exec")));
_Thread_local void *crl_main_slot __attribute__((tls_model("initial-exec")));
_Thread_local void *crl_fault_slot __attribute__((tls_model("initial-exec")));

int32_t crl_fork_generation = 0;

static _Atomic(crl_hook) hooks[CRL_HOOK_KINDS];

crl_hook crl_hook_get(crl_hook_kind kind) { return atomic_load_explicit(&hooks[kind], memory_order_acquire); }

crl_hook crl_hook_exchange(crl_hook_kind kind, crl_hook hook) {
  return atomic_exchange_explicit(&hooks[kind], hook, memory_order_acq_rel);
}

int crl_accept(int descriptor) {
  int answer = accept4(descriptor, NULL, NULL, SOCK_CLOEXEC);
  return answer < 0 ? -errno : answer;
}

#ifndef TFD_TIMER_CANCEL_ON_SET
#define TFD_TIMER_CANCEL_ON_SET (1 << 1)
#endif

// Sets a date that is never reached, because the timer only serves to be cancelled by clock changes.
static int set_clock_watch(int descriptor) {
  struct itimerspec date = {.it_value = {.tv_sec = INT64_MAX / 4000000000}};
  return timerfd_settime(descriptor, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &date, NULL);
}

int crl_clock_watch_create(void) {
  int descriptor = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (descriptor < 0) return -errno;
  if (set_clock_watch(descriptor) == 0) return descriptor;
  int number = errno;
  close(descriptor);
  return -number;
}

void crl_clock_watch_renew(int descriptor) {
  uint64_t count;
  // Fails with ECANCELED, which is the event.
  ssize_t ignored = read(descriptor, &count, sizeof count);
  (void)ignored;
  set_clock_watch(descriptor);
}

int crl_thread_id(void) { return gettid(); }

int crl_thread_create(size_t stack, void *(*body)(void *), void *context) {
  pthread_attr_t attributes;
  int answer = pthread_attr_init(&attributes);
  if (answer != 0) return -answer;
  answer = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // The minimum depends on the processor, whose registers a signal handler's frame contains.
  long least = sysconf(_SC_THREAD_STACK_MIN);
  if (stack > 0 && least > 0 && stack < (size_t)least) stack = (size_t)least;
  if (answer == 0 && stack > 0) answer = pthread_attr_setstacksize(&attributes, stack);
  pthread_t thread;
  if (answer == 0) answer = pthread_create(&thread, &attributes, body, context);
  pthread_attr_destroy(&attributes);
  return -answer;
}

typedef __attribute__((swiftcall)) void (*crl_closure)(__attribute__((swift_context)) void *);

void crl_closure_call(void *function, void *context) { ((crl_closure)function)(context); }

int crl_thread_set_affinity(int thread, const int *processors, int count) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int index = 0; index < count; index++)
    if (processors[index] >= 0 && processors[index] < CPU_SETSIZE) CPU_SET(processors[index], &set);
  return sched_setaffinity(thread, sizeof set, &set) < 0 ? -errno : 0;
}

int crl_thread_get_affinity(int thread, int *processors, int capacity) {
  cpu_set_t set;
  if (sched_getaffinity(thread, sizeof set, &set) < 0) return -errno;
  int count = 0;
  for (int processor = 0; processor < CPU_SETSIZE && count < capacity; processor++)
    if (CPU_ISSET(processor, &set)) processors[count++] = processor;
  return count;
}

int crl_shared_processors(void) {
  int policy = sched_getscheduler(0);
  if (policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE) return 0;
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) < 0 ? 0 : CPU_COUNT(&set);
}

int crl_usable_processors(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  // The set is too small for the number of processors, or the call was rejected.
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 && online <= INT32_MAX ? (int)online : 1;
}

int crl_processor(void) { return sched_getcpu(); }

void crl_yield(void) { sched_yield(); }

int crl_thread_set_niceness(int thread, int niceness) {
  return setpriority(PRIO_PROCESS, (id_t)thread, niceness) < 0 ? -errno : 0;
}

int crl_thread_get_niceness(int thread, int *niceness) {
  errno = 0;
  *niceness = getpriority(PRIO_PROCESS, (id_t)thread);
  return *niceness == -1 && errno != 0 ? -errno : 0;
}

// Returns the number of unread bytes, the value of a counter, or one of these: `unread_none` if anything that is still
// ready was not read, `unread_unknown` if that cannot be determined.
enum { unread_none = -1, unread_unknown = -2 };

static int64_t unread_number(int descriptor) {
  int type = 0, listens = 0, count = 0;
  socklen_t length = sizeof type;
  if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0) {
    length = sizeof listens;
    getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length);
    // A datagram socket, or a listening one with pending connections.
    if (type != SOCK_STREAM || listens) return unread_unknown;
  }
  if (ioctl(descriptor, FIONREAD, &count) == 0) return count;
  char text[512];
  snprintf(text, sizeof text, "/proc/self/fdinfo/%d", descriptor);
  int file = open(text, O_RDONLY | O_CLOEXEC);
  if (file < 0) return unread_unknown;
  ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  text[size > 0 ? size : 0] = 0;
  const char *counter = strstr(text, "eventfd-count:");
  if (counter) return (int64_t)(strtoull(counter + sizeof "eventfd-count:" - 1, NULL, 16) & INT64_MAX);
  // Timers and signals are read as a whole. For other descriptors, such as epoll sets, the number is unknown.
  return strstr(text, "ticks:") || strstr(text, "sigmask:") ? unread_none : unread_unknown;
}

void crl_read_check_begin(crl_read_check *check, int descriptor) {
  check->unread = unread_number(descriptor);
  // Once its present state was consumed, this set reports only new arrivals.
  check->set = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};
  if (check->set < 0 || epoll_ctl(check->set, EPOLL_CTL_ADD, descriptor, &event) < 0) check->unread = unread_unknown;
  if (check->set >= 0) epoll_wait(check->set, &event, 1, 0);
}

int crl_read_check_end(crl_read_check *check, int descriptor) {
  struct pollfd entry = {.fd = descriptor, .events = POLLIN};
  struct epoll_event event;
  int has_arrived = check->set < 0 || epoll_wait(check->set, &event, 1, 0) != 0;
  if (check->set >= 0) close(check->set);
  if (poll(&entry, 1, 0) <= 0 || has_arrived) return 1;
  // An error or hang-up that the handler did not respond to.
  if (!(entry.revents & POLLIN)) return 0;
  return check->unread == unread_unknown || unread_number(descriptor) != check->unread;
}
