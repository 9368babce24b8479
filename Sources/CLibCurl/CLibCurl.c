// SPDX-License-Identifier: Apache-2.0

#include "CLibCurl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

// The first members of curl_version_info_data.
typedef struct {
  int age;
  const char *version;
  unsigned number;
  const char *host;
  int features;
  const char *encryption;
} version_info;

// CURLMsg.
typedef struct {
  int message;
  clc_easy *easy;
  union {
    void *pointer;
    int code;
  } data;
} message;

// struct curl_slist.
typedef struct list_item {
  char *text;
  struct list_item *next;
} list_item;

enum { message_done = 1, global_default = 3, version_info_now = 0 };

// The functions, by their names in the library.
#define FUNCTIONS(X) \
  X(int, curl_global_init, (long)) \
  X(version_info *, curl_version_info, (int)) \
  X(clc_easy *, curl_easy_init, (void)) \
  X(void, curl_easy_cleanup, (clc_easy *)) \
  X(void, curl_easy_reset, (clc_easy *)) \
  X(int, curl_easy_setopt, (clc_easy *, int, ...)) \
  X(int, curl_easy_getinfo, (clc_easy *, int, ...)) \
  X(int, curl_easy_pause, (clc_easy *, int)) \
  X(const char *, curl_easy_strerror, (int)) \
  X(clc_list *, curl_slist_append, (clc_list *, const char *)) \
  X(void, curl_slist_free_all, (clc_list *)) \
  X(clc_url *, curl_url, (void)) \
  X(int, curl_url_set, (clc_url *, int, const char *, unsigned)) \
  X(void, curl_url_cleanup, (clc_url *)) \
  X(clc_multi *, curl_multi_init, (void)) \
  X(int, curl_multi_cleanup, (clc_multi *)) \
  X(int, curl_multi_setopt, (clc_multi *, int, ...)) \
  X(int, curl_multi_add_handle, (clc_multi *, clc_easy *)) \
  X(int, curl_multi_remove_handle, (clc_multi *, clc_easy *)) \
  X(int, curl_multi_socket_action, (clc_multi *, int, int, int *)) \
  X(message *, curl_multi_info_read, (clc_multi *, int *)) \
  X(const char *, curl_multi_strerror, (int))

#define MEMBER(result, name, parameters) result(*name) parameters;
typedef struct {
  FUNCTIONS(MEMBER)
} functions;

// Written once with the lock held, before `opened_version`; read after it.
static functions curl;
static _Atomic unsigned opened_version;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Loads a library, looks up its functions and checks its version. Returns its handle, or null and the reason.
static void *open_library(
  const char *file, unsigned oldest, functions *found, unsigned *version, int *answer, char *detail, size_t capacity) {
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char *reason = dlerror();
    snprintf(
      detail, capacity, "%s cannot be opened (%s); Debian's package is libcurl4, or libcurl4t64 from Debian 13 on", file,
      reason ? reason : "no reason");
    *answer = clc_missing;
    return NULL;
  }
#define FIND(result, name, parameters) \
  *(void **)&found->name = dlsym(library, #name); \
  if (found->name == NULL) { \
    snprintf(detail, capacity, "%s has no %s", file, #name); \
    *answer = clc_symbol_missing; \
    dlclose(library); \
    return NULL; \
  }
  FUNCTIONS(FIND)
  version_info *info = found->curl_version_info(version_info_now);
  if (info == NULL || info->number < oldest) {
    snprintf(
      detail, capacity, "%s is version %s, and %u.%u is the oldest that will do", file,
      info && info->version ? info->version : "unknown", oldest >> 16, oldest >> 8 & 0xff);
    *answer = clc_too_old;
    dlclose(library);
    return NULL;
  }
  *version = info->number;
  *answer = clc_opened;
  return library;
}

// Removes the environment variables with which the user who starts a privileged program (AT_SECURE) could choose a
// file that it writes or a library that it loads. libcurl reads these variables with getenv(3), and has no option for
// them. SSLKEYLOGFILE names a file for the keys of all connections, and QLOGDIR a directory for HTTP/3 logs.
//
// This happens before main(), like the dynamic loader's removal of LD_PRELOAD and similar variables, when there is no
// other thread that unsetenv(3) could disturb. If this library was loaded with dlopen(3), there may be other threads,
// which at worst find a variable missing for a moment: glibc moves the pointers of the environment and frees nothing.
// Variables that the program itself sets later are its own decision, and are kept.
__attribute__((constructor)) static void distrust_environment(void) {
  if (getauxval(AT_SECURE) == 0) return;
  static const char *const names[] = {"SSLKEYLOGFILE", "QLOGDIR", "SSL_DIR", "CURL_SSL_BACKEND", "CURL_CA_BUNDLE"};
  for (size_t index = 0; index < sizeof names / sizeof *names; index++) unsetenv(names[index]);
}

int clc_open(char *detail, size_t capacity) {
  if (atomic_load_explicit(&opened_version, memory_order_acquire) != 0) return clc_opened;
  pthread_mutex_lock(&lock);
  int answer = clc_opened;
  // Relaxed, because it is also stored with the mutex held.
  if (atomic_load_explicit(&opened_version, memory_order_relaxed) == 0) {
    functions found;
    unsigned version = 0;
    void *library = open_library("libcurl.so.4", clc_oldest, &found, &version, &answer, detail, capacity);
    if (library != NULL) {
      // FoundationNetworking in the same process calls this function too; libcurl counts the calls.
      int code = found.curl_global_init(global_default);
      if (code == 0) {
        curl = found;
        atomic_store_explicit(&opened_version, version, memory_order_release);
      } else {
        snprintf(detail, capacity, "libcurl cannot start: %s", found.curl_easy_strerror(code));
        answer = clc_cannot_start;
        dlclose(library);
      }
    }
  }
  pthread_mutex_unlock(&lock);
  return answer;
}

int clc_try_open(const char *file, unsigned oldest, char *detail, size_t capacity) {
  functions found;
  unsigned version = 0;
  int answer = clc_opened;
  void *library = open_library(file, oldest, &found, &version, &answer, detail, capacity);
  if (library != NULL) dlclose(library);
  return answer;
}

unsigned clc_version(void) { return atomic_load_explicit(&opened_version, memory_order_acquire); }

int clc_uses_openssl(void) {
  version_info *info = curl.curl_version_info(version_info_now);
  return info->encryption != NULL && strncmp(info->encryption, "OpenSSL/3", 9) == 0;
}

int clc_set_encryption(clc_easy *easy, uintptr_t number) {
  int code = curl.curl_easy_setopt(easy, clc_option_encryption_data, (void *)number);
  return code != 0 ? code : clc_set_encryption_function(easy, clc_prepare_encryption);
}
int clc_set_encryption_function(clc_easy *easy, clc_encryption_function function) {
  return curl.curl_easy_setopt(easy, clc_option_encryption_function, function);
}

clc_easy *clc_easy_make(void) { return curl.curl_easy_init(); }
void clc_easy_free(clc_easy *easy) { curl.curl_easy_cleanup(easy); }
void clc_easy_reset(clc_easy *easy) { curl.curl_easy_reset(easy); }
int clc_easy_pause(clc_easy *easy, int what) { return curl.curl_easy_pause(easy, what); }
const char *clc_easy_text(int code) { return curl.curl_easy_strerror(code); }

int clc_set_long(clc_easy *easy, int option, long value) { return curl.curl_easy_setopt(easy, option, value); }
int clc_set_offset(clc_easy *easy, int option, int64_t value) { return curl.curl_easy_setopt(easy, option, value); }
int clc_set_text(clc_easy *easy, int option, const char *text) { return curl.curl_easy_setopt(easy, option, text); }
int clc_set_pointer(clc_easy *easy, int option, void *pointer) {
  return curl.curl_easy_setopt(easy, option, pointer);
}
int clc_set_list(clc_easy *easy, int option, clc_list *list) { return curl.curl_easy_setopt(easy, option, list); }
int clc_set_data_function(clc_easy *easy, int option, clc_data_function function) {
  return curl.curl_easy_setopt(easy, option, function);
}
int clc_set_seek_function(clc_easy *easy, clc_seek_function function) {
  return curl.curl_easy_setopt(easy, clc_option_seek_function, function);
}
int clc_set_prerequest_function(clc_easy *easy, clc_prerequest_function function) {
  return curl.curl_easy_setopt(easy, clc_option_prerequest_function, function);
}
int clc_set_progress_function(clc_easy *easy, clc_progress_function function) {
  return curl.curl_easy_setopt(easy, clc_option_progress_function, function);
}
int clc_set_debug_function(clc_easy *easy, clc_debug_function function) {
  return curl.curl_easy_setopt(easy, clc_option_debug_function, function);
}
int clc_set_open_socket_function(clc_easy *easy, clc_open_socket_function function) {
  return curl.curl_easy_setopt(easy, clc_option_open_socket_function, function);
}
int clc_set_close_socket_function(clc_easy *easy, clc_close_socket_function function) {
  return curl.curl_easy_setopt(easy, clc_option_close_socket_function, function);
}

long clc_get_long(clc_easy *easy, int info) {
  long value = 0;
  return curl.curl_easy_getinfo(easy, info, &value) == 0 ? value : 0;
}
int64_t clc_get_offset(clc_easy *easy, int info) {
  int64_t value = 0;
  return curl.curl_easy_getinfo(easy, info, &value) == 0 ? value : 0;
}
void *clc_get_pointer(clc_easy *easy, int info) {
  void *value = NULL;
  return curl.curl_easy_getinfo(easy, info, &value) == 0 ? value : NULL;
}

clc_list *clc_list_append(clc_list *list, const char *text) {
  clc_list *longer = curl.curl_slist_append(list, text);
  if (longer == NULL) curl.curl_slist_free_all(list);
  return longer;
}
void clc_list_wipe(clc_list *list) {
  for (list_item *each = (list_item *)list; each != NULL; each = each->next) {
    explicit_bzero(each->text, strlen(each->text));
  }
  curl.curl_slist_free_all(list);
}
void clc_list_free(clc_list *list) { curl.curl_slist_free_all(list); }

clc_url *clc_url_read(const char *text) {
  clc_url *url = curl.curl_url();
  if (url == NULL || curl.curl_url_set(url, clc_url_whole, text, clc_url_path_as_is) == 0) return url;
  curl.curl_url_cleanup(url);
  return NULL;
}
void clc_url_free(clc_url *url) { curl.curl_url_cleanup(url); }

clc_multi *clc_multi_make(void) { return curl.curl_multi_init(); }
int clc_multi_free(clc_multi *multi) { return curl.curl_multi_cleanup(multi); }
int clc_multi_set_long(clc_multi *multi, int option, long value) {
  return curl.curl_multi_setopt(multi, option, value);
}
int clc_multi_set_socket_function(clc_multi *multi, clc_socket_function function, void *context) {
  int code = curl.curl_multi_setopt(multi, clc_multi_option_socket_data, context);
  return code != 0 ? code : curl.curl_multi_setopt(multi, clc_multi_option_socket_function, function);
}
int clc_multi_set_timer_function(clc_multi *multi, clc_timer_function function, void *context) {
  int code = curl.curl_multi_setopt(multi, clc_multi_option_timer_data, context);
  return code != 0 ? code : curl.curl_multi_setopt(multi, clc_multi_option_timer_function, function);
}
int clc_multi_add(clc_multi *multi, clc_easy *easy) { return curl.curl_multi_add_handle(multi, easy); }
int clc_multi_remove(clc_multi *multi, clc_easy *easy) { return curl.curl_multi_remove_handle(multi, easy); }
int clc_multi_act(clc_multi *multi, int descriptor, int events) {
  int running = 0;
  return curl.curl_multi_socket_action(multi, descriptor, events, &running);
}
const char *clc_multi_text(int code) { return curl.curl_multi_strerror(code); }

clc_easy *clc_multi_next_ended(clc_multi *multi, int *code) {
  int left = 0;
  for (;;) {
    message *next = curl.curl_multi_info_read(multi, &left);
    if (next == NULL) return NULL;
    if (next->message != message_done) continue;
    *code = next->data.code;
    return next->easy;
  }
}
