// SPDX-License-Identifier: Apache-2.0

// The parts of GLib's main loop that the example needs. Without GLib, the functions do nothing.
#pragma once

typedef struct chost chost;

// Returns the library's name and version, or NULL if this was built without it.
const char *chost_library(void);
// Creates a context for the calling thread, to be used instead of the main thread's.
void chost_use_own_context(void);
// Creates the main loop of the calling thread, which runs until `chost_quit` is called. NULL without the library.
chost *chost_create(void);
void chost_run(chost *host);
void chost_quit(chost *host);
void chost_destroy(chost *host);
// Waits for a descriptor, for at most the milliseconds that `timeout` returns before each wait (-1: no limit), and
// then calls `service`.
void chost_add_guest(chost *host, int descriptor, int (*timeout)(void *context), void (*service)(void *context),
                     void *context);
void chost_remove_guest(chost *host);
// Calls `fire` every `milliseconds` until it returns 0.
void chost_add_timeout(chost *host, unsigned milliseconds, int (*fire)(void *context), void *context);
