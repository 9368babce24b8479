// Thin wrappers of what Swift's Glibc module does not show. No logic lives here: a wrapper passes its arguments on and
// gives back the kernel's answer, a negative errno for a failure.
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

// The monotonic clock, in nanoseconds.
static inline int64_t crl_monotonic_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Tells the processor that this is a spin loop.
static inline void crl_spin_hint(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield" ::: "memory");
#endif
}

// Keeps the frame of a call-out's function on the stack: without something after it, the call would be a jump.
static inline void crl_keep_frame(void) { __asm__ volatile("" ::: "memory"); }

// One pointer for each thread.
extern _Thread_local void *crl_thread_slot __attribute__((tls_model("initial-exec")));
static inline void *crl_thread_slot_get(void) { return crl_thread_slot; }
static inline void crl_thread_slot_set(void *value) { crl_thread_slot = value; }

// The kernel's id of the calling thread.
int crl_thread_id(void);
