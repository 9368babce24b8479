// SPDX-License-Identifier: Apache-2.0

// Inspecting threads without disturbing them.

#include "CRunLoopRecorder.h"
#include "CRunLoopSystem.h"

#include <asm/perf_regs.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

long crl_memory_read(int process, uint64_t address, void *buffer, size_t size) {
  struct iovec here = {buffer, size}, there = {(void *)(uintptr_t)address, size};
  ssize_t count = process_vm_readv(process, &here, 1, &there, 1, 0);
  return count < 0 ? -errno : count;
}

int crl_memory_open(int process) {
  char path[32] = "/proc/self/mem";
  if (process != getpid()) snprintf(path, sizeof path, "/proc/%d/mem", process);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  return file < 0 ? -errno : file;
}

long crl_memory_read_file(int file, uint64_t address, void *buffer, size_t size) {
  // Addresses above the maximum offset belong to the kernel.
  ssize_t count = address > INT64_MAX ? 0 : pread(file, buffer, size, (off_t)address);
  return count < 0 ? -errno : count;
}

// Parking of watchers

uint32_t crl_watcher_parked = 0;

__attribute__((noinline, cold)) void crl_watcher_wake(void) {
  if (__atomic_exchange_n(&crl_watcher_parked, 0, __ATOMIC_SEQ_CST)) crl_futex_wake(&crl_watcher_parked, INT_MAX);
}

const uint32_t *crl_watcher_park(void) {
  // Each watcher uses a different number, so one that has read another's does not sleep on it. Relaxed: only the
  // number's uniqueness matters, and it is stored in the word afterwards.
  static uint32_t turn;
  __atomic_store_n(&crl_watcher_parked, __atomic_add_fetch(&turn, 2, __ATOMIC_RELAXED) | 1, __ATOMIC_SEQ_CST);
  return &crl_watcher_parked;
}

int crl_expect_long_call(int expected) {
  crl_recorder *recorder = crl_thread_recorder_get();
  if (!recorder) return 0;
  int flags = crl_recorder_flags(recorder);
  crl_recorder_set_flags(recorder, expected ? flags | CRL_FACE_EXPECTS : flags & ~CRL_FACE_EXPECTS);
  return (flags & CRL_FACE_EXPECTS) != 0;
}

// Samples of a running thread

// The mask of the registers in a sample, and their DWARF numbers in order.
#if defined(__x86_64__)
// The lowest nine bits are the first eight registers and the program counter. R8 and above follow after other
// registers.
#define SAMPLED_REGISTERS (0x1ffull | 0xffull << PERF_REG_X86_R8)
static const unsigned char numbers[] = {0, 3, 2, 1, 4, 5, 6, 7, CRL_SAMPLE_COUNTER, 8, 9, 10, 11, 12, 13, 14, 15};
#elif defined(__aarch64__)
#define SAMPLED_REGISTERS ((1ull << PERF_REG_ARM64_MAX) - 1)
static const unsigned char numbers[] = {
  0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
  17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, CRL_SAMPLE_COUNTER};
#else
#error "the processor's registers are not known"
#endif

// The number of stack bytes in a sample, and the size of the kernel's ring of samples, which must be a power of two in
// pages. Both are limited for unprivileged users.
static const struct {
  unsigned stack;
  size_t ring;
} sizes[] = {{CRL_SAMPLE_STACK, 524288}, {16384, 131072}, {8192, 65536}};

size_t crl_sampler_size(size_t page, size_t ring) { return page + (page < ring ? ring : page); }

static int open_sized(crl_sampler *sampler, int thread, uint64_t period, unsigned stack, size_t ring) {
  struct perf_event_attr attributes = {
    .type = PERF_TYPE_SOFTWARE,
    .size = sizeof attributes,
    .config = PERF_COUNT_SW_TASK_CLOCK,
    .sample_period = period,
    .sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
    .sample_regs_user = SAMPLED_REGISTERS,
    .sample_stack_user = stack,
    .exclude_hv = 1,
    .exclude_callchain_kernel = 1,
    .sample_max_stack = CRL_SAMPLE_FRAMES,
  };
  long descriptor = syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (descriptor < 0) {
    // Unprivileged users can only sample what a thread does outside the kernel.
    attributes.exclude_kernel = 1;
    descriptor = syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
  }
  if (descriptor < 0) return -errno;
  size_t size = crl_sampler_size((size_t)sysconf(_SC_PAGESIZE), ring);
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, (int)descriptor, 0);
  if (memory == MAP_FAILED) {
    int reason = errno;
    close((int)descriptor);
    return -reason;
  }
  *sampler = (crl_sampler){.ring = memory, .size = size, .descriptor = (int)descriptor};
  return 0;
}

int crl_sampler_open(crl_sampler *sampler, int thread, uint64_t period) {
  int answer = -EINVAL;
  for (size_t index = 0; index < sizeof sizes / sizeof *sizes && answer != 0; index++)
    answer = open_sized(sampler, thread, period, sizes[index].stack, sizes[index].ring);
  return answer;
}

// The part of the mapping that contains samples.
typedef struct samples {
  const char *bytes;
  uint64_t size;
} samples;

// The kernel reports its position; before Linux 4.1, it follows the first page.
static samples samples_of(const crl_sampler *sampler) {
  const struct perf_event_mmap_page *page = sampler->ring;
  uint64_t offset = page->data_offset, size = page->data_size;
  if (offset == 0) {
    offset = (uint64_t)sysconf(_SC_PAGESIZE);
    size = sampler->size - offset;
  }
  return (samples){(const char *)sampler->ring + offset, size};
}

// Copies from the ring, wrapping around at its end.
static void copy_out(samples data, uint64_t place, void *target, size_t size) {
  uint64_t start = place % data.size;
  size_t first = size < data.size - start ? size : (size_t)(data.size - start);
  memcpy(target, data.bytes + start, first);
  if (size - first <= data.size) memcpy((char *)target + first, data.bytes, size - first);
}

static void copy_sample(samples data, uint64_t place, crl_sample *sample, void *stack) {
  uint64_t count, address, value;
  copy_out(data, place, &count, sizeof count);
  place += 8;
  sample->frames = sample->has_registers = 0;
  sample->stack = 0;
  for (uint64_t index = 0; index < count; index++, place += 8) {
    copy_out(data, place, &address, sizeof address);
    // The highest values are markers for the context of the addresses that follow.
    if (address < (uint64_t)PERF_CONTEXT_MAX && sample->frames < CRL_SAMPLE_FRAMES)
      sample->addresses[sample->frames++] = address;
  }
  // Whether there are registers. A thread of a 32-bit program has different ones.
  copy_out(data, place, &value, sizeof value);
  place += 8;
  if (value != PERF_SAMPLE_REGS_ABI_NONE) {
    sample->has_registers = value == PERF_SAMPLE_REGS_ABI_64;
    for (size_t index = 0; index < sizeof numbers; index++, place += 8)
      copy_out(data, place, &sample->registers[numbers[index]], 8);
  }
  // The size of the stack area, the area itself, and then the number of valid bytes in it.
  copy_out(data, place, &count, sizeof count);
  if (count == 0) return;
  copy_out(data, place + 8 + count, &value, sizeof value);
  uint64_t size = (value < count ? value : count) & ~7ull;
  if (size > CRL_SAMPLE_STACK) size = CRL_SAMPLE_STACK;
  copy_out(data, place + 8, stack, size);
  sample->stack = (int)size;
}

int crl_sampler_next(crl_sampler *sampler, crl_sample *sample, void *stack) {
  struct perf_event_mmap_page *page = sampler->ring;
  samples data = samples_of(sampler);
  int found = 0;
  uint64_t tail = page->data_tail, head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
  while (!found && tail < head) {
    struct perf_event_header header;
    copy_out(data, tail, &header, sizeof header);
    if (header.size < sizeof header) break;
    if (header.type == PERF_RECORD_SAMPLE) {
      copy_sample(data, tail + sizeof header, sample, stack);
      found = sample->frames > 0;
    }
    tail += header.size;
  }
  __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
  return found;
}

void crl_sampler_close(crl_sampler *sampler) {
  munmap(sampler->ring, sampler->size);
  close(sampler->descriptor);
}

// The watcher's thread

int crl_thread_start(void *(*body)(void *), void *context) {
  sigset_t all, before;
  sigfillset(&all);
  // The thread reads memory that others can truncate.
  sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  int reason = pthread_create(&thread, &attributes, body, context);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return -reason;
}

void crl_thread_set_kernel_name(const char *name) { prctl(PR_SET_NAME, name, 0UL, 0UL, 0UL); }
