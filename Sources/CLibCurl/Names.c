// SPDX-License-Identifier: Apache-2.0

// Host name functions: conversion to ASCII (libidn2), and whether a domain is a public suffix such as `co.uk`,
// under which domains are registered (libpsl).

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>

#include "CLibCurl.h"

// IDN2_NFC_INPUT, IDN2_TRANSITIONAL and IDN2_NONTRANSITIONAL: the UTS 46 mappings used by libcurl. The latter one also
// enforces IDNA 2008, which has no symbols.
enum { normalize = 1, transitional = 4, nontransitional = 8 };
// IDN2_DISALLOWED.
enum { disallowed = -304 };

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

// Whether a name has one of the characters that the two mappings treat differently.
static int has_deviation(const char *name) {
  static const char *const deviations[] = {
      "\xc3\x9f",      // U+00DF, sharp s.
      "\xe1\xba\x9e",  // U+1E9E, capital sharp s.
      "\xcf\x82",      // U+03C2, final sigma.
      "\xe2\x80\x8c",  // U+200C, zero width non-joiner.
      "\xe2\x80\x8d",  // U+200D, zero width joiner.
  };
  for (size_t i = 0; i < sizeof deviations / sizeof *deviations; i++)
    if (strstr(name, deviations[i])) return 1;
  return 0;
}

int clc_host_to_ascii(const char *name, char *result, size_t capacity) {
  pthread_once(&names_once, open_names);
  if (!has_idn) return clc_host_library_missing;
  uint8_t *found = NULL;
  int code = look_up((const uint8_t *)name, &found, normalize | nontransitional);
  if (code == disallowed && !has_deviation(name))
    code = look_up((const uint8_t *)name, &found, normalize | transitional);
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
