// SPDX-License-Identifier: Apache-2.0

import CRunLoopOpenSSL

extension TLSError.Cause {
  /// Translates an OpenSSL error of a failed connection.
  ///
  /// - Parameters:
  ///   - error: OpenSSL's error number, or zero for none.
  ///   - text: OpenSSL's text of the error.
  ///   - verification: The result of verifying the peer's certificate.
  ///   - name: The server name that was verified.
  ///   - asked: The server name that was requested.
  init(error: UInt, text: String, verification: Int, name: String?, asked: String?) {
    let reason = Int(cos_error_reason(error))
    guard cos_error_library(error) == cos_library_ssl else {
      self = .protocolViolation(reason: text)
      return
    }
    switch reason {
    case cos_reason_verification:
      self.init(verification: verification, text: String(cString: cos_verification_text(verification)), name: name)
    case cos_reason_alert..<cos_reason_alert + 256:
      self = .rejectedByPeer(TLSAlert(number: UInt8(truncatingIfNeeded: reason - cos_reason_alert)))
    case cos_reason_http, cos_reason_https_proxy, cos_reason_wrong_version: self = .notTLS
    case cos_reason_unsupported_protocol, cos_reason_version_too_low: self = .versionMismatch
    case cos_reason_no_shared_cipher: self = .noCommonCipher
    case cos_reason_no_client_certificate: self = .noCertificate
    case cos_reason_no_application_protocol: self = .noCommonApplicationProtocol
    case cos_reason_callback: self = .unknownServerName(asked)
    default: self = .protocolViolation(reason: text)
    }
  }

  /// Translates the reason why a certificate was rejected.
  init(verification: Int, text: String, name: String?) {
    switch verification {
    case cos_verify_expired: self = .expired
    case cos_verify_not_yet_valid: self = .notYetValid
    case cos_verify_wrong_name, cos_verify_wrong_address: self = .wrongHost(expected: name ?? "")
    case cos_verify_self_signed: self = .selfSigned
    case cos_verify_self_signed_in_chain, cos_verify_no_issuer, cos_verify_no_local_issuer, cos_verify_no_leaf_issuer:
      self = .unknownIssuer
    case cos_verify_wrong_purpose: self = .wrongPurpose
    case cos_verify_bad_signature: self = .badSignature
    case cos_verify_pins: self = .pinMismatch
    case cos_verify_weak_key, cos_verify_weak_issuer_key, cos_verify_weak_digest: self = .weak(reason: text)
    default: self = .untrusted(reason: text)
    }
  }
}
