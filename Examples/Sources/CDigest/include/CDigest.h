// SPDX-License-Identifier: Apache-2.0

// An incremental SHA-256 digest (FIPS 180-4), in C so that it is fast even in a debug build.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint32_t state[8];
  uint64_t count;
  uint8_t pending[64];
} cdigest;

void cdigest_begin(cdigest *digest);
void cdigest_take(cdigest *digest, const void *bytes, size_t count);
// Writes the digest of the bytes so far as 64 hexadecimal digits and a terminating zero.
void cdigest_text(const cdigest *digest, char *text);
