// SPDX-License-Identifier: Apache-2.0

// The structures used by zlib, Brotli and zstd, as declared in zlib.h since 1995, in brotli/decode.h since 1.0.0 and
// in zstd.h since 1.4.0.
#pragma once

#include <stddef.h>

typedef struct {
  const unsigned char *next_in;
  unsigned avail_in;
  unsigned long total_in;
  unsigned char *next_out;
  unsigned avail_out;
  unsigned long total_out;
  const char *message;
  void *state;
  void *(*allocate)(void *, unsigned, unsigned);
  void (*release)(void *, void *);
  void *context;
  int data_type;
  unsigned long adler;
  unsigned long reserved;
} clc_z_stream;

enum {
  clc_z_ok = 0,
  clc_z_stream_end = 1,
  clc_z_memory_error = -4,
  clc_z_buffer_error = -5,
  clc_z_no_flush = 0,
};

// BrotliDecoderResult, and the range of BrotliDecoderErrorCode for allocation errors.
enum {
  clc_brotli_success = 1,
  clc_brotli_needs_input = 2,
  clc_brotli_needs_output = 3,
  clc_brotli_first_memory_error = -21,
  clc_brotli_last_memory_error = -30,
};

typedef struct {
  const void *bytes;
  size_t count;
  size_t position;
} clc_zstd_input;

typedef struct {
  void *bytes;
  size_t count;
  size_t position;
} clc_zstd_output;

// ZSTD_d_windowLogMax and ZSTD_error_memory_allocation; and 8 MiB, the largest window of a body (RFC 9659).
enum { clc_zstd_window_limit = 100, clc_zstd_memory_error = 64, clc_zstd_largest_window = 23 };
