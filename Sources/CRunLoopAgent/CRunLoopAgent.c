// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopAgent.h"

#include <CRunLoopRecorder.h>
#include <CRunLoopSystem.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// Implemented in RunLoopInstruments, in Swift.
void rli_answer(const uint8_t *bytes, intptr_t count, void *connection);
void rli_records_are_made(void);

struct crla_connection {
  int file;  // -1 if unused
  int process;  // the peer's ID, or 0 in another namespace
  int is_permitted;
  uint32_t level;  // the level that it holds
};

enum { STACK_SIZE = 512 << 10, SECONDS_TO_SEND = 5 };
static const char socket_name[] = "agent";

// Guards the following variables. No other lock is taken while it is held.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int listener = -1;
// Set if no code requested the listener, so that it yields to an explicit request.
static int is_by_itself;
// The location of the socket, if it is not next to the records.
static char *other_parent;
static char *other_place;
static crla_connection connections[CRLA_CONNECTIONS];
static int is_prepared;

// A forked child has neither the threads nor the loops behind the sockets.
static void leave_to_parent(void) {
  static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  mutex = fresh;
  if (listener >= 0) close(listener);
  listener = -1;
  other_parent = other_place = NULL;
  for (int index = 0; index < CRLA_CONNECTIONS; index++) {
    if (connections[index].file >= 0) close(connections[index].file);
    connections[index].file = -1;
  }
}

// Requires the lock.
static void prepare(void) {
  if (is_prepared) return;
  is_prepared = 1;
  for (int index = 0; index < CRLA_CONNECTIONS; index++) connections[index].file = -1;
  pthread_atfork(NULL, NULL, leave_to_parent);
}

static int start_thread(void *(*body)(void *), void *argument) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, before;
  int answer = pthread_attr_init(&attributes);
  if (answer != 0) return answer;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK_SIZE);
  // The program's signals are not delivered to these threads.
  sigfillset(&all);
  // The threads read memory that others can truncate.
  sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  answer = pthread_create(&thread, &attributes, body, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return answer;
}


static int receive_all(int file, void *bytes, size_t count) {
  char *place = bytes;
  while (count > 0) {
    ssize_t received = recv(file, place, count, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return 0;
    place += received;
    count -= (size_t)received;
  }
  return 1;
}

static int send_all(int file, const void *bytes, size_t count) {
  const char *place = bytes;
  while (count > 0) {
    ssize_t sent = send(file, place, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return 0;
    place += sent;
    count -= (size_t)sent;
  }
  return 1;
}

static int send_frame(int file, const void *bytes, size_t count) {
  uint8_t length[4] = {(uint8_t)count, (uint8_t)(count >> 8), (uint8_t)(count >> 16), (uint8_t)(count >> 24)};
  return count > 0 && count <= CRLA_FRAME_LIMIT && send_all(file, length, 4) && send_all(file, bytes, count);
}

int crla_send(crla_connection *connection, const void *bytes, size_t count) {
  // The peer may be slow.
  crl_fork_allow();
  int answer = send_frame(connection->file, bytes, count);
  crl_fork_prevent();
  return answer;
}

int crla_permit(crla_connection *connection) {
  // Requires a held level, because a connection alone should not lift a restriction.
  if (connection->level == 0) return -EPERM;
  if (connection->process <= 0) return -ESRCH;
  pthread_mutex_lock(&mutex);
  // A process that did not request an agent has not agreed to lift the kernel's isolation.
  if (is_by_itself) {
    pthread_mutex_unlock(&mutex);
    return -EACCES;
  }
  connection->is_permitted = 1;
  // Without such a restriction in the kernel, every process of the user already has this permission.
  prctl(PR_SET_PTRACER, connection->process, 0, 0, 0);
  pthread_mutex_unlock(&mutex);
  return 0;
}

// Requires the lock.
static void take_permission(crla_connection *connection) {
  if (!connection->is_permitted) return;
  // There is only one permission; it passes to another permitted connection, or ends.
  long next = 0;
  connection->is_permitted = 0;
  for (int index = 0; index < CRLA_CONNECTIONS; index++)
    if (connections[index].file >= 0 && connections[index].is_permitted) next = connections[index].process;
  prctl(PR_SET_PTRACER, next, 0, 0, 0);
}

void crla_hold(crla_connection *connection, uint32_t level) {
  uint32_t before = connection->level;
  connection->level = level;
  if (level) crl_level_hold(level);
  if (before) crl_level_release(before);
  if (level) return;
  pthread_mutex_lock(&mutex);
  take_permission(connection);
  pthread_mutex_unlock(&mutex);
}

static void end_connection(crla_connection *connection) {
  crla_hold(connection, 0);
  pthread_mutex_lock(&mutex);
  close(connection->file);
  connection->file = -1;
  pthread_mutex_unlock(&mutex);
}

static void *serve(void *argument) {
  crla_connection *connection = argument;
  pthread_setname_np(pthread_self(), "runloop-agent");
  for (;;) {
    uint8_t length[4];
    if (!receive_all(connection->file, length, 4)) break;
    uint32_t count = length[0] | (uint32_t)length[1] << 8 | (uint32_t)length[2] << 16 | (uint32_t)length[3] << 24;
    if (count == 0 || count > CRLA_FRAME_LIMIT) break;
    uint8_t *bytes = malloc(count);
    if (!bytes) break;
    // A process that has become privileged meanwhile does not respond.
    int is_whole = receive_all(connection->file, bytes, count) && !crl_is_privileged();
    if (is_whole) {
      crl_fork_prevent();
      rli_answer(bytes, (intptr_t)count, connection);
      crl_fork_allow();
    }
    free(bytes);
    if (!is_whole) break;
  }
  end_connection(connection);
  return NULL;
}

// Only the user of the process and root are allowed.
static int may_ask(int file, int *process) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return 0;
  *process = peer.pid;
  return peer.uid == geteuid() || peer.uid == 0;
}

static void begin_connection(int file) {
  int process = 0;
  if (!may_ask(file, &process) || crl_is_privileged()) {
    close(file);
    return;
  }
  struct timeval limit = {.tv_sec = SECONDS_TO_SEND};
  setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  crla_connection *connection = NULL;
  pthread_mutex_lock(&mutex);
  for (int index = 0; index < CRLA_CONNECTIONS && !connection; index++) {
    if (connections[index].file >= 0) continue;
    connection = &connections[index];
    *connection = (crla_connection){.file = file, .process = process};
  }
  pthread_mutex_unlock(&mutex);
  if (!connection) {
    static const char answer[] = "{\"error\": \"so many tools look at the process that it answers no more of them\"}";
    send_frame(file, answer, sizeof answer - 1);
    close(file);
    return;
  }
  if (start_thread(serve, connection) != 0) end_connection(connection);
}

static void *listen_on(void *argument) {
  int file = (int)(intptr_t)argument;
  pthread_setname_np(pthread_self(), "runloop-agent");
  for (;;) {
    int peer = accept4(file, NULL, NULL, SOCK_CLOEXEC);
    if (peer >= 0) {
      begin_connection(peer);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      struct timespec second = {.tv_sec = 1};
      nanosleep(&second, NULL);
    } else if (errno != EINTR && errno != ECONNABORTED && errno != EPROTO && errno != EAGAIN) {
      // The socket was shut down by `yield_listener`.
      close(file);
      return NULL;
    }
  }
}


// Creates the socket in an open directory; returns its descriptor or a negative error number.
static int make_socket(int place) {
  int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return -errno;
  // An existing socket is left over from an earlier program in this process, or from an ended process.
  unlinkat(place, socket_name, 0);
  // The mode of the socket becomes the mode of its file.
  int answer = fchmod(file, 0600) < 0 ? -errno : crl_placed_bind(file, place, socket_name);
  if (answer == 0 && listen(file, CRLA_CONNECTIONS) < 0) answer = -errno;
  if (answer == 0) return file;
  close(file);
  return answer;
}

static char *place_in(const char *parent) {
  char name[4200];
  snprintf(name, sizeof name, "%.4096s/%d.%llu", parent, getpid(), (unsigned long long)crl_instruments_start());
  return strdup(name);
}

// Requires the lock. Ends the automatic listener, whose thread closes the socket.
static void yield_listener(void) {
  int place = crl_instruments_open(NULL);
  if (place >= 0) {
    unlinkat(place, socket_name, 0);
    close(place);
  }
  shutdown(listener, SHUT_RDWR);
  listener = -1;
}

// Requires the lock.
static int begin(const char *parent) {
  prepare();
  if (listener >= 0 && is_by_itself && parent) yield_listener();
  is_by_itself = 0;
  if (listener >= 0) {
    int is_same = !parent || (other_parent && !strcmp(parent, other_parent));
    return is_same ? 0 : -EALREADY;
  }
  int place = crl_instruments_open(parent);
  if (place < 0) return place;
  int file = make_socket(place);
  close(place);
  if (file < 0) return file;
  int answer = start_thread(listen_on, (void *)(intptr_t)file);
  if (answer != 0) {
    close(file);
    return -answer;
  }
  listener = file;
  other_parent = parent ? strdup(parent) : NULL;
  other_place = parent ? place_in(parent) : NULL;
  return 0;
}

int crla_listen(const char *parent) {
  // Without the lock, because creating the first records can call `listen_by_itself`.
  int place = crl_instruments_open(parent);
  if (place < 0) return place;
  close(place);
  pthread_mutex_lock(&mutex);
  int answer = begin(parent);
  pthread_mutex_unlock(&mutex);
  return answer;
}

// Whether the process runs the tests of a package, which count descriptors and threads, and hang on purpose.
static int runs_tests(void) {
  static const char ending[] = ".xctest";
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path), size = sizeof ending - 1;
  return length > size && !memcmp(path + length - size, ending, (size_t)size);
}

// Called when the records are created, so that a tool can connect when something goes wrong. The thread sleeps until
// then. There is no agent in test programs, or if no directory is set and the level is `off` or invalid.
static void listen_by_itself(void *nothing) {
  (void)nothing;
  const char *level = crl_instruments_environment("RUNLOOP_INSTRUMENTS"), *directory = crl_instruments_environment("RUNLOOP_DIR");
  int is_watched = level && (!strcmp(level, "watch") || !strcmp(level, "record"));
  int is_wanted = is_watched || (directory && *directory);
  if (!is_wanted && ((level && *level) || runs_tests())) return;
  rli_records_are_made();
  // Without a directory there is no records file either, which has already been reported.
  if (!crl_instruments_directory()) return;
  pthread_mutex_lock(&mutex);
  // Another thread may have requested a listener meanwhile.
  int is_there = listener >= 0 && !is_wanted, answer = is_there ? 0 : begin(NULL);
  if (answer >= 0 && !is_there) is_by_itself = !is_wanted;
  pthread_mutex_unlock(&mutex);
  if (answer >= 0 || !is_wanted) return;
  char line[256];
  int length = snprintf(line, sizeof line, "RunLoopKit: the process cannot be asked by the tool: %s\n", strerror(-answer));
  if (length > 0 && write(2, line, (size_t)length) < 0) return;
}

// Runs before main or when the library is loaded. Only stores an address, because Swift's runtime is not ready yet.
__attribute__((constructor)) static void set_hook(void) {
  crl_hook_exchange(CRL_HOOK_RECORDS_ARE_MADE, listen_by_itself);
}

// A socket next to the records is removed with them.
__attribute__((destructor)) static void remove_own_socket(void) {
  if (!other_place || listener < 0) return;
  char path[4300];
  snprintf(path, sizeof path, "%s/%s", other_place, socket_name);
  unlink(path);
  rmdir(other_place);
}
