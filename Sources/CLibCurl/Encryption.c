// SPDX-License-Identifier: Apache-2.0

// What only OpenSSL can be asked: whether a server wanted a certificate, and whether it has ended a connection or somebody
// else has cut it.
// libcurl has opened OpenSSL if it uses it; otherwise nothing here has an effect.

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "CLibCurl.h"

enum { own_data = 0, remembered = 256, remembered_ends = 4096 };
// SSL_CB_READ_ALERT, and the alert close_notify.
enum { alert_was_read = 0x4004, close_notify = 0 };

static void (*set_certificate_function)(void *, int (*)(void *, void **, void **));
static int (*set_data)(void *, int, void *);
static void *(*get_data)(const void *, int);
static void *(*context_of)(const void *);
static void (*set_information_function)(void *, void (*)(const void *, int, int));
static int is_usable;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// The transfers of this thread whose servers wanted a certificate lately, by their numbers.
static _Thread_local uintptr_t wanted[remembered];
static _Thread_local unsigned next_wanted;
// The transfers whose connections have been ended by the server lately.
static _Thread_local uintptr_t ended[remembered_ends];
static _Thread_local unsigned next_ended;

static void open_library(void) {
  void *library = dlopen("libssl.so.3", RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL) return;
  *(void **)&set_certificate_function = dlsym(library, "SSL_CTX_set_client_cert_cb");
  *(void **)&set_data = dlsym(library, "SSL_CTX_set_ex_data");
  *(void **)&get_data = dlsym(library, "SSL_CTX_get_ex_data");
  *(void **)&context_of = dlsym(library, "SSL_get_SSL_CTX");
  *(void **)&set_information_function = dlsym(library, "SSL_CTX_set_info_callback");
  is_usable = set_certificate_function && set_data && get_data && context_of && set_information_function;
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

// Something has happened on a connection.
static void note_end(const void *connection, int what, int value) {
  if (what != alert_was_read || (value & 0xff) != close_notify) return;
  void *context = context_of(connection);
  uintptr_t number = context == NULL ? 0 : (uintptr_t)get_data(context, own_data);
  if (number != 0) ended[next_ended++ % remembered_ends] = number;
}

int clc_prepare_encryption(clc_easy *easy, void *context, void *number) {
  (void)easy;
  pthread_once(&once, open_library);
  // A context of another library is left alone.
  if (!is_usable || context == NULL) return 0;
  set_data(context, own_data, number);
  set_certificate_function(context, note_wanted);
  set_information_function(context, note_end);
  return 0;
}

int clc_notes_ends(void) { return is_usable; }

int clc_was_ended(uintptr_t number) {
  for (unsigned index = 0; index < remembered_ends; index++) {
    if (ended[index] == number) return 1;
  }
  return 0;
}

int clc_wanted_certificate(uintptr_t number) {
  for (unsigned index = 0; index < remembered; index++) {
    if (wanted[index] == number) return 1;
  }
  return 0;
}
