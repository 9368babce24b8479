// SPDX-License-Identifier: Apache-2.0

// A four-ary heap with inline dates; each timer stores its index.

#pragma once

struct timer {
  int64_t date;
  size_t position;
  void (*fire)(struct timer *);
};

struct place {
  int64_t date;
  struct timer *timer;
};

static struct {
  struct place *places;
  size_t count, capacity;
} heap;

static inline void put(size_t position, struct place place) {
  heap.places[position] = place;
  place.timer->position = position;
}

static inline void sift_up(size_t position, struct place place) {
  while (position > 0) {
    size_t parent = (position - 1) / 4;
    if (heap.places[parent].date <= place.date) break;
    put(position, heap.places[parent]);
    position = parent;
  }
  put(position, place);
}

static inline void sift_down(size_t position, struct place place) {
  for (;;) {
    size_t child = 4 * position + 1, end = child + 4 < heap.count ? child + 4 : heap.count, least = child;
    if (child >= heap.count) break;
    for (size_t other = child + 1; other < end; other++) {
      if (heap.places[other].date < heap.places[least].date) least = other;
    }
    if (heap.places[least].date >= place.date) break;
    put(position, heap.places[least]);
    position = least;
  }
  put(position, place);
}

static inline void timers_add(struct timer *timer, int64_t date) {
  if (heap.count == heap.capacity) {
    heap.capacity = heap.capacity ? 2 * heap.capacity : 64;
    heap.places = realloc(heap.places, heap.capacity * sizeof *heap.places);
  }
  timer->date = date;
  sift_up(heap.count++, (struct place){date, timer});
}

static inline void timers_remove(struct timer *timer) {
  size_t position = timer->position;
  struct place last = heap.places[--heap.count];
  if (position == heap.count) return;
  if (position > 0 && last.date < heap.places[(position - 1) / 4].date) sift_up(position, last);
  else sift_down(position, last);
}

static inline void timers_move(struct timer *timer, int64_t date) {
  timer->date = date;
  sift_down(timer->position, (struct place){date, timer});
}

static inline int64_t timers_next(void) { return heap.count > 0 ? heap.places[0].date : INT64_MAX; }

static inline bool timers_fire(int64_t now) {
  bool fired = false;
  while (heap.count > 0 && heap.places[0].date <= now) {
    struct timer *timer = heap.places[0].timer;
    timers_remove(timer);
    timer->fire(timer);
    fired = true;
  }
  return fired;
}
