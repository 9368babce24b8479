// SPDX-License-Identifier: Apache-2.0

// The table of OpenSSL's functions, which is filled when the library is loaded, and the constants that we need.
#pragma once

#include "CRunLoopOpenSSL.h"

// OpenSSL's types, all opaque here.
typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_method_st SSL_METHOD;
typedef struct ssl_session_st SSL_SESSION;
typedef struct ssl_cipher_st SSL_CIPHER;
typedef struct bio_st BIO;
typedef struct bio_method_st BIO_METHOD;
typedef struct x509_st X509;
typedef struct x509_store_st X509_STORE;
typedef struct x509_store_ctx_st X509_STORE_CTX;
typedef struct X509_VERIFY_PARAM_st X509_VERIFY_PARAM;
typedef struct X509_pubkey_st X509_PUBKEY;
typedef struct evp_pkey_st EVP_PKEY;
typedef struct evp_md_st EVP_MD;
typedef struct engine_st ENGINE;
typedef struct stack_st OPENSSL_STACK;
typedef struct ossl_init_settings_st OPENSSL_INIT_SETTINGS;
struct stack_st_X509;

typedef int cos_password_function(char *, int, int, void *);
typedef int cos_alpn_function(
  SSL *, const unsigned char **, unsigned char *, const unsigned char *, unsigned int, void *);

#define COS_SSL_FUNCTIONS(X) \
  X(const SSL_METHOD *, TLS_client_method, (void)) \
  X(const SSL_METHOD *, TLS_server_method, (void)) \
  X(SSL_CTX *, SSL_CTX_new, (const SSL_METHOD *)) \
  X(void, SSL_CTX_free, (SSL_CTX *)) \
  X(uint64_t, SSL_CTX_set_options, (SSL_CTX *, uint64_t)) \
  X(long, SSL_CTX_ctrl, (SSL_CTX *, int, long, void *)) \
  X(long, SSL_CTX_callback_ctrl, (SSL_CTX *, int, void (*)(void))) \
  X(void, SSL_CTX_set_verify, (SSL_CTX *, int, int (*)(int, X509_STORE_CTX *))) \
  X(void, SSL_CTX_set_cert_verify_callback, (SSL_CTX *, int (*)(X509_STORE_CTX *, void *), void *)) \
  X(int, SSL_CTX_use_certificate, (SSL_CTX *, X509 *)) \
  X(int, SSL_CTX_use_PrivateKey, (SSL_CTX *, EVP_PKEY *)) \
  X(int, SSL_CTX_check_private_key, (const SSL_CTX *)) \
  X(int, SSL_CTX_set_alpn_protos, (SSL_CTX *, const unsigned char *, unsigned int)) \
  X(void, SSL_CTX_set_alpn_select_cb, (SSL_CTX *, cos_alpn_function *, void *)) \
  X(int, SSL_CTX_set_default_verify_paths, (SSL_CTX *)) \
  X(X509_STORE *, SSL_CTX_get_cert_store, (const SSL_CTX *)) \
  X(int, SSL_CTX_add_client_CA, (SSL_CTX *, X509 *)) \
  X(void, SSL_CTX_sess_set_new_cb, (SSL_CTX *, int (*)(SSL *, SSL_SESSION *))) \
  X(int, SSL_CTX_set_num_tickets, (SSL_CTX *, size_t)) \
  X(int, SSL_CTX_set_session_id_context, (SSL_CTX *, const unsigned char *, unsigned int)) \
  X(SSL *, SSL_new, (SSL_CTX *)) \
  X(void, SSL_free, (SSL *)) \
  X(void, SSL_set_bio, (SSL *, BIO *, BIO *)) \
  X(void, SSL_set_connect_state, (SSL *)) \
  X(void, SSL_set_accept_state, (SSL *)) \
  X(long, SSL_ctrl, (SSL *, int, long, void *)) \
  X(int, SSL_do_handshake, (SSL *)) \
  X(int, SSL_read_ex, (SSL *, void *, size_t, size_t *)) \
  X(int, SSL_write_ex, (SSL *, const void *, size_t, size_t *)) \
  X(int, SSL_shutdown, (SSL *)) \
  X(void, SSL_set_shutdown, (SSL *, int)) \
  X(int, SSL_get_error, (const SSL *, int)) \
  X(long, SSL_get_verify_result, (const SSL *)) \
  X(X509_VERIFY_PARAM *, SSL_get0_param, (SSL *)) \
  X(void, SSL_get0_alpn_selected, (const SSL *, const unsigned char **, unsigned int *)) \
  X(const char *, SSL_get_version, (const SSL *)) \
  X(const SSL_CIPHER *, SSL_get_current_cipher, (const SSL *)) \
  X(const char *, SSL_CIPHER_get_name, (const SSL_CIPHER *)) \
  X(int, SSL_session_reused, (const SSL *)) \
  X(int, SSL_set_session, (SSL *, SSL_SESSION *)) \
  X(X509 *, SSL_get1_peer_certificate, (const SSL *)) \
  X(const char *, SSL_get_servername, (const SSL *, int)) \
  X(void *, SSL_get_ex_data, (const SSL *, int)) \
  X(int, SSL_set_ex_data, (SSL *, int, void *)) \
  X(SSL_CTX *, SSL_set_SSL_CTX, (SSL *, SSL_CTX *)) \
  X(void, SSL_SESSION_free, (SSL_SESSION *)) \
  X(int, SSL_SESSION_is_resumable, (const SSL_SESSION *))

#define COS_CRYPTO_FUNCTIONS(X) \
  X(unsigned long, OpenSSL_version_num, (void)) \
  X(int, BIO_get_new_index, (void)) \
  X(BIO_METHOD *, BIO_meth_new, (int, const char *)) \
  X(void, BIO_meth_free, (BIO_METHOD *)) \
  X(int, BIO_meth_set_read_ex, (BIO_METHOD *, int (*)(BIO *, char *, size_t, size_t *))) \
  X(int, BIO_meth_set_write_ex, (BIO_METHOD *, int (*)(BIO *, const char *, size_t, size_t *))) \
  X(int, BIO_meth_set_ctrl, (BIO_METHOD *, long (*)(BIO *, int, long, void *))) \
  X(BIO *, BIO_new, (const BIO_METHOD *)) \
  X(int, BIO_free, (BIO *)) \
  X(BIO *, BIO_new_mem_buf, (const void *, int)) \
  X(void, BIO_set_data, (BIO *, void *)) \
  X(void *, BIO_get_data, (BIO *)) \
  X(void, BIO_set_init, (BIO *, int)) \
  X(void, BIO_set_flags, (BIO *, int)) \
  X(void, BIO_clear_flags, (BIO *, int)) \
  X(X509 *, PEM_read_bio_X509, (BIO *, X509 **, cos_password_function *, void *)) \
  X(EVP_PKEY *, PEM_read_bio_PrivateKey, (BIO *, EVP_PKEY **, cos_password_function *, void *)) \
  X(void, EVP_PKEY_free, (EVP_PKEY *)) \
  X(const EVP_MD *, EVP_sha256, (void)) \
  X(int, EVP_Digest, (const void *, size_t, unsigned char *, unsigned int *, const EVP_MD *, ENGINE *)) \
  X(void, X509_free, (X509 *)) \
  X(int, i2d_X509, (const X509 *, unsigned char **)) \
  X(X509_PUBKEY *, X509_get_X509_PUBKEY, (const X509 *)) \
  X(int, i2d_X509_PUBKEY, (const X509_PUBKEY *, unsigned char **)) \
  X(int, X509_STORE_add_cert, (X509_STORE *, X509 *)) \
  X(int, X509_verify_cert, (X509_STORE_CTX *)) \
  X(X509 *, X509_STORE_CTX_get0_cert, (const X509_STORE_CTX *)) \
  X(struct stack_st_X509 *, X509_STORE_CTX_get0_chain, (const X509_STORE_CTX *)) \
  X(void, X509_STORE_CTX_set_error, (X509_STORE_CTX *, int)) \
  X(void, X509_VERIFY_PARAM_set_hostflags, (X509_VERIFY_PARAM *, unsigned int)) \
  X(int, X509_VERIFY_PARAM_set1_host, (X509_VERIFY_PARAM *, const char *, size_t)) \
  X(int, X509_VERIFY_PARAM_set1_ip_asc, (X509_VERIFY_PARAM *, const char *)) \
  X(const char *, X509_verify_cert_error_string, (long)) \
  X(int, OPENSSL_sk_num, (const OPENSSL_STACK *)) \
  X(void *, OPENSSL_sk_value, (const OPENSSL_STACK *, int)) \
  X(unsigned long, ERR_get_error, (void)) \
  X(unsigned long, ERR_peek_last_error, (void)) \
  X(void, ERR_clear_error, (void)) \
  X(const char *, ERR_reason_error_string, (unsigned long)) \
  X(void, CRYPTO_free, (void *, const char *, int)) \
  X(void, OPENSSL_cleanse, (void *, size_t)) \
  X(int, OPENSSL_init_crypto, (uint64_t, const OPENSSL_INIT_SETTINGS *))

#define COS_MEMBER(result, name, parameters) result(*name) parameters;
typedef struct {
  COS_SSL_FUNCTIONS(COS_MEMBER)
  COS_CRYPTO_FUNCTIONS(COS_MEMBER)
  // The I/O method of our connections.
  BIO_METHOD *method;
} cos_functions;

// Written once, before the library counts as loaded, and only read afterwards.
extern cos_functions cos_table;

// Constants of OpenSSL, which are the same in all versions of OpenSSL 3.
enum {
  cos_ctrl_mode = 33,
  cos_ctrl_session_cache = 44,
  cos_ctrl_server_name_function = 53,
  cos_ctrl_server_name_argument = 54,
  cos_ctrl_host_name = 55,
  cos_ctrl_chain_certificate = 89,
  cos_ctrl_oldest_version = 123,
  cos_ctrl_newest_version = 124,

  cos_mode_partial_write = 1,
  cos_mode_moving_buffer = 2,
  cos_mode_release_buffers = 16,

  cos_cache_client = 1,
  cos_cache_off = 0,
  cos_cache_no_internal = 0x300,

  cos_verify_none = 0,
  cos_verify_peer = 1,
  cos_verify_required = 2,

  cos_shutdown_both = 3,

  cos_error_none = 0,
  cos_error_want_read = 2,
  cos_error_zero_return = 6,

  cos_server_name_done = 0,
  cos_server_name_fatal = 2,
  cos_server_name_ignored = 3,
  cos_server_name_unrecognized = 112,

  cos_host_no_partial_wildcards = 4,
  cos_host_never_subject = 32,

  cos_bio_read = 1,
  cos_bio_retry = 8,
  cos_bio_source_sink = 0x400,
  cos_bio_ctrl_flush = 11,

  cos_pem_library = 9,
  cos_pem_no_start = 108,
};
#define COS_OPTION_NO_TICKET ((uint64_t)1 << 14)
#define COS_OPTION_NO_COMPRESSION ((uint64_t)1 << 17)
#define COS_OPTION_SERVER_PREFERENCE ((uint64_t)1 << 22)
#define COS_OPTION_NO_RENEGOTIATION ((uint64_t)1 << 30)
// Do not tear the library down at exit while other threads may still be using it.
#define COS_INIT_NO_ATEXIT ((uint64_t)0x00080000)

// The functions of our connections' I/O method.
int cos_bio_read_bytes(BIO *bio, char *bytes, size_t count, size_t *done);
int cos_bio_write_bytes(BIO *bio, const char *bytes, size_t count, size_t *done);
long cos_bio_control(BIO *bio, int what, long number, void *pointer);

struct cos_name {
  char *pattern;
  cos_context *context;
};

struct cos_context {
  SSL_CTX *ssl;
  int is_server;
  int checks_chain;
  uint8_t *pins;
  size_t pin_count;
  uint8_t *protocols;
  size_t protocol_count;
  struct cos_name *names;
  size_t name_count;
  int rejects_other_names;
};

// Called by OpenSSL with a new session, which it stores.
int cos_session_got_ticket(SSL *ssl, SSL_SESSION *ticket);
