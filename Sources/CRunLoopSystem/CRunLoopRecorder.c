// SPDX-License-Identifier: Apache-2.0

// What is written while a loop runs: no allocation, no system call, no lock.

#include "CRunLoopSystem.h"

#include <stdatomic.h>
#include <stdlib.h>

_Thread_local crl_recorder *crl_thread_recorder __attribute__((tls_model("initial-exec")));
static _Thread_local uint32_t thread_number;

uint32_t crl_clock_is_tsc = 0;

// A writer's stores become visible in their order; on x86 this keeps the compiler from moving them.
static inline void publish(uint64_t *number, uint64_t value) { __atomic_store_n(number, value, __ATOMIC_RELEASE); }

static inline uint64_t load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
static inline void store(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELAXED); }

// Once for each thread.
__attribute__((noinline, cold, preserve_most)) static uint32_t ask_thread_number(void) {
  return thread_number = (uint32_t)crl_thread_id();
}

// What the calling thread is doing.
static inline uint64_t cause(void) {
  crl_recorder *recorder = crl_thread_recorder;
  uint64_t open;
  if (recorder && (open = recorder->face->open)) return recorder->cause | open;
  uint32_t thread = thread_number;
  return CRL_CAUSE_THREAD | (thread ? thread : ask_thread_number());
}

// The slow clock changes no register of the caller's, so that the fast one costs no saving.
__attribute__((noinline, cold, preserve_most)) static uint64_t system_ticks(void) {
  return (uint64_t)crl_monotonic_nanoseconds();
}

static inline uint64_t ticks(void) {
#if defined(__x86_64__)
  if (__builtin_expect(crl_clock_is_tsc, 1)) return __builtin_ia32_rdtsc();
#endif
  return system_ticks();
}

uint64_t crl_ticks(void) { return ticks(); }

uint64_t crl_cause(void) { return cause(); }

static inline __attribute__((always_inline)) void begin(
  crl_recorder *recorder, uint64_t kind, uint64_t code, uint64_t item, const crl_origin *origin
) {
  crl_face *face = recorder->face;
  uint64_t number = ++face->number;
  crl_record *record = &recorder->ring->records[number % CRL_RECORDS];
  __atomic_store_n(&record->number, 0, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  record->end = 0;
  record->code = code;
  record->item = item;
  uint64_t last = kind | recorder->run;
  if (origin) {
    record->cause = origin->cause;
    record->posted = origin->posted;
    record->item = origin->site;
    last |= (uint64_t)CRL_RECORD_CAUSED << 56;
  }
  memcpy(&record->outer, &last, sizeof last);
  recorder->current = record;
  face->open = number;
  face->kind = (uint8_t)(kind >> CRL_KIND_SHIFT);
  record->begin = ticks();
  publish(&record->number, number);
}

void crl_record_begin(crl_recorder *recorder, uint64_t kind, uint64_t code, uint64_t item) {
  begin(recorder, kind, code, item, NULL);
}

void crl_record_begin_caused(crl_recorder *recorder, uint64_t kind, uint64_t code, uint64_t item, uint64_t tag) {
  crl_origin origin;
  begin(recorder, kind, code, item, crl_origin_find(item, tag, &origin) ? &origin : NULL);
}

uint64_t crl_run_begin(crl_recorder *recorder, uint32_t kind, uint64_t site) {
  crl_face *face = recorder->face;
  if (face->level < CRL_RECORD) return 0;
  begin(recorder, (uint64_t)kind << CRL_KIND_SHIFT, site, 0, NULL);
  uint64_t number = face->open;
  // It is around what follows, and no call-out.
  recorder->run = (uint32_t)number | recorder->run >> 32 << 32;
  face->open = 0;
  face->kind = 0;
  return number;
}

void crl_run_end(crl_recorder *recorder, uint64_t number) {
  if (number == 0) return;
  crl_record *record = &recorder->ring->records[number % CRL_RECORDS];
  if (record->number == number) record->end = ticks();
}

void crl_record_end(crl_recorder *recorder) {
  crl_face *face = recorder->face;
  crl_record *record = recorder->current;
  // What was called in this call-out may have gone all around the ring.
  if (__builtin_expect(record->number == face->open, 1)) record->end = ticks();
  face->open = 0;
  face->kind = 0;
}

crl_outer crl_recorder_nest(crl_recorder *recorder) {
  crl_face *face = recorder->face;
  crl_outer outer = {recorder->current, face->open, recorder->run, face->stack, face->kind};
  recorder->run = (uint32_t)face->open | recorder->run >> 32 << 32;
  face->open = 0;
  face->kind = 0;
  return outer;
}

void crl_recorder_unnest(crl_recorder *recorder, crl_outer outer) {
  recorder->current = outer.current;
  recorder->run = outer.run;
  recorder->face->open = outer.open;
  recorder->face->stack = outer.stack;
  recorder->face->kind = outer.kind;
}

void crl_recorder_set_run(crl_recorder *recorder, uint32_t mode, uint32_t depth) {
  recorder->face->mode = (uint8_t)mode;
  recorder->face->depth = depth;
  recorder->face->stack = (uint64_t)(uintptr_t)__builtin_frame_address(0);
  crl_watcher_stir();
  recorder->run = (uint32_t)recorder->run | (uint64_t)(mode & 255) << 40 | (uint64_t)(depth < 255 ? depth : 255) << 48;
}

void crl_record_name(uint64_t code) {
  crl_recorder *recorder = crl_thread_recorder;
  if (!recorder || !recorder->face->open) return;
  crl_record *record = recorder->current;
  if (record->number == recorder->face->open) record->code = code;
}

static inline __attribute__((always_inline)) void post_from(
  crl_recorder *recorder, uint64_t sequence, uint64_t site, uint64_t cause
) {
  crl_ring *ring = __atomic_load_n(&recorder->ring, __ATOMIC_ACQUIRE);
  if (__builtin_expect(!ring, 0) && !(ring = crl_recorder_ring(recorder))) return;
  crl_post *post = &ring->posts[sequence % CRL_POSTS];
  __atomic_store_n(&post->sequence, 0, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  store(&post->site, site);
  store(&post->cause, cause);
  store(&post->posted, ticks());
  publish(&post->sequence, sequence);
}

void crl_post_record(crl_recorder *recorder, uint64_t sequence, uint64_t site) {
  post_from(recorder, sequence, site, cause());
}

void crl_post_record_job(crl_recorder *recorder, uint64_t sequence, uint64_t job) {
  post_from(recorder, sequence, 0, crl_job_origin(job).cause);
  crl_job_arrived(job);
}

void crl_face_note_wait(int thread) {
  crl_recorder *recorder = crl_thread_recorder;
  if (recorder) recorder->face->awaited = thread;
}

uint64_t crl_post_site(const crl_recorder *recorder, uint64_t sequence) {
  const crl_ring *ring = __atomic_load_n(&recorder->ring, __ATOMIC_RELAXED);
  if (!ring) return 0;
  const crl_post *post = &ring->posts[sequence % CRL_POSTS];
  return load(&post->sequence) == sequence ? load(&post->site) : 0;
}

void crl_sleep_begin(crl_recorder *recorder, int64_t deadline, uint64_t waits, int is_hosted) {
  crl_face *face = recorder->face;
  face->deadline = deadline;
  face->waits = waits;
  face->sleeps++;
  if (face->level >= CRL_RECORD) {
    store(&recorder->waker, 0);
    crl_record_begin(recorder, (uint64_t)CRL_KIND_SLEEP << CRL_KIND_SHIFT, (uint64_t)deadline, 0);
    // A sleep is no call-out.
    face->kind = 0;
  } else {
    face->number++;
  }
  int flags = crl_face_flags(face) | CRL_FACE_SLEEPS;
  crl_face_set_flags(face, is_hosted ? flags | CRL_FACE_HOSTED : flags);
}

void crl_sleep_end(crl_recorder *recorder, int descriptor) {
  crl_face *face = recorder->face;
  crl_face_set_flags(face, crl_face_flags(face) & ~(CRL_FACE_SLEEPS | CRL_FACE_HOSTED));
  crl_watcher_stir();
  crl_record *record = recorder->current;
  if (!face->open || record->number != face->open || record->kind != CRL_KIND_SLEEP) return;
  if (__builtin_expect(__atomic_load_n(&crl_instruments.parked, __ATOMIC_RELAXED), 0)) crl_unpark();
  record->cause = load(&recorder->waker);
  if (descriptor >= 0) {
    record->item = (uint64_t)descriptor;
    record->flags |= CRL_RECORD_DESCRIPTOR;
  }
  crl_record_end(recorder);
}

void crl_wake_note(crl_recorder *recorder) { store(&recorder->waker, cause()); }
