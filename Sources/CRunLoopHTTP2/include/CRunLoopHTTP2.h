// SPDX-License-Identifier: Apache-2.0

// The server's end of an HTTP/2 connection, by libnghttp2, which is opened at run time with declarations of our own:
// neither its headers nor the library are needed to build.

#ifndef C_RUN_LOOP_HTTP2_H
#define C_RUN_LOOP_HTTP2_H

#include <stddef.h>
#include <stdint.h>

// Opens libnghttp2 unless it is open; returns zero, or −1 with the reason in `detail`. Can be called from any thread.
int crh_open(char *detail, size_t capacity);

// The events of a connection, called within crh_receive and crh_send.
typedef struct {
  // The headers of a request begin.
  void (*begin)(void *owner, int32_t stream);
  void (*header)(void *owner, int32_t stream, const uint8_t *name, size_t name_count, const uint8_t *value, size_t count);
  void (*data)(void *owner, int32_t stream, const uint8_t *bytes, size_t count);
  // The request is complete.
  void (*complete)(void *owner, int32_t stream);
  // The stream is over, however it has ended.
  void (*close)(void *owner, int32_t stream);
  // Writes bytes of a response's body and returns their count; sets `is_end` with the last. With no bytes and no end,
  // the body waits for crh_resume.
  size_t (*body)(void *owner, int32_t stream, uint8_t *bytes, size_t room, int *is_end);
} crh_calls;

typedef struct crh_session crh_session;

// A connection that takes `streams` requests at a time; null without memory. Needs an open library.
crh_session *crh_make(const crh_calls *calls, void *owner, uint32_t streams);
void crh_free(crh_session *session);

// Takes bytes of the client; zero if they are HTTP/2, or else the library's negative number. What there is to send
// then says why.
int crh_receive(crh_session *session, const uint8_t *bytes, size_t count);
// The next bytes for the client, which are valid until the next call; zero: none, negative: the library's number.
ptrdiff_t crh_send(crh_session *session, const uint8_t **bytes);
// Whether neither end has anything more to say.
int crh_is_over(crh_session *session);

// Begins a response: `count` headers, of which `lengths` has the lengths of name and value in turn, and `text` their
// bytes. These return zero, or the library's negative number.
int crh_respond(
  crh_session *session, int32_t stream, const uint8_t *text, const size_t *lengths, size_t count, int has_body);
// There is more of the body that has waited.
int crh_resume(crh_session *session, int32_t stream);
// Rejects a request unprocessed (REFUSED_STREAM).
int crh_reject(crh_session *session, int32_t stream);
// Announces the end of the connection: no request above `last` is processed; negative: above the last one received.
int crh_go_away(crh_session *session, int32_t last);

#endif
