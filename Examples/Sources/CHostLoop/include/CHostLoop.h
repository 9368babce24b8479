// SPDX-License-Identifier: Apache-2.0

// The main loop of GLib, as much of it as the example needs. Built without GLib, there is none.
#pragma once

typedef struct chost chost;

// The library and its version, or NULL if this was built without it.
const char *chost_library(void);
// Gives the calling thread a context of its own, instead of the one that belongs to the main thread.
void chost_use_own_context(void);
// The main loop of the calling thread, which runs until it is told to quit; NULL without the library.
chost *chost_create(void);
void chost_run(chost *host);
void chost_quit(chost *host);
void chost_destroy(chost *host);
// Waits for a descriptor, and for as many milliseconds as `timeout` says before each wait (-1: without end), and then
// calls `service`.
void chost_add_guest(chost *host, int descriptor, int (*timeout)(void *context), void (*service)(void *context),
                     void *context);
void chost_remove_guest(chost *host);
// Calls `fire` every so many milliseconds until it answers 0.
void chost_add_timeout(chost *host, unsigned milliseconds, int (*fire)(void *context), void *context);
