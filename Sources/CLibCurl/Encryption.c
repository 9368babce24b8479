// SPDX-License-Identifier: Apache-2.0

// What only OpenSSL can be asked: whether a server wanted a certificate, and that an end without a farewell is an error.
// libcurl has opened OpenSSL if it uses it; otherwise nothing here has an effect.

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "CLibCurl.h"

enum { own_data = 0, remembered = 256 };
// SSL_OP_IGNORE_UNEXPECTED_EOF, of OpenSSL 3.
static const uint64_t ignore_unexpected_end = 1u << 7;

static void (*set_certificate_function)(void *, int (*)(void *, void **, void **));
static int (*set_data)(void *, int, void *);
static void *(*get_data)(const void *, int);
static void *(*context_of)(const void *);
static uint64_t (*clear_options)(void *, uint64_t);
static int is_usable;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// The transfers of this thread whose servers wanted a certificate lately, by their numbers.
static _Thread_local uintptr_t wanted[remembered];
static _Thread_local unsigned next_wanted;

static void open_library(void) {
  void *library = dlopen("libssl.so.3", RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL) return;
  *(void **)&set_certificate_function = dlsym(library, "SSL_CTX_set_client_cert_cb");
  *(void **)&set_data = dlsym(library, "SSL_CTX_set_ex_data");
  *(void **)&get_data = dlsym(library, "SSL_CTX_get_ex_data");
  *(void **)&context_of = dlsym(library, "SSL_get_SSL_CTX");
  *(void **)&clear_options = dlsym(library, "SSL_CTX_clear_options");
  is_usable = set_certificate_function && set_data && get_data && context_of && clear_options;
}

// The server wants a certificate, and there is none.
static int note_wanted(void *connection, void **certificate, void **key) {
  (void)certificate;
  (void)key;
  void *context = context_of(connection);
  uintptr_t number = context == NULL ? 0 : (uintptr_t)get_data(context, own_data);
  if (number != 0) wanted[next_wanted++ % remembered] = number;
  return 0;
}

int clc_prepare_encryption(clc_easy *easy, void *context, void *number) {
  (void)easy;
  pthread_once(&once, open_library);
  // A context of another library is left alone.
  if (!is_usable || context == NULL) return 0;
  set_data(context, own_data, number);
  set_certificate_function(context, note_wanted);
  // libcurl takes a connection that was cut for one that has ended: a body without a length would be complete.
  clear_options(context, ignore_unexpected_end);
  return 0;
}

int clc_wanted_certificate(uintptr_t number) {
  for (unsigned index = 0; index < remembered; index++) {
    if (wanted[index] == number) return 1;
  }
  return 0;
}
