// SPDX-License-Identifier: Apache-2.0

// Shared by all racers, in C so that those in C, C++ and Swift use the same code: the options, the clock, posting and
// counting, the sockets, and the results as lines of JSON.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

// -- Options and results

/// Parses `WORKLOAD [--capture] [--pinned | --apart] [--one | --thousand] [--quick | --smoke]`, and starts a second
/// thread that stays alive: the C library omits atomic operations in a single-threaded process, which no loop with
/// posting threads is.
void race_begin(int argc, char *const *argv, const char *peer);
/// Whether the options name this workload.
bool race_is(const char *workload);
/// Whether closures capture an object.
bool race_captures(void);
/// Sets the peer's name for the following results.
void race_set_peer(const char *peer);
/// Returns a number of operations: all, a tenth (`--quick`), or a thousandth (`--smoke`), but at least `least`.
int64_t race_scaled(int64_t full, int64_t least);
/// Returns a number of existing things: all, or with `--smoke` a hundredth.
int64_t race_sized(int64_t full);
/// Makes this process end when its parent does.
void race_end_with_parent(void);
/// Reports a result.
void race_report(const char *metric, double value, const char *unit);
/// Reports a result of a run with `n` things.
void race_report_at(const char *metric, int64_t n, double value, const char *unit);
/// Ends the process with an error unless `condition` holds.
void race_check(bool condition, const char *what);
/// Runs the selected workload, or exits if this racer does not have it. `--list` prints those that it has.
void race_run(const char *const *names, void (*const *workloads)(void), int count);

// -- Clocks and random numbers

/// Nanoseconds of the monotonic clock.
static inline int64_t race_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/// Nanoseconds of processor time that the process has used.
static inline int64_t race_cpu(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/// Nanoseconds of processor time that the calling thread has used.
static inline int64_t race_thread_cpu(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/// Returns the same pseudo-random sequence in every racer (xorshift).
static inline uint64_t race_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}
#define RACE_SEED 0x9e3779b97f4a7c15u

/// Only makes the compiler keep its arguments, in place of an operation, to measure the client's part.
static inline void race_use(const void *thing, int64_t date, int64_t rest) {
  __asm__ volatile("" : : "r"(thing), "r"(date), "r"(rest) : "memory");
}

// -- Gates: one thread waits for another

struct race_gate;
struct race_gate *race_gate_make(void);
void race_gate_open(struct race_gate *gate);
void race_gate_wait(struct race_gate *gate);

/// Starts a thread. With `--apart`, one after the other gets a processor of its own, as far as there are enough.
void race_thread(void (*body)(void *), void *context);

/// With `--apart`, keeps the calling thread on the processor with this number among those of the process.
void race_place(int index);

// -- Work that counts itself

/// The numbers of work items that have run and that are expected. Used on the thread that runs them.
extern int64_t race_ran, race_expected;
void race_finish(void);

/// Counts a work item.
static inline void race_run_one(void) {
  if (++race_ran == race_expected) race_finish();
}

/// Makes `producers` threads post `count` work items together, waits until all have run, and reports the nanoseconds
/// and the processor time for each. An unmeasured twentieth precedes it.
void race_posts(int producers, int64_t count, void (*produce)(int64_t count, void *context), void *context);

/// Calls `begin`, which starts something that calls `race_run_one()` `count` times, and waits for it. Reports the
/// nanoseconds and the processor time for each.
void race_turns(const char *metric, int64_t count, void (*begin)(int64_t count, void *context), void *context);

// -- W10: ticks of a repeating timer

struct race_ticks;
struct race_ticks *race_ticks_make(int64_t period, int64_t count);
/// Marks the timer's start. Its dates are multiples of the period from then on.
void race_ticks_start(struct race_ticks *ticks);
/// Returns the time of the start.
int64_t race_ticks_begin(const struct race_ticks *ticks);
/// Records a fire, `periods` after the previous tick. Returns true if it was the last.
bool race_tick(struct race_ticks *ticks, int64_t periods);
/// Reports the lateness and the drift.
void race_ticks_report(struct race_ticks *ticks);

// -- W9 and W11: sockets

/// Creates `count` connected pairs of nonblocking stream sockets: descriptors 2i and 2i + 1.
int *race_socket_pairs(int count);
/// Raises the process's descriptor limit to its maximum.
void race_raise_descriptor_limit(void);

/// Creates a descriptor that is or is not ready for reading.
int race_event_descriptor(bool ready);
void race_close(int descriptor);

enum { RACE_MOST_CONNECTIONS = 1000, RACE_MESSAGE = 64 };
/// Returns the number of W11's connections: 50, 1 (`--one`) or 1,000 (`--thousand`).
int race_connections(void);
/// Starts the client, another process, and accepts its connections, which are nonblocking.
const int *race_echo_begin(void);
/// Lets the client begin.
void race_echo_go(void);
/// Records that the client has closed a connection. Returns true if it was the last.
bool race_echo_closed(void);
/// Reports the requests per second, and the processor time of this process for each.
void race_echo_report(void);
/// Echoes what a connection has received, if anything. Returns false when the client has closed it.
bool race_echo_serve(int connection);

// -- M3: datagrams

/// Creates a nonblocking UDP socket bound to a port of this machine, and stores the port.
int race_udp_socket(int *port);
/// Echoes a socket's datagrams forever: the floor.
void race_udp_serve(int descriptor);
/// Sends requests of 64 bytes to a port, `window` at a time, until `count` replies have arrived. Returns nanoseconds.
int64_t race_udp_ask(int port, int64_t count, int window);

// -- L1 and L2: waits

/// Calls `post`, after which the loop calls `race_wait_over()`, in many rhythms. Reports the latency and the
/// processor time, either of the loop's thread or, for synchronous calls, of the process.
void race_waits(void (*post)(void *context), void *context);
/// The posted work, which runs on the loop's thread.
void race_wait_over(void);
/// Reports the processor time of an idle second.
void race_rest(const char *what);

// -- W12: memory

/// Returns the number of bytes allocated on the heap.
int64_t race_heap(void);
/// Returns the process's resident memory in bytes.
int64_t race_resident(void);
/// Returns the number of the process's descriptors.
int race_descriptors(void);
/// Sleeps briefly until idle threads have settled.
void race_settle(void);

#ifdef __cplusplus
}
#endif
