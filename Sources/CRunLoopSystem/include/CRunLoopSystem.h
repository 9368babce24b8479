// SPDX-License-Identifier: Apache-2.0

// Thin wrappers of what Swift's Glibc module does not show. No logic lives here: a wrapper passes its arguments on and
// returns the kernel's answer, a negative errno for a failure.
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

// Sleeps while `*word` reads `expected`, until `deadline` (absolute, CLOCK_MONOTONIC; NULL: without end).
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

// Makes an epoll set that is closed on exec.
static inline int crl_epoll_create(void) {
  int answer = epoll_create1(EPOLL_CLOEXEC);
  return answer < 0 ? -errno : answer;
}

// Adds, changes or removes (EPOLL_CTL_…) a descriptor's interest; `data` comes back with each event.
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

// Waits for events, at most for `timeout` (NULL: indefinitely), by the nanosecond.
//
// It is called by its number, because the C library has a function for it only since glibc 2.35. The kernel reads two
// words of 64 bits whatever the size of `time_t`, and the size of the signal mask only if there is a mask.
static inline int crl_epoll_wait(int epoll, struct epoll_event *events, int count, const struct timespec *timeout) {
#if CRL_THREAD_SANITIZER
  // The sanitizer has the function, and learns from it what was ordered by the wait.
  int result = epoll_pwait2(epoll, events, count, timeout, NULL);
  return result < 0 ? -errno : result;
#else
  int64_t words[2] = {timeout ? timeout->tv_sec : 0, timeout ? timeout->tv_nsec : 0};
  long answer = syscall(SYS_epoll_pwait2, epoll, events, count, timeout ? words : NULL, NULL, (size_t)0);
  return answer < 0 ? -errno : (int)answer;
#endif
}

// The same by the millisecond, for kernels that have no other (negative: indefinitely).
static inline int crl_epoll_wait_milliseconds(int epoll, struct epoll_event *events, int count, int milliseconds) {
  int answer = epoll_wait(epoll, events, count, milliseconds);
  return answer < 0 ? -errno : answer;
}

// Accepts a connection, which is closed on exec.
int crl_accept(int descriptor);

// Makes a counter that can be waited for; it is closed on exec and does not block.
static inline int crl_event_create(void) {
  int answer = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return answer < 0 ? -errno : answer;
}

// Adds one to such a counter.
static inline int crl_event_write(int descriptor) {
  uint64_t one = 1;
  return write(descriptor, &one, sizeof one) < 0 ? -errno : 0;
}

// Sets such a counter back to zero.
static inline int crl_event_read(int descriptor) {
  uint64_t count;
  return read(descriptor, &count, sizeof count) < 0 ? -errno : 0;
}

// Makes a descriptor that can be waited for until a date of the monotonic clock; it is closed on exec and does not
// block.
static inline int crl_timer_create(void) {
  int answer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  return answer < 0 ? -errno : answer;
}

// Sets the date of such a descriptor, in nanoseconds (0: none), and makes it unready.
static inline int crl_timer_set(int descriptor, int64_t nanoseconds) {
  struct itimerspec date = {.it_value = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000}};
  return timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &date, NULL) < 0 ? -errno : 0;
}

// Makes a descriptor that becomes readable when the system has been suspended, or its wall clock was set.
int crl_clock_watch_create(void);

// Makes such a descriptor unreadable until the next time.
void crl_clock_watch_renew(int descriptor);

// What a descriptor is ready for now, of `events` (POLL…) and of errors and hang-ups.
static inline int crl_poll_now(int descriptor, short events) {
  struct pollfd entry = {.fd = descriptor, .events = events};
  int answer = poll(&entry, 1, 0);
  return answer < 0 ? -errno : entry.revents;
}

// What is known of a descriptor before its handler is called, to find out afterwards whether that has read anything.
typedef struct crl_read_check {
  int set;
  int64_t unread;
} crl_read_check;
void crl_read_check_begin(crl_read_check *check, int descriptor);
// 0: nothing was read; 1: something was read, or has arrived meanwhile, or that cannot be known.
int crl_read_check_end(crl_read_check *check, int descriptor);

static inline int crl_close(int descriptor) { return close(descriptor) < 0 ? -errno : 0; }

// libdispatch's main queue for a run loop: the descriptor that says that it has work, and the call that does the work.
// They are exported for CoreFoundation and declared in no header.
extern int _dispatch_get_main_queue_handle_4CF(void);
extern void _dispatch_main_queue_callback_4CF(void *message);

// The monotonic clock, in nanoseconds.
static inline int64_t crl_monotonic_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Sets by how many nanoseconds the kernel may let the calling thread's sleeps go on; 0: by as many as when the thread
// began.
static inline void crl_set_timer_slack(unsigned long nanoseconds) {
  prctl(PR_SET_TIMERSLACK, nanoseconds, 0UL, 0UL, 0UL);
}

// The monotonic clock as it was at the system's last clock tick, which is some milliseconds ago.
static inline int64_t crl_coarse_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// The wall clock, in nanoseconds since 1970.
static inline int64_t crl_wall_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Lets the processor fetch a small object, which may lie in two cache lines, before it is used.
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

// The number of the processor that the calling thread runs on; -1 if it is unknown. The thread may move at any time.
int crl_processor(void);

// On how many processors the calling thread may run; zero under a real-time policy, under which nobody else might run
// there.
int crl_shared_processors(void);

// On how many processors the calling thread may run, under any policy; those that are online if that cannot be read.
int crl_usable_processors(void);

// Lets other threads run on the calling thread's processor.
void crl_yield(void);

// Keeps the frame of a call-out's function on the stack: without something after it, the call would be a jump. Each
// function passes a number of its own: the optimizer merges functions that do the same, and one name would stand for
// both.
static inline void crl_keep_frame(int number) { __asm__ volatile("" ::"r"(number) : "memory"); }

// One pointer for each thread.
extern _Thread_local void *crl_thread_slot __attribute__((tls_model("initial-exec")));
static inline void *crl_thread_slot_get(void) { return crl_thread_slot; }
static inline void crl_thread_slot_set(void *value) { crl_thread_slot = value; }

// How many forks lie between this process and the first that used a run loop. Written in a forked child, by its only
// thread.
extern int32_t crl_fork_generation;
static inline int32_t crl_fork_generation_get(void) { return crl_fork_generation; }
static inline void crl_fork_generation_advance(void) { crl_fork_generation += 1; }

// What a thread object keeps on its thread: the promise of a loop, and the thread object.
extern _Thread_local void *crl_promise_slot __attribute__((tls_model("initial-exec")));
static inline void *crl_promise_slot_get(void) { return crl_promise_slot; }
static inline void crl_promise_slot_set(void *value) { crl_promise_slot = value; }
extern _Thread_local void *crl_object_slot __attribute__((tls_model("initial-exec")));
static inline void *crl_object_slot_get(void) { return crl_object_slot; }
static inline void crl_object_slot_set(void *value) { crl_object_slot = value; }

// The loop that stands in for the main one on a thread, in tests.
extern _Thread_local void *crl_main_slot __attribute__((tls_model("initial-exec")));
static inline void *crl_main_slot_get(void) { return crl_main_slot; }
static inline void crl_main_slot_set(void *value) { crl_main_slot = value; }

// What a library above is notified of, each with an object. It sets its hooks when it is loaded.
typedef void (*crl_hook)(void *object);
typedef enum crl_hook_kind {
  CRL_HOOK_PORT_BECAME_INVALID,
  CRL_HOOK_PORT_CAME_WITH_SOURCES,
  CRL_HOOK_THREAD_WILL_START,
  CRL_HOOK_THREAD_WILL_EXIT,
  // On the process's first thread, which is leaving; without an object.
  CRL_HOOK_MAIN_OBJECT_ENDS,
  CRL_HOOK_MAIN_LOOP_ENDS,
  // A loop has been made that becomes the main one, unless another thread's does.
  CRL_HOOK_MAIN_LOOP_IS_MADE,
  // The main loop can be found by every thread.
  CRL_HOOK_MAIN_LOOP_IS_KNOWN,
  // A loop is about to run an empty mode, or to wait, and knows no other loop of its thread.
  CRL_HOOK_LOOP_LOOKS_FOR_OTHER,
  // The memory for the records has been made; without an object.
  CRL_HOOK_RECORDS_ARE_MADE,
  CRL_HOOK_KINDS
} crl_hook_kind;
crl_hook crl_hook_get(crl_hook_kind kind);
crl_hook crl_hook_exchange(crl_hook_kind kind, crl_hook hook);

// Whether the process's first thread has left by `pthread_exit`, as it does in a program with an async main:
// libdispatch gives it up. The process goes on without it.
int crl_main_thread_has_left(void);

// Lets the calling thread, which is the process's first, be noticed when it leaves; for the only thread of a forked
// child.
void crl_main_thread_watch(void);

// What the calling thread's tests do to its system calls.
extern _Thread_local void *crl_fault_slot __attribute__((tls_model("initial-exec")));
static inline void *crl_fault_slot_get(void) { return crl_fault_slot; }
static inline void crl_fault_slot_set(void *value) { crl_fault_slot = value; }

// The kernel's id of the calling thread.
int crl_thread_id(void);

// Makes a detached thread; a stack of zero bytes is one of the usual size.
int crl_thread_create(size_t stack, void *(*body)(void *), void *context);

// Calls a Swift closure of type `() -> Void` by its two words. It takes no reference to the context: the caller sees to
// it that the closure lives.
void crl_closure_call(void *function, void *context);

// Lets a thread of this process run on so many processors only, by their numbers.
int crl_thread_set_affinity(int thread, const int *processors, int count);

// The processors that a thread of this process may run on: at most `capacity` of them; returns their number.
int crl_thread_get_affinity(int thread, int *processors, int capacity);

// Sets and reads the niceness (-20 to 19) of a thread of this process.
int crl_thread_set_niceness(int thread, int niceness);
int crl_thread_get_niceness(int thread, int *niceness);
