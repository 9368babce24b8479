// SPDX-License-Identifier: Apache-2.0

#include "CRace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int race_udp_socket(int *port) {
  int made = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  race_check(bind(made, (struct sockaddr *)&address, length) == 0, "no port");
  getsockname(made, (struct sockaddr *)&address, &length);
  *port = ntohs(address.sin_port);
  return made;
}

void race_udp_serve(int descriptor) {
  int set = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
  race_check(epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl");
  char buffer[65536];
  for (;;) {
    if (epoll_wait(set, &event, 1, -1) < 1) continue;
    for (int taken = 0; taken < 16; taken++) {
      struct sockaddr_storage sender;
      socklen_t length = sizeof sender;
      ssize_t got = recvfrom(descriptor, buffer, sizeof buffer, 0, (struct sockaddr *)&sender, &length);
      if (got < 0) break;
      ssize_t sent = sendto(descriptor, buffer, (size_t)got, 0, (struct sockaddr *)&sender, length);
      race_check(sent == got, "an answer was not sent");
    }
  }
}

int64_t race_udp_ask(int port, int64_t count, int window) {
  int asking = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((unsigned short)port)};
  race_check(connect(asking, (struct sockaddr *)&address, sizeof address) == 0, "connect");
  struct timeval patience = {.tv_sec = 10};
  setsockopt(asking, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  char message[RACE_MESSAGE] = {1}, answer[RACE_MESSAGE];
  int64_t begin = race_now(), sent = 0;
  for (; sent < window && sent < count; sent++) race_check(send(asking, message, sizeof message, 0) > 0, "send");
  for (int64_t answered = 0; answered < count; answered++) {
    race_check(recv(asking, answer, sizeof answer, 0) == RACE_MESSAGE, "no answer for ten seconds");
    if (sent == count) continue;
    race_check(send(asking, message, sizeof message, 0) > 0, "send");
    sent++;
  }
  int64_t end = race_now();
  close(asking);
  return end - begin;
}
