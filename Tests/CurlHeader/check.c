// SPDX-License-Identifier: Apache-2.0

// Compares CLibCurl's own declarations with the headers of libcurl, zlib and, if installed, Brotli and zstd. This
// file is compiled, but never linked or run:
//
//     clang -fsyntax-only -I Sources/CLibCurl/include -I Sources/CLibCurl Tests/CurlHeader/check.c

#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>
#include <stddef.h>
#include <zlib.h>

#include "CLibCurl.h"
#include "decoder_layouts.h"

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #ours " is not " #theirs)

SAME(clc_option_write_data, CURLOPT_WRITEDATA);
SAME(clc_option_url, CURLOPT_URL);
SAME(clc_option_proxy, CURLOPT_PROXY);
SAME(clc_option_read_data, CURLOPT_READDATA);
SAME(clc_option_error_buffer, CURLOPT_ERRORBUFFER);
SAME(clc_option_write_function, CURLOPT_WRITEFUNCTION);
SAME(clc_option_read_function, CURLOPT_READFUNCTION);
SAME(clc_option_http_header, CURLOPT_HTTPHEADER);
SAME(clc_option_certificate, CURLOPT_SSLCERT);
SAME(clc_option_key_password, CURLOPT_KEYPASSWD);
SAME(clc_option_header_data, CURLOPT_HEADERDATA);
SAME(clc_option_progress_data, CURLOPT_XFERINFODATA);
SAME(clc_option_progress_function, CURLOPT_XFERINFOFUNCTION);
SAME(clc_option_proxy_header, CURLOPT_PROXYHEADER);
SAME(clc_option_custom_request, CURLOPT_CUSTOMREQUEST);
SAME(clc_option_no_progress, CURLOPT_NOPROGRESS);
SAME(clc_option_verbose, CURLOPT_VERBOSE);
SAME(clc_option_debug_function, CURLOPT_DEBUGFUNCTION);
SAME(clc_option_debug_data, CURLOPT_DEBUGDATA);
SAME(clc_debug_data_in, CURLINFO_DATA_IN);
SAME(clc_option_no_body, CURLOPT_NOBODY);
SAME(clc_option_upload, CURLOPT_UPLOAD);
SAME(clc_option_verify_peer, CURLOPT_SSL_VERIFYPEER);
SAME(clc_option_ca_file, CURLOPT_CAINFO);
SAME(clc_option_fresh_connect, CURLOPT_FRESH_CONNECT);
SAME(clc_option_forbid_reuse, CURLOPT_FORBID_REUSE);
SAME(clc_option_header_function, CURLOPT_HEADERFUNCTION);
SAME(clc_option_http_get, CURLOPT_HTTPGET);
SAME(clc_option_verify_host, CURLOPT_SSL_VERIFYHOST);
SAME(clc_option_http_version, CURLOPT_HTTP_VERSION);
SAME(clc_option_key, CURLOPT_SSLKEY);
SAME(clc_option_ca_directory, CURLOPT_CAPATH);
SAME(clc_option_no_signal, CURLOPT_NOSIGNAL);
SAME(clc_option_proxy_authentication, CURLOPT_PROXYAUTH);
SAME(clc_option_encryption_function, CURLOPT_SSL_CTX_FUNCTION);
SAME(clc_option_own_data, CURLOPT_PRIVATE);
SAME(clc_option_encryption_data, CURLOPT_SSL_CTX_DATA);
SAME(clc_option_upload_size, CURLOPT_INFILESIZE_LARGE);
SAME(clc_option_connect_timeout, CURLOPT_CONNECTTIMEOUT_MS);
SAME(clc_option_content_decoding, CURLOPT_HTTP_CONTENT_DECODING);
SAME(clc_option_open_socket_function, CURLOPT_OPENSOCKETFUNCTION);
SAME(clc_option_open_socket_data, CURLOPT_OPENSOCKETDATA);
SAME(clc_option_seek_function, CURLOPT_SEEKFUNCTION);
SAME(clc_option_seek_data, CURLOPT_SEEKDATA);
SAME(clc_option_proxy_user, CURLOPT_PROXYUSERNAME);
SAME(clc_option_proxy_password, CURLOPT_PROXYPASSWORD);
SAME(clc_option_no_proxy, CURLOPT_NOPROXY);
SAME(clc_option_protocols, CURLOPT_PROTOCOLS);
SAME(clc_option_resolve, CURLOPT_RESOLVE);
SAME(clc_option_read_url, CURLOPT_CURLU);
SAME(clc_url_whole, CURLUPART_URL);
SAME(clc_url_path_as_is, CURLU_PATH_AS_IS);
SAME(clc_option_close_socket_function, CURLOPT_CLOSESOCKETFUNCTION);
SAME(clc_option_close_socket_data, CURLOPT_CLOSESOCKETDATA);
SAME(clc_option_pinned_key, CURLOPT_PINNEDPUBLICKEY);
SAME(clc_option_unix_path, CURLOPT_UNIX_SOCKET_PATH);
SAME(clc_option_path_as_is, CURLOPT_PATH_AS_IS);
SAME(clc_option_wait_for_multiplexing, CURLOPT_PIPEWAIT);
SAME(clc_option_proxy_ca_file, CURLOPT_PROXY_CAINFO);
SAME(clc_option_proxy_ca_directory, CURLOPT_PROXY_CAPATH);
SAME(clc_option_unix_abstract, CURLOPT_ABSTRACT_UNIX_SOCKET);
SAME(clc_option_suppress_connect_headers, CURLOPT_SUPPRESS_CONNECT_HEADERS);
SAME(clc_option_tls_version, CURLOPT_SSLVERSION);
SAME(clc_option_proxy_tls_version, CURLOPT_PROXY_SSLVERSION);
SAME(clc_option_keep_sessions, CURLOPT_SSL_SESSIONID_CACHE);
SAME(clc_option_connect_to, CURLOPT_CONNECT_TO);
SAME(clc_option_connection_age, CURLOPT_MAXAGE_CONN);
SAME(clc_tls_1_2, CURL_SSLVERSION_TLSv1_2);
SAME(clc_tls_1_3, CURL_SSLVERSION_TLSv1_3);
SAME(clc_option_prerequest_function, CURLOPT_PREREQFUNCTION);
SAME(clc_option_prerequest_data, CURLOPT_PREREQDATA);
SAME(clc_multi_option_socket_function, CURLMOPT_SOCKETFUNCTION);
SAME(clc_multi_option_socket_data, CURLMOPT_SOCKETDATA);
SAME(clc_multi_option_timer_function, CURLMOPT_TIMERFUNCTION);
SAME(clc_multi_option_timer_data, CURLMOPT_TIMERDATA);
SAME(clc_multi_option_most_connections, CURLMOPT_MAXCONNECTS);
SAME(clc_multi_option_most_of_a_host, CURLMOPT_MAX_HOST_CONNECTIONS);
SAME(clc_multi_option_most_streams, CURLMOPT_MAX_CONCURRENT_STREAMS);
SAME(clc_info_own_data, CURLINFO_PRIVATE);
SAME(clc_info_request_size, CURLINFO_REQUEST_SIZE);
SAME(clc_info_peer_address, CURLINFO_PRIMARY_IP);
SAME(clc_info_peer_port, CURLINFO_PRIMARY_PORT);
SAME(clc_info_own_address, CURLINFO_LOCAL_IP);
SAME(clc_info_own_port, CURLINFO_LOCAL_PORT);
SAME(clc_info_header_size, CURLINFO_HEADER_SIZE);
SAME(clc_info_sent_body, CURLINFO_SIZE_UPLOAD_T);
SAME(clc_info_received_body, CURLINFO_SIZE_DOWNLOAD_T);
SAME(clc_info_time_total, CURLINFO_TOTAL_TIME_T);
SAME(clc_info_connect_code, CURLINFO_HTTP_CONNECTCODE);
SAME(clc_info_system_error, CURLINFO_OS_ERRNO);
SAME(clc_info_new_connections, CURLINFO_NUM_CONNECTS);
SAME(clc_info_time_connected, CURLINFO_CONNECT_TIME_T);
SAME(clc_info_time_shaken, CURLINFO_APPCONNECT_TIME_T);
SAME(clc_info_time_sent, CURLINFO_PRETRANSFER_TIME_T);
SAME(clc_info_time_first_byte, CURLINFO_STARTTRANSFER_TIME_T);
SAME(clc_poll_in, CURL_POLL_IN);
SAME(clc_poll_out, CURL_POLL_OUT);
SAME(clc_poll_both, CURL_POLL_INOUT);
SAME(clc_poll_remove, CURL_POLL_REMOVE);
SAME(clc_select_in, CURL_CSELECT_IN);
SAME(clc_select_out, CURL_CSELECT_OUT);
SAME(clc_select_error, CURL_CSELECT_ERR);
SAME(clc_socket_timeout, CURL_SOCKET_TIMEOUT);
SAME(clc_write_pause, CURL_WRITEFUNC_PAUSE);
SAME(clc_read_abort, CURL_READFUNC_ABORT);
SAME(clc_read_pause, CURL_READFUNC_PAUSE);
SAME(clc_seek_ok, CURL_SEEKFUNC_OK);
SAME(clc_seek_fail, CURL_SEEKFUNC_FAIL);
SAME(clc_prerequest_ok, CURL_PREREQFUNC_OK);
SAME(clc_prerequest_abort, CURL_PREREQFUNC_ABORT);
SAME(clc_pause_receiving, CURLPAUSE_RECV);
SAME(clc_pause_sending, CURLPAUSE_SEND);
SAME(clc_http_1_1, CURL_HTTP_VERSION_1_1);
SAME(clc_http_2_by_tls, CURL_HTTP_VERSION_2TLS);
SAME(clc_http_2_at_once, CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
SAME(clc_protocols_web, CURLPROTO_HTTP | CURLPROTO_HTTPS);
SAME(clc_basic, CURLAUTH_BASIC);
SAME(clc_digest, CURLAUTH_DIGEST);
SAME(clc_ok, CURLE_OK);
SAME(clc_unsupported_protocol, CURLE_UNSUPPORTED_PROTOCOL);
SAME(clc_failed_init, CURLE_FAILED_INIT);
SAME(clc_bad_url, CURLE_URL_MALFORMAT);
SAME(clc_not_built_in, CURLE_NOT_BUILT_IN);
SAME(clc_cannot_resolve_proxy, CURLE_COULDNT_RESOLVE_PROXY);
SAME(clc_cannot_resolve_host, CURLE_COULDNT_RESOLVE_HOST);
SAME(clc_cannot_connect, CURLE_COULDNT_CONNECT);
SAME(clc_weird_reply, CURLE_WEIRD_SERVER_REPLY);
SAME(clc_http2, CURLE_HTTP2);
SAME(clc_partial_file, CURLE_PARTIAL_FILE);
SAME(clc_write_error, CURLE_WRITE_ERROR);
SAME(clc_upload_failed, CURLE_UPLOAD_FAILED);
SAME(clc_read_error, CURLE_READ_ERROR);
SAME(clc_out_of_memory, CURLE_OUT_OF_MEMORY);
SAME(clc_timed_out, CURLE_OPERATION_TIMEDOUT);
SAME(clc_tls_connect_error, CURLE_SSL_CONNECT_ERROR);
SAME(clc_aborted_by_callback, CURLE_ABORTED_BY_CALLBACK);
SAME(clc_got_nothing, CURLE_GOT_NOTHING);
SAME(clc_send_error, CURLE_SEND_ERROR);
SAME(clc_receive_error, CURLE_RECV_ERROR);
SAME(clc_certificate_problem, CURLE_SSL_CERTPROBLEM);
SAME(clc_cipher_problem, CURLE_SSL_CIPHER);
SAME(clc_peer_failed_verification, CURLE_PEER_FAILED_VERIFICATION);
SAME(clc_bad_content_encoding, CURLE_BAD_CONTENT_ENCODING);
SAME(clc_send_fail_rewind, CURLE_SEND_FAIL_REWIND);
SAME(clc_bad_ca_file, CURLE_SSL_CACERT_BADFILE);
SAME(clc_tls_shutdown_failed, CURLE_SSL_SHUTDOWN_FAILED);
SAME(clc_tls_issuer_error, CURLE_SSL_ISSUER_ERROR);
SAME(clc_pinned_key_mismatch, CURLE_SSL_PINNEDPUBKEYNOTMATCH);
SAME(clc_bad_certificate_status, CURLE_SSL_INVALIDCERTSTATUS);
SAME(clc_http2_stream, CURLE_HTTP2_STREAM);
SAME(clc_proxy_failed, CURLE_PROXY);
SAME(clc_client_certificate_required, CURLE_SSL_CLIENTCERT);
SAME(clc_bad_argument, CURLE_BAD_FUNCTION_ARGUMENT);
SAME(clc_interface_failed, CURLE_INTERFACE_FAILED);
SAME(clc_tls_engine_missing, CURLE_SSL_ENGINE_NOTFOUND);
SAME(clc_tls_engine_failed, CURLE_SSL_ENGINE_SETFAILED);
SAME(clc_tls_required, CURLE_USE_SSL_FAILED);
SAME(clc_tls_engine_not_started, CURLE_SSL_ENGINE_INITFAILED);
SAME(clc_bad_revocation_file, CURLE_SSL_CRL_BADFILE);
SAME(clc_no_connection, CURLE_NO_CONNECTION_AVAILABLE);
#if LIBCURL_VERSION_NUM >= 0x080600
SAME(clc_too_large, CURLE_TOO_LARGE);
#endif
#if LIBCURL_VERSION_NUM >= 0x080800
SAME(clc_hello_encryption_required, CURLE_ECH_REQUIRED);
#endif

// Version numbers have the same encoding.
SAME(clc_oldest, CURL_VERSION_BITS(7, 76, 0));
SAME(clc_asks_before_request, CURL_VERSION_BITS(7, 80, 0));
SAME(clc_begins_http2_anew, CURL_VERSION_BITS(7, 88, 0));
SAME(clc_keeps_http2, CURL_VERSION_BITS(8, 0, 0));

// The members of libcurl's structures that are read.
SAME(sizeof(curl_off_t), sizeof(int64_t));
SAME(sizeof(curl_socket_t), sizeof(int));
SAME(offsetof(clc_wanted_socket, family), offsetof(struct curl_sockaddr, family));
SAME(offsetof(clc_wanted_socket, type), offsetof(struct curl_sockaddr, socktype));
SAME(offsetof(clc_wanted_socket, protocol), offsetof(struct curl_sockaddr, protocol));
SAME(offsetof(struct curl_slist, data), 0);
SAME(offsetof(struct curl_slist, next), 8);
SAME(offsetof(curl_version_info_data, version), 8);
SAME(offsetof(curl_version_info_data, version_num), 16);
SAME(offsetof(curl_version_info_data, host), 24);
SAME(offsetof(curl_version_info_data, features), 32);
SAME(offsetof(curl_version_info_data, ssl_version), 40);
SAME(CURLVERSION_FIRST, 0);
SAME(CURL_GLOBAL_DEFAULT, 3);
SAME(CURLMSG_DONE, 1);
SAME(offsetof(CURLMsg, easy_handle), 8);
SAME(offsetof(CURLMsg, data), 16);

SAME(sizeof(clc_z_stream), sizeof(z_stream));
SAME(offsetof(clc_z_stream, avail_in), offsetof(z_stream, avail_in));
SAME(offsetof(clc_z_stream, next_out), offsetof(z_stream, next_out));
SAME(offsetof(clc_z_stream, avail_out), offsetof(z_stream, avail_out));
SAME(clc_z_ok, Z_OK);
SAME(clc_z_stream_end, Z_STREAM_END);
SAME(clc_z_memory_error, Z_MEM_ERROR);
SAME(clc_z_buffer_error, Z_BUF_ERROR);
SAME(clc_z_no_flush, Z_NO_FLUSH);

#if __has_include(<brotli/decode.h>)
#include <brotli/decode.h>
SAME(clc_brotli_success, BROTLI_DECODER_RESULT_SUCCESS);
SAME(clc_brotli_needs_input, BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT);
SAME(clc_brotli_needs_output, BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT);
SAME(clc_brotli_first_memory_error, BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES);
SAME(clc_brotli_last_memory_error, BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES);
#endif
#if __has_include(<zstd.h>) && __has_include(<zstd_errors.h>)
#include <zstd.h>
#include <zstd_errors.h>
SAME(sizeof(clc_zstd_input), sizeof(ZSTD_inBuffer));
SAME(offsetof(clc_zstd_input, position), offsetof(ZSTD_inBuffer, pos));
SAME(offsetof(clc_zstd_output, position), offsetof(ZSTD_outBuffer, pos));
SAME(clc_zstd_window_limit, ZSTD_d_windowLogMax);
SAME(clc_zstd_memory_error, ZSTD_error_memory_allocation);
#endif
