// SPDX-License-Identifier: Apache-2.0

#include "openssl_library.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

cos_context *cos_context_make(int is_server, int oldest_version, int newest_version) {
  cos_context *context = calloc(1, sizeof *context);
  if (context == NULL) return NULL;
  cos_table.ERR_clear_error();
  context->is_server = is_server;
  context->ssl = cos_table.SSL_CTX_new(is_server ? cos_table.TLS_server_method() : cos_table.TLS_client_method());
  if (
    context->ssl == NULL
    || !cos_table.SSL_CTX_ctrl(context->ssl, cos_ctrl_oldest_version, oldest_version, NULL)
    || !cos_table.SSL_CTX_ctrl(context->ssl, cos_ctrl_newest_version, newest_version, NULL)) {
    cos_context_free(context);
    return NULL;
  }
  cos_table.SSL_CTX_set_options(
    context->ssl, COS_OPTION_NO_RENEGOTIATION | COS_OPTION_NO_COMPRESSION | COS_OPTION_SERVER_PREFERENCE);
  // Allow partial writes and moving buffers, and release the buffers of idle connections.
  cos_table.SSL_CTX_ctrl(
    context->ssl, cos_ctrl_mode, cos_mode_partial_write | cos_mode_moving_buffer | cos_mode_release_buffers, NULL);
  if (is_server) {
    // Required for resuming connections of clients with certificates.
    static const unsigned char name[] = "run loop";
    cos_table.SSL_CTX_set_session_id_context(context->ssl, name, sizeof name - 1);
  }
  return context;
}

void cos_context_free(cos_context *context) {
  if (context == NULL) return;
  for (size_t index = 0; index < context->name_count; index++) {
    free(context->names[index].pattern);
    cos_context_free(context->names[index].context);
  }
  free(context->names);
  free(context->pins);
  free(context->protocols);
  if (context->ssl != NULL) cos_table.SSL_CTX_free(context->ssl);
  free(context);
}

int cos_context_trust_system(cos_context *context) {
  cos_table.ERR_clear_error();
  return cos_table.SSL_CTX_set_default_verify_paths(context->ssl) ? cos_added : cos_rejected;
}

// Prevents OpenSSL from asking for a password on the terminal.
static int give_password(char *bytes, int capacity, int writes, void *password) {
  (void)writes;
  if (password == NULL) return -1;
  size_t count = strlen(password);
  if (count > (size_t)capacity) return -1;
  memcpy(bytes, password, count);
  return (int)count;
}

static BIO *open_text(const void *text, size_t count) {
  cos_table.ERR_clear_error();
  return count > INT_MAX ? NULL : cos_table.BIO_new_mem_buf(text, (int)count);
}

// Returns whether the last error means that the text has ended before another certificate.
static int is_at_end(void) {
  unsigned long error = cos_table.ERR_peek_last_error();
  return cos_error_library(error) == cos_pem_library && cos_error_reason(error) == cos_pem_no_start;
}

int cos_context_trust(cos_context *context, const void *text, size_t count) {
  BIO *bio = open_text(text, count);
  if (bio == NULL) return cos_bad_certificate;
  X509_STORE *store = cos_table.SSL_CTX_get_cert_store(context->ssl);
  int answer = 0;
  X509 *certificate;
  while ((certificate = cos_table.PEM_read_bio_X509(bio, NULL, give_password, NULL)) != NULL) {
    int is_added = cos_table.X509_STORE_add_cert(store, certificate)
      && (!context->is_server || cos_table.SSL_CTX_add_client_CA(context->ssl, certificate));
    cos_table.X509_free(certificate);
    if (!is_added) break;
    answer++;
  }
  if (certificate != NULL || !is_at_end() || answer == 0) answer = cos_bad_certificate;
  cos_table.BIO_free(bio);
  return answer;
}

static int use_chain(cos_context *context, BIO *bio) {
  X509 *certificate = cos_table.PEM_read_bio_X509(bio, NULL, give_password, NULL);
  if (certificate == NULL) return cos_bad_certificate;
  int is_used = cos_table.SSL_CTX_use_certificate(context->ssl, certificate);
  cos_table.X509_free(certificate);
  // For example because its key is too weak.
  if (!is_used) return cos_rejected;
  while ((certificate = cos_table.PEM_read_bio_X509(bio, NULL, give_password, NULL)) != NULL) {
    is_used = (int)cos_table.SSL_CTX_ctrl(context->ssl, cos_ctrl_chain_certificate, 1, certificate);
    cos_table.X509_free(certificate);
    if (!is_used) return cos_rejected;
  }
  if (!is_at_end()) return cos_bad_certificate;
  cos_table.ERR_clear_error();
  return cos_added;
}

static int use_key(cos_context *context, BIO *bio, const char *password) {
  EVP_PKEY *key = cos_table.PEM_read_bio_PrivateKey(bio, NULL, give_password, (void *)password);
  if (key == NULL) return cos_bad_key;
  int is_used = cos_table.SSL_CTX_use_PrivateKey(context->ssl, key);
  cos_table.EVP_PKEY_free(key);
  return is_used && cos_table.SSL_CTX_check_private_key(context->ssl) ? cos_added : cos_other_key;
}

int cos_context_identify(
  cos_context *context, const void *chain, size_t chain_count, const void *key, size_t key_count,
  const char *password) {
  BIO *bio = open_text(chain, chain_count);
  if (bio == NULL) return cos_bad_certificate;
  int answer = use_chain(context, bio);
  cos_table.BIO_free(bio);
  if (answer != cos_added) return answer;
  bio = open_text(key, key_count);
  if (bio == NULL) return cos_bad_key;
  answer = use_key(context, bio, password);
  cos_table.BIO_free(bio);
  return answer;
}

const char *cos_last_reason(void) {
  const char *text = cos_table.ERR_reason_error_string(cos_table.ERR_peek_last_error());
  return text != NULL ? text : "no reason";
}

static int has_pin(const cos_context *context, X509 *certificate) {
  unsigned char *key = NULL;
  int count = cos_table.i2d_X509_PUBKEY(cos_table.X509_get_X509_PUBKEY(certificate), &key);
  if (count <= 0) return 0;
  unsigned char digest[32];
  int is_known = 0;
  if (cos_table.EVP_Digest(key, (size_t)count, digest, NULL, cos_table.EVP_sha256(), NULL)) {
    for (size_t index = 0; index < context->pin_count; index++)
      is_known |= memcmp(context->pins + index * sizeof digest, digest, sizeof digest) == 0;
  }
  cos_table.CRYPTO_free(key, __FILE__, __LINE__);
  return is_known;
}

static int has_pins(const cos_context *context, X509_STORE_CTX *store) {
  if (!context->checks_chain) return has_pin(context, cos_table.X509_STORE_CTX_get0_cert(store));
  const OPENSSL_STACK *chain = (const OPENSSL_STACK *)cos_table.X509_STORE_CTX_get0_chain(store);
  for (int index = 0; index < cos_table.OPENSSL_sk_num(chain); index++)
    if (has_pin(context, cos_table.OPENSSL_sk_value(chain, index))) return 1;
  return 0;
}

static int verify(X509_STORE_CTX *store, void *pointer) {
  const cos_context *context = pointer;
  if (context->checks_chain) {
    int answer = cos_table.X509_verify_cert(store);
    if (answer <= 0) return answer;
  }
  if (context->pin_count > 0 && !has_pins(context, store)) {
    cos_table.X509_STORE_CTX_set_error(store, cos_verify_pins);
    return 0;
  }
  if (!context->checks_chain) cos_table.X509_STORE_CTX_set_error(store, cos_verified);
  return 1;
}

int cos_context_verify(cos_context *context, int asks, int checks_chain, const uint8_t *pins, size_t pin_count) {
  context->checks_chain = checks_chain;
  if (pin_count > 0) {
    context->pins = malloc(pin_count * 32);
    if (context->pins == NULL) return 0;
    memcpy(context->pins, pins, pin_count * 32);
    context->pin_count = pin_count;
  }
  int mode = asks == cos_ask_nobody ? cos_verify_none
    : asks == cos_ask               ? cos_verify_peer
                                    : cos_verify_peer | cos_verify_required;
  cos_table.SSL_CTX_set_verify(context->ssl, mode, NULL);
  cos_table.SSL_CTX_set_cert_verify_callback(context->ssl, verify, context);
  return 1;
}

static int select_protocol(
  SSL *ssl, const unsigned char **chosen, unsigned char *chosen_count, const unsigned char *offered,
  unsigned int offered_count, void *pointer) {
  (void)ssl;
  const cos_context *context = pointer;
  for (size_t own = 0; own < context->protocol_count; own += context->protocols[own] + 1u) {
    for (size_t index = 0; index < offered_count; index += offered[index] + 1u) {
      if (offered[index] >= offered_count - index) break;
      if (offered[index] != context->protocols[own]) continue;
      if (memcmp(offered + index + 1, context->protocols + own + 1, offered[index]) != 0) continue;
      *chosen = context->protocols + own + 1;
      *chosen_count = context->protocols[own];
      return cos_server_name_done;
    }
  }
  return cos_server_name_fatal;
}

int cos_context_offer(cos_context *context, const uint8_t *protocols, size_t count) {
  if (count == 0) return 1;
  context->protocols = malloc(count);
  if (context->protocols == NULL) return 0;
  memcpy(context->protocols, protocols, count);
  context->protocol_count = count;
  if (context->is_server) {
    cos_table.SSL_CTX_set_alpn_select_cb(context->ssl, select_protocol, context);
    return 1;
  }
  // Unlike other functions, this one returns 0 on success.
  return cos_table.SSL_CTX_set_alpn_protos(context->ssl, protocols, (unsigned int)count) == 0;
}

void cos_context_resume(cos_context *context, int resumes) {
  if (!resumes) {
    cos_table.SSL_CTX_set_options(context->ssl, COS_OPTION_NO_TICKET);
    cos_table.SSL_CTX_set_num_tickets(context->ssl, 0);
    cos_table.SSL_CTX_ctrl(context->ssl, cos_ctrl_session_cache, cos_cache_off, NULL);
  } else if (context->is_server) {
    // The clients keep the tickets, and the server only their key.
    cos_table.SSL_CTX_ctrl(context->ssl, cos_ctrl_session_cache, cos_cache_off, NULL);
  } else {
    cos_table.SSL_CTX_ctrl(context->ssl, cos_ctrl_session_cache, cos_cache_client | cos_cache_no_internal, NULL);
    cos_table.SSL_CTX_sess_set_new_cb(context->ssl, cos_session_got_ticket);
  }
}

// Returns whether a name matches a pattern, in which a leading "*" stands for one label.
static int matches(const char *pattern, const char *name) {
  if (strcasecmp(pattern, name) == 0) return 1;
  if (strncmp(pattern, "*.", 2) != 0) return 0;
  const char *rest = strchr(name, '.');
  return rest != NULL && rest != name && strcasecmp(pattern + 1, rest) == 0;
}

static int select_name(SSL *ssl, int *alert, void *pointer) {
  const cos_context *context = pointer;
  const char *name = cos_table.SSL_get_servername(ssl, 0);
  const cos_context *found = NULL;
  int is_exact = 0;
  for (size_t index = 0; name != NULL && !is_exact && index < context->name_count; index++) {
    const struct cos_name *entry = &context->names[index];
    is_exact = strcasecmp(entry->pattern, name) == 0;
    if (is_exact || (found == NULL && matches(entry->pattern, name))) found = entry->context;
  }
  if (found != NULL) {
    cos_table.SSL_set_SSL_CTX(ssl, found->ssl);
    return cos_server_name_done;
  }
  if (!context->rejects_other_names) return name == NULL ? cos_server_name_ignored : cos_server_name_done;
  *alert = cos_server_name_unrecognized;
  return cos_server_name_fatal;
}

static void watch_names(cos_context *context) {
  cos_table.SSL_CTX_callback_ctrl(context->ssl, cos_ctrl_server_name_function, (void (*)(void))select_name);
  cos_table.SSL_CTX_ctrl(context->ssl, cos_ctrl_server_name_argument, 0, context);
}

int cos_context_add_name(cos_context *context, const char *pattern, cos_context *other) {
  char *copy = strdup(pattern);
  struct cos_name *names = realloc(context->names, (context->name_count + 1) * sizeof *names);
  if (names != NULL) context->names = names;
  if (names == NULL || copy == NULL) {
    free(copy);
    cos_context_free(other);
    return 0;
  }
  names[context->name_count++] = (struct cos_name){copy, other};
  watch_names(context);
  return 1;
}

void cos_context_reject_other_names(cos_context *context) {
  context->rejects_other_names = 1;
  watch_names(context);
}
