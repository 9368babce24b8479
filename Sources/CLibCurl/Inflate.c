// SPDX-License-Identifier: Apache-2.0

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "CLibCurl.h"
#include "zlib_layout.h"

static int (*inflate_init)(clc_z_stream *, int, const char *, int);
static int (*inflate_next)(clc_z_stream *, int);
static int (*inflate_reset)(clc_z_stream *);
static int (*inflate_end)(clc_z_stream *);
static int can_inflate;
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct clc_inflater {
  clc_z_stream stream;
};

// zlib stays open: libcurl holds it too.
static void open_zlib(void) {
  void *library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return;
  *(void **)&inflate_init = dlsym(library, "inflateInit2_");
  *(void **)&inflate_next = dlsym(library, "inflate");
  *(void **)&inflate_reset = dlsym(library, "inflateReset");
  *(void **)&inflate_end = dlsym(library, "inflateEnd");
  can_inflate = inflate_init && inflate_next && inflate_reset && inflate_end;
}

int clc_can_inflate(void) {
  pthread_once(&once, open_zlib);
  return can_inflate;
}

clc_inflater *clc_inflater_make(int format) {
  if (!clc_can_inflate()) return NULL;
  clc_inflater *inflater = calloc(1, sizeof *inflater);
  if (inflater == NULL) return NULL;
  // Only the first digit of the version is compared.
  if (inflate_init(&inflater->stream, format, "1", (int)sizeof inflater->stream) != clc_z_ok) {
    free(inflater);
    return NULL;
  }
  return inflater;
}

void clc_inflater_free(clc_inflater *inflater) {
  inflate_end(&inflater->stream);
  free(inflater);
}

int clc_inflater_reset(clc_inflater *inflater) { return inflate_reset(&inflater->stream) == clc_z_ok; }

int clc_inflate(
  clc_inflater *inflater, const uint8_t *input, size_t *input_count, uint8_t *output, size_t *output_count) {
  size_t input_limit = *input_count > INT_MAX ? INT_MAX : *input_count;
  size_t output_limit = *output_count > INT_MAX ? INT_MAX : *output_count;
  inflater->stream.next_in = input;
  inflater->stream.avail_in = (unsigned)input_limit;
  inflater->stream.next_out = output;
  inflater->stream.avail_out = (unsigned)output_limit;
  int answer = inflate_next(&inflater->stream, clc_z_no_flush);
  *input_count = input_limit - inflater->stream.avail_in;
  *output_count = output_limit - inflater->stream.avail_out;
  switch (answer) {
    case clc_z_ok:
    // There is nothing to take or no room: no error.
    case clc_z_buffer_error: return clc_inflate_more;
    case clc_z_stream_end: return clc_inflate_end;
    case clc_z_memory_error: return clc_inflate_no_memory;
    default: return clc_inflate_broken;
  }
}
