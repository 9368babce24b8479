// SPDX-License-Identifier: Apache-2.0

#include "CHostLoop.h"

#include <stddef.h>

#ifdef HAS_GLIB
#include <glib.h>

struct chost {
  GMainContext *context;
  GMainLoop *loop;
  GSource *guest;
};

typedef struct {
  GSource source;
  GPollFD descriptor;
  int (*timeout)(void *);
  void (*service)(void *);
  void *context;
} guest_source;

const char *chost_library(void) {
  static char name[64];
  g_snprintf(name, sizeof name, "GLib %u.%u.%u", glib_major_version, glib_minor_version, glib_micro_version);
  return name;
}

void chost_use_own_context(void) {
  GMainContext *context = g_main_context_new();
  g_main_context_push_thread_default(context);
  g_main_context_unref(context);
}

chost *chost_create(void) {
  chost *host = g_new0(chost, 1);
  host->context = g_main_context_get_thread_default();
  host->loop = g_main_loop_new(host->context, FALSE);
  return host;
}

void chost_run(chost *host) { g_main_loop_run(host->loop); }

void chost_quit(chost *host) { g_main_loop_quit(host->loop); }

void chost_destroy(chost *host) {
  chost_remove_guest(host);
  g_main_loop_unref(host->loop);
  g_free(host);
}

// Called before each wait: returns its longest duration.
static gboolean guest_prepare(GSource *source, gint *timeout) {
  guest_source *guest = (guest_source *)source;
  *timeout = guest->timeout(guest->context);
  return *timeout == 0;
}

// Called after each wait: returns whether the guest must be serviced.
static gboolean guest_check(GSource *source) {
  guest_source *guest = (guest_source *)source;
  return guest->descriptor.revents != 0 || guest->timeout(guest->context) == 0;
}

static gboolean guest_dispatch(GSource *source, GSourceFunc callback, gpointer data) {
  (void)callback;
  (void)data;
  guest_source *guest = (guest_source *)source;
  guest->service(guest->context);
  return G_SOURCE_CONTINUE;
}

void chost_add_guest(chost *host, int descriptor, int (*timeout)(void *), void (*service)(void *), void *context) {
  static GSourceFuncs functions = {.prepare = guest_prepare, .check = guest_check, .dispatch = guest_dispatch};
  host->guest = g_source_new(&functions, sizeof(guest_source));
  guest_source *guest = (guest_source *)host->guest;
  guest->descriptor.fd = descriptor;
  guest->descriptor.events = G_IO_IN;
  guest->timeout = timeout;
  guest->service = service;
  guest->context = context;
  g_source_add_poll(host->guest, &guest->descriptor);
  g_source_attach(host->guest, host->context);
}

void chost_remove_guest(chost *host) {
  if (host->guest == NULL) return;
  g_source_destroy(host->guest);
  g_source_unref(host->guest);
  host->guest = NULL;
}

void chost_add_timeout(chost *host, unsigned milliseconds, int (*fire)(void *), void *context) {
  GSource *timeout = g_timeout_source_new(milliseconds);
  g_source_set_callback(timeout, (GSourceFunc)fire, context, NULL);
  g_source_attach(timeout, host->context);
  g_source_unref(timeout);
}
#else
const char *chost_library(void) { return NULL; }
void chost_use_own_context(void) {}
chost *chost_create(void) { return NULL; }
void chost_run(chost *host) { (void)host; }
void chost_quit(chost *host) { (void)host; }
void chost_destroy(chost *host) { (void)host; }
void chost_add_guest(chost *host, int descriptor, int (*timeout)(void *), void (*service)(void *), void *context) {
  (void)host, (void)descriptor, (void)timeout, (void)service, (void)context;
}
void chost_remove_guest(chost *host) { (void)host; }
void chost_add_timeout(chost *host, unsigned milliseconds, int (*fire)(void *), void *context) {
  (void)host, (void)milliseconds, (void)fire, (void)context;
}
#endif
