// SPDX-License-Identifier: Apache-2.0

// libcurl used directly from C, with epoll and curl_multi_socket_action. Requires libcurl4-openssl-dev.
//
//     curl PORT PATH COUNT CONNECTIONS [http2 CERTIFICATE]
//
// http2: CONNECTIONS requests at a time on one connection, to a server with this certificate.

#define _GNU_SOURCE
#include "multi.h"

int main(int count, char **arguments) {
  if (count < 5) return 2;
  int multiplexes = count > 6 && strcmp(arguments[5], "http2") == 0;
  long requests = atol(arguments[3]), started = 0, ended = 0;
  int many = atoi(arguments[4]);
  char url[256];
  snprintf(url, sizeof url, "%s://127.0.0.1:%s%s", multiplexes ? "https" : "http", arguments[1], arguments[2]);
  curl_global_init(CURL_GLOBAL_DEFAULT);
  double begin = now();
  CURLM *multi = make_multi(multiplexes ? 1L : (long)many, (long)many);
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
  while (ended < requests) {
    turn(multi);
    CURLcode result;
    CURL *easy;
    while ((easy = next_ended(multi, &result)) != NULL) {
      if (result != CURLE_OK) {
        fprintf(stderr, "%s\n", curl_easy_strerror(result));
        return 1;
      }
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
