// SPDX-License-Identifier: Apache-2.0

// The echo server to compare ours with in M4: epoll and OpenSSL, which reads and writes the descriptors.
//
//     tls-floor CERTIFICATE KEY
//
// It prints its port, and exits at the end of its standard input.

#include "common.h"

typedef struct {
  SSL *ssl;
  int descriptor;
} connection;

// Echoes what is available; returns 0 if the connection has ended.
static int serve(connection *peer) {
  char bytes[16384];
  while (1) {
    int count = SSL_read(peer->ssl, bytes, sizeof bytes);
    if (count > 0) {
      // A client that waits for its reply leaves the send buffer empty.
      check(SSL_write(peer->ssl, bytes, count) == count, "an answer did not fit");
      // Another read would be an unnecessary system call.
      if (SSL_pending(peer->ssl) == 0) return 1;
      continue;
    }
    return SSL_get_error(peer->ssl, count) == SSL_ERROR_WANT_READ;
  }
}

int main(int argc, char **argv) {
  check(argc == 3, "usage: tls-floor CERTIFICATE KEY");
  SSL_CTX *context = SSL_CTX_new(TLS_server_method());
  check(SSL_CTX_use_certificate_chain_file(context, argv[1]) == 1, argv[1]);
  check(SSL_CTX_use_PrivateKey_file(context, argv[2], SSL_FILETYPE_PEM) == 1, argv[2]);
  // One receive for each record.
  SSL_CTX_set_read_ahead(context, 1);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  check(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, MOST) == 0, "listen");
  getsockname(listener, (struct sockaddr *)&address, &length);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
  epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
  event.data.ptr = &set;
  epoll_ctl(set, EPOLL_CTL_ADD, 0, &event);
  while (1) {
    struct epoll_event events[EVENTS];
    int count = epoll_wait(set, events, EVENTS, -1);
    for (int index = 0; index < count; index++) {
      if (events[index].data.ptr == &set) return 0;
      if (events[index].data.ptr == NULL) {
        int descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
        if (descriptor < 0) continue;
        without_delay(descriptor);
        connection *peer = malloc(sizeof *peer);
        *peer = (connection){SSL_new(context), descriptor};
        SSL_set_fd(peer->ssl, descriptor);
        SSL_set_accept_state(peer->ssl);
        event.data.ptr = peer;
        epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event);
        continue;
      }
      connection *peer = events[index].data.ptr;
      if (serve(peer)) continue;
      SSL_free(peer->ssl);
      close(peer->descriptor);
      free(peer);
    }
  }
}
