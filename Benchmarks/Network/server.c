// SPDX-License-Identifier: Apache-2.0

// The server of the race between HTTP clients: one thread on epoll. It prints its port, and exits at the end of its
// input.
//
//     GET /N          N bytes
//     GET /wait/N     "ok" after N milliseconds
//     GET /hang       no response
//     GET /hung       the number of connections that have requested /hang
//     GET /gone       the number of these that have ended

#define _GNU_SOURCE
#include <signal.h>

#include "common.h"

enum { most = 4096, block = 256 * 1024 };

typedef struct {
  int in_use, hangs;
  size_t count;
  char input[8192];
  // The data still to be sent: the headers, followed by this many bytes.
  char head[128];
  size_t head_count, head_sent;
  long long body_left;
  double due;
} connection;

static connection connections[most];
static char body[block];
static int set;
static long hung, gone;

static void watch(int number, unsigned events, int operation) {
  struct epoll_event event = {.events = events, .data.fd = number};
  epoll_ctl(set, operation, number, &event);
}

static void end(int number) {
  if (connections[number].hangs) gone++;
  connections[number].in_use = 0;
  close(number);
}

// Sends the rest; returns false if the connection has ended.
static int go_on(int number) {
  connection *it = &connections[number];
  while (it->head_sent < it->head_count || it->body_left > 0) {
    struct iovec parts[2] = {
      {it->head + it->head_sent, it->head_count - it->head_sent},
      {body, (size_t)(it->body_left < block ? it->body_left : block)},
    };
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t sent = sendmsg(number, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EAGAIN) {
        watch(number, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
        return 1;
      }
      end(number);
      return 0;
    }
    size_t of_head = (size_t)sent < parts[0].iov_len ? (size_t)sent : parts[0].iov_len;
    it->head_sent += of_head;
    it->body_left -= sent - (ssize_t)of_head;
  }
  return 1;
}

static int answer(int number, long long length, const char *text) {
  connection *it = &connections[number];
  it->head_count = (size_t)snprintf(
    it->head, sizeof it->head, "HTTP/1.1 200 OK\r\nContent-Length: %lld\r\n\r\n%s", length, text);
  it->head_sent = 0;
  it->body_left = length - (long long)strlen(text);
  return go_on(number);
}

static int take(int number) {
  connection *it = &connections[number];
  it->input[it->count] = 0;
  char *end_of_head;
  while ((end_of_head = strstr(it->input, "\r\n\r\n")) != NULL) {
    char path[64] = "";
    sscanf(it->input, "GET /%63s", path);
    it->count -= (size_t)(end_of_head + 4 - it->input);
    memmove(it->input, end_of_head + 4, it->count + 1);
    if (strncmp(path, "wait/", 5) == 0) {
      it->due = now() + atof(path + 5) / 1000;
    } else if (strcmp(path, "hang") == 0) {
      it->hangs = 1;
      hung++;
    } else if (strcmp(path, "gone") == 0 || strcmp(path, "hung") == 0) {
      char text[32];
      snprintf(text, sizeof text, "%ld", path[0] == 'g' ? gone : hung);
      if (!answer(number, (long long)strlen(text), text)) return 0;
    } else if (!answer(number, atoll(path), "")) {
      return 0;
    }
  }
  return 1;
}

static void serve(int number, unsigned events) {
  connection *it = &connections[number];
  if (events & EPOLLOUT) {
    if (!go_on(number)) return;
    if (it->body_left == 0) watch(number, EPOLLIN, EPOLL_CTL_MOD);
  }
  if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
  ssize_t count = recv(number, it->input + it->count, sizeof it->input - 1 - it->count, MSG_DONTWAIT);
  if (count < 0 && errno == EAGAIN) return;
  if (count <= 0) return end(number);
  it->count += (size_t)count;
  take(number);
}

int main(void) {
  signal(SIGPIPE, SIG_IGN);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1024) != 0) fail("listen");
  getsockname(listener, (struct sockaddr *)&address, &length);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  set = epoll_create1(0);
  watch(listener, EPOLLIN, EPOLL_CTL_ADD);
  watch(0, EPOLLIN, EPOLL_CTL_ADD);
  for (;;) {
    int waits = 0;
    double first = 0;
    for (int number = 0; number < most; number++) {
      if (connections[number].in_use && connections[number].due > 0) {
        if (!waits || connections[number].due < first) first = connections[number].due;
        waits = 1;
      }
    }
    double left = first - now();
    struct epoll_event events[256];
    int count = epoll_wait(set, events, 256, waits ? (left > 0 ? (int)(left * 1000) + 1 : 0) : -1);
    for (int number = 0; waits && number < most; number++) {
      connection *it = &connections[number];
      if (!it->in_use || it->due == 0 || it->due > now()) continue;
      it->due = 0;
      answer(number, 2, "ok");
    }
    for (int index = 0; index < count; index++) {
      int number = events[index].data.fd;
      if (number == 0) return 0;
      if (number != listener) {
        serve(number, events[index].events);
        continue;
      }
      int accepted;
      while ((accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        if (accepted >= most) {
          close(accepted);
          continue;
        }
        int yes = 1;
        setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        connections[accepted] = (connection){.in_use = 1};
        watch(accepted, EPOLLIN, EPOLL_CTL_ADD);
      }
    }
  }
}
