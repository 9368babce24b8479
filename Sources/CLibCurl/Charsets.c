// SPDX-License-Identifier: Apache-2.0

// Conversion of texts from the charsets that the system's iconv(3) supports.

#include <errno.h>
#include <iconv.h>
#include <stdlib.h>
#include <string.h>

#include "CLibCurl.h"

int clc_knows_charset(const char *charset) {
  iconv_t converter = iconv_open("UTF-8", charset);
  if (converter == (iconv_t)-1) return 0;
  iconv_close(converter);
  return 1;
}

// Converts to UTF-8 into `text`, which grows. Returns zero if there is no memory, or the bytes are invalid.
static int convert(iconv_t converter, const uint8_t *bytes, size_t count, char **text, size_t *length) {
  char *input = (char *)bytes;
  size_t input_rest = count, capacity = count + 64, used = 0;
  int is_flushing = 0;
  if ((*text = malloc(capacity)) == NULL) return 0;
  for (;;) {
    char *output = *text + used;
    size_t output_rest = capacity - used;
    size_t answer = is_flushing ? iconv(converter, NULL, NULL, &output, &output_rest)
                                : iconv(converter, &input, &input_rest, &output, &output_rest);
    int reason = errno;
    used = capacity - output_rest;
    if (answer != (size_t)-1) {
      if (is_flushing) break;
      is_flushing = 1;
    } else if (reason == E2BIG) {
      if (capacity > SIZE_MAX / 2) return 0;
      char *larger = realloc(*text, capacity * 2);
      if (larger == NULL) return 0;
      *text = larger;
      capacity *= 2;
    } else {
      return 0;
    }
  }
  *length = used;
  return 1;
}

char *clc_text(const char *charset, const uint8_t *bytes, size_t count, size_t *length) {
  iconv_t converter = iconv_open("UTF-8", charset);
  if (converter == (iconv_t)-1) return NULL;
  char *text = NULL;
  int is_whole = convert(converter, bytes, count, &text, length);
  iconv_close(converter);
  if (is_whole) return text;
  free(text);
  return NULL;
}
