// SPDX-License-Identifier: Apache-2.0

// Recording while a loop runs, without allocations, system calls or locks.

#include "CRunLoopRecorder.h"
#include "CRunLoopSystem.h"

#include <stdatomic.h>
#include <stdlib.h>

_Thread_local crl_recorder *crl_thread_recorder __attribute__((tls_model("initial-exec")));
static _Thread_local uint32_t thread_number __attribute__((tls_model("initial-exec")));

uint32_t crl_clock_is_processors = 0;

// Makes a writer's stores visible in order. On x86, this only prevents the compiler from reordering them.
static inline void publish(uint64_t *number, uint64_t value) { __atomic_store_n(number, value, __ATOMIC_RELEASE); }

// Relaxed: these writes happen between a fence after the entry's number was invalidated and the release of its new
// number, and these reads between two reads of the number. Values without such a number are hints that are checked
// again under a lock, or single independent words.
static inline uint64_t load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
static inline void store(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELAXED); }

// Called once for each thread.
__attribute__((noinline, cold, preserve_most)) static uint32_t ask_thread_number(void) {
  return thread_number = (uint32_t)crl_thread_id();
}

void crl_thread_number_forget(void) { thread_number = 0; }

// The calling thread's current activity.
static inline uint64_t cause(void) {
  crl_recorder *recorder = crl_thread_recorder;
  uint64_t open;
  if (recorder && (open = recorder->open)) return recorder->cause | open;
  uint32_t thread = thread_number;
  return CRL_CAUSE_THREAD | (thread ? thread : ask_thread_number());
}

uint64_t crl_system_ticks(void) { return (uint64_t)crl_monotonic_nanoseconds(); }

uint64_t crl_cause(void) { return cause(); }

// The causes of call-outs other than posts: an item that was signalled, added or moved, a message in a port, or a job
// that has passed through Swift's thread pool. The table has a fixed size; if it has no room, a new entry replaces an
// older one, whose origin is then unknown.

enum { PLACES = 8192, TRIES = 200 };

typedef struct entry {
  uint64_t turn;  // odd while being written
  uint64_t key;
  uint64_t tag;  // distinguishes items with the same address
  crl_origin origin;
} entry;

// One extra entry, because each lookup uses two adjacent ones.
static entry entries[PLACES + 1];

// Spreads the entries of an address over a few places, because several numbered messages may be queued in a port.
static inline __attribute__((always_inline)) entry *place_of(uint64_t key, uint64_t tag) {
  uint64_t spread = tag >> 63 ? tag & 15 : 0;
  return &entries[((key >> 4) + spread) * 0x9e3779b97f4a7c15ull >> 51];
}

// Locks an entry for writing. Returns 0 if another thread holds it for too long.
static inline __attribute__((always_inline)) int lock(entry *place, uint64_t *turn) {
  for (int count = 0; count < TRIES; count++) {
    *turn = load(&place->turn);
    // Relaxed on failure, because nothing in the entry is read then.
    if (!(*turn & 1) && __atomic_compare_exchange_n(&place->turn, turn, *turn + 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return 1;
    crl_spin_hint();
  }
  return 0;
}

static inline void unlock(entry *place, uint64_t turn) { publish(&place->turn, turn + 2); }

static inline __attribute__((always_inline)) void note(
  uint64_t key, uint64_t tag, uint64_t cause, uint64_t posted, uint64_t site
) {
  entry *place = place_of(key, tag);
  // Of the two candidates, use the one with this key, otherwise the older one.
  if (load(&place->key) != key) {
    entry *other = place + 1;
    if (load(&other->key) == key || load(&other->origin.posted) < load(&place->origin.posted)) place = other;
  }
  uint64_t turn;
  if (!lock(place, &turn)) return;
  // Makes the odd turn visible before the changes.
  __atomic_thread_fence(__ATOMIC_RELEASE);
  store(&place->key, key);
  store(&place->tag, tag);
  store(&place->origin.cause, cause);
  store(&place->origin.posted, posted);
  store(&place->origin.site, site);
  unlock(place, turn);
}

void crl_origin_note(uint64_t key, uint64_t tag, crl_origin origin) {
  note(key, tag, origin.cause, origin.posted, origin.site);
}

void crl_origin_note_here(uint64_t key, uint64_t tag, uint64_t site) { note(key, tag, cause(), crl_ticks(), site); }

// Copies the entry if it matches the request.
static inline __attribute__((always_inline)) int copy(entry *place, uint64_t key, uint64_t tag, crl_origin *origin) {
  uint64_t turn = __atomic_load_n(&place->turn, __ATOMIC_ACQUIRE);
  if (load(&place->key) != key || load(&place->tag) != tag || turn & 1) return 0;
  origin->cause = load(&place->origin.cause);
  origin->posted = load(&place->origin.posted);
  origin->site = load(&place->origin.site);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return load(&place->turn) == turn;
}

static inline __attribute__((always_inline)) int find(uint64_t key, uint64_t tag, crl_origin *origin) {
  entry *place = place_of(key, tag);
  return copy(place, key, tag, origin) || copy(place + 1, key, tag, origin);
}

int crl_origin_find(uint64_t key, uint64_t tag, crl_origin *origin) { return find(key, tag, origin); }

void crl_origin_forget(uint64_t key, uint64_t tag) {
  entry *place = place_of(key, tag);
  for (int index = 0; index < 2; index++, place++) {
    uint64_t turn;
    if (load(&place->key) != key || load(&place->tag) != tag || !lock(place, &turn)) continue;
    // Makes the odd turn visible before the changes.
    __atomic_thread_fence(__ATOMIC_RELEASE);
    if (load(&place->key) == key && load(&place->tag) == tag) {
      store(&place->key, 0);
      store(&place->origin.posted, 0);
    }
    unlock(place, turn);
  }
}

// Totals

uint64_t crl_tick_scale = 0;

static inline void add(uint64_t *word, uint64_t amount) { store(word, load(word) + amount); }

static inline uint64_t span(uint64_t begin, uint64_t end) {
  return end > begin ? (uint64_t)((unsigned __int128)(end - begin) * crl_tick_scale >> 32) : 0;
}

uint64_t crl_ticks_length(uint64_t ticks) { return span(0, ticks); }

// The busy ticks in a `busy` word at a tick, which may be slightly early if it is from another processor's clock.
static inline uint64_t busy_ticks(uint64_t busy, uint64_t now) {
  if (!(busy & 1)) return busy >> 1;
  uint64_t ticks = (now - (busy >> 1)) << 1 >> 1;
  return ticks >> 62 ? 0 : ticks;
}

static inline void add_time(crl_histogram *histogram, uint64_t time) {
  // The first step is below 1024 ns.
  unsigned step = 54 - (unsigned)__builtin_clzll(time | 512);
  add(&histogram->steps[step < CRL_STEPS ? step : CRL_STEPS - 1], 1);
  add(&histogram->sum, time);
  if (__builtin_expect(time > load(&histogram->longest), 0)) store(&histogram->longest, time);
}

// A hang is counted only at its end, because a call-out in progress may still turn out not to be one.
static void count_hang(crl_sums *sums, uint64_t now) {
  if (span(load(&sums->since), now) >= CRL_HANG) add(&sums->hangs, 1);
}

void crl_call_out_end(crl_recorder *recorder, uint64_t now) {
  crl_sums *sums = recorder->sums;
  uint64_t began = load(&sums->began), time = span(began, now);
  // The level was raised during the call-out.
  if (began == 0) return;
  store(&sums->began, 0);
  add_time(&sums->call_outs, time);
  if (__builtin_expect(time >= CRL_HANG, 0)) count_hang(sums, now);
}

void crl_lateness_add(crl_recorder *recorder, int64_t late) {
  if (recorder->level >= CRL_WATCH) add_time(&recorder->sums->lateness, late > 0 ? (uint64_t)late : 0);
}

void crl_late_note(crl_recorder *recorder, int64_t late, uint64_t code, int is_descriptor) {
  crl_details *details = recorder->details;
  if (recorder->level < CRL_WATCH) return;
  store(&details->late, (uint64_t)late);
  store(&details->late_code, code);
  store(&details->late_descriptor, is_descriptor != 0);
  publish(&details->late_count, load(&details->late_count) + 1);
}

void crl_sums_copy(const crl_recorder *recorder, crl_sums *sums) {
  crl_sums *kept = __atomic_load_n(&recorder->sums, __ATOMIC_ACQUIRE);
  memset(sums, 0, sizeof *sums);
  if (!kept) return;
  // Acquiring, because `since` comes after `began`.
  for (size_t index = 0; index < sizeof *sums / 8; index++)
    ((uint64_t *)sums)[index] = __atomic_load_n((uint64_t *)kept + index, __ATOMIC_ACQUIRE);
  // Repeated if the loop has fallen asleep or woken up in the meantime.
  uint64_t word = sums->busy;
  for (int turn = 0; turn < 8; turn++) {
    sums->busy = busy_ticks(word, crl_ticks());
    uint64_t now = __atomic_load_n(&kept->busy, __ATOMIC_ACQUIRE);
    if (now == word) break;
    word = now;
  }
  // A reader delayed between reading the word and the clock includes some time asleep, so the result is kept monotonic.
  uint64_t shown = load(&kept->shown);
  // Relaxed: no other data depends on the word.
  while (shown < sums->busy &&
         !__atomic_compare_exchange_n(&kept->shown, &shown, sums->busy, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue;
  if (shown > sums->busy) sums->busy = shown;
}

void crl_busy_note(crl_recorder *recorder, int is_busy, uint64_t now) {
  crl_sums *sums = recorder->sums;
  uint64_t busy = sums ? load(&sums->busy) : 0;
  if (!sums || (busy & 1) == (uint64_t)(is_busy != 0)) return;
  uint64_t ticks = busy_ticks(busy, now);
  store(&sums->busy, is_busy ? (now - ticks) << 1 | 1 : ticks << 1);
}

static inline __attribute__((always_inline)) void begin(
  crl_recorder *recorder, uint64_t kind, uint64_t code, uint64_t item, const crl_origin *origin
) {
  crl_face *face = recorder->face;
  uint64_t number = ++recorder->number;
  face->number = number;
  crl_record *record = &recorder->ring->records[number % CRL_RECORDS];
  // Relaxed: the fence makes this visible before the stores below.
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
  recorder->open = number;
  face->open = number;
  face->kind = (uint8_t)(kind >> CRL_KIND_SHIFT);
  record->begin = crl_ticks();
  publish(&record->number, number);
}

// Notes the start of the call-out and, if it was posted, adds its delay to the totals.
static inline __attribute__((always_inline)) void note_call_out(crl_recorder *recorder, uint64_t kind, uint64_t item) {
  uint64_t now = recorder->current->begin;
  crl_call_out_begin(recorder, now);
  if (kind > (uint64_t)CRL_KIND_JOB << CRL_KIND_SHIFT) return;
  const crl_post *post = &recorder->ring->posts[item % CRL_POSTS];
  if (load(&post->sequence) == item && item != 0) add_time(&recorder->sums->delays, span(load(&post->posted), now));
}

void crl_record_begin(crl_recorder *recorder, uint64_t kind, uint64_t code, uint64_t item) {
  begin(recorder, kind, code, item, NULL);
  note_call_out(recorder, kind, item);
}

void crl_record_begin_caused(crl_recorder *recorder, uint64_t kind, uint64_t code, uint64_t item, uint64_t tag) {
  crl_origin origin;
  if (find(item, tag, &origin)) {
    begin(recorder, kind, code, item, &origin);
  } else {
    begin(recorder, kind, code, item, NULL);
  }
  crl_call_out_begin(recorder, recorder->current->begin);
}

uint64_t crl_run_begin(crl_recorder *recorder, uint32_t kind, uint64_t site) {
  if (recorder->level < CRL_RECORD) return 0;
  begin(recorder, (uint64_t)kind << CRL_KIND_SHIFT, site, 0, NULL);
  uint64_t number = recorder->open;
  // A run encloses what follows, but is not a call-out.
  recorder->run = (uint32_t)number | recorder->run >> 32 << 32;
  crl_recorder_set_open(recorder, 0, 0);
  return number;
}

void crl_run_end(crl_recorder *recorder, uint64_t number) {
  if (number == 0) return;
  crl_record *record = &recorder->ring->records[number % CRL_RECORDS];
  if (record->number == number) record->end = crl_ticks();
}

crl_outer crl_recorder_nest(crl_recorder *recorder) {
  crl_sums *sums = recorder->sums;
  if (sums && load(&sums->began)) count_hang(sums, crl_ticks());
  crl_outer outer = {recorder->current, recorder->open, recorder->run, recorder->stack, sums ? load(&sums->began) : 0,
                     // Restored in the face later; nothing depends on it.
                     recorder->face->kind};
  if (sums) store(&sums->began, 0);
  recorder->run = (uint32_t)recorder->open | recorder->run >> 32 << 32;
  crl_recorder_set_open(recorder, 0, 0);
  return outer;
}

void crl_recorder_unnest(crl_recorder *recorder, crl_outer outer) {
  recorder->current = outer.current;
  recorder->run = outer.run;
  if (recorder->sums) {
    if (outer.began) store(&recorder->sums->since, crl_ticks());
    __atomic_store_n(&recorder->sums->began, outer.began, __ATOMIC_RELEASE);
  }
  crl_recorder_set_open(recorder, outer.open, outer.kind);
  recorder->face->stack = recorder->stack = outer.stack;
}

// Wakes a tool that waits for activity.
static inline void unpark(void) {
  // Relaxed: no ordering of this one load would prevent it from being made before the face is written. The tool
  // therefore checks the faces again a while after it has set the word.
  if (__builtin_expect(__atomic_load_n(&crl_instruments.parked, __ATOMIC_RELAXED), 0)) crl_unpark();
}

void crl_recorder_set_run(crl_recorder *recorder, uint32_t mode, uint32_t depth, int is_same) {
  recorder->face->mode = (uint8_t)mode;
  recorder->face->depth = depth;
  if (!is_same) recorder->face->stack = recorder->stack = (uint64_t)(uintptr_t)__builtin_frame_address(0);
  crl_watcher_stir();
  unpark();
  if (recorder->level >= CRL_WATCH && (depth == 0 || crl_recorder_depth(recorder) == 0))
    crl_busy_note(recorder, depth > 0 && !(crl_recorder_flags(recorder) & CRL_FACE_SLEEPS), crl_ticks());
  recorder->run = (uint32_t)recorder->run | (uint64_t)(mode & 255) << 40 | (uint64_t)(depth < 255 ? depth : 255) << 48;
}

void crl_record_name(uint64_t code) {
  crl_recorder *recorder = crl_thread_recorder;
  if (!recorder || !recorder->open) return;
  crl_record *record = recorder->current;
  if (record->number == recorder->open) record->code = code;
}

static void post_to_new_ring(crl_recorder *recorder, uint64_t sequence, uint64_t site, uint64_t job);

static inline __attribute__((always_inline)) void post_from(
  crl_recorder *recorder, uint64_t sequence, uint64_t site, uint64_t job
) {
  crl_ring *ring = __atomic_load_n(&recorder->ring, __ATOMIC_ACQUIRE);
  if (__builtin_expect(!ring, 0)) return post_to_new_ring(recorder, sequence, site, job);
  crl_post *post = &ring->posts[sequence % CRL_POSTS];
  // Relaxed: the fence makes this visible before the stores below.
  __atomic_store_n(&post->sequence, 0, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  store(&post->site, site);
  store(&post->cause, job ? crl_job_origin(job).cause : cause());
  store(&post->posted, crl_ticks());
  publish(&post->sequence, sequence);
}

// Called once for each loop. It is a separate function so that posts need not save registers for its calls.
__attribute__((noinline, cold)) static void post_to_new_ring(
  crl_recorder *recorder, uint64_t sequence, uint64_t site, uint64_t job
) {
  if (crl_recorder_ring(recorder)) post_from(recorder, sequence, site, job);
}

void crl_post_record(crl_recorder *recorder, uint64_t sequence, uint64_t site) {
  post_from(recorder, sequence, site, 0);
}

void crl_post_record_job(crl_recorder *recorder, uint64_t sequence, uint64_t job) {
  post_from(recorder, sequence, 0, job);
  crl_job_arrived(job);
}

void crl_face_note_wait(int thread) {
  crl_recorder *recorder = crl_thread_recorder;
  if (recorder) recorder->face->awaited = thread;
}

void crl_face_note_unread(crl_recorder *recorder, int descriptor, uint64_t code) {
  recorder->face->unread_code = code;
  recorder->face->unread = (uint32_t)descriptor + 1;
}

uint32_t crl_face_set_host(crl_recorder *recorder, uint32_t host) {
  uint32_t before = recorder->face->host;
  recorder->face->host = host;
  return before;
}

uint64_t crl_post_site(const crl_recorder *recorder, uint64_t sequence) {
  const crl_ring *ring = __atomic_load_n(&recorder->ring, __ATOMIC_ACQUIRE);
  if (!ring) return 0;
  const crl_post *post = &ring->posts[sequence % CRL_POSTS];
  return load(&post->sequence) == sequence ? load(&post->site) : 0;
}

void crl_host_ends(crl_recorder *recorder) {
  crl_face *face = recorder->face;
  if (face->kind != CRL_KIND_HOST) return;
  face->kind = 0;
  crl_sums *sums = recorder->sums;
  uint64_t now = crl_ticks();
  // Only a hang is added to the totals, because most of these spans only serve this loop and are no call-outs.
  if (load(&sums->began) && span(load(&sums->since), now) >= CRL_HANG) {
    crl_call_out_end(recorder, now);
  } else {
    store(&sums->began, 0);
  }
}

void crl_host_runs(crl_recorder *recorder) {
  crl_face *face = recorder->face;
  face->host_turns++;
  crl_host_ends(recorder);
  int flags = crl_recorder_flags(recorder);
  if (flags & CRL_FACE_HOSTED) crl_recorder_set_flags(recorder, flags & ~CRL_FACE_SLEEPS);
  if (recorder->level >= CRL_WATCH) {
    uint64_t now = crl_ticks();
    // Otherwise a call-out of this loop runs the host's, and is what hangs.
    if (face->kind == 0) {
      face->kind = CRL_KIND_HOST;
      crl_call_out_begin(recorder, now);
    }
    crl_busy_note(recorder, crl_recorder_depth(recorder) > 0, now);
  }
  crl_watcher_stir();
  unpark();
}

void crl_host_waits(crl_recorder *recorder) {
  crl_host_ends(recorder);
  int flags = crl_recorder_flags(recorder);
  if (!(flags & CRL_FACE_HOSTED)) return;
  crl_recorder_set_flags(recorder, flags | CRL_FACE_SLEEPS);
  if (recorder->level >= CRL_WATCH) crl_busy_note(recorder, 0, crl_ticks());
}

void crl_sleep_begin(crl_recorder *recorder, int64_t deadline, uint64_t waits, int is_hosted) {
  crl_face *face = recorder->face;
  crl_host_ends(recorder);
  face->deadline = deadline;
  face->waits = waits;
  face->sleeps = ++recorder->sleeps;
  if (recorder->level >= CRL_RECORD) {
    begin(recorder, (uint64_t)CRL_KIND_SLEEP << CRL_KIND_SHIFT, (uint64_t)deadline, 0, NULL);
    recorder->sleep = recorder->open;
    crl_busy_note(recorder, 0, recorder->current->begin);
    // A sleep is not a call-out.
    face->kind = 0;
    // Prevents recording indefinitely on behalf of a tool that was killed.
    if (__builtin_expect(recorder->sleeps % 1024 == 0, 0)) crl_holders_check();
  } else {
    face->number = ++recorder->number;
    if (recorder->level >= CRL_WATCH) crl_busy_note(recorder, 0, crl_ticks());
  }
  int flags = crl_recorder_flags(recorder) | CRL_FACE_SLEEPS;
  crl_recorder_set_flags(recorder, is_hosted ? flags | CRL_FACE_HOSTED : flags);
}

void crl_sleep_end(crl_recorder *recorder, int descriptor) {
  crl_host_ends(recorder);
  crl_recorder_set_flags(recorder, crl_recorder_flags(recorder) & ~(CRL_FACE_SLEEPS | CRL_FACE_HOSTED));
  crl_watcher_stir();
  unpark();
  if (recorder->level == CRL_OFF) return;
  uint64_t now = crl_ticks();
  crl_busy_note(recorder, crl_recorder_depth(recorder) > 0, now);
  crl_record *record = recorder->current;
  if (!recorder->open || recorder->open != recorder->sleep || record->number != recorder->open) return;
  record->cause = load(&recorder->waker);
  if (descriptor >= 0) {
    record->item = (uint64_t)descriptor;
    record->flags = CRL_RECORD_DESCRIPTOR;
  }
  record->end = now;
  crl_recorder_set_open(recorder, 0, 0);
}

void crl_wake_forget(crl_recorder *recorder) { store(&recorder->waker, 0); }

void crl_wake_note(crl_recorder *recorder) { store(&recorder->waker, cause()); }
