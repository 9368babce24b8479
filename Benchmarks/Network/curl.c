// SPDX-License-Identifier: Apache-2.0

// libcurl as its authors drive it: epoll and curl_multi_socket_action, in plain C. It needs libcurl4-openssl-dev.
//
//     curl PORT PATH COUNT CONNECTIONS [http2 CERTIFICATE]
//
// http2: so many at once, on one connection, to a server with this certificate.

#define _GNU_SOURCE
#include <curl/curl.h>

#include "common.h"

static int set;
static double due = -1;

static size_t take(char *bytes, size_t size, size_t count, void *context) {
  (void)bytes, (void)context;
  return size * count;
}

static int watch(CURL *easy, curl_socket_t number, int what, void *context, void *known) {
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

static int timer(CURLM *multi, long milliseconds, void *context) {
  (void)multi, (void)context;
  due = milliseconds < 0 ? -1 : now() + (double)milliseconds / 1000;
  return 0;
}

int main(int count, char **arguments) {
  if (count < 5) return 2;
  int multiplexes = count > 6 && strcmp(arguments[5], "http2") == 0;
  long requests = atol(arguments[3]), started = 0, ended = 0;
  int many = atoi(arguments[4]);
  char url[256];
  snprintf(url, sizeof url, "%s://127.0.0.1:%s%s", multiplexes ? "https" : "http", arguments[1], arguments[2]);
  curl_global_init(CURL_GLOBAL_DEFAULT);
  set = epoll_create1(0);
  double begin = now();
  CURLM *multi = curl_multi_init();
  curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch);
  curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, multi);
  curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer);
  curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, multiplexes ? 1L : (long)many);
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)many);
  curl_multi_setopt(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, 1000L);
  for (; started < many && started < requests; started++) {
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    if (multiplexes) {
      curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
      curl_easy_setopt(easy, CURLOPT_CAINFO, arguments[6]);
      curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    }
    curl_multi_add_handle(multi, easy);
  }
  int running;
  while (ended < requests) {
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
    CURLMsg *message;
    int rest;
    while ((message = curl_multi_info_read(multi, &rest)) != NULL) {
      if (message->msg != CURLMSG_DONE) continue;
      if (message->data.result != CURLE_OK) {
        fprintf(stderr, "%s\n", curl_easy_strerror(message->data.result));
        return 1;
      }
      CURL *easy = message->easy_handle;
      ended++;
      curl_multi_remove_handle(multi, easy);
      if (started < requests) {
        started++;
        curl_multi_add_handle(multi, easy);
      } else {
        curl_easy_cleanup(easy);
      }
    }
  }
  report(requests, now() - begin, processor_time());
}
