// SPDX-License-Identifier: Apache-2.0

// Who has caused what a loop calls later, where that is not a post: an item that was signalled, added or moved, a message in a
// port, and a job that has passed through Swift's pool. A table of fixed size, which is written while something records: what
// finds no room takes the place of something older, and then nobody knows where that came from.

#include "CRunLoopSystem.h"

#include <stdatomic.h>

enum { PLACES = 8192, TRIES = 200 };

typedef struct entry {
  uint64_t turn;  // odd while it is written
  uint64_t key;
  uint64_t tag;  // what tells two things of the same address apart
  crl_origin origin;
} entry;

static entry entries[PLACES];

static inline uint64_t load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
static inline void store(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELAXED); }

static inline entry *place_of(uint64_t key, uint64_t tag) {
  uint64_t hash = (key >> 4 ^ tag * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
  return &entries[hash >> 32 & (PLACES - 2)];
}

// Takes an entry to be written; 0: another thread keeps it for too long.
static inline int lock(entry *place, uint64_t *turn) {
  for (int count = 0; count < TRIES; count++) {
    *turn = __atomic_load_n(&place->turn, __ATOMIC_RELAXED);
    if (!(*turn & 1) && __atomic_compare_exchange_n(&place->turn, turn, *turn + 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      __atomic_thread_fence(__ATOMIC_RELEASE);
      return 1;
    }
    crl_spin_hint();
  }
  return 0;
}

static inline void unlock(entry *place, uint64_t turn) { __atomic_store_n(&place->turn, turn + 2, __ATOMIC_RELEASE); }

void crl_origin_note(uint64_t key, uint64_t tag, crl_origin origin) {
  entry *place = place_of(key, tag);
  // One of two: the one that has it, else the older.
  if (!(load(&place->key) == key && load(&place->tag) == tag)) {
    entry *other = place + 1;
    int is_there = load(&other->key) == key && load(&other->tag) == tag;
    if (is_there || load(&other->origin.posted) < load(&place->origin.posted)) place = other;
  }
  uint64_t turn;
  if (!lock(place, &turn)) return;
  store(&place->key, key);
  store(&place->tag, tag);
  store(&place->origin.cause, origin.cause);
  store(&place->origin.posted, origin.posted);
  store(&place->origin.site, origin.site);
  unlock(place, turn);
}

// Copies what stands at one place, if it is what was asked for.
static inline int copy(entry *place, uint64_t key, uint64_t tag, crl_origin *origin) {
  uint64_t turn = __atomic_load_n(&place->turn, __ATOMIC_ACQUIRE);
  if (turn & 1 || load(&place->key) != key || load(&place->tag) != tag) return 0;
  origin->cause = load(&place->origin.cause);
  origin->posted = load(&place->origin.posted);
  origin->site = load(&place->origin.site);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return load(&place->turn) == turn;
}

int crl_origin_find(uint64_t key, uint64_t tag, crl_origin *origin) {
  entry *place = place_of(key, tag);
  return copy(place, key, tag, origin) || copy(place + 1, key, tag, origin);
}

void crl_origin_forget(uint64_t key, uint64_t tag) {
  entry *place = place_of(key, tag);
  for (int index = 0; index < 2; index++, place++) {
    uint64_t turn;
    if (load(&place->key) != key || load(&place->tag) != tag || !lock(place, &turn)) continue;
    if (load(&place->key) == key && load(&place->tag) == tag) {
      store(&place->key, 0);
      store(&place->origin.posted, 0);
    }
    unlock(place, turn);
  }
}

void crl_origin_note_here(uint64_t key, uint64_t tag, uint64_t site) {
  crl_origin_note(key, tag, (crl_origin){crl_cause(), crl_ticks(), site});
}

// Jobs of tasks

#define SWIFT __attribute__((swiftcall))

typedef SWIFT void (*enqueue_original)(void *job);
typedef SWIFT void (*enqueue_hook)(void *job, enqueue_original original);

extern enqueue_hook swift_task_enqueueGlobal_hook __attribute__((weak));
extern SWIFT void *swift_task_getCurrent(void) __attribute__((weak));

static enqueue_hook earlier_hook;

// The number of a job's task, which stands in the job's header: the memory of a task that has ended may be another's by now.
static inline uint64_t job_number(uint64_t job) {
  uint32_t number;
  memcpy(&number, (const char *)(uintptr_t)job + 36, sizeof number);
  return (uint64_t)number | 1ull << 40;
}

crl_origin crl_job_origin(uint64_t job) {
  crl_origin origin = {crl_cause(), 0, 0};
  if (!(origin.cause & CRL_CAUSE_THREAD) || sizeof(void *) != 8) return origin;
  // A thread without a loop works for a task, and that for the call-out that has made or resumed it.
  uint64_t current = swift_task_getCurrent ? (uint64_t)(uintptr_t)swift_task_getCurrent() : 0;
  crl_origin found;
  if (current && current != job && crl_origin_find(current, job_number(current), &found)) return found;
  if (crl_origin_find(job, job_number(job), &found)) return found;
  return origin;
}

void crl_job_arrived(uint64_t job) {
  if (sizeof(void *) == 8) crl_origin_forget(job, job_number(job));
}

static SWIFT void enqueue_noted(void *job, enqueue_original original) {
  if (crl_level_get() >= CRL_RECORD) {
    uint64_t address = (uint64_t)(uintptr_t)job;
    crl_origin origin = crl_job_origin(address);
    origin.posted = crl_ticks();
    crl_origin_note(address, job_number(address), origin);
  }
  if (earlier_hook) return earlier_hook(job, original);
  original(job);
}

void crl_tasks_watch(void) {
  static int is_done;
  if (is_done || sizeof(void *) != 8 || !&swift_task_enqueueGlobal_hook) return;
  is_done = 1;
  earlier_hook = __atomic_load_n(&swift_task_enqueueGlobal_hook, __ATOMIC_ACQUIRE);
  __atomic_store_n(&swift_task_enqueueGlobal_hook, enqueue_noted, __ATOMIC_RELEASE);
}
