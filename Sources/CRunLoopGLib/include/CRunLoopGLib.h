// SPDX-License-Identifier: Apache-2.0

// A source in a context of GLib's that serves another loop. GLib is opened at run time, with declarations of our own:
// neither its headers nor the library are needed to build.

#ifndef C_RUN_LOOP_GLIB_H
#define C_RUN_LOOP_GLIB_H

#include <stddef.h>

// Opens GLib unless it is open; returns zero, or −1 with the reason in `detail`. Can be called from any thread.
int crg_open(char *detail, size_t capacity);

// The thread's default context, or null for a thread that has none. The functions below need an open GLib.
void *crg_thread_context(void);
// The context that every thread has that has no other: the main thread's.
void *crg_main_context(void);
// Whether the thread may run a context: no other thread runs it now.
int crg_may_run(void *context);

// What a source asks its owner, on the thread that runs the context.
typedef struct {
  // Whether the thread is the owner's; if not, nothing else is asked.
  int (*is_on_thread)(void *owner);
  // Before a wait: whether the source is to look at its second descriptor, and to announce the wait.
  int (*is_nested)(void *owner);
  // Begins a nested wait; false if there is something to do instead.
  int (*begin_wait)(void *owner);
  void (*end_wait)(void *owner);
  // After a wait: nothing was to be done.
  void (*rest)(void *owner);
  // Serves the loop; returns the priority that the source has from now on.
  int (*serve)(void *owner);
  // The source is gone. May be called on any thread.
  void (*release)(void *owner);
} crg_calls;

typedef struct crg_source crg_source;

// Adds a source to a context. It is dispatched when one of two descriptors is readable: the first, or the second while
// the owner is nested. It may be dispatched within its own dispatch. A thread has one such source at most.
crg_source *crg_attach(
  void *context, int priority, int descriptor, int nested_descriptor, const crg_calls *calls, void *owner);
// Removes a source from its context, on the thread that it was added on.
void crg_detach(crg_source *source);

#endif
