// SPDX-License-Identifier: Apache-2.0

// Restores terminals however the process ends: by `exit`, a signal, or a fault. Everything that a signal handler needs
// is prepared in advance, and it calls only async-signal-safe functions.

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <termios.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "CRunLoopTerminal.h"

// The amount of captured output that is shown, and the size above which the file that receives it is truncated.
enum { MOST_CAPTURED = 1 << 20, CAPTURE_SIZE = 32 << 20 };
enum { MOST_BYTES = 256, STACK = 64 << 10 };

struct terminal {
  atomic_int is_kept;
  // The index of the valid buffer, or a negative number if nothing has to be restored.
  atomic_int prepared;
  // The number of terminal replies that have not arrived.
  atomic_int answers;
  int descriptor;
  struct termios modes;
  struct {
    size_t count;
    uint8_t bytes[MOST_BYTES];
  } bytes[2];
};

static struct terminal terminals[CRL_TERMINALS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int kept;
// A forked child shares its parent's terminal, and must not restore it.
static atomic_int owner;
static uint8_t stack[STACK] __attribute__((aligned(16)));

// The memory file that receives the output, and the original standard output and standard error, or -1. Children
// inherit the file as descriptors 1 and 2, and can truncate it, as `> /dev/stderr` does.
static atomic_int captured = -1, saved_output = -1, saved_errors = -1;
// The end of the output, copied from the file to a ring buffer that no child can truncate. `taken` is the total number
// of bytes that have been added.
static uint8_t last_output[MOST_CAPTURED];
static atomic_ullong taken;
// Whether bytes were dropped before they could be added to the ring buffer.
static atomic_int is_cut;
// The size of the file at the last check, and the size above which it is truncated.
static off_t looked, largest;

static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS};
// The signals that end a process unless it handles them.
static const int ends[] = {SIGTERM, SIGHUP,  SIGINT,  SIGQUIT,   SIGUSR1, SIGUSR2,
                           SIGALRM, SIGPIPE, SIGXCPU, SIGVTALRM, SIGPROF, SIGXFSZ};
static struct sigaction actions[NSIG];
// Whether the terminals were restored because the process ends, and the thread that is writing a frame, or 0.
static atomic_int has_ended, frame_writer;

// If the process is in the background, another process group uses the terminal and has set its modes.
static int is_in_background(int descriptor) {
  pid_t group = tcgetpgrp(descriptor);
  return group > 0 && group != getpgrp();
}

int crl_terminal_put_back(int number) {
  struct terminal *terminal = &terminals[number];
  if (is_in_background(terminal->descriptor)) return 0;
  return tcsetattr(terminal->descriptor, TCSANOW, &terminal->modes) < 0 ? -errno : 0;
}

int crl_terminal_write_frame(int descriptor, const void *bytes, size_t count) {
  atomic_store(&frame_writer, gettid());
  int written = atomic_load(&has_ended) ? (int)count : crl_terminal_write(descriptor, bytes, count);
  atomic_store(&frame_writer, 0);
  return written;
}

static void give_back(void) {
  if (getpid() != atomic_load(&owner)) return;
  // Another thread may still draw. Its writes do not block, and the wait is bounded in case it cannot continue.
  atomic_store(&has_ended, 1);
  for (int round = 0, writer; round < 100 && (writer = atomic_load(&frame_writer)) && writer != gettid(); round++) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  for (int number = 0; number < CRL_TERMINALS; number++) {
    struct terminal *terminal = &terminals[number];
    if (!atomic_load(&terminal->is_kept)) continue;
    int prepared = atomic_exchange(&terminal->prepared, -1);
    if (prepared < 0 || is_in_background(terminal->descriptor)) continue;
    size_t count = terminal->bytes[prepared].count;
    // If the terminal has not read for this long, its pending output is discarded.
    if (crl_terminal_write_all(terminal->descriptor, terminal->bytes[prepared].bytes, count, 300) == -EAGAIN) {
      tcflush(terminal->descriptor, TCOFLUSH);
      crl_terminal_write_all(terminal->descriptor, terminal->bytes[prepared].bytes, count, 300);
    }
    int answers = atomic_load(&terminal->answers);
    if (answers > 0) crl_terminal_drop_answers(terminal->descriptor, answers);
    tcsetattr(terminal->descriptor, TCSANOW, &terminal->modes);
  }
  crl_terminal_show_output();
}

// Whether a handler also handles faults, as the toolchain's backtracer does for SIGABRT and SIGQUIT to report how the
// process ends. For other signals, the program may continue after the same handler.
static int is_of_faults(const struct sigaction *action) {
  const struct sigaction *fault = &actions[SIGSEGV];
  return action->sa_flags & SA_SIGINFO && fault->sa_flags & SA_SIGINFO && action->sa_sigaction == fault->sa_sigaction;
}

static void handle(int signal, siginfo_t *info, void *context) {
  int error = errno;
  give_back();
  sigaction(signal, &actions[signal], NULL);
  // A fault occurs again when the handler returns, and then reaches the previous handler. On other architectures than
  // x86 this includes traps; on x86, the program would continue after one.
  int is_fault = signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE;
#if !defined(__x86_64__) && !defined(__i386__)
  is_fault = is_fault || signal == SIGTRAP;
#endif
  if (!(is_fault && info->si_code > 0)) {
    raise(signal);
    // Deliver the signal here instead of at the thread's next action, with the mask of the interrupted code, because a
    // handler that analyses the fault relies on signals of its own.
    sigset_t interrupted = ((ucontext_t *)context)->uc_sigmask;
    sigdelset(&interrupted, signal);
    pthread_sigmask(SIG_SETMASK, &interrupted, NULL);
    // The backtracer has printed and expects the fault to occur again, which an abort or a quit does not do.
    if ((signal == SIGABRT || signal == SIGQUIT) && is_of_faults(&actions[signal])) {
      sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
      raise(signal);
    }
  }
  errno = error;
}

static void install(int signal, int only_if_usual) {
  struct sigaction before;
  sigaction(signal, NULL, &before);
  if (before.sa_flags & SA_SIGINFO && before.sa_sigaction == handle) return;
  int is_usual = !(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL;
  if (only_if_usual && !is_usual && !(signal == SIGQUIT && is_of_faults(&before))) return;
  // A fault signal that can be sent by other processes stays ignored if the program ignores it.
  if (!(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_IGN) return;
  actions[signal] = before;
  struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigfillset(&action.sa_mask);
  sigaction(signal, &action, NULL);
}

static void uninstall(int signal) {
  struct sigaction now;
  sigaction(signal, NULL, &now);
  if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == handle) sigaction(signal, &actions[signal], NULL);
}

static void install_all(void) {
  static int is_at_exit;
  atomic_store(&owner, getpid());
  if (!is_at_exit) atexit(give_back);
  is_at_exit = 1;
  // A handler cannot run on a stack that has overflowed. The thread that opens the terminal, which is the main thread,
  // gets an alternate stack unless the program has set one.
  stack_t before;
  if (sigaltstack(NULL, &before) == 0 && before.ss_flags & SS_DISABLE) {
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&own, NULL);
  }
  for (size_t index = 0; index < sizeof faults / sizeof *faults; index++) install(faults[index], 0);
  for (size_t index = 0; index < sizeof ends / sizeof *ends; index++) install(ends[index], 1);
}

static void uninstall_all(void) {
  for (size_t index = 0; index < sizeof faults / sizeof *faults; index++) uninstall(faults[index]);
  for (size_t index = 0; index < sizeof ends / sizeof *ends; index++) uninstall(ends[index]);
}

int crl_terminal_keep(int descriptor) {
  struct termios modes;
  if (tcgetattr(descriptor, &modes) < 0) return -errno;
  pthread_mutex_lock(&lock);
  for (int number = 0; number < CRL_TERMINALS; number++) {
    // The current modes are those of an open screen, and must not be restored later.
    if (atomic_load(&terminals[number].is_kept) && crl_terminal_is_same(descriptor, terminals[number].descriptor)) {
      pthread_mutex_unlock(&lock);
      return -EBUSY;
    }
  }
  for (int number = 0; number < CRL_TERMINALS; number++) {
    struct terminal *terminal = &terminals[number];
    if (atomic_load(&terminal->is_kept)) continue;
    terminal->descriptor = descriptor;
    terminal->modes = modes;
    atomic_store(&terminal->prepared, -1);
    atomic_store(&terminal->is_kept, 1);
    if (kept++ == 0) install_all();
    pthread_mutex_unlock(&lock);
    return number;
  }
  pthread_mutex_unlock(&lock);
  return -EMFILE;
}

void crl_terminal_forget(int number) {
  pthread_mutex_lock(&lock);
  atomic_store(&terminals[number].prepared, -1);
  atomic_store(&terminals[number].is_kept, 0);
  if (--kept == 0) uninstall_all();
  pthread_mutex_unlock(&lock);
}

void crl_terminal_prepare(int number, const uint8_t *bytes, size_t count, int answers) {
  struct terminal *terminal = &terminals[number];
  atomic_store(&terminal->answers, answers);
  if (!bytes || count > MOST_BYTES) {
    atomic_store(&terminal->prepared, -1);
    return;
  }
  // This is never the buffer that a handler may be writing.
  int next = atomic_load(&terminal->prepared) == 0;
  memcpy(terminal->bytes[next].bytes, bytes, count);
  terminal->bytes[next].count = count;
  atomic_store(&terminal->prepared, next);
}

int crl_terminal_set_raw(int number) {
  atomic_store(&has_ended, 0);
  struct termios raw = terminals[number].modes;
  cfmakeraw(&raw);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  for (;;) {
    if (tcsetattr(terminals[number].descriptor, TCSANOW, &raw) == 0) return 0;
    if (errno != EINTR) return -errno;
  }
}

int crl_terminal_is_captured(int descriptor) {
  struct stat one, other;
  int memory = atomic_load(&captured);
  return memory >= 0 && fstat(descriptor, &one) == 0 && fstat(memory, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

// Redirects a descriptor to the memory file if it refers to the terminal. Returns a copy of the original, or -1.
static int capture(int descriptor, int terminal, int memory) {
  if (!crl_terminal_is_same(descriptor, terminal)) return -1;
  int saved = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
  if (saved >= 0) dup2(memory, descriptor);
  return saved;
}

int crl_terminal_capture_output(int descriptor) {
  if (atomic_load(&captured) >= 0) return 0;
  if (!crl_terminal_is_same(STDOUT_FILENO, descriptor) && !crl_terminal_is_same(STDERR_FILENO, descriptor)) return 0;
  // The file is not sealed, because children open it as /dev/stderr to truncate it or to append to it.
  int memory = memfd_create("standard output", MFD_CLOEXEC);
  if (memory < 0) return 0;
  // Every write appends, even after a child has truncated the file.
  fcntl(memory, F_SETFL, O_APPEND);
  // A write beyond the file size limit would raise SIGXFSZ.
  struct rlimit limit;
  largest = CAPTURE_SIZE;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur / 2 < CAPTURE_SIZE) largest = (off_t)(limit.rlim_cur / 2);
  atomic_store(&taken, 0);
  atomic_store(&is_cut, 0);
  looked = 0;
  // Earlier output must come first, and `print` must keep its line buffering.
  fflush(stdout);
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  atomic_store(&captured, memory);
  atomic_store(&saved_output, capture(STDOUT_FILENO, descriptor, memory));
  atomic_store(&saved_errors, capture(STDERR_FILENO, descriptor, memory));
  return 1;
}

// Adds the contents of the file, up to `end`, to the ring buffer. If a signal handler interrupts and calls it, both
// write the same bytes to the same places until `taken` is stored.
static void take(int memory, off_t end) {
  off_t start = lseek(memory, 0, SEEK_DATA);
  if (start < 0) return;
  if (end - start > MOST_CAPTURED) {
    start = end - MOST_CAPTURED;
    atomic_store(&is_cut, 1);
  }
  unsigned long long count = atomic_load(&taken);
  // The buffer is small enough for the stack of a signal handler.
  uint8_t buffer[4096];
  while (start < end) {
    size_t wanted = (size_t)(end - start) < sizeof buffer ? (size_t)(end - start) : sizeof buffer;
    ssize_t read = pread(memory, buffer, wanted, start);
    if (read <= 0) break;
    start += read;
    // Zeros were taken before, or are in a hole created by a child's own offset. Terminals ignore them.
    for (ssize_t index = 0; index < read; index++) {
      if (buffer[index]) last_output[count++ % MOST_CAPTURED] = buffer[index];
    }
  }
  atomic_store(&taken, count);
}

int crl_terminal_trim_output(void) {
  int memory = atomic_load(&captured);
  struct stat status;
  if (memory < 0 || fstat(memory, &status) < 0) return 0;
  // A child may have truncated the file and written the same amount again. Then the first byte is no longer zero.
  char first = 0;
  if (status.st_size == looked && (looked == 0 || pread(memory, &first, 1, 0) != 1 || first == 0)) return 0;
  off_t end = status.st_size;
  looked = end;
  if (end == 0) return 1;
  take(memory, end);
  // Zeros mark the bytes that were taken, and use no memory. Bytes that other threads append meanwhile are kept.
  int error = fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, end);
  // Bytes that another thread writes between these two calls are lost, so this is done rarely.
  int is_large = error < 0 || (end > largest && fstat(memory, &status) == 0 && status.st_size == end);
  if (is_large && ftruncate(memory, 0) == 0) looked = 0;
  return 1;
}

// Restores a descriptor that was redirected to the memory file.
static void restore(int descriptor, atomic_int *place) {
  int saved = atomic_exchange(place, -1);
  if (saved < 0) return;
  // The program may have replaced the descriptor meanwhile.
  if (crl_terminal_is_captured(descriptor)) dup2(saved, descriptor);
  close(saved);
}

void crl_terminal_show_output(void) {
  int memory = atomic_load(&captured);
  int output = atomic_load(&saved_output) >= 0 ? STDOUT_FILENO : STDERR_FILENO;
  if (memory < 0) return;
  restore(STDOUT_FILENO, &saved_output);
  restore(STDERR_FILENO, &saved_errors);
  if (atomic_exchange(&captured, -1) < 0) return;
  struct stat status;
  if (fstat(memory, &status) == 0) take(memory, status.st_size);
  unsigned long long end = atomic_load(&taken), start = end > MOST_CAPTURED ? end - MOST_CAPTURED : 0;
  static const char cut[] = "(what was written before was too much to keep)\n";
  if (start > 0 || atomic_load(&is_cut)) crl_terminal_write_all(output, cut, sizeof cut - 1, 1000);
  while (start < end) {
    // The output is written in chunks, because the time limit applies to each write.
    size_t place = start % MOST_CAPTURED, count = 4096 - place % 4096;
    if (count > end - start) count = (size_t)(end - start);
    if (crl_terminal_write_all(output, last_output + place, count, 1000) < 0) break;
    start += count;
  }
  close(memory);
}
