// SPDX-License-Identifier: Apache-2.0

// What zlib's functions are called with, as zlib.h has declared it since 1995.
#pragma once

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
