// SPDX-License-Identifier: Apache-2.0

// Counts the requests that libcurl loses at a server that closes connections, using epoll and
// curl_multi_socket_action directly from C. Requires libcurl4-openssl-dev.
//
//     lost URL SECONDS AT-ONCE METHOD CERTIFICATE

#define _GNU_SOURCE
#include "multi.h"

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
  CURLM *multi = make_multi(isHTTP2 ? 1L : (long)many, (long)many);
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
  int left = many;
  while (left > 0) {
    turn(multi);
    CURLcode result;
    CURL *easy;
    while ((easy = next_ended(multi, &result)) != NULL) {
      ended++;
      if (result != CURLE_OK) {
        lost++;
        char *text;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &text);
        snprintf(reason, sizeof reason, "%s", text[0] ? text : curl_easy_strerror(result));
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
