// SPDX-License-Identifier: Apache-2.0

// A timing wheel of four levels with 256 slots each, where a slot of the first level is 32 µs. A later date is only
// stored, and applied when the old one is reached.

#pragma once

struct timer {
  int64_t date;
  struct timer *next, **link;
  void (*fire)(struct timer *);
};

enum { LEVELS = 4, SLOT_BITS = 8, SLOTS = 1 << SLOT_BITS, TICK_BITS = 15 };

static struct {
  struct timer *slots[LEVELS][SLOTS];
  uint64_t occupied[LEVELS][SLOTS / 64];
  int64_t tick, count;
} wheel;

static inline void wheel_put(struct timer *timer) {
  // The tick at whose end the date has passed.
  int64_t tick = (timer->date >> TICK_BITS) + 1;
  if (tick < wheel.tick) tick = wheel.tick;
  int level = 0, shift = SLOT_BITS;
  while (level < LEVELS - 1 && tick >> shift != wheel.tick >> shift) {
    level++;
    shift += SLOT_BITS;
  }
  int slot = (int)(tick >> (SLOT_BITS * level)) & (SLOTS - 1);
  struct timer **head = &wheel.slots[level][slot];
  timer->next = *head;
  timer->link = head;
  if (*head) (*head)->link = &timer->next;
  *head = timer;
  wheel.occupied[level][slot / 64] |= 1ull << (slot % 64);
}

static inline void timers_add(struct timer *timer, int64_t date) {
  if (wheel.count++ == 0) wheel.tick = race_now() >> TICK_BITS;
  timer->date = date;
  wheel_put(timer);
}

static inline void timers_remove(struct timer *timer) {
  wheel.count--;
  *timer->link = timer->next;
  if (timer->next) timer->next->link = timer->link;
}

static inline void timers_move(struct timer *timer, int64_t date) { timer->date = date; }

/// Removes all timers from a slot.
static inline struct timer *wheel_take(int level, int slot) {
  struct timer *list = wheel.slots[level][slot];
  wheel.slots[level][slot] = NULL;
  wheel.occupied[level][slot / 64] &= ~(1ull << (slot % 64));
  return list;
}

/// Returns the first tick with work from the current one on, within this turn of the first level.
static inline int64_t wheel_next(void) {
  int slot = (int)wheel.tick & (SLOTS - 1);
  int64_t turn = wheel.tick - slot;
  for (int word = slot / 64; word < SLOTS / 64; word++) {
    uint64_t bits = wheel.occupied[0][word];
    if (word == slot / 64) bits &= ~0ull << (slot % 64);
    if (bits) return turn + word * 64 + __builtin_ctzll(bits);
  }
  return turn + SLOTS;
}

static inline int64_t timers_next(void) { return wheel.count > 0 ? wheel_next() << TICK_BITS : INT64_MAX; }

/// Advances to a tick. At the end of a level's turn, the next slot of the level above is distributed.
static inline void wheel_advance(int64_t tick) {
  wheel.tick = tick;
  for (int level = 1; level < LEVELS && (tick & ((1ll << (SLOT_BITS * level)) - 1)) == 0; level++) {
    struct timer *list = wheel_take(level, (int)(tick >> (SLOT_BITS * level)) & (SLOTS - 1));
    while (list) {
      struct timer *timer = list;
      list = timer->next;
      wheel_put(timer);
    }
  }
}

static inline bool timers_fire(int64_t now) {
  bool fired = false;
  while (wheel.count > 0 && wheel_next() <= now >> TICK_BITS) {
    if (wheel_next() > wheel.tick) wheel_advance(wheel_next());
    struct timer *list = wheel_take(0, (int)wheel.tick & (SLOTS - 1));
    if (list) list->link = &list;
    // Timers that a call-out adds for this tick are in the next one.
    wheel_advance(wheel.tick + 1);
    while (list) {
      struct timer *timer = list;
      list = timer->next;
      if (list) list->link = &list;
      if (timer->date > now) {
        wheel_put(timer);
      } else {
        wheel.count--;
        timer->fire(timer);
        fired = true;
      }
    }
  }
  return fired;
}
