// SPDX-License-Identifier: Apache-2.0

// What a run loop leaves behind for those who look at it from outside: faces, records of call-outs, and posts, in
// memory that a file on tmpfs shares. The layout is a contract: little endian, CRL_LAYOUT_VERSION in the header, and
// nothing moves within a version. Programs that are not of this package read it.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

// "RLRINGS1"
#define CRL_MAGIC 0x3153474e49524c52ull

enum {
  CRL_LAYOUT_VERSION = 3,
  // The largest page of any Linux that Swift runs on. What is shared by pages begins at multiples of it, so that a file
  // has one layout on all of them.
  CRL_LARGEST_PAGE = 65536,
  CRL_KIND_SHIFT = 32,
  CRL_FACES = 2048,
  // Of the faces only the first have rings; a loop takes one when it first records.
  CRL_RINGS = 64,
  CRL_RECORDS = 2048,
  CRL_POSTS = 4096,
  CRL_MODES = 64,
  CRL_IMAGES = 128,
  CRL_HOLDERS = 8,
  CRL_KINDS = 14,
};

typedef enum crl_level { CRL_OFF = 0, CRL_WATCH = 1, CRL_RECORD = 2 } crl_level;

// What a loop calls, or does. Zero stands for nothing.
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

// A library in whose loop ours are guests.
typedef enum crl_host { CRL_HOST_NONE, CRL_HOST_PROGRAM, CRL_HOST_CORE_FOUNDATION, CRL_HOST_GLIB, CRL_HOST_LIBUV } crl_host;

enum {
  // The flags of a face.
  CRL_FACE_SLEEPS = 1,
  CRL_FACE_HOSTED = 2,
  CRL_FACE_VIRTUAL = 4,
  CRL_FACE_MAIN = 8,
  // The loop's thread has ended, or has no loop any more.
  CRL_FACE_ENDED = 16,
  // The loop's thread is in a call that it expects to be long.
  CRL_FACE_EXPECTS = 32,
  // The flags of a record: a file descriptor was ready, and is in `item`.
  CRL_RECORD_DESCRIPTOR = 1,
  // What has caused the call-out is known: `cause` and `posted` say what and when, and `item` from which place.
  CRL_RECORD_CAUSED = 2,
  // The clocks of `begin`, `end` and `posted`.
  CRL_CLOCK_MONOTONIC = 0,
  // The processor's own: the time stamp counter of x86, the virtual counter of arm64.
  CRL_CLOCK_PROCESSOR = 1,
};

// From how many nanoseconds on a call-out is a hang to those that count them, and a timer is late.
#define CRL_HANG 250000000ll
#define CRL_LATE 100000000ll

// A cause: the record of a loop's call-out, or a thread.
#define CRL_CAUSE_THREAD (1ull << 63)
#define CRL_CAUSE_SLOT_SHIFT 48

// In the place of a post: whoever has posted waits until the work is done.
#define CRL_SITE_WAITS (1ull << 63)

// In the code of a record: it is no function but the place, as a post has it, that stands for one that nobody knows.
#define CRL_CODE_PLACE (1ull << 63)

// One cache line for each call-out or sleep. A reader copies it, reads the number again, and drops what has changed.
typedef struct crl_record {
  uint64_t number;  // 0 while it is written; ascends within a ring, with gaps
  uint64_t begin;
  uint64_t end;  // 0 while it lasts
  uint64_t posted;  // with the flag CAUSED; when a block was posted is in its post
  uint64_t cause;  // of a sleep, who ended it, or 0; of others it means something with the flag CAUSED
  uint64_t code;  // the function that is called; of a sleep, its deadline in nanoseconds
  uint64_t item;  // the item's address, or the place that a cause is from, or the sequence number of the post
  uint32_t outer;  // the low word of the number of the call-out or run around it
  uint8_t kind;
  uint8_t mode;  // where the mode's name stands, or 255
  uint8_t depth;
  uint8_t flags;
} crl_record;

// Who left what a loop runs later, found by its sequence number.
typedef struct crl_post {
  uint64_t sequence;  // 0 while it is written
  uint64_t posted;
  uint64_t cause;
  uint64_t site;  // a return address, and whether the poster waits
} crl_post;

// What one loop does now. The loop's thread writes it, but for `posted`, which is written under the inbox's lock.
typedef struct crl_face {
  int32_t thread;  // 0: nobody has had the face, or the thread has not started
  uint8_t level;  // what the loop has taken up
  uint8_t flags;
  uint8_t mode;  // of the innermost run, or 255
  uint8_t kind;  // of the innermost call-out; at `off`, 0
  uint32_t depth;  // runs that are active
  uint32_t generation;  // how many loops have had the face
  uint64_t loop;  // the address of the object
  uint64_t number;  // of the call-out or sleep that began last; at `off` it stands still
  uint64_t open;  // the number of the record of the innermost call-out, 0 without one
  int64_t deadline;  // of the sleep, in nanoseconds; the largest number: none
  uint64_t waits;  // sleeps and looks, as of the last sleep
  uint64_t sleeps;
  uint64_t posted;  // blocks, jobs and hand-offs so far
  uint64_t served;  // of those, how many have been taken to be run or dropped
  uint64_t lost;  // 1: the loop was to record and found no ring
  uint64_t stack;  // an address within the frame of the innermost run: what is called stands below it
  int32_t awaited;  // the thread for whose work this one waits; 0: none
  uint32_t padding;
  // A descriptor that was ready in very many waits in a row, of which nothing was read, and one more: 0: none was.
  uint32_t unread;
  uint32_t host;  // in whose loop this one is a guest; a crl_host
  uint64_t unread_code;  // the function that is called for it
  uint64_t reserved;
} crl_face;

// What changes seldom, one for each face.
typedef struct crl_details {
  char name[256];  // the thread's name as its object has it, else empty
  // The timer that fired late last, by CRL_LATE or more, from `watch` on; the count is written last.
  uint64_t late;  // nanoseconds
  uint64_t late_code;  // the function that is called for it
  uint64_t late_count;  // how many have been so late; 0: none
  uint8_t reserved[232];
} crl_details;

// A program or library that the process has loaded, while it recorded.
typedef struct crl_image {
  uint64_t base;
  uint64_t end;
  uint32_t build_id_length;
  uint8_t build_id[20];
  char path[216];
} crl_image;

typedef struct crl_holder {
  int32_t process;  // 0: free; negative: of another namespace than the header's
  uint32_t level;
  uint64_t start;  // 0 while the place is taken or freed
} crl_holder;

// What three clocks said at once.
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
  uint32_t level;  // the highest that is held
  uint64_t start;  // of the process, as its `stat` in /proc has it
  uint64_t pid_namespace;
  uint64_t image_random;  // what tells one program of the process from the one that it was before exec
  uint32_t clock;
  uint32_t own_level;  // what the process itself holds
  crl_times calibration[2];  // the second is written by a reader that keeps the file
  uint32_t face_count, ring_count, record_count, post_count;
  uint32_t face_offset, details_offset, mode_offset, image_offset;
  uint32_t ring_offset, ring_size;
  uint32_t used_modes, used_images;
  uint64_t lost_loops;  // loops that are there and found no face
  crl_holder holders[CRL_HOLDERS];  // the tools that hold a level
  uint32_t raised;  // how often the level has become record
  uint32_t parked;  // whether a tool waits here, as on a futex, for a loop to do something
  uint64_t frequency;  // ticks of the clock in a second; 0: only the calibration says it
  uint32_t page_size;  // of the system that the process runs on
  uint32_t is_apart;  // not 0: the process does not see what a tool writes here, which is not its own header's page
  uint32_t used_faces;  // how many of the faces have ever been taken
  uint8_t reserved[4096 - 316];
} crl_header;

// Room up to the next multiple of the largest page.
typedef struct crl_room {
  uint64_t words[512];
} crl_room;

typedef struct crl_mode_name {
  char name[128];
} crl_mode_name;

typedef struct crl_ring {
  crl_record records[CRL_RECORDS];
  crl_post posts[CRL_POSTS];
} crl_ring;

typedef struct crl_board {
  // Alone in its pages: the header of the process is mapped there.
  crl_header header;
  crl_room header_room[15];
  crl_face faces[CRL_FACES];
  crl_details details[CRL_FACES];
  crl_mode_name modes[CRL_MODES];
  crl_image images[CRL_IMAGES];
  crl_room front_room[6];
  crl_ring rings[CRL_RINGS];
} crl_board;

_Static_assert(sizeof(crl_record) == 64, "a record is a cache line");
_Static_assert(sizeof(crl_post) == 32, "a post is half a cache line");
_Static_assert(sizeof(crl_face) == 128, "a face is two cache lines");
_Static_assert(sizeof(crl_details) == 512, "details");
_Static_assert(sizeof(crl_image) == 256, "an image");
_Static_assert(sizeof(crl_header) == 4096, "the header is a small page");
_Static_assert(offsetof(crl_header, level) == 20, "the level");
_Static_assert(offsetof(crl_header, calibration) == 56, "the calibration");
_Static_assert(offsetof(crl_header, holders) == 160, "the holders");
_Static_assert(offsetof(crl_header, raised) == 288, "how often the level was raised");
_Static_assert(offsetof(crl_header, parked) == 292, "where a tool waits");
_Static_assert(offsetof(crl_header, frequency) == 296, "the clock's frequency");
_Static_assert(offsetof(crl_header, used_faces) == 312, "how many faces are used");
_Static_assert(offsetof(crl_board, faces) == CRL_LARGEST_PAGE, "the faces");
_Static_assert(offsetof(crl_board, details) == 327680, "the details");
_Static_assert(offsetof(crl_board, modes) == 1376256, "the modes");
_Static_assert(offsetof(crl_board, images) == 1384448, "the images");
_Static_assert(offsetof(crl_board, rings) == 22 * CRL_LARGEST_PAGE, "the rings");
_Static_assert(sizeof(crl_board) % CRL_LARGEST_PAGE == 0, "whole pages");
_Static_assert(sizeof(crl_ring) == 256 * 1024, "a ring");
_Static_assert(offsetof(crl_ring, posts) == 128 * 1024, "the posts");
_Static_assert(offsetof(crl_face, loop) == 16 && offsetof(crl_face, posted) == 64, "a face's numbers");
_Static_assert(offsetof(crl_face, unread) == 104 && offsetof(crl_face, unread_code) == 112, "what is not read");
_Static_assert(offsetof(crl_record, outer) == 56 && offsetof(crl_record, kind) == 60, "a record's end");

// The header of this process, in a section by which a tool finds it. It is the first page of the file, once a loop has
// been made.
extern crl_header crl_instruments __attribute__((visibility("hidden")));

// How long something took, in steps of a factor of two: the first is below 1024 ns, the last has all that is longer.
enum { CRL_STEPS = 32 };
typedef struct crl_histogram {
  uint64_t sum;  // nanoseconds
  uint64_t longest;
  uint64_t steps[CRL_STEPS];
} crl_histogram;

// What a loop sums up itself, from `watch` on, so that nothing is missed however seldom it is read. The loop's thread
// writes it, and any thread reads it: each word stands for itself.
typedef struct crl_sums {
  crl_histogram call_outs;
  crl_histogram lateness;  // of timers
  crl_histogram delays;  // of posts, while recording
  uint64_t hangs;  // call-outs that took CRL_HANG or longer, and have ended or begun a nested run
  // Twice the ticks in which it ran and did not sleep; while it does, twice the tick less these, and one. A copy has
  // the ticks. One word, so that a reader sees both or neither.
  uint64_t busy;
  uint64_t shown;  // the most of them that a reader was given
  uint64_t began;  // the tick of the innermost call-out; 0: none is open
  uint64_t since;  // the same, or when it went on after a nested run: in such a run it does not hang
} crl_sums;

// What a loop's thread keeps to itself. The face and the ring are memory that other processes can write to: what
// stands there is only published, and nothing that the loop does depends on it.
typedef struct crl_recorder {
  crl_face *face;
  crl_ring *ring;  // set before the loop records for the first time
  crl_record *current;  // of the innermost call-out, if it is recorded
  uint64_t run;  // what the last word of a record has of the run: the call-out around it, the mode, the depth
  uint64_t cause;  // the slot, as a cause has it
  uint64_t waker;  // the cause of the last wake-up, written by whoever made it
  crl_details *details;
  crl_sums *sums;  // set before the loop takes up `watch` for the first time
  uint32_t slot;
  uint32_t generation;  // of forks
  // What the face shows.
  uint64_t number, open, sleeps, served, stack, loop;
  uint64_t sleep;  // the number of the record of the sleep that began last
  int32_t thread;
  uint32_t uses;  // how many loops have had the face
  uint8_t level, flags;
} crl_recorder;

// What a nested run puts aside of the call-out that it is in.
typedef struct crl_outer {
  crl_record *current;
  uint64_t open;
  uint64_t run;
  uint64_t stack;
  uint64_t began;
  uint8_t kind;
} crl_outer;

// The recorder of the calling thread's loop, and the thread's number, once it was asked for.
extern _Thread_local crl_recorder *crl_thread_recorder __attribute__((tls_model("initial-exec"), visibility("hidden")));
static inline crl_recorder *crl_thread_recorder_get(void) { return crl_thread_recorder; }
static inline void crl_thread_recorder_set(crl_recorder *recorder) { crl_thread_recorder = recorder; }

// Relaxed: nothing is read by what the level says. Who records takes the ring by an acquiring load.
static inline __attribute__((always_inline)) uint32_t crl_level_get(void) {
  return __atomic_load_n(&crl_instruments.level, __ATOMIC_RELAXED);
}

// Whether something records. On x86 the comparison is one with memory, for which a compiler does not take an atomic
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

// Whether the level is another than one that was taken up: likewise one comparison with memory.
static inline __attribute__((always_inline)) int crl_level_differs(uint32_t level) {
#if defined(__x86_64__)
  int differs;
  __asm__ volatile("cmpl %2, %1" : "=@ccne"(differs) : "m"(crl_instruments.level), "r"(level));
  return differs;
#else
  return crl_level_get() != level;
#endif
}

// Where the public function was called from in which this is used; zero unless something records.
static inline __attribute__((always_inline)) uint64_t crl_call_site(void) {
  return crl_level_get() >= CRL_RECORD ? (uint64_t)(uintptr_t)__builtin_return_address(0) : 0;
}

static inline __attribute__((always_inline)) uint64_t crl_return_address(void) {
  return (uint64_t)(uintptr_t)__builtin_return_address(0);
}

// Whether the records' clock is the processor's.
extern uint32_t crl_clock_is_processors __attribute__((visibility("hidden")));

// The system's clock. It changes no register of the caller's, so that the processor's clock costs no saving of any.
uint64_t crl_system_ticks(void) __attribute__((cold, noinline, preserve_most, visibility("hidden")));

// The processor's clock, whether or not records have it; zero on processors whose clock is not known here.
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

// How often the processor's clock ticks in a second, if the processor says it; else zero.
static inline uint64_t crl_processor_frequency(void) {
#if defined(__aarch64__)
  uint64_t frequency;
  __asm__("mrs %0, cntfrq_el0" : "=r"(frequency));
  return frequency;
#else
  return 0;
#endif
}

// The time by the records' clock.
static inline __attribute__((always_inline)) uint64_t crl_ticks(void) {
#if defined(__x86_64__) || defined(__aarch64__)
  if (__builtin_expect(crl_clock_is_processors, 1)) return crl_processor_ticks();
#endif
  return crl_system_ticks();
}

// The nanoseconds of a tick of the processor's clock, by two times: `frequency` is taken while they are too close to
// measure it, and says nothing if it is 0.
static inline double crl_tick_nanoseconds(crl_times first, crl_times second, uint64_t frequency) {
  double ticks = (double)second.ticks - (double)first.ticks;
  double nanoseconds = (double)second.monotonic - (double)first.monotonic;
  if (frequency > 0 && nanoseconds < 10e6) return 1e9 / (double)frequency;
  return ticks > 0 ? nanoseconds / ticks : 1;
}

// A return address as it stands on a stack, without what a signature has put into its upper bits. Every process of the
// machine signs the same bits, so that it serves for another process's too.
static inline uint64_t crl_code_address_mask(void) {
#if defined(__aarch64__)
  // The bits that are the same in all addresses of a user's: of an address with all others set, the processor leaves
  // what is not signed, or everything if it signs none.
  uint64_t mask;
  __asm__("mov x30, %1\n\thint #7\n\tmov %0, x30" : "=r"(mask) : "r"(0x007fffffffffffffull) : "x30");
  return mask;
#else
  return UINT64_MAX;
#endif
}

// A recorder with a face for a new loop. It always is one, and is returned when the loop's object goes.
crl_recorder *crl_recorder_take(const void *loop);
void crl_recorder_give_back(crl_recorder *recorder);
// The loop's thread is known from now on, or has ended (0).
void crl_recorder_set_thread(crl_recorder *recorder, int thread, int flags);

// The flags of a face: the loop's thread changes them, and any thread may read them. Relaxed: they stand for
// themselves.
static inline uint8_t crl_face_flags(const crl_face *face) { return __atomic_load_n(&face->flags, __ATOMIC_RELAXED); }
static inline uint8_t crl_recorder_flags(const crl_recorder *recorder) {
  return __atomic_load_n(&recorder->flags, __ATOMIC_RELAXED);
}
static inline void crl_recorder_set_flags(crl_recorder *recorder, int flags) {
  __atomic_store_n(&recorder->flags, (uint8_t)flags, __ATOMIC_RELAXED);
  __atomic_store_n(&recorder->face->flags, (uint8_t)flags, __ATOMIC_RELAXED);
}
// The address of the loop's object, which is known after the recorder was taken.
static inline void crl_recorder_set_loop(crl_recorder *recorder, uint64_t loop) {
  __atomic_store_n(&recorder->loop, loop, __ATOMIC_RELAXED);
  recorder->face->loop = loop;
}
// Publishes the number of the call-out that is open, and its kind.
static inline __attribute__((always_inline)) void crl_recorder_set_open(
  crl_recorder *recorder, uint64_t open, uint8_t kind
) {
  crl_face *face = recorder->face;
  recorder->open = open;
  face->open = open;
  face->kind = kind;
}
// Takes a level up; the loop's thread. Gives the level that the loop has then.
uint32_t crl_recorder_take_up(crl_recorder *recorder);
// The ring of a loop, which is made if it can be; any thread.
crl_ring *crl_recorder_ring(crl_recorder *recorder);
// Where the name of a mode stands; 255 if there is no room.
uint8_t crl_mode_index(const char *name);

// Notes that a call-out begins at a tick, and sums up the one that ends.
static inline __attribute__((always_inline)) void crl_call_out_begin(crl_recorder *recorder, uint64_t now) {
  crl_sums *sums = recorder->sums;
  // Relaxed: a reader that sees `began` sees it too.
  __atomic_store_n(&sums->since, now, __ATOMIC_RELAXED);
  __atomic_store_n(&sums->began, now, __ATOMIC_RELEASE);
}
void crl_call_out_end(crl_recorder *recorder, uint64_t now);
// Sums up by how much a timer fires late, in nanoseconds; and notes the function of one that is CRL_LATE.
void crl_lateness_add(crl_recorder *recorder, int64_t late);
void crl_late_note(crl_recorder *recorder, int64_t late, uint64_t code);
// Notes whether the loop runs and does not sleep from a tick on, from the level `watch` on; the loop's thread.
void crl_busy_note(crl_recorder *recorder, int is_busy, uint64_t now);
// Copies what a loop has summed up; any thread. The time in which it has been busy goes up to now.
void crl_sums_copy(const crl_recorder *recorder, crl_sums *sums);
// The nanoseconds of a tick, times 2^32, known before the first loop is watched; and those of so many ticks.
extern uint64_t crl_tick_scale __attribute__((visibility("hidden")));
uint64_t crl_ticks_length(uint64_t ticks);

// Begins a call-out that is recorded, of a kind in the upper half of a word, and ends it.
void crl_record_begin(crl_recorder *recorder, uint64_t kind, uint64_t code, uint64_t item);
static inline __attribute__((always_inline)) void crl_record_end(crl_recorder *recorder) {
  crl_record *record = recorder->current;
  uint64_t now = crl_ticks();
  // What was called in this call-out may have gone all around the ring.
  if (__builtin_expect(record->number == recorder->open, 1)) record->end = now;
  crl_recorder_set_open(recorder, 0, 0);
  crl_call_out_end(recorder, now);
}
// The same, of an item whose cause is noted under its address and a tag.
void crl_record_begin_caused(crl_recorder *recorder, uint64_t kind, uint64_t code, uint64_t item, uint64_t tag);

// Begins a run, which may go on while its record is overwritten; returns the number of the record, 0 if there is none.
uint64_t crl_run_begin(crl_recorder *recorder, uint32_t kind, uint64_t site);
void crl_run_end(crl_recorder *recorder, uint64_t number);

// Who has caused what a loop calls later: what he was doing, when, and from which place.
typedef struct crl_origin {
  uint64_t cause;
  uint64_t posted;
  uint64_t site;
} crl_origin;

// Notes an origin under an address and what distinguishes two things of that address; and finds and forgets it. Any
// thread.
void crl_origin_note(uint64_t key, uint64_t tag, crl_origin origin);
void crl_origin_note_here(uint64_t key, uint64_t tag, uint64_t site);
int crl_origin_find(uint64_t key, uint64_t tag, crl_origin *origin);
void crl_origin_forget(uint64_t key, uint64_t tag);
// The tag of items that are distinguished by nothing: it changes when notes may be missing.
//
// Relaxed: a thread that reads an earlier number makes a note that is not found, or finds none.
static inline uint64_t crl_origin_tag(void) {
  return (uint64_t)__atomic_load_n(&crl_instruments.raised, __ATOMIC_RELAXED) | 1ull << 41;
}

// The call-out that has made or resumed the task of a job that arrives at a loop, and that it has arrived.
crl_origin crl_job_origin(uint64_t job);
void crl_job_arrived(uint64_t job);
// Notes from now on which jobs go to Swift's own threads.
void crl_tasks_watch(void);

// Notes that a call-out begins or ends that is only watched.
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
// Counts an item of work that has been taken from the queues.
static inline __attribute__((always_inline)) void crl_served_note(crl_recorder *recorder, crl_face *face) {
  face->served = ++recorder->served;
}

// Puts the call-out aside that a nested run is in, or a call-out that no run makes, and takes it up again.
crl_outer crl_recorder_nest(crl_recorder *recorder);
void crl_recorder_unnest(crl_recorder *recorder, crl_outer outer);
// Notes in which mode and how deep the loop runs now. The run's frame stays known if it is the same run.
void crl_recorder_set_run(crl_recorder *recorder, uint32_t mode, uint32_t depth, int is_same);
static inline uint32_t crl_recorder_depth(const crl_recorder *recorder) { return recorder->run >> 48 & 255; }

// Notes that a descriptor of the loop is ready in wait after wait, and that its handler reads nothing of it; the loop's
// thread.
void crl_face_note_unread(crl_recorder *recorder, int descriptor, uint64_t code);

// Notes in whose loop this one is a guest from now on, and returns in whose it was; the loop's thread.
uint32_t crl_face_set_host(crl_recorder *recorder, uint32_t host);

// Notes for which thread the calling one waits; 0: for none any more.
void crl_face_note_wait(int thread);

// What every sleep leaves in the face, and while recording in the ring.
void crl_sleep_begin(crl_recorder *recorder, int64_t deadline, uint64_t waits, int is_hosted);
void crl_sleep_end(crl_recorder *recorder, int descriptor);
// Wakes the tool that waits for something to happen.
void crl_unpark(void);

// Forgets who has woken the loop, before it says that it sleeps, and notes it, before it is woken; that any thread.
void crl_wake_forget(crl_recorder *recorder);
void crl_wake_note(crl_recorder *recorder);

// Counts a post in the face, under the lock of the inbox; whether it is to be recorded.
static inline __attribute__((always_inline)) int crl_face_note_post(crl_face *face, uint64_t sequence) {
  face->posted = sequence;
  // A loop that sleeps has not taken the level up.
  return crl_is_recording();
}

// Names the user's code of the call-out that the calling thread is in.
void crl_record_name(uint64_t code);
// A function that stands for a type of Swift's, given its metadata: the one that finds these; 0 where there is none.
uint64_t crl_type_code(const void *type);
// Notes a post; under the lock of the inbox. The first of a loop that has not recorded yet makes its ring.
void crl_post_record(crl_recorder *recorder, uint64_t sequence, uint64_t site);
// The same, of the job of a task.
void crl_post_record_job(crl_recorder *recorder, uint64_t sequence, uint64_t job);
// Where a post came from, if it is still known; 0 otherwise. Under the lock of the inbox.
uint64_t crl_post_site(const crl_recorder *recorder, uint64_t sequence);
// The name that the object of a recorder's thread has; empty: none.
void crl_recorder_name(const crl_recorder *recorder, char name[256]);
// What the calling thread is doing, as a cause.
uint64_t crl_cause(void);

// For tests: takes pages to be of a size, a power of two that is larger than theirs, from now on. Whether it was
// possible: not after the first loop.
int crl_instruments_take_page_for(size_t size);

// The memory that the faces and records of this process are in, null before the first loop; and whether a slot has
// records.
const crl_board *crl_board_get(void);
int crl_slot_has_ring(uint32_t slot);

// What the process itself holds, counted by level: a level is held once more or once less.
void crl_level_hold(uint32_t level);
void crl_level_release(uint32_t level);
// Works the level out anew from all that is held.
void crl_level_settle(crl_header *header);
// Takes a place for a tool that holds a level; whether it was free.
int crl_holder_take(crl_holder *holder, int process, uint64_t start, uint32_t level);
// Frees a place that a process has; whether it had it. A handler of signals may call it, and settle the level.
int crl_holder_free(crl_holder *holder, int process);
// Frees the places of tools that have ended without doing so, of this namespace of processes or another; whether there
// were any.
int crl_holders_drop_ended(crl_header *header, int is_elsewhere);
// Does that in this process, and settles the level. A few calls of the system for each tool; none without one.
void crl_holders_check(void);

// The name of a thread, for its loop's face; null: none. For the calling thread it is kept until it is forgotten.
void crl_thread_name_set(int thread, const char *name);
void crl_thread_name_forget(void);
// Where the process's file is; null if it has none.
const char *crl_instruments_directory(void);
// Whether a directory's files are in memory: only there do processes leave records without being told to.
int crl_is_on_tmpfs(const char *path);
// Opens the process's directory, where its file is, or in another directory; makes what is not there. No link is
// followed, and both must be the user's own. A negative number of an error if that cannot be; -ENOENT: the process has
// no directory.
int crl_instruments_open(const char *parent);
// When the process began, as the directory's name has it.
uint64_t crl_instruments_start(void);

// The return addresses of those who called, the innermost first, as far as the frames can be followed.
enum { CRL_FRAMES = 18 };
typedef struct crl_frames {
  uint64_t address[CRL_FRAMES];  // 0 behind the last
} crl_frames;
void crl_frames_take(crl_frames *frames);

// What the dynamic linker knows of an address. The names belong to it.
typedef struct crl_code {
  const char *path;
  uint64_t base;
  const char *symbol;  // null: none
} crl_code;
// Finds it; 0 if the address lies in no file.
int crl_code_find(uint64_t address, crl_code *code);

// Copies a record or post, which begins with its number, unless there is none or it is being written; whether it did.
// Whoever writes may be another process.
int crl_numbered_copy(const void *source, void *target, size_t size);
// Copies the complete records of a recorder, at most CRL_RECORDS, in no order; returns their number.
uint32_t crl_records_copy(const crl_recorder *recorder, crl_record *records);
// What the clocks say now, and what they said when the process began to record.
crl_times crl_times_now(void);
crl_times crl_times_first(void);
// Writes a file of the records that began at a tick or later. 0, or a negative number of an error; -ENODATA: nothing
// was recorded.
int crl_records_write(int file, uint64_t since);

// Copies a face that its loop may be writing.
void crl_face_copy(const crl_face *face, crl_face *copy);

// Whether the process may do more than its caller, or keeps its memory to itself: then it shares no memory, answers
// no tool, and takes nothing from its environment. A change of the dumpable attribute is noticed when the level
// changes, and at each question.
int crl_is_privileged(void);
// A variable of the environment; null in a process that may do more than its caller.
const char *crl_instruments_environment(const char *name);

// A thread that blocks SIGBUS has no guard. Called when memory that is guarded is not there, by a handler of SIGBUS, in
// any thread; whether other memory is there now.
typedef int (*crl_retreat)(void);
enum { CRL_GUARDED = 2 };
// Guards memory of a file that others can cut off, at one of `CRL_GUARDED` places. It handles SIGBUS from the first
// call on, and hands on what is not about that memory.
void crl_memory_guard(int place, const void *memory, size_t size, crl_retreat retreat);

// Leaves a forked child without what its parent shares.
void crl_instruments_forked(void);
// The calling thread has another number: it is a forked child's.
void crl_thread_number_forget(void);
