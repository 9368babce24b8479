// SPDX-License-Identifier: Apache-2.0

// Two arrays guarded by a one-word lock, and a futex for the sleeper: a minimal post to another thread.

#pragma once

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct entry {
  void (*run)(void *);
  void *context;
};

struct array {
  struct entry *entries;
  size_t count, capacity;
};

struct inbox {
  atomic_uint lock;  // 0 free, 1 held, 2 held and contended
  atomic_uint wakes;
  bool asleep;
  struct array posted, taken;
};

static inline long futex(atomic_uint *word, int operation, unsigned value, const struct timespec *until) {
  return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, until, NULL, FUTEX_BITSET_MATCH_ANY);
}

static inline void lock_slowly(atomic_uint *lock) {
  for (int i = 0; i < 40; i++) {
    __builtin_ia32_pause();
    unsigned unlocked = 0;
    if (atomic_load_explicit(lock, memory_order_relaxed) != 0) continue;
    if (atomic_compare_exchange_strong(lock, &unlocked, 1)) return;
  }
  while (atomic_exchange(lock, 2) != 0) futex(lock, FUTEX_WAIT_BITSET, 2, NULL);
}

static inline void inbox_lock(struct inbox *inbox) {
  unsigned unlocked = 0;
  if (!atomic_compare_exchange_strong(&inbox->lock, &unlocked, 1)) lock_slowly(&inbox->lock);
}

static inline void inbox_unlock(struct inbox *inbox) {
  if (atomic_exchange(&inbox->lock, 0) == 2) futex(&inbox->lock, FUTEX_WAKE, 1, NULL);
}

static inline void inbox_append(struct inbox *inbox, void (*run)(void *), void *context) {
  inbox_lock(inbox);
  struct array *posted = &inbox->posted;
  if (posted->count == posted->capacity) {
    posted->capacity = posted->capacity ? 2 * posted->capacity : 64;
    posted->entries = realloc(posted->entries, posted->capacity * sizeof *posted->entries);
  }
  posted->entries[posted->count++] = (struct entry){run, context};
  bool wakes = inbox->asleep;
  inbox->asleep = false;
  if (wakes) atomic_fetch_add(&inbox->wakes, 1);
  inbox_unlock(inbox);
  if (wakes) futex(&inbox->wakes, FUTEX_WAKE, 1, NULL);
}

/// Runs the work posted before the call, and returns its amount.
static inline size_t inbox_run(struct inbox *inbox) {
  inbox_lock(inbox);
  struct array posted = inbox->posted;
  inbox->posted = inbox->taken;
  inbox->taken = posted;
  inbox_unlock(inbox);
  for (size_t i = 0; i < posted.count; i++) posted.entries[i].run(posted.entries[i].context);
  inbox->taken.count = 0;
  return posted.count;
}

/// Sleeps until a post, or until a date of the monotonic clock.
static inline void inbox_sleep(struct inbox *inbox, int64_t until) {
  struct timespec date = {until / 1000000000, until % 1000000000};
  inbox_lock(inbox);
  bool sleeps = inbox->posted.count == 0;
  inbox->asleep = sleeps;
  unsigned wakes = atomic_load(&inbox->wakes);
  inbox_unlock(inbox);
  if (sleeps) futex(&inbox->wakes, FUTEX_WAIT_BITSET, wakes, until == INT64_MAX ? NULL : &date);
}
