// SPDX-License-Identifier: Apache-2.0

// System interfaces for the sources of signals, child processes and file changes. As elsewhere in this module, failures
// are returned as a negative errno. The only code with logic of its own is the signal handler, which has to be C.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

// A listener for a signal. It counts signals, records the latest sender, and makes a counter descriptor readable.
typedef struct crl_signal_watch crl_signal_watch;

// The signals since the last query.
typedef struct crl_signal_record {
  uint64_t count;
  // The `si_code`, `si_pid`, `si_uid` and `si_value` of the latest signal.
  int32_t code;
  int32_t sender;
  uint32_t user;
  int64_t value;
} crl_signal_record;

// Creates a listener that is not started, or returns NULL if out of memory. `descriptor` must stay open until it is
// stopped.
crl_signal_watch *crl_signal_watch_create(int signal, int descriptor);
// Starts a listener. The first listener for a signal installs the process's handler.
int crl_signal_watch_start(crl_signal_watch *watch);
// Stops a listener, and returns once no handler uses it. Calling it again has no effect.
void crl_signal_watch_stop(crl_signal_watch *watch);
// Frees a stopped listener.
void crl_signal_watch_destroy(crl_signal_watch *watch);
// Returns the record of the signals since the last call, and resets the count.
void crl_signal_watch_take(crl_signal_watch *watch, crl_signal_record *record);
// Restores a signal's previous action, unless there are still listeners or another action has been installed meanwhile.
int crl_signal_restore(int signal);
// Whether the process's handler for a signal is this module's.
int crl_signal_is_handled(int signal);

// Opens a descriptor of a process, closed on exec.
static inline int crl_process_open(int process) {
  int answer = (int)syscall(SYS_pidfd_open, process, 0);
  return answer < 0 ? -errno : answer;
}

// Sends a signal to the process of a descriptor. Signal 0 only checks whether a signal could be sent.
static inline int crl_process_signal(int descriptor, int signal) {
  return syscall(SYS_pidfd_send_signal, descriptor, signal, NULL, 0) < 0 ? -errno : 0;
}

// Sends a signal to the group led by the process of a descriptor, even if that process has ended, but never to another
// group that has its number now. Fails with EINVAL before Linux 6.9.
static inline int crl_process_signal_group(int descriptor, int signal) {
  return syscall(SYS_pidfd_send_signal, descriptor, signal, NULL, 1 << 2) < 0 ? -errno : 0;
}

// Returns 1 if a child has ended, with its `si_code` and `si_status`, without blocking. Unless `keeps` is true, the
// child is then reaped.
int crl_process_wait(int descriptor, int keeps, int32_t *code, int32_t *status);

// Returns 1 if a child has ended and was not reaped, 0 if it was not, or a negative errno if it is not a child.
int crl_process_has_ended(int process);
// Makes this process adopt its orphaned descendants.
int crl_process_adopt_orphans(void);

// The parameters of a program launch. The caller owns the strings and arrays; arrays of strings end with NULL.
typedef struct crl_spawn_request {
  // The paths to try, in order.
  const char *const *paths;
  char *const *arguments;
  char *const *environment;
  // The initial working directory, or NULL for that of this process.
  const char *directory;
  // Descriptors of this process, and their numbers in the child. All other descriptors are closed there.
  const int32_t *from, *to;
  int32_t count;
  // Whether the child leads its own process group or session.
  int8_t leads_group, leads_session;
  // A descriptor of this process that becomes the terminal of the child's session, or -1 for none.
  int32_t terminal;
} crl_spawn_request;

// The step that failed in the child. For descriptors, the bits above the lowest eight are the index in the arrays
// above.
enum {
  CRL_SPAWN_CLONE,
  CRL_SPAWN_DESCRIPTORS,
  CRL_SPAWN_DIRECTORY,
  CRL_SPAWN_GROUP,
  CRL_SPAWN_SESSION,
  CRL_SPAWN_EXECUTE,
  CRL_SPAWN_WAIT,
  CRL_SPAWN_TERMINAL
};

// Opens a pseudo-terminal of a given size: the master, which is non-blocking, and the slave. Both are closed on exec.
int crl_terminal_open(int *ends, uint16_t columns, uint16_t rows);
int crl_terminal_resize(int descriptor, uint16_t columns, uint16_t rows);

// Starts a program, and returns a new descriptor of its process, closed on exec, with its number in `process`. On
// failure, returns a negative errno, with the failed step in `failed`. In the child, no signal is blocked, and all
// have their default actions, except that signals other than SIGPIPE that this process ignores stay ignored.
int crl_spawn(const crl_spawn_request *request, int *process, int32_t *failed);

// Creates a queue of file changes that is non-blocking and closed on exec.
static inline int crl_watch_create(void) {
  int answer = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  return answer < 0 ? -errno : answer;
}

static inline int crl_watch_remove(int queue, int watch) { return inotify_rm_watch(queue, watch) < 0 ? -errno : 0; }

// Opens a file by name in a directory, or from the working directory, only as a reference to it (O_PATH). A symbolic
// link is followed only if `follows_link` is true.
int crl_file_find(int directory, const char *name, int is_directory, int follows_link);
// Like crl_file_find, from the working directory.
static inline int crl_file_find_path(const char *path, int is_directory) {
  return crl_file_find(AT_FDCWD, path, is_directory, 1);
}
// Reads the target of a link opened by crl_file_find. Returns its length; the target is not null-terminated.
int crl_link_read(int link, void *target, size_t size);

// Opens a directory opened by crl_file_find for reading its entries.
int crl_directory_open(int directory);
// Returns the device and inode numbers, which together identify a file among all those existing at the same time.
int crl_file_identity(int file, uint64_t *device, uint64_t *number);

// Creates a pipe: `ends[0]` is for reading and `ends[1]` for writing. Both are closed on exec.
int crl_pipe(int *ends);

// Writes bytes without raising a signal if the pipe has no reader, and returns their number.
int crl_write(int descriptor, const void *bytes, size_t count);
// The file type: the S_IFMT bits of the mode.
int crl_file_type(int descriptor);
static const int crl_file_type_socket = 0140000;
static const int crl_file_type_pipe = 0010000;

// Whether a descriptor is a terminal, and whether it is the master of a pseudo-terminal.
int crl_is_terminal(int descriptor);
int crl_is_terminal_master(int descriptor);
// Opens a pipe or terminal again, so that it can be non-blocking here but stay blocking for its other users. Fails
// with ENXIO for any other kind of file.
int crl_reopen(int descriptor, int writes);
// Returns 1 if epoll supports a descriptor, 0 if it is always ready, as a regular file is, or a negative errno.
int crl_is_watchable(int descriptor);
// Returns 1 if a descriptor can be read or written without blocking, otherwise 0, or a negative errno.
int crl_is_ready(int descriptor, int writes);

// Returns 1 if every descriptor of the other end of a pipe or terminal has been closed, otherwise 0, or a negative
// errno.
int crl_has_hung_up(int descriptor);

// Reads bytes, and returns their number.
static inline int crl_read(int descriptor, void *bytes, size_t count) {
  ssize_t answer = read(descriptor, bytes, count);
  return answer < 0 ? -errno : (int)answer;
}
