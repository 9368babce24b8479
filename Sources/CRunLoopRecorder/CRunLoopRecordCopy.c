// SPDX-License-Identifier: Apache-2.0

// Reading this process's records while its loops write them.

#include "CRunLoopRecorder.h"
#include "CRunLoopSystem.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((no_sanitize("thread"))) int crl_numbered_copy(const void *source, void *target, size_t size) {
  const volatile uint64_t *words = source;
  uint64_t *copy = target;
  // The number, with which the rest was published, must be read first.
  copy[0] = __atomic_load_n((const uint64_t *)source, __ATOMIC_ACQUIRE);
  for (size_t index = 1; index < size / sizeof *words; index++) copy[index] = words[index];
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return copy[0] != 0 && words[0] == copy[0];
}

static uint32_t copy_ring(const crl_ring *ring, crl_record *records) {
  uint32_t count = 0;
  for (int index = 0; index < CRL_RECORDS; index++)
    if (crl_numbered_copy(&ring->records[index], &records[count], sizeof(crl_record))) count++;
  return count;
}

uint32_t crl_records_copy(const crl_recorder *recorder, crl_record *records) {
  const crl_ring *ring = __atomic_load_n(&recorder->ring, __ATOMIC_ACQUIRE);
  return ring ? copy_ring(ring, records) : 0;
}

crl_times crl_times_now(void) {
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  uint64_t before = crl_ticks();
  int64_t monotonic = crl_monotonic_nanoseconds();
  uint64_t after = crl_ticks();
  return (crl_times){.ticks = before + (after - before) / 2,
                     .monotonic = monotonic,
                     .wall = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec};
}

static int write_at(int file, const void *bytes, size_t count, size_t offset) {
  const char *place = bytes;
  while (count > 0) {
    ssize_t written = pwrite(file, place, count, (off_t)offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? -errno : -EIO;
    place += written;
    offset += (size_t)written;
    count -= (size_t)written;
  }
  return 0;
}

// Copies the front of the board first, because the loops continue to write it.
__attribute__((no_sanitize("thread"))) static void copy_words(void *target, const void *source, size_t size) {
  const volatile uint64_t *words = source;
  uint64_t *copy = target;
  for (size_t index = 0; index < size / sizeof *words; index++) copy[index] = words[index];
}

static int write_ring(int file, uint32_t slot, const crl_ring *ring, uint64_t since, crl_ring *copy) {
  memset(copy, 0, sizeof *copy);
  crl_record record;
  for (int index = 0; index < CRL_RECORDS; index++)
    if (crl_numbered_copy(&ring->records[index], &record, sizeof record) && record.begin >= since)
      copy->records[index] = record;
  for (int index = 0; index < CRL_POSTS; index++)
    if (!crl_numbered_copy(&ring->posts[index], &copy->posts[index], sizeof(crl_post))) copy->posts[index].sequence = 0;
  return write_at(file, copy, sizeof *copy, offsetof(crl_board, rings) + slot * sizeof *copy);
}

int crl_records_write(int file, uint64_t since) {
  size_t front = offsetof(crl_board, rings);
  const crl_board *board = crl_board_get();
  uint32_t rings = 0;
  for (uint32_t slot = 0; slot < CRL_RINGS; slot++) rings += (uint32_t)crl_slot_has_ring(slot);
  if (!board || rings == 0) return -ENODATA;
  crl_board *copy = malloc(front);
  crl_ring *ring_copy = malloc(sizeof *ring_copy);
  int answer = copy && ring_copy ? 0 : -ENOMEM;
  if (answer == 0) {
    copy_words(copy, board, front);
    copy->header = crl_instruments;
    copy->header.calibration[1] = crl_times_now();
    if (ftruncate(file, sizeof *board) != 0) answer = -errno;
  }
  if (answer == 0) answer = write_at(file, copy, front, 0);
  for (uint32_t slot = 0; answer == 0 && slot < CRL_RINGS; slot++)
    if (crl_slot_has_ring(slot)) answer = write_ring(file, slot, &board->rings[slot], since, ring_copy);
  free(copy);
  free(ring_copy);
  return answer;
}
