// SPDX-License-Identifier: Apache-2.0

// OpenSSL 3, loaded on first use. The declarations are our own, so neither the headers nor the libraries are needed to
// build. `Tests/OpenSSLHeader/check.c` compares them with the headers where these are installed.
#pragma once

#include <stddef.h>
#include <stdint.h>

// A context (SSL_CTX), a connection (SSL), and a session to resume (SSL_SESSION).
typedef struct cos_context cos_context;
typedef struct cos_session cos_session;
typedef struct cos_ticket cos_ticket;

// The outcomes of loading the library.
enum {
  cos_opened = 0,
  cos_missing = 1,
  cos_symbol_missing = 2,
  cos_too_old = 3,
};

// The oldest supported version, in OpenSSL's numbering: 3.0.0.
enum { cos_oldest = 0x30000000 };

// Loads libcrypto.so.3 and libssl.so.3 once per process, and returns one of the outcomes above. After a failure, the
// next call tries again. Writes a human-readable text of fewer than `capacity` bytes to `detail`.
int cos_open(char *detail, size_t capacity);
// Loads other files with another oldest version, for tests, and closes them again.
int cos_try_open(const char *crypto, const char *ssl, unsigned long oldest, char *detail, size_t capacity);
// Returns whether the library is loaded.
int cos_is_open(void);

// The numbers of the TLS versions.
enum { cos_tls_1_2 = 0x0303, cos_tls_1_3 = 0x0304 };

// MARK: - Contexts

// Creates a context for clients or a server. Returns null if there is not enough memory.
cos_context *cos_context_make(int is_server, int oldest_version, int newest_version);
// Frees a context. Its connections must have been freed before.
void cos_context_free(cos_context *context);

// The outcomes of adding certificates and keys.
enum {
  cos_added = 0,
  cos_bad_certificate = -1,
  cos_bad_key = -2,
  cos_other_key = -3,
  cos_rejected = -4,
};

// Trusts the system's certificates.
int cos_context_trust_system(cos_context *context);
// Trusts the certificates in a PEM text. Returns their number, or `cos_bad_certificate`. A server also sends their
// names to its clients.
int cos_context_trust(cos_context *context, const void *text, size_t count);
// Sets a certificate with its chain, and its key, from PEM texts. Returns one of the outcomes above. Without a
// password, an encrypted key is `cos_bad_key`.
int cos_context_identify(
  cos_context *context, const void *chain, size_t chain_count, const void *key, size_t key_count, const char *password);
// Returns the human-readable reason of the last failure on this thread, as a static string.
const char *cos_last_reason(void);

enum { cos_ask_nobody = 0, cos_ask = 1, cos_require = 2 };

// Sets whether to request the peer's certificate, whether to verify its chain, and the pins, digests of 32 bytes each.
// One of them must match a public key: any in a verified chain, or else the peer's own.
int cos_context_verify(cos_context *context, int asks, int checks_chain, const uint8_t *pins, size_t pin_count);
// Sets the application protocols in order of preference, each preceded by a byte with its length.
int cos_context_offer(cos_context *context, const uint8_t *protocols, size_t count);
// Sets whether to keep sessions for `cos_session_take_ticket`. Otherwise, no connection is resumed.
void cos_context_resume(cos_context *context, int resumes);
// Takes ownership of another context, and uses it for a server name such as "a.example" or "*.example".
int cos_context_add_name(cos_context *context, const char *pattern, cos_context *other);
// Rejects clients that request another server name, or none.
void cos_context_reject_other_names(cos_context *context);

// MARK: - Connections

// Creates a connection without a descriptor. Returns null if there is not enough memory.
cos_session *cos_session_make(cos_context *context);
void cos_session_free(cos_session *session);

// Sets the server name to request and the one required in the certificate, which may be an address. Either may be null.
int cos_session_name(cos_session *session, const char *asked, const char *required, int is_address);

// The outcomes of a step of a connection.
enum {
  cos_done = 0,
  // More input from the peer is needed.
  cos_wants_input = 1,
  // The peer has announced that it will write no more.
  cos_peer_closed = 2,
  cos_failed = 3,
};

// Lends input from the peer until `cos_session_keep_input`, which copies the unused rest.
void cos_session_lend_input(cos_session *session, const void *bytes, size_t count);
// Returns 0 if there is not enough memory.
int cos_session_keep_input(cos_session *session);
// Returns the number of unused input bytes.
size_t cos_session_input_count(const cos_session *session);

int cos_session_shake_hands(cos_session *session);
int cos_session_read(cos_session *session, void *bytes, size_t count, size_t *done);
// Encrypts at least one byte.
int cos_session_write(cos_session *session, const void *bytes, size_t count, size_t *done);
// Announces that nothing more will be written.
int cos_session_end_writing(cos_session *session);

// Returns the output for the peer; `cos_session_sent` removes the bytes that were sent.
const void *cos_session_output(const cos_session *session, size_t *count);
size_t cos_session_output_count(const cos_session *session);
void cos_session_sent(cos_session *session, size_t count);
// Appends unencrypted bytes to the output. Returns 0 if there is not enough memory.
int cos_session_put_output(cos_session *session, const void *bytes, size_t count);

// After `cos_failed`: OpenSSL's error number, or 0 for none, its text, and the result of verifying the peer's
// certificate, such as X509_V_OK.
unsigned long cos_session_error(const cos_session *session);
const char *cos_session_error_text(const cos_session *session);
long cos_session_verification(const cos_session *session);
const char *cos_verification_text(long verification);

// The parts of an error number.
int cos_error_library(unsigned long error);
int cos_error_reason(unsigned long error);

enum {
  cos_library_ssl = 20,
  // The base of the reasons that stand for the peer's alerts.
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

// Information about a connection after its handshake. The strings live as long as the connection.
const char *cos_session_version(const cos_session *session);
const char *cos_session_cipher(const cos_session *session);
const uint8_t *cos_session_protocol(const cos_session *session, size_t *count);
// Returns the server name that a client has requested, or null.
const char *cos_session_asked_name(const cos_session *session);
int cos_session_is_resumed(const cos_session *session);
// Writes the peer's certificate in DER format if there is room. Returns its length, or 0 if there is none.
size_t cos_session_peer_certificate(const cos_session *session, uint8_t *bytes, size_t capacity);

// Resumes an earlier session, if the peer agrees.
int cos_session_resume(cos_session *session, cos_ticket *ticket);
// Returns the oldest ticket received on this connection, which the caller then owns, or null if there is none.
cos_ticket *cos_session_take_ticket(cos_session *session);
void cos_ticket_free(cos_ticket *ticket);

// MARK: - Bytes

// Overwrites a secret in a way that is not optimized out.
void cos_cleanse(void *bytes, size_t count);
