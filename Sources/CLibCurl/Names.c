// SPDX-License-Identifier: Apache-2.0

// Host name functions: conversion to ASCII (libidn2), and whether a domain is a public suffix such as `co.uk`,
// under which domains are registered (libpsl).

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>

#include "CLibCurl.h"

// IDN2_NFC_INPUT and IDN2_NONTRANSITIONAL: the UTS 46 mapping used by libcurl and browsers.
enum { normalize = 1, nontransitional = 8 };

static int (*look_up)(const uint8_t *, uint8_t **, int);
static const char *(*reason_of)(int);
static void (*release)(void *);
static int has_idn;

static int (*is_suffix)(const void *, const char *);
static const void *suffixes;

static pthread_once_t names_once = PTHREAD_ONCE_INIT;
static pthread_once_t suffixes_once = PTHREAD_ONCE_INIT;

static void open_names(void) {
  void *library = dlopen("libidn2.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return;
  *(void **)&look_up = dlsym(library, "idn2_lookup_u8");
  *(void **)&reason_of = dlsym(library, "idn2_strerror");
  *(void **)&release = dlsym(library, "idn2_free");
  has_idn = look_up && reason_of && release;
}

// The list stays loaded. It is the newest one on the system.
static void open_suffixes(void) {
  void *library = dlopen("libpsl.so.5", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return;
  const void *(*latest)(const char *);
  const void *(*builtin)(void);
  *(void **)&latest = dlsym(library, "psl_latest");
  *(void **)&builtin = dlsym(library, "psl_builtin");
  *(void **)&is_suffix = dlsym(library, "psl_is_public_suffix");
  if (!latest || !builtin || !is_suffix) return;
  suffixes = latest(NULL);
  if (suffixes == NULL) suffixes = builtin();
}

int clc_host_to_ascii(const char *name, char *result, size_t capacity) {
  pthread_once(&names_once, open_names);
  if (!has_idn) return clc_host_library_missing;
  uint8_t *found = NULL;
  int code = look_up((const uint8_t *)name, &found, normalize | nontransitional);
  if (code != 0 || found == NULL) {
    snprintf(result, capacity, "%s", reason_of(code));
    return clc_host_rejected;
  }
  int is_whole = strlen((const char *)found) < capacity;
  snprintf(result, capacity, "%s", is_whole ? (const char *)found : "it is too long");
  release(found);
  return is_whole ? clc_host_mapped : clc_host_rejected;
}

int clc_is_public_suffix(const char *domain) {
  pthread_once(&suffixes_once, open_suffixes);
  return suffixes == NULL ? -1 : is_suffix(suffixes, domain) != 0;
}
