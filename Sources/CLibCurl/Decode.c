// SPDX-License-Identifier: Apache-2.0

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "CLibCurl.h"
#include "decoder_layouts.h"

// zlib.
static int (*inflate_init)(clc_z_stream *, int, const char *, int);
static int (*inflate_next)(clc_z_stream *, int);
static int (*inflate_reset)(clc_z_stream *);
static int (*inflate_end)(clc_z_stream *);
static int can_inflate;

// Brotli's decoder.
static void *(*brotli_make)(void *, void *, void *);
static int (*brotli_next)(void *, size_t *, const uint8_t **, size_t *, uint8_t **, size_t *);
static int (*brotli_error)(const void *);
static void (*brotli_free)(void *);
static int can_brotli;

// zstd.
static void *(*zstd_make)(void);
static size_t (*zstd_set)(void *, int, int);
static size_t (*zstd_next)(void *, clc_zstd_output *, clc_zstd_input *);
static unsigned (*zstd_is_error)(size_t);
static int (*zstd_error)(size_t);
static size_t (*zstd_free)(void *);
static int can_zstd;

static pthread_once_t once = PTHREAD_ONCE_INIT;

struct clc_decoder {
  int format;
  clc_z_stream stream;
  // The state of Brotli's or zstd's decoder.
  void *state;
};

static void find(void *library, const char *name, void *function) {
  *(void **)function = library == NULL ? NULL : dlsym(library, name);
}

// The libraries stay loaded, as libcurl usually keeps them loaded as well.
static void open_libraries(void) {
  void *zlib = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
  find(zlib, "inflateInit2_", &inflate_init);
  find(zlib, "inflate", &inflate_next);
  find(zlib, "inflateReset", &inflate_reset);
  find(zlib, "inflateEnd", &inflate_end);
  can_inflate = inflate_init && inflate_next && inflate_reset && inflate_end;
  void *brotli = dlopen("libbrotlidec.so.1", RTLD_NOW | RTLD_LOCAL);
  find(brotli, "BrotliDecoderCreateInstance", &brotli_make);
  find(brotli, "BrotliDecoderDecompressStream", &brotli_next);
  find(brotli, "BrotliDecoderGetErrorCode", &brotli_error);
  find(brotli, "BrotliDecoderDestroyInstance", &brotli_free);
  can_brotli = brotli_make && brotli_next && brotli_error && brotli_free;
  void *zstd = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  find(zstd, "ZSTD_createDStream", &zstd_make);
  find(zstd, "ZSTD_DCtx_setParameter", &zstd_set);
  find(zstd, "ZSTD_decompressStream", &zstd_next);
  find(zstd, "ZSTD_isError", &zstd_is_error);
  find(zstd, "ZSTD_getErrorCode", &zstd_error);
  find(zstd, "ZSTD_freeDStream", &zstd_free);
  can_zstd = zstd_make && zstd_set && zstd_next && zstd_is_error && zstd_error && zstd_free;
}

int clc_can_decode(int format) {
  pthread_once(&once, open_libraries);
  return format == clc_brotli ? can_brotli : format == clc_zstd ? can_zstd : can_inflate;
}

static int prepare(clc_decoder *decoder) {
  switch (decoder->format) {
    case clc_brotli: return (decoder->state = brotli_make(NULL, NULL, NULL)) != NULL;
    case clc_zstd:
      decoder->state = zstd_make();
      return decoder->state != NULL &&
        !zstd_is_error(zstd_set(decoder->state, clc_zstd_window_limit, clc_zstd_largest_window));
    default:
      // Only the first digit of the version is compared.
      return inflate_init(&decoder->stream, decoder->format, "1", (int)sizeof decoder->stream) == clc_z_ok;
  }
}

clc_decoder *clc_decoder_make(int format) {
  if (!clc_can_decode(format)) return NULL;
  clc_decoder *decoder = calloc(1, sizeof *decoder);
  if (decoder == NULL) return NULL;
  decoder->format = format;
  if (prepare(decoder)) return decoder;
  if (format == clc_zstd && decoder->state != NULL) zstd_free(decoder->state);
  free(decoder);
  return NULL;
}

void clc_decoder_free(clc_decoder *decoder) {
  switch (decoder->format) {
    case clc_brotli: brotli_free(decoder->state); break;
    case clc_zstd: zstd_free(decoder->state); break;
    default: inflate_end(&decoder->stream);
  }
  free(decoder);
}

int clc_decoder_reset(clc_decoder *decoder) {
  switch (decoder->format) {
    // zstd starts over by itself.
    case clc_zstd: return 1;
    case clc_brotli: return 0;
    default: return inflate_reset(&decoder->stream) == clc_z_ok;
  }
}

static int inflate_some(
  clc_decoder *decoder, const uint8_t *input, size_t *input_count, uint8_t *output, size_t *output_count) {
  size_t input_limit = *input_count > INT_MAX ? INT_MAX : *input_count;
  size_t output_limit = *output_count > INT_MAX ? INT_MAX : *output_count;
  decoder->stream.next_in = input;
  decoder->stream.avail_in = (unsigned)input_limit;
  decoder->stream.next_out = output;
  decoder->stream.avail_out = (unsigned)output_limit;
  int answer = inflate_next(&decoder->stream, clc_z_no_flush);
  *input_count = input_limit - decoder->stream.avail_in;
  *output_count = output_limit - decoder->stream.avail_out;
  switch (answer) {
    case clc_z_ok:
    // No input or no room for output, which is not an error.
    case clc_z_buffer_error: return clc_decode_more;
    case clc_z_stream_end: return clc_decode_end;
    case clc_z_memory_error: return clc_decode_no_memory;
    default: return clc_decode_broken;
  }
}

static int brotli_some(
  clc_decoder *decoder, const uint8_t *input, size_t *input_count, uint8_t *output, size_t *output_count) {
  size_t input_rest = *input_count, output_rest = *output_count;
  int answer = brotli_next(decoder->state, &input_rest, &input, &output_rest, &output, NULL);
  *input_count -= input_rest;
  *output_count -= output_rest;
  switch (answer) {
    case clc_brotli_success: return clc_decode_end;
    case clc_brotli_needs_input:
    case clc_brotli_needs_output: return clc_decode_more;
    default: break;
  }
  int error = brotli_error(decoder->state);
  int is_of_memory = error <= clc_brotli_first_memory_error && error >= clc_brotli_last_memory_error;
  return is_of_memory ? clc_decode_no_memory : clc_decode_broken;
}

static int zstd_some(
  clc_decoder *decoder, const uint8_t *input, size_t *input_count, uint8_t *output, size_t *output_count) {
  clc_zstd_input from = {input, *input_count, 0};
  clc_zstd_output to = {output, *output_count, 0};
  size_t answer = zstd_next(decoder->state, &to, &from);
  *input_count = from.position;
  *output_count = to.position;
  if (!zstd_is_error(answer)) return answer == 0 ? clc_decode_end : clc_decode_more;
  return zstd_error(answer) == clc_zstd_memory_error ? clc_decode_no_memory : clc_decode_broken;
}

int clc_decode(
  clc_decoder *decoder, const uint8_t *input, size_t *input_count, uint8_t *output, size_t *output_count) {
  switch (decoder->format) {
    case clc_brotli: return brotli_some(decoder, input, input_count, output, output_count);
    case clc_zstd: return zstd_some(decoder, input, input_count, output, output_count);
    default: return inflate_some(decoder, input, input_count, output, output_count);
  }
}
