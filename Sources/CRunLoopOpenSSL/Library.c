// SPDX-License-Identifier: Apache-2.0

#include "openssl_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define PACKAGE "Debian's package is libssl3, or libssl3t64 from Debian 13 on"

cos_functions cos_table;
static _Atomic int is_open;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *open_file(const char *file, char *detail, size_t capacity) {
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char *reason = dlerror();
    snprintf(detail, capacity, "%s cannot be opened (%s); " PACKAGE, file, reason ? reason : "no reason");
  }
  return library;
}

static int find_functions(
  const char *crypto_file, void *crypto, const char *ssl_file, void *ssl, unsigned long oldest, cos_functions *found,
  char *detail, size_t capacity) {
#define FIND(file, library, name) \
  *(void **)&found->name = dlsym(library, #name); \
  if (found->name == NULL) { \
    snprintf(detail, capacity, "%s has no %s; " PACKAGE, file, #name); \
    return cos_symbol_missing; \
  }
#define FIND_CRYPTO(result, name, parameters) FIND(crypto_file, crypto, name)
#define FIND_SSL(result, name, parameters) FIND(ssl_file, ssl, name)
  COS_CRYPTO_FUNCTIONS(FIND_CRYPTO)
  unsigned long version = found->OpenSSL_version_num();
  if (version < oldest) {
    snprintf(
      detail, capacity, "%s is version %lu.%lu, and %lu.%lu is the oldest that will do; " PACKAGE, crypto_file,
      version >> 28, version >> 20 & 0xff, oldest >> 28, oldest >> 20 & 0xff);
    return cos_too_old;
  }
  COS_SSL_FUNCTIONS(FIND_SSL)
  return cos_opened;
}

// Opens both files. On success they stay open, and their handles are stored in `libraries`.
static int open_libraries(
  const char *crypto_file, const char *ssl_file, unsigned long oldest, cos_functions *found, void *libraries[2],
  char *detail, size_t capacity) {
  void *crypto = open_file(crypto_file, detail, capacity);
  if (crypto == NULL) return cos_missing;
  void *ssl = open_file(ssl_file, detail, capacity);
  if (ssl == NULL) {
    dlclose(crypto);
    return cos_missing;
  }
  int answer = find_functions(crypto_file, crypto, ssl_file, ssl, oldest, found, detail, capacity);
  if (answer != cos_opened) {
    dlclose(ssl);
    dlclose(crypto);
    return answer;
  }
  libraries[0] = crypto;
  libraries[1] = ssl;
  return cos_opened;
}

static BIO_METHOD *make_method(const cos_functions *found) {
  int number = found->BIO_get_new_index();
  if (number < 0) return NULL;
  BIO_METHOD *method = found->BIO_meth_new(number | cos_bio_source_sink, "run loop");
  if (method == NULL) return NULL;
  found->BIO_meth_set_read_ex(method, cos_bio_read_bytes);
  found->BIO_meth_set_write_ex(method, cos_bio_write_bytes);
  found->BIO_meth_set_ctrl(method, cos_bio_control);
  return method;
}

int cos_open(char *detail, size_t capacity) {
  if (atomic_load_explicit(&is_open, memory_order_acquire)) return cos_opened;
  pthread_mutex_lock(&lock);
  int answer = cos_opened;
  // Relaxed, because it is only stored with the mutex held.
  if (!atomic_load_explicit(&is_open, memory_order_relaxed)) {
    cos_functions found;
    void *libraries[2];
    answer = open_libraries("libcrypto.so.3", "libssl.so.3", cos_oldest, &found, libraries, detail, capacity);
    if (answer == cos_opened) {
      found.OPENSSL_init_crypto(COS_INIT_NO_ATEXIT, NULL);
      found.method = make_method(&found);
      if (found.method != NULL) {
        cos_table = found;
        atomic_store_explicit(&is_open, 1, memory_order_release);
      } else {
        // Do not close the libraries, because OpenSSL is already initialized.
        snprintf(detail, capacity, "libcrypto.so.3 has no memory");
        answer = cos_missing;
      }
    }
  }
  pthread_mutex_unlock(&lock);
  return answer;
}

int cos_try_open(const char *crypto, const char *ssl, unsigned long oldest, char *detail, size_t capacity) {
  cos_functions found;
  void *libraries[2];
  int answer = open_libraries(crypto, ssl, oldest, &found, libraries, detail, capacity);
  if (answer == cos_opened) {
    dlclose(libraries[1]);
    dlclose(libraries[0]);
  }
  return answer;
}

int cos_is_open(void) { return atomic_load_explicit(&is_open, memory_order_acquire); }

void cos_cleanse(void *bytes, size_t count) { cos_table.OPENSSL_cleanse(bytes, count); }
const char *cos_verification_text(long verification) { return cos_table.X509_verify_cert_error_string(verification); }
