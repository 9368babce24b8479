// SPDX-License-Identifier: Apache-2.0

// How many requests libcurl loses at a server that ends connections, as its authors drive it: epoll and
// curl_multi_socket_action, in plain C. It needs libcurl4-openssl-dev.
//
//     lost URL SECONDS AT-ONCE METHOD CERTIFICATE

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
  if (count < 6) return 2;
  int isHTTP2 = strncmp(arguments[1], "https", 5) == 0;
  double end = now() + atof(arguments[2]);
  int many = atoi(arguments[3]);
  const char *method = arguments[4];
  long ended = 0, lost = 0;
  static char texts[1000][CURL_ERROR_SIZE];
  if (many > 1000) return 2;
  char reason[CURL_ERROR_SIZE] = "";
  curl_global_init(CURL_GLOBAL_DEFAULT);
  set = epoll_create1(0);
  CURLM *multi = curl_multi_init();
  curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch);
  curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, multi);
  curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer);
  curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, isHTTP2 ? 1L : (long)many);
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)many);
  for (int index = 0; index < many; index++) {
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, arguments[1]);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, texts[index]);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, texts[index]);
    curl_easy_setopt(easy, CURLOPT_CAINFO, arguments[5]);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, isHTTP2 ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    if (strcmp(method, "HEAD") == 0) curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    if (method[0] == 'P') {
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "x");
      curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
    }
    curl_multi_add_handle(multi, easy);
  }
  int running, left = many;
  while (left > 0) {
    double rest = due < 0 ? -1 : due - now();
    struct epoll_event events[256];
    int ready = epoll_wait(set, events, 256, due < 0 ? -1 : rest > 0 ? (int)(rest * 1000) + 1 : 0);
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
    int others;
    while ((message = curl_multi_info_read(multi, &others)) != NULL) {
      if (message->msg != CURLMSG_DONE) continue;
      CURL *easy = message->easy_handle;
      ended++;
      if (message->data.result != CURLE_OK) {
        lost++;
        char *text;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &text);
        snprintf(reason, sizeof reason, "%s", text[0] ? text : curl_easy_strerror(message->data.result));
      }
      curl_multi_remove_handle(multi, easy);
      if (now() < end) {
        curl_multi_add_handle(multi, easy);
      } else {
        curl_easy_cleanup(easy);
        left--;
      }
    }
  }
  printf("{\"requests\": %ld, \"lost\": %ld, \"reason\": \"%s\"}\n", ended, lost, reason);
}
