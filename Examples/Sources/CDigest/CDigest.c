// SPDX-License-Identifier: Apache-2.0

#include "CDigest.h"

#include <string.h>

static const uint32_t table[64] = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
  0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
  0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
  0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
  0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
  0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

#define TURN(word, count) ((word) >> (count) | (word) << (32 - (count)))

static void take_block(uint32_t *state, const uint8_t *block) {
  uint32_t words[64];
  for (int i = 0; i < 16; i++) {
    words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
  }
  for (int i = 16; i < 64; i++) {
    uint32_t early = words[i - 15], late = words[i - 2];
    uint32_t small = TURN(early, 7) ^ TURN(early, 18) ^ early >> 3;
    uint32_t large = TURN(late, 17) ^ TURN(late, 19) ^ late >> 10;
    words[i] = words[i - 16] + small + words[i - 7] + large;
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
  for (int i = 0; i < 64; i++) {
    uint32_t first = h + (TURN(e, 6) ^ TURN(e, 11) ^ TURN(e, 25)) + ((e & f) ^ (~e & g)) + table[i] + words[i];
    uint32_t second = (TURN(a, 2) ^ TURN(a, 13) ^ TURN(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void cdigest_begin(cdigest *digest) {
  static const uint32_t first[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
  };
  memcpy(digest->state, first, sizeof first);
  digest->count = 0;
}

void cdigest_take(cdigest *digest, const void *bytes, size_t count) {
  const uint8_t *next = bytes;
  size_t kept = digest->count % 64;
  digest->count += count;
  if (kept > 0) {
    size_t taken = count < 64 - kept ? count : 64 - kept;
    memcpy(digest->pending + kept, next, taken);
    next += taken;
    count -= taken;
    if (kept + taken < 64) return;
    take_block(digest->state, digest->pending);
  }
  for (; count >= 64; next += 64, count -= 64) take_block(digest->state, next);
  if (count > 0) memcpy(digest->pending, next, count);
}

void cdigest_text(const cdigest *digest, char *text) {
  cdigest copy = *digest;
  uint8_t padding[72] = {0x80};
  size_t length = (copy.count % 64 < 56 ? 56 : 120) - copy.count % 64;
  uint64_t bits = copy.count * 8;
  for (int i = 0; i < 8; i++) padding[length + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
  cdigest_take(&copy, padding, length + 8);
  static const char digits[] = "0123456789abcdef";
  for (int i = 0; i < 64; i++) text[i] = digits[copy.state[i / 8] >> (28 - 4 * (i % 8)) & 15];
  text[64] = 0;
}
