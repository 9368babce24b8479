// SPDX-License-Identifier: Apache-2.0

// Finds the call-out that created or resumed the task of a job, even if the job has passed through Swift's thread pool.

#include "CRunLoopRecorder.h"
#include "CRunLoopSystem.h"

#define SWIFT __attribute__((swiftcall))

typedef SWIFT void (*enqueue_original)(void *job);
typedef SWIFT void (*enqueue_hook)(void *job, enqueue_original original);

extern enqueue_hook swift_task_enqueueGlobal_hook __attribute__((weak));
extern SWIFT void *swift_task_getCurrent(void) __attribute__((weak));

static enqueue_hook earlier_hook;

// The id of a job's task from the job's header, because the memory of a task that has ended may have been reused.
static inline uint64_t job_number(uint64_t job) {
  uint32_t number;
  memcpy(&number, (const char *)(uintptr_t)job + 36, sizeof number);
  return (uint64_t)number | 1ull << 40;
}

crl_origin crl_job_origin(uint64_t job) {
  crl_origin origin = {crl_cause(), 0, 0};
  if (!(origin.cause & CRL_CAUSE_THREAD) || sizeof(void *) != 8) return origin;
  // A thread without a loop works for a task, and so for the call-out that created or resumed that task.
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
