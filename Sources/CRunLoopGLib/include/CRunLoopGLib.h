// SPDX-License-Identifier: Apache-2.0

// A source in a GLib context that serves another loop. GLib is opened at run time and declared here, so neither its
// headers nor the library are needed to build.

#ifndef C_RUN_LOOP_GLIB_H
#define C_RUN_LOOP_GLIB_H

#include <stddef.h>

// Opens GLib unless it is open. Returns 0, or −1 with the reason in `detail`. Can be called from any thread.
int crg_open(char *detail, size_t capacity);

// The thread's default context, or null if it has none. The functions below require that GLib is open.
void *crg_thread_context(void);
// The default context of every thread without its own, which is the main thread's.
void *crg_main_context(void);
// Whether the thread may run a context, because no other thread is running it.
int crg_may_run(void *context);

// The calls of a source to its owner, made on the thread that runs the context.
typedef struct {
  // Whether this is the owner's thread; if not, nothing else is called.
  int (*is_on_thread)(void *owner);
  // Called before a wait; returns whether to poll the second descriptor and announce the wait.
  int (*is_nested)(void *owner);
  // Called before a wait that is not nested, and when the context runs items after it, as far as that is known.
  void (*will_wait)(void *owner);
  void (*did_wait)(void *owner);
  // Begins a nested wait; returns false if there is work to do instead.
  int (*begin_wait)(void *owner);
  void (*end_wait)(void *owner);
  // Called after a wait if there is nothing to do.
  void (*rest)(void *owner);
  // Serves the loop; returns the new priority of the source.
  int (*serve)(void *owner);
  // Called when the source has been freed, on any thread.
  void (*release)(void *owner);
} crg_calls;

typedef struct crg_source crg_source;

// Adds a source to a context. It is dispatched when the first descriptor is readable, or the second one while the
// owner is nested, and may be dispatched recursively. A thread has at most one such source.
crg_source *crg_attach(
  void *context, int priority, int descriptor, int nested_descriptor, const crg_calls *calls, void *owner);
// Removes a source from its context. Requires the thread that added it.
void crg_detach(crg_source *source);

#endif
