// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopKit.h"

#include <CRunLoopSystem.h>
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else
#include <unwind.h>
#endif

// Implemented in RunLoopKit, in Swift.
void rlk_port_became_invalid(void *port);
void rlk_port_came_with_sources(void *port);
void rlk_thread_will_start(void *thread);
void rlk_thread_will_exit(void *thread);
void rlk_main_loop_is_made(void *loop);
void rlk_main_loop_is_known(void *loop);
void rlk_thread_has_other_loop(void *loop);

// Functions that Core Foundation exports without declaring them in a header.
const void *_CFRunLoopGet0b(pthread_t thread);
pthread_t _CFRunLoopGet1(const void *loop);
void _CFRunLoopStopMode(const void *loop, const void *mode);
unsigned char CFRunLoopSourceIsSignalled(const void *source);
unsigned char _CFRunLoopFinished(const void *loop, const void *mode);
void *_CFSetTSD(uint32_t slot, void *value, void (*destructor)(void *));
// The slot of thread-specific data that marks a thread draining the main dispatch queue.
enum { SLOT_DRAINS_MAIN_QUEUE = 4 };
// The slot that contains the loop of a thread, if the thread has requested it.
enum { SLOT_LOOP = 10 };
void *_CFGetTSDCreateIfNeeded(uint32_t slot, unsigned char makes_table);

// The first thread, if it loaded the library.
static pthread_t first_thread;
static int knows_first_thread;

// No Core Foundation data is created for a thread that has none.
static void look_for_other(void *loop) {
  if (_CFGetTSDCreateIfNeeded(SLOT_LOOP, 0)) rlk_thread_has_other_loop(loop);
}

// Runs before main, or when the library is loaded. It only stores addresses, before the Swift runtime is ready.
__attribute__((constructor)) static void set_hooks(void) {
  crl_hook_exchange(CRL_HOOK_PORT_BECAME_INVALID, rlk_port_became_invalid);
  crl_hook_exchange(CRL_HOOK_PORT_CAME_WITH_SOURCES, rlk_port_came_with_sources);
  crl_hook_exchange(CRL_HOOK_THREAD_WILL_START, rlk_thread_will_start);
  crl_hook_exchange(CRL_HOOK_THREAD_WILL_EXIT, rlk_thread_will_exit);
  crl_hook_exchange(CRL_HOOK_MAIN_LOOP_IS_MADE, rlk_main_loop_is_made);
  crl_hook_exchange(CRL_HOOK_MAIN_LOOP_IS_KNOWN, rlk_main_loop_is_known);
  crl_hook_exchange(CRL_HOOK_LOOP_LOOKS_FOR_OTHER, look_for_other);
  if (crl_thread_id() == getpid()) {
    first_thread = pthread_self();
    knows_first_thread = 1;
  }
}

// For Core Foundation, a null thread is the main thread.
const void *rlk_main_loop_if_made(void) { return _CFRunLoopGet0b((pthread_t)0); }

const void *rlk_current_loop_if_made(void) { return _CFRunLoopGet0b(pthread_self()); }

int rlk_is_main_loop(const void *loop) {
  return knows_first_thread && pthread_equal(_CFRunLoopGet1(loop), first_thread);
}

// Returns whether a descriptor is an eventfd.
static int is_counter(int descriptor) {
  char path[32], name[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(path, name, sizeof name - 1);
  if (length < 0) return 0;
  name[length] = 0;
  return strcmp(name, "anon_inode:[eventfd]") == 0;
}

// Core Foundation provides no function for this. A loop object begins with its header, its lock, and the eventfd that
// wakes it. The result is the only number in that region that is open as an eventfd, if it is in the expected place.
enum { LOOP_HEADER = 16, LOOP_KNOWN = 96 };

static int find_wake_number(const void *loop) {
  int found = -1, count = 0;
  size_t place = LOOP_HEADER + sizeof(pthread_mutex_t);
  place = (place + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
  for (size_t offset = LOOP_HEADER; offset < LOOP_KNOWN; offset += sizeof(int)) {
    int number;
    memcpy(&number, (const char *)loop + offset, sizeof number);
    if (number <= STDERR_FILENO || !is_counter(number)) continue;
    count++;
    if (offset >= place && offset <= place + sizeof(void *)) found = number;
  }
  return count == 1 ? found : -1;
}

int rlk_wake_number(const void *loop) {
  // A forked child has a different main loop. Threads that get here at the same time find the same number.
  static _Atomic(const void *) known_loop;
  static atomic_int known_number;
  if (!rlk_is_main_loop(loop)) return -1;
  if (atomic_load(&known_loop) != loop) {
    atomic_store(&known_number, find_wake_number(loop));
    atomic_store(&known_loop, loop);
  }
  return atomic_load(&known_number);
}

int rlk_has_items(const void *loop, const void *mode) {
  // Unless the main dispatch queue is being drained, it prevents the common modes of the main loop from being
  // considered empty on the main thread.
  void *before = _CFSetTSD(SLOT_DRAINS_MAIN_QUEUE, &first_thread, NULL);
  int has_items = !_CFRunLoopFinished(loop, mode);
  _CFSetTSD(SLOT_DRAINS_MAIN_QUEUE, before, NULL);
  return has_items;
}

int rlk_begin_draining(void) {
  if (_CFGetTSDCreateIfNeeded(SLOT_DRAINS_MAIN_QUEUE, 0)) return 0;
  _CFSetTSD(SLOT_DRAINS_MAIN_QUEUE, &first_thread, NULL);
  return 1;
}

void rlk_end_draining(void) { _CFSetTSD(SLOT_DRAINS_MAIN_QUEUE, NULL, NULL); }

// A structure of Core Foundation: one for each active run of a loop, and one for the time between runs.
typedef struct {
  uint32_t marks[2];
  uint32_t is_stopped;
  uint32_t ignores_wakeups;
} run_data;

enum { RUN_DATA_MARK = 0x4346524c, LOOP_SIZE = 256 };

static int reads(const void *address, void *bytes, size_t size) {
  struct iovec here = {bytes, size}, there = {(void *)(uintptr_t)address, size};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size;
}

int rlk_find_run_data(const void *loop) {
  run_data *words[LOOP_SIZE / sizeof(void *)];
  if (!reads(loop, words, sizeof words)) return -1;
  for (size_t index = 0; index < sizeof words / sizeof *words; index++) {
    run_data data;
    if ((uintptr_t)words[index] < 4096 || (uintptr_t)words[index] % sizeof(uint32_t) != 0) continue;
    if (!reads(words[index], &data, sizeof data)) continue;
    if (data.marks[0] == RUN_DATA_MARK && data.marks[1] == RUN_DATA_MARK) return (int)(index * sizeof(void *));
  }
  return -1;
}

void rlk_heed_wakeups(const void *loop, int offset) {
  run_data *data = *(run_data *const *)((const char *)loop + offset);
  __atomic_store_n(&data->ignores_wakeups, 0, __ATOMIC_RELAXED);
}

void rlk_stop_mode(const void *loop, const void *mode) { _CFRunLoopStopMode(loop, mode); }

int rlk_is_signalled(const void *source) { return CFRunLoopSourceIsSignalled(source); }

// Returns whether the file that describes an epoll set lists a descriptor.
static int lists(FILE *description, int descriptor) {
  char line[256];
  int listed;
  while (fgets(line, sizeof line, description))
    if (sscanf(line, "tfd: %d", &listed) == 1 && listed == descriptor) return 1;
  return 0;
}

int rlk_epoll_set_with(int descriptor) {
  DIR *all = opendir("/proc/self/fd");
  if (!all) return -1;
  int found = -1, looked = 0;
  for (struct dirent *entry; found < 0 && looked < RLK_DESCRIPTOR_LIMIT && (entry = readdir(all)); looked++) {
    char path[64], target[32];
    ssize_t length = readlinkat(dirfd(all), entry->d_name, target, sizeof target - 1);
    if (length < 0) continue;
    target[length] = 0;
    if (strcmp(target, "anon_inode:[eventpoll]") != 0) continue;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%.10s", entry->d_name);
    FILE *description = fopen(path, "re");
    if (!description) continue;
    if (lists(description, descriptor)) found = atoi(entry->d_name);
    fclose(description);
  }
  closedir(all);
  return found;
}

#if __has_include(<execinfo.h>)
#define take_stack backtrace
#else
// musl has no backtrace function, so this uses the compiler's unwinder.
typedef struct unwinding {
  void **addresses;
  int count, limit;
} unwinding;

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *frame, void *context) {
  unwinding *taken = context;
  if (taken->count == taken->limit) return _URC_END_OF_STACK;
  taken->addresses[taken->count++] = (void *)_Unwind_GetIP(frame);
  return _URC_NO_REASON;
}

static int take_stack(void **addresses, int limit) {
  unwinding taken = {addresses, 0, limit};
  _Unwind_Backtrace(note_frame, &taken);
  return taken.count;
}
#endif

__attribute__((noinline)) int rlk_stack(void *addresses[RLK_STACK_LIMIT]) {
  // The innermost frames belong to the unwinder, of which a sanitizer may add more; the caller's frame follows.
  void *all[RLK_STACK_LIMIT + 8];
  int found = take_stack(all, RLK_STACK_LIMIT + 8), first = 0;
  while (first < found && all[first] != __builtin_return_address(0)) first += 1;
  int count = found - (first + 1);
  if (count > RLK_STACK_LIMIT) count = RLK_STACK_LIMIT;
  for (int index = 0; index < count; index++) addresses[index] = all[first + 1 + index];
  return count > 0 ? count : 0;
}

int rlk_place_find(uintptr_t address, rlk_place *place) {
  Dl_info info, program;
  if (dladdr((void *)address, &info) == 0 || info.dli_fname == NULL) return 0;
  place->name = info.dli_fname;
  place->path = info.dli_fname;
  place->base = (uintptr_t)info.dli_fbase;
  place->symbol = info.dli_sname;
  place->symbol_address = (uintptr_t)info.dli_saddr;
  // The program's own name may be relative to an earlier working directory.
  int is_known = dladdr((void *)getauxval(AT_PHDR), &program);
  if (is_known && program.dli_fbase == info.dli_fbase) place->path = "/proc/self/exe";
  return 1;
}
