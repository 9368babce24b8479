// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopPlaced.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

extern int __clone(int (*body)(void *), void *stack, int flags, void *argument, ...);

static int result(long answer) { return answer < 0 ? -errno : (int)answer; }

// Whether the kernel's path of an open file does not exist, because there is no /proc or it is not this process's.
static int is_without_paths(int file) {
  char path[32];
  struct stat status;
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  return lstat(path, &status) != 0;
}

// System calls relative to a directory

// A system call made by a thread with a working directory of its own.
typedef struct call_in_directory {
  int directory;
  long number;
  long arguments[3];
  volatile long answer;
  volatile int error;
} call_in_directory;

// The thread shares everything else with its process, but has no thread-local storage, so it may only make system
// calls.
__attribute__((no_sanitize("thread", "address"))) static int run_in_directory(void *argument) {
  call_in_directory *call = argument;
  call->answer = syscall(SYS_fchdir, call->directory);
  if (call->answer == 0)
    call->answer = syscall(call->number, call->arguments[0], call->arguments[1], call->arguments[2]);
  call->error = call->answer < 0 ? errno : 0;
  return 0;
}

enum { STACK_SIZE = 64 * 1024 };

// Makes a system call whose relative paths start at an open directory instead of the process's working directory.
//
// The calling thread waits for the thread that makes the call, like the parent of `vfork`. It is a thread rather than
// a process because the peer of a connection sees the id of the process that connects.
static int make_in_directory(call_in_directory *call) {
  char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return -errno;
  sigset_t all, before;
  sigfillset(&all);
  int cancel;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int flags = CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  int answer = __clone(run_in_directory, stack + STACK_SIZE, flags, call);
  int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_setcancelstate(cancel, NULL);
  munmap(stack, STACK_SIZE);
  if (answer < 0) return -error;
  return call->answer < 0 ? -call->error : (int)call->answer;
}

// Sockets

static int fill(struct sockaddr_un *address, const char *path) {
  size_t length = strlen(path);
  if (length >= sizeof address->sun_path) return -ENAMETOOLONG;
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  memcpy(address->sun_path, path, length);
  return 0;
}

static int place(int socket, int directory, const char *name, long number) {
  struct sockaddr_un address;
  char path[sizeof address.sun_path + 32];
  snprintf(path, sizeof path, "/proc/self/fd/%d/%s", directory, name);
  int failure = fill(&address, path);
  const struct sockaddr *general = (const struct sockaddr *)&address;
  if (failure == 0)
    failure = result(number == SYS_bind ? bind(socket, general, sizeof address) : connect(socket, general, sizeof address));
  // The result is authoritative if the kernel's paths of open files exist.
  if ((failure != -ENOENT && failure != -EACCES && failure != -ENAMETOOLONG) || !is_without_paths(directory))
    return failure;
  failure = fill(&address, name);
  if (failure) return failure;
  call_in_directory call = {directory, number, {socket, (long)&address, sizeof address}, 0, 0};
  return make_in_directory(&call);
}

int crl_placed_bind(int socket, int directory, const char *name) { return place(socket, directory, name, SYS_bind); }

int crl_placed_connect(int socket, int directory, const char *name) {
  return place(socket, directory, name, SYS_connect);
}

// Watches

static int is_same(const struct stat *one, const struct stat *other) {
  return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

int crl_placed_watch(int queue, int file, const char *path, uint32_t events) {
  char own[32];
  snprintf(own, sizeof own, "/proc/self/fd/%d", file);
  int answer = result(inotify_add_watch(queue, own, events | IN_MASK_ADD));
  if ((answer != -ENOENT && answer != -EACCES) || !is_without_paths(file)) return answer;
  struct stat wanted, found;
  if (fstat(file, &wanted) != 0) return -errno;
  if (S_ISDIR(wanted.st_mode)) {
    call_in_directory call = {file, SYS_inotify_add_watch, {queue, (long)".", events | IN_MASK_ADD}, 0, 0};
    return make_in_directory(&call);
  }
  if (!path) return answer;
  // Compared before the call too, so that another file's watch is changed only if the path changes at this very moment.
  if (stat(path, &found) != 0) return -errno;
  if (!is_same(&wanted, &found)) return -ENOENT;
  answer = result(inotify_add_watch(queue, path, events | IN_MASK_ADD));
  if (answer < 0) return answer;
  return stat(path, &found) == 0 && is_same(&wanted, &found) ? answer : -ENOENT;
}

// Modes

int crl_placed_set_mode(int file, int directory, const char *name, uint32_t mode) {
  char own[32];
  snprintf(own, sizeof own, "/proc/self/fd/%d", file);
  int answer = result(chmod(own, mode));
  if ((answer != -ENOENT && answer != -EACCES) || !is_without_paths(file)) return answer;
  if (syscall(SYS_fchmodat2, file, "", mode, AT_EMPTY_PATH) == 0) return 0;
  // This failed because a filter or the kernel does not support the call, or for a reason that the next call reports
  // too.
  struct stat wanted, found;
  if (fstat(file, &wanted) != 0 || fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
  if (!is_same(&wanted, &found)) return -ENOENT;
  // Where other users can create files, another file can be given the name between the two calls.
  return result(fchmodat(directory, name, mode, 0));
}
