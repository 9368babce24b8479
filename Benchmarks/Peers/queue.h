// SPDX-License-Identifier: Apache-2.0

// The queue of posted work for libuv, libevent and libev, which can wake a loop from another thread but leave the
// queue to their users: two growing arrays guarded by a mutex, which the loop swaps. Only a post to an empty queue
// wakes the loop.

#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct queue_entry {
  void (*run)(void *);
  void *context;
};

struct queue_array {
  struct queue_entry *entries;
  size_t count, capacity;
};

struct queue {
  pthread_mutex_t mutex;
  struct queue_array posted, taken;
};

static inline void queue_make(struct queue *queue) { pthread_mutex_init(&queue->mutex, NULL); }

/// Returns true if the queue was empty, so that the loop must be woken.
static inline bool queue_append(struct queue *queue, void (*run)(void *), void *context) {
  pthread_mutex_lock(&queue->mutex);
  struct queue_array *posted = &queue->posted;
  if (posted->count == posted->capacity) {
    posted->capacity = posted->capacity ? 2 * posted->capacity : 64;
    posted->entries = realloc(posted->entries, posted->capacity * sizeof *posted->entries);
  }
  posted->entries[posted->count].run = run;
  posted->entries[posted->count++].context = context;
  bool was_empty = posted->count == 1;
  pthread_mutex_unlock(&queue->mutex);
  return was_empty;
}

/// Runs the work that was posted before the call.
static inline void queue_run(struct queue *queue) {
  pthread_mutex_lock(&queue->mutex);
  struct queue_array posted = queue->posted;
  queue->posted = queue->taken;
  queue->taken = posted;
  pthread_mutex_unlock(&queue->mutex);
  for (size_t i = 0; i < posted.count; i++) posted.entries[i].run(posted.entries[i].context);
  queue->taken.count = 0;
}
