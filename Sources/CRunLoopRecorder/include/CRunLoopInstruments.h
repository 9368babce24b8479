// SPDX-License-Identifier: Apache-2.0

// The state that run loops publish for inspection from outside: faces, records of call-outs, and posts, in memory
// shared through a file on tmpfs. The layout is a contract with programs outside this package: it is little-endian,
// has a CRL_LAYOUT_VERSION in its header, and does not change within a version.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

// "RLRINGS1"
#define CRL_MAGIC 0x3153474e49524c52ull

enum {
  CRL_LAYOUT_VERSION = 3,
  // The largest page size of any Linux on which Swift runs. Sections that are mapped separately start at multiples of
  // it, so that the file layout is the same on all systems.
  CRL_LARGEST_PAGE = 65536,
  CRL_KIND_SHIFT = 32,
  CRL_FACES = 2048,
  // Only the first faces have a ring, which their loop takes when it first records.
  CRL_RINGS = 64,
  CRL_RECORDS = 2048,
  CRL_POSTS = 4096,
  CRL_MODES = 64,
  CRL_IMAGES = 128,
  CRL_RING_SIZE = 256 * 1024,
  CRL_BOARD_SIZE = 22 * CRL_LARGEST_PAGE + CRL_RINGS * CRL_RING_SIZE,
  CRL_HOLDERS = 8,
  CRL_KINDS = 14,
};

typedef enum crl_level { CRL_OFF = 0, CRL_WATCH = 1, CRL_RECORD = 2 } crl_level;

// The kinds of call-outs and other activities of a loop.
typedef enum crl_kind {
  CRL_KIND_NONE,
  CRL_KIND_BLOCK,
  CRL_KIND_PERFORM,
  CRL_KIND_JOB,
  CRL_KIND_TIMER,
  CRL_KIND_SOURCE0,
  CRL_KIND_SOURCE1,
  CRL_KIND_OBSERVER,
  CRL_KIND_MAIN_QUEUE,
  CRL_KIND_SCHEDULE,
  CRL_KIND_CANCEL,
  CRL_KIND_HOST,
  CRL_KIND_SLEEP,
  CRL_KIND_RUN,
} crl_kind;

// The kinds of host loops in which our loops are guests.
typedef enum crl_host { CRL_HOST_NONE, CRL_HOST_PROGRAM, CRL_HOST_CORE_FOUNDATION, CRL_HOST_GLIB, CRL_HOST_LIBUV } crl_host;

enum {
  // The flags of a face.
  CRL_FACE_SLEEPS = 1,
  CRL_FACE_HOSTED = 2,
  CRL_FACE_VIRTUAL = 4,
  CRL_FACE_MAIN = 8,
  // The loop's thread has ended, or no longer has the loop.
  CRL_FACE_ENDED = 16,
  // The loop's thread is in a call that is expected to take long.
  CRL_FACE_EXPECTS = 32,
  // The flags of a record. A file descriptor was ready, and its number is in `item`.
  CRL_RECORD_DESCRIPTOR = 1,
  // The cause of the call-out is known: `cause`, `posted` and `item` contain the cause, its time and its place.
  CRL_RECORD_CAUSED = 2,
  // The clocks used for `begin`, `end` and `posted`.
  CRL_CLOCK_MONOTONIC = 0,
  // The processor's clock: the time-stamp counter on x86, the virtual counter on arm64.
  CRL_CLOCK_PROCESSOR = 1,
};

// The durations in nanoseconds from which a call-out counts as a hang, and a timer as late.
#define CRL_HANG 250000000ll
#define CRL_LATE 100000000ll

// A cause is either the record of a loop's call-out or a thread.
#define CRL_CAUSE_THREAD (1ull << 63)
#define CRL_CAUSE_SLOT_SHIFT 48

// Set in the place of a post if the poster waits until the work is done.
#define CRL_SITE_WAITS (1ull << 63)

// Set in a record's code if it is the place of a post, standing for a function that is not known.
#define CRL_CODE_PLACE (1ull << 63)

// The record of a call-out or sleep, in one cache line. A reader copies it, rereads the number, and discards the copy
// if the number has changed.
typedef struct crl_record {
  uint64_t number;  // 0 while being written; ascends within a ring, with gaps
  uint64_t begin;
  uint64_t end;  // 0 while in progress
  uint64_t posted;  // valid if the flag CAUSED is set; for a block, the time is in its post
  uint64_t cause;  // for a sleep, the cause of its end, or 0; otherwise valid if the flag CAUSED is set
  uint64_t code;  // the called function; for a sleep, its deadline in nanoseconds
  uint64_t item;  // the item's address, the place of the cause, or the sequence number of the post
  uint32_t outer;  // the low word of the enclosing call-out's or run's number
  uint8_t kind;
  uint8_t mode;  // the index of the mode's name, or 255
  uint8_t depth;
  uint8_t flags;
} crl_record;

// The origin of work that a loop runs later, found by sequence number.
typedef struct crl_post {
  uint64_t sequence;  // 0 while being written
  uint64_t posted;
  uint64_t cause;
  uint64_t site;  // a return address, with a flag for whether the poster waits
} crl_post;

// The current state of a loop, written by its thread, except for `posted`, which is written under the inbox's lock.
typedef struct crl_face {
  int32_t thread;  // 0 if the face is unused or the thread has not started
  uint8_t level;  // the level applied by the loop
  uint8_t flags;
  uint8_t mode;  // of the innermost run, or 255
  uint8_t kind;  // of the innermost call-out, or 0 at `off`
  uint32_t depth;  // number of active runs
  uint32_t generation;  // number of loops that have used the face
  uint64_t loop;  // the address of the loop object
  uint64_t number;  // of the call-out or sleep that began last; does not change at `off`
  uint64_t open;  // the number of the innermost call-out's record, or 0 if there is none
  int64_t deadline;  // of the sleep, in nanoseconds; the largest value means none
  uint64_t waits;  // number of waits, as of the last sleep
  uint64_t sleeps;
  uint64_t posted;  // number of blocks, jobs and hand-offs so far
  uint64_t served;  // how many of them were taken to be run or dropped
  uint64_t lost;  // 1 if the loop had to record but found no ring
  uint64_t stack;  // an address in the frame of the innermost run, below which its calls are
  int32_t awaited;  // the thread for whose work this one waits, or 0
  uint32_t host_turns;  // how often the host's loop has begun to run its own items on the loop's thread; wraps around
  // One more than a descriptor that was ready in very many consecutive waits without being read, or 0 for none.
  uint32_t unread;
  uint32_t host;  // the kind of host loop, a crl_host
  uint64_t unread_code;  // the function called for that descriptor
  uint64_t reserved;
} crl_face;

// Data that changes rarely, one entry for each face.
typedef struct crl_details {
  char name[256];  // the name of the thread object, or empty
  // The last timer that fired late, by CRL_LATE or more, or the last descriptor that may have been ready for CRL_HANG
  // before the loop looked, at `watch` and above. The count is written last.
  uint64_t late;  // nanoseconds
  uint64_t late_code;  // the function called for it
  uint64_t late_count;  // number of such timers and descriptors
  uint64_t late_descriptor;  // 1 for a descriptor, 0 for a timer
  uint8_t reserved[224];
} crl_details;

// A program or library that was loaded in the process while it recorded.
typedef struct crl_image {
  uint64_t base;
  uint64_t end;
  uint32_t build_id_length;
  uint8_t build_id[20];
  char path[216];
} crl_image;

typedef struct crl_holder {
  int32_t process;  // 0: free; negative: of another pid namespace than the header's
  uint32_t level;
  uint64_t start;  // 0 while the entry is being taken or freed
} crl_holder;

// Simultaneous readings of three clocks.
typedef struct crl_times {
  uint64_t ticks;
  int64_t monotonic;
  int64_t wall;
} crl_times;

typedef struct crl_header {
  uint64_t magic;
  uint32_t version;
  uint32_t header_size;
  int32_t process;
  uint32_t level;  // the highest level held
  uint64_t start;  // the process's start time, as in its /proc `stat`
  uint64_t pid_namespace;
  uint64_t image_random;  // distinguishes the process's program from the one before an exec
  uint32_t clock;
  uint32_t own_level;  // the level held by the process itself
  crl_times calibration[2];  // the second is written by a reader that keeps the file
  uint32_t face_count, ring_count, record_count, post_count;
  uint32_t face_offset, details_offset, mode_offset, image_offset;
  uint32_t ring_offset, ring_size;
  uint32_t used_modes, used_images;
  uint64_t lost_loops;  // number of existing loops that found no face
  crl_holder holders[CRL_HOLDERS];  // the tools that hold a level
  uint32_t raised;  // how often the level was raised to `record`
  uint32_t parked;  // whether a tool waits on this word, as a futex, for activity of a loop
  uint64_t frequency;  // clock ticks per second, or 0 if only the calibration determines it
  uint32_t page_size;  // of the process's system
  uint32_t is_apart;  // nonzero if the header is not on the process's own page, so that the process does not see what a tool writes
  uint32_t used_faces;  // number of faces ever used
  uint8_t reserved[4096 - 316];
} crl_header;

// Padding up to the next multiple of the largest page size.
typedef struct crl_room {
  uint64_t words[512];
} crl_room;

typedef struct crl_mode_name {
  char name[128];
} crl_mode_name;

// Swift must not see large arrays: it would make long tuples of them, or 345 KB of code for the type of a single one.
#ifdef __swift__
typedef struct crl_ring crl_ring;
#else
typedef struct crl_ring {
  crl_record records[CRL_RECORDS];
  crl_post posts[CRL_POSTS];
} crl_ring;
#endif

typedef struct crl_board {
  // Alone on its pages, because the process's header is mapped there.
  crl_header header;
  crl_room header_room[15];
  crl_face faces[CRL_FACES];
  crl_details details[CRL_FACES];
  crl_mode_name modes[CRL_MODES];
  crl_image images[CRL_IMAGES];
  crl_room front_room[6];
#ifdef __swift__
  crl_record rings[1];  // for its offset
#else
  crl_ring rings[CRL_RINGS];
#endif
} crl_board;

_Static_assert(sizeof(crl_record) == 64 && sizeof(crl_post) == 32, "a record is a cache line, a post is half of one");
_Static_assert(sizeof(crl_face) == 128, "a face is two cache lines");
_Static_assert(sizeof(crl_details) == 512 && sizeof(crl_image) == 256, "details, an image");
_Static_assert(sizeof(crl_header) == 4096, "the header is a small page");
_Static_assert(offsetof(crl_header, level) == 20, "the level");
_Static_assert(offsetof(crl_header, calibration) == 56 && offsetof(crl_header, holders) == 160, "calibration and holders");
_Static_assert(offsetof(crl_header, raised) == 288 && offsetof(crl_header, parked) == 292, "raised, and where a tool waits");
_Static_assert(offsetof(crl_header, frequency) == 296, "the clock's frequency");
_Static_assert(offsetof(crl_header, used_faces) == 312, "how many faces are used");
_Static_assert(offsetof(crl_board, faces) == CRL_LARGEST_PAGE, "the faces");
_Static_assert(offsetof(crl_board, details) == 327680 && offsetof(crl_board, modes) == 1376256, "details, modes");
_Static_assert(offsetof(crl_board, images) == 1384448, "the images");
_Static_assert(offsetof(crl_board, rings) == 22 * CRL_LARGEST_PAGE, "the rings");
_Static_assert(CRL_BOARD_SIZE % CRL_LARGEST_PAGE == 0, "whole pages");
#ifndef __swift__
_Static_assert(sizeof(crl_board) == CRL_BOARD_SIZE && sizeof(crl_ring) == CRL_RING_SIZE, "the board, a ring");
#endif
_Static_assert(CRL_RECORDS * sizeof(crl_record) == 128 * 1024, "the posts");
_Static_assert(offsetof(crl_face, loop) == 16 && offsetof(crl_face, posted) == 64, "a face's numbers");
_Static_assert(offsetof(crl_face, unread) == 104 && offsetof(crl_face, unread_code) == 112, "what is not read");
_Static_assert(offsetof(crl_record, outer) == 56 && offsetof(crl_record, kind) == 60, "a record's end");

// This process's header, in a section where tools find it. It becomes the first page of the file when a loop is
// created.
extern crl_header crl_instruments __attribute__((visibility("hidden")));

// A histogram of durations by powers of two: the first step is below 1024 ns, and the last one is unbounded.
enum { CRL_STEPS = 32 };
typedef struct crl_histogram {
  uint64_t sum;  // nanoseconds
  uint64_t longest;
  uint64_t steps[CRL_STEPS];
} crl_histogram;

// Totals that a loop keeps at `watch` and above, so that nothing is missed however rarely they are read. They are
// written by the loop's thread and read by any thread; the words are independent of each other.
typedef struct crl_sums {
  crl_histogram call_outs;
  crl_histogram lateness;  // of timers
  crl_histogram delays;  // of posts, while recording
  uint64_t hangs;  // call-outs of CRL_HANG or longer that have ended or begun a nested run
  // Twice the ticks during which the loop ran and did not sleep or, while it runs, twice the difference between the
  // start tick and these, plus one. In a copy, it is the number of ticks. It is a single word so that a reader sees a
  // consistent value.
  uint64_t busy;
  uint64_t shown;  // the highest value returned to a reader
  uint64_t began;  // the start tick of the innermost call-out, or 0 if none is open
  uint64_t since;  // the same, or the tick of its continuation after a nested run, which interrupts a hang
} crl_sums;

// The private state of a loop's thread. Other processes can write to the face and the ring, so their contents are only
// published, and the loop does not depend on them.
typedef struct crl_recorder {
  crl_face *face;
  crl_ring *ring;  // set before the loop first records
  crl_record *current;  // of the innermost call-out, if recorded
  uint64_t run;  // the run's part of a record's last word: the enclosing call-out, the mode and the depth
  uint64_t cause;  // this recorder's slot, encoded as in a cause
  uint64_t waker;  // the cause of the last wake-up, written by the waking thread
  crl_details *details;
  crl_sums *sums;  // set before the loop first applies `watch`
  uint32_t slot;
  uint32_t generation;  // of forks
  // Private copies of the face's values.
  uint64_t number, open, sleeps, served, stack, loop;
  uint64_t sleep;  // the record number of the latest sleep
  int32_t thread;
  uint32_t uses;  // number of loops that have used the face
  uint8_t level, flags;
} crl_recorder;

// The state of the current call-out, saved during a nested run.
typedef struct crl_outer {
  crl_record *current;
  uint64_t open;
  uint64_t run;
  uint64_t stack;
  uint64_t began;
  uint8_t kind;
} crl_outer;

// The recorder of the calling thread's loop.
extern _Thread_local crl_recorder *crl_thread_recorder __attribute__((tls_model("initial-exec"), visibility("hidden")));
static inline crl_recorder *crl_thread_recorder_get(void) { return crl_thread_recorder; }
static inline void crl_thread_recorder_set(crl_recorder *recorder) { crl_thread_recorder = recorder; }

// Relaxed: no other data depends on the level. A recording loop reads its ring with an acquiring load.
static inline __attribute__((always_inline)) uint32_t crl_level_get(void) {
  return __atomic_load_n(&crl_instruments.level, __ATOMIC_RELAXED);
}

// Whether recording is active. On x86, this compares with memory directly, which compilers do not do for an atomic
// load.
static inline __attribute__((always_inline)) int crl_is_recording(void) {
#if defined(__x86_64__)
  int is_recording;
  __asm__ volatile("cmpl %2, %1" : "=@ccae"(is_recording) : "m"(crl_instruments.level), "i"(CRL_RECORD));
  return is_recording;
#else
  return crl_level_get() >= CRL_RECORD;
#endif
}

// Whether the level differs from the one applied. On x86, this also compares with memory directly.
static inline __attribute__((always_inline)) int crl_level_differs(uint32_t level) {
#if defined(__x86_64__)
  int differs;
  __asm__ volatile("cmpl %2, %1" : "=@ccne"(differs) : "m"(crl_instruments.level), "r"(level));
  return differs;
#else
  return crl_level_get() != level;
#endif
}

// The call site of the public function that uses this, or 0 if nothing records.
static inline __attribute__((always_inline)) uint64_t crl_call_site(void) {
  return crl_level_get() >= CRL_RECORD ? (uint64_t)(uintptr_t)__builtin_return_address(0) : 0;
}

static inline __attribute__((always_inline)) uint64_t crl_return_address(void) {
  return (uint64_t)(uintptr_t)__builtin_return_address(0);
}

// Whether records use the processor's clock.
extern uint32_t crl_clock_is_processors __attribute__((visibility("hidden")));

// Reads the system's clock. It preserves most registers, so that callers that use the processor's clock need not save
// any.
uint64_t crl_system_ticks(void) __attribute__((cold, noinline, preserve_most, visibility("hidden")));

// Reads the processor's clock, even if records do not use it. Returns 0 on other architectures.
static inline __attribute__((always_inline)) uint64_t crl_processor_ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return 0;
#endif
}

// The frequency of the processor's clock in Hz if the processor reports it, otherwise 0.
static inline uint64_t crl_processor_frequency(void) {
#if defined(__aarch64__)
  uint64_t frequency;
  __asm__("mrs %0, cntfrq_el0" : "=r"(frequency));
  return frequency;
#else
  return 0;
#endif
}

// The current time on the records' clock.
static inline __attribute__((always_inline)) uint64_t crl_ticks(void) {
#if defined(__x86_64__) || defined(__aarch64__)
  if (__builtin_expect(crl_clock_is_processors, 1)) return crl_processor_ticks();
#endif
  return crl_system_ticks();
}

// The length of a tick in nanoseconds, calculated from two readings. `frequency`, if it is not 0, is used while the
// readings are too close together to measure it.
static inline double crl_tick_nanoseconds(crl_times first, crl_times second, uint64_t frequency) {
  double ticks = (double)second.ticks - (double)first.ticks;
  double nanoseconds = (double)second.monotonic - (double)first.monotonic;
  if (frequency > 0 && nanoseconds < 10e6) return 1e9 / (double)frequency;
  return ticks > 0 ? nanoseconds / ticks : 1;
}

// A mask that removes the pointer authentication code from a return address. All processes of a machine use the same
// bits for it, so it can also be applied to another process's addresses.
static inline uint64_t crl_code_address_mask(void) {
#if defined(__aarch64__)
  // Given an address with all user-address bits set, the processor clears the bits used for the code, or none if it
  // does not use pointer authentication.
  uint64_t mask;
  __asm__("mov x30, %1\n\thint #7\n\tmov %0, x30" : "=r"(mask) : "r"(0x007fffffffffffffull) : "x30");
  return mask;
#else
  return UINT64_MAX;
#endif
}

// Takes a recorder with a face for a new loop, which never fails. It is returned when the loop is deallocated.
crl_recorder *crl_recorder_take(const void *loop);
void crl_recorder_give_back(crl_recorder *recorder);
// Sets the loop's thread, which is 0 once it has ended.
void crl_recorder_set_thread(crl_recorder *recorder, int thread, int flags);

// The flags of a face, changed by the loop's thread and read by any thread. Relaxed: no other data depends on them.
static inline uint8_t crl_recorder_flags(const crl_recorder *recorder) {
  return __atomic_load_n(&recorder->flags, __ATOMIC_RELAXED);
}
static inline void crl_recorder_set_flags(crl_recorder *recorder, int flags) {
  __atomic_store_n(&recorder->flags, (uint8_t)flags, __ATOMIC_RELAXED);
  __atomic_store_n(&recorder->face->flags, (uint8_t)flags, __ATOMIC_RELAXED);
}
// Sets the address of the loop object, which is not known when the recorder is taken.
static inline void crl_recorder_set_loop(crl_recorder *recorder, uint64_t loop) {
  __atomic_store_n(&recorder->loop, loop, __ATOMIC_RELAXED);
  recorder->face->loop = loop;
}
// Publishes the record number and the kind of the open call-out.
static inline __attribute__((always_inline)) void crl_recorder_set_open(
  crl_recorder *recorder, uint64_t open, uint8_t kind
) {
  crl_face *face = recorder->face;
  recorder->open = open;
  face->open = open;
  face->kind = kind;
}
// Applies the current level, and returns the loop's resulting level. Called on the loop's thread.
uint32_t crl_recorder_take_up(crl_recorder *recorder);
// Returns the ring of a loop, and creates it if possible. Can be called from any thread.
crl_ring *crl_recorder_ring(crl_recorder *recorder);
// The index of a mode's name, or 255 if the table is full.
uint8_t crl_mode_index(const char *name);

// Notes that a call-out begins at a tick, and adds one that ends to the totals.
static inline __attribute__((always_inline)) void crl_call_out_begin(crl_recorder *recorder, uint64_t now) {
  crl_sums *sums = recorder->sums;
  // Relaxed: a reader that sees `began` also sees `since`.
  __atomic_store_n(&sums->since, now, __ATOMIC_RELAXED);
  __atomic_store_n(&sums->began, now, __ATOMIC_RELEASE);
}
void crl_call_out_end(crl_recorder *recorder, uint64_t now);
// Adds a timer's lateness in nanoseconds to the totals, and notes the function of a timer or descriptor that is late.
void crl_lateness_add(crl_recorder *recorder, int64_t late);
void crl_late_note(crl_recorder *recorder, int64_t late, uint64_t code, int is_descriptor);
// Notes whether the loop is busy from a tick on, at `watch` and above. Called on the loop's thread.
void crl_busy_note(crl_recorder *recorder, int is_busy, uint64_t now);
// Copies a loop's totals, with the busy time up to now. Can be called from any thread.
void crl_sums_copy(const crl_recorder *recorder, crl_sums *sums);
// The nanoseconds per tick times 2^32, set before the first loop is watched; and the length of a number of ticks.
extern uint64_t crl_tick_scale __attribute__((visibility("hidden")));
uint64_t crl_ticks_length(uint64_t ticks);

// Begins and ends a recorded call-out. The kind is in the upper half of a word.
void crl_record_begin(crl_recorder *recorder, uint64_t kind, uint64_t code, uint64_t item);
static inline __attribute__((always_inline)) void crl_record_end(crl_recorder *recorder) {
  crl_record *record = recorder->current;
  uint64_t now = crl_ticks();
  // Calls made during this call-out may have wrapped around the ring and overwritten its record.
  if (__builtin_expect(record->number == recorder->open, 1)) record->end = now;
  crl_recorder_set_open(recorder, 0, 0);
  crl_call_out_end(recorder, now);
}
// Like crl_record_begin, for an item whose cause was noted under its address and a tag.
void crl_record_begin_caused(crl_recorder *recorder, uint64_t kind, uint64_t code, uint64_t item, uint64_t tag);

// Begins a run, whose record may be overwritten before it ends. Returns the record's number, or 0 if there is none.
uint64_t crl_run_begin(crl_recorder *recorder, uint32_t kind, uint64_t site);
void crl_run_end(crl_recorder *recorder, uint64_t number);

// The cause of a later call-out: what the causing thread was doing, when, and at which place.
typedef struct crl_origin {
  uint64_t cause;
  uint64_t posted;
  uint64_t site;
} crl_origin;

// Notes an origin under an address and a tag, which distinguishes items with the same address; finds it; and removes
// it. Can be called from any thread.
void crl_origin_note(uint64_t key, uint64_t tag, crl_origin origin);
void crl_origin_note_here(uint64_t key, uint64_t tag, uint64_t site);
int crl_origin_find(uint64_t key, uint64_t tag, crl_origin *origin);
void crl_origin_forget(uint64_t key, uint64_t tag);
// The tag for items that need no distinction. It changes whenever notes may be missing.
//
// Relaxed: with a stale number, a thread only makes a note that is never found, or does not find one.
static inline uint64_t crl_origin_tag(void) {
  return (uint64_t)__atomic_load_n(&crl_instruments.raised, __ATOMIC_RELAXED) | 1ull << 41;
}

// The call-out that created or resumed the task of a job that arrives at a loop; and a note that the job has arrived.
crl_origin crl_job_origin(uint64_t job);
void crl_job_arrived(uint64_t job);
// Starts noting which jobs are enqueued on Swift's own threads.
void crl_tasks_watch(void);

// Notes that a call-out which is only watched begins or ends.
static inline __attribute__((always_inline)) void crl_watch_begin(
  crl_recorder *recorder, crl_face *face, uint32_t kind
) {
  face->number = ++recorder->number;
  face->kind = (uint8_t)kind;
  crl_call_out_begin(recorder, crl_ticks());
}
static inline __attribute__((always_inline)) void crl_watch_end(crl_recorder *recorder, crl_face *face) {
  face->kind = 0;
  crl_call_out_end(recorder, crl_ticks());
}
// Counts an entry that was taken from the queues.
static inline __attribute__((always_inline)) void crl_served_note(crl_recorder *recorder, crl_face *face) {
  face->served = ++recorder->served;
}

// Saves the current call-out before a nested run, or before a call-out outside of runs, and restores it.
crl_outer crl_recorder_nest(crl_recorder *recorder);
void crl_recorder_unnest(crl_recorder *recorder, crl_outer outer);
// Notes the loop's mode and depth. If it is still the same run, its frame is kept.
void crl_recorder_set_run(crl_recorder *recorder, uint32_t mode, uint32_t depth, int is_same);
static inline uint32_t crl_recorder_depth(const crl_recorder *recorder) { return recorder->run >> 48 & 255; }

// Notes that a descriptor was ready in many consecutive waits without its handler reading from it. Called on the
// loop's thread.
void crl_face_note_unread(crl_recorder *recorder, int descriptor, uint64_t code);

// Sets the kind of host of which this loop is a guest, and returns the previous one. Called on the loop's thread.
uint32_t crl_face_set_host(crl_recorder *recorder, uint32_t host);

// Notes the thread for which the calling one waits, or 0 for none.
void crl_face_note_wait(int thread);

// Updates the face for every sleep and, while recording, the ring.
void crl_sleep_begin(crl_recorder *recorder, int64_t deadline, uint64_t waits, int is_hosted);
void crl_sleep_end(crl_recorder *recorder, int descriptor);
// Wakes a tool that waits for activity.
void crl_unpark(void);

// Notes that the host's loop runs its own items on the loop's thread, which interrupts a hosted sleep in the face.
// Called again for each pass of the host, so that several short passes are not taken for one hang.
void crl_host_runs(crl_recorder *recorder);
// Notes that the host's loop waits, which continues a hosted sleep.
void crl_host_waits(crl_recorder *recorder);
// Notes that the host's loop no longer runs its own items, because it has returned or this loop is served.
void crl_host_ends(crl_recorder *recorder);

// Clears the cause of the last wake-up before the loop announces a sleep; and sets it before a thread wakes the loop.
void crl_wake_forget(crl_recorder *recorder);
void crl_wake_note(crl_recorder *recorder);

// Counts a post in the face, under the inbox's lock, and returns whether to record it.
static inline __attribute__((always_inline)) int crl_face_note_post(crl_face *face, uint64_t sequence) {
  face->posted = sequence;
  // A sleeping loop has not applied a changed level, so the process's level is used.
  return crl_is_recording();
}

// Names the user's code in the record of the calling thread's current call-out.
void crl_record_name(uint64_t code);
// The metadata accessor function that represents a Swift type, given its metadata, or 0 if there is none.
uint64_t crl_type_code(const void *type);
// Records a post under the inbox's lock. The first post to a loop that has not recorded yet creates its ring.
void crl_post_record(crl_recorder *recorder, uint64_t sequence, uint64_t site);
// Like crl_post_record, for the job of a task.
void crl_post_record_job(crl_recorder *recorder, uint64_t sequence, uint64_t job);
// The place of a post, or 0 if it is no longer known. Requires the inbox's lock.
uint64_t crl_post_site(const crl_recorder *recorder, uint64_t sequence);
// The name of the thread object of a recorder's thread, or empty.
void crl_recorder_name(const crl_recorder *recorder, char name[256]);
// The calling thread's current activity, as a cause.
uint64_t crl_cause(void);

// For tests: simulates pages of a size that is a larger power of two than the real one. Returns whether it succeeded,
// which is impossible after the first loop was created.
int crl_instruments_take_page_for(size_t size);

// The memory of this process's faces and records, or null before the first loop was created; and whether a slot has a
// ring.
const crl_board *crl_board_get(void);
int crl_slot_has_ring(uint32_t slot);

// Increments and decrements the number of times that the process itself holds a level.
void crl_level_hold(uint32_t level);
void crl_level_release(uint32_t level);
// Recalculates the level from all those held.
void crl_level_settle(crl_header *header);
// Takes an entry for a tool that holds a level, and returns whether it was free.
int crl_holder_take(crl_holder *holder, int process, uint64_t start, uint32_t level);
// Frees a process's entry, and returns whether it had one. Signal handlers may call it and settle the level.
int crl_holder_free(crl_holder *holder, int process);
// Frees the entries of tools that ended without doing so, either of this pid namespace or of others. Returns whether
// there were any.
int crl_holders_drop_ended(crl_header *header, int is_elsewhere);
// Does the same for this process, and settles the level. Makes a few system calls for each tool, and none without
// tools.
void crl_holders_check(void);

// Sets a thread's name for its loop's face; null removes it. For the calling thread, it is kept until it is forgotten.
void crl_thread_name_set(int thread, const char *name);
void crl_thread_name_forget(void);
// The directory of the process's file, or null if there is no file.
const char *crl_instruments_directory(void);
// Whether a directory's files are in memory. Only there do processes keep records without being asked to.
int crl_is_on_tmpfs(const char *path);
// Opens the process's directory, which contains its file, or one in another directory, and creates what is missing.
// Follows no link, and requires both to be owned by the user. Returns a negative errno on failure; -ENOENT means that
// the process has no directory.
int crl_instruments_open(const char *parent);
// The process's start time, as used in the directory's name.
uint64_t crl_instruments_start(void);

// The return addresses of the callers, innermost first, as far as the frames can be followed.
enum { CRL_FRAMES = 18 };
typedef struct crl_frames {
  uint64_t address[CRL_FRAMES];  // 0 after the last
} crl_frames;
void crl_frames_take(crl_frames *frames);

// The dynamic linker's information about an address. It owns the strings.
typedef struct crl_code {
  const char *path;
  uint64_t base;
  const char *symbol;  // null if there is none
} crl_code;
// Looks up an address, and returns 0 if it is in no loaded file.
int crl_code_find(uint64_t address, crl_code *code);

// Copies a record or post, which begins with its number, and returns whether it was complete. Returns 0 if there is
// none or it is being written, possibly by another process.
int crl_numbered_copy(const void *source, void *target, size_t size);
// Copies up to CRL_RECORDS complete records of a recorder, in no particular order, and returns their number.
uint32_t crl_records_copy(const crl_recorder *recorder, crl_record *records);
// The current readings of the clocks, and those from when the process began to record.
crl_times crl_times_now(void);
crl_times crl_times_first(void);
// Writes a file of the records that began at a tick or later. Returns 0 or a negative errno; -ENODATA means that
// nothing was recorded.
int crl_records_write(int file, uint64_t since);

// Copies a face, which its loop may be writing at the same time.
void crl_face_copy(const crl_face *face, crl_face *copy);

// Whether the process has more privileges than its caller, or is not dumpable. It then shares no memory, does not
// respond to tools, and ignores its environment. A change of the dumpable attribute is noticed whenever the level
// changes, and at each call.
int crl_is_privileged(void);
// An environment variable, or null in a process that has more privileges than its caller.
const char *crl_instruments_environment(const char *name);

// Called by a SIGBUS handler, in any thread, when guarded memory has disappeared. Returns whether the memory has been
// replaced. A thread that blocks SIGBUS is not protected.
typedef int (*crl_retreat)(void);
enum { CRL_GUARDED = 2 };
// Guards memory mapped from a file that others can truncate, in one of `CRL_GUARDED` slots. The first call installs a
// SIGBUS handler, which forwards signals that do not concern such memory.
void crl_memory_guard(int place, const void *memory, size_t size, crl_retreat retreat);

// Detaches a forked child from what its parent shares.
void crl_instruments_forked(void);
// Forgets the calling thread's cached id, which has changed in a forked child.
void crl_thread_number_forget(void);
