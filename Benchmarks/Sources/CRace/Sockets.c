// SPDX-License-Identifier: Apache-2.0

#include "CRace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern const char *race_program;
extern char **environ;

void race_raise_descriptor_limit(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int *race_socket_pairs(int count) {
  race_raise_descriptor_limit();
  int *pairs = malloc(sizeof(int) * 2 * (size_t)count);
  for (int i = 0; i < count; i++) {
    int made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pairs + 2 * i);
    race_check(made == 0, "cannot make so many pairs of sockets");
  }
  return pairs;
}

int race_event_descriptor(bool ready) {
  int descriptor = eventfd(ready, EFD_CLOEXEC);
  race_check(descriptor >= 0, "cannot make so many descriptors");
  return descriptor;
}

void race_close(int descriptor) { close(descriptor); }

// -- The echo server's part of the client's protocol

static int connections[RACE_MOST_CONNECTIONS];
static int closed_count, to_client, from_client;
static pid_t client;
static int64_t cpu_before;

// The client is built beside the Swift racers; other racers receive its path.
static void start_client(int port) {
  char path[4096], number[16];
  const char *told = getenv("RACE_ECHO_CLIENT");
  char *program = strdup(race_program);
  snprintf(path, sizeof path, "%s", told ? told : "");
  if (!told) snprintf(path, sizeof path, "%s/race-client", dirname(program));
  free(program);
  snprintf(number, sizeof number, "%d", port);
  char requests[32];
  snprintf(requests, sizeof requests, "%lld", (long long)race_scaled(40000, 500));
  char count[16];
  snprintf(count, sizeof count, "%d", race_connections());
  char *arguments[] = {path, number, requests, count, NULL};
  int input[2], output[2];
  race_check(pipe2(input, O_CLOEXEC) == 0 && pipe2(output, O_CLOEXEC) == 0, "no pipe for the client");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], 0);
  posix_spawn_file_actions_adddup2(&actions, output[1], 1);
  race_check(posix_spawn(&client, path, &actions, NULL, arguments, environ) == 0, "the client cannot be started");
  posix_spawn_file_actions_destroy(&actions);
  close(input[0]);
  close(output[1]);
  to_client = input[1];
  from_client = output[0];
}

const int *race_echo_begin(void) {
  race_raise_descriptor_limit();
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  race_check(bind(listener, (struct sockaddr *)&address, length) == 0, "no port");
  race_check(listen(listener, RACE_MOST_CONNECTIONS) == 0, "cannot listen");
  getsockname(listener, (struct sockaddr *)&address, &length);
  start_client(ntohs(address.sin_port));
  for (int i = 0; i < race_connections(); i++) {
    connections[i] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    race_check(connections[i] >= 0, "a connection has not come");
    int yes = 1;
    setsockopt(connections[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  close(listener);
  return connections;
}

void race_echo_go(void) {
  cpu_before = race_cpu();
  race_check(write(to_client, "g", 1) == 1, "the client is gone");
}

bool race_echo_closed(void) { return ++closed_count == race_connections(); }

bool race_echo_serve(int connection) {
  char buffer[4096];
  ssize_t got = recv(connection, buffer, sizeof buffer, 0);
  if (got > 0) {
    // A client that waits for its reply leaves the send buffer empty.
    race_check(send(connection, buffer, (size_t)got, MSG_NOSIGNAL) == got, "an answer did not fit");
    return true;
  }
  return got < 0 && errno == EAGAIN;
}

void race_echo_report(void) {
  double cpu = (double)(race_cpu() - cpu_before);
  char text[64] = "";
  long long nanoseconds = 0, requests = 0;
  race_check(read(from_client, text, sizeof text - 1) > 0, "the client has said nothing");
  race_check(sscanf(text, "%lld %lld", &nanoseconds, &requests) == 2, "the client has said nothing useful");
  int status;
  waitpid(client, &status, 0);
  race_check(status == 0, "the client has failed");
  race_report("requests per second", (double)requests * 1e9 / (double)nanoseconds, "1/s");
  race_report("processor time per request", cpu / (double)requests, "ns");
}
