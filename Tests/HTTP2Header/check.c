// SPDX-License-Identifier: Apache-2.0

// Compares our declarations of libnghttp2 with its headers, if they are installed (libnghttp2-dev):
//
//     clang -fsyntax-only -I Sources/CRunLoopHTTP2/include Tests/HTTP2Header/check.c

#include <nghttp2/nghttp2.h>

#include "../../Sources/CRunLoopHTTP2/CRunLoopHTTP2.c"

#define SAME(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #ours " is not " #theirs);
#define SAME_MEMBER(ours, our_member, theirs, their_member) \
  SAME(offsetof(ours, our_member), offsetof(theirs, their_member)) \
  SAME(sizeof(((ours *)0)->our_member), sizeof(((theirs *)0)->their_member))

SAME_MEMBER(frame_head, length, nghttp2_frame_hd, length)
SAME_MEMBER(frame_head, stream_id, nghttp2_frame_hd, stream_id)
SAME_MEMBER(frame_head, type, nghttp2_frame_hd, type)
SAME_MEMBER(frame_head, flags, nghttp2_frame_hd, flags)
SAME(0, offsetof(nghttp2_frame, hd))
SAME(sizeof(field), sizeof(nghttp2_nv))
SAME_MEMBER(field, name, nghttp2_nv, name)
SAME_MEMBER(field, value, nghttp2_nv, value)
SAME_MEMBER(field, name_count, nghttp2_nv, namelen)
SAME_MEMBER(field, count, nghttp2_nv, valuelen)
SAME_MEMBER(field, flags, nghttp2_nv, flags)
SAME(sizeof(setting), sizeof(nghttp2_settings_entry))
SAME_MEMBER(setting, id, nghttp2_settings_entry, settings_id)
SAME_MEMBER(setting, value, nghttp2_settings_entry, value)
SAME(sizeof(provider), sizeof(nghttp2_data_provider))
SAME_MEMBER(provider, source, nghttp2_data_provider, source)
SAME_MEMBER(provider, read, nghttp2_data_provider, read_callback)

SAME(type_data, NGHTTP2_DATA)
SAME(type_headers, NGHTTP2_HEADERS)
SAME(flag_end_stream, NGHTTP2_FLAG_END_STREAM)
SAME(data_eof, NGHTTP2_DATA_FLAG_EOF)
SAME(deferred, NGHTTP2_ERR_DEFERRED)
SAME(no_memory, NGHTTP2_ERR_NOMEM)
SAME(max_concurrent_streams, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
SAME(refused_stream, NGHTTP2_REFUSED_STREAM)

// Functions are compared without their pointer types, which our declarations do not distinguish.
#define EXISTS(result, name, parameters) _Static_assert(sizeof(&name) == sizeof(void *), #name);
FUNCTIONS(EXISTS)
