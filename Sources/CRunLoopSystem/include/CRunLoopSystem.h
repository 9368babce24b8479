// SPDX-License-Identifier: Apache-2.0

// Thin wrappers of system interfaces that Swift's Glibc module does not expose. They contain no logic: a wrapper
// passes on its arguments and returns the kernel's result, or a negative errno on failure.
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "CRunLoopSockets.h"
#include "CRunLoopMessages.h"
#include "CRunLoopUsers.h"
#include "CRunLoopSafety.h"
#include "CRunLoopSources.h"
#include "CRunLoopPlaced.h"
#include "CRunLoopForks.h"

// Sleeps while `*word` equals `expected`, until `deadline` (absolute, CLOCK_MONOTONIC; NULL: indefinitely).
static inline int crl_futex_wait(const uint32_t *word, uint32_t expected, const struct timespec *deadline) {
  long answer = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, deadline, NULL,
                        FUTEX_BITSET_MATCH_ANY);
  return answer < 0 ? -errno : (int)answer;
}

// Wakes at most `count` threads that sleep on `word`.
static inline int crl_futex_wake(const uint32_t *word, int count) {
  long answer = syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, NULL, NULL, 0);
  return answer < 0 ? -errno : (int)answer;
}

// Creates an epoll set that is closed on exec.
static inline int crl_epoll_create(void) {
  int answer = epoll_create1(EPOLL_CLOEXEC);
  return answer < 0 ? -errno : answer;
}

// Adds, modifies or removes (EPOLL_CTL_…) a descriptor. `data` is returned with each of its events.
static inline int crl_epoll_control(int epoll, int operation, int descriptor, uint32_t events, uint64_t data) {
  struct epoll_event event = {.events = events, .data = {.u64 = data}};
  return epoll_ctl(epoll, operation, descriptor, &event) < 0 ? -errno : 0;
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CRL_THREAD_SANITIZER 1
extern int epoll_pwait2(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);
#endif
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

// Waits for events for at most `timeout` (NULL: indefinitely), with nanosecond precision.
//
// It is called by number because the C library has a function for it only since glibc 2.35. The kernel reads two
// 64-bit words whatever the size of `time_t`, and ignores the size of the signal mask if there is no mask.
static inline int crl_epoll_wait(int epoll, struct epoll_event *events, int count, const struct timespec *timeout) {
#if CRL_THREAD_SANITIZER
  // The sanitizer intercepts this function, and derives the ordering established by the wait from it.
  int result = epoll_pwait2(epoll, events, count, timeout, NULL);
  return result < 0 ? -errno : result;
#else
  int64_t words[2] = {timeout ? timeout->tv_sec : 0, timeout ? timeout->tv_nsec : 0};
  long answer = syscall(SYS_epoll_pwait2, epoll, events, count, timeout ? words : NULL, NULL, (size_t)0);
  return answer < 0 ? -errno : (int)answer;
#endif
}

// Like crl_epoll_wait, with millisecond precision (negative: indefinitely), for kernels without epoll_pwait2.
static inline int crl_epoll_wait_milliseconds(int epoll, struct epoll_event *events, int count, int milliseconds) {
  int answer = epoll_wait(epoll, events, count, milliseconds);
  return answer < 0 ? -errno : answer;
}

// Accepts a connection as a descriptor that is closed on exec.
int crl_accept(int descriptor);

// Creates a pollable counter (eventfd) that is non-blocking and closed on exec.
static inline int crl_event_create(void) {
  int answer = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return answer < 0 ? -errno : answer;
}

// Adds one to a counter.
static inline int crl_event_write(int descriptor) {
  uint64_t one = 1;
  return write(descriptor, &one, sizeof one) < 0 ? -errno : 0;
}

// Resets a counter to zero.
static inline int crl_event_read(int descriptor) {
  uint64_t count;
  return read(descriptor, &count, sizeof count) < 0 ? -errno : 0;
}

// Creates a pollable timer (timerfd) on the monotonic clock that is non-blocking and closed on exec.
static inline int crl_timer_create(void) {
  int answer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  return answer < 0 ? -errno : answer;
}

// Sets a timer's date in nanoseconds (0: none), and makes the timer unready.
static inline int crl_timer_set(int descriptor, int64_t nanoseconds) {
  struct itimerspec date = {.it_value = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000}};
  return timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &date, NULL) < 0 ? -errno : 0;
}

// Creates a descriptor that becomes readable after the system was suspended or its wall clock was set.
int crl_clock_watch_create(void);

// Makes such a descriptor unreadable until the next such event.
void crl_clock_watch_renew(int descriptor);

// Returns the current readiness of a descriptor: those of `events` (POLL…), plus errors and hang-ups.
static inline int crl_poll_now(int descriptor, short events) {
  struct pollfd entry = {.fd = descriptor, .events = events};
  int answer = poll(&entry, 1, 0);
  return answer < 0 ? -errno : entry.revents;
}

// The state of a descriptor before its handler is called, with which to determine afterwards whether the handler read
// anything.
typedef struct crl_read_check {
  int set;
  int64_t unread;
} crl_read_check;
void crl_read_check_begin(crl_read_check *check, int descriptor);
// Returns 0 if nothing was read, and 1 if something was read or has arrived meanwhile, or if this cannot be determined.
int crl_read_check_end(crl_read_check *check, int descriptor);

static inline int crl_close(int descriptor) { return close(descriptor) < 0 ? -errno : 0; }

// The interface of libdispatch's main queue for a run loop: a descriptor that signals work, and a call that performs
// it. Both are exported for CoreFoundation, and declared in no header.
extern int _dispatch_get_main_queue_handle_4CF(void);
extern void _dispatch_main_queue_callback_4CF(void *message);

// The current time of the monotonic clock in nanoseconds.
static inline int64_t crl_monotonic_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Sets by how many nanoseconds the kernel may delay the end of the calling thread's sleeps (0: the thread's initial
// slack).
static inline void crl_set_timer_slack(unsigned long nanoseconds) {
  prctl(PR_SET_TIMERSLACK, nanoseconds, 0UL, 0UL, 0UL);
}

// The monotonic clock at the system's last clock tick, some milliseconds ago, in nanoseconds.
static inline int64_t crl_coarse_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// The wall clock in nanoseconds since 1970.
static inline int64_t crl_wall_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Prefetches a small object, which may span two cache lines.
static inline void crl_prefetch(const void *object) {
  __builtin_prefetch(object, 1);
  __builtin_prefetch((const char *)object + 64, 1);
}

// Hints to the processor that this is a spin loop.
static inline void crl_spin_hint(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield" ::: "memory");
#endif
}

// The number of the processor that the calling thread runs on, or -1 if unknown. The thread may move at any time.
int crl_processor(void);

// The number of processors on which the calling thread may run, or 0 under a real-time policy, which might keep all
// other threads from running there.
int crl_shared_processors(void);

// The number of processors on which the calling thread may run under any policy; if unknown, the number that are
// online.
int crl_usable_processors(void);

// Yields the calling thread's processor to other threads.
void crl_yield(void);

// Keeps a call-out function's frame on the stack, by preventing a tail call. Each function passes a different number,
// because the optimizer would otherwise merge identical functions, and one name would stand for several.
static inline void crl_keep_frame(int number) { __asm__ volatile("" ::"r"(number) : "memory"); }

// The calling thread's loop slot.
extern _Thread_local void *crl_thread_slot __attribute__((tls_model("initial-exec")));
static inline void *crl_thread_slot_get(void) { return crl_thread_slot; }
static inline void crl_thread_slot_set(void *value) { crl_thread_slot = value; }

// The number of forks between the first process that used a run loop and this one. Written in a forked child by its
// only thread.
extern int32_t crl_fork_generation;
static inline int32_t crl_fork_generation_get(void) { return crl_fork_generation; }
static inline void crl_fork_generation_advance(void) { crl_fork_generation += 1; }

// The calling thread's promise of a loop, and its thread object.
extern _Thread_local void *crl_promise_slot __attribute__((tls_model("initial-exec")));
static inline void *crl_promise_slot_get(void) { return crl_promise_slot; }
static inline void crl_promise_slot_set(void *value) { crl_promise_slot = value; }
extern _Thread_local void *crl_object_slot __attribute__((tls_model("initial-exec")));
static inline void *crl_object_slot_get(void) { return crl_object_slot; }
static inline void crl_object_slot_set(void *value) { crl_object_slot = value; }

// The loop that replaces the main loop on the calling thread, in tests.
extern _Thread_local void *crl_main_slot __attribute__((tls_model("initial-exec")));
static inline void *crl_main_slot_get(void) { return crl_main_slot; }
static inline void crl_main_slot_set(void *value) { crl_main_slot = value; }

// Events reported to a higher library, each with an object. The library sets its hooks when it is loaded.
typedef void (*crl_hook)(void *object);
typedef enum crl_hook_kind {
  CRL_HOOK_PORT_BECAME_INVALID,
  CRL_HOOK_PORT_CAME_WITH_SOURCES,
  CRL_HOOK_THREAD_WILL_START,
  CRL_HOOK_THREAD_WILL_EXIT,
  // Called on the process's main thread as it exits, without an object.
  CRL_HOOK_MAIN_OBJECT_ENDS,
  CRL_HOOK_MAIN_LOOP_ENDS,
  // A loop was created that becomes the main loop unless another thread's does.
  CRL_HOOK_MAIN_LOOP_IS_MADE,
  // The main loop is now accessible to every thread.
  CRL_HOOK_MAIN_LOOP_IS_KNOWN,
  // A loop is about to run an empty mode, or to wait, and knows of no other loop on its thread.
  CRL_HOOK_LOOP_LOOKS_FOR_OTHER,
  // The memory for the records has been allocated; without an object.
  CRL_HOOK_RECORDS_ARE_MADE,
  CRL_HOOK_KINDS
} crl_hook_kind;
crl_hook crl_hook_get(crl_hook_kind kind);
crl_hook crl_hook_exchange(crl_hook_kind kind, crl_hook hook);

// Whether the process's main thread has exited with `pthread_exit`, while the process continues. libdispatch does this
// in a program with an async main.
int crl_main_thread_has_left(void);

// Makes the exit of the calling thread, which must be the process's main thread or the only thread of a forked child,
// detectable.
void crl_main_thread_watch(void);

// The calling thread's fault plan, in tests.
extern _Thread_local void *crl_fault_slot __attribute__((tls_model("initial-exec")));
static inline void *crl_fault_slot_get(void) { return crl_fault_slot; }
static inline void crl_fault_slot_set(void *value) { crl_fault_slot = value; }

// The kernel's id of the calling thread.
int crl_thread_id(void);

// Creates a detached thread. If `stack` is 0, it has a stack of the default size.
int crl_thread_create(size_t stack, void *(*body)(void *), void *context);

// Calls a Swift closure of type `() -> Void` given its two words. It does not retain the context, so the caller must
// keep the closure alive.
void crl_closure_call(void *function, void *context);

// Restricts a thread of this process to the given processors.
int crl_thread_set_affinity(int thread, const int *processors, int count);

// Stores up to `capacity` processors on which a thread of this process may run, and returns their number.
int crl_thread_get_affinity(int thread, int *processors, int capacity);

// Sets and reads the niceness (-20 to 19) of a thread of this process.
int crl_thread_set_niceness(int thread, int niceness);
int crl_thread_get_niceness(int thread, int *niceness);
