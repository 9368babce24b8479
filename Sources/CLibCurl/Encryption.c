// SPDX-License-Identifier: Apache-2.0

// Information that only OpenSSL has: whether a server requested a certificate, and whether it ended a connection
// properly or the connection was truncated. Also ends connections on which a server keeps sending data that is not
// part of a response, because libcurl reads HTTP/2 frames until there are no more, with no callbacks for those that it
// handles itself. If libcurl uses OpenSSL, it has loaded it; otherwise nothing here has an effect.

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

#include "CLibCurl.h"

enum { own_data = 0, remembered = 256, remembered_ends = 4096 };
// The maximum number of records on a connection, within this many seconds, from which no data is used. It is more than
// a server sends to acknowledge an upload.
enum { most_fruitless = 2000, fruitless_seconds = 60 };
// SSL3_RT_HEADER and SSL_RECEIVED_SHUTDOWN.
enum { record_header = 0x100, received_shutdown = 2 };
// SSL_CB_READ_ALERT and SSL_CB_WRITE_ALERT; the alerts that announce an end without an error, close_notify and
// user_canceled; and the level of alerts that report an error.
enum { alert_was_read = 0x4004, alert_was_sent = 0x4008, close_notify = 0, user_canceled = 90, fatal = 2 };
// TLS1_3_VERSION; and the warning with which a server declines a new handshake, which OpenSSL treats as an end.
enum { tls_1_3 = 0x0304, no_renegotiation = 100 };

static void (*set_certificate_function)(void *, int (*)(void *, void **, void **));
static int (*set_data)(void *, int, void *);
static void *(*get_data)(const void *, int);
static void *(*context_of)(const void *);
static void (*set_information_function)(void *, void (*)(const void *, int, int));
static void (*set_message_function)(
  void *, void (*)(int, int, int, const void *, size_t, void *, void *));
static void (*set_shutdown)(void *, int);
static int (*version_of)(const void *);
static int is_usable;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// The numbers of this thread's recent transfers whose servers requested a certificate.
static _Thread_local uintptr_t wanted[remembered];
static _Thread_local unsigned next_wanted;
// The recent transfers whose connections were ended by the server.
static _Thread_local uintptr_t ended[remembered_ends];
static _Thread_local unsigned next_ended;
// The alerts that recently ended connections, with the transfers that opened these.
static _Thread_local struct {
  uintptr_t number;
  int alert;
  int is_own;
} alerts[remembered];
static _Thread_local unsigned next_alert;
// The recent transfers whose connections were ended here.
static _Thread_local uintptr_t flooded[remembered];
static _Thread_local unsigned next_flooded;
// The connection that was read last, and the number of its records since then from which no data was used.
static _Thread_local const void *last_read;
static _Thread_local unsigned fruitless;
static _Thread_local time_t first_read;

static void open_library(void) {
  void *library = dlopen("libssl.so.3", RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL) return;
  *(void **)&set_certificate_function = dlsym(library, "SSL_CTX_set_client_cert_cb");
  *(void **)&set_data = dlsym(library, "SSL_CTX_set_ex_data");
  *(void **)&get_data = dlsym(library, "SSL_CTX_get_ex_data");
  *(void **)&context_of = dlsym(library, "SSL_get_SSL_CTX");
  *(void **)&set_information_function = dlsym(library, "SSL_CTX_set_info_callback");
  *(void **)&set_message_function = dlsym(library, "SSL_CTX_set_msg_callback");
  *(void **)&set_shutdown = dlsym(library, "SSL_set_shutdown");
  *(void **)&version_of = dlsym(library, "SSL_version");
  is_usable = set_certificate_function && set_data && get_data && context_of && set_information_function &&
    set_message_function && set_shutdown && version_of;
}

// Called when the server requests a certificate and there is none.
static int note_wanted(void *connection, void **certificate, void **key) {
  (void)certificate;
  (void)key;
  void *context = context_of(connection);
  uintptr_t number = context == NULL ? 0 : (uintptr_t)get_data(context, own_data);
  if (number != 0) wanted[next_wanted++ % remembered] = number;
  return 0;
}

// Called for events on a connection.
static void note_end(const void *connection, int what, int value) {
  if (what != alert_was_read && what != alert_was_sent) return;
  int alert = value & 0xff, is_own = what == alert_was_sent;
  int is_farewell = alert == close_notify || alert == user_canceled;
  // In TLS 1.3 all other alerts are fatal, whatever their level; before, a server's warning ends nothing.
  int is_error = value >> 8 == fatal || (!is_own && (version_of(connection) >= tls_1_3 || alert == no_renegotiation));
  if (is_farewell ? is_own || alert != close_notify : !is_error) return;
  void *context = context_of(connection);
  uintptr_t number = context == NULL ? 0 : (uintptr_t)get_data(context, own_data);
  if (number == 0) return;
  if (is_farewell) {
    ended[next_ended++ % remembered_ends] = number;
  } else {
    unsigned place = next_alert++ % remembered;
    alerts[place].number = number;
    alerts[place].alert = alert;
    alerts[place].is_own = is_own;
  }
}

static time_t seconds(void) {
  struct timespec now;
  return clock_gettime(CLOCK_MONOTONIC_COARSE, &now) == 0 ? now.tv_sec : 0;
}

// Called when a record is sent, or when the header of one has arrived.
static void note_record(
  int is_sent, int version, int kind, const void *bytes, size_t count, void *connection, void *argument) {
  (void)version, (void)bytes, (void)count, (void)argument;
  if (is_sent || kind != record_header) return;
  if (connection != last_read) fruitless = 0;
  if (fruitless == 0) {
    last_read = connection;
    first_read = seconds();
  }
  if (++fruitless != most_fruitless) return;
  if (seconds() - first_read > fruitless_seconds) {
    fruitless = 0;
    return;
  }
  // OpenSSL treats this as the end, and all data that has arrived or arrives later is discarded.
  set_shutdown(connection, received_shutdown);
  void *context = context_of(connection);
  uintptr_t number = context == NULL ? 0 : (uintptr_t)get_data(context, own_data);
  if (number != 0) flooded[next_flooded++ % remembered] = number;
}

void clc_note_progress(void) { fruitless = 0; }

int clc_was_flooded(uintptr_t number) {
  if (next_flooded == 0) return 0;
  for (unsigned index = 0; index < remembered; index++) {
    if (flooded[index] == number) return 1;
  }
  return 0;
}

int clc_prepare_encryption(clc_easy *easy, void *context, void *number) {
  (void)easy;
  pthread_once(&once, open_library);
  // The context of another library is left alone.
  if (!is_usable || context == NULL) return 0;
  set_data(context, own_data, number);
  set_certificate_function(context, note_wanted);
  set_information_function(context, note_end);
  set_message_function(context, note_record);
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

int clc_alert(uintptr_t number, int *is_own) {
  unsigned count = next_alert < remembered ? next_alert : remembered;
  // This side may respond to the peer's alert with one of its own, so the first alert is the cause.
  for (unsigned index = 0; index < count; index++) {
    unsigned place = (next_alert - count + index) % remembered;
    if (alerts[place].number != number) continue;
    *is_own = alerts[place].is_own;
    return alerts[place].alert;
  }
  return -1;
}
