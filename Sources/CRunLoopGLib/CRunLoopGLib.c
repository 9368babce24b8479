// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopGLib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

// GPollFD.
typedef struct {
  int number;
  unsigned short events;
  unsigned short found;
} poll_entry;

// GPollFunc: waits for descriptors for a number of milliseconds, or without limit if negative.
typedef int (*poll_function)(poll_entry *entries, unsigned count, int milliseconds);

// GSourceFuncs.
typedef struct {
  int (*prepare)(crg_source *, int *milliseconds);
  int (*check)(crg_source *);
  int (*dispatch)(crg_source *, void *callback, void *data);
  void (*finalize)(crg_source *);
  void *closure_callback;
  void *closure_marshal;
} source_functions;

enum { readable = 1 /* G_IO_IN */, goes_on = 1 /* G_SOURCE_CONTINUE */ };

struct crg_source {
  // GSource, whose twelve words have not changed since GLib 2.0, with spare room.
  void *words[16];
  poll_entry descriptor;
  poll_entry nested_descriptor;
  crg_calls calls;
  void *owner;
  void *context;
  int priority;
  // Set if the next dispatch does not depend on a descriptor.
  int is_due;
  int is_nested;
  // Set by our poll function since the source was prepared.
  int has_waited;
};

// The functions, by their names in the library.
#define FUNCTIONS(X) \
  X(void *, g_main_context_default, (void)) \
  X(void *, g_main_context_get_thread_default, (void)) \
  X(void *, g_main_context_ref, (void *)) \
  X(void, g_main_context_unref, (void *)) \
  X(int, g_main_context_acquire, (void *)) \
  X(void, g_main_context_release, (void *)) \
  X(poll_function, g_main_context_get_poll_func, (void *)) \
  X(void, g_main_context_set_poll_func, (void *, poll_function)) \
  X(crg_source *, g_source_new, (source_functions *, unsigned)) \
  X(void, g_source_set_priority, (crg_source *, int)) \
  X(void, g_source_set_can_recurse, (crg_source *, int)) \
  X(void, g_source_set_name, (crg_source *, const char *)) \
  X(void, g_source_add_poll, (crg_source *, poll_entry *)) \
  X(unsigned, g_source_attach, (crg_source *, void *)) \
  X(void, g_source_destroy, (crg_source *)) \
  X(void, g_source_unref, (crg_source *)) \
  X(int, g_poll, (poll_entry *, unsigned, int))

#define MEMBER(result, name, parameters) result(*name) parameters;
typedef struct {
  FUNCTIONS(MEMBER)
} functions;

// Written once with the lock held, before `is_open`, and read only after it.
static functions glib;
static atomic_int is_open;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int find_functions(functions *found, char *detail, size_t capacity) {
  static const char file[] = "libglib-2.0.so.0";
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char *reason = dlerror();
    snprintf(
      detail, capacity, "%s cannot be opened (%s); Debian's package is libglib2.0-0, or libglib2.0-0t64 from Debian 13 on",
      file, reason ? reason : "no reason");
    return -1;
  }
#define FIND(result, name, parameters) \
  *(void **)&found->name = dlsym(library, #name); \
  if (found->name == NULL) { \
    snprintf(detail, capacity, "%s has no %s", file, #name); \
    dlclose(library); \
    return -1; \
  }
  FUNCTIONS(FIND)
  return 0;
}

int crg_open(char *detail, size_t capacity) {
  if (atomic_load_explicit(&is_open, memory_order_acquire)) return 0;
  pthread_mutex_lock(&lock);
  functions found;
  int answer = 0;
  // Relaxed, because it is also stored with the mutex held.
  if (!atomic_load_explicit(&is_open, memory_order_relaxed)) {
    answer = find_functions(&found, detail, capacity);
    if (answer == 0) {
      glib = found;
      atomic_store_explicit(&is_open, 1, memory_order_release);
    }
  }
  pthread_mutex_unlock(&lock);
  return answer;
}

void *crg_thread_context(void) { return glib.g_main_context_get_thread_default(); }

void *crg_main_context(void) { return glib.g_main_context_default(); }

int crg_may_run(void *context) {
  if (!glib.g_main_context_acquire(context)) return 0;
  glib.g_main_context_release(context);
  return 1;
}

// The thread's source, and the poll functions used before: originally, and when a source was last nested.
static _Thread_local crg_source *source_here;
static _Thread_local poll_function poll_at_first;
static _Thread_local poll_function poll_before;
// The function that was replaced last on any thread, for a thread that runs the context of another.
static _Atomic(poll_function) poll_elsewhere;
// Whether the thread is waiting in `wait_before`, in case a function that replaced ours calls it.
static _Thread_local int is_waiting;

static int wait_before(poll_entry *entries, unsigned count, int milliseconds) {
  is_waiting = 1;
  poll_function before = poll_before != NULL ? poll_before : atomic_load(&poll_elsewhere);
  int result = (before != NULL ? before : glib.g_poll)(entries, count, milliseconds);
  is_waiting = 0;
  return result;
}

// Without our poll function it is unknown when a wait ends, and the context counts as waiting.
static void note_end_of_wait(crg_source *source) {
  source->has_waited = 1;
  source->calls.did_wait(source->owner);
}

// Waits for a context's descriptors, and notifies the owner, because GLib calls a source before a wait but not always
// after it.
static int poll_for_source(poll_entry *entries, unsigned count, int milliseconds) {
  if (is_waiting) return (poll_at_first != NULL ? poll_at_first : glib.g_poll)(entries, count, milliseconds);
  crg_source *source = source_here;
  if (source == NULL) return wait_before(entries, count, milliseconds);
  if (!source->is_nested) {
    int result = wait_before(entries, count, milliseconds);
    // A function of the program that waits may have detached the source.
    if (source_here == source) note_end_of_wait(source);
    return result;
  }
  if (!source->calls.begin_wait(source->owner)) {
    source->is_due = 1;
    return wait_before(entries, count, 0);
  }
  int result = wait_before(entries, count, milliseconds);
  if (source_here == source) source->calls.end_wait(source->owner);
  return result;
}

// Installs `poll_for_source`, even if other code has replaced it.
static void announce_waits(void *context) {
  poll_function now = glib.g_main_context_get_poll_func(context);
  if (now == poll_for_source) return;
  if (poll_at_first == NULL) poll_at_first = now;
  poll_before = now;
  atomic_store(&poll_elsewhere, now);
  glib.g_main_context_set_poll_func(context, poll_for_source);
}

static int prepare(crg_source *source, int *milliseconds) {
  *milliseconds = -1;
  if (!source->calls.is_on_thread(source->owner)) return 0;
  source->is_nested = source->calls.is_nested(source->owner);
  source->descriptor.events = source->is_nested ? 0 : readable;
  source->nested_descriptor.events = source->is_nested ? readable : 0;
  source->has_waited = 0;
  if (source->is_nested) {
    announce_waits(source->context);
  } else {
    source->calls.will_wait(source->owner);
  }
  if (!source->is_due) return 0;
  *milliseconds = 0;
  return 1;
}

static int check(crg_source *source) {
  if (!source->calls.is_on_thread(source->owner)) return 0;
  poll_entry *entry = source->is_nested ? &source->nested_descriptor : &source->descriptor;
  if (source->is_due || entry->found != 0) return 1;
  source->calls.rest(source->owner);
  return 0;
}

static int dispatch(crg_source *source, void *callback, void *data) {
  (void)callback;
  (void)data;
  source->is_due = 0;
  int priority = source->calls.serve(source->owner);
  // The loop may be asleep again, but GLib continues with other items.
  if (source_here == source && source->has_waited && !source->is_nested) source->calls.did_wait(source->owner);
  if (priority != source->priority && source_here == source) {
    source->priority = priority;
    glib.g_source_set_priority(source, priority);
  }
  return goes_on;
}

static void finalize(crg_source *source) { source->calls.release(source->owner); }

crg_source *crg_attach(
  void *context, int priority, int descriptor, int nested_descriptor, const crg_calls *calls, void *owner) {
  static source_functions own = {.prepare = prepare, .check = check, .dispatch = dispatch, .finalize = finalize};
  crg_source *source = glib.g_source_new(&own, sizeof *source);
  source->calls = *calls;
  source->owner = owner;
  source->context = glib.g_main_context_ref(context);
  source->priority = priority;
  source->descriptor = (poll_entry){.number = descriptor, .events = readable};
  source->nested_descriptor = (poll_entry){.number = nested_descriptor};
  source->is_due = 0;
  source->is_nested = 0;
  source->has_waited = 0;
  glib.g_source_set_name(source, "run loop");
  glib.g_source_set_priority(source, priority);
  glib.g_source_set_can_recurse(source, 1);
  glib.g_source_add_poll(source, &source->descriptor);
  glib.g_source_add_poll(source, &source->nested_descriptor);
  source_here = source;
  announce_waits(context);
  glib.g_source_attach(source, context);
  return source;
}

void crg_detach(crg_source *source) {
  if (source_here == source) source_here = NULL;
  void *context = source->context;
  if (glib.g_main_context_get_poll_func(context) == poll_for_source) {
    glib.g_main_context_set_poll_func(context, poll_before);
  }
  glib.g_source_destroy(source);
  glib.g_source_unref(source);
  glib.g_main_context_unref(context);
}
