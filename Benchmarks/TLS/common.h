// SPDX-License-Identifier: Apache-2.0

// Shared by the client and the server in C.
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE = 64, MOST = 1000, EVENTS = 64 };

static void check(int condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static void without_delay(int descriptor) {
  int yes = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}
