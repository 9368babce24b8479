// SPDX-License-Identifier: Apache-2.0

// OpenSSL 3, opened when it is first needed. These are declarations of our own: neither the headers nor the libraries
// are
// needed to build. `Tests/OpenSSLHeader/check.c` compares them with the headers where they are.
#pragma once

#include <stddef.h>
#include <stdint.h>

// What connections have in common (SSL_CTX), one connection (SSL), and what is kept to resume one (SSL_SESSION).
typedef struct cos_context cos_context;
typedef struct cos_session cos_session;
typedef struct cos_ticket cos_ticket;

// What opening the library has come to.
enum {
  cos_opened = 0,
  cos_missing = 1,
  cos_symbol_missing = 2,
  cos_too_old = 3,
};

// The oldest version that will do, as OpenSSL numbers it: 3.0.0.
enum { cos_oldest = 0x30000000 };

// Opens libcrypto.so.3 and libssl.so.3 once for the process. One of the answers above; a failure is not kept. `detail`
// gets a
// text for a person, of less than `capacity` bytes.
int cos_open(char *detail, size_t capacity);
// The same with other files and another oldest version, for tests; what it finds is closed again.
int cos_try_open(const char *crypto, const char *ssl, unsigned long oldest, char *detail, size_t capacity);
// Whether the library is open.
int cos_is_open(void);

// The numbers of versions of the protocol.
enum { cos_tls_1_2 = 0x0303, cos_tls_1_3 = 0x0304 };

// MARK: - Contexts

// A context for clients or a server; null without memory.
cos_context *cos_context_make(int is_server, int oldest_version, int newest_version);
// Frees it; connections that it was made into have to be gone.
void cos_context_free(cos_context *context);

// Where adding certificates and keys has come to.
enum {
  cos_added = 0,
  cos_bad_certificate = -1,
  cos_bad_key = -2,
  cos_other_key = -3,
  cos_rejected = -4,
};

// Trusts what the system trusts.
int cos_context_trust_system(cos_context *context);
// Trusts the certificates in a text in PEM; the number of them, or `cos_bad_certificate`. A server names them to its
// clients.
int cos_context_trust(cos_context *context, const void *text, size_t count);
// Has a certificate with its chain, and its key, from texts in PEM. One of the answers above. Without a password, a key
// that
// needs one is bad.
int cos_context_identify(
  cos_context *context, const void *chain, size_t chain_count, const void *key, size_t key_count, const char *password);
// The reason of the last failure on this thread, for a person; a static text.
const char *cos_last_reason(void);

enum { cos_ask_nobody = 0, cos_ask = 1, cos_require = 2 };

// Whether the peer's certificate is asked for; whether its chain is checked; and the digests of 32 bytes each of which
// one
// has to be that of a public key: of a chain that was checked any, else the peer's own.
int cos_context_verify(cos_context *context, int asks, int checks_chain, const uint8_t *pins, size_t pin_count);
// The application protocols, each after a byte with its length, the preferred first.
int cos_context_offer(cos_context *context, const uint8_t *protocols, size_t count);
// Keeps what resumes connections, for `cos_session_take_ticket`; else none is resumed.
void cos_context_resume(cos_context *context, int resumes);
// Uses another context of a server, which it frees from now on, for a server's name such as "a.example" or "*.example".
int cos_context_add_name(cos_context *context, const char *pattern, cos_context *other);
// Rejects clients that ask for another name, or none.
void cos_context_reject_other_names(cos_context *context);

// MARK: - Connections

// A connection, which neither reads nor writes a descriptor; null without memory.
cos_session *cos_session_make(cos_context *context);
void cos_session_free(cos_session *session);

// Asks the server for a name, and requires it in the certificate; either may be null. An address is required as such.
int cos_session_name(cos_session *session, const char *asked, const char *required, int is_address);

// What a step of a connection has come to.
enum {
  cos_done = 0,
  // Bytes from the peer are needed.
  cos_wants_input = 1,
  // The peer has said that it writes no more.
  cos_peer_closed = 2,
  cos_failed = 3,
};

// Lends bytes from the peer until `cos_session_keep_input`, which copies what has not been used.
void cos_session_lend_input(cos_session *session, const void *bytes, size_t count);
// 0 if there is no memory for it.
int cos_session_keep_input(cos_session *session);
// How many bytes from the peer have not been used.
size_t cos_session_input_count(const cos_session *session);

int cos_session_shake_hands(cos_session *session);
int cos_session_read(cos_session *session, void *bytes, size_t count, size_t *done);
// Encrypts bytes, at least one of them.
int cos_session_write(cos_session *session, const void *bytes, size_t count, size_t *done);
// Says that nothing more is written.
int cos_session_end_writing(cos_session *session);

// The bytes for the peer that are there, and how many of them have been sent.
const void *cos_session_output(const cos_session *session, size_t *count);
size_t cos_session_output_count(const cos_session *session);
void cos_session_sent(cos_session *session, size_t count);
// Puts bytes for the peer behind those that are there, as they are; 0 if there is no memory.
int cos_session_put_output(cos_session *session, const void *bytes, size_t count);

// After `cos_failed`: OpenSSL's number of the error, 0 for none, its text, and what the check of the peer's certificate
// has
// come to (X509_V_OK and others).
unsigned long cos_session_error(const cos_session *session);
const char *cos_session_error_text(const cos_session *session);
long cos_session_verification(const cos_session *session);
const char *cos_verification_text(long verification);

// The parts of an error's number.
int cos_error_library(unsigned long error);
int cos_error_reason(unsigned long error);

enum {
  cos_library_ssl = 20,
  // What an alert of the peer is counted from.
  cos_reason_alert = 1000,
  cos_reason_verification = 134,
  cos_reason_http = 156,
  cos_reason_https_proxy = 155,
  cos_reason_no_shared_cipher = 193,
  cos_reason_no_client_certificate = 199,
  cos_reason_no_application_protocol = 235,
  cos_reason_unsupported_protocol = 258,
  cos_reason_wrong_version = 267,
  cos_reason_version_too_low = 396,
  cos_reason_no_renegotiation = 339,
  cos_reason_callback = 234,
};

enum {
  cos_verified = 0,
  cos_verify_no_issuer = 2,
  cos_verify_bad_signature = 7,
  cos_verify_not_yet_valid = 9,
  cos_verify_expired = 10,
  cos_verify_self_signed = 18,
  cos_verify_self_signed_in_chain = 19,
  cos_verify_no_local_issuer = 20,
  cos_verify_no_leaf_issuer = 21,
  cos_verify_wrong_purpose = 26,
  cos_verify_pins = 50,
  cos_verify_wrong_name = 62,
  cos_verify_wrong_address = 64,
  cos_verify_weak_key = 66,
  cos_verify_weak_issuer_key = 67,
  cos_verify_weak_digest = 68,
};

// What a connection is, after the handshake. Texts live as long as the connection.
const char *cos_session_version(const cos_session *session);
const char *cos_session_cipher(const cos_session *session);
const uint8_t *cos_session_protocol(const cos_session *session, size_t *count);
// The name that a client has asked for; null for none.
const char *cos_session_asked_name(const cos_session *session);
int cos_session_is_resumed(const cos_session *session);
// Writes the peer's certificate in DER if there is room, and returns its length; 0 for none.
size_t cos_session_peer_certificate(const cos_session *session, uint8_t *bytes, size_t capacity);

// Resumes another connection, if the peer agrees.
int cos_session_resume(cos_session *session, cos_ticket *ticket);
// What was received for resuming this connection, the oldest first, the caller's from now on; null when there is no
// more.
cos_ticket *cos_session_take_ticket(cos_session *session);
void cos_ticket_free(cos_ticket *ticket);

// MARK: - Bytes

// Overwrites a secret so that no optimizer leaves it.
void cos_cleanse(void *bytes, size_t count);
