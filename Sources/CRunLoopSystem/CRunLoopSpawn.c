// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopSources.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

// An alias of `clone` that the thread sanitizer does not treat as a fork, because the child shares the memory.
extern int __clone(int (*body)(void *), void *stack, int flags, void *argument, ...);

// The child's instructions and its result. The child shares its parent's memory, and the parent waits meanwhile.
typedef struct {
  const crl_spawn_request *request;
  volatile int32_t failed;
  volatile int error;
} spawn_state;

enum { STACK_SIZE = 64 * 1024 };

// The kernel's signal action structure, which is no larger than this on any machine.
typedef struct {
  void (*handler)(int);
  unsigned long words[7];
} kernel_action;

static void fail(spawn_state *state, int32_t what, int error) {
  state->failed = what;
  state->error = error;
  syscall(SYS_exit_group, 127);
}

// A directory entry as returned by the kernel.
typedef struct {
  uint64_t number;
  int64_t offset;
  uint16_t size;
  uint8_t type;
  char name[];
} kernel_entry;

// Replaces `close_range` on Linux before 5.11 and where a filter rejects it. It handles the descriptors listed in
// /proc or, without /proc, every number below the current limit, up to 2^20.
__attribute__((no_sanitize("thread", "address"))) static void close_each_on_exec(void) {
  int list = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (list >= 0) {
    char buffer[2048] __attribute__((aligned(8)));
    long count;
    while ((count = syscall(SYS_getdents64, list, buffer, sizeof buffer)) > 0)
      for (long place = 0; place < count;) {
        const kernel_entry *entry = (const kernel_entry *)(buffer + place);
        place += entry->size;
        int number = 0;
        const char *digit = entry->name;
        while (*digit >= '0' && *digit <= '9') number = 10 * number + (*digit++ - '0');
        if (*digit == 0 && number > 2) syscall(SYS_fcntl, number, F_SETFD, FD_CLOEXEC);
      }
    syscall(SYS_close, list);
    if (count == 0) return;
  }
  // The kernel's resource limit structure: two 64-bit words, the second of which is the hard limit.
  uint64_t limit[2] = {1024, 1024};
  syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, limit);
  uint64_t end = limit[1] < 1 << 20 ? limit[1] : 1 << 20;
  for (uint64_t number = 3; number < end; number++) syscall(SYS_fcntl, (int)number, F_SETFD, FD_CLOEXEC);
}

// Whether a terminal sends the signal. A program with a terminal of its own must not ignore these because its parent
// does, as one started with nohup or in the background of a script does: its keys would have no effect.
static int is_from_terminal(int signal) {
  return signal == SIGINT || signal == SIGQUIT || signal == SIGHUP || signal == SIGTSTP || signal == SIGTTIN ||
         signal == SIGTTOU;
}

// Whether a descriptor is passed under the number.
__attribute__((no_sanitize("thread", "address"))) static int is_target(const crl_spawn_request *request, int number) {
  for (int32_t i = 0; i < request->count; i++)
    if (request->to[i] == number) return 1;
  return 0;
}

// Runs in the child, which has its parent's signal handlers and memory. All signals are therefore blocked, and only
// system calls are made.
__attribute__((no_sanitize("thread", "address"))) static int run_child(void *argument) {
  spawn_state *state = argument;
  const crl_spawn_request *request = state->request;
  for (int signal = 1; signal < 65; signal++) {
    kernel_action action = {0};
    if (syscall(SYS_rt_sigaction, signal, NULL, &action, 8) != 0) continue;
    int is_kept = signal != SIGPIPE && !(request->terminal >= 0 && is_from_terminal(signal));
    if (action.handler == SIG_DFL || (action.handler == SIG_IGN && is_kept)) continue;
    memset(&action, 0, sizeof action);
    syscall(SYS_rt_sigaction, signal, &action, NULL, 8);
  }
  if (request->leads_session && syscall(SYS_setsid) < 0) fail(state, CRL_SPAWN_SESSION, errno);
  if (request->terminal >= 0 && syscall(SYS_ioctl, request->terminal, TIOCSCTTY, 0) < 0)
    fail(state, CRL_SPAWN_TERMINAL, errno);
  if (request->leads_group && syscall(SYS_setpgid, 0, 0) < 0) fail(state, CRL_SPAWN_GROUP, errno);
  // First move the descriptors to numbers that are no targets, then to their targets.
  int32_t moved[256];
  for (int32_t i = 0; i < request->count; i++) {
    moved[i] = 2;
    do moved[i] = (int32_t)syscall(SYS_fcntl, request->from[i], F_DUPFD_CLOEXEC, moved[i] + 1);
    while (is_target(request, moved[i]));
    if (moved[i] < 0) fail(state, CRL_SPAWN_DESCRIPTORS | (i << 8), errno);
  }
  if (syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0) close_each_on_exec();
  for (int32_t i = 0; i < request->count; i++)
    if (syscall(SYS_dup3, moved[i], request->to[i], 0) < 0) fail(state, CRL_SPAWN_DESCRIPTORS | (i << 8), errno);
  if (request->directory && syscall(SYS_chdir, request->directory) < 0) fail(state, CRL_SPAWN_DIRECTORY, errno);
  uint64_t none = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8);
  // Reports the most informative error of all paths, as a shell does.
  int error = ENOENT;
  for (const char *const *path = request->paths; *path; path++) {
    syscall(SYS_execve, *path, request->arguments, request->environment);
    if (errno != ENOENT && errno != ENOTDIR && error != EACCES) error = errno;
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) break;
  }
  fail(state, CRL_SPAWN_EXECUTE, error);
  return 127;
}

int crl_spawn(const crl_spawn_request *request, int *process, int32_t *failed) {
  *failed = CRL_SPAWN_WAIT;
  // Linux before 5.4 would start a child that cannot be waited for; before 5.2, one without a descriptor.
  siginfo_t nothing;
  if (waitid((idtype_t)3, INT32_MAX, &nothing, WEXITED | WNOHANG) < 0 && errno != EBADF)
    return errno == EINVAL ? -ENOSYS : -errno;
  *failed = CRL_SPAWN_CLONE;
  if (request->count > 256) return -EINVAL;
  spawn_state state = {.request = request};
  char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return -errno;
  sigset_t all, before;
  sigfillset(&all);
  int cancel;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // The C library keeps two signals of its own unblocked; their handlers are harmless in the child at this point.
  int descriptor = -1;
  int answer = __clone(run_child, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &state, &descriptor);
  int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_setcancelstate(cancel, NULL);
  munmap(stack, STACK_SIZE);
  if (answer < 0) return -error;
  if (state.error != 0) {
    // The child has ended, and no other code knows of it.
    siginfo_t info;
    while (waitid((idtype_t)3, (id_t)descriptor, &info, WEXITED) < 0 && errno == EINTR) continue;
    close(descriptor);
    *failed = state.failed;
    return -state.error;
  }
  *process = descriptor;
  return answer;
}

int crl_terminal_resize(int descriptor, uint16_t columns, uint16_t rows) {
  struct winsize size = {.ws_col = columns, .ws_row = rows};
  return ioctl(descriptor, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

int crl_terminal_open(int *ends, uint16_t columns, uint16_t rows) {
  int near = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (near < 0) return -errno;
  int locked = 0, far = -1;
  // The slave is opened through the master, not by name, which could refer to another terminal in another mount.
  if (ioctl(near, TIOCSPTLCK, &locked) == 0) far = ioctl(near, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (far >= 0 && crl_terminal_resize(near, columns, rows) == 0) {
    ends[0] = near, ends[1] = far;
    return 0;
  }
  int error = errno;
  if (far >= 0) close(far);
  close(near);
  return -error;
}
