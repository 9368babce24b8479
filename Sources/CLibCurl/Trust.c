// SPDX-License-Identifier: Apache-2.0

// Trust decisions beyond OpenSSL's own checks: pins for any key of the chain, and a decision by the program.

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "CLibCurl.h"

// CRYPTO_EX_INDEX_SSL_CTX; X509_V_OK and X509_V_ERR_APPLICATION_VERIFICATION; X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS with
// X509_CHECK_FLAG_NEVER_CHECK_SUBJECT; X509_V_FLAG_PARTIAL_CHAIN.
enum { of_contexts = 1, valid = 0, rejected = 50, host_flags = 0x4 | 0x20, partial_chain = 0x80000 };

typedef struct X509 X509;
typedef struct X509_PUBKEY X509_PUBKEY;
typedef struct X509_STORE X509_STORE;
typedef struct X509_STORE_CTX X509_STORE_CTX;
typedef struct OPENSSL_STACK OPENSSL_STACK;
typedef void free_function(void *, void *, void *, int, long, void *);

#define FUNCTIONS(X) \
  X(int, CRYPTO_get_ex_new_index, (int, long, void *, void *, void *, free_function *)) \
  X(int, X509_verify_cert, (X509_STORE_CTX *)) \
  X(X509 *, X509_STORE_CTX_get0_cert, (const X509_STORE_CTX *)) \
  X(OPENSSL_STACK *, X509_STORE_CTX_get0_chain, (const X509_STORE_CTX *)) \
  X(int, X509_STORE_CTX_get_error, (const X509_STORE_CTX *)) \
  X(void, X509_STORE_CTX_set_error, (X509_STORE_CTX *, int)) \
  X(void, X509_STORE_CTX_set_flags, (X509_STORE_CTX *, unsigned long)) \
  X(int, X509_STORE_CTX_set_default, (X509_STORE_CTX *, const char *)) \
  X(X509_STORE_CTX *, X509_STORE_CTX_new, (void)) \
  X(int, X509_STORE_CTX_init, (X509_STORE_CTX *, X509_STORE *, X509 *, OPENSSL_STACK *)) \
  X(void, X509_STORE_CTX_free, (X509_STORE_CTX *)) \
  X(X509_STORE *, X509_STORE_new, (void)) \
  X(int, X509_STORE_add_cert, (X509_STORE *, X509 *)) \
  X(void, X509_STORE_free, (X509_STORE *)) \
  X(int, X509_check_host, (X509 *, const char *, size_t, unsigned, char **)) \
  X(int, X509_check_ip_asc, (X509 *, const char *, unsigned)) \
  X(const char *, X509_verify_cert_error_string, (long)) \
  X(X509 *, d2i_X509, (X509 **, const unsigned char **, long)) \
  X(int, i2d_X509, (const X509 *, unsigned char **)) \
  X(X509_PUBKEY *, X509_get_X509_PUBKEY, (const X509 *)) \
  X(int, i2d_X509_PUBKEY, (const X509_PUBKEY *, unsigned char **)) \
  X(void, X509_free, (X509 *)) \
  X(OPENSSL_STACK *, OPENSSL_sk_new_null, (void)) \
  X(int, OPENSSL_sk_push, (OPENSSL_STACK *, const void *)) \
  X(int, OPENSSL_sk_num, (const OPENSSL_STACK *)) \
  X(void *, OPENSSL_sk_value, (const OPENSSL_STACK *, int)) \
  X(void, OPENSSL_sk_free, (OPENSSL_STACK *))

#define MEMBER(result, name, parameters) static result(*name) parameters;
FUNCTIONS(MEMBER)
static void (*SSL_CTX_set_cert_verify_callback)(void *, int (*)(X509_STORE_CTX *, void *), void *);
static int (*SSL_CTX_set_ex_data)(void *, int, void *);
static int is_open, place;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// The function that decides about the servers of a connection.
typedef struct {
  void *context;
  clc_evaluate_function evaluate;
  clc_release_function release;
  char host[];
} evaluation;

// Called when an OpenSSL context is freed.
static void release(void *parent, void *pointer, void *all, int index, long number, void *argument) {
  (void)parent, (void)all, (void)index, (void)number, (void)argument;
  evaluation *gone = pointer;
  if (gone == NULL) return;
  gone->release(gone->context);
  free(gone);
}

static void open_library(void) {
  void *crypto = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_NOLOAD), *tls = dlopen("libssl.so.3", RTLD_NOW | RTLD_NOLOAD);
  if (crypto == NULL || tls == NULL) return;
#define FIND(result, name, parameters) \
  if ((*(void **)&name = dlsym(crypto, #name)) == NULL) return;
  FUNCTIONS(FIND)
  *(void **)&SSL_CTX_set_cert_verify_callback = dlsym(tls, "SSL_CTX_set_cert_verify_callback");
  *(void **)&SSL_CTX_set_ex_data = dlsym(tls, "SSL_CTX_set_ex_data");
  if (SSL_CTX_set_cert_verify_callback == NULL || SSL_CTX_set_ex_data == NULL) return;
  place = CRYPTO_get_ex_new_index(of_contexts, 0, NULL, NULL, NULL, release);
  is_open = place >= 0;
}

// Encodes a certificate or its key in DER. Returns null if there is no memory.
static uint8_t *encode(X509 *certificate, int is_key, size_t *count) {
  X509_PUBKEY *key = is_key ? X509_get_X509_PUBKEY(certificate) : NULL;
  int length = is_key ? i2d_X509_PUBKEY(key, NULL) : i2d_X509(certificate, NULL);
  uint8_t *bytes = length > 0 ? malloc((size_t)length) : NULL;
  if (bytes == NULL) return NULL;
  unsigned char *end = bytes;
  *count = (size_t)(is_key ? i2d_X509_PUBKEY(key, &end) : i2d_X509(certificate, &end));
  return bytes;
}

static int add(clc_certificate *all, size_t index, X509 *certificate) {
  all[index].bytes = encode(certificate, 0, &all[index].count);
  all[index].key = encode(certificate, 1, &all[index].key_count);
  return all[index].bytes != NULL && all[index].key != NULL;
}

static int matches(X509 *certificate, const char *host) {
  // -2 means that the host is not an address.
  int address = X509_check_ip_asc(certificate, host, 0);
  return address == -2 ? X509_check_host(certificate, host, 0, host_flags, NULL) == 1 : address == 1;
}

// Decides in place of OpenSSL, after calling its own verification. Returns 1 to continue.
static int decide(X509_STORE_CTX *store, void *argument) {
  evaluation *wanted = argument;
  int is_valid = X509_verify_cert(store) == 1, error = X509_STORE_CTX_get_error(store);
  X509 *own = X509_STORE_CTX_get0_cert(store);
  OPENSSL_STACK *chain = X509_STORE_CTX_get0_chain(store);
  int count = chain == NULL ? 0 : OPENSSL_sk_num(chain), is_accepted = 0;
  clc_certificate *all = own == NULL ? NULL : calloc(count > 0 ? (size_t)count : 1, sizeof *all);
  if (all != NULL) {
    int is_whole = count > 0 || add(all, 0, own);
    for (int index = 0; index < count; index++) is_whole &= add(all, (size_t)index, OPENSSL_sk_value(chain, index));
    clc_server_chain shown = {
      all, count > 0 ? (size_t)count : 1, is_valid ? NULL : X509_verify_cert_error_string(error),
      matches(own, wanted->host)};
    is_accepted = is_whole && wanted->evaluate(wanted->context, &shown);
    for (size_t index = 0; index < shown.count; index++) free((void *)all[index].bytes), free((void *)all[index].key);
    free(all);
  }
  if (is_accepted || error == valid) X509_STORE_CTX_set_error(store, is_accepted ? valid : rejected);
  return is_accepted;
}

int clc_prepare_evaluation(
  void *encryption, const char *host, void *context, clc_evaluate_function evaluate, clc_release_function release_it) {
  pthread_once(&once, open_library);
  size_t length = strlen(host) + 1;
  evaluation *made = is_open && encryption != NULL ? malloc(sizeof *made + length) : NULL;
  if (made != NULL) {
    *made = (evaluation){context, evaluate, release_it};
    memcpy(made->host, host, length);
    if (SSL_CTX_set_ex_data(encryption, place, made)) {
      SSL_CTX_set_cert_verify_callback(encryption, decide, made);
      return 1;
    }
    free(made);
  }
  release_it(context);
  return 0;
}

static X509 *read(const uint8_t *bytes, size_t count) {
  const unsigned char *start = bytes;
  if (count > LONG_MAX) return NULL;
  X509 *certificate = d2i_X509(NULL, &start, (long)count);
  if (certificate == NULL || start == bytes + count) return certificate;
  // The certificate is followed by extra bytes.
  X509_free(certificate);
  return NULL;
}

int clc_chain_is_valid(
  const clc_certificate *chain, size_t count, const clc_certificate *anchors, size_t anchor_count) {
  pthread_once(&once, open_library);
  if (!is_open || count == 0) return 0;
  X509_STORE *store = X509_STORE_new();
  X509_STORE_CTX *check = X509_STORE_CTX_new();
  OPENSSL_STACK *others = OPENSSL_sk_new_null();
  X509 *own = read(chain[0].bytes, chain[0].count);
  int is_valid = store != NULL && check != NULL && others != NULL && own != NULL;
  for (size_t index = 0; is_valid && index < anchor_count; index++) {
    X509 *anchor = read(anchors[index].bytes, anchors[index].count);
    is_valid = anchor != NULL && X509_STORE_add_cert(store, anchor);
    if (anchor != NULL) X509_free(anchor);
  }
  for (size_t index = 1; is_valid && index < count; index++) {
    X509 *other = read(chain[index].bytes, chain[index].count);
    is_valid = other != NULL && OPENSSL_sk_push(others, other) > 0;
    if (!is_valid && other != NULL) X509_free(other);
  }
  if (is_valid && X509_STORE_CTX_init(check, store, own, others) && X509_STORE_CTX_set_default(check, "ssl_server")) {
    X509_STORE_CTX_set_flags(check, partial_chain);
    is_valid = X509_verify_cert(check) == 1;
  } else {
    is_valid = 0;
  }
  if (check != NULL) X509_STORE_CTX_free(check);
  for (int index = 0; others != NULL && index < OPENSSL_sk_num(others); index++) {
    X509_free(OPENSSL_sk_value(others, index));
  }
  if (others != NULL) OPENSSL_sk_free(others);
  if (own != NULL) X509_free(own);
  if (store != NULL) X509_STORE_free(store);
  return is_valid;
}

uint8_t *clc_key_of_certificate(const uint8_t *bytes, size_t count, size_t *length) {
  pthread_once(&once, open_library);
  X509 *certificate = is_open ? read(bytes, count) : NULL;
  if (certificate == NULL) return NULL;
  uint8_t *key = encode(certificate, 1, length);
  X509_free(certificate);
  return key;
}
