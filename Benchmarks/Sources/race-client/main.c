// SPDX-License-Identifier: Apache-2.0

// The client of W11: connections to a port of this machine, each with one outstanding request of 64 bytes.
//
//     race-client PORT REQUESTS CONNECTIONS
//
// It begins when it receives a byte on standard input, and prints the nanoseconds that the requests have taken, and
// their number.

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1000, EVENTS = 64, MESSAGE = 64 };

static void check(int condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "race-client: %s: %s\n", what, strerror(errno));
  exit(1);
}

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int argc, char **argv) {
  check(argc == 4, "usage: race-client PORT REQUESTS CONNECTIONS");
  struct sockaddr_in address = {
      .sin_family = AF_INET,
      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
      .sin_port = htons((unsigned short)atoi(argv[1])),
  };
  long long requests = atoll(argv[2]), sent = 0, answered = 0;
  static int sockets[MOST], missing[MOST];
  int connections = atoi(argv[3]);
  check(connections >= 1 && connections <= MOST, "so many connections cannot be had");
  char message[MESSAGE], answer[MESSAGE];
  memset(message, 'x', sizeof message);
  int set = epoll_create1(0);
  for (int i = 0; i < connections; i++) {
    sockets[i] = socket(AF_INET, SOCK_STREAM, 0);
    check(connect(sockets[i], (struct sockaddr *)&address, sizeof address) == 0, "connect");
    int yes = 1;
    setsockopt(sockets[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (unsigned)i};
    check(epoll_ctl(set, EPOLL_CTL_ADD, sockets[i], &event) == 0, "epoll_ctl");
  }
  char go;
  check(read(0, &go, 1) == 1, "nobody has said to begin");
  long long before = now();
  for (int i = 0; i < connections && sent < requests; i++) {
    check(send(sockets[i], message, MESSAGE, MSG_NOSIGNAL) == MESSAGE, "send");
    missing[i] = MESSAGE;
    sent++;
  }
  while (answered < requests) {
    struct epoll_event events[EVENTS];
    int count = epoll_wait(set, events, EVENTS, 10000);
    check(count > 0, "the server has not answered for ten seconds");
    for (int e = 0; e < count; e++) {
      int i = (int)events[e].data.u32;
      ssize_t got = recv(sockets[i], answer, (size_t)missing[i], 0);
      check(got > 0, "recv");
      missing[i] -= (int)got;
      if (missing[i] > 0) continue;
      answered++;
      if (sent < requests) {
        check(send(sockets[i], message, MESSAGE, MSG_NOSIGNAL) == MESSAGE, "send");
        missing[i] = MESSAGE;
        sent++;
      } else if (answered == requests) {
        break;
      }
    }
  }
  long long after = now();
  for (int i = 0; i < connections; i++) close(sockets[i]);
  printf("%lld %lld\n", after - before, answered);
  return 0;
}
