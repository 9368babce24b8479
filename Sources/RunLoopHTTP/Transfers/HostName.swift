// SPDX-License-Identifier: Apache-2.0

import CLibCurl
import RunLoopLibC

/// Host name functions of the optional libraries libidn2 and libpsl.
enum HostName {
  enum Failure: Swift.Error {
    case rejected(String)
  }

  /// Converts an internationalized name to ASCII for the lookup, according to UTS 46.
  static func ascii(_ name: String) throws(Failure) -> String {
    guard let text = try? CText(name) else { throw .rejected("it has a zero byte") }
    let capacity = 512
    let (answer, result) = withUnsafeTemporaryAllocation(of: CChar.self, capacity: capacity) { buffer in
      buffer.initialize(repeating: 0)
      guard let start = buffer.baseAddress else { return (Int32(clc_host_rejected), "") }
      let answer = text.withPointer { clc_host_to_ascii($0, start, capacity) }
      return (answer, String(cString: start))
    }
    switch Int(answer) {
    case Int(clc_host_mapped): return result
    case Int(clc_host_library_missing):
      throw .rejected("it is not ASCII, and libidn2 is missing, which maps it; Debian's package is libidn2-0")
    default: throw .rejected(result)
    }
  }

  /// Whether a domain is a public suffix such as `co.uk`, under which domains are registered; nil without libpsl.
  ///
  /// A trailing dot, which libpsl does not expect, is ignored.
  static func isPublicSuffix(_ domain: String) -> Bool? {
    guard let text = try? CText(domain.hasSuffix(".") ? String(domain.dropLast()) : domain) else { return nil }
    let answer = text.withPointer { clc_is_public_suffix($0) }
    return answer < 0 ? nil : answer != 0
  }
}
