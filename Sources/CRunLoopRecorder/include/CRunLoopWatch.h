// SPDX-License-Identifier: Apache-2.0

// System interfaces for a watcher of hangs: memory and processor time of threads that it must not disturb, and the
// word on which it parks. They contain no logic, and return a negative errno on failure.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Reads the memory of a process, which may be this one, and returns the number of bytes read.
long crl_memory_read(int process, uint64_t address, void *buffer, size_t size);
// An alternative where `process_vm_readv` is rejected: opens the memory as a /proc file, closed on exec, and reads
// from it.
int crl_memory_open(int process);
long crl_memory_read_file(int file, uint64_t address, void *buffer, size_t size);

// The word on which this process's watchers park. It is nonzero while one is parked, and read by a loop that wakes.
extern uint32_t crl_watcher_parked __attribute__((visibility("hidden")));
// Wakes the parked watchers.
void crl_watcher_wake(void);
// Announces that a watcher is about to park. Returns the word, which keeps its odd value until the watchers are woken.
const uint32_t *crl_watcher_park(void);
static inline uint32_t crl_watcher_turn(const uint32_t *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }

// Notes that a loop has become active.
//
// Relaxed: no ordering of this one load would prevent it from being made before the face is written. The watcher
// therefore checks the loops again a while after it has set the word.
static inline __attribute__((always_inline)) void crl_watcher_stir(void) {
  if (__builtin_expect(__atomic_load_n(&crl_watcher_parked, __ATOMIC_RELAXED) != 0, 0)) crl_watcher_wake();
}

// Sets whether the calling thread is in a call that is expected to take long, which is not a hang. Returns the
// previous value.
int crl_expect_long_call(int expected);

// Samples of a thread's stack while it is running, taken by the kernel without signals.
typedef struct crl_sampler {
  void *ring;
  size_t size;  // of the mapped memory
  int descriptor;
} crl_sampler;

enum { CRL_SAMPLE_FRAMES = 100, CRL_SAMPLE_STACK = 32768, CRL_SAMPLE_COUNTER = 32, CRL_SAMPLE_REGISTERS = 33 };

// A sample: the addresses found by following frame pointers, innermost first; the registers by DWARF number, with the
// program counter last; and the number of stack bytes copied.
typedef struct crl_sample {
  int frames;
  int has_registers;
  int stack;
  uint64_t addresses[CRL_SAMPLE_FRAMES];
  uint64_t registers[CRL_SAMPLE_REGISTERS];
} crl_sample;

// The size of the mapping for a ring of samples of a given size, on a system with a given page size.
size_t crl_sampler_size(size_t page, size_t ring);
// Opens a sampler for a thread that takes a sample every `period` nanoseconds of processor time.
int crl_sampler_open(crl_sampler *sampler, int thread, uint64_t period);
// Copies the next sample, and the innermost CRL_SAMPLE_STACK bytes of its stack. Returns 0 if there is none.
int crl_sampler_next(crl_sampler *sampler, crl_sample *sample, void *stack);
void crl_sampler_close(crl_sampler *sampler);

// Starts a thread that calls `body` with `context`, with all signals except SIGBUS blocked.
int crl_thread_start(void *(*body)(void *), void *context);
// Sets the calling thread's kernel name.
void crl_thread_set_kernel_name(const char *name);
