// SPDX-License-Identifier: Apache-2.0

// Compares our declarations of OpenSSL with its headers, if they are installed (libssl-dev):
//
//   clang -fsyntax-only -I Sources/CRunLoopOpenSSL -I Sources/CRunLoopOpenSSL/include Tests/OpenSSLHeader/check.c

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "openssl_library.h"

#define CHECK(result, name, parameters) \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&name), result(*) parameters), #name " has another type");
COS_SSL_FUNCTIONS(CHECK)
COS_CRYPTO_FUNCTIONS(CHECK)

#define SAME(ours, theirs) _Static_assert((uint64_t)(ours) == (uint64_t)(theirs), #ours " is not " #theirs);
SAME(cos_oldest, 0x30000000)
SAME(cos_tls_1_2, TLS1_2_VERSION)
SAME(cos_tls_1_3, TLS1_3_VERSION)

SAME(cos_ctrl_mode, SSL_CTRL_MODE)
SAME(cos_ctrl_session_cache, SSL_CTRL_SET_SESS_CACHE_MODE)
SAME(cos_ctrl_server_name_function, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB)
SAME(cos_ctrl_server_name_argument, SSL_CTRL_SET_TLSEXT_SERVERNAME_ARG)
SAME(cos_ctrl_host_name, SSL_CTRL_SET_TLSEXT_HOSTNAME)
SAME(cos_ctrl_chain_certificate, SSL_CTRL_CHAIN_CERT)
SAME(cos_ctrl_oldest_version, SSL_CTRL_SET_MIN_PROTO_VERSION)
SAME(cos_ctrl_newest_version, SSL_CTRL_SET_MAX_PROTO_VERSION)

SAME(cos_mode_partial_write, SSL_MODE_ENABLE_PARTIAL_WRITE)
SAME(cos_mode_moving_buffer, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER)
SAME(cos_mode_release_buffers, SSL_MODE_RELEASE_BUFFERS)
SAME(cos_cache_off, SSL_SESS_CACHE_OFF)
SAME(cos_cache_client, SSL_SESS_CACHE_CLIENT)
SAME(cos_cache_no_internal, SSL_SESS_CACHE_NO_INTERNAL)
SAME(cos_verify_none, SSL_VERIFY_NONE)
SAME(cos_verify_peer, SSL_VERIFY_PEER)
SAME(cos_verify_required, SSL_VERIFY_FAIL_IF_NO_PEER_CERT)
SAME(cos_shutdown_both, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
SAME(cos_error_none, SSL_ERROR_NONE)
SAME(cos_error_want_read, SSL_ERROR_WANT_READ)
SAME(cos_error_zero_return, SSL_ERROR_ZERO_RETURN)
SAME(cos_server_name_done, SSL_TLSEXT_ERR_OK)
SAME(cos_server_name_fatal, SSL_TLSEXT_ERR_ALERT_FATAL)
SAME(cos_server_name_ignored, SSL_TLSEXT_ERR_NOACK)
SAME(cos_server_name_unrecognized, SSL_AD_UNRECOGNIZED_NAME)
SAME(0, TLSEXT_NAMETYPE_host_name)
SAME(cos_host_no_partial_wildcards, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS)
SAME(cos_host_never_subject, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)
SAME(cos_bio_read, BIO_FLAGS_READ)
SAME(cos_bio_retry, BIO_FLAGS_SHOULD_RETRY)
SAME(cos_bio_source_sink, BIO_TYPE_SOURCE_SINK)
SAME(cos_bio_ctrl_flush, BIO_CTRL_FLUSH)
SAME(cos_pem_library, ERR_LIB_PEM)
SAME(cos_pem_no_start, PEM_R_NO_START_LINE)
SAME(COS_OPTION_NO_TICKET, SSL_OP_NO_TICKET)
SAME(COS_OPTION_NO_COMPRESSION, SSL_OP_NO_COMPRESSION)
SAME(COS_OPTION_SERVER_PREFERENCE, SSL_OP_CIPHER_SERVER_PREFERENCE)
SAME(COS_OPTION_NO_RENEGOTIATION, SSL_OP_NO_RENEGOTIATION)
SAME(COS_INIT_NO_ATEXIT, OPENSSL_INIT_NO_ATEXIT)

SAME(ERR_LIB_OFFSET, 23)
SAME(ERR_REASON_MASK, 0x7fffff)
SAME(cos_library_ssl, ERR_LIB_SSL)
SAME(cos_reason_alert, SSL_AD_REASON_OFFSET)
SAME(cos_reason_verification, SSL_R_CERTIFICATE_VERIFY_FAILED)
SAME(cos_reason_http, SSL_R_HTTP_REQUEST)
SAME(cos_reason_https_proxy, SSL_R_HTTPS_PROXY_REQUEST)
SAME(cos_reason_no_shared_cipher, SSL_R_NO_SHARED_CIPHER)
SAME(cos_reason_no_client_certificate, SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
SAME(cos_reason_no_application_protocol, SSL_R_NO_APPLICATION_PROTOCOL)
SAME(cos_reason_unsupported_protocol, SSL_R_UNSUPPORTED_PROTOCOL)
SAME(cos_reason_wrong_version, SSL_R_WRONG_VERSION_NUMBER)
SAME(cos_reason_version_too_low, SSL_R_VERSION_TOO_LOW)
SAME(cos_reason_no_renegotiation, SSL_R_NO_RENEGOTIATION)
SAME(cos_reason_callback, SSL_R_CALLBACK_FAILED)

SAME(cos_verified, X509_V_OK)
SAME(cos_verify_no_issuer, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT)
SAME(cos_verify_bad_signature, X509_V_ERR_CERT_SIGNATURE_FAILURE)
SAME(cos_verify_not_yet_valid, X509_V_ERR_CERT_NOT_YET_VALID)
SAME(cos_verify_expired, X509_V_ERR_CERT_HAS_EXPIRED)
SAME(cos_verify_self_signed, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT)
SAME(cos_verify_self_signed_in_chain, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN)
SAME(cos_verify_no_local_issuer, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY)
SAME(cos_verify_no_leaf_issuer, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE)
SAME(cos_verify_wrong_purpose, X509_V_ERR_INVALID_PURPOSE)
SAME(cos_verify_pins, X509_V_ERR_APPLICATION_VERIFICATION)
SAME(cos_verify_wrong_name, X509_V_ERR_HOSTNAME_MISMATCH)
SAME(cos_verify_wrong_address, X509_V_ERR_IP_ADDRESS_MISMATCH)
SAME(cos_verify_weak_key, X509_V_ERR_EE_KEY_TOO_SMALL)
SAME(cos_verify_weak_issuer_key, X509_V_ERR_CA_KEY_TOO_SMALL)
SAME(cos_verify_weak_digest, X509_V_ERR_CA_MD_TOO_WEAK)
