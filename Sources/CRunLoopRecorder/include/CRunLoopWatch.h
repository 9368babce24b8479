// SPDX-License-Identifier: Apache-2.0

// What a watcher of hangs needs of the system: memory and processor time of threads that it must not disturb, and the
// word that it parks on. No logic lives here. Each returns a negative error number for a failure.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Reads the memory of a process, this one's too; returns how much could be read.
long crl_memory_read(int process, uint64_t address, void *buffer, size_t size);
// The same where `process_vm_readv` is refused: opens the memory as a file of /proc, which is closed on exec, and reads
// from that file.
int crl_memory_open(int process);
long crl_memory_read_file(int file, uint64_t address, void *buffer, size_t size);

// The word that watchers of this process park on: not zero while one parks. A loop that wakes reads it.
extern uint32_t crl_watcher_parked __attribute__((visibility("hidden")));
// Wakes the watchers.
void crl_watcher_wake(void);
// Says that a watcher is about to park; returns the word, which reads 1 until somebody wakes the watchers.
const uint32_t *crl_watcher_park(void);
static inline uint32_t crl_watcher_turn(const uint32_t *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }

// Notes that a loop has begun to do something.
//
// Relaxed: no order of one word would do, as it must not be read before the face is written. The watcher looks at the
// loops again a while after it has set the word.
static inline __attribute__((always_inline)) void crl_watcher_stir(void) {
  if (__builtin_expect(__atomic_load_n(&crl_watcher_parked, __ATOMIC_RELAXED) != 0, 0)) crl_watcher_wake();
}

// Notes whether the calling thread is in a call that is expected to be long, which is no hang. Gives what was noted
// before.
int crl_expect_long_call(int expected);

// Samples of the stack of a thread while it has a processor, taken by the kernel without a signal.
typedef struct crl_sampler {
  void *ring;
  size_t size;  // of what is mapped there
  int descriptor;
} crl_sampler;

enum { CRL_SAMPLE_FRAMES = 100, CRL_SAMPLE_STACK = 32768, CRL_SAMPLE_COUNTER = 32, CRL_SAMPLE_REGISTERS = 33 };

// One sample: the addresses that frame pointers lead to, the innermost first, the registers by the numbers that tables
// for unwinders use, with the program counter as the last, and how many bytes of the stack were copied.
typedef struct crl_sample {
  int frames;
  int has_registers;
  int stack;
  uint64_t addresses[CRL_SAMPLE_FRAMES];
  uint64_t registers[CRL_SAMPLE_REGISTERS];
} crl_sample;

// How much is mapped for samples of so many bytes on a system with pages of a size.
size_t crl_sampler_size(size_t page, size_t ring);
// Opens a sampler of a thread, with a sample for each `period` nanoseconds of processor time.
int crl_sampler_open(crl_sampler *sampler, int thread, uint64_t period);
// Copies the next sample, and the innermost part of its stack to memory of CRL_SAMPLE_STACK bytes; 0: there is none.
int crl_sampler_next(crl_sampler *sampler, crl_sample *sample, void *stack);
void crl_sampler_close(crl_sampler *sampler);

// Starts a thread that takes no signals; `body` gets `context`.
int crl_thread_start(void *(*body)(void *), void *context);
// Names the calling thread, for the kernel.
void crl_thread_set_kernel_name(const char *name);
