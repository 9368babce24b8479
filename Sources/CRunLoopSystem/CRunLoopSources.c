// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopSources.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

// The listeners for each signal form a list that handlers traverse without a lock, on any thread and at any time.
// Writers hold the mutex; a writer that removes a listener waits for every handler that may have seen it to return.

struct crl_signal_watch {
  _Atomic(crl_signal_watch *) next;
  int signal;
  int descriptor;
  int is_linked;
  _Atomic uint64_t count;
  // Odd while a handler writes the fields below.
  _Atomic uint32_t version;
  _Atomic int32_t code;
  _Atomic int32_t sender;
  _Atomic uint32_t user;
  _Atomic int64_t value;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(crl_signal_watch *) watches[_NSIG];
static struct sigaction previous[_NSIG];
static int is_installed[_NSIG];
// The process to which the listeners belong. In a forked child, the descriptors are its parent's.
static _Atomic pid_t owner;
// The number of running handlers, counted in two alternating counters.
static _Atomic uint32_t turn;
static _Atomic uint32_t running[2];

static void note(crl_signal_watch *watch, const siginfo_t *info) {
  uint32_t version = atomic_load(&watch->version);
  // Of two simultaneous signals, either may count as the latest.
  if ((version & 1) == 0 && atomic_compare_exchange_strong(&watch->version, &version, version + 1)) {
    atomic_store(&watch->code, info->si_code);
    atomic_store(&watch->sender, info->si_pid);
    atomic_store(&watch->user, info->si_uid);
    atomic_store(&watch->value, (int64_t)(intptr_t)info->si_value.sival_ptr);
    atomic_store(&watch->version, version + 2);
  }
  // The reader first empties the descriptor and then takes the count, so a handler that finds a nonzero count can rely
  // on the write of an earlier one.
  if (atomic_fetch_add(&watch->count, 1) == 0) {
    uint64_t one = 1;
    ssize_t answer = write(watch->descriptor, &one, sizeof one);
    (void)answer;
  }
}

// Must be async-signal-safe.
static void handle(int signal, siginfo_t *info, void *context) {
  (void)context;
  int error = errno;
  if (atomic_load(&owner) == getpid()) {
    _Atomic uint32_t *place = &running[atomic_load(&turn) & 1];
    atomic_fetch_add(place, 1);
    for (crl_signal_watch *watch = atomic_load(&watches[signal]); watch != NULL; watch = atomic_load(&watch->next))
      note(watch, info);
    atomic_fetch_sub(place, 1);
  }
  errno = error;
}

// Waits for the running handlers. Handlers that start meanwhile use the other counter, so a continuous stream of
// signals cannot block this. It is done twice, in case a handler has read the turn but has not been counted yet.
static void await_handlers(void) {
  for (int round = 0; round < 2; round++) {
    uint32_t before = atomic_fetch_add(&turn, 1);
    while (atomic_load(&running[before & 1]) != 0) sched_yield();
  }
}

static int is_ours(const struct sigaction *action) {
  return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == handle;
}

static int restore(int signal) {
  struct sigaction current;
  if (sigaction(signal, NULL, &current) < 0) return -errno;
  if (is_ours(&current) && sigaction(signal, &previous[signal], NULL) < 0) return -errno;
  is_installed[signal] = 0;
  return 0;
}

// Fork handlers. A child has its parent's memory and descriptors but must not write to them, so the previous signal
// actions are restored in the child. Signals are blocked during the fork.
static _Thread_local sigset_t mask_before_fork;

static void prepare_fork(void) {
  sigset_t all;
  sigfillset(&all);
  // If SIGBUS were blocked, accessing records whose file was truncated would kill the process.
  sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &mask_before_fork);
  pthread_mutex_lock(&mutex);
}

static void finish_fork_in_parent(void) {
  pthread_mutex_unlock(&mutex);
  pthread_sigmask(SIG_SETMASK, &mask_before_fork, NULL);
}

static void finish_fork_in_child(void) {
  for (int signal = 1; signal < _NSIG; signal++) {
    for (crl_signal_watch *watch = atomic_load(&watches[signal]); watch != NULL; watch = atomic_load(&watch->next))
      watch->is_linked = 0;
    atomic_store(&watches[signal], NULL);
    if (is_installed[signal]) restore(signal);
  }
  // Handlers on other threads of the parent do not exist in the child.
  atomic_store(&running[0], 0);
  atomic_store(&running[1], 0);
  atomic_store(&owner, getpid());
  pthread_mutex_unlock(&mutex);
  pthread_sigmask(SIG_SETMASK, &mask_before_fork, NULL);
}

static void set_up(void) {
  atomic_store(&owner, getpid());
  pthread_atfork(prepare_fork, finish_fork_in_parent, finish_fork_in_child);
}

static void unlink_watch(crl_signal_watch *watch) {
  _Atomic(crl_signal_watch *) *place = &watches[watch->signal];
  while (atomic_load(place) != watch) place = &atomic_load(place)->next;
  atomic_store(place, atomic_load(&watch->next));
  watch->is_linked = 0;
  await_handlers();
}

crl_signal_watch *crl_signal_watch_create(int signal, int descriptor) {
  crl_signal_watch *watch = calloc(1, sizeof *watch);
  if (watch == NULL) return NULL;
  watch->signal = signal;
  watch->descriptor = descriptor;
  return watch;
}

int crl_signal_watch_start(crl_signal_watch *watch) {
  int signal = watch->signal;
  if (signal < 1 || signal >= _NSIG) return -EINVAL;
  pthread_once(&once, set_up);
  pthread_mutex_lock(&mutex);
  // Linked before the handler is installed, so that the first signal finds the listener.
  atomic_store(&watch->next, atomic_load(&watches[signal]));
  atomic_store(&watches[signal], watch);
  watch->is_linked = 1;
  int answer = 0;
  struct sigaction current;
  if (sigaction(signal, NULL, &current) < 0) {
    answer = -errno;
  } else if (!is_ours(&current)) {
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    answer = sigaction(signal, &action, &current) < 0 ? -errno : 0;
    if (answer == 0) previous[signal] = current;
  }
  if (answer == 0) {
    is_installed[signal] = 1;
  } else {
    unlink_watch(watch);
  }
  pthread_mutex_unlock(&mutex);
  return answer;
}

void crl_signal_watch_stop(crl_signal_watch *watch) {
  pthread_mutex_lock(&mutex);
  if (watch->is_linked) unlink_watch(watch);
  pthread_mutex_unlock(&mutex);
}

void crl_signal_watch_destroy(crl_signal_watch *watch) { free(watch); }

void crl_signal_watch_take(crl_signal_watch *watch, crl_signal_record *record) {
  record->count = atomic_exchange(&watch->count, 0);
  uint32_t version;
  do {
    version = atomic_load(&watch->version);
    record->code = atomic_load(&watch->code);
    record->sender = atomic_load(&watch->sender);
    record->user = atomic_load(&watch->user);
    record->value = atomic_load(&watch->value);
  } while ((version & 1) != 0 || version != atomic_load(&watch->version));
}

int crl_signal_restore(int signal) {
  pthread_mutex_lock(&mutex);
  int answer = is_installed[signal] && atomic_load(&watches[signal]) == NULL ? restore(signal) : 0;
  pthread_mutex_unlock(&mutex);
  return answer;
}

int crl_signal_is_handled(int signal) {
  struct sigaction current;
  return sigaction(signal, NULL, &current) == 0 && is_ours(&current);
}

int crl_process_wait(int descriptor, int keeps, int32_t *code, int32_t *status) {
  siginfo_t info = {0};
  // Linux before 5.4 does not support P_PIDFD.
  if (waitid(P_PIDFD, (id_t)descriptor, &info, WEXITED | WNOHANG | (keeps ? WNOWAIT : 0)) < 0)
    return errno == EINVAL ? -ENOSYS : -errno;
  if (info.si_pid == 0) return 0;
  *code = info.si_code;
  *status = info.si_status;
  return 1;
}

int crl_process_has_ended(int process) {
  siginfo_t info = {0};
  if (waitid(P_PID, (id_t)process, &info, WEXITED | WNOHANG | WNOWAIT) < 0) return -errno;
  return info.si_pid != 0;
}

int crl_process_adopt_orphans(void) { return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? -errno : 0; }

int crl_file_find(int directory, const char *name, int is_directory, int follows_link) {
  int flags = O_PATH | O_CLOEXEC | (is_directory ? O_DIRECTORY : 0) | (follows_link ? 0 : O_NOFOLLOW);
  int answer = openat(directory, name, flags);
  return answer < 0 ? -errno : answer;
}

int crl_link_read(int link, void *target, size_t size) {
  ssize_t answer = readlinkat(link, "", target, size);
  return answer < 0 ? -errno : (int)answer;
}

int crl_directory_open(int directory) {
  int answer = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return answer < 0 ? -errno : answer;
}

int crl_file_identity(int file, uint64_t *device, uint64_t *number) {
  struct stat status;
  if (fstat(file, &status) < 0) return -errno;
  *device = status.st_dev;
  *number = status.st_ino;
  return 0;
}

int crl_pipe(int *ends) { return pipe2(ends, O_CLOEXEC) < 0 ? -errno : 0; }

int crl_write(int descriptor, const void *bytes, size_t count) {
  // SIGPIPE is sent to the writing thread. It is blocked, and consumed unless it was already pending.
  sigset_t pipe_signal, before, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  int was_pending = sigismember(&pending, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  ssize_t answer = write(descriptor, bytes, count > INT32_MAX ? INT32_MAX : count);
  int error = errno;
  if (answer < 0 && error == EPIPE && !was_pending) {
    struct timespec none = {0};
    while (sigtimedwait(&pipe_signal, NULL, &none) < 0 && errno == EINTR) continue;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return answer < 0 ? -error : (int)answer;
}

int crl_file_type(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) < 0 ? -errno : (int)(status.st_mode & S_IFMT);
}

int crl_is_terminal(int descriptor) { return isatty(descriptor); }

int crl_is_terminal_master(int descriptor) {
  unsigned int number;
  return isatty(descriptor) && ioctl(descriptor, TIOCGPTN, &number) == 0;
}

int crl_reopen(int descriptor, int writes) {
  struct stat status;
  if (fstat(descriptor, &status) < 0) return -errno;
  // Opening another kind of device, or the master of a pseudo-terminal, would return something new.
  int is_pipe = S_ISFIFO(status.st_mode);
  int is_terminal = S_ISCHR(status.st_mode) && isatty(descriptor) && !crl_is_terminal_master(descriptor);
  if (!is_pipe && !is_terminal) return -ENXIO;
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  int answer = open(path, (writes ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (answer < 0) return -errno;
  // Packet mode is a property of each open descriptor of a pipe.
  int flags = is_pipe && writes ? fcntl(descriptor, F_GETFL) : 0;
  if (flags > 0 && (flags & O_DIRECT)) fcntl(answer, F_SETFL, O_NONBLOCK | O_DIRECT);
  return answer;
}

int crl_is_watchable(int descriptor) {
  int set = epoll_create1(EPOLL_CLOEXEC);
  if (set < 0) return -errno;
  struct epoll_event event = {.events = EPOLLIN};
  int answer = epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0 ? 1 : errno == EPERM ? 0 : -errno;
  close(set);
  return answer;
}

int crl_is_ready(int descriptor, int writes) {
  struct pollfd entry = {.fd = descriptor, .events = writes ? POLLOUT : POLLIN};
  int answer = poll(&entry, 1, 0);
  return answer < 0 ? -errno : answer;
}

int crl_has_hung_up(int descriptor) {
  struct pollfd entry = {.fd = descriptor, .events = POLLIN};
  int answer = poll(&entry, 1, 0);
  // Data written before the last writer closed the pipe can still be read.
  return answer < 0 ? -errno : (entry.revents & (POLLHUP | POLLIN)) == POLLHUP;
}
