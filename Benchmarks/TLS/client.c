// SPDX-License-Identifier: Apache-2.0

// The client of M4: connections to a port of this machine, each with one outstanding request of 64 bytes.
//
//     tls-client PORT REQUESTS CONNECTIONS
//
// It prints the requests per second, and the handshakes per second before them.

#include "common.h"

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  check(argc == 4, "usage: tls-client PORT REQUESTS CONNECTIONS");
  struct sockaddr_in address = {
    .sin_family = AF_INET,
    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    .sin_port = htons((unsigned short)atoi(argv[1])),
  };
  long requests = atol(argv[2]), sent = 0, answered = 0;
  int connections = atoi(argv[3]), set = epoll_create1(0);
  static SSL *peers[MOST];
  static int missing[MOST];
  char message[MESSAGE], answer[MESSAGE];
  memset(message, 'x', sizeof message);
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  check(connections >= 1 && connections <= MOST, "so many connections cannot be made");
  double begun = now();
  for (int index = 0; index < connections; index++) {
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    check(connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0, "connect");
    without_delay(descriptor);
    peers[index] = SSL_new(context);
    SSL_set_fd(peers[index], descriptor);
    check(SSL_connect(peers[index]) == 1, "handshake");
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (unsigned)index};
    check(epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl");
  }
  double ready = now();
  for (int index = 0; index < connections && sent < requests; index++, sent++) {
    check(SSL_write(peers[index], message, MESSAGE) == MESSAGE, "send");
    missing[index] = MESSAGE;
  }
  while (answered < requests) {
    struct epoll_event events[EVENTS];
    int count = epoll_wait(set, events, EVENTS, 10000);
    check(count > 0, "the server has not answered for ten seconds");
    for (int event = 0; event < count && answered < requests; event++) {
      int index = (int)events[event].data.u32;
      // A record may contain no data, such as a session ticket. The client blocks until there is more.
      int got = SSL_read(peers[index], answer, missing[index]);
      check(got > 0, "receive");
      missing[index] -= got;
      if (missing[index] > 0) continue;
      answered++;
      if (sent == requests) continue;
      check(SSL_write(peers[index], message, MESSAGE) == MESSAGE, "send");
      missing[index] = MESSAGE;
      sent++;
    }
  }
  printf("%.0f %.0f\n", (double)requests / (now() - ready), connections / (ready - begun));
  return 0;
}
