// SPDX-License-Identifier: Apache-2.0

// L1 and L2: the latency of work for an idle loop, and the cost of waiting.

#include "CRace.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct waits {
  void (*post)(void *);
  void *context;
  double *late;
  int64_t count;
};

static atomic_llong ran_at;
static clockid_t loop_clock;
static struct race_gate *answered;
static bool answers;

void race_wait_over(void) {
  int64_t now = race_now();
  if (loop_clock == 0) pthread_getcpuclockid(pthread_self(), &loop_clock);
  atomic_store_explicit(&ran_at, now, memory_order_release);
  if (answers) race_gate_open(answered);
}

// The processor time of the loop's thread in nanoseconds.
static int64_t loop_cpu(void) {
  struct timespec now = {0, 0};
  clock_gettime(loop_clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static void tell(struct waits *waits, const char *what, double cpu) {
  char metric[160];
  qsort(waits->late, (size_t)waits->count, sizeof *waits->late, compare);
  snprintf(metric, sizeof metric, "%s, median", what);
  race_report(metric, waits->late[waits->count / 2] / 1000, "µs");
  snprintf(metric, sizeof metric, "%s, 99 of 100", what);
  race_report(metric, waits->late[waits->count * 99 / 100] / 1000, "µs");
  snprintf(metric, sizeof metric, "%s, processor time", what);
  race_report(metric, cpu / (double)waits->count / 1000, "µs");
}

static void spin_until(int64_t date) {
  while (race_now() < date) __builtin_ia32_pause();
}

// Posts when the loop has been idle for `gap` nanoseconds, and returns the nanoseconds until the work runs. The
// posting thread does not sleep, so that only the loop's wait is measured.
static double post_after(struct waits *waits, int64_t gap) {
  spin_until(race_now() + gap);
  atomic_store_explicit(&ran_at, 0, memory_order_relaxed);
  int64_t before = race_now(), after;
  waits->post(waits->context);
  while ((after = atomic_load_explicit(&ran_at, memory_order_acquire)) == 0) __builtin_ia32_pause();
  return (double)(after - before);
}

static void tell_gap(struct waits *waits, int64_t gap, int64_t count, const char *what) {
  for (int64_t i = 0; i < 200; i++) post_after(waits, gap);
  int64_t before = loop_cpu();
  waits->count = count;
  for (int64_t i = 0; i < count; i++) waits->late[i] = post_after(waits, gap);
  tell(waits, what, (double)(loop_cpu() - before));
}

// Ten posts 5 µs apart, followed by two idle milliseconds.
static void tell_bursts(struct waits *waits, int64_t count) {
  int64_t before = loop_cpu();
  waits->count = count;
  for (int64_t i = 0; i < count; i++) waits->late[i] = post_after(waits, i % 10 == 0 ? 2000000 : 5000);
  tell(waits, "post in a burst", (double)(loop_cpu() - before));
}

// The posting thread sleeps too, so the cost of both threads is measured, which is what counts in a limited group.
// Without a name nothing is reported.
static void tell_calls(struct waits *waits, int64_t count, const char *what) {
  answers = true;
  int64_t cpu = race_cpu();
  waits->count = count;
  for (int64_t i = 0; i < count; i++) {
    int64_t before = race_now();
    waits->post(waits->context);
    race_gate_wait(answered);
    waits->late[i] = (double)(race_now() - before);
  }
  answers = false;
  if (what) tell(waits, what, (double)(race_cpu() - cpu));
}

static void write_text(const char *path, const char *text, bool *worked) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0 || write(file, text, strlen(text)) < 0) *worked = false;
  if (file >= 0) close(file);
}

// In a control group limited to half a processor. Nothing is reported if no group can be created.
static void tell_limited(struct waits *waits, int64_t count) {
  bool unified = access("/sys/fs/cgroup/cgroup.procs", F_OK) == 0, worked = true;
  const char *root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
  char group[96], path[160], number[32];
  snprintf(group, sizeof group, "%s/race-%d", root, (int)getpid());
  if (mkdir(group, 0755) != 0) return;
  snprintf(path, sizeof path, "%s/%s", group, unified ? "cpu.max" : "cpu.cfs_quota_us");
  write_text(path, unified ? "50000 100000" : "50000", &worked);
  snprintf(number, sizeof number, "%d", (int)getpid());
  snprintf(path, sizeof path, "%s/cgroup.procs", group);
  if (worked) write_text(path, number, &worked);
  if (worked) tell_calls(waits, count, "post and wait, half a processor");
  snprintf(path, sizeof path, "%s/cgroup.procs", root);
  write_text(path, number, &worked);
  rmdir(group);
}

static void tell_neighbours(struct waits *waits, int64_t count) {
  enum { NEIGHBOURS = 4 };
  pid_t busy[NEIGHBOURS];
  for (int i = 0; i < NEIGHBOURS; i++) {
    busy[i] = fork();
    if (busy[i] == 0) {
      race_end_with_parent();
      for (;;) __builtin_ia32_pause();
    }
    race_check(busy[i] > 0, "no neighbour");
  }
  tell_calls(waits, count, "post and wait, four busy neighbours");
  for (int i = 0; i < NEIGHBOURS; i++) {
    kill(busy[i], SIGKILL);
    waitpid(busy[i], NULL, 0);
  }
}

void race_waits(void (*post)(void *), void *context) {
  int64_t count = race_scaled(10000, 100);
  struct waits waits = {post, context, calloc((size_t)count, sizeof(double)), 0};
  answered = race_gate_make();
  loop_clock = 0;
  tell_calls(&waits, 100, NULL);
  tell_gap(&waits, 20000, count, "post after 20 µs");
  tell_gap(&waits, 60000, count, "post after 60 µs");
  tell_gap(&waits, 200000, count / 4 + 1, "post after 200 µs");
  tell_bursts(&waits, count / 10 + 1);
  tell_calls(&waits, count, "post and wait");
  tell_neighbours(&waits, count / 20 + 1);
  tell_limited(&waits, count / 2 + 1);
  free(waits.late);
}

void race_rest(const char *what) {
  char metric[160];
  race_settle();
  int64_t span = race_scaled(1000000000, 20000000), cpu = race_cpu();
  struct timespec time = {span / 1000000000, span % 1000000000};
  while (nanosleep(&time, &time) != 0) {}
  snprintf(metric, sizeof metric, "processor time in a second, %s", what);
  race_report(metric, (double)(race_cpu() - cpu) * 1e9 / (double)span / 1000, "µs");
}
