// SPDX-License-Identifier: Apache-2.0

// The server side of an HTTP/2 connection, using libnghttp2. The library is loaded at run time with declarations of
// our own, so neither its headers nor the library are needed to build.

#ifndef C_RUN_LOOP_HTTP2_H
#define C_RUN_LOOP_HTTP2_H

#include <stddef.h>
#include <stdint.h>

// Loads libnghttp2 if necessary. Returns zero, or −1 with the reason in `detail`. Can be called from any thread.
int crh_open(char *detail, size_t capacity);

// The callbacks of a connection, which are called inside crh_receive and crh_send.
typedef struct {
  // The headers of a request begin.
  void (*begin)(void *owner, int32_t stream);
  void (*header)(void *owner, int32_t stream, const uint8_t *name, size_t name_count, const uint8_t *value, size_t count);
  void (*data)(void *owner, int32_t stream, const uint8_t *bytes, size_t count);
  // The request is complete.
  void (*complete)(void *owner, int32_t stream);
  // The stream is closed, for whatever reason.
  void (*close)(void *owner, int32_t stream);
  // Writes bytes of a response's body and returns their count. Sets `is_end` with the last ones. With no bytes and no
  // end, the body waits for crh_resume.
  size_t (*body)(void *owner, int32_t stream, uint8_t *bytes, size_t room, int *is_end);
} crh_calls;

typedef struct crh_session crh_session;

// Creates a connection that accepts `streams` concurrent requests, or null without memory. Needs a loaded library.
crh_session *crh_make(const crh_calls *calls, void *owner, uint32_t streams);
void crh_free(crh_session *session);

// Processes bytes from the client. Returns zero if they are valid HTTP/2, or libnghttp2's negative error code, in
// which case the pending output contains the reason.
int crh_receive(crh_session *session, const uint8_t *bytes, size_t count);
// Returns the next bytes for the client, valid until the next call: zero if there are none, negative on errors.
ptrdiff_t crh_send(crh_session *session, const uint8_t **bytes);
// Whether neither side has anything more to send.
int crh_is_over(crh_session *session);

// Begins a response with `count` headers. `lengths` contains the lengths of the names and values in turn, and `text`
// their bytes. This and the following functions return zero, or libnghttp2's negative error code.
int crh_respond(
  crh_session *session, int32_t stream, const uint8_t *text, const size_t *lengths, size_t count, int has_body);
// Continues a body that was waiting, because there is more of it.
int crh_resume(crh_session *session, int32_t stream);
// Rejects a request as unprocessed (REFUSED_STREAM).
int crh_reject(crh_session *session, int32_t stream);
// Announces the end of the connection: no request above `last`, or above the last one received if it is negative, is
// processed.
int crh_go_away(crh_session *session, int32_t last);

#endif
