// SPDX-License-Identifier: Apache-2.0

// Bindings to libcurl and the libraries that decode bodies, which are loaded on first use. The declarations are our
// own, so neither the headers nor the libraries are needed to build. Where the headers are available,
// `Tests/CurlHeader/check.c` compares every number with them.
#pragma once

#include <stddef.h>
#include <stdint.h>

// A transfer (CURL), and a multi handle that drives many transfers (CURLM).
typedef struct clc_easy clc_easy;
typedef struct clc_multi clc_multi;
// A list of strings (struct curl_slist).
typedef struct clc_list clc_list;
// A parsed URL (CURLU).
typedef struct clc_url clc_url;

// The result of loading a library.
enum {
  clc_opened = 0,
  clc_missing = 1,
  clc_symbol_missing = 2,
  clc_too_old = 3,
  clc_cannot_start = 4,
};

// The oldest supported version, in libcurl's numbering: 7.76.0.
enum { clc_oldest = 0x074c00 };
// The first version that has the prerequest callback: 7.80.0.
enum { clc_asks_before_request = 0x075000 };
// From 7.88.0 on, before 8.0.0, a plaintext connection restarts HTTP/2 with each request.
enum { clc_begins_http2_anew = 0x075800, clc_keeps_http2 = 0x080000 };
// From 8.7.0 on, before 8.8.0, the size of a request is always zero. From 8.8.0 on, it includes the body.
enum { clc_counts_no_request = 0x080700, clc_counts_body = 0x080800 };

// Loads libcurl.so.4 once per process, and initializes it. Returns one of the results above; a failure is not cached.
// `detail` receives a human-readable message of fewer than `capacity` bytes.
int clc_open(char *detail, size_t capacity);
// Same as above with another file and another oldest version, for tests. The library is unloaded again.
int clc_try_open(const char *file, unsigned oldest, char *detail, size_t capacity);
// The version of the loaded library, or 0 if it is not loaded.
unsigned clc_version(void);

// The numbers of options, each of which takes a long, a pointer, a function, or a 64-bit offset.
enum {
  clc_option_write_data = 10001,
  clc_option_url = 10002,
  clc_option_proxy = 10004,
  clc_option_read_data = 10009,
  clc_option_error_buffer = 10010,
  clc_option_write_function = 20011,
  clc_option_read_function = 20012,
  clc_option_http_header = 10023,
  clc_option_certificate = 10025,
  clc_option_key_password = 10026,
  clc_option_header_data = 10029,
  clc_option_custom_request = 10036,
  clc_option_progress_data = 10057,
  clc_option_tls_version = 32,
  clc_option_verbose = 41,
  clc_option_no_progress = 43,
  clc_option_no_body = 44,
  clc_option_upload = 46,
  clc_option_verify_peer = 64,
  clc_option_ca_file = 10065,
  clc_option_fresh_connect = 74,
  clc_option_forbid_reuse = 75,
  clc_option_header_function = 20079,
  clc_option_http_get = 80,
  clc_option_verify_host = 81,
  clc_option_http_version = 84,
  clc_option_key = 10087,
  clc_option_debug_function = 20094,
  clc_option_debug_data = 10095,
  clc_option_ca_directory = 10097,
  clc_option_no_signal = 99,
  clc_option_proxy_authentication = 111,
  clc_option_own_data = 10103,
  clc_option_encryption_function = 20108,
  clc_option_encryption_data = 10109,
  clc_option_upload_size = 30115,
  clc_option_keep_sessions = 150,
  clc_option_connect_timeout = 156,
  clc_option_content_decoding = 158,
  clc_option_open_socket_function = 20163,
  clc_option_open_socket_data = 10164,
  clc_option_seek_function = 20167,
  clc_option_seek_data = 10168,
  clc_option_proxy_user = 10175,
  clc_option_proxy_password = 10176,
  clc_option_no_proxy = 10177,
  clc_option_protocols = 181,
  clc_option_resolve = 10203,
  clc_option_close_socket_function = 20208,
  clc_option_close_socket_data = 10209,
  clc_option_progress_function = 20219,
  clc_option_proxy_header = 10228,
  clc_option_pinned_key = 10230,
  clc_option_unix_path = 10231,
  clc_option_path_as_is = 234,
  clc_option_wait_for_multiplexing = 237,
  clc_option_connect_to = 10243,
  clc_option_proxy_ca_file = 10246,
  clc_option_proxy_ca_directory = 10247,
  clc_option_proxy_tls_version = 250,
  clc_option_unix_abstract = 10264,
  clc_option_suppress_connect_headers = 265,
  clc_option_read_url = 10282,
  clc_option_connection_age = 288,
  clc_option_prerequest_function = 20312,
  clc_option_prerequest_data = 10313,
};

enum {
  clc_multi_option_socket_function = 20001,
  clc_multi_option_socket_data = 10002,
  clc_multi_option_timer_function = 20004,
  clc_multi_option_timer_data = 10005,
  clc_multi_option_most_connections = 6,
  clc_multi_option_most_of_a_host = 7,
  clc_multi_option_most_streams = 16,
};

enum {
  clc_info_own_data = 0x100000 + 21,
  clc_info_peer_address = 0x100000 + 32,
  clc_info_own_address = 0x100000 + 41,
  clc_info_header_size = 0x200000 + 11,
  clc_info_request_size = 0x200000 + 12,
  clc_info_connect_code = 0x200000 + 22,
  clc_info_system_error = 0x200000 + 25,
  clc_info_new_connections = 0x200000 + 26,
  clc_info_peer_port = 0x200000 + 40,
  clc_info_own_port = 0x200000 + 42,
  clc_info_sent_body = 0x600000 + 7,
  clc_info_received_body = 0x600000 + 8,
  clc_info_time_total = 0x600000 + 50,
  clc_info_time_connected = 0x600000 + 52,
  clc_info_time_shaken = 0x600000 + 56,
  clc_info_time_sent = 0x600000 + 53,
  clc_info_time_first_byte = 0x600000 + 54,
};

enum {
  clc_poll_in = 1,
  clc_poll_out = 2,
  clc_poll_both = 3,
  clc_poll_remove = 4,
  clc_select_in = 1,
  clc_select_out = 2,
  clc_select_error = 4,
  clc_socket_timeout = -1,
  clc_write_pause = 0x10000001,
  clc_read_abort = 0x10000000,
  clc_read_pause = 0x10000001,
  clc_seek_ok = 0,
  clc_seek_fail = 1,
  clc_prerequest_ok = 0,
  clc_prerequest_abort = 1,
  clc_pause_receiving = 1,
  clc_pause_sending = 4,
  clc_http_1_1 = 2,
  clc_http_2_by_tls = 4,
  clc_http_2_at_once = 5,
  clc_tls_1_2 = 6,
  clc_tls_1_3 = 7,
  clc_protocols_web = 3,
  clc_basic = 1,
  clc_digest = 2,
  clc_debug_data_in = 3,
  clc_url_whole = 0,
  clc_url_path_as_is = 1 << 4,
};

// The results of a transfer (CURLcode) that are distinguished here.
enum {
  clc_ok = 0,
  clc_unsupported_protocol = 1,
  clc_failed_init = 2,
  clc_bad_url = 3,
  clc_not_built_in = 4,
  clc_cannot_resolve_proxy = 5,
  clc_cannot_resolve_host = 6,
  clc_cannot_connect = 7,
  clc_weird_reply = 8,
  clc_http2 = 16,
  clc_partial_file = 18,
  clc_write_error = 23,
  clc_upload_failed = 25,
  clc_read_error = 26,
  clc_out_of_memory = 27,
  clc_timed_out = 28,
  clc_tls_connect_error = 35,
  clc_aborted_by_callback = 42,
  clc_bad_argument = 43,
  clc_interface_failed = 45,
  clc_got_nothing = 52,
  clc_tls_engine_missing = 53,
  clc_tls_engine_failed = 54,
  clc_send_error = 55,
  clc_receive_error = 56,
  clc_certificate_problem = 58,
  clc_cipher_problem = 59,
  clc_peer_failed_verification = 60,
  clc_bad_content_encoding = 61,
  clc_tls_required = 64,
  clc_send_fail_rewind = 65,
  clc_tls_engine_not_started = 66,
  clc_bad_ca_file = 77,
  clc_tls_shutdown_failed = 80,
  clc_bad_revocation_file = 82,
  clc_tls_issuer_error = 83,
  clc_no_connection = 89,
  clc_pinned_key_mismatch = 90,
  clc_bad_certificate_status = 91,
  clc_http2_stream = 92,
  clc_proxy_failed = 97,
  clc_client_certificate_required = 98,
  clc_too_large = 100,
  clc_hello_encryption_required = 101,
};

// The socket that libcurl requests (the first members of struct curl_sockaddr).
typedef struct {
  int family;
  int type;
  int protocol;
} clc_wanted_socket;

typedef size_t (*clc_data_function)(char *bytes, size_t size, size_t count, void *context);
typedef int (*clc_seek_function)(void *context, int64_t offset, int origin);
typedef int (*clc_prerequest_function)(
  void *context, char *peer, char *own, int peer_port, int own_port);
typedef int (*clc_progress_function)(
  void *context, int64_t to_receive, int64_t received, int64_t to_send, int64_t sent);
// Receives the data of a verbose transfer; `kind` is the kind of the bytes, such as clc_debug_data_in.
typedef int (*clc_debug_function)(clc_easy *easy, int kind, char *bytes, size_t count, void *context);
typedef int (*clc_open_socket_function)(void *context, int purpose, clc_wanted_socket *wanted);
typedef int (*clc_close_socket_function)(void *context, int descriptor);
typedef int (*clc_encryption_function)(clc_easy *easy, void *context, void *number);
typedef int (*clc_socket_function)(clc_easy *easy, int descriptor, int what, void *context, void *of_socket);
typedef int (*clc_timer_function)(clc_multi *multi, long milliseconds, void *context);

// The following functions need a loaded library. Each corresponds to the libcurl function with a similar name.

clc_easy *clc_easy_make(void);
void clc_easy_free(clc_easy *easy);
void clc_easy_reset(clc_easy *easy);
int clc_easy_pause(clc_easy *easy, int what);
const char *clc_easy_text(int code);

int clc_set_long(clc_easy *easy, int option, long value);
int clc_set_offset(clc_easy *easy, int option, int64_t value);
int clc_set_text(clc_easy *easy, int option, const char *text);
int clc_set_pointer(clc_easy *easy, int option, void *pointer);
int clc_set_list(clc_easy *easy, int option, clc_list *list);
int clc_set_data_function(clc_easy *easy, int option, clc_data_function function);
int clc_set_seek_function(clc_easy *easy, clc_seek_function function);
int clc_set_prerequest_function(clc_easy *easy, clc_prerequest_function function);
int clc_set_progress_function(clc_easy *easy, clc_progress_function function);
int clc_set_debug_function(clc_easy *easy, clc_debug_function function);
int clc_set_open_socket_function(clc_easy *easy, clc_open_socket_function function);
int clc_set_close_socket_function(clc_easy *easy, clc_close_socket_function function);
long clc_get_long(clc_easy *easy, int info);
int64_t clc_get_offset(clc_easy *easy, int info);
void *clc_get_pointer(clc_easy *easy, int info);

// Appends a string, or frees the list and returns null if there is no memory.
clc_list *clc_list_append(clc_list *list, const char *text);
void clc_list_free(clc_list *list);
// Overwrites the strings of a list, and frees it.
void clc_list_wipe(clc_list *list);

// Parses a URL. Returns null if it is invalid, or if there is no memory.
clc_url *clc_url_read(const char *text);
void clc_url_free(clc_url *url);

clc_multi *clc_multi_make(void);
int clc_multi_free(clc_multi *multi);
int clc_multi_set_long(clc_multi *multi, int option, long value);
int clc_multi_set_socket_function(clc_multi *multi, clc_socket_function function, void *context);
int clc_multi_set_timer_function(clc_multi *multi, clc_timer_function function, void *context);
int clc_multi_add(clc_multi *multi, clc_easy *easy);
int clc_multi_remove(clc_multi *multi, clc_easy *easy);
int clc_multi_act(clc_multi *multi, int descriptor, int events);
const char *clc_multi_text(int code);
// Returns the next transfer that has ended, with its result, or null if there is none.
clc_easy *clc_multi_next_ended(clc_multi *multi, int *code);

// Whether libcurl uses OpenSSL 3 for TLS.
int clc_uses_openssl(void);
// Sets up a transfer's TLS if that uses OpenSSL: records whether the server requests a certificate and none is
// configured, whether the server ends the connection (close_notify), and which other alerts end it. The number
// identifies the transfer, and is not zero.
int clc_set_encryption(clc_easy *easy, uintptr_t number);
int clc_prepare_encryption(clc_easy *easy, void *context, void *number);
// Replaces the function that prepares a transfer's TLS; the new one has to call clc_prepare_encryption.
int clc_set_encryption_function(clc_easy *easy, clc_encryption_function function);

// A certificate of a server and its public key, both in DER.
typedef struct {
  const uint8_t *bytes;
  size_t count;
  const uint8_t *key;
  size_t key_count;
} clc_certificate;

// The identity that a server presents: its certificates from its own upwards, each issued by the next if the chain is
// valid; the reason if the chain is invalid, or null; and whether the server's own certificate matches the host.
typedef struct {
  const clc_certificate *certificates;
  size_t count;
  const char *reason;
  int matches_host;
} clc_server_chain;

// Decides whether a server is trusted. Called during the handshake.
typedef int (*clc_evaluate_function)(void *context, const clc_server_chain *chain);
typedef void (*clc_release_function)(void *context);

// Lets a function decide about the servers of connections to a host, instead of OpenSSL alone. Returns zero if that is
// not possible. `context` is released with the connection, or immediately if this function fails.
int clc_prepare_evaluation(
  void *encryption, const char *host, void *context, clc_evaluate_function evaluate, clc_release_function release);
// Whether a chain of certificates in DER, from the server's own upwards, leads to one of the anchors, which need not
// be roots. Requires that OpenSSL is loaded.
int clc_chain_is_valid(
  const clc_certificate *chain, size_t count, const clc_certificate *anchors, size_t anchor_count);
// Returns the public key of a certificate, both in DER, or null on failure. The caller frees it with free(3).
uint8_t *clc_key_of_certificate(const uint8_t *bytes, size_t count, size_t *length);
// Whether the server requested a certificate and there was none, as recorded on this thread.
int clc_wanted_certificate(uintptr_t number);
// Returns the alert that ended the connection which this transfer opened, or tried to open, recently and on this
// thread: its number in RFC 8446, or -1 if there was none, and whether this side sent it. This side also sends one if
// the connection is truncated.
int clc_alert(uintptr_t number, int *is_own);
// Called when data read on this thread was used, or when something is sent.
void clc_note_progress(void);
// Whether the connection that this transfer opened, recently and on this thread, was ended because too much data
// arrived that was not used.
int clc_was_flooded(uintptr_t number);
// Whether the ends of connections are recorded.
int clc_notes_ends(void);
// Whether the server ended the connection that this transfer opened, recently and on this thread.
int clc_was_ended(uintptr_t number);

// Decoding with zlib, Brotli and zstd, which libcurl usually uses itself.

typedef struct clc_decoder clc_decoder;

// Formats, in zlib's numbering: 15 + 16 is gzip, 15 zlib, -15 deflate without a header.
enum { clc_gzip = 31, clc_zlib = 15, clc_raw_deflate = -15, clc_brotli = 1, clc_zstd = 2 };
enum { clc_decode_more = 0, clc_decode_end = 1, clc_decode_broken = 2, clc_decode_no_memory = 3 };

// Whether the library for a format can be loaded.
int clc_can_decode(int format);
clc_decoder *clc_decoder_make(int format);
void clc_decoder_free(clc_decoder *decoder);
// Starts over for the next gzip member or zstd frame. Returns zero if that is not possible.
int clc_decoder_reset(clc_decoder *decoder);
// Consumes as much as possible of `input`, and writes as much as possible to `output`. On return, the counts are those
// used.
int clc_decode(
  clc_decoder *decoder, const uint8_t *input, size_t *input_count, uint8_t *output, size_t *output_count);

// Host names.

enum { clc_host_mapped = 0, clc_host_library_missing = 1, clc_host_rejected = 2 };

// Converts a host name to ASCII with libidn2. `result` receives the name, or the reason if it is rejected.
int clc_host_to_ascii(const char *name, char *result, size_t capacity);
// Whether a domain is a public suffix according to libpsl, or -1 if libpsl cannot be loaded.
int clc_is_public_suffix(const char *domain);

// Charsets, with iconv(3).

// Whether the system knows a charset.
int clc_knows_charset(const char *charset);
// Converts bytes to UTF-8. The caller frees the result with free(3). Returns null if there is no memory, the charset
// is unknown, or the bytes are not valid in it.
char *clc_text(const char *charset, const uint8_t *bytes, size_t count, size_t *length);
