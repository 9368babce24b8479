// SPDX-License-Identifier: Apache-2.0

// The digest SHA-256 of FIPS 180-4, of bytes that come in chunks. In C, it is quick in a debug build, too.
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
// Writes the digest of what was taken so far as 64 hexadecimal digits and a zero.
void cdigest_text(const cdigest *digest, char *text);
