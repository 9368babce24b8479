// SPDX-License-Identifier: Apache-2.0

// Drives libcurl with epoll and curl_multi_socket_action. Requires libcurl4-openssl-dev.
#pragma once

#include <curl/curl.h>

#include "common.h"

static int set;
static double due = -1;

static inline size_t take(char *bytes, size_t size, size_t count, void *context) {
  (void)bytes, (void)context;
  return size * count;
}

static inline int watch(CURL *easy, curl_socket_t number, int what, void *context, void *known) {
  (void)easy;
  if (what == CURL_POLL_REMOVE) {
    epoll_ctl(set, EPOLL_CTL_DEL, number, NULL);
    curl_multi_assign(context, number, NULL);
    return 0;
  }
  struct epoll_event event = {.data.fd = number};
  if (what & CURL_POLL_IN) event.events |= EPOLLIN;
  if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
  epoll_ctl(set, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, number, &event);
  curl_multi_assign(context, number, &set);
  return 0;
}

static inline int timer(CURLM *multi, long milliseconds, void *context) {
  (void)multi, (void)context;
  due = milliseconds < 0 ? -1 : now() + (double)milliseconds / 1000;
  return 0;
}

// Creates the multi handle, with limits for connections per host and for kept connections.
static inline CURLM *make_multi(long connections, long kept) {
  set = epoll_create1(0);
  CURLM *multi = curl_multi_init();
  curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch);
  curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, multi);
  curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer);
  curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, connections);
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, kept);
  return multi;
}

// Waits for the next events and passes them to the library.
static inline void turn(CURLM *multi) {
  int running;
  double left = due < 0 ? -1 : due - now();
  struct epoll_event events[256];
  int ready = epoll_wait(set, events, 256, due < 0 ? -1 : left > 0 ? (int)(left * 1000) + 1 : 0);
  if (due >= 0 && now() >= due) {
    due = -1;
    curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
  }
  for (int index = 0; index < ready; index++) {
    int what = 0;
    if (events[index].events & EPOLLIN) what |= CURL_CSELECT_IN;
    if (events[index].events & EPOLLOUT) what |= CURL_CSELECT_OUT;
    if (events[index].events & (EPOLLERR | EPOLLHUP)) what |= CURL_CSELECT_ERR;
    curl_multi_socket_action(multi, events[index].data.fd, what, &running);
  }
}

// Returns the next completed request and its result, or null.
static inline CURL *next_ended(CURLM *multi, CURLcode *result) {
  CURLMsg *message;
  int rest;
  while ((message = curl_multi_info_read(multi, &rest)) != NULL) {
    if (message->msg != CURLMSG_DONE) continue;
    *result = message->data.result;
    return message->easy_handle;
  }
  return NULL;
}
