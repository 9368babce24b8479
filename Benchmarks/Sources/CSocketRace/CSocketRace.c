#include "CSocketRace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void check(int condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "socket-race: %s: %s\n", what, strerror(errno));
  exit(1);
}

static int64_t now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int64_t socket_race_thread_time(void) { return now(CLOCK_THREAD_CPUTIME_ID); }

void socket_race_raise_limit(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static void without_delay(int connection) {
  int yes = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

int64_t socket_race_client(int port, int connections, int requests) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
  int *sockets = calloc((size_t)connections, sizeof *sockets), *missing = calloc((size_t)connections, sizeof *missing);
  struct epoll_event events[64];
  char message[SOCKET_RACE_MESSAGE];
  memset(message, 'x', sizeof message);
  int set = epoll_create1(EPOLL_CLOEXEC), sent = 0, answered = 0;
  for (int i = 0; i < connections; i++) {
    sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(connect(sockets[i], (struct sockaddr *)&address, sizeof address) == 0, "connect");
    without_delay(sockets[i]);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
    check(epoll_ctl(set, EPOLL_CTL_ADD, sockets[i], &event) == 0, "epoll_ctl");
  }
  int64_t before = now(CLOCK_MONOTONIC);
  for (int i = 0; i < connections && sent < requests; i++, sent++) {
    check(send(sockets[i], message, sizeof message, MSG_NOSIGNAL) == sizeof message, "send");
    missing[i] = SOCKET_RACE_MESSAGE;
  }
  while (answered < requests) {
    int count = epoll_wait(set, events, 64, 10000);
    check(count > 0, "the server has not answered for ten seconds");
    for (int e = 0; e < count; e++) {
      int i = (int)events[e].data.u32;
      char answer[SOCKET_RACE_MESSAGE];
      ssize_t got = recv(sockets[i], answer, (size_t)missing[i], 0);
      check(got > 0, "recv");
      missing[i] -= (int)got;
      if (missing[i] > 0) continue;
      answered++;
      if (sent == requests) continue;
      sent++;
      check(send(sockets[i], message, sizeof message, MSG_NOSIGNAL) == sizeof message, "send");
      missing[i] = SOCKET_RACE_MESSAGE;
    }
  }
  int64_t taken = now(CLOCK_MONOTONIC) - before;
  for (int i = 0; i < connections; i++) close(sockets[i]);
  return taken;
}

int socket_race_listen(int *port) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  check(bind(listener, (struct sockaddr *)&address, length) == 0, "bind");
  check(listen(listener, 4096) == 0, "listen");
  getsockname(listener, (struct sockaddr *)&address, &length);
  *port = ntohs(address.sin_port);
  return listener;
}

void socket_race_serve(int listener, int connections) {
  static char buffer[64 * 1024];
  struct epoll_event events[64], event = {.events = EPOLLIN, .data.fd = listener};
  int set = epoll_create1(EPOLL_CLOEXEC), closed = 0;
  check(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event) == 0, "epoll_ctl");
  while (closed < connections) {
    int count = epoll_wait(set, events, 64, -1);
    for (int e = 0; e < count; e++) {
      int ready = events[e].data.fd;
      if (ready == listener) {
        int connection = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (connection < 0) continue;
        without_delay(connection);
        event.data.fd = connection;
        check(epoll_ctl(set, EPOLL_CTL_ADD, connection, &event) == 0, "epoll_ctl");
        continue;
      }
      ssize_t got = recv(ready, buffer, sizeof buffer, 0);
      if (got > 0) {
        check(send(ready, buffer, (size_t)got, MSG_NOSIGNAL) == got, "an answer did not fit");
      } else if (got == 0 || errno != EAGAIN) {
        close(ready);
        closed++;
      }
    }
  }
  close(set);
  close(listener);
}

static pid_t client;
static int from_client;

int socket_race_start(int port, int connections, int requests) {
  char numbers[3][16];
  int given[] = {port, connections, requests}, output[2];
  for (int i = 0; i < 3; i++) snprintf(numbers[i], sizeof numbers[i], "%d", given[i]);
  char *arguments[] = {"socket-race", "client", numbers[0], numbers[1], numbers[2], NULL};
  check(pipe2(output, O_CLOEXEC) == 0, "pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output[1], 1);
  check(posix_spawn(&client, "/proc/self/exe", &actions, NULL, arguments, environ) == 0, "posix_spawn");
  posix_spawn_file_actions_destroy(&actions);
  close(output[1]);
  from_client = output[0];
  return 0;
}

int64_t socket_race_answer(void) {
  char text[32] = "";
  check(read(from_client, text, sizeof text - 1) > 0, "the client has said nothing");
  close(from_client);
  int status = 1;
  waitpid(client, &status, 0);
  check(status == 0, "the client has failed");
  return atoll(text);
}
