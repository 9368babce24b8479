// SPDX-License-Identifier: Apache-2.0

#include "openssl_library.h"

#include <stdlib.h>
#include <string.h>

// Bytes of which a part at the start has been used.
typedef struct {
  uint8_t *bytes;
  size_t start;
  size_t end;
  size_t capacity;
} buffer;

// The maximum capacity that an empty buffer keeps, because most records are small and there may be many idle
// connections.
enum { kept_capacity = 2048 };

struct cos_session {
  SSL *ssl;
  // The input from the peer: bytes that were kept come before those that are lent.
  buffer input;
  const uint8_t *lent;
  size_t lent_count;
  // The output for the peer.
  buffer output;
  unsigned long error;
  // The most recently received tickets, as many as a server usually sends.
  SSL_SESSION *tickets[2];
};

enum { ticket_limit = 2 };

static int append(buffer *buffer, const void *bytes, size_t count) {
  if (count == 0) return 1;
  if (count > buffer->capacity - buffer->end) {
    // Reuse the used space once it is at least as large as the bytes to move.
    if (buffer->start > 0 && buffer->start >= buffer->end - buffer->start) {
      memmove(buffer->bytes, buffer->bytes + buffer->start, buffer->end - buffer->start);
      buffer->end -= buffer->start;
      buffer->start = 0;
    }
    if (count > buffer->capacity - buffer->end) {
      size_t capacity = buffer->capacity == 0 ? 1024 : buffer->capacity;
      while (capacity - buffer->end < count) capacity *= 2;
      uint8_t *moved = realloc(buffer->bytes, capacity);
      if (moved == NULL) return 0;
      buffer->bytes = moved;
      buffer->capacity = capacity;
    }
  }
  memcpy(buffer->bytes + buffer->end, bytes, count);
  buffer->end += count;
  return 1;
}

static void consume(buffer *buffer, size_t count) {
  buffer->start += count;
  if (buffer->start < buffer->end) return;
  buffer->start = buffer->end = 0;
  if (buffer->capacity <= kept_capacity) return;
  free(buffer->bytes);
  buffer->bytes = NULL;
  buffer->capacity = 0;
}

int cos_bio_read_bytes(BIO *bio, char *bytes, size_t count, size_t *done) {
  cos_session *session = cos_table.BIO_get_data(bio);
  cos_table.BIO_clear_flags(bio, cos_bio_read | cos_bio_retry);
  size_t kept = session->input.end - session->input.start;
  if (kept > 0) {
    if (count > kept) count = kept;
    memcpy(bytes, session->input.bytes + session->input.start, count);
    consume(&session->input, count);
  } else if (session->lent_count > 0) {
    if (count > session->lent_count) count = session->lent_count;
    memcpy(bytes, session->lent, count);
    session->lent += count;
    session->lent_count -= count;
  } else {
    cos_table.BIO_set_flags(bio, cos_bio_read | cos_bio_retry);
    *done = 0;
    return 0;
  }
  *done = count;
  return 1;
}

int cos_bio_write_bytes(BIO *bio, const char *bytes, size_t count, size_t *done) {
  cos_session *session = cos_table.BIO_get_data(bio);
  *done = 0;
  if (!append(&session->output, bytes, count)) return 0;
  *done = count;
  return 1;
}

long cos_bio_control(BIO *bio, int what, long number, void *pointer) {
  (void)bio, (void)number, (void)pointer;
  return what == cos_bio_ctrl_flush;
}

// Errors left in this thread's queue would be attributed to the next call. Checking first avoids the slow clearing.
static void clear_errors(void) {
  if (cos_table.ERR_peek_last_error() != 0) cos_table.ERR_clear_error();
}

cos_session *cos_session_make(cos_context *context) {
  cos_session *session = calloc(1, sizeof *session);
  if (session == NULL) return NULL;
  clear_errors();
  session->ssl = cos_table.SSL_new(context->ssl);
  BIO *bio = session->ssl == NULL ? NULL : cos_table.BIO_new(cos_table.method);
  if (bio == NULL) {
    cos_session_free(session);
    return NULL;
  }
  cos_table.BIO_set_data(bio, session);
  cos_table.BIO_set_init(bio, 1);
  // The connection now owns it.
  cos_table.SSL_set_bio(session->ssl, bio, bio);
  cos_table.SSL_set_ex_data(session->ssl, 0, session);
  if (context->is_server) {
    cos_table.SSL_set_accept_state(session->ssl);
  } else {
    cos_table.SSL_set_connect_state(session->ssl);
  }
  return session;
}

void cos_session_free(cos_session *session) {
  if (session == NULL) return;
  for (int index = 0; index < ticket_limit; index++)
    if (session->tickets[index] != NULL) cos_table.SSL_SESSION_free(session->tickets[index]);
  if (session->ssl != NULL) {
    // Otherwise OpenSSL prevents a connection that was cut from being resumed.
    if (session->error == 0) cos_table.SSL_set_shutdown(session->ssl, cos_shutdown_both);
    cos_table.SSL_free(session->ssl);
  }
  free(session->input.bytes);
  free(session->output.bytes);
  free(session);
}

int cos_session_name(cos_session *session, const char *asked, const char *required, int is_address) {
  if (asked != NULL && !cos_table.SSL_ctrl(session->ssl, cos_ctrl_host_name, 0, (void *)asked)) return 0;
  if (required == NULL) return 1;
  X509_VERIFY_PARAM *check = cos_table.SSL_get0_param(session->ssl);
  cos_table.X509_VERIFY_PARAM_set_hostflags(check, cos_host_no_partial_wildcards | cos_host_never_subject);
  return is_address
    ? cos_table.X509_VERIFY_PARAM_set1_ip_asc(check, required)
    : cos_table.X509_VERIFY_PARAM_set1_host(check, required, strlen(required));
}

void cos_session_lend_input(cos_session *session, const void *bytes, size_t count) {
  session->lent = bytes;
  session->lent_count = count;
}

int cos_session_keep_input(cos_session *session) {
  int is_kept = append(&session->input, session->lent, session->lent_count);
  session->lent = NULL;
  session->lent_count = 0;
  return is_kept;
}

size_t cos_session_input_count(const cos_session *session) {
  return session->input.end - session->input.start + session->lent_count;
}

int cos_error_library(unsigned long error) { return (int)(error >> 23 & 0xff); }
int cos_error_reason(unsigned long error) { return (int)(error & 0x7fffff); }

// Takes the errors of this thread, and keeps the first one of the TLS library or else the first one.
static void take_errors(cos_session *session) {
  unsigned long error;
  session->error = 0;
  while ((error = cos_table.ERR_get_error()) != 0) {
    int is_better = cos_error_library(error) == cos_library_ssl && cos_error_library(session->error) != cos_library_ssl;
    if (session->error == 0 || is_better) session->error = error;
  }
}

// Maps the return value of an OpenSSL call to an outcome.
static int outcome(cos_session *session, int answer) {
  if (answer > 0) return cos_done;
  switch (cos_table.SSL_get_error(session->ssl, answer)) {
  case cos_error_none: return cos_done;
  case cos_error_want_read: return cos_wants_input;
  case cos_error_zero_return: return cos_peer_closed;
  default:
    take_errors(session);
    return cos_failed;
  }
}

int cos_session_shake_hands(cos_session *session) {
  clear_errors();
  return outcome(session, cos_table.SSL_do_handshake(session->ssl));
}

int cos_session_read(cos_session *session, void *bytes, size_t count, size_t *done) {
  clear_errors();
  *done = 0;
  return outcome(session, cos_table.SSL_read_ex(session->ssl, bytes, count, done));
}

int cos_session_write(cos_session *session, const void *bytes, size_t count, size_t *done) {
  clear_errors();
  *done = 0;
  return outcome(session, cos_table.SSL_write_ex(session->ssl, bytes, count, done));
}

int cos_session_end_writing(cos_session *session) {
  clear_errors();
  // 0 means that the peer has not announced the end yet.
  int answer = cos_table.SSL_shutdown(session->ssl);
  return answer >= 0 ? cos_done : outcome(session, answer);
}

const void *cos_session_output(const cos_session *session, size_t *count) {
  *count = session->output.end - session->output.start;
  return *count == 0 ? NULL : session->output.bytes + session->output.start;
}

size_t cos_session_output_count(const cos_session *session) { return session->output.end - session->output.start; }

void cos_session_sent(cos_session *session, size_t count) { consume(&session->output, count); }

int cos_session_put_output(cos_session *session, const void *bytes, size_t count) {
  return append(&session->output, bytes, count);
}

unsigned long cos_session_error(const cos_session *session) { return session->error; }

const char *cos_session_error_text(const cos_session *session) {
  const char *text = session->error == 0 ? NULL : cos_table.ERR_reason_error_string(session->error);
  return text != NULL ? text : "no reason";
}

long cos_session_verification(const cos_session *session) { return cos_table.SSL_get_verify_result(session->ssl); }

const char *cos_session_version(const cos_session *session) { return cos_table.SSL_get_version(session->ssl); }

const char *cos_session_cipher(const cos_session *session) {
  const SSL_CIPHER *cipher = cos_table.SSL_get_current_cipher(session->ssl);
  return cipher == NULL ? "" : cos_table.SSL_CIPHER_get_name(cipher);
}

const uint8_t *cos_session_protocol(const cos_session *session, size_t *count) {
  const unsigned char *name = NULL;
  unsigned int length = 0;
  cos_table.SSL_get0_alpn_selected(session->ssl, &name, &length);
  *count = length;
  return name;
}

const char *cos_session_asked_name(const cos_session *session) { return cos_table.SSL_get_servername(session->ssl, 0); }

int cos_session_is_resumed(const cos_session *session) { return cos_table.SSL_session_reused(session->ssl); }

size_t cos_session_peer_certificate(const cos_session *session, uint8_t *bytes, size_t capacity) {
  X509 *certificate = cos_table.SSL_get1_peer_certificate(session->ssl);
  if (certificate == NULL) return 0;
  int count = cos_table.i2d_X509(certificate, NULL);
  if (count > 0 && (size_t)count <= capacity) {
    unsigned char *end = bytes;
    cos_table.i2d_X509(certificate, &end);
  }
  cos_table.X509_free(certificate);
  return count > 0 ? (size_t)count : 0;
}

int cos_session_got_ticket(SSL *ssl, SSL_SESSION *ticket) {
  cos_session *session = cos_table.SSL_get_ex_data(ssl, 0);
  if (!cos_table.SSL_SESSION_is_resumable(ticket)) return 0;
  if (session->tickets[0] != NULL) cos_table.SSL_SESSION_free(session->tickets[0]);
  session->tickets[0] = session->tickets[1];
  session->tickets[1] = ticket;
  // This now owns the ticket.
  return 1;
}

int cos_session_resume(cos_session *session, cos_ticket *ticket) {
  return cos_table.SSL_set_session(session->ssl, (SSL_SESSION *)ticket);
}

cos_ticket *cos_session_take_ticket(cos_session *session) {
  for (int index = 0; index < ticket_limit; index++) {
    SSL_SESSION *ticket = session->tickets[index];
    session->tickets[index] = NULL;
    if (ticket != NULL) return (cos_ticket *)ticket;
  }
  return NULL;
}

void cos_ticket_free(cos_ticket *ticket) { cos_table.SSL_SESSION_free((SSL_SESSION *)ticket); }
