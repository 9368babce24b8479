// SPDX-License-Identifier: Apache-2.0

// How a watcher looks at threads without touching them.

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
  // An address above the greatest offset is one of the kernel's.
  ssize_t count = address > INT64_MAX ? 0 : pread(file, buffer, size, (off_t)address);
  return count < 0 ? -errno : count;
}

// The watcher parks

uint32_t crl_watcher_parked = 0;

__attribute__((noinline, cold)) void crl_watcher_wake(void) {
  if (__atomic_exchange_n(&crl_watcher_parked, 0, __ATOMIC_SEQ_CST)) crl_futex_wake(&crl_watcher_parked, INT_MAX);
}

const uint32_t *crl_watcher_park(void) {
  // Each has a number of its own: who has seen another's does not sleep on it.
  // Relaxed: no more than the number is asked of it, and the word that has it is stored after it.
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

// Samples of a thread that has a processor

// Where a function without a frame may return to, or nothing of use.
#if defined(__x86_64__)
#define RETURN_REGISTER PERF_REG_X86_SP
#elif defined(__aarch64__)
#define RETURN_REGISTER PERF_REG_ARM64_LR
#else
#error "the processor's registers are not known"
#endif

// How many bytes of samples the kernel keeps, in whole pages whose number is a power of two.
enum { SAMPLER_BYTES = 65536 };

size_t crl_sampler_size(size_t page) { return page + (page < SAMPLER_BYTES ? SAMPLER_BYTES : page); }

int crl_sampler_open(crl_sampler *sampler, int thread, uint64_t period) {
  struct perf_event_attr attributes = {
    .type = PERF_TYPE_SOFTWARE,
    .size = sizeof attributes,
    .config = PERF_COUNT_SW_TASK_CLOCK,
    .sample_period = period,
    .sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
    .sample_regs_user = 1ull << RETURN_REGISTER,
    .sample_stack_user = 8 * CRL_SAMPLE_WORDS,
    .exclude_hv = 1,
    .exclude_callchain_kernel = 1,
    .sample_max_stack = CRL_SAMPLE_FRAMES,
  };
  long descriptor = syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (descriptor < 0) {
    // Whoever is not root may see what a thread does outside the kernel only.
    attributes.exclude_kernel = 1;
    descriptor = syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
  }
  if (descriptor < 0) return -errno;
  size_t size = crl_sampler_size((size_t)sysconf(_SC_PAGESIZE));
  void *ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, (int)descriptor, 0);
  if (ring == MAP_FAILED) {
    int reason = errno;
    close((int)descriptor);
    return -reason;
  }
  sampler->ring = ring;
  sampler->size = size;
  sampler->descriptor = (int)descriptor;
  return 0;
}

// The part of the mapping that holds samples.
typedef struct samples {
  const char *bytes;
  uint64_t size;
} samples;

// Where the kernel says; before Linux 4.1 it does not, and they follow the first page.
static samples samples_of(const crl_sampler *sampler) {
  const struct perf_event_mmap_page *page = sampler->ring;
  uint64_t offset = page->data_offset, size = page->data_size;
  if (offset == 0) {
    offset = (uint64_t)sysconf(_SC_PAGESIZE);
    size = sampler->size - offset;
  }
  return (samples){(const char *)sampler->ring + offset, size};
}

// Copies from the ring, which begins anew at its end.
static void copy_out(samples data, uint64_t place, void *target, size_t size) {
  for (size_t done = 0; done < size; done += 8)
    memcpy((char *)target + done, data.bytes + (place + done) % data.size, 8);
}

static void copy_sample(samples data, uint64_t place, crl_sample *sample) {
  uint64_t count, address, value;
  copy_out(data, place, &count, sizeof count);
  place += 8;
  sample->frames = sample->words = 0;
  for (uint64_t index = 0; index < count; index++, place += 8) {
    copy_out(data, place, &address, sizeof address);
    // The greatest numbers tell whose addresses follow.
    if (address < (uint64_t)PERF_CONTEXT_MAX && sample->frames < CRL_SAMPLE_FRAMES)
      sample->addresses[sample->frames++] = address;
  }
  // Whether there are registers, of which there is one.
  copy_out(data, place, &value, sizeof value);
  place += 8;
  if (value != PERF_SAMPLE_REGS_ABI_NONE) {
    copy_out(data, place, &value, sizeof value);
    place += 8;
#if defined(__aarch64__)
    sample->stack[sample->words++] = value;
#endif
  }
  // How many bytes of the stack stand here, and behind them how many of these are there.
  copy_out(data, place, &count, sizeof count);
  if (count == 0) return;
  copy_out(data, place + 8 + count, &value, sizeof value);
  for (uint64_t index = 0; index < value / 8 && index < count / 8 && sample->words < CRL_SAMPLE_WORDS; index++)
    copy_out(data, place + 8 + 8 * index, &sample->stack[sample->words++], 8);
}

int crl_sampler_next(crl_sampler *sampler, crl_sample *sample) {
  struct perf_event_mmap_page *page = sampler->ring;
  samples data = samples_of(sampler);
  int found = 0;
  uint64_t tail = page->data_tail, head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
  while (!found && tail < head) {
    struct perf_event_header header;
    copy_out(data, tail, &header, sizeof header);
    if (header.size < sizeof header) break;
    if (header.type == PERF_RECORD_SAMPLE) {
      copy_sample(data, tail + sizeof header, sample);
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
  // It reads memory that others can cut off.
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
