// SPDX-License-Identifier: Apache-2.0

// The minimal client: plain C on epoll, specialized for the responses of the race's server.
//
//     epoll PORT PATH COUNT CONNECTIONS

#define _GNU_SOURCE
#include "common.h"

typedef struct {
  int number;
  size_t head_count;
  char head[1024];
  long long left;  // of the body; -1 while the headers arrive
} connection;

static char request[256];
static size_t request_count;
static char buffer[1 << 20];

static void ask(connection *it) {
  it->left = -1;
  it->head_count = 0;
  if (send(it->number, request, request_count, MSG_NOSIGNAL) != (ssize_t)request_count) fail("send");
}

int main(int count, char **arguments) {
  if (count != 5) return 2;
  long requests = atol(arguments[3]), started = 0, ended = 0;
  int many = atoi(arguments[4]);
  request_count = (size_t)snprintf(
    request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nAccept: */*\r\n\r\n", arguments[2], arguments[1]);
  struct sockaddr_in address = {
    .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(arguments[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int set = epoll_create1(0);
  double begin = now();
  connection *connections = calloc((size_t)many, sizeof *connections);
  for (int index = 0; index < many && started < requests; index++, started++) {
    connection *it = &connections[index];
    it->number = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(it->number, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = it};
    epoll_ctl(set, EPOLL_CTL_ADD, it->number, &event);
    ask(it);
  }
  while (ended < requests) {
    struct epoll_event events[256];
    int ready = epoll_wait(set, events, 256, -1);
    for (int index = 0; index < ready; index++) {
      connection *it = events[index].data.ptr;
      if (it->left < 0) {
        ssize_t got = recv(it->number, it->head + it->head_count, sizeof it->head - 1 - it->head_count, 0);
        if (got <= 0) fail("recv");
        it->head_count += (size_t)got;
        it->head[it->head_count] = 0;
        char *end = strstr(it->head, "\r\n\r\n"), *length = strstr(it->head, "Content-Length: ");
        if (end == NULL) continue;
        it->left = atoll(length + 16) - (long long)(it->head + it->head_count - (end + 4));
      } else {
        ssize_t got = recv(it->number, buffer, sizeof buffer, 0);
        if (got <= 0) fail("recv");
        it->left -= got;
      }
      if (it->left > 0) continue;
      ended++;
      if (started < requests) {
        started++;
        ask(it);
      }
    }
  }
  report(requests, now() - begin, processor_time());
}
