// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopHTTP2.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

// nghttp2_frame_hd, the header at the beginning of each nghttp2_frame.
typedef struct {
  size_t length;
  int32_t stream_id;
  uint8_t type, flags, reserved;
} frame_head;

// nghttp2_nv; without flags, the library copies both.
typedef struct {
  uint8_t *name, *value;
  size_t name_count, count;
  uint8_t flags;
} field;

// nghttp2_settings_entry.
typedef struct {
  int32_t id;
  uint32_t value;
} setting;

// nghttp2_data_source and nghttp2_data_provider.
typedef union {
  int number;
  void *pointer;
} source;
typedef ssize_t (*read_function)(
  void *session, int32_t stream, uint8_t *bytes, size_t room, uint32_t *flags, source *source, void *owner);
typedef struct {
  source source;
  read_function read;
} provider;

enum {
  type_data = 0,
  type_headers = 1,
  flag_end_stream = 1,
  data_eof = 1 /* NGHTTP2_DATA_FLAG_EOF */,
  deferred = -508 /* NGHTTP2_ERR_DEFERRED */,
  no_memory = -901 /* NGHTTP2_ERR_NOMEM */,
  max_concurrent_streams = 3,
  refused_stream = 7,
};

typedef int (*frame_function)(void *session, const frame_head *frame, void *owner);

#define FUNCTIONS(X) \
  X(int, nghttp2_session_callbacks_new, (void **)) \
  X(void, nghttp2_session_callbacks_del, (void *)) \
  X(void, nghttp2_session_callbacks_set_on_begin_headers_callback, (void *, frame_function)) \
  X(void, nghttp2_session_callbacks_set_on_header_callback, \
    (void *, int (*)(void *, const frame_head *, const uint8_t *, size_t, const uint8_t *, size_t, uint8_t, void *))) \
  X(void, nghttp2_session_callbacks_set_on_data_chunk_recv_callback, \
    (void *, int (*)(void *, uint8_t, int32_t, const uint8_t *, size_t, void *))) \
  X(void, nghttp2_session_callbacks_set_on_frame_recv_callback, (void *, frame_function)) \
  X(void, nghttp2_session_callbacks_set_on_stream_close_callback, (void *, int (*)(void *, int32_t, uint32_t, void *))) \
  X(int, nghttp2_session_server_new, (void **, const void *, void *)) \
  X(void, nghttp2_session_del, (void *)) \
  X(ssize_t, nghttp2_session_mem_recv, (void *, const uint8_t *, size_t)) \
  X(ssize_t, nghttp2_session_mem_send, (void *, const uint8_t **)) \
  X(int, nghttp2_session_want_read, (void *)) \
  X(int, nghttp2_session_want_write, (void *)) \
  X(int32_t, nghttp2_session_get_last_proc_stream_id, (void *)) \
  X(int, nghttp2_session_resume_data, (void *, int32_t)) \
  X(int, nghttp2_submit_settings, (void *, uint8_t, const setting *, size_t)) \
  X(int, nghttp2_submit_response, (void *, int32_t, const field *, size_t, const provider *)) \
  X(int, nghttp2_submit_rst_stream, (void *, uint8_t, int32_t, uint32_t)) \
  X(int, nghttp2_submit_goaway, (void *, uint8_t, int32_t, uint32_t, const uint8_t *, size_t))

#define MEMBER(result, name, parameters) result(*name) parameters;
typedef struct {
  FUNCTIONS(MEMBER)
} functions;

// Written once with the lock held, before `is_open`; read after it.
static functions library;
static atomic_int is_open;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct crh_session {
  void *session;
  crh_calls calls;
  void *owner;
};

static int find_functions(functions *found, char *detail, size_t capacity) {
  static const char file[] = "libnghttp2.so.14";
  void *opened = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (opened == NULL) {
    const char *reason = dlerror();
    snprintf(
      detail, capacity, "%s cannot be opened (%s); Debian's package is libnghttp2-14", file, reason ? reason : "no reason");
    return -1;
  }
#define FIND(result, name, parameters) \
  *(void **)&found->name = dlsym(opened, #name); \
  if (found->name == NULL) { \
    snprintf(detail, capacity, "%s has no %s", file, #name); \
    dlclose(opened); \
    return -1; \
  }
  FUNCTIONS(FIND)
  return 0;
}

int crh_open(char *detail, size_t capacity) {
  if (atomic_load_explicit(&is_open, memory_order_acquire)) return 0;
  pthread_mutex_lock(&lock);
  int result = 0;
  // Relaxed, because it is also stored with the mutex held.
  if (!atomic_load_explicit(&is_open, memory_order_relaxed)) {
    functions found;
    result = find_functions(&found, detail, capacity);
    if (result == 0) {
      library = found;
      atomic_store_explicit(&is_open, 1, memory_order_release);
    }
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static int begin_headers(void *session, const frame_head *frame, void *owner) {
  (void)session;
  crh_session *self = owner;
  if (frame->type == type_headers) self->calls.begin(self->owner, frame->stream_id);
  return 0;
}

static int take_header(
  void *session, const frame_head *frame, const uint8_t *name, size_t name_count, const uint8_t *value, size_t count,
  uint8_t flags, void *owner) {
  (void)session, (void)flags;
  crh_session *self = owner;
  if (frame->type == type_headers) self->calls.header(self->owner, frame->stream_id, name, name_count, value, count);
  return 0;
}

static int take_data(void *session, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t count, void *owner) {
  (void)session, (void)flags;
  crh_session *self = owner;
  self->calls.data(self->owner, stream, bytes, count);
  return 0;
}

static int take_frame(void *session, const frame_head *frame, void *owner) {
  (void)session;
  crh_session *self = owner;
  if ((frame->type == type_headers || frame->type == type_data) && frame->flags & flag_end_stream) {
    self->calls.complete(self->owner, frame->stream_id);
  }
  return 0;
}

static int close_stream(void *session, int32_t stream, uint32_t code, void *owner) {
  (void)session, (void)code;
  crh_session *self = owner;
  self->calls.close(self->owner, stream);
  return 0;
}

static ssize_t read_body(
  void *session, int32_t stream, uint8_t *bytes, size_t room, uint32_t *flags, source *from, void *owner) {
  (void)session, (void)from;
  crh_session *self = owner;
  int is_end = 0;
  size_t count = self->calls.body(self->owner, stream, bytes, room, &is_end);
  if (is_end) *flags |= data_eof;
  return count == 0 && !is_end ? deferred : (ssize_t)count;
}

crh_session *crh_make(const crh_calls *calls, void *owner, uint32_t streams) {
  crh_session *self = calloc(1, sizeof *self);
  void *callbacks = NULL;
  if (self == NULL || library.nghttp2_session_callbacks_new(&callbacks) != 0) {
    free(self);
    return NULL;
  }
  self->calls = *calls;
  self->owner = owner;
  library.nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
  library.nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
  library.nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_data);
  library.nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, take_frame);
  library.nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, close_stream);
  int result = library.nghttp2_session_server_new(&self->session, callbacks, self);
  library.nghttp2_session_callbacks_del(callbacks);
  setting limit = {max_concurrent_streams, streams};
  if (result == 0) result = library.nghttp2_submit_settings(self->session, 0, &limit, 1);
  if (result != 0) {
    crh_free(self);
    return NULL;
  }
  return self;
}

void crh_free(crh_session *self) {
  if (self->session != NULL) library.nghttp2_session_del(self->session);
  free(self);
}

int crh_receive(crh_session *self, const uint8_t *bytes, size_t count) {
  ssize_t result = library.nghttp2_session_mem_recv(self->session, bytes, count);
  return result < 0 ? (int)result : 0;
}

ptrdiff_t crh_send(crh_session *self, const uint8_t **bytes) {
  return library.nghttp2_session_mem_send(self->session, bytes);
}

int crh_is_over(crh_session *self) {
  return !library.nghttp2_session_want_read(self->session) && !library.nghttp2_session_want_write(self->session);
}

int crh_respond(
  crh_session *self, int32_t stream, const uint8_t *text, const size_t *lengths, size_t count, int has_body) {
  field *fields = calloc(count ? count : 1, sizeof *fields);
  if (fields == NULL) return no_memory;
  for (size_t index = 0; index < count; index++) {
    fields[index].name = (uint8_t *)text;
    fields[index].name_count = lengths[2 * index];
    text += lengths[2 * index];
    fields[index].value = (uint8_t *)text;
    fields[index].count = lengths[2 * index + 1];
    text += lengths[2 * index + 1];
  }
  provider body = {.read = read_body};
  int result = library.nghttp2_submit_response(self->session, stream, fields, count, has_body ? &body : NULL);
  free(fields);
  return result;
}

int crh_resume(crh_session *self, int32_t stream) { return library.nghttp2_session_resume_data(self->session, stream); }

int crh_reject(crh_session *self, int32_t stream) {
  return library.nghttp2_submit_rst_stream(self->session, 0, stream, refused_stream);
}

int crh_go_away(crh_session *self, int32_t last) {
  if (last < 0) last = library.nghttp2_session_get_last_proc_stream_id(self->session);
  return library.nghttp2_submit_goaway(self->session, 0, last, 0, NULL, 0);
}
