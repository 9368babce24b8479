// SPDX-License-Identifier: Apache-2.0

// Work on its way to the loops of libuv, libevent and libev, which wake a loop from another thread but leave the queue
// to their user: two growing arrays behind a mutex; the loop swaps them. Only the post that finds the queue empty
// wakes.

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

/// True: the queue was empty, and the loop is to be woken.
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

/// Runs what was posted before now.
static inline void queue_run(struct queue *queue) {
  pthread_mutex_lock(&queue->mutex);
  struct queue_array posted = queue->posted;
  queue->posted = queue->taken;
  queue->taken = posted;
  pthread_mutex_unlock(&queue->mutex);
  for (size_t i = 0; i < posted.count; i++) posted.entries[i].run(posted.entries[i].context);
  queue->taken.count = 0;
}
