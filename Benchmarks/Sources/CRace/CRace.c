// SPDX-License-Identifier: Apache-2.0

#include "CRace.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char *peer = "?";
static const char *workload = "";
static bool captures, lists, apart;
static int connections = 50;
static int64_t divisor = 1;
const char *race_program = "";

static void fail(const char *what) {
  fprintf(stderr, "%s %s: %s\n", peer, workload, what);
  _exit(1);
}

// The processors that the process may run on when it begins.
static cpu_set_t allowed;

static void pin(int index) {
  int processor = -1;
  for (index %= CPU_COUNT(&allowed); index >= 0; index--)
    do processor++; while (!CPU_ISSET(processor, &allowed));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) fail("cannot stay on one processor");
}

void race_place(int index) {
  if (apart) pin(index);
}

static void park(void *context) {
  (void)context;
  for (;;) pause();
}

void race_begin(int argc, char *const *argv, const char *name) {
  peer = name;
  race_program = argv[0];
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) fail("cannot read the processors");
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--quick") == 0) divisor = 10;
    else if (strcmp(argv[i], "--smoke") == 0) divisor = 1000;
    else if (strcmp(argv[i], "--capture") == 0) captures = true;
    else if (strcmp(argv[i], "--pinned") == 0) pin(0);
    else if (strcmp(argv[i], "--apart") == 0) apart = true;
    else if (strcmp(argv[i], "--one") == 0) connections = 1;
    else if (strcmp(argv[i], "--thousand") == 0) connections = 1000;
    else if (strcmp(argv[i], "--list") == 0) lists = true;
    else workload = argv[i];
  }
  race_thread(park, NULL);
}

bool race_is(const char *name) { return strcmp(workload, name) == 0; }
bool race_captures(void) { return captures; }
int race_connections(void) { return connections; }
void race_end_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGKILL); }
void race_set_peer(const char *name) { peer = strdup(name); }

int64_t race_scaled(int64_t full, int64_t least) { return full / divisor > least ? full / divisor : least; }

int64_t race_sized(int64_t full) { return divisor >= 1000 ? full / 100 : full; }

void race_report(const char *metric, double value, const char *unit) { race_report_at(metric, 0, value, unit); }

void race_report_at(const char *metric, int64_t n, double value, const char *unit) {
  printf("{\"workload\": \"%s\", \"peer\": \"%s\", \"metric\": \"%s\", ", workload, peer, metric);
  if (n > 0) printf("\"n\": %lld, ", (long long)n);
  printf("\"value\": %.6g, \"unit\": \"%s\"}\n", value, unit);
  fflush(stdout);
}

void race_check(bool condition, const char *what) {
  if (!condition) fail(what);
}

void race_run(const char *const *names, void (*const *workloads)(void), int count) {
  for (int i = 0; i < count; i++) {
    if (lists) printf("%s\n", names[i]);
    else if (race_is(names[i])) {
      workloads[i]();
      // The process ends without cleaning up its loops and threads, as the measurement is complete.
      fflush(stdout);
      _exit(0);
    }
  }
  if (lists) exit(0);
  fail("no such workload");
}

// -- Gates and threads

struct race_gate {
  sem_t semaphore;
};

struct race_gate *race_gate_make(void) {
  struct race_gate *gate = malloc(sizeof *gate);
  sem_init(&gate->semaphore, 0, 0);
  return gate;
}

void race_gate_open(struct race_gate *gate) { sem_post(&gate->semaphore); }

void race_gate_wait(struct race_gate *gate) {
  while (sem_wait(&gate->semaphore) != 0) {}
}

struct body {
  void (*run)(void *);
  void *context;
  int index;
};

static void *run_body(void *argument) {
  struct body body = *(struct body *)argument;
  free(argument);
  race_place(body.index);
  body.run(body.context);
  return NULL;
}

void race_thread(void (*run)(void *), void *context) {
  struct body *body = malloc(sizeof *body);
  static int count;
  // The first one only waits, on the first processor with the thread after it.
  *body = (struct body){run, context, __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) + 1};
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_body, body) != 0) fail("cannot make a thread");
  pthread_detach(thread);
}

// -- Work that counts itself

int64_t race_ran, race_expected;
static int64_t finished;
static struct race_gate *finish;

void race_finish(void) {
  finished = race_now();
  race_gate_open(finish);
}

static void expect(int64_t count) {
  if (!finish) finish = race_gate_make();
  race_ran = 0;
  race_expected = count;
}

struct production {
  pthread_barrier_t start;
  int64_t count;
  void (*produce)(int64_t, void *);
  void *context;
};

static void run_producer(void *context) {
  struct production *production = context;
  pthread_barrier_wait(&production->start);
  production->produce(production->count, production->context);
  pthread_barrier_wait(&production->start);
}

static void produce(
    int producers, int64_t count, void (*body)(int64_t, void *), void *context, double *each, double *cpu) {
  struct production production = {.count = count / producers, .produce = body, .context = context};
  int64_t total = production.count * producers;
  pthread_barrier_init(&production.start, NULL, (unsigned)producers + 1);
  expect(total);
  for (int i = 0; i < producers; i++) race_thread(run_producer, &production);
  // The producers have reached the barrier, or are about to, when the clock is read.
  int64_t cpu_before = race_cpu(), before = race_now();
  pthread_barrier_wait(&production.start);
  race_gate_wait(finish);
  *each = (double)(finished - before) / (double)total;
  *cpu = (double)(race_cpu() - cpu_before) / (double)total;
  pthread_barrier_wait(&production.start);
  pthread_barrier_destroy(&production.start);
  race_check(race_ran == total, "more work has run than was posted");
}

void race_posts(int producers, int64_t count, void (*body)(int64_t, void *), void *context) {
  double each, cpu;
  produce(producers, count / 20 > producers ? count / 20 : producers, body, context, &each, &cpu);
  produce(producers, count, body, context, &each, &cpu);
  race_report(captures ? "post of a closure that captures" : "post", each, "ns");
  race_report(captures ? "processor time, capturing" : "processor time", cpu, "ns");
}

void race_turns(const char *metric, int64_t count, void (*begin)(int64_t, void *), void *context) {
  int64_t before = 0, cpu_before = 0;
  int64_t counts[2] = {count / 20 + 1, count};
  // The loop that is posted to first has the first processor.
  race_place(1);
  for (int i = 0; i < 2; i++) {
    expect(counts[i]);
    cpu_before = race_cpu();
    before = race_now();
    begin(counts[i], context);
    race_gate_wait(finish);
  }
  race_report(metric, (double)(finished - before) / (double)count, "ns");
  race_report("processor time", (double)(race_cpu() - cpu_before) / (double)count, "ns");
}

// -- Ticks

struct race_ticks {
  int64_t period, count, begin, number, seen;
  double *lateness;
  int64_t *numbers;
};

struct race_ticks *race_ticks_make(int64_t period, int64_t count) {
  struct race_ticks *ticks = calloc(1, sizeof *ticks);
  ticks->period = period;
  ticks->count = count;
  ticks->lateness = calloc((size_t)count, sizeof *ticks->lateness);
  ticks->numbers = calloc((size_t)count, sizeof *ticks->numbers);
  return ticks;
}

void race_ticks_start(struct race_ticks *ticks) { ticks->begin = race_now(); }
int64_t race_ticks_begin(const struct race_ticks *ticks) { return ticks->begin; }

bool race_tick(struct race_ticks *ticks, int64_t periods) {
  ticks->number += periods;
  if (ticks->seen < ticks->count) {
    ticks->lateness[ticks->seen] = (double)(race_now() - ticks->begin - ticks->number * ticks->period);
    ticks->numbers[ticks->seen++] = ticks->number;
  }
  return ticks->seen == ticks->count;
}

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

// The slope of the lateness over the ticks, from the medians of the first and last tenth, so that one late tick is no
// drift.
static double drift(const struct race_ticks *ticks) {
  int64_t part = ticks->count / 10 > 1 ? ticks->count / 10 : 1;
  double first[part], last[part];
  memcpy(first, ticks->lateness, sizeof first);
  memcpy(last, ticks->lateness + ticks->count - part, sizeof last);
  qsort(first, (size_t)part, sizeof *first, compare);
  qsort(last, (size_t)part, sizeof *last, compare);
  double between = (double)(ticks->numbers[ticks->count - 1 - part / 2] - ticks->numbers[part / 2]);
  return between > 0 ? (last[part / 2] - first[part / 2]) / between : 0;
}

void race_ticks_report(struct race_ticks *ticks) {
  double slope = drift(ticks);
  qsort(ticks->lateness, (size_t)ticks->count, sizeof *ticks->lateness, compare);
  race_report("lateness, median", ticks->lateness[ticks->count / 2] / 1000, "µs");
  race_report("lateness, 99 of 100", ticks->lateness[ticks->count * 99 / 100] / 1000, "µs");
  race_report("drift per tick", slope / 1000, "µs");
}
