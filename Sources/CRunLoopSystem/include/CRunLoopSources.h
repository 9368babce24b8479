// SPDX-License-Identifier: Apache-2.0

// What the sources of signals, child processes and file changes need of the system. As elsewhere in this module a
// failure is a negative errno. The one piece with a logic of its own is the signal handler, which has to be C.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

// One listener to a signal: it counts, keeps the latest sender, and makes a counter descriptor readable.
typedef struct crl_signal_watch crl_signal_watch;

// What came since it was last asked for.
typedef struct crl_signal_record {
  uint64_t count;
  // Of the latest: `si_code`, `si_pid` and `si_uid`, `si_value`.
  int32_t code;
  int32_t sender;
  uint32_t user;
  int64_t value;
} crl_signal_record;

// Makes a listener that hears nothing yet; NULL without memory. The descriptor has to stay open until it is stopped.
crl_signal_watch *crl_signal_watch_create(int signal, int descriptor);
// Lets it listen. The first of a signal puts the process's handler in place.
int crl_signal_watch_start(crl_signal_watch *watch);
// Ends that, and returns when no handler uses the listener any more. Again: nothing.
void crl_signal_watch_stop(crl_signal_watch *watch);
// Frees a listener that has been stopped.
void crl_signal_watch_destroy(crl_signal_watch *watch);
// Takes the count away.
void crl_signal_watch_take(crl_signal_watch *watch, crl_signal_record *record);
// Puts the action back that was there before, if nobody listens any more and nobody has put in another meanwhile.
int crl_signal_restore(int signal);
// Whether the process's handler of a signal is the one of this module.
int crl_signal_is_handled(int signal);

// Opens a descriptor of a process; it is closed on exec.
static inline int crl_process_open(int process) {
  int answer = (int)syscall(SYS_pidfd_open, process, 0);
  return answer < 0 ? -errno : answer;
}

// Sends a signal to the process of a descriptor; zero asks whether it could be sent.
static inline int crl_process_signal(int descriptor, int signal) {
  return syscall(SYS_pidfd_send_signal, descriptor, signal, NULL, 0) < 0 ? -errno : 0;
}

// Sends a signal to the process group that the process of a descriptor leads, or led before it ended, and never to
// another that has its number now. Linux before 6.9 rejects it with EINVAL.
static inline int crl_process_signal_group(int descriptor, int signal) {
  return syscall(SYS_pidfd_send_signal, descriptor, signal, NULL, 1 << 2) < 0 ? -errno : 0;
}

// Asks whether a child has ended, without waiting: 1 if it has, with `si_code` and `si_status`; then it is reaped,
// unless it is to be kept.
int crl_process_wait(int descriptor, int keeps, int32_t *code, int32_t *status);

// Whether a child has ended and was not reaped, by its number: one, zero, or a negative errno if it is no child.
int crl_process_has_ended(int process);
// Has this process adopt the orphans among its descendants.
int crl_process_adopt_orphans(void);

// What a program is started with. The strings and arrays are the caller's; the arrays of strings end with NULL.
typedef struct crl_spawn_request {
  // The paths to try in turn.
  const char *const *paths;
  char *const *arguments;
  char *const *environment;
  // Where the program starts; NULL: where this process is.
  const char *directory;
  // Descriptors of this process, and the numbers that they get there; all others are closed.
  const int32_t *from, *to;
  int32_t count;
  // Whether it leads a process group, or a session, of its own.
  int8_t leads_group, leads_session;
  // A descriptor of this process that becomes the terminal of the session that it leads; -1: none.
  int32_t terminal;
} crl_spawn_request;

// What failed in the child; for descriptors with the place in the arrays above the lowest eight bits.
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

// Opens a pseudo-terminal of a size: this end, which does not block, and the other; both are closed on exec.
int crl_terminal_open(int *ends, uint16_t columns, uint16_t rows);
int crl_terminal_resize(int descriptor, uint16_t columns, uint16_t rows);

// Starts a program: its number, with a descriptor of the process that is made with it and closed on exec; or a negative
// errno with what has failed. Signals have their defaults there, but for those that this process ignores (SIGPIPE not),
// and none is blocked.
int crl_spawn(const crl_spawn_request *request, int *process, int32_t *failed);

// Makes a queue of file changes; it is closed on exec and does not block.
static inline int crl_watch_create(void) {
  int answer = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  return answer < 0 ? -errno : answer;
}

static inline int crl_watch_remove(int queue, int watch) { return inotify_rm_watch(queue, watch) < 0 ? -errno : 0; }

// Finds a file by its name in a directory, or from the working directory, without opening it for anything else. A link
// is followed only if it is asked for.
int crl_file_find(int directory, const char *name, int is_directory, int follows_link);
// The same, from the working directory.
static inline int crl_file_find_path(const char *path, int is_directory) {
  return crl_file_find(AT_FDCWD, path, is_directory, 1);
}
// Reads where a link that has been found leads; returns the length, without an end mark.
int crl_link_read(int link, void *target, size_t size);

// Opens a directory that has been found, to read its entries.
int crl_directory_open(int directory);
// Returns what distinguishes a file from every other that exists at the same time.
int crl_file_identity(int file, uint64_t *device, uint64_t *number);

// Makes a pipe: the end that is read, and the one that is written; both are closed on exec.
int crl_pipe(int *ends);

// Writes bytes, of which a pipe that nobody reads makes no signal; returns their number.
int crl_write(int descriptor, const void *bytes, size_t count);
// The type of a file: the S_IFMT part of its mode.
int crl_file_type(int descriptor);
static const int crl_file_type_socket = 0140000;
static const int crl_file_type_pipe = 0010000;

// Whether a descriptor is a terminal, and whether it is the near end of a pseudo-terminal.
int crl_is_terminal(int descriptor);
int crl_is_terminal_master(int descriptor);
// Opens a pipe or terminal once more, so that it does not block here and goes on to block for whoever else has it;
// ENXIO for anything else.
int crl_reopen(int descriptor, int writes);
// Whether the system can wait for a descriptor: one, zero for such as a file's that is always ready, or a negative
// errno.
int crl_is_watchable(int descriptor);
// Whether a descriptor can be read, or written, without waiting: one, zero, or a negative errno.
int crl_is_ready(int descriptor, int writes);

// Whether the other end of a pipe or terminal has been closed by all who had it: one, zero, or a negative errno.
int crl_has_hung_up(int descriptor);

// Reads bytes; returns their number.
static inline int crl_read(int descriptor, void *bytes, size_t count) {
  ssize_t answer = read(descriptor, bytes, count);
  return answer < 0 ? -errno : (int)answer;
}
