// SPDX-License-Identifier: Apache-2.0

// What every racer shares, in C, so that those in C, C++ and Swift have the same: the options, the clock, the way to
// post and to count, the sockets, and the lines of JSON in which results are told.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

// -- Options and results

/// Reads `WORKLOAD [--capture] [--pinned] [--one | --thousand] [--quick | --smoke]`, and keeps a second thread alive:
/// the C library leaves out atomic operations while a process has one thread, which no loop with posters has.
void race_begin(int argc, char *const *argv, const char *peer);
/// Whether the options name this workload.
bool race_is(const char *workload);
/// Whether closures are to capture an object.
bool race_captures(void);
/// The next results are told as this peer's.
void race_set_peer(const char *peer);
/// A number of operations: the whole, a tenth of it (`--quick`), or a thousandth (`--smoke`), but at least `least`.
int64_t race_scaled(int64_t full, int64_t least);
/// A number of things that are there: the whole, or with `--smoke` a hundredth of it.
int64_t race_sized(int64_t full);
/// Ends this process with the one that has started it.
void race_end_with_parent(void);
/// Tells a result.
void race_report(const char *metric, double value, const char *unit);
/// Tells a result of a run with `n` things.
void race_report_at(const char *metric, int64_t n, double value, const char *unit);
/// Ends the process with an error unless `condition` holds.
void race_check(bool condition, const char *what);
/// Ends the process: this racer has no such workload. `--list` names those that it has.
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

/// The same numbers for everybody (xorshift).
static inline uint64_t race_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}
#define RACE_SEED 0x9e3779b97f4a7c15u

/// Does nothing with a thing and a date, which must be there: in place of an operation whose client's part is measured.
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

/// How many pieces of work have run, and how many are to; on the thread that runs them.
extern int64_t race_ran, race_expected;
void race_finish(void);

/// What a piece of work does.
static inline void race_run_one(void) {
  if (++race_ran == race_expected) race_finish();
}

/// Lets `producers` threads post `count` pieces of work together, waits until all have run, and tells the nanoseconds
/// and the processor time for each. A twentieth of it goes before, unmeasured.
void race_posts(int producers, int64_t count, void (*produce)(int64_t count, void *context), void *context);

/// Calls `begin`, which starts something that is to call `race_run_one()` `count` times, and waits for it. Tells the
/// nanoseconds and the processor time for each.
void race_turns(const char *metric, int64_t count, void (*begin)(int64_t count, void *context), void *context);

// -- W10: ticks of a repeating timer

struct race_ticks;
struct race_ticks *race_ticks_make(int64_t period, int64_t count);
/// The timer starts now: its dates are multiples of the period after this.
void race_ticks_start(struct race_ticks *ticks);
/// When it started.
int64_t race_ticks_begin(const struct race_ticks *ticks);
/// The timer fires, `periods` after the tick before. True: that was the last.
bool race_tick(struct race_ticks *ticks, int64_t periods);
/// Tells the lateness and the drift.
void race_ticks_report(struct race_ticks *ticks);

// -- W9 and W11: sockets

/// Makes `count` connected pairs of stream sockets that do not block: descriptors 2i and 2i + 1.
int *race_socket_pairs(int count);
/// Lets the process have as many descriptors as it may.
void race_raise_descriptor_limit(void);

/// Makes a descriptor that is ready to be read, or not.
int race_event_descriptor(bool ready);
void race_close(int descriptor);

enum { RACE_MOST_CONNECTIONS = 1000, RACE_MESSAGE = 64 };
/// How many connections W11 has: 50, 1 (`--one`) or 1,000 (`--thousand`).
int race_connections(void);
/// Starts the client, another process, and accepts its connections; none of them blocks.
const int *race_echo_begin(void);
/// Lets the client begin.
void race_echo_go(void);
/// A connection was closed by the client. True: that was the last.
bool race_echo_closed(void);
/// Tells requests per second, and the processor time of this process for each.
void race_echo_report(void);
/// Answers what a connection has sent, if it has; false when the client has closed it.
bool race_echo_serve(int connection);

// -- M3: datagrams

/// A socket of UDP that is bound to a port of this machine and does not block; gives the port too.
int race_udp_socket(int *port);
/// Answers what comes to a socket, for ever: the floor.
void race_udp_serve(int descriptor);
/// Sends requests of 64 bytes to a port, as many under way as `window` says, until `count` were answered; the
/// nanoseconds.
int64_t race_udp_ask(int port, int64_t count, int window);

// -- L1 and L2: waits

/// Calls `post` in many rhythms, each of which lets the loop call `race_wait_over()`, and tells how late that was and
/// what processor time it cost: the loop's thread's, or where a call is waited for the process's.
void race_waits(void (*post)(void *context), void *context);
/// What is posted does this, on the loop's thread.
void race_wait_over(void);
/// Tells the processor time of a second in which nobody asks for anything.
void race_rest(const char *what);

// -- W12: memory

/// Bytes that the heap has given out.
int64_t race_heap(void);
/// Bytes of the process in memory.
int64_t race_resident(void);
/// How many descriptors the process has.
int race_descriptors(void);
/// Sleeps for a moment, until threads that have nothing to do have come to rest.
void race_settle(void);

#ifdef __cplusplus
}
#endif
